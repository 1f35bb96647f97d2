#include "impl/metrics/executed_flops.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

namespace assay::impl::metrics {

using spec::ExecutedPass;
using spec::FlopComponent;

namespace {
struct Thread {
  FlopCounter* counter = nullptr;
  MeasuredFlops* measured = nullptr;
  std::optional<FlopComponent> component;
  ExecutedPass pass = ExecutedPass::forward;
  bool fp8 = false;
  int depth = 0;  ///< of counted ATen ops: what a counted op calls is part of it
};
thread_local Thread thread;

ExecutedPass within(ExecutedPass pass) {
  return thread.pass == ExecutedPass::recompute ? ExecutedPass::recompute : pass;
}

void add(std::optional<FlopComponent> component, ExecutedPass pass, Count flops) {
  MeasuredFlops& measured = *thread.measured;
  if (!component) {
    measured.elsewhere += flops;
    return;
  }
  const auto row = static_cast<std::size_t>(*component), column = static_cast<std::size_t>(pass);
  measured.counts[row][column] += flops;
  if (thread.fp8) measured.fp8[row][column] += flops;
}

at::Tensor tensor(const at::RecordFunction& call, std::size_t argument) {
  return call.inputs()[argument].toTensor();
}

Count elements(const at::Tensor& x) { return x.numel(); }

/// Multiply-adds of a GEMM, or of a product with vectors: the left factor's elements times the columns of the
/// right one (1 for a vector).
void gemm(const at::RecordFunction& call, std::size_t left) {
  const at::Tensor right = tensor(call, left + 1);
  const std::int64_t columns = right.dim() >= 2 ? right.size(-1) : 1;
  add(thread.component, thread.pass, 2 * elements(tensor(call, left)) * columns);
}

/// Pairs and widths of a fused attention, from the arguments named in the op's schema. q [B, H, T, E].
struct Fused {
  Count scores, values;  ///< 2 x heads x pairs x width
  explicit Fused(const at::RecordFunction& call) {
    const auto schema = call.operator_schema();
    TORCH_CHECK(schema.has_value(), call.name(), ": no schema to count by");
    const auto argument = [&](const char* name) -> const c10::IValue& {
      return call.inputs()[static_cast<std::size_t>(schema->argumentIndexWithName(name).value())];
    };
    const at::Tensor q = argument("query").toTensor(), k = argument("key").toTensor(),
                     v = argument("value").toTensor();
    const std::int64_t queries = q.size(2), keys = k.size(2);
    Count pairs = Count(queries) * keys;
    if (argument("is_causal").toBool()) {
      const Count square = std::min(queries, keys);  // query t sees key s iff s <= t
      pairs = (square * (square + 1)).divided_exactly_by(2) + Count(queries - square.to_int64()) * keys;
    }
    const Count heads = Count(q.size(0)) * q.size(1);
    scores = 2 * heads * pairs * q.size(3);
    values = 2 * heads * pairs * v.size(3);
  }
};

void fused_forward(const at::RecordFunction& call, std::size_t) {
  const Fused fused(call);
  add(FlopComponent::attention_scores, within(ExecutedPass::forward), fused.scores);
  add(FlopComponent::attention_values, within(ExecutedPass::forward), fused.values);
}

/// dq and dk, dp and dv, and the scores again.
void fused_backward(const at::RecordFunction& call, std::size_t) {
  const Fused fused(call);
  add(FlopComponent::attention_scores, ExecutedPass::backward, 2 * fused.scores);
  add(FlopComponent::attention_values, ExecutedPass::backward, 2 * fused.values);
  add(FlopComponent::attention_scores, ExecutedPass::recompute, fused.scores);
}

struct Rule {
  void (*count)(const at::RecordFunction&, std::size_t);
  std::size_t left = 0;  ///< argument that is the left factor; the right one follows
};

/// Leaves: what they call themselves is part of them. at::matmul, at::linear and at::einsum end in these.
const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table = {
      {"aten::mm", {gemm, 0}},
      {"aten::bmm", {gemm, 0}},
      {"aten::mv", {gemm, 0}},
      {"aten::dot", {gemm, 0}},
      {"aten::vdot", {gemm, 0}},
      {"aten::addmm", {gemm, 1}},
      {"aten::addmv", {gemm, 1}},
      {"aten::baddbmm", {gemm, 1}},
      {"aten::addbmm", {gemm, 1}},
      {"aten::_addmm_activation", {gemm, 1}},
      {"aten::_grouped_mm", {gemm, 0}},  // its groups share the rows, or the summed axis
      {"aten::_scaled_dot_product_flash_attention", {fused_forward}},
      {"aten::_scaled_dot_product_flash_attention_backward", {fused_backward}},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", {fused_forward}},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", {fused_backward}},
      {"aten::_scaled_dot_product_cudnn_attention", {fused_forward}},
      {"aten::_scaled_dot_product_cudnn_attention_backward", {fused_backward}},
  };
  return table;
}

