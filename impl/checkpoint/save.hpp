#pragma once
// One save by all ranks, in steps: so that what needs the other ranks is done between two steps of training,
// and what takes long may be done beside them. Order of writes and what survives a crash:
// spec/checkpoint/checkpoint.md.
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/partial_folder.hpp"
#include "impl/checkpoint/snapshot.hpp"

namespace assay::impl::checkpoint {

/// The ranks that save without another one that is lost, and without a collective.
struct RanksLeft {
  int rank = 0, ranks = 1;        ///< this one, and how many there were
  std::vector<int> left;          ///< the first of them makes the folder, and commits
  Writer writer;                  ///< what this one writes
  std::string start;              ///< names the start of the program: no other one's files are waited for
  std::chrono::seconds patience;  ///< for the others' files
};

/// Made, written, committed, in this order; destroyed before it is committed it leaves nothing behind.
/// Destroyed on rank 0 only once no rank writes any more. Errors of all steps: UserError(io) naming file and
/// cause, of a full disk also the bytes that the checkpoint needs and those that are free: then older
/// checkpoints are as they were, and another save may succeed.
class Save {
 public:
  /// Makes the folder for it. Collective; errors are AgreedError.
  Save(const std::string& directory, const ParameterBuffers& buffers, State state, const Retention& keep,
       LayoutGroups& groups);

  /// By ranks that find each other by their files in it. Errors: UserError(io).
  Save(const std::string& directory, const ParameterBuffers& buffers, State state, const Retention& keep,
       const RanksLeft& ranks);

  std::int64_t step() const { return state_.step; }
  /// Whether the checkpoint is committed already: then nothing is written.
  bool there() const { return there_; }
  /// What this rank writes of them.
  Snapshot snapshot(const ParameterBuffers& buffers) const { return {buffers, writer_}; }
  /// Writes it. By any thread. `confirm`: called behind the last slice, before the file counts as written.
  /// Errors also: UserError(non_finite).
  void write(
      const Snapshot& snapshot, const std::function<void()>& piece,
      const std::function<void()>& confirm = [] {}) const;
  /// Once all ranks have written: by rank 0 alone, in any thread. Of ranks that are left the first one waits
  /// for the others' files.
  Saved commit();

 private:
  /// `work` with errors that say what could not be saved.
  void with_reason(const std::function<void()>& work) const;
  void make_folder();
  bool all_written() const;
  void await(const std::function<bool()>& there, const char* what) const;
  Manifest manifest_of_ranks() const;

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const std::filesystem::path parent_, path_, partial_;
  const State state_;
  const Retention keep_;
  const std::vector<ParameterEntry> parameters_;
  const std::int64_t needed_;  ///< by the tensors of all ranks [B]
  const std::string dtype_;
  const int rank_, ranks_;
  std::vector<int> writers_;  ///< ranks that see the folder of rank 0
  bool there_ = false;
  Writer writer_;
  std::unique_ptr<PartialFolder> folder_;  ///< on rank 0
  std::vector<std::string> made_room_;     ///< likewise: checkpoints that went
  std::chrono::seconds patience_{0};       ///< for ranks that find each other by their files
};

}  // namespace assay::impl::checkpoint
