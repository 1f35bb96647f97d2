#pragma once
// libtorch's wheel has Gloo inside and its process group's header, but not the headers of Gloo that this one
// includes: impl/comm/gloo/ stands in for them. Of their types it needs names alone, and these members, in
// the order that they have in the wheel which ci/setup pins; nothing here is ever called.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

struct Context {
  void setTimeout(std::chrono::milliseconds timeout);  // NOLINT(readability-identifier-naming): its name
};

namespace rendezvous {
class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& data) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};
}  // namespace rendezvous

namespace transport {
class Device;
class UnboundBuffer;
}  // namespace transport

}  // namespace gloo