/// In-place ops do the same as those without underscore.
std::string_view base_name(std::string_view name) {
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

}  // namespace

struct FlopObserver {
  struct Call : at::ObserverContext {
    MeasuredFlops before;
    int exceptions = 0;
  };

  static std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& function) {
    if (!thread.counter || thread.depth > 0) return nullptr;
    const std::string_view name = base_name(function.name());
    thread.counter->seen_.emplace(name);
    const auto rule = rules().find(name);
    if (rule == rules().end()) return nullptr;
    auto call = std::make_unique<Call>();
    call->before = thread.counter->measured_;
    call->exceptions = std::uncaught_exceptions();
    ++thread.depth;
    rule->second.count(function, rule->second.left);
    return call;
  }

  static void end(const at::RecordFunction&, at::ObserverContext* context) {
    if (!context) return;
    --thread.depth;
    const auto& call = static_cast<const Call&>(*context);
    if (std::uncaught_exceptions() > call.exceptions && thread.counter)
      thread.counter->measured_ = call.before;  // it threw: nothing ran
  }
};

FlopScope::FlopScope(FlopComponent component) : FlopScope(component, thread.pass) {}

FlopScope::FlopScope(ExecutedPass pass) : outer_component_(thread.component), outer_pass_(thread.pass) {
  thread.pass = within(pass);
}

FlopScope::FlopScope(FlopComponent component, ExecutedPass pass) : FlopScope(pass) { enter(component); }

FlopScope::~FlopScope() {
  thread.component = outer_component_;
  thread.pass = outer_pass_;
}

void FlopScope::enter(FlopComponent component) { thread.component = component; }

Fp8Scope::Fp8Scope() : outer_(std::exchange(thread.fp8, true)) {}
Fp8Scope::~Fp8Scope() { thread.fp8 = outer_; }

std::optional<FlopComponent> current_component() { return thread.component; }

ExecutedPass current_pass() { return thread.pass; }

void report_gemm(std::int64_t rows, std::int64_t columns, std::int64_t inner) {
  if (thread.counter) add(thread.component, thread.pass, 2 * Count(rows) * columns * inner);
}

void report_flops(FlopComponent component, Count flops) {
  if (thread.counter) add(component, thread.pass, flops);
}

void report_pairs(FlopComponent component, Count each, std::int64_t pairs) {
  if (!thread.counter) return;
  add(component, thread.pass, each * pairs);
  thread.measured->of_pair[static_cast<std::size_t>(component)][static_cast<std::size_t>(thread.pass)] +=
      each;
}

Count MeasuredFlops::total() const {
  Count sum = elsewhere;
  for (const auto& of_component : counts)
    for (const Count& count : of_component) sum += count;
  return sum;
}

MeasuredFlops& MeasuredFlops::operator+=(const MeasuredFlops& other) {
  for (std::size_t component = 0; component < counts.size(); ++component)
    for (std::size_t pass = 0; pass < counts[component].size(); ++pass) {
      counts[component][pass] += other.counts[component][pass];
      fp8[component][pass] += other.fp8[component][pass];
      of_pair[component][pass] += other.of_pair[component][pass];
    }
  elsewhere += other.elsewhere;
  return *this;
}

MeasuredFlops MeasuredFlops::with_pairs(std::int64_t from, std::int64_t to) const {
  MeasuredFlops other = *this;
  for (std::size_t component = 0; component < counts.size(); ++component)
    for (std::size_t pass = 0; pass < counts[component].size(); ++pass) {
      Count& count = other.counts[component][pass];
      count = count - of_pair[component][pass] * from + of_pair[component][pass] * to;
    }
  return other;
}

FlopCounter::FlopCounter() : outer_(thread.counter) {
  callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback(FlopObserver::start, FlopObserver::end)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  thread.counter = this;
  thread.measured = &measured_;
}

FlopCounter::~FlopCounter() {
  at::removeCallback(callback_);
  thread.counter = outer_;
  thread.measured = outer_ ? &outer_->measured_ : nullptr;
}

void report(const MeasuredFlops& ran) {
  if (thread.counter) *thread.measured += ran;
}

const std::set<std::string>& counted_ops() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const auto& [name, rule] : rules()) all.emplace(name);
    return all;
  }();
  return names;
}

}  // namespace assay::impl::metrics
