#pragma once
// Largest magnitudes, as bits: as whole numbers the bits of |x| order as the numbers do, infinity above the
// finite and NaN above infinity. A maximum has no order of its terms: the same bits at every run.
#include <cuda_runtime.h>

namespace assay::impl::cuda {

__device__ __forceinline__ unsigned magnitude_bits(float x) { return __float_as_uint(x) & 0x7fffffffu; }

/// *amax = max(*amax, what the lanes of a warp have found). What is read first may be old, which costs an
/// atomic in vain; most are saved.
__device__ __forceinline__ void raise(float* amax, unsigned bits) {
  bits = __reduce_max_sync(0xffffffffu, bits);
  if (threadIdx.x % 32 == 0 && __float_as_uint(__ldca(amax)) < bits)
    atomicMax(reinterpret_cast<unsigned*>(amax), bits);
}

}  // namespace assay::impl::cuda
