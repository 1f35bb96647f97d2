#pragma once
#include <utility>
#include <vector>

#include "impl/params/layouts/parameter_layout.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// Every parameter is whole on this rank, so acquire and release do nothing. The layout of one rank, and the
/// base of the layouts with whole weights and gradients.
class LocalParameters : public ParameterLayout {
 public:
  /// `buffers` must outlive this.
  LocalParameters(const ParameterBuffers& buffers, const spec::ModelSpec& model);

  const BlockWeights& acquire(std::int64_t block, Weights) override {
    return weights_.at(static_cast<std::size_t>(block));
  }
  void release(std::int64_t) override {}
  BlockGradients gradients(std::int64_t block) override {
    const auto b = static_cast<std::size_t>(block);
    return {gradients_.at(b), std::exchange(gemms_.at(b), linear::GradientSum::continues)};
  }
  void gradients_ready(std::int64_t) override {}
  void begin_step(linear::GradientSum first) override;
  void begin_backward(bool) override {}
  at::Tensor sum_of_squares() override;
  void weights_changed() override { refresh(buffers_.gains); }
  std::string non_finite_sum() const override;
  /// No sum over data ranks has touched them.
  std::string end_search() override { return non_finite_sum(); }

 protected:
  const ParameterBuffers& buffers() const { return buffers_; }
  at::Tensor block_of(const at::Tensor& whole, std::int64_t block) const;

 private:
  const ParameterBuffers& buffers_;
  std::vector<BlockWeights> weights_;
  std::vector<BlockViews> gradients_;
  std::vector<at::Tensor> beside_gemms_;    ///< of the gradients: what GEMMs do not write
  std::vector<linear::GradientSum> gemms_;  ///< of each block: what its next one does
};

}  // namespace assay::impl
