#pragma once
// Losses of 0.0 that Hugging Face's Trainer prints for losses that were no number.
#include <cstddef>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

/// The line of `evidence.steps` from which on, to the end of the log, the Trainer's zeros stand for losses
/// that were none; the number of lines where there is no such line. Its `logging_nan_inf_filter`, on unless
/// switched off, adds for a step's NaN the mean of the finite losses since the line before, which is 0.0
/// where there are none (transformers, src/transformers/trainer.py). A zero counts only beside a gradient
/// norm that is no number, in a log none of whose finite gradients comes with a zero, and where losses did
/// not come near it by and by.
std::size_t first_filtered_loss(const Evidence& evidence);

}  // namespace assay::spec::audit
