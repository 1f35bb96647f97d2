#include <cstdlib>

#include "impl/parallel/communicator.hpp"

namespace assay::impl {

namespace {
/// One rank: every reduction is the identity. Opens no socket.
class SelfCommunicator final : public Communicator {
 public:
  std::string engine() const override { return "self"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void begin_all_reduce_sum(const at::Tensor&) override {}
  void wait_all() override {}
  std::vector<std::string> all_gather(const std::string& text) override { return {text}; }
  void barrier() override {}
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }
};
}  // namespace

std::unique_ptr<Communicator> make_self_communicator() { return std::make_unique<SelfCommunicator>(); }

}  // namespace assay::impl
