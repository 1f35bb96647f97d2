#include "impl/checkpoint/save.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/input_file.hpp"
#include "impl/checkpoint/parts.hpp"
#include "impl/checkpoint/slice_file.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/machine/disk_fault.hpp"
#include "spec/checkpoint/safetensors.hpp"
#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;

namespace {
constexpr const char* token_name = "rank-0";  ///< by which ranks find out that they see the folder of rank 0
constexpr const char* slices_ending = ".json";
constexpr const char* tensors_ending = ".safetensors";

std::vector<ParameterEntry> parameters_of(const ParameterBuffers& buffers) {
  std::vector<ParameterEntry> parameters;
  for (const spec::Parameter& parameter : buffers.model.parameters)
    parameters.push_back(
        {.name = parameter.name, .dtype = dtype_name(buffers, parameter), .shape = parameter.shape});
  return parameters;
}

std::int64_t bytes_of_tensors(const std::vector<ParameterEntry>& parameters,
                              const ParameterBuffers& buffers) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    for (const Part& part : parts)
      if (holds(part, buffers.model.parameters[i]))
        bytes += buffers.model.parameters[i].size *
                 static_cast<std::int64_t>(spec::safetensors::element_bytes(parameters[i].dtype));
  return bytes;
}

/// Whether none is named the best yet, or one of another set or of a higher loss.
bool is_best(const fs::path& parent, const Validated& validation) {
  const auto best = best_of(parent.parent_path().string());
  return !best || best->set != validation.set || validation.loss < best->loss;
}

/// A file that is gone when the checkpoint is committed: it need not outlive a crash.
void write_passing(const OutputFolder& folder, const std::string& name, const std::string& text) {
  DurableFile(folder, name).write(std::as_bytes(std::span(text)));
}

/// What a rank knows `path` by; empty where it does not see it.
std::string identity_at(const fs::path& path) try {
  return InputFile(path).identity();
} catch (const InputFile::Unreadable&) {
  return "";
}
}  // namespace

Save::Save(const std::string& directory, const ParameterBuffers& buffers, State state, const Retention& keep,
           LayoutGroups& groups)
    : parent_(fs::path(directory) / "checkpoints"),
      path_(parent_ / folder_name(state.step)),
      partial_(parent_ / ("." + folder_name(state.step) + ".partial")),
      state_(std::move(state)),
      keep_(keep),
      parameters_(parameters_of(buffers)),
      needed_(bytes_of_tensors(parameters_, buffers)),
      dtype_(dtype_name(buffers)),
      rank_(groups.all().rank()),
      ranks_(groups.all().size()) {
  Communicator& all = groups.all();
  // A GPU that hangs holds its rank up here, where a watch sees it, and not in the copy of the state.
  all.settle();
  refuse_together(all, [&] {
    if (rank_ == 0) with_reason([&] { make_folder(); });
  });
  // What of rank 0's folder each rank sees; nothing of a checkpoint that is there.
  const std::vector<std::string> seen = all.all_gather(identity_at(partial_ / token_name));
  there_ = seen[0].empty();
  if (there_) return;
  for (int rank = 0; rank < ranks_; ++rank)
    if (seen[static_cast<std::size_t>(rank)] == seen[0]) writers_.push_back(rank);
  writer_ = writer_of(groups, seen[static_cast<std::size_t>(rank_)] == seen[0]);
}

Save::Save(const std::string& directory, const ParameterBuffers& buffers, State state, const Retention& keep,
           const RanksLeft& ranks)
    : parent_(fs::path(directory) / "checkpoints"),
      path_(parent_ / folder_name(state.step)),
      partial_(parent_ / ("." + folder_name(state.step) + "." + ranks.start + ".partial")),
      state_(std::move(state)),
      keep_(keep),
      parameters_(parameters_of(buffers)),
      needed_(bytes_of_tensors(parameters_, buffers)),
      dtype_(dtype_name(buffers)),
      rank_(ranks.rank),
      ranks_(ranks.ranks),
      writers_(ranks.left),
      writer_(ranks.writer),
      patience_(ranks.patience) {
  with_reason([&] {
    if (rank_ == writers_.front()) make_folder();
    there_ = committed(path_);
    if (!there_)
      await([&] { return !identity_at(partial_ / token_name).empty(); }, "their first one made no folder");
  });
}

