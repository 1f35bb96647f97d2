#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "spec/flops/exact.hpp"

namespace assay::impl::permute {

/// The rows of all experts behind each other. Slot n A + a is the a-th expert of token n; a row is a slot's
/// place among those of its expert, in the order of the slots.
struct Order {
  at::Tensor
      slots;  ///< [N A] int32: the slot of each row; behind the last row, the slots that `limited` dropped
  at::Tensor rows;  ///< [N, A] int32: the row of each slot; -1: none
  at::Tensor ends;  ///< [X] int32: the row behind the last of each expert
};

/// experts [N, A] int32, of `count`; a slot of -1 has no row. [spec/ops/permute/permute.md]
Order order(const at::Tensor& experts, std::int64_t count);

/// The same with `most` rows of each expert from each group of tokens: the first ones. `choices` [G, X]
/// int32: how often the tokens of each of G groups chose an expert (router::Choice::counts).
Order limited(const Order& all, const at::Tensor& experts, const at::Tensor& choices, std::int64_t most);

/// x [N, D] -> [N A, D]: the row of token n for each expert that it visits. What stands behind the last row
/// is undefined, here and in all that is made of it. `pass`: whose time it is.
at::Tensor gather(const at::Tensor& x, const Order& order, spec::Pass pass = spec::Pass::forward);

/// unpermute of rows whose weights were applied before (swiglu::forward_weighted), and permute's backward:
/// base [N, D], undefined for none, + the rows of each token, [N A, D], in the order of its slots; summed in
/// fp32 or fp64.
at::Tensor combine(const at::Tensor& base, const at::Tensor& rows, const Order& order,
                   spec::Pass pass = spec::Pass::forward);

namespace cpu {
decltype(permute::order) order;
decltype(permute::limited) limited;
at::Tensor gather(const at::Tensor& x, const Order& order);
at::Tensor combine(const at::Tensor& base, const at::Tensor& rows, const Order& order);
}  // namespace cpu
namespace cuda {
decltype(permute::order) order;
decltype(permute::limited) limited;
at::Tensor gather(const at::Tensor& x, const Order& order);
at::Tensor combine(const at::Tensor& base, const at::Tensor& rows, const Order& order);
}  // namespace cuda

}  // namespace assay::impl::permute
