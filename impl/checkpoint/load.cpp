#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/input_file.hpp"
#include "impl/checkpoint/load_parameter.hpp"
#include "impl/checkpoint/parts.hpp"
#include "impl/checkpoint/safetensors_file.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/params/slices.hpp"
#include "spec/checkpoint/safetensors.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;
using spec::safetensors::Header;

namespace {
[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw UserError(ExitCode::bad_data, path.string() + ": " + what);
}

/// As long as it stands there a damaged checkpoint is the one to continue from, or is in the way of it.
std::string way_out(const fs::path& folder) {
  return "; move " + folder.string() +
         " away and resume from the checkpoint before it (checkpoint.resume=auto), or start anew";
}

bool begins_with(const InputFile& file, const std::string& text) {
  std::string bytes(std::min<std::uint64_t>(text.size(), file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes == text;
}

struct ByteRange {
  std::uint64_t begin, end;  ///< in the file [B]
};

/// Byte ranges of the tensors in the order of the manifest; nothing where the file's header cannot
/// be read, or lists others.
std::optional<std::vector<ByteRange>> ranges_of(const InputFile& file, const FileEntry& entry) try {
  const Header header = header_in(file);
  if (header.tensors.size() != entry.tensors.size()) return {};
  std::vector<ByteRange> ranges;
  for (const TensorEntry& tensor : entry.tensors) {
    const auto& t = header.at(tensor.name);
    ranges.push_back({header.data_offset + t.begin, header.data_offset + t.end});
  }
  return ranges;
} catch (const InputFile::Unreadable&) {
  throw;
} catch (const UserError&) {
  return {};
}

/// Where a file differs from what was written: the last tensor of which that is so, or its header.
std::string damaged_part(const InputFile& file, const FileEntry& entry) {
  std::string where = "its header";
  const auto ranges = ranges_of(file, entry);
  for (std::size_t i = 0; ranges && i < ranges->size(); ++i)
    if (file.hash((*ranges)[i].begin, (*ranges)[i].end) != entry.tensors[i].hash)
      where = "tensor " + entry.tensors[i].name;
  return where;
}

/// A tensor file of the right size.
InputFile open_part(const fs::path& folder, const FileEntry& entry) try {
  InputFile file(folder / entry.name);
  // checkpoint_c3
  if (static_cast<std::int64_t>(file.size()) != entry.bytes)
    refuse(file.path(), "checkpoint_c3: has " + std::to_string(file.size()) + " bytes, the manifest says " +
                            std::to_string(entry.bytes) + way_out(folder));
  return file;
} catch (const InputFile::Unreadable& error) {
  refuse(folder / entry.name, std::string("checkpoint_c3: ") + error.what() + way_out(folder));
}

/// The part of the bytes of all files that one of several ranks hashes, in whole tensors.
class Dealt {
 public:
  Dealt(std::uint64_t bytes, std::size_t rank, std::size_t ranks)
      : bytes_(std::max<std::uint64_t>(bytes, 1)), rank_(rank), ranks_(ranks) {}

  /// Of one file behind the other; `header`: as it is written for this model. Errors: UserError(bad_data).
  void check(const fs::path& folder, const InputFile& file, const FileEntry& entry,
             const std::string& header) try {
    // checkpoint_c3
    const auto refuse_content = [&](const std::string& where) {
      refuse(file.path(),
             "checkpoint_c3: content differs from what was written, in " + where + way_out(folder));
    };
    const auto ranges = ranges_of(file, entry);
    // Another model's header, or a damaged one: the hash of the whole file knows.
    if (mine(0) && (!ranges || !begins_with(file, header)) && file.hash(0, file.size()) != entry.hash)
      refuse_content(damaged_part(file, entry));
    for (std::size_t i = 0; ranges && i < ranges->size(); ++i) {
      const auto [begin, end] = (*ranges)[i];
      if (mine(begin) && file.hash(begin, end) != entry.tensors[i].hash)
        refuse_content("tensor " + entry.tensors[i].name);
    }
    before_ += file.size();
  } catch (const InputFile::Unreadable& error) {
    refuse(file.path(), std::string("checkpoint_c3: ") + error.what() + way_out(folder));
  }

 private:
  bool mine(std::uint64_t position) const { return (before_ + position) * ranks_ / bytes_ == rank_; }

  std::uint64_t before_ = 0;  ///< bytes of the files before this one
  const std::uint64_t bytes_;
  const std::size_t rank_, ranks_;
};

/// "[128, 64]"
std::string shown(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t size : shape) out += (out.empty() ? "[" : ", ") + std::to_string(size);
  return out.empty() ? "[]" : out + "]";
}

/// checkpoint_c4: exactly the parameters of the model, each with its shape and dtype.
void check_tensors(const fs::path& path, const Header& header, const Part& part,
                   const ParameterBuffers& buffers) {
  std::size_t due = 0;
  for (const spec::Parameter& parameter : buffers.model.parameters) {
    if (!holds(part, parameter)) continue;
    ++due;
    const std::string dtype = dtype_name(buffers, parameter);
    const auto& tensor = header.at(parameter.name);
    if (tensor.dtype != dtype)
      refuse(path, "checkpoint_c4: " + parameter.name + " is " + tensor.dtype + ", the model's is " + dtype);
    if (tensor.shape != parameter.shape)
      refuse(path, "checkpoint_c4: " + parameter.name + " has shape " + shown(tensor.shape) +
                       ", the model's has " + shown(parameter.shape));
  }
  if (header.tensors.size() != due)
    refuse(path, "checkpoint_c4: holds " + std::to_string(header.tensors.size()) +
                     " tensors, the model has " + std::to_string(due));
}

void require_committed(const fs::path& folder) {
  // checkpoint_c1
  if (!committed(folder))
    refuse(folder,
           "checkpoint_c1: not a committed checkpoint (COMMITTED is missing or does not belong to "
           "manifest.json)" +
               way_out(folder));
}

Manifest committed_manifest(const fs::path& folder) {
  require_committed(folder);
  return read_manifest(folder);
}

/// A tensor file that was found right.
struct Source {
  InputFile file;
  Header header;
};

const FileEntry& entry_of(const fs::path& folder, const Manifest& manifest, const Part& part) {
  const auto entry = std::find_if(manifest.files.begin(), manifest.files.end(),
                                  [&](const FileEntry& file) { return file.name == part.file; });
  if (entry == manifest.files.end())
    refuse(folder, std::string("checkpoint_c3: the manifest lists no ") + part.file + way_out(folder));
  return *entry;
}

/// The files, after each byte was hashed by one of the ranks that see them.
std::vector<Source> checked_sources(const fs::path& folder, const Manifest& manifest,
                                    const ParameterBuffers& buffers, Communicator& communicator) {
  std::vector<Source> sources;
  std::uint64_t bytes = 0;
  std::string files;  // which they are, as this host sees them
  refuse_together(communicator, [&] {
    for (const Part& part : parts) {
      sources.push_back({open_part(folder, entry_of(folder, manifest, part)), {}});
      bytes += sources.back().file.size();
      files += sources.back().file.identity() + " ";
    }
  });
  const std::vector<std::string> all = communicator.all_gather(files);
  const auto me = all.begin() + communicator.rank();
  Dealt dealt(bytes, static_cast<std::size_t>(std::count(all.begin(), me, files)),
              static_cast<std::size_t>(std::count(all.begin(), all.end(), files)));
  refuse_together(communicator, [&] {
    for (std::size_t i = 0; i < sources.size(); ++i)
      dealt.check(folder, sources[i].file, entry_of(folder, manifest, parts[i]),
                  spec::safetensors::serialize(header_of(parts[i], buffers)));
  });
  refuse_together(communicator, [&] {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      Source& source = sources[i];
      source.header = header_in(source.file);
      check_tensors(source.file.path(), source.header, parts[i], buffers);
    }
  });
  return sources;
}

}  // namespace

