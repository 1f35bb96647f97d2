#include "impl/bench/measure.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <set>

#include "impl/bench/op_calls.hpp"
#include "impl/machine/host.hpp"
#include "impl/metrics/ceiling.hpp"
#include "impl/ops/gemm/cuda_gemm.hpp"
#include "impl/ops/gemm/cuda_gemm_search.hpp"
#include "impl/ops/linear/linear.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "spec/error.hpp"
#include "spec/ops/linear/linear.hpp"
#include "spec/step/paper/run.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::bench {
namespace {

using spec::time::StepClass;
using spec::time::StepOpCount;

Row timed(const Plan& plan, const std::string& name, StepClass kind, const Flops& flops, const Count& bytes,
          const std::function<void()>& prepare, const std::function<void()>& call) {
  Patience patience = plan.patience;
  // A tournament in the first calls of a large GEMM chooses its algorithm: these calls do not count.
  if (plan.device.is_cuda() && flops.matmul.to_double() >= cuda::least_searched_flops)
    patience.warm = tournament_calls;
  const std::vector<double> times = time_calls(plan.device, patience, prepare, call);
  return {
      .name = name,
      .kind = kind,
      .seconds = median(times),
      .fastest = times.front(),
      .flops = flops.matmul.to_double(),
      .bytes = bytes.to_double(),
      .roofline = spec::time::roofline(flops, bytes, metrics::ceiling_of(plan.device, plan.setting.dtype))};
}

/// A square matrix of n rows.
at::Tensor square(const Plan& plan, std::int64_t n) {
  return at::randn({n, n}, at::TensorOptions(plan.device).dtype(at::kFloat))
      .to(scalar_type(plan.setting.dtype));
}

void large_gemm(const Plan& plan, const UseRow& use) {
  const std::int64_t n = plan.device.is_cuda() ? 8192 : 512;
  const at::Tensor left = square(plan, n), right = square(plan, n);
  const spec::linear::Shape shape{.N = n, .in = n, .out = n};
  use(timed(plan, "square GEMM of " + std::to_string(n), StepClass::gemm, spec::linear::forward_flops(shape),
            spec::linear::forward_bytes(shape, element_bytes(plan.setting.dtype)), {},
            [&] { linear::forward(left, right); }));
}

void memory(const Plan& plan, const UseRow& use) {
  const std::int64_t bytes = plan.device.is_cuda() ? std::int64_t{1} << 30 : std::int64_t{1} << 26;
  const at::Tensor from = at::ones({bytes / 4}, at::TensorOptions(plan.device).dtype(at::kFloat)),
                   to = at::empty_like(from);
  use(timed(plan, "copy in device memory", StepClass::elementwise, {}, 2 * Count(bytes), {},
            [&] { to.copy_(from); }));
  use(timed(plan, "fill of device memory", StepClass::elementwise, {}, bytes, {}, [&] { to.zero_(); }));
}

/// The op that moves most bytes, except the optimizer, which is measured on a part of the weights.
StepOpCount largest_op(const Plan& plan) {
  StepOpCount largest;
  for (const StepOpCount& each : spec::paper::step_ops(plan.setting))
    if (class_of(each.op) != StepClass::optimizer && each.bytes >= largest.bytes) largest = each;
  return largest;
}

}  // namespace

void within_memory(const Plan& plan, const std::function<void()>& work) {
  const c10::InferenceMode no_autograd;
  const std::string tokens = std::to_string(plan.setting.micro) + " x " +
                             std::to_string(plan.setting.sequence_length) +
                             " tokens; give a smaller --micro or --seq";
  if (plan.device.is_cpu())
    if (const StepOpCount largest = largest_op(plan); largest.bytes > Count(run::host_memory()))
      throw UserError(ExitCode::usage,
                      "this machine's " + spec::bytes(run::host_memory()) + " do not hold what " +
                          spec::time::name_of(largest.op, largest.pass) + " of " + plan.setting.model.name +
                          " reads and writes, " +
                          spec::bytes(static_cast<std::int64_t>(std::min(largest.bytes.to_double(), 9e18))) +
                          ", at " + tokens);
  try {
    work();
  } catch (const c10::OutOfMemoryError&) {
    throw UserError(ExitCode::usage,
                    "the GPU's memory does not hold one op of " + plan.setting.model.name + " at " + tokens);
  }
}

