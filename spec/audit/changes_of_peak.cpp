// Peaks that an MFU is not meant to be divided by.
#include <algorithm>
#include <cmath>

#include "spec/audit/solving.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

using R = Relation;

/// GPUs that large trainings run on, the commonest first; the others follow as spec/hardware lists them.
constexpr std::string_view common_gpus[] = {"NVIDIA H100 SXM",      "NVIDIA H200 SXM", "NVIDIA A100 SXM 80GB",
                                            "NVIDIA A100 SXM 40GB", "NVIDIA B200",     "NVIDIA H100 PCIe",
                                            "NVIDIA A100 PCIe 80GB"};

/// Orders GPUs whose peaks fit alike, far below what separates two readings.
double rareness(const std::string& gpu) {
  const auto* const at = std::find(std::begin(common_gpus), std::end(common_gpus), gpu);
  return 1e-3 * static_cast<double>(at - std::begin(common_gpus));
}

/// A printed peak `x` times the dense one, of which the MFU is not made: over it the MFU would be 1 / x of
/// what it is, with the dense peak as trainers write it.
std::vector<ChangeBuilder::Effect> of_printed_peak(const Comparisons& comparisons, const Evidence& e,
                                                   const Factors& explained, double x) {
  const Gpu* const own = e.gpu.gpu                  ? e.gpu.gpu
                         : e.gpu.candidates.empty() ? nullptr
                                                    : e.gpu.candidates.front();
  const Peak* const peak = own ? own->peak(e.precision) : nullptr;
  double share = x;
  for (const R relation : {R::mfu, R::mfu_of_flops_rate, R::mfu_of_batch}) {
    if (at(comparisons, relation).samples.empty() || !peak) continue;
    for (const double written : peaks_as_written(*peak))
      if (agrees(at(comparisons, relation), explained[relation] * x * *e.dense_peak / written)) {
        share = x * *e.dense_peak / written;
        break;
      }
    break;
  }
  return {{R::peak, x}, {R::mfu, share}, {R::mfu_of_flops_rate, share}, {R::mfu_of_batch, share}};
}

void add_peaks_of_gpu(ChangeBuilder& b, const Evidence& e, const Comparisons& comparisons,
                      const Interpretation& reading) {
  if (!e.dense_peak) return;
  const bool printed = e.printed_peak() != nullptr;
  const auto candidate = [&](const std::string& id, const std::string& text, double peak, double cost) {
    const double x = peak / *e.dense_peak;
    if (!(x > 0) || std::abs(x - 1) < 6e-3) return;
    if (printed) {
      b.add(id, text, cost, {{R::peak, x}});
      if (agrees(at(comparisons, R::peak), reading.factors[R::peak] * x))
        b.add("peak_printed", "the printed" + text.substr(3) + "; MFU is made with the dense one of the GPU",
              cost + 0.5, of_printed_peak(comparisons, e, reading.factors, x));
    }
    b.add(id, printed ? "MFU is made with another peak than printed: " + text : text,
          cost + (printed ? 1.5 : 0),
          {{R::mfu, 1 / x}, {R::mfu_of_flops_rate, 1 / x}, {R::mfu_of_batch, 1 / x}});
  };
  const std::string dtype(to_string(e.precision));
  const Gpu* own = e.gpu.gpu ? e.gpu.gpu : e.gpu.candidates.empty() ? nullptr : e.gpu.candidates.front();
  if (own)
    for (const auto& [precision, peak] : own->peaks) {
      const std::string name(to_string(precision));
      const bool same = precision == e.precision;
      if (peak.sparse)
        candidate(same ? "peak_sparse" : "peak_other_dtype", "the peak is the sparse one of " + name,
                  *peak.sparse, same ? 2 : 4);
      if (!same)
        candidate("peak_other_dtype", "the peak is the dense one of " + name + ", not of " + dtype,
                  peak.dense,
                  precision == Precision::fp8   ? 2.6
                  : precision == Precision::fp4 ? 4.2
                                                : 3.3);
    }
  for (const Gpu& other : gpus()) {
    if (&other == own) continue;
    if (const Peak* peak = other.peak(e.precision)) {
      candidate("peak_other_gpu", "the peak is that of another GPU: " + other.name, peak->dense,
                3 + rareness(other.name));
      if (peak->sparse)
        candidate("peak_other_gpu", "the peak is the sparse one of another GPU: " + other.name, *peak->sparse,
                  4.5);
    }
  }
}

