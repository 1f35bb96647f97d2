#include "impl/checkpoint/checkpoint.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/manifest.hpp"
#include "impl/model/views.hpp"
#include "spec/checkpoint/safetensors.hpp"
#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;

namespace {
/// The three tensor files and the flat buffers they hold.
struct Part {
  const char* file;
  at::Tensor ParameterBuffers::*buffer;
};
constexpr Part parts[] = {{"master.safetensors", &ParameterBuffers::master},
                          {"moment1.safetensors", &ParameterBuffers::moment1},
                          {"moment2.safetensors", &ParameterBuffers::moment2}};

std::string dtype_name(const ParameterBuffers& buffers) {
  switch (buffers.master.scalar_type()) {
    case at::kDouble:
      return "F64";
    case at::kBFloat16:
      return "BF16";
    default:
      return "F32";
  }
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

spec::safetensors::Header header_of(const spec::Inventory& inventory, const std::string& dtype) {
  spec::safetensors::Header header;
  const auto element = static_cast<std::int64_t>(spec::safetensors::element_bytes(dtype));
  std::uint64_t position = 0;
  for (const spec::Parameter& parameter : inventory.parameters) {
    const std::uint64_t end = position + static_cast<std::uint64_t>(parameter.size * element);
    header.tensors.push_back({parameter.name, dtype, parameter.shape, position, end});
    position = end;
  }
  header.metadata = {{"format", "pt"}};
  return header;
}

FileEntry write_part(const fs::path& folder, const Part& part, const ParameterBuffers& buffers,
                     const StateSource& source) {
  DurableFile file(folder / part.file);
  file.write(bytes_of(spec::safetensors::serialize(header_of(buffers.inventory, dtype_name(buffers)))));
  FileEntry entry{.name = part.file, .bytes = 0, .hash = {}, .tensors = {}};
  for (const spec::Parameter& parameter : buffers.inventory.parameters) {
    const at::Tensor values = source(part.buffer, parameter).cpu();
    // checkpoint_c5: a state that cannot be trained on is never the one to come back to.
    if (!at::isfinite(values).all().item<bool>())
      throw UserError(ExitCode::non_finite,
                      "checkpoint_c5: " + parameter.name + " in " + part.file +
                          " holds a NaN or an infinity; nothing was saved, older checkpoints are intact");
    entry.tensors.push_back({parameter.name, content_hash(bytes_of(values))});
    file.write(bytes_of(values));
  }
  file.commit();
  entry.bytes = file.size();
  entry.hash = file.hash();
  return entry;
}

Manifest read_manifest(const fs::path& folder) {
  const std::string path = (folder / manifest_name).string();
  return manifest_from_json(read_whole(path, manifest_limit), path);
}

void write_text(const fs::path& path, const std::string& text) {
  DurableFile file(path);
  file.write(bytes_of(text));
  file.commit();
}

/// Removes a folder on the way out unless told that it is complete.
class PartialFolder {
 public:
  explicit PartialFolder(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    fs::create_directories(path_, error);
    if (error) throw UserError(ExitCode::io, "cannot create " + path_.string() + ": " + error.message());
  }
  ~PartialFolder() {
    std::error_code ignored;
    if (!complete_) fs::remove_all(path_, ignored);
  }
  void rename_to(const fs::path& final_path) {
    std::error_code error;
    fs::rename(path_, final_path, error);
    if (error) throw UserError(ExitCode::io, "cannot rename " + path_.string() + ": " + error.message());
    complete_ = true;
  }

 private:
  fs::path path_;
  bool complete_ = false;
};

/// Of elements of `element_bytes` in all parts of a checkpoint.
std::int64_t tensor_bytes(const spec::Inventory& inventory, std::int64_t element_bytes) {
  std::int64_t entries = 0;
  for (const spec::Parameter& parameter : inventory.parameters) entries += parameter.size;
  return entries * static_cast<std::int64_t>(std::size(parts)) * element_bytes;
}

std::int64_t bytes_of_tensors(const ParameterBuffers& buffers) {
  return tensor_bytes(buffers.inventory, buffers.master.element_size());
}

/// "15,529,909,248 bytes, 1,024 are free"
std::string space_text(const ParameterBuffers& buffers, const fs::path& path) {
  const auto free = free_bytes(path.parent_path());
  return spec::grouped(bytes_of_tensors(buffers)) + " bytes" +
         (free ? ", " + spec::grouped(*free) + " are free" : std::string());
}

/// Before anything is written: half a checkpoint would fill the disk for whoever else writes to it.
void require_space(const fs::path& parent, const ParameterBuffers& buffers) {
  const auto free = free_bytes(parent);
  if (free && *free < bytes_of_tensors(buffers))
    throw UserError(ExitCode::io, "the disk is full; checkpoints committed before are intact");
}

/// Makes the folder `path` of a checkpoint of `state`, with everything in it, under its final name.
Manifest write_folder(const fs::path& path, const ParameterBuffers& buffers, const State& state,
                      const StateSource& source) {
  const fs::path partial = path.parent_path() / ("." + folder_name(state.step) + ".partial");
  PartialFolder folder(partial);
  Manifest manifest{state.step, state.tokens, state.config, ASSAY_VERSION, dtype_name(buffers), {}};
  for (const Part& part : parts) manifest.files.push_back(write_part(partial, part, buffers, source));
  const std::string json = to_json(manifest);
  write_text(partial / manifest_name, json);
  write_text(partial / marker_name, content_hash(bytes_of(json)) + "\n");
  sync_folder(partial);
  folder.rename_to(path);
  return manifest;
}

Saved write_checkpoint(const std::string& directory, const ParameterBuffers& buffers, const State& state,
                       std::int64_t keep, const StateSource& source) {
  const auto start = std::chrono::steady_clock::now();
  const fs::path parent = fs::path(directory) / "checkpoints", path = parent / folder_name(state.step);
  create_durable_folder(parent);
  remove_leftovers(parent);
  Manifest manifest;
  if (committed(path)) {
    manifest = read_manifest(path);
  } else {
    require_space(parent, buffers);
    manifest = write_folder(path, buffers, state, source);
  }
  // Also of a checkpoint that was there: an earlier call may have failed between its rename and this flush.
  sync_folder(parent);
  Saved saved{.path = path.string(), .bytes = 0, .seconds = 0, .not_removed = {}};
  for (const FileEntry& file : manifest.files) saved.bytes += file.bytes;
  try {
    retain_newest(parent, keep);
  } catch (const UserError& error) {
    saved.not_removed = error.what();
  }
  saved.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return saved;
}
}  // namespace

std::int64_t size_on_disk(const spec::Inventory& inventory, Dtype states) {
  return tensor_bytes(inventory, element_bytes(states));
}

StateSource whole_state(const ParameterBuffers& buffers) {
  return [&buffers](at::Tensor ParameterBuffers::*buffer, const spec::Parameter& parameter) {
    return view(buffers.*buffer, parameter);
  };
}

Saved save(const std::string& directory, const ParameterBuffers& buffers, const State& state,
           std::int64_t keep, const StateSource& source) {
  try {
    return write_checkpoint(directory, buffers, state, keep, source);
  } catch (const UserError& error) {
    if (error.code() != ExitCode::io) throw;
    const fs::path path = fs::path(directory) / "checkpoints" / folder_name(state.step);
    throw UserError(ExitCode::io, "cannot save " + path.string() + " (it needs " + space_text(buffers, path) +
                                      "): " + error.what());
  }
}

namespace {
[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw UserError(ExitCode::bad_data, path.string() + ": " + what);
}

/// As long as it stands there a damaged checkpoint is the one to continue from, or is in the way of it.
[[noreturn]] void refuse_damaged(const fs::path& folder, const std::string& file, const std::string& what) {
  refuse(file.empty() ? folder : folder / file,
         what + "; move " + folder.string() +
             " away and resume from the checkpoint before it (checkpoint.resume=auto), or start anew");
}

/// Bytes of a tensor file after its size and hash were found right.
std::string read_part(const fs::path& folder, const FileEntry& entry) {
  const fs::path path = folder / entry.name;
  std::error_code error;
  const auto size = fs::file_size(path, error);
  // checkpoint_c3
  if (error) refuse_damaged(folder, entry.name, "checkpoint_c3: cannot be read: " + error.message());
  if (static_cast<std::int64_t>(size) != entry.bytes)
    refuse_damaged(folder, entry.name,
                   "checkpoint_c3: has " + std::to_string(size) + " bytes, the manifest says " +
                       std::to_string(entry.bytes));
  std::string bytes = read_whole(path, entry.bytes);
  if (content_hash(bytes_of(bytes)) == entry.hash) return bytes;
  std::string where = "its header";
  try {
    const auto header = spec::safetensors::parse(bytes_of(bytes), bytes.size(), path.string());
    for (const TensorEntry& tensor : entry.tensors) {
      const auto& t = header.at(tensor.name);
      if (content_hash(bytes_of(bytes).subspan(header.data_offset + t.begin, t.end - t.begin)) != tensor.hash)
        where = "tensor " + tensor.name;
    }
  } catch (const UserError&) {
    // The header itself is damaged: `where` says so.
  }
  refuse_damaged(folder, entry.name, "checkpoint_c3: content differs from what was written, in " + where);
}

/// "[128, 64]"
std::string shown(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t size : shape) out += (out.empty() ? "[" : ", ") + std::to_string(size);
  return out.empty() ? "[]" : out + "]";
}

/// checkpoint_c4: exactly the parameters of the model, each with its shape and dtype.
void check_tensors(const fs::path& path, const spec::safetensors::Header& header,
                   const ParameterBuffers& buffers) {
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
}  // namespace

namespace {
void require_committed(const fs::path& folder) {
  // checkpoint_c1
  if (!committed(folder))
    refuse_damaged(folder, "",
                   "checkpoint_c1: not a committed checkpoint (COMMITTED is missing or does not belong to "
                   "manifest.json)");
}

Manifest committed_manifest(const fs::path& folder) {
  require_committed(folder);
  return read_manifest(folder);
}
}  // namespace

State read_state(const std::string& path) {
  const Manifest manifest = committed_manifest(path);
  return {manifest.step, manifest.tokens, manifest.config};
}

std::string content_of(const std::string& path) {
  const fs::path folder(path);
  require_committed(folder);
  return content_hash(bytes_of(read_whole(folder / manifest_name, manifest_limit)));
}

State load(const std::string& path, ParameterBuffers& buffers) {
  const fs::path folder(path);
  const Manifest manifest = committed_manifest(folder);
  if (manifest.dtype != dtype_name(buffers))
    refuse(folder, "checkpoint_c4: state is " + manifest.dtype + ", this run's is " + dtype_name(buffers));

  struct Content {
    std::string bytes;
    spec::safetensors::Header header;
  };
  std::vector<Content> contents;
  for (const Part& part : parts) {
    const auto entry = std::find_if(manifest.files.begin(), manifest.files.end(),
                                    [&](const FileEntry& file) { return file.name == part.file; });
    if (entry == manifest.files.end())
      refuse_damaged(folder, "", std::string("checkpoint_c3: the manifest lists no ") + part.file);
    std::string bytes = read_part(folder, *entry);
    auto header = spec::safetensors::parse(bytes_of(bytes), bytes.size(), part.file);
    check_tensors(folder / part.file, header, buffers);
    contents.push_back({std::move(bytes), std::move(header)});
  }
  // Everything is right: only now are the buffers touched.
  for (std::size_t i = 0; i < contents.size(); ++i) {
    auto& [bytes, header] = contents[i];
    for (const spec::Parameter& parameter : buffers.inventory.parameters) {
      const auto& tensor = header.at(parameter.name);
      const at::Tensor stored = at::from_blob(bytes.data() + header.data_offset + tensor.begin,
                                              parameter.shape, buffers.master.options().device(at::kCPU));
      store(buffers, buffers.*parts[i].buffer, parameter, stored);
      if (parts[i].buffer == &ParameterBuffers::master && !buffers.master.is_same(buffers.weights))
        store(buffers, buffers.weights, parameter, stored);
    }
  }
  return {manifest.step, manifest.tokens, manifest.config};
}

std::optional<std::string> newest(const std::string& directory) {
  const auto found = marked_checkpoints(fs::path(directory) / "checkpoints");
  if (found.empty()) return {};
  return found.back().path.string();
}

std::int64_t step_of(const std::string& path) { return read_manifest(path).step; }

}  // namespace assay::impl::checkpoint
