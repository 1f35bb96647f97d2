// Time of whole optimizer steps of a recipe on this machine, no checkpoint and no record:
//   step_bench RECIPE.toml STEPS [key=value ...]
// on one rank, or on every rank of a launcher, each with its GPU.
// Prints what it does as it goes, then one line of JSON: seconds of every step and phase, tokens/s of the
// median step, exact MFU against the peak of the GPU given by name below, peak memory, seconds from the start
// of the process to the end of the first step and where they went. On GPUs one more step is traced after
// those: rank 0 prints its kernels' times by name, what is left between them, and what its collectives
// reached.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAFunctions.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "impl/comm/launch.hpp"
#include "impl/comm/nccl_communicator.hpp"
#include "impl/data/open_source.hpp"
#include "impl/machine/host.hpp"
#include "impl/metrics/ceiling.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/determinism.hpp"
#include "impl/ops/gemm/cuda_gemm_search.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "impl/run/start/numerics.hpp"
#include "impl/run/start/rank_device.hpp"
#include "impl/run/trainer.hpp"
#include "spec/config/check.hpp"
#include "spec/config/division.hpp"
#include "spec/config/load.hpp"
#include "spec/flops/exact.hpp"
#include "spec/hardware/hardware.hpp"
#include "tests/bench/traced_step.hpp"