/// Half a peak is that of another dtype, or no peak at all is wrong. Of a GPU that nobody knows the printed
/// peak may be another one than MFU is made with.
void add_doubled_mfu(ChangeBuilder& b, const Evidence& e) {
  const double cost = e.printed_peak() ? 5.3 : 4;
  for (const double x : {2.0, 0.5}) {
    const std::string often = x > 1 ? "twice" : "half";
    const std::vector<ChangeBuilder::Effect> effects = {
        {R::mfu, x}, {R::mfu_of_flops_rate, x}, {R::mfu_of_batch, x}};
    b.add("mfu_multiple", "MFU is " + often + " what model, rate and peak make", cost, effects);
    if (e.printed_peak() && !e.dense_peak)
      b.add("peak_printed", "the printed peak is " + often + " the one that MFU is made with", cost, effects);
  }
}

/// The one of `peaks`, as trainers write one GPU's, that the MFUs made of `constant` are made of; the first
/// where none makes them.
double peak_of_shares(const Comparisons& comparisons, const Interpretation& reading, double constant,
                      const std::vector<double>& peaks) {
  const Comparison& shares = at(comparisons, R::mfu_of_batch);
  const auto made = std::find_if(peaks.begin(), peaks.end(), [&](double peak) {
    return agrees(shares, reading.factors[R::mfu_of_batch] * constant / peak);
  });
  return made == peaks.end() ? peaks.front() : *made;
}

/// Forks of a trainer that divides by one GPU's peak, whatever the GPU, divide by another's. What the log
/// does not name is any GPU's.
void add_peaks_beside(ChangeBuilder& b, const Evidence& e, const Comparisons& comparisons,
                      const Interpretation& reading, double constant) {
  const auto candidate = [&](const std::string& id, const std::string& text, const std::vector<double>& peaks,
                             double cost) {
    const double x = peak_of_shares(comparisons, reading, constant, peaks) / constant;
    if (std::abs(x - 1) < 6e-3) return;
    b.add(id, text, cost, {{R::mfu, 1 / x}, {R::mfu_of_flops_rate, 1 / x}, {R::mfu_of_batch, 1 / x}});
  };
  for (const Gpu& gpu : gpus()) {
    const Peak* const own = gpu.peak(e.precision);
    const bool stated = e.gpu.gpu == &gpu, meant = own && own->dense == constant;
    const double rare = meant || stated ? 0 : rareness(gpu.name);
    const bool common = rare < 1e-3 * static_cast<double>(std::size(common_gpus));
    if (own && !stated)
      candidate("peak_other_gpu",
                "MFU divides by the peak of another GPU than the trainer's source does: " + gpu.name +
                    " (give --gpu if it ran there)",
                peaks_as_written(*own), 2.4 + rare);
    if (own && own->sparse)
      candidate("peak_sparse", "the peak is the sparse one of " + gpu.name, {*own->sparse},
                meant || stated ? 2 : 3 + rare);
    for (const auto& [precision, peak] : gpu.peaks)
      if (precision != e.precision && (meant || stated || common))
        candidate("peak_other_dtype",
                  "the peak is that of " + gpu.name + " in " + std::string(to_string(precision)),
                  peaks_as_written(peak),
                  (precision == Precision::fp4 ? 4.4 : 3.3) + (meant || stated ? 0 : 0.4) + rare);
  }
}

}  // namespace

void solving::add_printed_peak(ChangeBuilder& b, const Left& left) {
  const bool of_mfu =
      left.relation == R::mfu || left.relation == R::mfu_of_flops_rate || left.relation == R::mfu_of_batch;
  if (!(of_mfu || left.relation == R::peak) || !b.has(R::peak) || !left.e.printed_peak()) return;
  // The peak is printed to more digits than the MFU.
  const double x = likely_ratio(at(left.comparisons, R::peak)) / left.factors[R::peak];
  if (!(x > 0) || std::abs(x - 1) < off_by_three_digits) return;
  b.add("peak_printed",
        "the printed peak alone is wrong, " + fixed(x, 2) +
            " times the dense one of the GPU, of which MFU is made",
        5 + std::abs(std::log(x)) / 2, of_printed_peak(left.comparisons, left.e, left.factors, x));
}

void add_peaks(ChangeBuilder& b, const Evidence& e, const Comparisons& comparisons,
               const Interpretation& reading) {
  const double constant = e.trainer.constant_peak;
  if (constant > 0 && !e.printed_peak())
    add_peaks_beside(b, e, comparisons, reading, constant);
  else
    add_peaks_of_gpu(b, e, comparisons, reading), add_doubled_mfu(b, e);
}

}  // namespace assay::spec::audit
