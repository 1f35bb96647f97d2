#include "impl/checkpoint/manifest.hpp"

#include <nlohmann/json.hpp>

#include "spec/error.hpp"

namespace assay::impl::checkpoint {

std::string to_json(const Manifest& manifest) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["step"] = manifest.step;
  json["tokens"] = manifest.tokens;
  json["version"] = manifest.version;
  json["dtype"] = manifest.dtype;
  json["config"] = manifest.config;
  json["files"] = nlohmann::ordered_json::array();
  for (const FileEntry& file : manifest.files) {
    nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
    for (const TensorEntry& tensor : file.tensors)
      tensors.push_back({{"name", tensor.name}, {"xxh3", tensor.hash}});
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.hash}, {"tensors", std::move(tensors)}});
  }
  return json.dump(1) + "\n";
}

Manifest manifest_from_json(const std::string& text, const std::string& origin) {
  try {
    const auto json = nlohmann::json::parse(text);
    // checkpoint_c2
    if (json.at("schema").get<int>() != 1)
      throw UserError(ExitCode::bad_data, origin + ": checkpoint_c2: schema " + json.at("schema").dump() +
                                              " is not 1; it was written by another version of assay");
    Manifest manifest{.step = json.at("step").get<std::int64_t>(),
                      .tokens = json.at("tokens").get<std::int64_t>(),
                      .config = json.at("config").get<std::string>(),
                      .version = json.at("version").get<std::string>(),
                      .dtype = json.at("dtype").get<std::string>(),
                      .files = {}};
    for (const auto& file : json.at("files")) {
      FileEntry entry{.name = file.at("name").get<std::string>(),
                      .bytes = file.at("bytes").get<std::int64_t>(),
                      .hash = file.at("xxh3").get<std::string>(),
                      .tensors = {}};
      for (const auto& tensor : file.at("tensors"))
        entry.tensors.push_back({tensor.at("name").get<std::string>(), tensor.at("xxh3").get<std::string>()});
      manifest.files.push_back(std::move(entry));
    }
    return manifest;
  } catch (const nlohmann::json::exception& error) {
    throw UserError(ExitCode::bad_data, origin + ": checkpoint_c2: " + error.what());
  }
}

}  // namespace assay::impl::checkpoint
