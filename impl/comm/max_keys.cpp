#include "impl/comm/max_keys.hpp"

#include <ATen/ATen.h>

#include <limits>
#include <stdexcept>
#include <string>

namespace assay::impl {

namespace {
/// The type of keys: as many bits as the numbers are widened to.
bool is_wide(const at::Tensor& keys) { return keys.scalar_type() == at::kLong; }

std::int64_t largest(const at::Tensor& keys) {
  return is_wide(keys) ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int32_t>::max();
}

/// The bits of a number as an integer, in place, and back: numbers below 0 have the sign bit, and ascend with
/// falling bits, so these are turned over.
void turn_negative(at::Tensor& bits) {
  bits.bitwise_xor_(bits.bitwise_right_shift(is_wide(bits) ? 63 : 31).bitwise_and_(largest(bits)));
}
}  // namespace

at::Tensor max_keys(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  if (type == at::kLong) return tensor;
  if (type != at::kDouble && type != at::kFloat && type != at::kBFloat16)
    throw std::invalid_argument(std::string("the maximum over ranks is of fp64, fp32, bf16 and int64, not ") +
                                at::toString(type));
  const bool wide = type == at::kDouble;
  at::Tensor keys = tensor.to(wide ? at::kDouble : at::kFloat, /*non_blocking=*/false, /*copy=*/true)
                        .view(wide ? at::kLong : at::kInt);
  turn_negative(keys);
  return keys.masked_fill_(tensor.isnan(), largest(keys));  // the bits of a NaN
}

void write_numbers(const at::Tensor& keys, const at::Tensor& tensor) {
  if (keys.is_same(tensor)) return;
  at::Tensor bits = keys.clone();
  turn_negative(bits);
  at::Tensor(tensor).copy_(bits.view(is_wide(keys) ? at::kDouble : at::kFloat));
}

}  // namespace assay::impl
