#include <ATen/ATen.h>

#include <algorithm>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/input_file.hpp"
#include "impl/checkpoint/parts.hpp"
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

/// The header alone is read. Errors: UserError(bad_data), as spec::safetensors::parse.
Header header_in(const InputFile& file) {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(8, file.size()));
  file.read(0, bytes);
  bytes.resize(std::min(spec::safetensors::header_bytes(bytes, file.path().string()), file.size()));
  file.read(0, bytes);
  return spec::safetensors::parse(bytes, file.size(), file.path().string());
}

/// Where a file differs from what was written: the last tensor of which that is so, or its header.
std::string damaged_place(const InputFile& file, const FileEntry& entry) {
  std::string where = "its header";
  try {
    const Header header = header_in(file);
    for (const TensorEntry& tensor : entry.tensors) {
      const auto& t = header.at(tensor.name);
      if (file.hash(header.data_offset + t.begin, header.data_offset + t.end) != tensor.hash)
        where = "tensor " + tensor.name;
    }
  } catch (const UserError&) {
    // The header itself is damaged: `where` says so.
  }
  return where;
}

/// A tensor file after its size and hash were found right.
InputFile whole_file(const fs::path& folder, const FileEntry& entry) try {
  InputFile file(folder / entry.name);
  // checkpoint_c3
  if (static_cast<std::int64_t>(file.size()) != entry.bytes)
    refuse(file.path(), "checkpoint_c3: has " + std::to_string(file.size()) + " bytes, the manifest says " +
                            std::to_string(entry.bytes) + way_out(folder));
  if (file.hash(0, file.size()) != entry.hash)
    refuse(file.path(), "checkpoint_c3: content differs from what was written, in " +
                            damaged_place(file, entry) + way_out(folder));
  return file;
} catch (const InputFile::Unreadable& error) {
  refuse(folder / entry.name, std::string("checkpoint_c3: ") + error.what() + way_out(folder));
}

/// "[128, 64]"
std::string shown(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t size : shape) out += (out.empty() ? "[" : ", ") + std::to_string(size);
  return out.empty() ? "[]" : out + "]";
}

/// checkpoint_c4: exactly the parameters of the model, each with its shape and dtype.
void check_tensors(const fs::path& path, const Header& header, const ParameterBuffers& buffers) {
  const std::string dtype = dtype_name(buffers);
  for (const spec::Parameter& parameter : buffers.inventory.parameters) {
    const auto& tensor = header.at(parameter.name);
    if (tensor.dtype != dtype)
      refuse(path, "checkpoint_c4: " + parameter.name + " is " + tensor.dtype + ", the model's is " + dtype);
    if (tensor.shape != parameter.shape)
      refuse(path, "checkpoint_c4: " + parameter.name + " has shape " + shown(tensor.shape) +
                       ", the model's has " + shown(parameter.shape));
  }
  if (header.tensors.size() != buffers.inventory.parameters.size())
    refuse(path, "checkpoint_c4: holds " + std::to_string(header.tensors.size()) +
                     " tensors, the model has " + std::to_string(buffers.inventory.parameters.size()));
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

Source open_part(const fs::path& folder, const Manifest& manifest, const Part& part,
                 const ParameterBuffers& buffers) {
  const auto entry = std::find_if(manifest.files.begin(), manifest.files.end(),
                                  [&](const FileEntry& file) { return file.name == part.file; });
  if (entry == manifest.files.end())
    refuse(folder, std::string("checkpoint_c3: the manifest lists no ") + part.file + way_out(folder));
  InputFile file = whole_file(folder, *entry);
  Header header = header_in(file);
  check_tensors(file.path(), header, buffers);
  return {std::move(file), std::move(header)};
}

/// Elements of a parameter that this rank holds in one of `targets`: all of them, its share, or none.
spec::Inventory::Range held(const ParameterBuffers& buffers, const std::vector<at::Tensor>& targets,
                            const spec::Parameter& parameter) {
  for (const at::Tensor& target : targets)
    if (buffers.whole(target)) return {0, parameter.size};
  const auto owned = buffers.partition.owned(parameter.block, buffers.shard_rank);
  const std::int64_t begin = std::max(owned.begin, parameter.offset) - parameter.offset,
                     end = std::min(owned.end, parameter.offset + parameter.size) - parameter.offset;
  return {begin, std::max(begin, end)};
}

void fill(ParameterBuffers& buffers, const Part& part, const Source& source) {
  std::vector<at::Tensor> targets = {buffers.*part.buffer};
  if (part.buffer == &ParameterBuffers::master && !buffers.master.is_same(buffers.weights))
    targets.push_back(buffers.weights);
  for (const spec::Parameter& parameter : buffers.inventory.parameters) {
    const spec::Inventory::Range range = held(buffers, targets, parameter);
    if (range.begin == range.end) continue;
    // What is not read of it is not looked at either, and takes no memory before it is touched.
    const at::Tensor values = at::empty(parameter.shape, buffers.master.options().device(at::kCPU));
    const std::uint64_t first = source.header.data_offset + source.header.at(parameter.name).begin;
    const auto element = static_cast<std::int64_t>(values.element_size());
    source.file.read(first + static_cast<std::uint64_t>(range.begin * element),
                     {static_cast<std::byte*>(values.data_ptr()) + range.begin * element,
                      static_cast<std::size_t>((range.end - range.begin) * element)});
    for (const at::Tensor& target : targets) store(buffers, target, parameter, values);
  }
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

State load(const std::string& path, ParameterBuffers& buffers) {
  const fs::path folder(path);
  const Manifest manifest = committed_manifest(folder);
  if (manifest.dtype != dtype_name(buffers))
    refuse(folder, "checkpoint_c4: state is " + manifest.dtype + ", this run's is " + dtype_name(buffers));
  std::vector<Source> sources;
  for (const Part& part : parts) sources.push_back(open_part(folder, manifest, part, buffers));
  // Everything is right: only now are the buffers touched.
  for (std::size_t i = 0; i < sources.size(); ++i) fill(buffers, parts[i], sources[i]);
  return {manifest.step, manifest.tokens, manifest.config};
}

}  // namespace assay::impl::checkpoint
