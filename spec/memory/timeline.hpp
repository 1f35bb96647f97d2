#pragma once
// One optimizer step on paper: the tensors of impl/run/executor.cpp and impl/model, made and let go in the
// same order, so that the largest moment of the step is known before anything is allocated.
#include "spec/memory/ledger.hpp"
#include "spec/memory/setting.hpp"

namespace assay::spec::memory {

/// Runs everything that a rank holds through `ledger`: state for the whole run, then a step, then sampling.
/// Errors: SpecError of require_trainable; memory_c1 (micro, sequence_length or micro_batches below 1).
void walk(const Setting& setting, Ledger& ledger);

/// What one micro-batch keeps between forward and backward, blocks counted together. Errors: as walk.
std::vector<Item> kept_activations(const Setting& setting);

}  // namespace assay::spec::memory
