#include "impl/checkpoint/inspect.hpp"

#include <cmath>
#include <filesystem>
#include <map>

#include "impl/checkpoint/export.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/stored_state.hpp"
#include "impl/checkpoint/weight_folder.hpp"
#include "spec/checkpoint/elements.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;
using Lines = std::vector<ShownLine>;

namespace {
bool holds_hugging_face(const std::string& path) {
  std::error_code unknown;
  return fs::exists(fs::path(path) / "config.json", unknown) &&
         !fs::exists(fs::path(path) / manifest_name, unknown);
}

std::string list_of(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out;
}

void add_model(const spec::ModelSpec& model, Lines& out) {
  out.push_back({"model", model.name + " (" + std::string(spec::to_string(model.family)) + ")"});
  out.push_back({"parameters", spec::grouped(spec::parameter_count(model))});
}

/// "BF16 (201 tensors), F32 (26 tensors)"
std::string types_in(const WeightFolder& folder) {
  std::map<std::string, std::int64_t> count;
  for (const spec::WeightFile& file : folder.files)
    for (const spec::safetensors::Tensor& tensor : file.header.tensors) ++count[tensor.dtype];
  std::string out;
  for (const auto& [type, number] : count)
    out += (out.empty() ? "" : ", ") + type + " (" + spec::grouped(number) + " tensors)";
  return out;
}

struct Opened {
  spec::HuggingFaceModel model;
  spec::Inventory inventory;
  WeightFolder folder;
  spec::WeightSources sources;
};

Opened open_hugging_face(const std::string& path) {
  Opened out{.model = spec::find_model_to_train(path), .inventory = {}, .folder = {}, .sources = {}};
  out.inventory = spec::inventory(out.model.model);
  out.folder = open_weights(path);
  out.sources = sources_of(out.folder, out.model.model, out.inventory);
  return out;
}

Lines show_hugging_face(const std::string& path) {
  const Opened opened = open_hugging_face(path);
  Lines out = {{"folder", path + ", Hugging Face weights"}};
  add_model(opened.model.model, out);
  out.push_back({"types", types_in(opened.folder)});
  for (std::size_t i = 0; i < opened.folder.files.size(); ++i)
    out.push_back(
        {i ? "" : "files", opened.folder.files[i].name + ", " +
                               spec::bytes(static_cast<std::int64_t>(opened.folder.inputs[i].size()))});
  for (const std::string& option : opened.model.without_effect)
    out.push_back({"without effect", "config.json: " + option});
  for (const std::string& tensor : opened.sources.ignored) out.push_back({"not read", tensor});
  return out;
}

/// weight_files_c8
void require_finite(const Opened& opened, std::size_t index) {
  const spec::WeightSource& source = opened.sources.of[index];
  const spec::Parameter& parameter = opened.inventory.parameters[index];
  const std::string& type = opened.folder.tensor(source).dtype;
  const std::uint64_t element = spec::safetensors::element_bytes(type);
  constexpr std::int64_t piece = 1 << 20;
  std::vector<std::byte> bytes;
  for (std::int64_t done = 0; done < parameter.size; done += piece) {
    bytes.resize(static_cast<std::size_t>(std::min(piece, parameter.size - done)) * element);
    const InputFile& file = opened.folder.inputs[source.file];
    file.read(opened.folder.first_byte(source) + static_cast<std::uint64_t>(done) * element, bytes);
    for (std::size_t i = 0; i < bytes.size() / element; ++i)
      if (!std::isfinite(spec::element_value(bytes, type, i)))
        throw UserError(ExitCode::bad_data, file.path().string() + ": weight_files_c8: " + parameter.name +
                                                " holds a NaN or an infinity; fetch the file anew");
  }
}

Lines verify_hugging_face(const std::string& path) {
  const Opened opened = open_hugging_face(path);
  for (std::size_t i = 0; i < opened.inventory.parameters.size(); ++i) require_finite(opened, i);
  return {{"whole", path + ": " +
                        spec::grouped(static_cast<std::int64_t>(opened.inventory.parameters.size())) +
                        " parameters with the names and shapes of its config.json, all finite"}};
}

/// What is wrong with one file of a checkpoint; empty: nothing.
std::string fault_in(const StoredState& stored, std::size_t file) try {
  stored.check_file(file);
  return "";
} catch (const UserError& error) {
  return error.what();
}

void add_files(const Manifest& manifest, Lines& out) {
  constexpr std::size_t most_shown = 8;
  const std::size_t files = manifest.files.size();
  for (std::size_t i = 0; i < files && i < most_shown; ++i) {
    const FileEntry& file = manifest.files[i];
    const auto slices = static_cast<std::int64_t>(file.slices.size());
    out.push_back({i ? "" : "files", file.name + ", " + spec::bytes(file.bytes) + ", " +
                                         spec::grouped(slices) +
                                         (manifest.schema == 1 ? " tensors" : " slices")});
  }
  if (files > most_shown)
    out.push_back({"", "and " + spec::grouped(static_cast<std::int64_t>(files - most_shown)) + " more"});
}
}  // namespace

Lines show_checkpoint(const std::string& path) {
  if (holds_hugging_face(path)) return show_hugging_face(path);
  const std::string folder = checkpoint_in(path);
  const Manifest manifest = read_manifest(folder);
  const spec::RunConfig config = spec::load_dump(manifest.config, folder);
  Lines out = {{"checkpoint", folder + ", committed"},
               {"step", spec::grouped(manifest.step) + " of " + spec::grouped(config.steps)},
               {"tokens", spec::grouped(manifest.tokens)}};
  add_model(model_in(manifest, folder), out);
  out.push_back({"states", manifest.dtype + ": weights and two moments"});
  out.push_back({"form", manifest.schema == 1 ? "schema 1: a file for weights and for each moment"
                                              : "schema 2: slices, a file of each rank that saved it"});
  if (!config.weights.empty()) out.push_back({"started from", config.weights});
  add_files(manifest, out);
  out.push_back({"version", manifest.version});
  return out;
}

Lines verify_checkpoint(const std::string& path) {
  if (holds_hugging_face(path)) return verify_hugging_face(path);
  const std::string folder = checkpoint_in(path);
  const StoredState stored(folder, "");
  const auto files = static_cast<std::int64_t>(stored.manifest().files.size());
  std::vector<std::string> faults;
  for (std::size_t file = 0; file < stored.manifest().files.size(); ++file)
    if (std::string fault = fault_in(stored, file); !fault.empty()) faults.push_back(std::move(fault));
  if (!faults.empty())
    throw UserError(ExitCode::bad_data, list_of(faults) + "; resume from or export another checkpoint");
  return {{"whole", folder + ": every hash of " + spec::grouped(files) +
                        (files == 1 ? " file, " : " files, ") + spec::bytes(stored.bytes())}};
}

}  // namespace assay::impl::checkpoint
