#pragma once
// A checkpoint as a folder that Hugging Face transformers loads (spec/checkpoint/weight_files.md).
#include <cstdint>
#include <string>
#include <vector>

#include "impl/checkpoint/manifest.hpp"
#include "spec/config/run_config.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::checkpoint {

/// The model of a checkpoint: its manifest's or, of earlier versions, the one that its settings name.
/// Errors: UserError, as spec::find_model.
spec::ModelSpec model_in(const Manifest& manifest, const std::string& origin);

/// `path` where it is a checkpoint's folder; of a run's folder its newest checkpoint. Errors:
/// UserError(bad_data) where it is neither, or the checkpoint is not committed.
std::string checkpoint_in(const std::string& path);

/// Folders that may hold the tokenizer of a run: that of its model.weights, then those of its token files.
/// The first one that does has it.
std::vector<std::string> tokenizer_folders(const spec::RunConfig& config);

/// Errors: UserError(bad_data), which ends in `advice`, where tokenizer.json at `path` holds something else
/// than when the run began; early versions did not say what it held.
void require_tokenizer(const Manifest& manifest, const std::string& path, const std::string& advice);

struct ExportRequest {
  std::string checkpoint;       ///< a checkpoint's folder, or a run's
  std::string folder;           ///< that is made
  std::string dtype;            ///< of the weights: "F64", "F32", "F16", "BF16"
  std::int64_t most_bytes = 0;  ///< of tensors in one file [B]
};

struct Exported {
  std::string from;        ///< the checkpoint
  std::int64_t step = 0;   ///< its completed steps
  std::string model_type;  ///< in transformers' words
  std::int64_t parameters = 0, bytes = 0;
  std::vector<std::string> files;      ///< of weights
  std::vector<std::string> tokenizer;  ///< files that were copied
  std::string tokenizer_from;          ///< their folder; empty: none is known
};

/// Writes config.json, generation_config.json, the weights, and the tokenizer's files where the run knows
/// them: those in the folder of its model.weights, or else beside its token files. One piece of a tensor is
/// in memory at a time; each tensor's hash is compared as it is read. The folder is there when all of it is.
/// Errors: UserError(usage): the folder exists, no class of transformers computes the model, F16 cannot hold
/// a value; UserError(bad_data): the checkpoint is damaged; UserError(io).
Exported export_weights(const ExportRequest& request);

}  // namespace assay::impl::checkpoint
