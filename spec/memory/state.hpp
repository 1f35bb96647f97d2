#pragma once
// What a rank holds for the whole run: weights, gradients, optimizer, tables. (spec/plan/plan.md)
#include <vector>

#include "spec/memory/ledger.hpp"
#include "spec/memory/setting.hpp"

namespace assay::spec::memory {

/// Enters them into `ledger`; they live as long as the returned tensors.
std::vector<Tensor> hold_state(const Setting& setting, const Share& share, Ledger& ledger);

/// FP8 twins of block weights, made with the first step and kept as long as the weights
/// (impl/model/weight_twins.cpp).
std::vector<Tensor> hold_twins(const Setting& setting, Ledger& ledger);

}  // namespace assay::spec::memory
