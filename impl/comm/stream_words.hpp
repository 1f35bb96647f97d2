#pragma once
// Words that a stream writes between the work it is given (CUDA Driver API, stream memory operations). Only
// for files that know CUDA.
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

namespace assay::impl {

/// `to` holds `value` once the stream is done with what it was given before. `to`: memory of a GPU, or of the
/// host where a GPU maps it. Errors: std::runtime_error with the driver's code.
void write_word(c10::cuda::CUDAStream stream, void* to, std::uint32_t value);

}  // namespace assay::impl
