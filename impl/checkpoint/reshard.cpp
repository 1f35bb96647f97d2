#include "impl/checkpoint/reshard.hpp"

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/export.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/partial_folder.hpp"
#include "impl/checkpoint/slice_file.hpp"
#include "impl/checkpoint/stored_state.hpp"
#include "spec/checkpoint/safetensors.hpp"
#include "spec/checkpoint/slice_hash.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;

namespace {
/// Slices of one file: of the parts' tensors, one behind the other, elements [begin, end).
std::vector<SliceEntry> slices_in(const StoredState& stored, const spec::Inventory::Range& wanted) {
  std::vector<SliceEntry> out;
  std::int64_t position = 0;
  for (const char* part : part_names)
    for (const ParameterEntry& parameter : stored.parameters()) {
      if (stored.slices(part, parameter.name).empty()) continue;
      const spec::Slice whole = spec::whole_slice(parameter.shape);
      const std::int64_t begin = std::max(wanted.begin, position) - position,
                         end = std::min(wanted.end, position + whole.size()) - position;
      for (const spec::Slice& slice : spec::slices_of_range(begin, end, whole.columns))
        out.push_back({.part = part, .parameter = parameter.name, .slice = slice, .begin = 0, .hash = {}});
      position += whole.size();
    }
  return out;
}

std::int64_t elements_in(const StoredState& stored) {
  std::int64_t elements = 0;
  for (const char* part : part_names)
    for (const ParameterEntry& parameter : stored.parameters())
      for (const StoredState::Stored& each : stored.slices(part, parameter.name))
        elements += each.entry->slice.size();
  return elements;
}

/// Writes all files side by side: parameters are read once, in order, and each piece goes to the file or two
/// that hold it.
class Files {
 public:
  Files(const StoredState& stored, const OutputFolder& folder, std::int64_t count) : folder_(folder) {
    const std::int64_t elements = elements_in(stored);
    for (std::int64_t k = 0; k < count; ++k)
      planned_.push_back({rank_file(static_cast<int>(k), static_cast<int>(count), ".safetensors"),
                          slices_in(stored, spec::equal_part(elements, k, count))});
    for (const char* part : part_names)
      for (const ParameterEntry& parameter : stored.parameters()) {
        if (stored.slices(part, parameter.name).empty()) continue;
        stored.stream(part, parameter.name, [&](const spec::Slice& piece, std::span<const std::byte> bytes) {
          take(stored, parameter, piece, bytes);
        });
      }
    while (done_.size() < planned_.size()) next_file(stored);
  }

  const std::vector<FileEntry>& entries() const { return done_; }

 private:
  struct Planned {
    std::string name;
    std::vector<SliceEntry> slices;
  };

  /// What the present file, and those behind it, hold of a piece: elements row by row, as they do.
  void take(const StoredState& stored, const ParameterEntry& parameter, const spec::Slice& piece,
            std::span<const std::byte> bytes) {
    const std::size_t element = spec::safetensors::element_bytes(parameter.dtype);
    const std::int64_t end = (piece.row + piece.rows) * piece.columns;
    for (std::int64_t at = piece.row * piece.columns; at < end;) {
      while (!file_ || slice_ == planned_[done_.size()].slices.size()) next_file(stored);
      SliceEntry& slice = planned_[done_.size()].slices[slice_];
      const std::int64_t first = slice.slice.row * piece.columns + slice.slice.column,
                         last = first + slice.slice.size();  // its elements are neighbours
      const std::int64_t now = std::min(end, last) - at;
      const std::span<const std::byte> values =
          bytes.subspan(static_cast<std::size_t>(at - piece.row * piece.columns) * element,
                        static_cast<std::size_t>(now) * element);
      file_->write(values);
      std::size_t done = 0;
      for (const spec::Slice& each : spec::slices_of_range(at, at + now, piece.columns)) {
        const std::size_t size = static_cast<std::size_t>(each.size()) * element;
        hash_ += spec::slice_hash(values.subspan(done, size), element, each, piece.columns);
        done += size;
      }
      at += now;
      if (at < last) continue;
      slice.hash = spec::hash_text(std::exchange(hash_, 0));
      ++slice_;
    }
  }

  /// Ends the present file, where there is one, and begins the next.
  void next_file(const StoredState& stored) {
    if (file_) {
      file_->commit();
      done_.push_back({.name = planned_[done_.size()].name,
                       .bytes = file_->size(),
                       .hash = header_hash_,
                       .slices = planned_[done_.size()].slices});
      file_.reset();
    }
    if (done_.size() == planned_.size()) return;
    Planned& next = planned_[done_.size()];
    const std::string header = slice_header(
        next.slices,
        [&](const std::string& name) -> const ParameterEntry& { return stored.parameter(name); });
    file_ = std::make_unique<DurableFile>(folder_, next.name);
    file_->write(std::as_bytes(std::span(header)));
    header_hash_ = file_->hash();
    slice_ = 0;
  }

  const OutputFolder& folder_;
  std::vector<Planned> planned_;
  std::vector<FileEntry> done_;
  std::unique_ptr<DurableFile> file_;
  std::string header_hash_;
  std::size_t slice_ = 0;
  std::uint64_t hash_ = 0;
};
}  // namespace

Resharded reshard(const ReshardRequest& request) {
  constexpr std::int64_t most_files = 100'000;
  if (request.files < 1 || request.files > most_files)
    throw UserError(ExitCode::usage,
                    "a checkpoint has 1 to 100,000 files, not " + std::to_string(request.files));
  Resharded out;
  out.from = checkpoint_in(request.checkpoint);
  const StoredState stored(out.from, "; nothing was written: take another checkpoint");
  out.step = stored.manifest().step;
  make_folder(request.folder, [&](const OutputFolder& folder) {
    Manifest manifest = stored.manifest();
    manifest.files = Files(stored, folder, request.files).entries();
    for (const FileEntry& file : manifest.files) out.bytes += file.bytes;
    write_manifest(folder, manifest);
  });
  return out;
}

}  // namespace assay::impl::checkpoint
