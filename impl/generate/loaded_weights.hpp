#pragma once
// A model's weights alone, read from a run, a checkpoint or Hugging Face weights: for forward passes.
#include <memory>
#include <string>
#include <vector>

#include "impl/checkpoint/manifest.hpp"
#include "impl/generate/text_codec.hpp"
#include "impl/model/parameter_access.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "spec/config/run_config.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::generate {

/// Where weights are, and what is known of them. Nothing is read but headers.
struct WeightsPlace {
  std::string path;  ///< of a checkpoint's folder, or of Hugging Face weights
  bool hugging_face = false;
  std::int64_t step = 0;  ///< of a checkpoint
  spec::ModelSpec model;
  spec::RunConfig config;            ///< of a checkpoint's run
  checkpoint::Manifest manifest;     ///< likewise
  std::vector<std::int64_t> ends;    ///< ids that end a text
  std::vector<std::string> folders;  ///< that may hold the tokenizer's files, the first one that does
};

/// `path`: a run's folder (its newest checkpoint), a checkpoint's, or one of Hugging Face weights. Errors:
/// UserError(bad_data) as checkpoint_in, UserError(usage) as find_model and require_trainable.
WeightsPlace find_weights(const std::string& path);

/// The codec of a model: its tokenizer.json, of the first of place.folders that has one; else of a vocabulary
/// of 256 a token a byte. None: null, and `why` says so. Errors: UserError(bad_data) for a file that is no
/// tokenizer.
std::unique_ptr<TextCodec> codec_of(const WeightsPlace& place, std::string& why);

/// Weights of one rank in the compute type; gains of norms and biases of routers in fp32 at least.
class LoadedWeights : public ParameterAccess {
 public:
  /// Reads them all, a piece of a tensor at a time. Errors: UserError(bad_data) where a file is damaged.
  LoadedWeights(const WeightsPlace& place, at::ScalarType compute, at::Device device);

  const BlockWeights& acquire(std::int64_t block, Weights) override {
    return blocks_.at(static_cast<std::size_t>(block));
  }
  void release(std::int64_t) override {}
  /// Errors of both: std::logic_error, there are none.
  BlockGradients gradients(std::int64_t block) override;
  void gradients_ready(std::int64_t block) override;

 private:
  ParameterBuffers buffers_;  ///< without gradients and states
  std::vector<BlockWeights> blocks_;
};

}  // namespace assay::impl::generate