/// Elements of the whole of parameter number `index` of `buffers` among which are all that this rank holds in
/// one of `targets`: of a parameter that is split over tensor ranks its rows, or everything where columns are
/// split; else all of them, its shard, or none.
spec::Inventory::Range held(const ParameterBuffers& buffers, const std::vector<at::Tensor>& targets,
                            std::size_t index) {
  const spec::Parameter& own = buffers.inventory.parameters[index];
  const spec::Placement& placement = buffers.placements[index];
  const auto owned = buffers.partition.owned(own.block, buffers.shard_rank);
  std::int64_t begin = std::max(owned.begin, own.offset) - own.offset,
               end = std::min(owned.end, own.offset + own.size) - own.offset;
  for (const at::Tensor& target : targets)
    if (buffers.whole(target)) begin = 0, end = own.size;
  if (begin >= end) return {0, 0};
  if (placement.dimension < 0) return {begin, end};
  if (placement.dimension > 0) return {0, placement.whole.size};
  const std::int64_t row = placement.whole.size / placement.whole.shape.front();
  return {placement.begin * row, (placement.begin + placement.count) * row};
}

namespace {
void fill(ParameterBuffers& buffers, const Part& part, const Source& source) {
  std::vector<at::Tensor> targets = {buffers.*part.buffer};
  if (part.buffer == &ParameterBuffers::master && !buffers.master.is_same(buffers.weights))
    targets.push_back(buffers.weights);
  for (std::size_t i = 0; i < buffers.placements.size(); ++i) {
    const spec::Parameter& parameter = buffers.placements[i].whole;
    if (!holds(part, parameter)) continue;
    const at::Tensor bias = router_bias_of(buffers, buffers.placements[i].number);
    const spec::Inventory::Range range =
        bias.defined() ? spec::Inventory::Range{0, parameter.size} : held(buffers, targets, i);
    if (range.begin == range.end) continue;
    // The rest of the buffer stays untouched and takes no memory.
    const at::Tensor values =
        at::empty(parameter.shape, (bias.defined() ? bias : buffers.master).options().device(at::kCPU));
    const std::uint64_t first = source.header.data_offset + source.header.at(parameter.name).begin;
    const auto element = static_cast<std::int64_t>(values.element_size());
    source.file.read(first + static_cast<std::uint64_t>(range.begin * element),
                     {static_cast<std::byte*>(values.data_ptr()) + range.begin * element,
                      static_cast<std::size_t>((range.end - range.begin) * element)});
    if (bias.defined())
      bias.copy_(values);
    else
      for (const at::Tensor& target : targets) store(buffers, target, i, values);
  }
  if (buffers.experts) fill(*buffers.experts, part, source);
}
}  // namespace

