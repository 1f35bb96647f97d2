#include "impl/checkpoint/checkpoint.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/manifest.hpp"
#include "impl/checkpoint/partial_folder.hpp"
#include "impl/checkpoint/parts.hpp"
#include "impl/machine/disk_call.hpp"
#include "impl/model/views.hpp"
#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;

namespace {
std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

FileEntry write_part(const fs::path& folder, const Part& part, const ParameterBuffers& buffers,
                     const StateSource& source) {
  DurableFile file(folder / part.file);
  file.write(bytes_of(spec::safetensors::serialize(header_of(part, buffers))));
  FileEntry entry{.name = part.file, .bytes = 0, .hash = {}, .tensors = {}};
  for (std::size_t i = 0; i < buffers.model.parameters.size(); ++i) {
    const spec::Parameter& parameter = buffers.model.parameters[i];
    if (!holds(part, parameter)) continue;
    const at::Tensor values = source(part.buffer, i).cpu();
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

/// Of elements of `element_bytes` in all parts of a checkpoint, and of at least 4 bytes of a router's bias.
std::int64_t tensor_bytes(const spec::Inventory& inventory, std::int64_t element_bytes) {
  std::int64_t bytes = 0;
  for (const Part& part : parts)
    for (const spec::Parameter& parameter : inventory.parameters)
      if (holds(part, parameter))
        bytes +=
            parameter.size * (parameter.learned() ? element_bytes : std::max<std::int64_t>(element_bytes, 4));
  return bytes;
}

std::int64_t bytes_of_tensors(const ParameterBuffers& buffers) {
  return tensor_bytes(buffers.model, buffers.master.element_size());
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
  Manifest manifest{state.step, state.tokens,     state.config, ASSAY_VERSION, dtype_name(buffers),
                    state.data, state.validation, {},           state.model};
  for (const Part& part : parts) manifest.files.push_back(write_part(partial, part, buffers, source));
  const std::string json = to_json(manifest);
  write_text(partial / manifest_name, json);
  write_text(partial / marker_name, content_hash(bytes_of(json)) + "\n");
  sync_folder(partial);
  folder.rename_to(path);
  return manifest;
}

/// Whether none is named the best yet, or one of another set or of a higher loss.
bool is_best(const fs::path& parent, const Validated& validation) {
  const auto best = best_of(parent.parent_path().string());
  return !best || best->set != validation.set || validation.loss < best->loss;
}

Saved write_checkpoint(const std::string& directory, const ParameterBuffers& buffers, const State& state,
                       const Retention& keep, const StateSource& source) {
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
  if (keep.best && state.validation && is_best(parent, *state.validation)) name_best(parent, path);
  try {
    retain_newest(parent, keep.newest, keep.best ? best_checkpoint(parent) : std::nullopt);
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
  return [&buffers](at::Tensor ParameterBuffers::*buffer, std::size_t index) {
    if (const at::Tensor bias = router_bias_of(buffers, index); bias.defined()) return bias;
    return view(buffers.*buffer, buffers.inventory.parameters.at(index));
  };
}

Saved save(const std::string& directory, const ParameterBuffers& buffers, const State& state,
           const Retention& keep, const StateSource& source) {
  try {
    return write_checkpoint(directory, buffers, state, keep, source);
  } catch (const UserError& error) {
    if (error.code() != ExitCode::io) throw;
    const fs::path path = fs::path(directory) / "checkpoints" / folder_name(state.step);
    throw UserError(ExitCode::io, "cannot save " + path.string() + " (it needs " + space_text(buffers, path) +
                                      "): " + error.what());
  }
}

std::optional<std::vector<DataFile>> data_of(const std::string& path) { return read_manifest(path).data; }

std::optional<Validated> best_of(const std::string& directory) {
  const auto best = best_checkpoint(fs::path(directory) / "checkpoints");
  return best ? read_manifest(*best).validation : std::nullopt;
}

std::string model_of(const std::string& path) { return read_manifest(path).model; }

std::optional<std::string> newest(const std::string& directory) {
  const auto found = marked_checkpoints(fs::path(directory) / "checkpoints");
  if (found.empty()) return {};
  return found.back().path.string();
}

}  // namespace assay::impl::checkpoint
