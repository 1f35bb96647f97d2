#include "impl/comm/let_go.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace assay::impl {

namespace {
std::mutex mutex;

std::vector<LetGo*>& held() {
  static std::vector<LetGo*> all;
  return all;
}
}  // namespace

LetGo::LetGo(std::function<void()> release) : release_(std::move(release)) {
  const std::scoped_lock lock(mutex);
  held().push_back(this);
}

LetGo::~LetGo() {
  const std::scoped_lock lock(mutex);
  std::erase(held(), this);
}

void let_go_of_all() {
  const std::scoped_lock lock(mutex);
  for (LetGo* each : std::exchange(held(), {})) each->release_();
}

}  // namespace assay::impl
