#pragma once
#include <vector>

#include "impl/memory/parameter_buffers.hpp"
#include "impl/model/parameter_access.hpp"

namespace assay::impl {

/// Every parameter whole on this rank: acquire and release have nothing to do. The one-rank layout, and the
/// base of layouts that replicate parameters.
class LocalParameters : public ParameterAccess {
 public:
  LocalParameters(const ParameterBuffers& buffers, const spec::ModelSpec& model);

  const BlockViews& acquire(std::int64_t block) override {
    return weights_.at(static_cast<std::size_t>(block));
  }
  void release(std::int64_t) override {}
  const BlockViews& gradients(std::int64_t block) override {
    return gradients_.at(static_cast<std::size_t>(block));
  }
  void gradients_ready(std::int64_t) override {}

 private:
  std::vector<BlockViews> weights_, gradients_;
};

}  // namespace assay::impl
