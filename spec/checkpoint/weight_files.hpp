#pragma once
// Weights as Hugging Face transformers stores them: which tensor of which file holds a parameter, read and
// written (spec/checkpoint/weight_files.md).
#include <cstdint>
#include <string>
#include <vector>

#include "spec/checkpoint/safetensors.hpp"
#include "spec/model/inventory.hpp"

namespace assay::spec {

/// A place where a file may hold a parameter: elements [first, first + size) of a tensor of that shape, in
/// row-major order.
struct WeightPlace {
  std::string tensor;
  std::vector<std::int64_t> shape;
  std::int64_t first = 0;  ///< [elements]
};

/// Where files hold a parameter of `model`, the usual place first: it is where we write it. Others: the stack
/// of a layer's experts, as transformers v5 can store it; the head of a tied model.
std::vector<WeightPlace> weight_places(const ModelSpec& model, const Parameter& parameter);

/// A file of a folder of weights.
struct WeightFile {
  std::string name;  ///< within its folder
  safetensors::Header header;
};

/// Where the files of a folder hold one parameter.
struct WeightSource {
  std::size_t file = 0;    ///< in the list of files
  std::size_t tensor = 0;  ///< in its header
  std::int64_t first = 0;  ///< element of the tensor that is the parameter's first [elements]
};

struct WeightSources {
  std::vector<WeightSource> of;      ///< one for each parameter of the inventory
  std::vector<std::string> ignored;  ///< tensors of the files that are no parameters and change nothing
  /// Of a tied model whose files hold the head as well: it must have the bytes of the embedding.
  std::vector<WeightSource> head;  ///< one or none
};

/// Finds every parameter of `inventory(model)` in the files. Errors: UserError(bad_data) that starts with
/// `origin` and names every tensor that stands twice (weight_files_c1), is missing (c2), is not the model's
/// (c3), has another shape (c4), is of a type that no weight has (c5).
WeightSources find_weights(const ModelSpec& model, const Inventory& inventory,
                           const std::vector<WeightFile>& files, const std::string& origin);

/// The file that lists which file holds which tensor, where several do.
inline constexpr const char* weight_index_name = "model.safetensors.index.json";
/// The only file of a folder where one is enough.
inline constexpr const char* single_weight_file = "model.safetensors";

/// Names of files that an index lists, each once, in alphabetical order. Errors: UserError(bad_data): not
/// an index; a name that leads out of the folder.
std::vector<std::string> files_of_index(const std::string& json, const std::string& origin);

/// Errors: UserError(bad_data) weight_files_c6 where a file lacks a tensor that the index says it holds.
void check_index(const std::string& json, const std::vector<WeightFile>& files, const std::string& origin);

/// Files of at most `most_bytes` of tensors each [B], but at least one tensor, in the order of the inventory:
/// "model.safetensors", or "model-00001-of-00003.safetensors" and so on. `dtype`: as safetensors names it;
/// corrections of routers, whose last bits decide which experts are chosen, are F32 beside BF16 and F16.
std::vector<WeightFile> files_to_write(const Inventory& inventory, const std::string& dtype,
                                       std::int64_t most_bytes);
std::string index_to_write(const std::vector<WeightFile>& files);

/// Whether tensors of that type are taken for weights: F64, F32, F16, BF16.
bool is_weight_dtype(std::string_view dtype);

}  // namespace assay::spec