/// What ranks that are left wait for, by files.
void Save::await(const std::function<bool()>& there, const char* what) const {
  const auto until = std::chrono::steady_clock::now() + patience_;
  while (!there()) {
    if (std::chrono::steady_clock::now() > until)
      throw UserError(ExitCode::io, std::string("of the ranks that are left ") + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// A file of slices may be half written when it is read.
bool Save::all_written() const {
  return std::all_of(writers_.begin(), writers_.end(), [&](int rank) {
    const fs::path slices = partial_ / rank_file(rank, ranks_, slices_ending);
    try {
      file_from_json(read_whole(slices, spec::file_limits::manifest), slices.string());
      return true;
    } catch (const UserError&) {
      return false;
    }
  });
}

void Save::with_reason(const std::function<void()>& work) const {
  const auto fail = [&](const char* why, bool full) {
    const auto free = free_bytes(parent_);
    const std::string room = !full ? ""
                                   : " (it needs " + spec::grouped(needed_) + " bytes" +
                                         (free ? ", " + spec::grouped(*free) + " are free" : "") + ")";
    throw UserError(ExitCode::io, "cannot save " + path_.string() + room + ": " + why);
  };
  try {
    work();
  } catch (const spec::FileFault& fault) {  // of what another rank has just written
    fail(fault.what(), false);
  } catch (const UserError& error) {
    if (error.code() != ExitCode::io) throw;
    const auto* call = dynamic_cast<const FileError*>(&error);
    fail(error.what(), call && is_full(call->reason()));
  } catch (const fs::filesystem_error& error) {
    fail(error.what(), is_full(error.code().value()));
  }
}

void Save::make_folder() {
  create_durable_folder(parent_);
  // Another thread of a rank that is left may be in the middle of a save.
  if (patience_.count() == 0) remove_leftovers(parent_);
  if (committed(path_)) return;
  // Before anything is written: half a checkpoint would fill the disk for whoever else writes to it.
  const auto best = keep_.best ? best_checkpoint(parent_) : std::nullopt;
  for (const fs::path& gone : make_room(parent_, needed_, best)) made_room_.push_back(gone.string());
  const auto free = free_bytes(parent_);
  if (free && *free < needed_)
    throw FileError("the disk is full; free space; checkpoints committed before are intact", ENOSPC);
  folder_ = std::make_unique<PartialFolder>(OutputFolder::own(parent_), partial_.filename().string());
  write_passing(folder_->folder(), token_name, "");
}

void Save::write(const Snapshot& snapshot, const std::function<void()>& piece,
                 const std::function<void()>& confirm) const {
  if (std::find(writers_.begin(), writers_.end(), rank_) == writers_.end()) return;
  with_reason([&] {
    const OutputFolder folder = OutputFolder::own(parent_).within(partial_.filename().string());
    const FileEntry entry = snapshot.write(folder, rank_file(rank_, ranks_, tensors_ending), piece);
    confirm();
    write_passing(folder, rank_file(rank_, ranks_, slices_ending), to_json(entry));
  });
}

Manifest Save::manifest_of_ranks() const {
  Manifest manifest{.step = state_.step,
                    .tokens = state_.tokens,
                    .config = state_.config,
                    .derived = state_.derived,
                    .version = ASSAY_VERSION,
                    .dtype = dtype_,
                    .data = state_.data,
                    .validation = state_.validation,
                    .parameters = parameters_,
                    .files = {},
                    .model = state_.model,
                    .skipped = state_.skipped,
                    .record = state_.record};
  for (const int rank : writers_) {
    const std::string slices = rank_file(rank, ranks_, slices_ending);
    const std::string path = (partial_ / slices).string();
    manifest.files.push_back(file_from_json(read_whole(path, spec::file_limits::manifest), path));
    folder_->folder().remove(slices);
  }
  folder_->folder().remove(token_name);
  return manifest;
}

Saved Save::commit() {
  Saved saved{.path = path_.string(), .bytes = 0, .seconds = 0, .made_room = made_room_, .not_removed = {}};
  with_reason([&] {
    Manifest manifest;
    if (there_) {
      manifest = read_manifest(path_);
    } else {
      if (patience_.count() > 0) await([&] { return all_written(); }, "one did not write its part");
      manifest = manifest_of_ranks();
      write_manifest(folder_->folder(), manifest);
      folder_->rename_to(path_.filename().string());
    }
    // Also of a checkpoint that was there: an earlier call may have failed between its rename and this flush.
    sync_folder(parent_);
    for (const FileEntry& file : manifest.files) saved.bytes += file.bytes;
    if (keep_.best && state_.validation && is_best(parent_, *state_.validation)) name_best(parent_, path_);
    try {
      retain_newest(parent_, keep_.newest, keep_.best ? best_checkpoint(parent_) : std::nullopt);
    } catch (const UserError& error) {
      saved.not_removed = error.what();
    }
  });
  saved.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  return saved;
}

Saved save(const std::string& directory, const ParameterBuffers& buffers, const State& state,
           const Retention& keep, LayoutGroups& groups, const std::function<void()>& piece) {
  Saved saved;
  Save save(directory, buffers, state, keep, groups);
  refuse_together(groups.all(), [&] {
    if (!save.there()) save.write(save.snapshot(buffers), piece);
  });
  refuse_together(groups.all(), [&] {
    if (groups.all().rank() == 0) saved = save.commit();
  });
  return saved;
}

Saved save(const std::string& directory, const ParameterBuffers& buffers, const State& state,
           const Retention& keep) {
  const auto alone = make_self_communicator();
  LayoutGroups groups(*alone, spec::Layout{});
  return save(directory, buffers, state, keep, groups, [] {});
}

}  // namespace assay::impl::checkpoint
