// What claims compute about runs: spec/batch, spec/parallel and spec/metrics over intervals.
#include "spec/batch/batch.hpp"
#include "spec/batch/schedule.hpp"
#include "spec/checkpoint/safetensors.hpp"
#include "spec/claims/call.hpp"
#include "spec/metrics/metrics.hpp"
#include "spec/parallel/mesh.hpp"

namespace assay::spec::claims {
namespace {

Batch batch(const Call& call) {
  const std::int64_t micro = call.whole(0), accumulation = call.whole(1), ranks = call.whole(2);
  return batch_of((Count(micro) * accumulation * ranks).to_int64(), micro, ranks);
}

Interval accumulation(const Call& call) {
  return exact_interval(
      static_cast<double>(batch_of(call.whole(0), call.whole(1), call.whole(2)).accumulation));
}

Interval ranks(const Call& call) {
  Mesh mesh;
  for (std::size_t i = 0; i < axes; ++i) mesh.extents.values[i] = call.whole(i);
  check(mesh, mesh.ranks());
  return exact_interval(static_cast<double>(mesh.ranks()));
}

// The functions of spec/metrics rise or fall in each argument, so the ends give the ends.
Interval tokens_per_second(const Call& call) {
  const Interval time = call.interval(1);
  const Count tokens(call.whole(0));
  return {metrics::tokens_per_second(tokens, time.high), metrics::tokens_per_second(tokens, time.low)};
}

Interval achieved_flops(const Call& call) {
  const Interval flops = call.interval(0), rate = call.interval(1);
  return {metrics::achieved_flops(flops.low, rate.low), metrics::achieved_flops(flops.high, rate.high)};
}

Interval utilisation(const Call& call) {
  const Interval flops = call.interval(0), rate = call.interval(1), peak = call.interval(2);
  const std::int64_t gpus = call.whole(3);
  return {metrics::utilisation(flops.low, rate.low, peak.high, gpus),
          metrics::utilisation(flops.high, rate.high, peak.low, gpus)};
}

Interval tokens_per_second_at(const Call& call) {
  const Interval mfu = call.interval(0), flops = call.interval(1), peak = call.interval(2);
  const std::int64_t gpus = call.whole(3);
  return {metrics::tokens_per_second_at(mfu.low, flops.high, peak.low, gpus),
          metrics::tokens_per_second_at(mfu.high, flops.low, peak.high, gpus)};
}

Interval training_seconds(const Call& call) {
  const Interval tokens = call.interval(0), rate = call.interval(1);
  constexpr double any_flops = 1;  // the time does not depend on them
  return {metrics::budget(tokens.low, any_flops, rate.high, 1).seconds,
          metrics::budget(tokens.high, any_flops, rate.low, 1).seconds};
}

/// From the last step that falls short to the first that reaches the budget: documents round either way.
Interval iterations(const Call& call) {
  const auto reached = metrics::budget(call.interval(0).middle(), 1, 1, 1, call.whole(1)).iterations;
  return {static_cast<double>(*reached - 1), static_cast<double>(*reached)};
}

Interval scaling_efficiency(const Call& call) {
  const Interval rate = call.interval(0), base = call.interval(2);
  const std::int64_t gpus = call.whole(1), base_gpus = call.whole(3);
  return {metrics::scaling_efficiency(rate.low, gpus, base.high, base_gpus),
          metrics::scaling_efficiency(rate.high, gpus, base.low, base_gpus)};
}

/// By the names of safetensors: BF16, F32, and U8 for whatever has 8 bits.
Interval element_bytes(const Call& call) {
  const std::uint64_t bytes = safetensors::element_bytes(call.text(0));
  if (bytes == 0) call.refuse(0, "names no type of safetensors");
  return exact_interval(static_cast<double>(bytes));
}

Interval warming_up(const Call& call) {
  const Schedule schedule{.kind = ScheduleKind::cosine,
                          .peak = call.interval(0).middle(),
                          .steps = call.whole(2),
                          .warmup_steps = call.whole(1)};
  return exact_interval(learning_rate(schedule, call.whole(3)));
}

}  // namespace

const std::vector<NamedFunction>& run_functions() {
  static const std::vector<NamedFunction> all = {
      {"sequences", 3,
       [](const Call& call) { return exact_interval(static_cast<double>(batch(call).sequences)); }},
      {"tokens_per_step", 4,
       [](const Call& call) { return exactly(batch(call).tokens_per_step(call.whole(3))); }},
      {"accumulation", 3, accumulation},
      {"ranks", 5, ranks},
      {"tokens_per_second", 2, tokens_per_second},
      {"achieved_flops", 2, achieved_flops},
      {"utilisation", 4, utilisation},
      {"tokens_per_second_at", 4, tokens_per_second_at},
      {"training_seconds", 2, training_seconds},
      {"iterations", 2, iterations},
      {"scaling_efficiency", 4, scaling_efficiency},
      {"learning_rate", 4, warming_up},
      {"element_bytes", 1, element_bytes},
  };
  return all;
}

}  // namespace assay::spec::claims
