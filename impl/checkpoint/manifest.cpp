#include "impl/checkpoint/manifest.hpp"

#include "spec/config/value.hpp"
#include "spec/error.hpp"
#include "spec/text/json.hpp"

namespace assay::impl::checkpoint {
namespace {

using spec::json_string;
using spec::document::Item;

/// `entries`, one a line with `indent` spaces before, in brackets.
std::string listed(const std::vector<std::string>& entries, int indent) {
  std::string text;
  for (const std::string& entry : entries)
    text += (text.empty() ? "\n" : ",\n") + std::string(static_cast<std::size_t>(indent), ' ') + entry;
  return '[' + text + ']';
}

std::string to_json(const DataFile& file) {
  return "{\"path\": " + json_string(file.path) + ", \"bytes\": " + std::to_string(file.bytes) +
         ", \"sample\": " + json_string(file.sample) + '}';
}

std::vector<DataFile> data_from(Item json) {
  std::vector<DataFile> files;
  for (std::size_t i = 0; i < json.size(); ++i)
    files.push_back({.path = json[i].at("path").text(),
                     .bytes = json[i].at("bytes").integer(),
                     .sample = json[i].at("sample").text()});
  return files;
}

std::string to_json(const Validated& validation) {
  return "{\"loss\": " + spec::toml_literal(validation.loss) + ", \"set\": " + json_string(validation.set) +
         '}';
}

std::string to_json(const FileEntry& file) {
  std::vector<std::string> tensors;
  for (const TensorEntry& tensor : file.tensors)
    tensors.push_back("{\"name\": " + json_string(tensor.name) + ", \"xxh3\": " + json_string(tensor.hash) +
                      '}');
  return "{\"name\": " + json_string(file.name) + ", \"bytes\": " + std::to_string(file.bytes) +
         ", \"xxh3\": " + json_string(file.hash) + ", \"tensors\": " + listed(tensors, 3) + '}';
}

FileEntry file_from(Item json) {
  FileEntry file{.name = json.at("name").text(),
                 .bytes = json.at("bytes").integer(),
                 .hash = json.at("xxh3").text(),
                 .tensors = {}};
  const Item tensors = json.at("tensors");
  for (std::size_t i = 0; i < tensors.size(); ++i)
    file.tensors.push_back({tensors[i].at("name").text(), tensors[i].at("xxh3").text()});
  return file;
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  std::vector<std::string> files, data;
  for (const FileEntry& file : manifest.files) files.push_back(to_json(file));
  if (manifest.data)
    for (const DataFile& file : *manifest.data) data.push_back(to_json(file));
  return "{\n \"schema\": 1,\n \"step\": " + std::to_string(manifest.step) +
         ",\n \"tokens\": " + std::to_string(manifest.tokens) +
         ",\n \"version\": " + json_string(manifest.version) +
         ",\n \"dtype\": " + json_string(manifest.dtype) + ",\n \"config\": " + json_string(manifest.config) +
         (manifest.model.empty() ? std::string() : ",\n \"model\": " + json_string(manifest.model)) +
         (manifest.data ? ",\n \"data\": " + listed(data, 2) : std::string()) +
         (manifest.validation ? ",\n \"validation\": " + to_json(*manifest.validation) : std::string()) +
         ",\n \"files\": " + listed(files, 2) + "\n}\n";
}

Manifest manifest_from_json(const std::string& text, const std::string& origin) {
  // checkpoint_c2
  const auto tree = spec::parse_json(text, origin + ": checkpoint_c2");
  const Item json = tree.root();
  if (const Item schema = json.at("schema"); schema.integer() != 1)
    throw UserError(ExitCode::bad_data, origin + ": checkpoint_c2: schema " + schema.shown() +
                                            " is not 1; use the version of assay that wrote it");
  Manifest manifest{.step = json.at("step").integer(),
                    .tokens = json.at("tokens").integer(),
                    .config = json.at("config").text(),
                    .version = json.at("version").text(),
                    .dtype = json.at("dtype").text(),
                    .data = {},
                    .validation = {},
                    .files = {}};
  if (const auto data = json.find("data")) manifest.data = data_from(*data);
  if (const auto validation = json.find("validation"))
    manifest.validation = {.loss = validation->at("loss").real(), .set = validation->at("set").text()};
  if (const auto model = json.find("model")) manifest.model = model->text();
  const Item files = json.at("files");
  for (std::size_t i = 0; i < files.size(); ++i) manifest.files.push_back(file_from(files[i]));
  return manifest;
}

}  // namespace assay::impl::checkpoint
