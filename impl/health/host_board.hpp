#pragma once
// Shared state of the ranks of one host: memory that they map, and locks that the system releases when a
// process ends, however it ends.
#include <string>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/health/rank_row.hpp"

namespace assay::impl {

/// Which rank is lost, decided once for all ranks; or that the job stands still for an unknown reason.
struct Verdict {
  int rank = 0;  ///< no_rank (peer_rules.hpp): none is to blame
  std::string text;
};

class HostBoard {
 public:
  /// Ranks whose `memory` is the same text share a board. Collective. Its file loses its name once all have
  /// opened it. Errors: AgreedError(io) where a rank cannot.
  HostBoard(Communicator& communicator, const std::string& memory = shared_memory_of_this_process());
  ~HostBoard();
  HostBoard(const HostBoard&) = delete;
  HostBoard& operator=(const HostBoard&) = delete;

  /// Identity of the memory that this process can share: its host's, and its container's.
  static std::string shared_memory_of_this_process();

  /// Ranks of this board in their order.
  const std::vector<int>& ranks() const { return ranks_; }
  Row& mine();
  const Row& row(std::size_t slot) const;
  /// Whether the process of that slot has ended, or has left its board.
  bool gone(std::size_t slot) const;
  /// Ends the process of that slot where it still is, even a stopped one; not the calling one.
  void end_process(std::size_t slot) const;

  /// The first verdict stays. Returns whether this one is it.
  bool post(const Verdict& verdict);
  /// Whether there is a verdict, and which.
  bool posted(Verdict& verdict) const;
  /// True for the first caller, which then reports the verdict.
  bool take_reporting();
  bool being_reported() const;
  void set_reported();
  bool is_reported() const;

 private:
  struct Memory;
  void open_together(Communicator& communicator, const std::string& memory);
  std::string create();
  std::string attach(const std::string& path);

  std::vector<int> ranks_;
  std::size_t slot_ = 0;
  int descriptor_ = -1;
  std::size_t bytes_ = 0;
  Memory* memory_ = nullptr;
};

}  // namespace assay::impl
