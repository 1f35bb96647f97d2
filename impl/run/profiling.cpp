#include "impl/run/profiling.hpp"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "impl/logs/console.hpp"
#include "impl/machine/output_folder.hpp"
#include "impl/metrics/phases.hpp"
#include "impl/metrics/ranges.hpp"

namespace assay::impl::run {

namespace fs = std::filesystem;
namespace profiler = torch::autograd::profiler;
namespace profiler_impl = torch::profiler::impl;

namespace {

/// Two tracers of one GPU shut each other out: under Nsight Systems the NVTX ranges are there, and no trace
/// of ours.
bool nsight_traces() {
  return std::getenv("NSYS_PROFILING_SESSION_ID") || std::getenv("NSYS_TARGET_PROCESS");
}

std::set<profiler_impl::ActivityType> activities(at::Device device) {
  std::set<profiler_impl::ActivityType> all = {profiler_impl::ActivityType::CPU};
  if (device.is_cuda()) all.insert(profiler_impl::ActivityType::CUDA);
  return all;
}

}  // namespace

/// From its making until it is written.
struct Profiling::Trace {
  explicit Trace(at::Device device) : clock(device) {
    if (nsight_traces()) return;
    const profiler_impl::ProfilerConfig config(profiler_impl::ProfilerState::KINETO);
    profiler::prepareProfiler(config, activities(device));
    profiler::enableProfiler(config, activities(device),
                             {at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE});
    traces = true;
  }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() {
    if (!traces) return;
    try {
      profiler::disableProfiler();
    } catch (const std::exception&) {
      // The run ends by another error.
    }
  }

  const metrics::RangesRecorded recorded;
  metrics::OpClock clock;
  metrics::Range step;
  bool traces = false;
};

Profiling::Profiling(const spec::StepWindow& window, std::string folder, int rank, at::Device device)
    : window_(window), folder_(std::move(folder) + "/profile"), rank_(rank), device_(device) {}

Profiling::~Profiling() = default;

void Profiling::begin(std::int64_t step) {
  if (!holds(step)) return;
  if (!trace_) {
    trace_ = std::make_unique<Trace>(device_);
    first_ = step;
  }
  trace_->step.turn_to([&] { return "step " + std::to_string(step); });
  trace_->clock.restart();
}

std::optional<spec::record::Profile> Profiling::end(std::int64_t step) {
  if (!trace_ || !holds(step)) return {};
  add(trace_->clock.times());
  trace_->step.end();
  last_ = step;
  ++steps_;
  return step == window_.last ? finish() : std::nullopt;
}

std::optional<spec::record::Profile> Profiling::finish() {
  if (!trace_) return {};
  const std::unique_ptr<Trace> trace = std::move(trace_);
  if (steps_ == 0) return {};
  spec::record::Profile profile = parts();
  const std::string name =
      "steps-" + std::to_string(first_) + "-" + std::to_string(last_) + ".rank-" + std::to_string(rank_);
  try {
    const OutputFolder folder = OutputFolder(fs::path(folder_).parent_path()).made("profile");
    if (std::exchange(trace->traces, false)) {
      const auto result = profiler::disableProfiler();
      const fs::path file = fs::path(folder_) / (name + ".trace.json");
      // PyTorch's profiler writes beside it first, and follows links.
      for (const char* ending : {"", ".tmp"}) folder.remove(file.filename().string() + ending);
      if (result) result->save(folder.path_for_others(file.filename().string()));
      std::error_code error;
      if (const auto size = fs::file_size(file, error); !error && size > 0)
        profile.trace = file.filename().string();
      else
        fault_ = file.string() + ": the trace could not be written";
    }
    replace_file(folder, name + ".ops.txt", logs::profile_table(profile, profile.parts.size()));
  } catch (const std::exception& error) {
    fault_ = folder_ + ": the profile is not whole: " + error.what();
  }
  return profile;
}

void Profiling::add(const metrics::OpTimes& times) {
  const auto part = [&](const std::string& name, const char* kind, double calls, double seconds) {
    Part& sum = parts_[name];
    sum.kind = kind;
    sum.calls += calls;
    sum.seconds += seconds;
  };
  for (const auto& op : times.parts) part(spec::time::name_of(op.op, op.pass), "op", op.calls, op.seconds);
  for (const auto& collective : times.collectives)
    part((collective.part == metrics::CollectivePart::wait ? "wait for " : "") +
             std::string(to_string(collective.collective)),
         "collective", collective.calls, collective.seconds);
  for (std::size_t phase = 0; phase < static_cast<std::size_t>(Phase::count); ++phase)
    if (const double seconds = times.between_by_phase[phase]; seconds > 0)
      part(std::string("outside of ops: ") + to_string(static_cast<Phase>(phase)), "outside", 0, seconds);
}

spec::record::Profile Profiling::parts() const {
  spec::record::Profile profile{
      .first_step = first_, .last_step = last_, .path = folder_, .trace = {}, .seconds = 0, .parts = {}};
  const auto steps = static_cast<double>(steps_);
  for (const auto& [name, part] : parts_) {
    profile.parts.push_back(
        {.name = name, .kind = part.kind, .calls = part.calls / steps, .seconds = part.seconds / steps});
    profile.seconds += part.seconds / steps;
  }
  std::sort(profile.parts.begin(), profile.parts.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return profile;
}

}  // namespace assay::impl::run