State read_state(const std::string& path) {
  const Manifest manifest = committed_manifest(path);
  return {manifest.step, manifest.tokens, manifest.config};
}

std::string content_of(const std::string& path) {
  const fs::path folder(path);
  require_committed(folder);
  const std::string manifest = read_whole(folder / manifest_name, manifest_limit);
  return content_hash(std::as_bytes(std::span(manifest)));
}

std::int64_t step_of(const std::string& path) { return read_manifest(path).step; }

State load(const std::string& path, ParameterBuffers& buffers, Communicator& communicator) {
  const fs::path folder(path);
  Manifest manifest;
  refuse_together(communicator, [&] {
    manifest = committed_manifest(folder);
    if (manifest.dtype != dtype_name(buffers))
      refuse(folder, "checkpoint_c4: state is " + manifest.dtype + ", this run's is " + dtype_name(buffers));
  });
  const std::vector<Source> sources = checked_sources(folder, manifest, buffers, communicator);
  // Everything is right: only now are the buffers touched.
  for (std::size_t i = 0; i < sources.size(); ++i) fill(buffers, parts[i], sources[i]);
  return {manifest.step, manifest.tokens, manifest.config};
}

State load(const std::string& path, ParameterBuffers& buffers) {
  return load(path, buffers, *make_self_communicator());
}

}  // namespace assay::impl::checkpoint
