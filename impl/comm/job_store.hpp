#pragma once
// The job's key-value store, for a thread beside the trainer's.
#include <memory>
#include <string>
#include <vector>

#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// A connection of its own to the store: what one thread asks there does not wait for a collective of
/// another. For one thread. Errors of every call: std::exception where the store is gone. A call waits for as
/// long as the store's process is stopped.
class JobStore {
 public:
  virtual ~JobStore() = default;
  virtual void set(const std::string& key, const std::string& text) = 0;
  /// Sets a key that holds an empty text; all others stay.
  virtual void set_first(const std::string& key, const std::string& text) = 0;
  /// Waits until all keys are set.
  virtual std::vector<std::string> get(const std::vector<std::string>& keys) = 0;
};

/// A second connection to the store in which the ranks met (Communicator::store). Keys are this call's own.
/// Collective. Errors: AgreedError(peer_lost) where a rank cannot reach the store.
std::unique_ptr<JobStore> connect_to_job_store(Communicator& communicator);

}  // namespace assay::impl
