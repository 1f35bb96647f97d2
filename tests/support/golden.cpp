#include "tests/support/golden.hpp"

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "spec/checkpoint/safetensors.hpp"
#include "tests/support/paths.hpp"

namespace assay::tests {
namespace {

constexpr std::string_view schema = "assay-golden-1";

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  const std::string name = path.substr(0, path.rfind('.'));
  throw std::runtime_error("golden/" + path + ": " + what + "; regenerate it with: ci/golden --accept " +
                           name);
}

void check_schema(const std::string& path, const std::string& found) {
  if (found != schema)
    fail(path, "schema is \"" + found + "\", this reader knows \"" + std::string(schema) + "\"");
}

std::size_t elements(const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

void read_json(GoldenFile& file, std::string_view bytes) {
  const auto json = nlohmann::json::parse(bytes);
  check_schema(file.path, json.at("schema"));
  file.scalars = json.at("scalars");
  file.texts = json.at("texts");
  for (const auto& [name, entry] : json.at("tensors").items()) {
    GoldenFile::Stored& stored = file.tensors[name];
    stored.shape = entry.at("shape").get<std::vector<std::int64_t>>();
    stored.integer = entry.at("dtype") == "I64";
    const auto& values = entry.at("values");
    if (values.size() != elements(stored.shape))
      fail(file.path, name + " has another number of values than its shape");
    if (stored.integer) {
      values.get_to(stored.integers);
    } else {
      values.get_to(stored.floats);
    }
  }
}

template <class T>
std::vector<T> little_endian(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void read_safetensors(GoldenFile& file, std::string_view bytes) {
  const auto header =
      spec::safetensors::parse(std::as_bytes(std::span(bytes)), bytes.size(), "golden/" + file.path);
  const auto found = header.metadata.find("schema");
  check_schema(file.path, found == header.metadata.end() ? "" : found->second);
  file.scalars = nlohmann::json::parse(header.metadata.at("scalars"));
  file.texts = nlohmann::json::parse(header.metadata.at("texts"));
  for (const auto& tensor : header.tensors) {
    if (tensor.dtype != "F64" && tensor.dtype != "I64")
      fail(file.path, tensor.name + " has dtype " + tensor.dtype);
    GoldenFile::Stored& stored = file.tensors[tensor.name];
    stored.shape = tensor.shape;
    stored.integer = tensor.dtype == "I64";
    const auto data = bytes.substr(header.data_offset + tensor.begin, tensor.end - tensor.begin);
    if (stored.integer) {
      stored.integers = little_endian<std::int64_t>(data);
    } else {
      stored.floats = little_endian<double>(data);
    }
  }
}

template <class Map>
const auto& find(const GoldenFile& file, const Map& map, const std::string& name, const char* kind) {
  const auto found = map.find(name);
  if (found == map.end()) {
    std::string known;
    for (const auto& entry : map) known += " " + entry.first;
    fail(file.path, std::string("no ") + kind + " \"" + name + "\" among:" + known);
  }
  return found->second;
}

}  // namespace

const GoldenFile::Stored& GoldenFile::stored(const std::string& name, bool integer) const {
  const Stored& entry = find(*this, tensors, name, "tensor");
  if (entry.integer != integer)
    fail(path, name + (integer ? " holds no integers" : " holds integers: read it as ids"));
  return entry;
}

Values GoldenFile::tensor(const std::string& name) const {
  const Stored& entry = stored(name, false);
  return {entry.shape, entry.floats};
}

std::vector<std::int64_t> GoldenFile::ids(const std::string& name) const {
  return stored(name, true).integers;
}

std::vector<std::int64_t> GoldenFile::shape(const std::string& name) const {
  return find(*this, tensors, name, "tensor").shape;
}

double GoldenFile::scalar(const std::string& name) const { return find(*this, scalars, name, "scalar"); }

std::string GoldenFile::text(const std::string& name) const { return find(*this, texts, name, "text"); }

std::vector<std::string> GoldenFile::tensor_names() const {
  std::vector<std::string> names;
  for (const auto& entry : tensors) names.push_back(entry.first);
  return names;
}

GoldenFile parse_golden(std::string_view bytes, const std::string& path) {
  GoldenFile file;
  file.path = path;
  try {
    path.ends_with(".json") ? read_json(file, bytes) : read_safetensors(file, bytes);
  } catch (const nlohmann::json::exception& error) {
    fail(path, std::string("malformed or truncated: ") + error.what());
  } catch (const std::out_of_range&) {
    fail(path, "a field of the header is missing");
  }
  return file;
}

std::string golden_bytes(const std::string& path) {
  std::ifstream stream(source_dir() + "/golden/" + path, std::ios::binary);
  if (!stream) fail(path, "cannot be opened");
  return {std::istreambuf_iterator<char>(stream), {}};
}

GoldenFile load_golden(const std::string& path) { return parse_golden(golden_bytes(path), path); }

}  // namespace assay::tests
