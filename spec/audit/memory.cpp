#include <algorithm>
#include <cmath>

#include "spec/audit/change_builder.hpp"
#include "spec/audit/groups.hpp"

namespace assay::spec::audit {

namespace {

constexpr double gibibyte = 1073741824.0, gigabyte = 1e9;

/// What the log says and, at the most, what a driver of that GPU can: its own number is of what it leaves.
std::optional<Interval> device_memory(const Evidence& e) {
  auto printed = e.of(Setting::gpu_memory);
  const auto most = e.gpu.gpu ? most_memory(*e.gpu.gpu) : std::nullopt;
  if (!printed && most) return Interval{0, *most};
  if (!printed) return std::nullopt;
  return Interval{0, most ? std::min(printed->high, *most) : printed->high};
}

}  // namespace

/// What a line's share makes of the memory in use: the device's. Empty where no share is printed. [B]
std::optional<Interval> device_by_share(const Evidence& e) {
  for (const Step* step : e.steps) {
    const auto &share = (*step)[Field::memory_share], &used = (*step)[Field::memory_reserved];
    if (share && usable(share) && share->low > 0 && usable(used)) return wide(*used) / wide(*share);
  }
  return std::nullopt;
}

Result judge_memory(const Evidence& e) {
  const auto device = device_memory(e);
  Result out = holding(0);
  bool order = false, beyond = false;
  for (const Step* at_step : e.steps) {
    const Step& s = *at_step;
    const auto &allocated = s[Field::memory_allocated], &peak = s[Field::memory_peak];
    for (const Field field : {Field::memory_allocated, Field::memory_peak, Field::memory_reserved}) {
      const auto& used = s[field];
      if (!used || !device) continue;
      ++out.judged;
      if (out.verdict != Verdict::contradicts) out.printed = std::max(out.printed, used->value);
      if (used->low > device->high) {
        contradict(out, used->value, *device, used->line ? used->line : s.line);
        beyond = true;
      }
    }
    if (!allocated || !peak) continue;
    ++out.judged;
    // Where the device's memory is not known, the peak is all that the allocated is held to.
    if (out.verdict != Verdict::contradicts && !device && allocated->value >= out.printed)
      out.printed = allocated->value, out.recomputed = {0, peak->high};
    if (allocated->low > peak->high) {
      contradict(out, allocated->value, {0, peak->high}, s.line);
      order = true;
    }
  }
  if (out.judged == 0)
    return not_judged(device ? "memory in use" : e.on_cpu() ? e.no_gpu() : "memory of the GPU");
  if (out.verdict == Verdict::holds && device) out.recomputed = *device;
  if (beyond) {
    const double excess = out.printed / device->high;
    const auto whole = device_by_share(e);
    out.note = "more than the device has";
    if (whole && whole->low > device->high)
      blame(out, "memory_impossible",
            "with its share, it is of a device of " + shown(whole->middle(), Unit::bytes) +
                ": another GPU than stated");
    else if (excess <= gibibyte / gigabyte)
      blame(out, "memory_gib_as_gb", "GiB and GB are mixed (7.4 %)");
    else if (e.gpus && *e.gpus > 1 && excess <= *e.gpus)
      blame(out, "memory_of_all_gpus", "the sum over all GPUs, or another GPU than printed");
    else
      blame(out, "memory_impossible", "another GPU than printed, or another unit");
  } else if (order) {
    out.note = "more is allocated than the peak that was ever allocated";
    blame(out, "memory_order", "the two numbers are exchanged, or the peak was reset");
  }
  return out;
}

Result judge_memory_share(const Evidence& e) {
  const auto device = e.of(Setting::gpu_memory);
  Result out = holding(0);
  double whole = 0;  // that would make the first share that contradicts
  bool any = false;
  for (const Step* step : e.steps) {
    const auto& share = (*step)[Field::memory_share];
    any = any || share;
    if (!share || !device || std::isnan(share->value)) continue;
    for (const Field field : {Field::memory_reserved, Field::memory_peak, Field::memory_allocated}) {
      const auto& used = (*step)[field];
      if (!used || !(used->low >= 0)) continue;
      ++out.judged;
      const Interval of_device = wide(*used) / *device;
      if (out.verdict != Verdict::contradicts) out.printed = share->value, out.recomputed = of_device;
      if (of_device.meets(wide(*share))) break;
      if (out.verdict != Verdict::contradicts && share->value > 0) whole = used->value / share->value;
      contradict(out, share->value, of_device, step->line);
      break;  // the one that shares are made of
    }
  }
  if (out.judged == 0)
    return not_judged(!any ? "a share of the memory" : !device ? "memory of the GPU" : "memory in use");
  if (out.verdict == Verdict::contradicts)
    blame(out, "memory_share_other",
          (whole > 0 ? "both are of one device only if it has " + shown(whole, Unit::bytes) + ", not " +
                           shown(*device, Unit::bytes) + held_against(e.record, "gpu_memory") + ": "
                     : std::string()) +
              "another GPU than stated, another unit, or a share of something else");
  return out;
}

}  // namespace assay::spec::audit
