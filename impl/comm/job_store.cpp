#include "impl/comm/job_store.hpp"

#include <cstdint>
#include <random>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "impl/comm/meeting.hpp"
#include "impl/comm/refusal.hpp"
#include "spec/error.hpp"

namespace assay::impl {

namespace {
class TcpJobStore final : public JobStore {
 public:
  explicit TcpJobStore(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  void set(const std::string& key, const std::string& text) override { store_->set(key, text); }
  void set_first(const std::string& key, const std::string& text) override {
    store_->compareSet(key, std::string(), text);
  }
  std::vector<std::string> get(const std::vector<std::string>& keys) override {
    std::vector<std::string> texts;
    for (const auto& bytes : store_->multiGet(keys)) texts.emplace_back(bytes.begin(), bytes.end());
    return texts;
  }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};
}  // namespace

std::unique_ptr<JobStore> connect_to_job_store(Communicator& communicator) {
  std::random_device random;
  const std::string keys = communicator.all_gather(std::to_string(random()) + "/").front();
  c10::intrusive_ptr<c10d::Store> store;
  refuse_together(communicator, [&] {
    const auto [host, port] = communicator.store();
    try {
      store = connect_to_store(host, port, std::chrono::seconds(20));
    } catch (const std::exception& error) {
      throw UserError(ExitCode::peer_lost,
                      "cannot open a second connection to the job's store at " + host + ":" +
                          std::to_string(port) + ": " + error.what() +
                          "; look at the limit of open files (ulimit -n) and at what is between the hosts");
    }
  });
  return std::make_unique<TcpJobStore>(c10::make_intrusive<c10d::PrefixStore>("assay/watch/" + keys, store));
}

}  // namespace assay::impl
