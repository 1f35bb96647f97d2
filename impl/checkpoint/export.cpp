#include "impl/checkpoint/export.hpp"

#include <algorithm>
#include <filesystem>

#include "impl/checkpoint/data_file.hpp"
#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/partial_folder.hpp"
#include "impl/checkpoint/stored_state.hpp"
#include "spec/checkpoint/elements.hpp"
#include "spec/checkpoint/weight_files.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;
using spec::safetensors::Tensor;

namespace {
/// Files of a tokenizer, as transformers reads them.
constexpr const char* tokenizer_files[] = {
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt",     "tokenizer.model",       "chat_template.jinja"};

/// Ids that the config.json of the weights states; nothing where the folder is gone.
spec::TokenIds stated_ids(const fs::path& folder) try {
  const std::string path = (folder / "config.json").string();
  const auto tree = spec::parse_json(read_whole(path, spec::file_limits::model), path);
  const auto id = [&](const char* key) -> std::optional<std::int64_t> {
    auto value = tree.root().find(key);
    if (value && value->is(spec::document::Kind::list) && value->size() > 0) value = (*value)[0];
    return value && value->is(spec::document::Kind::integer) ? std::optional(value->integer()) : std::nullopt;
  };
  return {.begin = id("bos_token_id"), .end = id("eos_token_id"), .pad = id("pad_token_id")};
} catch (const UserError&) {
  return {};
}

spec::TokenIds ids_of(const spec::RunConfig& config) {
  spec::TokenIds ids;
  if (!config.weights.empty()) ids = stated_ids(config.weights);
  if (config.end_of_document >= 0) ids.end = config.end_of_document;
  return ids;
}

/// Copies the tokenizer's files from the first folder that has one.
void copy_tokenizer(const spec::RunConfig& config, const Manifest& manifest, const OutputFolder& into,
                    Exported& out) {
  for (const fs::path folder : tokenizer_folders(config)) {
    for (const char* name : tokenizer_files) {
      std::error_code error;
      if (!fs::is_regular_file(folder / name, error)) continue;
      if (name == std::string_view("tokenizer.json"))
        require_tokenizer(manifest, folder / name,
                          "; nothing was exported: put that one back, or move this one away");
      write_text(into, name, read_whole(folder / name, spec::file_limits::tokenizer));
      out.tokenizer.emplace_back(name);
    }
    if (out.tokenizer.empty()) continue;
    out.tokenizer_from = folder.string();
    return;
  }
}

/// Appends the weights of parameter `name` to `file` as `type`, after comparing their hash with what was
/// saved.
void copy_weights(const StoredState& stored, const std::string& name, const std::string& type,
                  DurableFile& file) {
  const std::string& from_type = stored.parameter(name).dtype;
  std::vector<std::byte> into;
  stored.stream(part_names[0], name, [&](const spec::Slice&, std::span<const std::byte> from) {
    into.resize(from.size() / spec::safetensors::element_bytes(from_type) *
                spec::safetensors::element_bytes(type));
    if (const auto lost = spec::convert_elements(from, from_type, into, type))
      throw UserError(ExitCode::usage, name + " holds " +
                                           spec::json_number(spec::element_value(from, from_type, *lost)) +
                                           ", which " + type + " cannot: take --dtype bf16 or fp32");
    file.write(into);
  });
}

/// config.json, generation_config.json and weights. `named`: the model with the names of its class.
void write_files(const OutputFolder& folder, const spec::Inventory& own, const spec::Inventory& named,
                 const StoredState& stored, const ExportRequest& request, Exported& out) {
  std::size_t parameter = 0;
  const auto files = spec::files_to_write(named, request.dtype, request.most_bytes);
  for (const spec::WeightFile& planned : files) {
    DurableFile file(folder, planned.name);
    const std::string header = spec::safetensors::serialize(planned.header);
    file.write(std::as_bytes(std::span(header)));
    for (const Tensor& tensor : planned.header.tensors)
      copy_weights(stored, own.parameters[parameter++].name, tensor.dtype, file);
    file.commit();
    out.files.push_back(planned.name);
    out.bytes += file.size();
  }
  if (files.size() > 1) write_text(folder, spec::weight_index_name, spec::index_to_write(files));
}
}  // namespace

std::vector<std::string> tokenizer_folders(const spec::RunConfig& config) {
  std::vector<std::string> folders;
  if (!config.weights.empty()) folders.push_back(config.weights);
  for (const std::string& path : config.data_paths)
    folders.push_back(fs::path(path).has_parent_path() ? fs::path(path).parent_path().string() : ".");
  return folders;
}

void require_tokenizer(const Manifest& manifest, const std::string& path, const std::string& advice) {
  const DataFile here = data_file(path);
  for (const DataFile& then : manifest.data.value_or(std::vector<DataFile>()))
    if (then.of == DataFile::tokenizer && !here.same_content(then))
      throw UserError(ExitCode::bad_data, path + " is not the tokenizer of the run, which was " + then.path +
                                              " (" + spec::grouped(then.bytes) + " bytes, sample " +
                                              then.sample + "; this one: " + spec::grouped(here.bytes) +
                                              " bytes, sample " + here.sample + ")" + advice);
}

spec::ModelSpec model_in(const Manifest& manifest, const std::string& origin) {
  if (!manifest.model.empty()) return spec::model_from_toml(manifest.model, origin);
  const spec::RunConfig config = spec::load_dump(manifest.config, origin);
  spec::ModelSpec model = spec::find_model_to_train(config.model).model;
  if (config.init_std > 0) model.init_std = config.init_std;
  return model;
}

std::string checkpoint_in(const std::string& path) {
  std::error_code unknown;
  fs::path folder(path);
  if (!fs::exists(folder / manifest_name, unknown)) {
    const auto found = marked_checkpoints(folder / "checkpoints");
    if (found.empty())
      throw UserError(ExitCode::bad_data, path +
                                              ": holds no checkpoint; give a checkpoint's folder "
                                              "(.../checkpoints/step_00000100) or a run's");
    folder = found.back().path;
  }
  committed_manifest(folder, "; take another one");
  return folder.string();
}

Exported export_weights(const ExportRequest& request) {
  Exported out;
  out.from = checkpoint_in(request.checkpoint);
  const StoredState stored(out.from, "; nothing was exported: take another checkpoint");
  const Manifest& manifest = stored.manifest();
  out.step = manifest.step;
  const spec::ModelSpec model = model_in(manifest, out.from);
  const spec::RunConfig config = spec::load_dump(manifest.config, out.from);
  const spec::TokenIds ids = ids_of(config);
  const spec::HuggingFaceConfig as = spec::to_hugging_face(model, request.dtype, ids);
  const spec::Inventory own = spec::inventory(model), named = spec::inventory(as.model);
  out.model_type = spec::to_string(as.model.family);
  out.parameters = own.parameter_count().to_int64();

  make_folder(request.folder, [&](const OutputFolder& folder) {
    write_text(folder, "config.json", as.json);
    write_text(folder, "generation_config.json", spec::generation_config(ids));
    copy_tokenizer(config, manifest, folder, out);
    write_files(folder, own, named, stored, request, out);
  });
  return out;
}

}  // namespace assay::impl::checkpoint
