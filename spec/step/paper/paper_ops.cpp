#include "spec/step/paper/paper_ops.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "spec/error.hpp"
#include "spec/memory/quantised.hpp"
#include "spec/ops/bias/bias.hpp"
#include "spec/ops/cross_entropy/cross_entropy.hpp"
#include "spec/ops/embedding/embedding.hpp"
#include "spec/ops/linear/linear.hpp"
#include "spec/ops/rms_norm/rms_norm.hpp"
#include "spec/ops/swiglu/swiglu.hpp"
#include "spec/step/paper/rules.hpp"

namespace assay::spec::paper {

static_assert(step::HeadOpSet<PaperOps>);

using memory::Machine;
using time::StepOp;
using time::StepPass;

namespace {

/// Document numbers as attention reads them. Errors: SpecError step_c3.
std::vector<std::int64_t> numbers_of(const std::vector<std::vector<std::int64_t>>& lengths, std::int64_t B,
                                     std::int64_t T) {
  std::vector<std::int64_t> numbers;
  for (const std::vector<std::int64_t>& of_sequence : lengths) {
    // step_c3
    require(static_cast<std::int64_t>(lengths.size()) == B &&
                std::accumulate(of_sequence.begin(), of_sequence.end(), std::int64_t{0}) == T,
            "step_c3", [&] {
              return "documents of " + std::to_string(lengths.size()) + " sequences, not " +
                     std::to_string(B) + ", or not of " + std::to_string(T) + " tokens each";
            });
    for (std::size_t number = 0; number < of_sequence.size(); ++number)
      numbers.insert(numbers.end(), static_cast<std::size_t>(std::max<std::int64_t>(of_sequence[number], 0)),
                     static_cast<std::int64_t>(number));
  }
  return numbers;
}

}  // namespace

std::int64_t Tensor::columns() const { return rows() == 0 ? 0 : entries_of(storage->shape) / rows(); }

PaperOps::PaperOps(const memory::Setting& setting, const Share& share, memory::Ledger& ledger, Trace* trace,
                   const std::vector<std::vector<std::int64_t>>& lengths)
    : s_(setting),
      ledger_(ledger),
      trace_(trace),
      lengths_(lengths),
      documents_(numbers_of(lengths, setting.micro, setting.sequence_length)),
      share_(share),
      codes_(setting.layout.shards_weights()
                 ? gathered_codes(share.sets.front().partition.inventory, setting.linear, false)
                 : GatheredCodes{}),
      element_(element_bytes(setting.dtype)),
      statistic_(setting.dtype == Dtype::bf16 ? f32_bytes : element_),
      all_heads_(setting.model.heads + 2 * setting.model.kv_heads),
      auxiliary_(setting.auxiliary),
      drops_(setting.capacity > 0) {
  size_batch(setting.micro, setting.sequence_length);
  for (std::size_t number = 0; trace && number < share.sets.size(); ++number)
    layouts_.emplace_back(setting, share, number, *trace);
}

void PaperOps::size_batch(std::int64_t B, std::int64_t T) {
  B_ = B, T_ = T, N_ = B * T;
  attention_flops_.reset();
}

// Parameters. Decoder blocks of a kind, dense or with experts, have the shapes of the first of it.

const step::BlockParameters<Weight, Vector>& PaperOps::parameters(std::int64_t block) {
  std::int64_t alike = block;
  for (std::int64_t other = block - 1; block <= s_.model.layers && other >= 1; --other)
    if (s_.model.sparse(other - 1) == s_.model.sparse(block - 1)) alike = other;
  const quantise::Recipe recipe = recipe_.value_or(s_.linear.of(block, s_.model.layers));
  const bool codes = codes_.of(block);
  const auto [found, is_new] = parameters_.try_emplace({alike, recipe, codes});
  for (std::size_t set = 0; is_new && set < share_.sets.size(); ++set)
    fill_block(found->second, share_.sets[set].partition.inventory, alike, s_.model.tied_embeddings,
               [&](auto& field, const Parameter& first, std::int64_t rows) {
                 if constexpr (std::is_same_v<decltype(field), Weight&>) {
                   const bool of_experts = first.role >= Role::router && first.role <= Role::shared_down,
                              routed = first.role >= Role::expert_gate && first.role <= Role::expert_down;
                   field = {rows, first.shape.at(1), of_experts ? quantise::Recipe::none : recipe, codes,
                            routed && s_.linear.experts ? recipe : quantise::Recipe::none};
                 } else {
                   field = {rows};
                 }
               });
  return found->second;
}

step::BlockParameters<Weight, Vector> PaperOps::acquire(std::int64_t block) {
  for (PaperLayout& layout : layouts_) layout.acquire(block);
  return parameters(block);
}

void PaperOps::gradients_ready(std::int64_t block) {
  deferred_.add_ready([this, block] {
    for (PaperLayout& layout : layouts_) layout.gradients_ready(block);
  });
  if (!collectives_in(block)) run_deferred();
}

/// Layouts that hold gradients whole write them with a step's first GEMM. Those that gather blocks sum a
/// decoder block's anew in each micro-batch, and add to the head's.
step::BlockParameters<Gradient, VectorGradient> PaperOps::gradients(std::int64_t block) {
  for (PaperLayout& layout : layouts_) layout.gradients(block);
  const bool of_decoder = block >= 1 && block <= s_.model.layers;
  const bool starts = s_.layout.shards_weights() ? of_decoder : first_micro_batch_;
  return step::convert(
      parameters(block),
      [&](const Weight& weight) {
        return Gradient{weight.out, weight.in, starts};
      },
      [](const Vector& vector) { return VectorGradient{vector.entries}; });
}

// Context.

void PaperOps::moment(const char* what, std::int64_t block, const char* part) {
  block_ = block;
  ledger_.enter(within_ + what + (block > 0 ? " " + std::to_string(block) : std::string()) + part);
}

std::shared_ptr<const void> PaperOps::recompute() {
  const bool before = std::exchange(again_, true);
  return {this, [this, before](const void*) { again_ = before; }};
}

/// Behind a collective that begins while forward runs again, what waited is still backward.
void PaperOps::run_deferred() {
  if (deferred_.empty()) return;
  const bool before = std::exchange(again_, false);
  deferred_.run();
  again_ = before;
}

// Tensors.

Tensor PaperOps::make(const std::string& name, Purpose purpose, const std::vector<std::int64_t>& shape,
                      std::int64_t bytes) {
  return {std::make_shared<Tensor::Storage>(
      Tensor::Storage{.held = ledger_.make(name, purpose, shape, bytes), .shape = shape})};
}

Tensor PaperOps::value(const Site& site, const std::vector<std::int64_t>& shape) {
  return make(site.value, site.purpose, shape, element_);
}

Tensor PaperOps::statistic(const Site& site, const std::vector<std::int64_t>& shape) {
  const Purpose purpose = site.op == time::StepOp::cross_entropy ? site.purpose : Purpose::activations;
  return make(site.statistic, purpose, shape, statistic_);
}

Tensor PaperOps::temporary(const char* name, const std::vector<std::int64_t>& shape, std::int64_t bytes) {
  return make(name, Purpose::temporaries, shape, bytes);
}

std::vector<Tensor> PaperOps::held(const std::vector<memory::Scratch>& scratch) {
  std::vector<Tensor> there;
  there.reserve(scratch.size());
  for (const memory::Scratch& each : scratch)
    there.push_back(temporary(each.name, each.shape, each.element_bytes));
  return there;
}

Operand PaperOps::operand(const Tensor& x) const {
  return {.tensor = x,
          .version = x.storage->version,
          .rows = x.rows(),
          .columns = x.columns(),
          .by_rows = {},
          .by_columns = {}};
}

// FP8. One pass over a tensor makes the codes of each orientation that is read.

Quantised PaperOps::codes(const std::string& name, Purpose purpose, const quantise::Quantisation& how,
                          std::int64_t rows, std::int64_t columns) {
  const memory::Scales scales = memory::scales(how.scaling, rows, columns);
  Tensor codes = make(name, purpose, {rows, columns}, 1);
  return {std::move(codes), make(name + "_scales", purpose, scales.shape, scales.element_bytes)};
}

/// Memory of the codes that an op leaves. Per-tensor scales ask for amax first.
Operand PaperOps::coded(const char* name, Purpose purpose, std::int64_t rows, std::int64_t columns,
                        const Weight& weight, quantise::Role role, ReadBy readers) {
  const quantise::Quantisation how = quantise::quantisation(weight.recipe, role);
  Operand out{.tensor = {}, .version = 0, .rows = rows, .columns = columns, .by_rows = {}, .by_columns = {}};
  const std::string base = std::string(name) + "_fp8";
  const bool tensor = how.scaling == quantise::Scaling::tensor;
  const Tensor amax = tensor ? temporary("amax", {1}, f32_bytes) : Tensor{};
  if (readers != ReadBy::weight_gradient) out.by_rows = codes(base, purpose, how, rows, columns);
  if (readers == ReadBy::both && tensor)
    out.by_columns = {make(base + "_t", purpose, {columns, rows}, 1), out.by_rows.scales};  // of both
  else if (readers != ReadBy::forward)
    out.by_columns = codes(base + "_t", purpose, how, columns, rows);
  return out;
}

/// Bytes that quantising moves beside reading its source.
Count PaperOps::code_bytes(std::int64_t rows, std::int64_t columns, const Weight& weight, quantise::Role role,
                           ReadBy readers) const {
  return quantise::bytes(rows, columns, quantise::quantisation(weight.recipe, role).scaling,
                         readers == ReadBy::both ? 2 : 1, 0);
}

/// x, which is there in the compute type, as an op of its own.
Operand PaperOps::quantised(const Site& site, const char* name, Purpose purpose, const Tensor& x,
                            const Weight& weight, quantise::Role role, ReadBy readers) {
  if (weight.recipe == quantise::Recipe::none) return operand(x);
  Site at = site;
  at.op = time::StepOp::quantise;
  begin_op(at);
  const std::int64_t rows = x.rows(), columns = x.columns();
  const bool backward = role == quantise::Role::gradient || readers == ReadBy::weight_gradient;
  record(at, backward ? StepPass::backward : StepPass::forward, {Count(0), Count(rows) * columns},
         Count(rows) * columns * element_ + code_bytes(rows, columns, weight, role, readers));
  if (weight.of_experts() && expert_ranks() > 1)
    record(at.op, Group::experts, Collective::all_reduce, Count(f32_bytes));  // amax
  return coded(name, purpose, rows, columns, weight, role, readers);
}

Operand PaperOps::gradient_operand(const Site& site, const Tensor& x, const Weight& weight) {
  return quantised(site, "upstream", Purpose::temporaries, x, weight, quantise::Role::gradient, ReadBy::both);
}

Operand PaperOps::kept(const Operand& value) const {
  Operand out = value;
  out.by_rows = {};
  return out;
}

/// What a GEMM reads of a weight: a twin that is there (spec/memory/state.cpp), or one that is made for it.
/// Where codes are gathered, forward's is there, and the other is its transpose.
Quantised PaperOps::weight_twin(const Site& site, const Weight& weight, ReadBy reader) {
  if (weight.recipe == quantise::Recipe::none) return {};
  if (s_.linear.weights == QuantiseWeights::step) {
    // Kept twins are made before the step's first forward, or behind the update before it.
    const bool made = first_micro_batch_ && !again_ && reader == ReadBy::forward;
    if (made && weight.of_experts() && expert_ranks() > 1)
      record(site.op, Group::experts, Collective::all_reduce, Count(f32_bytes));
    return {};
  }
  if (weight.codes) return reader == ReadBy::forward ? Quantised{} : transposed_codes(site, weight);
  const Tensor there{
      std::make_shared<Tensor::Storage>(Tensor::Storage{.held = {}, .shape = {weight.out, weight.in}})};
  Operand twins =
      quantised(site, "weight", Purpose::temporaries, there, weight, quantise::Role::weight, reader);
  return reader == ReadBy::forward ? std::move(twins.by_rows) : std::move(twins.by_columns);
}

/// Codes of a weight, turned by an op of their own: read and written once. The scale stays.
Quantised PaperOps::transposed_codes(const Site& site, const Weight& weight) {
  Site at = site;
  at.op = time::StepOp::quantise;
  begin_op(at);
  record(at, StepPass::backward, {}, 2 * Count(weight.out) * weight.in);
  return {temporary("weight_fp8_t", {weight.in, weight.out}, 1), {}};
}

Count PaperOps::gemm_bytes(const Gemm& gemm) const {
  return (Count(gemm.rows) * gemm.in + Count(gemm.in) * gemm.out) * operand_element(gemm) +
         Count(gemm.rows) * gemm.out * element_;
}

std::int64_t PaperOps::operand_element(const Gemm& gemm) const {
  return gemm.recipe == quantise::Recipe::none ? element_ : 1;
}

// Collectives over the tensor ranks.

/// Ids of the whole vocabulary as those of a tensor rank's part of it.
Tensor PaperOps::own_ids(std::int64_t count) {
  return tensor_ranks() == 1 ? Tensor{} : temporary("own_ids", {count}, id_bytes);
}

std::optional<std::size_t> PaperOps::record(StepOp op, Group over, Collective kind, const Count& bytes) {
  if (!trace_) return {};
  trace_->collectives.push_back({.over = over,
                                 .kind = kind,
                                 .op = op,
                                 .bytes = bytes,
                                 .calls = static_cast<double>(times_) * static_cast<double>(chunk_times_),
                                 .begun = trace_->ops.size(),
                                 .awaited = trace_->ops.size()});
  return trace_->collectives.size() - 1;
}

PaperOps::Pending<Tensor> PaperOps::begin_all_gather(const Site& site, Tensor x) {
  if (tensor_ranks() == 1) return {std::move(x), {}};
  std::vector<std::int64_t> shape = x.storage->shape;
  shape.front() *= tensor_ranks();
  const auto number =
      record(site.op, Group::tensor, Collective::all_gather, Count(entries_of(shape)) * element_);
  Pending<Tensor> pending{temporary("all_rows", shape, element_), std::move(x), number};
  run_deferred();
  return pending;
}

PaperOps::Pending<Operand> PaperOps::begin_all_gather(const Site& site, Operand x) {
  if (tensor_ranks() == 1) return {std::move(x), {}};
  read(x, ReadBy::forward);
  Pending<Tensor> pending = begin_all_gather(site, std::move(x.tensor));
  return {operand(pending.value), std::move(pending.source), pending.number};
}

PaperOps::Pending<Tensor> PaperOps::begin_reduce_scatter(const Site& site, Tensor part) {
  if (tensor_ranks() == 1) return {std::move(part), {}};
  std::vector<std::int64_t> shape = part.storage->shape;
  const auto number =
      record(site.op, Group::tensor, Collective::reduce_scatter, Count(entries_of(shape)) * element_);
  shape.front() /= tensor_ranks();
  Pending<Tensor> pending{temporary("own_rows", shape, element_), std::move(part), number};
  run_deferred();
  return pending;
}

void PaperOps::add(const Site& site, Tensor& sum, const Tensor& gradient) {
  match(site, sum.columns(), gradient.columns());
  match(site, sum.rows(), gradient.rows());
  const Count entries = Count(sum.rows()) * sum.columns();
  record(site, StepPass::input_gradient, {Count(0), entries}, 3 * entries * element_);
  write(sum);
}

Tensor PaperOps::zeros_like(const Site& site, const Tensor& x) {
  return make(site.gradient, site.gradient_purpose, x.storage->shape, element_);
}

// Records.

void PaperOps::begin_op(const Site& site) {
  if (!trace_) return;
  if (!trace_->memory.empty()) trace_->memory.back().most = ledger_.most();
  trace_->memory.push_back({site.op, ledger_.now(), ledger_.now(), chunk_times_});
  ledger_.mark();
}

void PaperOps::record(const Site& site, StepPass pass, const Flops& flops, const Count& bytes,
                      std::optional<Gemm> gemm) {
  if (!trace_) return;
  if (again_ && pass == StepPass::forward) pass = StepPass::recompute;
  trace_->ops.push_back(
      {.count = {site.op, pass, static_cast<double>(times_) * static_cast<double>(chunk_times_), flops,
                 bytes},
       .gemm = gemm,
       .op = trace_->memory.size() - 1});
}

void PaperOps::execute(FlopComponent component, ExecutedPass pass, ExecutedCount count) {
  if (!trace_) return;
  const Count times = Count(times_) * chunk_times_;
  for (Count* each : {&count.needed, &count.masked_pairs, &count.padding, &count.skipped_pairs, &count.fp8})
    *each = times * *each;
  if (again_ && pass == ExecutedPass::forward) pass = ExecutedPass::recompute;
  trace_->executed.counts[static_cast<std::size_t>(component)][static_cast<std::size_t>(pass)] += count;
}

/// Rows of the head that were added to fill a GEMM's tile are padding.
void PaperOps::record_gemm(const Site& site, StepPass pass, const Gemm& gemm, const Count& bytes) {
  if (!trace_) return;
  const Flops flops = linear::forward_flops({.N = gemm.rows, .in = gemm.in, .out = gemm.out});
  const bias::Shape rows{.N = gemm.rows, .out = gemm.out};
  record(site, pass, gemm.bias ? flops + bias::forward_flops(rows) : flops,
         gemm.bias ? bytes + bias::forward_bytes(rows, element_) : bytes, gemm);
  const bool head = site.component == FlopComponent::head;
  const Count needed =
      head ? linear::forward_flops({.N = gemm.rows, .in = gemm.in, .out = s_.model.vocab}).matmul
           : flops.matmul;
  execute(site.component, pass == StepPass::forward ? ExecutedPass::forward : ExecutedPass::backward,
          {.needed = needed,
           .masked_pairs = 0,
           .padding = flops.matmul - needed,
           .skipped_pairs = 0,
           .fp8 = gemm.recipe == quantise::Recipe::none ? Count(0) : flops.matmul});
}

// GEMMs. On a CPU bf16 and FP8 are multiplied in fp32, FP8 beside fp64 in fp64; cuBLASLt has a workspace.

Tensor PaperOps::product(const char* name, Purpose purpose, const Gemm& gemm) {
  const std::vector<std::int64_t> shape = {gemm.rows, gemm.out};
  if (on_gpu()) {
    Tensor result = make(name, purpose, shape, element_);
    temporary("gemm_workspace", {memory::gemm_workspace}, 1);
    return result;
  }
  if (gemm.recipe != quantise::Recipe::none) {
    Tensor result = make(name, purpose, shape, element_);
    Tensor added;
    if (s_.dtype == Dtype::bf16 && gemm.residual) added = temporary("wide_added", shape, f32_bytes);
    if (s_.dtype == Dtype::bf16 && gemm.bias) added = temporary("wide_added", {gemm.out}, f32_bytes);
    emulated(gemm.rows, gemm.in, gemm.out);
    return result;
  }
  if (s_.dtype != Dtype::bf16) return make(name, purpose, shape, element_);
  const Tensor left = temporary("wide_left", {gemm.rows, gemm.in}, f32_bytes),
               right = temporary("wide_right", {gemm.in, gemm.out}, f32_bytes),
               result = temporary("wide_result", shape, f32_bytes);
  return make(name, purpose, shape, element_);
}

/// A GEMM of FP8 values on a CPU, [rows, inner] times [inner, columns] (impl/ops/gemm/fp8_gemm.cpp).
void PaperOps::emulated(std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  const Tensor left = temporary("wide_left", {rows, inner}, statistic_),
               right = temporary("wide_right", {inner, columns}, statistic_),
               result = temporary("wide_result", {rows, columns}, statistic_);
}

Tensor PaperOps::linear(const Site& site, const Operand& x, const Weight& weight, const Vector& bias) {
  const Quantised twin = weight_twin(site, weight, ReadBy::forward);
  begin_op(site);
  read(x, ReadBy::forward);
  match(site, x.quantised(), weight.recipe);
  match(site, x.columns, weight.in);
  if (bias.defined()) match(site, bias.entries, weight.out);
  const Gemm gemm{
      .rows = x.rows, .in = weight.in, .out = weight.out, .bias = bias.defined(), .recipe = weight.recipe};
  record_gemm(site, StepPass::forward, gemm, gemm_bytes(gemm));
  const Count flops = linear::forward_flops({.N = gemm.rows, .in = gemm.in, .out = gemm.out}).matmul;
  Tensor rows_of_bias;
  if (on_gpu() && gemm.bias && flops.to_double() < bias::least_fused_flops)
    rows_of_bias = temporary("bias_rows", {gemm.rows, gemm.out}, element_);
  return product(site.value, site.purpose, gemm);
}

Tensor PaperOps::linear_residual(const Site& site, const Tensor& residual, const Operand& x,
                                 const Weight& weight) {
  const Quantised twin = weight_twin(site, weight, ReadBy::forward);
  begin_op(site);
  read(x, ReadBy::forward);
  match(site, x.quantised(), weight.recipe);
  match(site, x.columns, weight.in);
  match(site, residual.columns(), weight.out);
  const Gemm gemm{
      .rows = x.rows, .in = weight.in, .out = weight.out, .residual = true, .recipe = weight.recipe};
  record_gemm(site, StepPass::forward, gemm, gemm_bytes(gemm) + Count(gemm.rows) * gemm.out * element_);
  return product(site.value, site.purpose, gemm);
}

Tensor PaperOps::linear_input_gradient(const Site& site, const Operand& dy, const Weight& weight) {
  const Quantised twin = weight_twin(site, weight, ReadBy::weight_gradient);
  begin_op(site);
  read(dy, ReadBy::forward);
  match(site, dy.quantised(), weight.recipe);
  match(site, dy.columns, weight.out);
  const Gemm gemm{.rows = dy.rows, .in = weight.out, .out = weight.in, .recipe = weight.recipe};
  record_gemm(site, StepPass::input_gradient,
              {.rows = gemm.rows, .in = weight.in, .out = weight.out, .recipe = weight.recipe},
              gemm_bytes(gemm));
  return product(site.gradient, site.gradient_purpose, gemm);
}

void PaperOps::linear_weight_gradient(const Site& site, const Operand& dy, const Operand& x,
                                      const Gradient& dweight) {
  begin_op(site);
  read(dy, ReadBy::weight_gradient);
  read(x, ReadBy::weight_gradient);
  match(site, dy.quantised(), x.quantised() ? s_.linear.recipe : quantise::Recipe::none);
  match(site, dy.columns, dweight.out);
  match(site, x.columns, dweight.in);
  match(site, dy.rows, x.rows);
  const Count weight = Count(dweight.in) * dweight.out;
  const Gemm gemm{.rows = x.rows,
                  .in = dweight.in,
                  .out = dweight.out,
                  .recipe = x.quantised() ? s_.linear.recipe : quantise::Recipe::none};
  record_gemm(site, StepPass::weight_gradient, gemm,
              (Count(x.rows) * dweight.out + Count(x.rows) * dweight.in) * operand_element(gemm) +
                  (dweight.starts ? 1 : 2) * weight * statistic_);
  if (on_gpu()) temporary("gemm_workspace", {memory::gemm_workspace}, 1);
  if (!on_gpu() && x.quantised()) emulated(dweight.out, x.rows, dweight.in);
  if (on_gpu() || x.quantised() || s_.dtype != Dtype::bf16) return;
  const Tensor left = temporary("wide_left", {x.rows, dweight.out}, f32_bytes),
               right = temporary("wide_right", {x.rows, dweight.in}, f32_bytes);
}

/// The GPU's kernel sums in rows of its own.
void PaperOps::bias_gradient(const Site& site, const Tensor& dy, const VectorGradient& dbias) {
  begin_op(site);
  match(site, dy.columns(), dbias.entries);
  const bias::Shape shape{.N = dy.rows(), .out = dbias.entries};
  record(site, StepPass::backward, bias::backward_flops(shape),
         bias::backward_bytes(shape, element_, statistic_));
  if (on_gpu()) temporary("bias_partial", {bias::partial_rows(shape.N), shape.out}, statistic_);
}

// Embedding and norms.

Tensor PaperOps::embedding(const Site& site, const Weight& table) {
  begin_op(site);
  const embedding::Shape shape{.N = N_, .V = table.out, .D = table.in};
  record(site, StepPass::forward, embedding::forward_flops(shape),
         embedding::forward_bytes(shape, element_, id_bytes));
  const Tensor own = own_ids(N_);
  return value(site, {N_, table.in});
}

void PaperOps::embedding_backward(const Site& site, const Tensor& dx, const Gradient& table) {
  begin_op(site);
  match(site, dx.columns(), table.in);
  const embedding::Shape shape{.N = N_, .V = table.out, .D = table.in};
  record(site, StepPass::backward, embedding::backward_flops(shape),
         embedding::backward_bytes(shape, element_, id_bytes, statistic_));
  const Tensor own = own_ids(N_);
  if (!on_gpu()) return;
  const Tensor sorted = temporary("sorted_ids", {N_}, id_bytes), places = temporary("places", {N_}, id_bytes);
}

step::Normed<PaperOps> PaperOps::rms_norm(const Site& site, const Tensor& x, const Vector& gain,
                                          const Weight& weight, ReadBy readers) {
  begin_op(site);
  match(site, x.columns(), gain.entries);
  const rms_norm::Shape shape{.N = x.rows(), .D = gain.entries};
  const Count bytes = rms_norm::forward_bytes(shape, element_, statistic_);
  if (weight.recipe == quantise::Recipe::none) {
    record(site, StepPass::forward, rms_norm::forward_flops(shape), bytes);
    const Tensor y = value(site, {shape.N, shape.D});
    return {operand(y), statistic(site, {shape.N})};
  }
  record(site, StepPass::forward, rms_norm::forward_flops(shape),
         bytes - Count(shape.N) * shape.D * element_ +
             code_bytes(shape.N, shape.D, weight, quantise::Role::activation, readers));
  Tensor rstd = statistic(site, {shape.N});
  const Tensor composed = on_gpu() ? Tensor{} : temporary("composed", {shape.N, shape.D}, element_);
  return {coded(site.value, site.purpose, shape.N, shape.D, weight, quantise::Role::activation, readers),
          std::move(rstd)};
}

step::Normed<PaperOps> PaperOps::rms_norm_of_sum(const Site& site, Tensor& sum, const Tensor& residual,
                                                 const Vector& gain, const Weight& weight, ReadBy) {
  begin_op(site);
  match(site, sum.columns(), gain.entries);
  match(site, residual.columns(), sum.columns());
  match(site, residual.rows(), sum.rows());
  if (weight.recipe != quantise::Recipe::none)
    throw std::logic_error("the norm of a sum is not quantised: config_c12");
  const rms_norm::Shape shape{.N = sum.rows(), .D = gain.entries};
  record(site, StepPass::forward, rms_norm::forward_flops(shape) + rms_norm::sum_flops(shape),
         rms_norm::forward_bytes(shape, element_, statistic_) + rms_norm::sum_bytes(shape, element_));
  write(sum);
  const Tensor y = value(site, {shape.N, shape.D});
  return {operand(y), statistic(site, {shape.N})};
}

/// The GPU's kernel sums the gain's gradient in rows of its own.
void PaperOps::norm_scratch(std::int64_t most_rows, std::int64_t columns) {
  if (on_gpu()) temporary("norm_partial", {most_rows, columns}, statistic_);
}

/// One pass over [N, D] more than the equation's, as dx is added to, and one where the value is made again.
step::NormGradient<PaperOps> PaperOps::rms_norm_backward(const Site& site, Tensor dy, const Tensor& x,
                                                         const Vector& gain, const Tensor& rstd, Tensor dx,
                                                         const VectorGradient& dgain, const Weight& weight,
                                                         Operand kept, ForwardValue forward_value) {
  begin_op(site);
  match(site, x.columns(), gain.entries);
  match(site, dgain.entries, gain.entries);
  match(site, rstd.rows(), x.rows());
  const rms_norm::Shape shape{.N = x.rows(), .D = gain.entries};
  const bool made_again = forward_value == ForwardValue::read && !kept.defined(),
             in_dy = made_again && weight.recipe == quantise::Recipe::none;
  record(site, StepPass::backward, rms_norm::backward_flops(shape),
         rms_norm::backward_bytes(shape, element_, statistic_) +
             (in_dy ? 2 : 1) * Count(shape.N) * shape.D * element_);
  norm_scratch(std::min<std::int64_t>(shape.N, memory::norm_partial_rows), shape.D);
  if (dx.storage.use_count() > 1) dx = make("dx", Purpose::temporaries, dx.storage->shape, element_);
  write(dx);
  if (!made_again) return {std::move(dx), std::move(kept)};
  if (in_dy) {
    write(dy);
    return {std::move(dx), operand(dy)};
  }
  dy = {};
  Site at = site;
  at.op = time::StepOp::quantise;
  begin_op(at);
  record(at, StepPass::backward, rms_norm::forward_flops(shape),
         rms_norm::forward_bytes(shape, element_, statistic_) - Count(shape.N) * shape.D * element_ +
             code_bytes(shape.N, shape.D, weight, quantise::Role::activation, ReadBy::weight_gradient));
  // Composed on a CPU: x in fp32 and its product beside the value (impl/ops/quantise/fused.cpp).
  Tensor wide, product, composed;
  if (!on_gpu() && s_.dtype == Dtype::bf16) {
    wide = temporary("wide_x", {shape.N, shape.D}, f32_bytes);
    product = temporary("wide_value", {shape.N, shape.D}, f32_bytes);
  }
  if (!on_gpu()) composed = temporary("composed", {shape.N, shape.D}, element_);
  wide = {}, product = {};
  return {std::move(dx), coded(site.value, site.purpose, shape.N, shape.D, weight, quantise::Role::activation,
                               ReadBy::weight_gradient)};
}

qk_norm::Shape PaperOps::normed(const Vector& q_gain, const Vector& k_gain) const {
  return qk_norm::check(
      {.B = B_, .T = T_, .H = s_.model.heads, .K = s_.model.kv_heads, .E = s_.model.head_dim}, q_gain.entries,
      k_gain.entries, s_.model.norm_eps);
}

step::QkNormed<PaperOps> PaperOps::qk_norm_rope(const Site& site, const Tensor& qkv, const Vector& q_gain,
                                                const Vector& k_gain) {
  begin_op(site);
  match(site, qkv.columns(), all_heads_ * s_.model.head_dim);
  const qk_norm::Shape shape = normed(q_gain, k_gain);
  record(site, StepPass::forward, qk_norm::forward_flops(shape) + rope::forward_flops(turned()),
         qk_norm::forward_rope_bytes(shape, element_, statistic_));
  Tensor out = value(site, qkv.storage->shape);
  return {std::move(out), statistic(site, {B_, T_, shape.statistics()})};
}

void PaperOps::qk_norm_rope_backward(const Site& site, Tensor& dqkv, const Tensor& qkv, const Vector& q_gain,
                                     const Vector& k_gain, const Tensor& rstd, const VectorGradient& dq_gain,
                                     const VectorGradient& dk_gain) {
  begin_op(site);
  match(site, qkv.columns(), dqkv.columns());
  match(site, dq_gain.entries, q_gain.entries);
  match(site, dk_gain.entries, k_gain.entries);
  match(site, rstd.rows(), B_);
  const qk_norm::Shape shape = normed(q_gain, k_gain);
  record(site, StepPass::backward, qk_norm::backward_flops(shape) + rope::backward_flops(turned()),
         qk_norm::backward_rope_bytes(shape, element_, statistic_));
  if (shape.across_heads)
    norm_scratch(memory::token_norm_partial_rows, q_gain.entries + k_gain.entries);
  else
    norm_scratch(memory::head_norm_partial_rows, q_gain.entries);
  write(dqkv);
}

// Attention.

rope::Shape PaperOps::turned() const {
  return {.B = B_, .T = T_, .H = s_.model.heads + s_.model.kv_heads, .E = s_.model.head_dim};
}

void PaperOps::rope(const Site& site, Tensor& qkv) {
  begin_op(site);
  record(site, StepPass::forward, rope::forward_flops(turned()),
         rope::forward_bytes(turned(), element_, statistic_));
  write(qkv);
}

const ExecutedFlops& PaperOps::attention_flops() {
  if (attention_flops_) return *attention_flops_;
  attention_flops_.emplace();
  const AttentionKernel kernel = memory::executed_kernel(s_);
  const std::int64_t E = s_.model.head_dim, W = s_.model.value_dim();
  if (lengths_.empty()) {
    const ExecutedFlops one = executed_attention(s_.model.heads, E, W, {T_}, s_.model.window, kernel);
    for (std::int64_t b = 0; b < B_; ++b) *attention_flops_ += one;
  }
  for (const std::vector<std::int64_t>& of_sequence : lengths_)
    *attention_flops_ += executed_attention(s_.model.heads, E, W, of_sequence, s_.model.window, kernel);
  return *attention_flops_;
}

attention::Shape PaperOps::attention_shape() const {
  const ModelSpec& m = s_.model;
  return {.B = B_, .T = T_, .H = m.heads, .K = m.kv_heads, .E = m.head_dim, .W = m.value_dim()};
}

Attention PaperOps::attention(const Site& site, const Heads& heads) {
  begin_op(site);
  const attention::Shape shape = attention_shape();
  match(site, heads.joined.columns(), (shape.H + shape.K) * shape.E + shape.K * shape.W);
  if (trace_) {
    record(site, StepPass::forward, attention::forward_flops(shape, mask()),
           attention::forward_bytes(shape, element_, statistic_));
    for (const FlopComponent part : {FlopComponent::attention_scores, FlopComponent::attention_values})
      execute(part, ExecutedPass::forward, attention_flops().at(part, ExecutedPass::forward));
  }
  Tensor y = value(site, {B_, T_, shape.H, shape.W});
  Tensor lse = statistic(site, {B_, s_.model.heads, T_});
  held(attention_forward_scratch(s_, B_, T_));
  return {std::move(y), std::move(lse)};
}

/// [N, H W].
Operand PaperOps::attention_operand(const Site& site, const Attention& attention, const Weight& weight,
                                    ReadBy readers) {
  const Tensor& y = attention.y;
  Tensor rows{std::make_shared<Tensor::Storage>(
      Tensor::Storage{.held = y.storage->held, .shape = {N_, s_.model.heads * s_.model.value_dim()}})};
  return quantised(site, "attended", Purpose::activations, rows, weight, quantise::Role::activation, readers);
}

/// cuDNN and our loops write the gradients as one tensor, plain GEMMs when their own tensors are gone;
/// FlashAttention gives dq, dk and dv apart.
HeadGradients PaperOps::attention_backward(const Site& site, Tensor dy, Heads heads, Attention saved) {
  begin_op(site);
  const attention::Shape shape = attention_shape();
  match(site, dy.columns(), shape.H * shape.W);
  match(site, saved.lse.rows(), B_);
  if (trace_) {
    record(site, StepPass::backward, attention::backward_flops(shape, mask()),
           attention::backward_bytes(shape, element_, statistic_));
    for (const FlopComponent part : {FlopComponent::attention_scores, FlopComponent::attention_values})
      for (const ExecutedPass pass : {ExecutedPass::backward, ExecutedPass::recompute})
        execute(part, pass, attention_flops().at(part, pass));
  }
  const AttentionBackend backend = attention_backend(s_);
  HeadGradients out;
  const auto whole = [&] { return temporary(site.gradient, heads.joined.storage->shape, element_); };
  if (backend == AttentionBackend::cudnn) out.joined = whole();
  if (backend == AttentionBackend::flash) {
    out.dq = temporary("dq", {B_, T_, shape.H, shape.E}, element_);
    out.dk = temporary("dk", {B_, T_, shape.K, shape.E}, element_);
    out.dv = temporary("dv", {B_, T_, shape.K, shape.W}, element_);
  }
  held(attention_backward_scratch(s_, B_, T_));
  if (!out.joined.defined() && !out.dq.defined()) out.joined = whole();
  return out;
}

Tensor PaperOps::together(HeadGradients gradients) {
  if (gradients.joined.defined()) return std::move(gradients.joined);
  const attention::Shape shape = attention_shape();
  return temporary(step::site::attention.gradient,
                   {B_ * T_, (shape.H + shape.K) * shape.E + shape.K * shape.W}, element_);
}

/// Gradients that stand apart are joined in the same pass.
Tensor PaperOps::rope_backward(const Site& site, HeadGradients gradients) {
  begin_op(site);
  record(site, StepPass::backward, rope::backward_flops(turned()),
         rope::backward_bytes(turned(), element_, statistic_));
  Tensor dqkv = together(std::move(gradients));
  write(dqkv);
  return dqkv;
}

// The gated activation.

Operand PaperOps::gate(const Site& site, const Tensor& gate_up, const Weight& down, ReadBy readers) {
  begin_op(site);
  const swiglu::Shape shape{.N = gate_up.rows(), .F = gate_up.columns() / 2};
  const Flops flops = swiglu::forward_flops(shape, swiglu::activation_of(s_.model.mlp));
  const Count bytes = swiglu::forward_bytes(shape, element_);
  if (down.recipe == quantise::Recipe::none) {
    record(site, StepPass::forward, flops, bytes);
    return operand(value(site, {shape.N, shape.F}));
  }
  record(site, StepPass::forward, flops,
         bytes - Count(shape.N) * shape.F * element_ +
             code_bytes(shape.N, shape.F, down, quantise::Role::activation, readers));
  const Tensor composed = on_gpu() ? Tensor{} : temporary("composed", {shape.N, shape.F}, element_);
  return coded(site.value, site.purpose, shape.N, shape.F, down, quantise::Role::activation, readers);
}

/// In the compute type it writes its gradient over gate_up, and forward's value over the upstream where it
/// was not kept.
step::GateGradient<PaperOps> PaperOps::gate_backward(const Site& site, Tensor d_gated, Tensor gate_up,
                                                     Operand kept, const Weight& gate_up_weight,
                                                     const Weight& down) {
  begin_op(site);
  const swiglu::Shape shape{.N = gate_up.rows(), .F = gate_up.columns() / 2};
  match(site, d_gated.columns(), shape.F);
  const Count F = Count(shape.N) * shape.F;
  Count bytes = swiglu::backward_bytes(shape, element_);
  const bool again = !kept.defined(), quantised = down.recipe != quantise::Recipe::none;
  if (quantised) {
    bytes = bytes - 2 * F * element_ +
            code_bytes(shape.N, 2 * shape.F, gate_up_weight, quantise::Role::gradient, ReadBy::both);
    if (again)
      bytes += code_bytes(shape.N, shape.F, down, quantise::Role::activation, ReadBy::weight_gradient);
  } else if (again) {
    bytes += F * element_;
  }
  record(site, StepPass::backward, swiglu::backward_flops(shape, swiglu::activation_of(s_.model.mlp)), bytes);
  if (quantised) {
    Tensor value_again, gradient;
    if (!on_gpu()) {
      value_again = temporary("composed", {shape.N, shape.F}, element_);
      gradient = temporary("composed", {shape.N, 2 * shape.F}, element_);
    }
    Operand upstream = coded("upstream", Purpose::temporaries, shape.N, 2 * shape.F, gate_up_weight,
                             quantise::Role::gradient, ReadBy::both);
    if (again)
      kept = coded(site.value, site.purpose, shape.N, shape.F, down, quantise::Role::activation,
                   ReadBy::weight_gradient);
    return {std::move(upstream), std::move(kept)};
  }
  write(gate_up);
  if (again) {
    write(d_gated);
    kept = operand(d_gated);
  }
  return {operand(gate_up), std::move(kept)};
}

// The head.

PaddedHead PaperOps::padded_head(const Weight& weight, const Gradient& gradient) {
  const std::int64_t rows = on_gpu() ? memory::padded_vocabulary(weight.out, element_) : weight.out;
  PaddedHead padded{
      .rows = rows, .weight = weight, .gradient = gradient, .weight_copy = {}, .gradient_copy = {}};
  if (rows == weight.out) return padded;
  padded.weight_copy = make("padded_head", Purpose::head, {rows, weight.in}, element_);
  padded.weight.out = rows;
  if (gradient.out == 0) return padded;
  padded.gradient_copy = make("d_padded_head", Purpose::head, {rows, weight.in}, statistic_);
  padded.gradient.out = rows;
  padded.gradient.starts = true;
  return padded;
}

std::vector<Chunk> PaperOps::chunks(std::int64_t N, std::int64_t most) const {
  const std::int64_t last = (N - 1) / most * most;
  std::vector<Chunk> chunks = {{.begin = 0, .count = std::min(N, most)}};
  if (const std::int64_t alike = last / most - 1; alike > 0)
    chunks.push_back({.begin = most, .count = most, .times = alike, .first = false});
  if (last > 0) chunks.push_back({.begin = last, .count = N - last, .first = false});
  return chunks;
}

Operand PaperOps::rows(const Operand& x, const Chunk& chunk) {
  read(x, ReadBy::forward);
  chunk_times_ = chunk.times;
  Operand part = x;
  part.rows = chunk.count;
  return part;
}

Tensor PaperOps::empty_like(const Site& site, const Operand& x) {
  return make(site.gradient, site.gradient_purpose, x.tensor.storage->shape, element_);
}

void PaperOps::copy_rows(Tensor& into, const Chunk&, const Tensor& part) const {
  match(step::site::head_chunk, into.columns(), part.columns());
  write(into);
}

/// The maximum of all ranks' logits and their sums, behind each rank's own.
void PaperOps::losses_over_tensor_ranks(const Site& site, std::int64_t rows) {
  // Maximum, sum of exponentials and the target's logit; the maximum of all ranks, and what rescales by it.
  const Tensor partial = make("loss_partial", Purpose::head, {3, rows}, statistic_),
               top = make("loss_top", Purpose::head, {2, rows}, statistic_);
  record(site.op, Group::tensor, Collective::all_reduce, Count(rows) * statistic_);
  record(site.op, Group::tensor, Collective::all_reduce, 2 * Count(rows) * statistic_);
}

/// lse in fp64, from which a CPU subtracts a copy in fp64; and which targets are ignored.
void PaperOps::row_losses(std::int64_t rows) {
  const auto of_rows = [&] { return make("row_losses", Purpose::head, {rows}, f64_bytes); };
  const Tensor losses = of_rows();
  if (!on_gpu() && statistic_ < f64_bytes) of_rows();
  make("ignored_rows", Purpose::head, {rows}, 1);
}

PaperOps::ChunkLoss PaperOps::cross_entropy(const Site& site, Tensor& logits, const Chunk& chunk) {
  begin_op(site);
  const cross_entropy::Shape shape{.N = chunk.count, .V = s_.model.vocab};
  const Flops gradient = cross_entropy::backward_flops(shape, shape.N);
  if (tensor_ranks() == 1)
    // The gradient at once: logits and targets are read by the two together, lse is not read again.
    record(site, StepPass::forward, cross_entropy::forward_flops(shape, shape.N) + gradient,
           cross_entropy::forward_bytes(shape, element_, id_bytes, statistic_) +
               Count(shape.N) * shape.V * element_);
  else
    record(site, StepPass::forward,
           cross_entropy::partial_flops(shape) + cross_entropy::rescale_flops(shape.N) +
               cross_entropy::combine_flops(shape.N, shape.N) + gradient,
           cross_entropy::partial_bytes(shape, element_, id_bytes, statistic_) +
               cross_entropy::rescale_bytes(shape.N, statistic_) +
               cross_entropy::combine_bytes(shape.N, id_bytes, statistic_) +
               cross_entropy::backward_bytes(shape, element_, id_bytes, statistic_));
  Tensor own = own_ids(chunk.count);
  if (tensor_ranks() > 1) losses_over_tensor_ranks(site, chunk.count);
  const bool gathers =
      s_.sources > 0 && tensor_ranks() == 1;  // the targets' logits, which gradients are written over
  Tensor ids = gathers ? make("target_ids", Purpose::head, {chunk.count}, id_bytes) : Tensor();
  const Tensor of_target = gathers ? make("target_logits", Purpose::head, {chunk.count}, element_) : Tensor();
  ids = {};
  Tensor lse = statistic(site, {chunk.count});
  if (on_gpu()) make("loss_terms", Purpose::head, {2, chunk.count}, f64_bytes);
  write(logits);
  if (s_.sources > 0) {
    if (chunk.first) kept_row_losses_ = make("losses_by_source", Purpose::head, {N_}, f64_bytes);
    row_losses(chunk.count);
  }
  return {std::move(lse)};
}

void PaperOps::token_losses(const Site& site, const Tensor& logits, const Chunk& chunk, Tensor& losses) {
  begin_op(site);
  const cross_entropy::Shape shape{.N = chunk.count, .V = s_.model.vocab};
  record(site, StepPass::forward,
         cross_entropy::partial_flops(shape) + cross_entropy::combine_flops(shape.N, shape.N),
         cross_entropy::partial_bytes(shape, element_, id_bytes, statistic_) +
             cross_entropy::combine_bytes(shape.N, id_bytes, statistic_));
  match(site, logits.rows(), chunk.count);
  if (chunk.first) losses = make("token_losses", Purpose::head, {N_}, f64_bytes);
  const Tensor own = own_ids(chunk.count);
  if (tensor_ranks() > 1) losses_over_tensor_ranks(site, chunk.count);
  const Tensor partial = make("loss_partial", Purpose::head, {3, chunk.count}, statistic_),
               lse = statistic(site, {chunk.count});
  if (on_gpu()) make("loss_terms", Purpose::head, {2, chunk.count}, f64_bytes);
  row_losses(chunk.count);
  write(losses);
}

}  // namespace assay::spec::paper