void settle_clock(const Plan& plan) {
  if (!plan.device.is_cuda()) return;
  const at::Tensor left = square(plan, 8192), right = square(plan, 8192);
  time_calls(plan.device, {.repeats = 1, .seconds = cuda::Search::settling + 0.2}, {},
             [&] { linear::forward(left, right); });
}

Subject subject_of(const Plan& plan) {
  const spec::memory::Setting& s = plan.setting;
  spec::time::Ceiling ceiling = metrics::ceiling_of(plan.device, s.dtype);
  if (plan.device.is_cuda())
    ceiling.peak = metrics::peak_of(spec::find_gpu(metrics::name_of(plan.device)), s.dtype, s.model,
                                    s.sequence_length, s.linear)
                       .value_or(0);
  return {.device = metrics::name_of(plan.device),
          .threads = plan.device.is_cuda() ? 0 : at::get_num_threads(),
          .model = plan.setting.model.name,
          .micro = plan.setting.micro,
          .tokens = plan.setting.sequence_length,
          .dtype = to_string(plan.setting.dtype),
          .ceiling = ceiling};
}

void measure_ops(const Plan& plan, const UseRow& use) {
  within_memory(plan, [&] {
    settle_clock(plan);
    for_each_op(plan.setting, plan.device, [&](const OpCall& op) {
      Row row =
          timed(plan, op.name, class_of(op.count.op), op.count.flops, op.count.bytes, op.prepare, op.call);
      row.calls = op.count.calls;
      row.equal_calls = op.equal_calls;
      use(row);
    });
  });
}

void measure_ceilings(const Plan& plan, const UseRow& use) {
  within_memory(plan, [&] {
    settle_clock(plan);
    large_gemm(plan, use);
    for_each_op(plan.setting, plan.device, [&](const OpCall& op) {
      const StepClass kind = class_of(op.count.op);
      if (kind == StepClass::gemm || kind == StepClass::attention)
        use(timed(plan, op.name, kind, op.count.flops, op.count.bytes, op.prepare, op.call));
    });
    memory(plan, use);
  });
}

void tune_gemms(const Plan& plan, double seconds, const UseLine& use) {
  if (!plan.device.is_cuda())
    throw UserError(ExitCode::usage, "--tune chooses algorithms of GPU GEMMs, and this is the CPU");
  const auto normal = [&](std::int64_t height, std::int64_t width, Dtype dtype) {
    return at::randn({height, width}, at::TensorOptions(plan.device).dtype(at::kFloat))
        .mul_(0.5)
        .to(scalar_type(dtype));
  };
  const Dtype dtype = plan.setting.dtype, sums = dtype == Dtype::bf16 ? Dtype::f32 : dtype;
  std::set<spec::time::StepOp> tuned;  // one shape each: a last, smaller chunk of the head takes the same
  within_memory(plan, [&] {
    for (const spec::paper::OpRecord& record : spec::paper::trace(plan.setting).ops) {
      if (record.count.pass != spec::time::StepPass::forward || !record.gemm) continue;
      if (!tuned.insert(record.count.op).second) continue;
      const spec::paper::Gemm& gemm = *record.gemm;
      const at::Tensor bias = gemm.bias ? normal(1, gemm.out, dtype) : at::Tensor(),
                       x = normal(gemm.rows, gemm.in, dtype), weight = normal(gemm.out, gemm.in, dtype),
                       dy = normal(gemm.rows, gemm.out, dtype),
                       base = gemm.residual ? normal(gemm.rows, gemm.out, dtype) : at::Tensor();
      at::Tensor y = normal(gemm.rows, gemm.out, dtype), dx = normal(gemm.rows, gemm.in, dtype),
                 dweight = normal(gemm.out, gemm.in, sums);
      const auto say = [&](const std::string& line) {
        use(std::string(to_string(record.count.op)) + ": " + line);
      };
      say(cuda::tune({.left = {x}, .right = {weight, true}, .bias = bias}, y, base, seconds));
      say(cuda::tune({.left = {dy}, .right = {weight}}, dx, {}, seconds));
      say(cuda::tune({.left = {dy, true}, .right = {x}}, dweight, dweight, seconds));
    }
  });
}

}  // namespace assay::impl::bench
