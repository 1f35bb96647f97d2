#include "impl/metrics/op_times.hpp"

#include <stdexcept>
#include <string>

#include "impl/metrics/executed_flops.hpp"

namespace assay::impl::metrics {

using spec::time::StepOp;
using spec::time::StepPass;

namespace {
thread_local OpClock* op_clock = nullptr;

int kind_of(StepOp op, StepPass pass) {
  if (pass == StepPass::forward && current_pass() == spec::ExecutedPass::recompute)
    pass = StepPass::recompute;
  return static_cast<int>(static_cast<std::size_t>(op) * spec::time::step_passes +
                          static_cast<std::size_t>(pass));
}

StepOp gemm_under_way() {
  using enum spec::FlopComponent;
  switch (current_component().value_or(embedding)) {
    case qkv:
      return StepOp::qkv;
    case spec::FlopComponent::latent_projections:
      return StepOp::latent_projections;
    case attention_output:
      return StepOp::attention_output;
    case gate_up:
      return StepOp::gate_up;
    case down:
      return StepOp::down;
    case head:
      return StepOp::head;
    case router:
      return StepOp::router;
    case routed_experts:
      return StepOp::experts;
    case shared_experts:
      return StepOp::shared_experts;
    default:
      return StepOp::other_gemm;
  }
}

std::string name_of_kind(StepOp op, StepPass pass) {
  if (pass == StepPass::forward && current_pass() == spec::ExecutedPass::recompute)
    pass = StepPass::recompute;
  std::string name = spec::time::name_of(op, pass);
  if (*tracing::place != '\0') name += std::string(" [") + tracing::place + "]";
  return name;
}
}  // namespace

OpScope::OpScope(StepOp op, StepPass pass) : range_([&] { return name_of_kind(op, pass); }) {
  if (op_clock) mark(kind_of(op, pass));
}

OpScope::OpScope(StepPass pass)
    : OpScope(op_clock || tracing::on ? gemm_under_way() : StepOp::other_gemm, pass) {}

OpScope::OpScope(spec::Collective collective, CollectivePart part)
    : range_([&] {
        return (part == CollectivePart::wait ? "wait for " : "") + std::string(to_string(collective));
      }) {
  if (op_clock)
    mark(static_cast<int>(OpClock::first_collective +
                          static_cast<std::size_t>(collective) *
                              static_cast<std::size_t>(CollectivePart::count) +
                          static_cast<std::size_t>(part)));
}

void OpScope::mark(int kind) {
  timed_ = true;
  outer_ = op_clock->kind_;
  op_clock->mark(kind, /*begins=*/true);
}

OpScope::~OpScope() {
  if (timed_ && op_clock) op_clock->mark(outer_, /*begins=*/false);
}

void enter_phase(std::size_t phase) {
  if (!op_clock) return;
  op_clock->outside_ = static_cast<int>(OpClock::first_phase + phase);
  if (OpClock::is_outside(op_clock->kind_)) op_clock->mark(op_clock->outside_, /*begins=*/false);
}

bool ops_are_timed() { return op_clock != nullptr; }

double OpTimes::seconds() const {
  double sum = between;
  for (const auto& part : parts) sum += part.seconds;
  for (const auto& collective : collectives) sum += collective.seconds;
  return sum;
}

OpClock::OpClock(at::Device device) : device_(device) {
  if (op_clock) throw std::logic_error("an OpClock runs on this thread already");
  op_clock = this;
  restart();
}

OpClock::~OpClock() { op_clock = nullptr; }

void OpClock::restart() {
  seconds_.fill(0);
  calls_.fill(0);
  marks_.clear();
  since_ = std::chrono::steady_clock::now();
  outside_ = static_cast<int>(first_phase);
  mark(outside_, /*begins=*/false);
}

void OpClock::mark(int kind, bool begins) {
  if (begins) ++calls_[static_cast<std::size_t>(kind)];
  if (device_.is_cuda()) {
    if (events_.size() == marks_.size()) events_.emplace_back(cudaEventDefault);
    events_[marks_.size()].record();
    marks_.push_back(kind);
  } else {
    const auto now = std::chrono::steady_clock::now();
    charge(kind_, std::chrono::duration<double>(now - since_).count());
    since_ = now;
  }
  kind_ = kind;
}

void OpClock::charge(int kind, double seconds) { seconds_[static_cast<std::size_t>(kind)] += seconds; }

OpTimes OpClock::times() {
  mark(kind_, /*begins=*/false);
  if (device_.is_cuda()) {
    seconds_.fill(0);
    events_[marks_.size() - 1].synchronize();
    for (std::size_t i = 0; i + 1 < marks_.size(); ++i)
      charge(marks_[i], 1e-3 * events_[i].elapsed_time(events_[i + 1]));
  }
  OpTimes out;
  for (std::size_t kind = 0; kind < first_collective; ++kind)
    if (calls_[kind] > 0)
      out.parts.push_back({static_cast<StepOp>(kind / spec::time::step_passes),
                           static_cast<StepPass>(kind % spec::time::step_passes),
                           static_cast<double>(calls_[kind]), seconds_[kind]});
  constexpr auto parts = static_cast<std::size_t>(CollectivePart::count);
  for (std::size_t kind = first_collective; kind < first_phase; ++kind)
    if (calls_[kind] > 0)
      out.collectives.push_back({static_cast<spec::Collective>((kind - first_collective) / parts),
                                 static_cast<CollectivePart>((kind - first_collective) % parts),
                                 static_cast<double>(calls_[kind]), seconds_[kind]});
  for (std::size_t phase = 0; phase < most_phases; ++phase) {
    out.between_by_phase[phase] = seconds_[first_phase + phase];
    out.between += out.between_by_phase[phase];
  }
  return out;
}

}  // namespace assay::impl::metrics
