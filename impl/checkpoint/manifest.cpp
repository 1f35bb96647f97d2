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
         ", \"sample\": " + json_string(file.sample) +
         (file.format.empty() ? "" : ", \"format\": " + json_string(file.format)) +
         (file.of == DataFile::training ? "" : ", \"of\": " + json_string(file.of)) + '}';
}

std::vector<DataFile> data_from(Item json) {
  std::vector<DataFile> files;
  for (std::size_t i = 0; i < json.size(); ++i) {
    files.push_back({.path = json[i].at("path").text(),
                     .bytes = json[i].at("bytes").integer(),
                     .sample = json[i].at("sample").text()});
    if (const auto format = json[i].find("format")) files.back().format = format->text();
    if (const auto of = json[i].find("of")) files.back().of = of->text();
  }
  return files;
}

std::string to_json(const Validated& validation) {
  return "{\"loss\": " + spec::toml_literal(validation.loss) + ", \"set\": " + json_string(validation.set) +
         '}';
}

std::string list_of(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return '[' + text + ']';
}

std::vector<std::int64_t> numbers_from(Item json) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < json.size(); ++i) numbers.push_back(json[i].integer());
  return numbers;
}

std::string to_json(const ParameterEntry& parameter) {
  return "{\"name\": " + json_string(parameter.name) + ", \"dtype\": " + json_string(parameter.dtype) +
         ", \"shape\": " + list_of(parameter.shape) + '}';
}

std::string to_json(const SliceEntry& slice) {
  const spec::Slice& at = slice.slice;
  return "{\"part\": " + json_string(slice.part) + ", \"parameter\": " + json_string(slice.parameter) +
         ", \"slice\": " + list_of({at.row, at.rows, at.column, at.columns}) +
         ", \"begin\": " + std::to_string(slice.begin) + ", \"hash\": " + json_string(slice.hash) + '}';
}

SliceEntry slice_from(Item json) {
  const std::vector<std::int64_t> at = numbers_from(json.at("slice"));
  if (at.size() != 4) json.at("slice").wrong("[row, rows, column, columns]");
  return {.part = json.at("part").text(),
          .parameter = json.at("parameter").text(),
          .slice = {at[0], at[1], at[2], at[3]},
          .begin = static_cast<std::uint64_t>(json.at("begin").integer()),
          .hash = json.at("hash").text()};
}

FileEntry file_from(Item json, std::int64_t schema) {
  FileEntry file{.name = json.at("name").text(),
                 .bytes = json.at("bytes").integer(),
                 .hash = json.at("xxh3").text(),
                 .slices = {}};
  if (schema == 1) {
    const Item tensors = json.at("tensors");
    for (std::size_t i = 0; i < tensors.size(); ++i)
      file.slices.push_back({.part = {},
                             .parameter = tensors[i].at("name").text(),
                             .slice = {},
                             .begin = 0,
                             .hash = tensors[i].at("xxh3").text()});
    return file;
  }
  const Item slices = json.at("slices");
  for (std::size_t i = 0; i < slices.size(); ++i) file.slices.push_back(slice_from(slices[i]));
  return file;
}

}  // namespace

std::string to_json(const FileEntry& file) {
  std::vector<std::string> slices;
  for (const SliceEntry& slice : file.slices) slices.push_back(to_json(slice));
  return "{\"name\": " + json_string(file.name) + ", \"bytes\": " + std::to_string(file.bytes) +
         ", \"xxh3\": " + json_string(file.hash) + ", \"slices\": " + listed(slices, 3) + '}';
}

std::string to_json(const Manifest& manifest) {
  std::vector<std::string> files, data, parameters, derived;
  for (const std::string& name : manifest.derived.value_or(std::vector<std::string>()))
    derived.push_back(json_string(name));
  for (const ParameterEntry& parameter : manifest.parameters) parameters.push_back(to_json(parameter));
  for (const FileEntry& file : manifest.files) files.push_back(to_json(file));
  if (manifest.data)
    for (const DataFile& file : *manifest.data) data.push_back(to_json(file));
  return "{\n \"schema\": " + std::to_string(manifest_schema) +
         ",\n \"step\": " + std::to_string(manifest.step) +
         ",\n \"tokens\": " + std::to_string(manifest.tokens) +
         (manifest.skipped > 0 ? ",\n \"skipped\": " + std::to_string(manifest.skipped) : std::string()) +
         (manifest.record.empty() ? std::string() : ",\n \"record\": " + json_string(manifest.record)) +
         ",\n \"version\": " + json_string(manifest.version) +
         ",\n \"dtype\": " + json_string(manifest.dtype) + ",\n \"config\": " + json_string(manifest.config) +
         (manifest.derived ? ",\n \"derived\": " + listed(derived, 2) : std::string()) +
         (manifest.model.empty() ? std::string() : ",\n \"model\": " + json_string(manifest.model)) +
         (manifest.data ? ",\n \"data\": " + listed(data, 2) : std::string()) +
         (manifest.validation ? ",\n \"validation\": " + to_json(*manifest.validation) : std::string()) +
         ",\n \"parameters\": " + listed(parameters, 2) + ",\n \"files\": " + listed(files, 2) + "\n}\n";
}

Manifest manifest_from_json(const std::string& text, const std::string& origin) {
  // checkpoint_c2
  const auto tree = spec::parse_json(text, origin + ": checkpoint_c2");
  const Item json = tree.root();
  const Item schema = json.at("schema");
  if (schema.integer() < 1 || schema.integer() > manifest_schema)
    throw UserError(ExitCode::bad_data, origin + ": checkpoint_c2: schema " + schema.shown() +
                                            " is neither 1 nor 2; use the version of assay that wrote it");
  Manifest manifest{.schema = schema.integer(),
                    .step = json.at("step").integer(),
                    .tokens = json.at("tokens").integer(),
                    .config = json.at("config").text(),
                    .derived = {},
                    .version = json.at("version").text(),
                    .dtype = json.at("dtype").text(),
                    .data = {},
                    .validation = {},
                    .parameters = {},
                    .files = {}};
  if (const auto derived = json.find("derived")) {
    manifest.derived.emplace();
    for (std::size_t i = 0; i < derived->size(); ++i) manifest.derived->push_back((*derived)[i].text());
  }
  if (const auto data = json.find("data")) manifest.data = data_from(*data);
  if (const auto validation = json.find("validation"))
    manifest.validation = {.loss = validation->at("loss").real(), .set = validation->at("set").text()};
  if (const auto model = json.find("model")) manifest.model = model->text();
  if (const auto skipped = json.find("skipped")) manifest.skipped = skipped->integer();
  if (const auto record = json.find("record")) manifest.record = record->text();
  if (manifest.schema > 1) {
    const Item parameters = json.at("parameters");
    for (std::size_t i = 0; i < parameters.size(); ++i)
      manifest.parameters.push_back({.name = parameters[i].at("name").text(),
                                     .dtype = parameters[i].at("dtype").text(),
                                     .shape = numbers_from(parameters[i].at("shape"))});
  }
  const Item files = json.at("files");
  for (std::size_t i = 0; i < files.size(); ++i)
    manifest.files.push_back(file_from(files[i], manifest.schema));
  return manifest;
}

FileEntry file_from_json(const std::string& text, const std::string& origin) {
  const auto tree = spec::parse_json(text, origin + ": checkpoint_c2");
  return file_from(tree.root(), manifest_schema);
}

}  // namespace assay::impl::checkpoint
