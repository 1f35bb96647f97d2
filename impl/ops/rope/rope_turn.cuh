#pragma once
// The turn of one pair of entries, for every kernel that turns heads.

namespace assay::impl::rope::cuda {

/// Written out, so that every kernel rounds alike.
template <class M>
__device__ __forceinline__ void turn(M& low, M& high, M cosine, M sine) {
  const M left = low, right = high;
  low = fma(-right, sine, left * cosine);
  high = fma(left, sine, right * cosine);
}

}  // namespace assay::impl::rope::cuda
