#pragma once
// golden/weights: folders of weights that Hugging Face transformers wrote, each with the logits of its model.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "spec/checkpoint/elements.hpp"
#include "spec/checkpoint/weight_files.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"

namespace assay::tests {

inline std::string weight_folder(const std::string& name) { return source_dir() + "/golden/weights/" + name; }

/// Names of all of them, in alphabetical order; none where the tests run on a machine without the sources.
inline std::vector<std::string> weight_folders() {
  std::vector<std::string> names;
  const std::string root = source_dir() + "/golden/weights";
  if (!std::filesystem::exists(root)) return names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.path().filename() == "config.json") names.push_back(entry.path().parent_path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// A folder's files in memory, and where they hold each parameter.
struct WeightFolderInMemory {
  spec::ModelSpec model;
  spec::Inventory inventory;
  std::vector<std::string> bytes;  ///< one for each of `files`
  std::vector<spec::WeightFile> files;
  spec::WeightSources sources;

  explicit WeightFolderInMemory(const std::string& name) {
    const std::string path = "weights/" + name + "/";
    model = spec::model_from_hugging_face(golden_bytes(path + "config.json"), path + "config.json");
    inventory = spec::inventory(model);
    const std::string index = path + spec::weight_index_name;
    std::vector<std::string> names = {spec::single_weight_file};
    if (std::filesystem::exists(source_dir() + "/golden/" + index))
      names = spec::files_of_index(golden_bytes(index), index);
    for (const std::string& file : names) {
      bytes.push_back(golden_bytes(path + file));
      files.push_back({file, spec::safetensors::parse(std::as_bytes(std::span(bytes.back())),
                                                      bytes.back().size(), file)});
    }
    sources = spec::find_weights(model, inventory, files, name);
  }

  const spec::safetensors::Tensor& tensor(std::size_t parameter) const {
    const spec::WeightSource& source = sources.of[parameter];
    return files[source.file].header.tensors[source.tensor];
  }
  /// As the file holds them.
  std::span<const std::byte> bytes_of(std::size_t parameter) const {
    const spec::WeightSource& source = sources.of[parameter];
    const std::uint64_t element = spec::safetensors::element_bytes(tensor(parameter).dtype);
    return std::as_bytes(std::span(bytes[source.file]))
        .subspan(files[source.file].header.data_offset + tensor(parameter).begin +
                     static_cast<std::uint64_t>(source.first) * element,
                 static_cast<std::uint64_t>(inventory.parameters[parameter].size) * element);
  }
  std::vector<double> values_of(std::size_t parameter) const {
    std::vector<double> values;
    for (std::int64_t i = 0; i < inventory.parameters[parameter].size; ++i)
      values.push_back(
          spec::element_value(bytes_of(parameter), tensor(parameter).dtype, static_cast<std::size_t>(i)));
    return values;
  }
};

}  // namespace assay::tests
