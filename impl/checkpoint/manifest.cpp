#include "impl/checkpoint/manifest.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "spec/checkpoint/safetensors.hpp"
#include "spec/error.hpp"
#include "spec/text/file.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/value.hpp"

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

/// The elements of an array.
std::vector<Item> elements(Item json) {
  if (!json.is(spec::document::Kind::list)) json.wrong("an array");
  std::vector<Item> out;
  for (std::size_t i = 0; i < json.size(); ++i) out.push_back(json[i]);
  return out;
}

/// A count of bytes, steps or elements, of which sums stay within 64 bits.
std::int64_t count_from(Item json) {
  constexpr std::int64_t most = std::int64_t{1} << 60;
  const std::int64_t count = json.integer();
  if (count < 0 || count > most) json.wrong("from 0 to 2^60");
  return count;
}

/// A text that is there once.
const std::string& unique_from(Item json, std::set<std::string>& known) {
  if (!known.insert(json.text()).second) json.refuse(spec::quote(json.text()) + " is there twice");
  return json.text();
}

/// The name of one of the checkpoint's parts.
std::string part_from(Item json, std::string name) {
  if (std::ranges::find(part_names, name) == std::end(part_names)) {
    std::string all;
    for (const char* each : part_names)
      all += (all.empty() ? "" : each == part_names.back() ? " and " : ", ") + std::string(each);
    json.wrong("of the parts " + all);
  }
  return name;
}

std::vector<DataFile> data_from(Item json) {
  std::vector<DataFile> files;
  for (const Item file : elements(json)) {
    file.allow_only({"path", "bytes", "sample", "format", "of"});
    files.push_back({.path = file.at("path").text(),
                     .bytes = count_from(file.at("bytes")),
                     .sample = file.at("sample").text()});
    if (const auto format = file.find("format")) files.back().format = format->text();
    if (const auto of = file.find("of")) files.back().of = of->text();
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

/// Counts whose product is one, too.
std::vector<std::int64_t> extents_from(Item json) {
  std::vector<std::int64_t> extents;
  std::int64_t size = 1;
  for (const Item extent : elements(json)) {
    extents.push_back(count_from(extent));
    if (__builtin_mul_overflow(size, std::max<std::int64_t>(1, extents.back()), &size))
      json.refuse("the shape has no size in 64 bits");
  }
  return extents;
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
  json.allow_only({"part", "parameter", "slice", "begin", "hash"});
  const std::vector<Item> at = elements(json.at("slice"));
  if (at.size() != 4) json.at("slice").wrong("[row, rows, column, columns]");
  return {.part = part_from(json.at("part"), json.at("part").text()),
          .parameter = json.at("parameter").text(),
          .slice = {count_from(at[0]), count_from(at[1]), count_from(at[2]), count_from(at[3])},
          .begin = static_cast<std::uint64_t>(count_from(json.at("begin"))),
          .hash = json.at("hash").text()};
}

FileEntry file_from(Item json, std::int64_t schema) {
  json.allow_only({"name", "bytes", "xxh3", schema == 1 ? "tensors" : "slices"});
  const std::string& name = json.at("name").text();
  if (!spec::is_file_name(name)) json.at("name").wrong("the name of a file in the checkpoint's folder");
  FileEntry file{
      .name = name, .bytes = count_from(json.at("bytes")), .hash = json.at("xxh3").text(), .slices = {}};
  if (schema == 1) {
    const std::string part = part_from(json.at("name"), name.substr(0, name.find('.')));
    for (const Item tensor : elements(json.at("tensors"))) {
      tensor.allow_only({"name", "xxh3"});
      file.slices.push_back({.part = part,
                             .parameter = tensor.at("name").text(),
                             .slice = {},
                             .begin = 0,
                             .hash = tensor.at("xxh3").text()});
    }
    return file;
  }
  for (const Item slice : elements(json.at("slices"))) file.slices.push_back(slice_from(slice));
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
  // What is not known may change what the rest means.
  json.allow_only({"schema", "step", "tokens", "skipped", "record", "version", "dtype", "config", "derived",
                   "model", "data", "validation", "parameters", "files"});
  Manifest manifest{.schema = schema.integer(),
                    .step = count_from(json.at("step")),
                    .tokens = count_from(json.at("tokens")),
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
    for (const Item name : elements(*derived)) manifest.derived->push_back(name.text());
  }
  if (const auto data = json.find("data")) manifest.data = data_from(*data);
  if (const auto validation = json.find("validation")) {
    validation->allow_only({"loss", "set"});
    manifest.validation = {.loss = validation->at("loss").real(), .set = validation->at("set").text()};
  }
  if (const auto model = json.find("model")) manifest.model = model->text();
  if (const auto skipped = json.find("skipped")) manifest.skipped = count_from(*skipped);
  if (const auto record = json.find("record")) manifest.record = record->text();
  std::set<std::string> names, file_names;
  if (manifest.schema > 1)
    for (const Item parameter : elements(json.at("parameters"))) {
      parameter.allow_only({"name", "dtype", "shape"});
      manifest.parameters.push_back({.name = unique_from(parameter.at("name"), names),
                                     .dtype = parameter.at("dtype").text(),
                                     .shape = extents_from(parameter.at("shape"))});
      if (spec::safetensors::element_bytes(manifest.parameters.back().dtype) == 0)
        parameter.at("dtype").wrong("a type of safetensors");
    }
  for (const Item file : elements(json.at("files"))) {
    manifest.files.push_back(file_from(file, manifest.schema));
    unique_from(file.at("name"), file_names);
  }
  return manifest;
}

FileEntry file_from_json(const std::string& text, const std::string& origin) {
  const auto tree = spec::parse_json(text, origin + ": checkpoint_c2");
  return file_from(tree.root(), manifest_schema);
}

}  // namespace assay::impl::checkpoint
