#include "spec/flops/by_precision.hpp"

#include <set>
#include <string>

#include "spec/error.hpp"
#include "spec/flops/exact.hpp"

namespace assay::spec {

namespace {

/// Sum of FLOPs over time at peak; `peak_of` gives nothing where there is no peak.
template <class PeakOf>
std::optional<double> rate_at_peak(const FlopsByPrecision& flops, const PeakOf& peak_of) {
  double sum = 0, seconds = 0;
  for (const auto& [precision, count] : flops) {
    const std::optional<double> peak = peak_of(precision);
    if (!peak) return std::nullopt;
    sum += count.to_double();
    seconds += count.to_double() / *peak;
  }
  // by_precision_c2
  require(sum > 0, "by_precision_c2", [] { return std::string("no FLOPs of any precision"); });
  return sum / seconds;
}

}  // namespace

FlopsByPrecision exact_flops_by_precision(const ModelSpec& m, std::int64_t sequence_length, Precision compute,
                                          const LinearPrecision& linear) {
  const FlopBreakdown exact = exact_flops(m, sequence_length);
  std::set<std::int64_t> left_out;
  for (const std::int64_t layer : linear.unquantised_layers()) {
    // by_precision_c1
    require(layer >= 0 && layer < m.layers && left_out.insert(layer).second, "by_precision_c1", [&] {
      return "unquantised layer " + std::to_string(layer) + " of a model with layers 0 to " +
             std::to_string(m.layers - 1) + ": each is named once";
    });
  }
  // Of every token and matrix three GEMMs, forward's and those of the two gradients, or of experts all but
  // the last.
  Count quantised;
  const auto add_gemms = [&](std::int64_t gemms, std::int64_t tokens, const std::vector<Extents>& matrices) {
    for (const auto& [rows, columns] : matrices) quantised += 2 * Count(gemms) * tokens * rows * columns;
  };
  if (linear.recipe != quantise::Recipe::none)
    for (std::int64_t layer = 0; layer < m.layers; ++layer) {
      if (left_out.contains(layer)) continue;
      add_gemms(3, sequence_length, block_linears(m, layer));
      if (linear.experts && m.sparse(layer))
        add_gemms(2, sequence_length * m.experts->active, expert_linears(m));
    }
  FlopsByPrecision out;
  const auto add = [&](Precision precision, const Count& count) {
    if (count > Count(0)) out[precision] += count;
  };
  add(Precision::fp8, quantised);
  add(compute, exact.per_sequence() - quantised);
  return out;
}

double mixed_peak(const Gpu& gpu, const FlopsByPrecision& flops) {
  return *rate_at_peak(flops, [&](Precision precision) -> std::optional<double> {
    if (const Peak* peak = gpu.peak(precision)) return peak->dense;
    throw UserError(ExitCode::usage,
                    gpu.name + " has no " + std::string(to_string(precision)) + " peak in spec/hardware/" +
                        gpu.id + ".toml, so a run that computes in " + std::string(to_string(precision)) +
                        " has no MFU there; take a precision that the GPU has");
  });
}

std::optional<double> dense_peak(const GpuMatch& match, const FlopsByPrecision& flops) {
  return rate_at_peak(flops, [&](Precision precision) { return dense_peak(match, precision); });
}

}  // namespace assay::spec