namespace assay::impl {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// Seconds since the kernel started this process: its start is in ticks since boot (proc(5), stat, field 22).
double seconds_since_exec() {
  std::ifstream stat("/proc/self/stat"), uptime("/proc/uptime");
  std::string text((std::istreambuf_iterator<char>(stat)), {}), field;
  std::istringstream rest(text.substr(text.rfind(')') + 2));
  for (int i = 3; i <= 22; ++i) rest >> field;
  double up = 0;
  uptime >> up;
  return up - std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Prints a line with the seconds since the process was started, and keeps them for the JSON.
class Marks {
 public:
  explicit Marks(bool prints) : prints_(prints) {}
  void operator()(const char* what) {
    seconds_[what] = seconds_since_exec();
    if (!prints_) return;
    std::printf("%8.2f s  %s\n", seconds_[what].get<double>(), what);
    std::fflush(stdout);
  }
  const Json& seconds() const { return seconds_; }

 private:
  bool prints_;
  Json seconds_;
};

/// All ranks, on GPUs over NCCL.
std::unique_ptr<Communicator> join_ranks(at::Device& device, spec::Device wanted) {
  auto communicator = make_communicator();
  device = run::rank_device(wanted, *communicator);
  if (!device.is_cuda()) return communicator;
  c10::cuda::set_device(device.index());
  if (communicator->size() == 1) return communicator;
  return make_nccl_communicator(std::move(communicator), device);
}

Json phases_of(const std::vector<run::StepReport>& reports, std::size_t first) {
  static const char* names[] = {"data_wait", "forward", "backward", "reduce", "clip", "update", "other"};
  Json out;
  for (std::size_t p = 0; p < std::size(names); ++p) {
    double sum = 0;
    for (std::size_t i = first; i < reports.size(); ++i) sum += reports[i].phases[p];
    out[names[p]] = sum / static_cast<double>(reports.size() - first);
  }
  return out;
}

int bench(const spec::RunConfig& asked, std::int64_t steps) {
  const c10::InferenceMode no_autograd;
  at::Device device(at::kCPU);
  const auto communicator = join_ranks(device, asked.device);
  const bool prints = communicator->rank() == 0;
  Marks mark(prints);
  mark("libraries loaded, settings read, ranks met");
  const spec::ModelSpec model = spec::find_model(asked.model);
  spec::check(asked, model);
  std::string gpu;
  if (device.is_cuda()) gpu = at::cuda::getDeviceProperties(device.index())->name;
  mark("device ready");
  const std::int64_t ranks = communicator->size();
  const spec::Batch batch = spec::divide(asked, model, {.all = ranks, .per_host = ranks}).batch;
  const spec::RunConfig config =
      run::settle_numerics(asked, model, batch, device, run::layout_of(asked, *communicator), *communicator)
          .config;
  set_deterministic(config.deterministic == spec::Determinism::on);
  mark("attention settled");
  run::Trainer trainer(config, model, batch, device, data::open_source(config, model), *communicator);
  mark("buffers allocated");
  trainer.initialise();
  if (device.is_cuda()) c10::cuda::device_synchronize();
  mark("weights initialised");
  trainer.start_after(0);
  std::vector<run::StepReport> reports;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto start = Clock::now();
    reports.push_back(*trainer.step(false));
    const std::chrono::duration<double> wall = Clock::now() - start;
    const auto& report = reports.back();
    if (!prints) continue;
    std::printf("step %lld: loss %.5f, gradient norm %.4f, %.4f s (wall %.4f s), %.0f tokens/s\n",
                static_cast<long long>(step) + 1, report.result.cross_entropy, report.result.gradient_norm,
                report.seconds, wall.count(), static_cast<double>(report.tokens) / report.seconds);
    for (const std::string& line : attention::new_choices()) std::printf("  %s\n", line.c_str());
    for (const std::string& line : cuda::new_searches()) std::printf("  %s\n", line.c_str());
    if (step == 0) mark("first step done");
  }
  // A rank that prints waits for the others in here, so all of them trace.
  const auto kernels = device.is_cuda() ? traced_step(trainer) : std::vector<TracedKernel>();
  if (!prints) {
    communicator->barrier();
    return 0;
  }
  const std::size_t first = std::min<std::size_t>(3, reports.size() - 1);  // the steps before warm up
  std::vector<double> seconds;
  for (std::size_t i = first; i < reports.size(); ++i) seconds.push_back(reports[i].seconds);
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2], tokens = static_cast<double>(reports[0].tokens);
  const auto all_ranks = static_cast<double>(ranks);
  const double flops = spec::exact_flops(model, config.sequence_length).per_token().to_double();
  Json out{{"model", model.name},
           {"gpu", gpu},
           {"ranks", communicator->size()},
           {"tensor_ranks", config.tensor_ranks},
           {"layout", std::string(spec::to_string(config.data_parallel))},
           {"accumulation", batch.accumulation},
           {"sequences", batch.sequences},
           {"micro", batch.micro},
           {"sequence_length", config.sequence_length},
           {"steps", steps},
           {"median_step_seconds", median},
           {"fastest_step_seconds", seconds.front()},
           {"slowest_step_seconds", seconds.back()},
           {"tokens_per_second", tokens / median},
           {"tokens_per_second_per_rank", tokens / median / all_ranks},
           {"flops_per_token_exact", flops},
           {"recompute", std::string(to_string(config.recompute))},
           {"peak_device_bytes", run::device_peak_bytes(device)},
           {"planned_device_bytes",
            run::memory_plan(config, model, batch, device, trainer.groups().layout()).peak.to_double()},
           {"phase_seconds", phases_of(reports, first)},
           {"seconds_since_process_start", mark.seconds()},
           {"first_loss", reports.front().result.cross_entropy},
           {"last_loss", reports.back().result.cross_entropy}};
  if (const auto peak = metrics::peak_of(spec::find_gpu(gpu), config.dtype, model, config.sequence_length,
                                         spec::linear_precision(config, model)))
    out["mfu_exact"] = tokens / median * flops / *peak / all_ranks;
  std::cout << out.dump() << std::endl;
  print_kernels(kernels);
  // Tensor ranks' collectives have the same kernels as the layout's.
  if (config.tensor_ranks == 1) print_collectives(kernels, config, model, batch, trainer.groups().layout());
  communicator->barrier();
  return 0;
}

}  // namespace
}  // namespace assay::impl

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: step_bench RECIPE.toml STEPS [key=value ...]\n";
    return 2;
  }
  try {
    const std::vector<std::string> overrides(argv + 3, argv + argc);
    return assay::impl::bench(assay::spec::load(argv[1], overrides), std::stoll(argv[2]));
  } catch (const std::exception& error) {
    std::cerr << "step_bench: " << error.what() << "\n";
    return 1;
  }
}
