#pragma once
// A folder of Hugging Face weights: its files opened, their headers read, nothing else
// (spec/checkpoint/weight_files.md).
#include <filesystem>
#include <string>
#include <vector>

#include "impl/checkpoint/input_file.hpp"
#include "spec/checkpoint/weight_files.hpp"

namespace assay::impl::checkpoint {

struct WeightFolder {
  std::filesystem::path path;
  std::vector<InputFile> inputs;  ///< one for each of `files`
  std::vector<spec::WeightFile> files;

  /// First byte of a parameter in its file.
  std::uint64_t first_byte(const spec::WeightSource& source) const;
  const spec::safetensors::Tensor& tensor(const spec::WeightSource& source) const {
    return files[source.file].header.tensors[source.tensor];
  }
  std::int64_t bytes() const;  ///< of all files [B]
};

/// Opens the files that model.safetensors.index.json lists or, where there is no index, model.safetensors.
/// Errors: UserError(bad_data): no such files, a file of the index that is missing, a damaged header, an
/// index that the headers contradict (weight_files_c6), model.safetensors beside an index of other files
/// (weight_files_c9).
WeightFolder open_weights(const std::string& folder);

/// Where the folder holds each parameter of the model. Errors: UserError(bad_data) weight_files_c1..c5, and
/// c7 where a tied model's files hold a head with other bytes than the embedding.
spec::WeightSources sources_of(const WeightFolder& folder, const spec::ModelSpec& model,
                               const spec::Inventory& inventory);

}  // namespace assay::impl::checkpoint
