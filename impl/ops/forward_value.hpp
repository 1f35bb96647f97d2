#pragma once
namespace assay::impl {

/// What backward of a cheap op does about the value of its forward, which the gradient of the weights behind
/// the op asks for. (spec/model/recompute.md)
enum class ForwardValue {
  again,  ///< it was not kept: backward writes it over the gradient that it is given
  kept    ///< it was kept, or nobody asks: that gradient stays as it is
};

}  // namespace assay::impl
