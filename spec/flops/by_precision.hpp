#pragma once
// A model's FLOPs by the precision that computes them, and the peak of a GPU for such a mix: with several
// precisions MFU stays time at peak / time. Definition and example: spec/flops/by_precision.md.
#include <cstdint>
#include <map>
#include <optional>

#include "spec/count.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/ops/linear/linear_precision.hpp"

namespace assay::spec {

/// [flop]; a precision that computes nothing is absent.
using FlopsByPrecision = std::map<Precision, Count>;

/// exact_flops of one sequence: the linears of decoder blocks in fp8 where `linear` quantises them; the rest
/// in `compute`. Linears of blocks (block_linears in spec/ops/linear/linear_precision.hpp): qkv,
/// latent_projections, attention_output, gate_up, down; of routed experts, where they are quantised, two
/// thirds: all but the gradients of weights. Errors: as exact_flops; SpecError by_precision_c1 (a layer that
/// the model lacks, or named twice).
FlopsByPrecision exact_flops_by_precision(const ModelSpec& model, std::int64_t sequence_length,
                                          Precision compute, const LinearPrecision& linear);

/// The rate of one GPU that computes each part at the dense peak of its precision: sum of FLOPs over sum of
/// FLOPs / peak. MFU and HFU of a mix are those of spec/metrics with this peak. [FLOP/s]
/// Errors: UserError(usage) where the GPU has no peak of a precision in the mix, SpecError by_precision_c2
/// (no FLOPs).
double mixed_peak(const Gpu& gpu, const FlopsByPrecision& flops);

/// The same of what a printed name means, as dense_peak of one precision: nothing where one has no peak.
std::optional<double> dense_peak(const GpuMatch& match, const FlopsByPrecision& flops);

}  // namespace assay::spec
