#pragma once
// config.json of Hugging Face transformers, read and written: which options count, which change nothing, and
// which are refused (spec/model/hugging_face.md).
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model/model_spec.hpp"

namespace assay::spec {

struct HuggingFaceModel {
  ModelSpec model;
  /// Options of the file that count for nothing, and may have been meant to: "is_llama_config = true (why)".
  std::vector<std::string> without_effect;
};

/// As model_from_hugging_face, with what of the file counts for nothing. Errors: as model_from_hugging_face;
/// among them UserError(usage) for an option that changes what transformers computes, and Assay does not
/// compute, with the value that passes. Several mistakes are one error.
HuggingFaceModel read_hugging_face(std::string_view json, const std::string& origin,
                                   std::optional<std::int64_t> longest = std::nullopt);

/// As find_model, of a model that is trained or whose weights are read: a config.json's blocks of multi-token
/// prediction, which transformers does not build, are left out and named. A model that is no config.json has
/// no options without effect. Errors: as find_model.
HuggingFaceModel find_model_to_train(const std::string& name_or_path,
                                     std::optional<std::int64_t> longest = std::nullopt);

/// Ids of the tokenizer that generation needs; nothing is written as null.
struct TokenIds {
  std::optional<std::int64_t> begin, end, pad;
};

/// A config.json, and the model that it is read back as. That one's parameters have the names of its family,
/// in the order of the model that it was made of.
struct HuggingFaceConfig {
  std::string json;
  ModelSpec model;
};

/// The config.json of the transformers class that computes `model`: the first of the classes whose file,
/// written and read back, gives the same model but for name and family. `dtype`: of the weights beside it, as
/// safetensors names it. Errors: UserError(usage) naming the fields that no class has.
HuggingFaceConfig to_hugging_face(const ModelSpec& model, std::string_view dtype, const TokenIds& ids = {});

/// The generation_config.json beside it.
std::string generation_config(const TokenIds& ids);

}  // namespace assay::spec
