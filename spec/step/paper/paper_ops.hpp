#pragma once
// The paper op set: its tensors are shapes. A run of the step's template over it makes and frees every tensor
// in a ledger, in the trainer's order, and notes of each op its FLOPs and the bytes that it must move. What
// an op takes beside its results on each machine is known here or in spec/memory/attention.hpp.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "spec/flops/executed.hpp"
#include "spec/memory/attention.hpp"
#include "spec/memory/ledger.hpp"
#include "spec/memory/setting.hpp"
#include "spec/ops/attention/attention.hpp"
#include "spec/ops/qk_norm/qk_norm.hpp"
#include "spec/ops/rope/rope.hpp"
#include "spec/parallel/collective.hpp"
#include "spec/step/deferred.hpp"
#include "spec/step/model.hpp"
#include "spec/step/paper/paper_layout.hpp"

namespace assay::spec::paper {

using step::Chunk;
using step::ForwardValue;
using step::Purpose;
using step::ReadBy;
using step::Site;

/// A shape that takes memory while it is held. Copies share it. Writing in place makes a new version of it.
struct Tensor {
  struct Storage {
    memory::Tensor held;
    std::vector<std::int64_t> shape;
    std::int64_t version = 0;
  };
  std::shared_ptr<Storage> storage;

  bool defined() const { return storage != nullptr; }
  std::int64_t rows() const { return storage->shape.front(); }
  /// Entries of a row, all further extents together.
  std::int64_t columns() const;
};

/// One orientation of a matrix in FP8.
struct Quantised {
  Tensor codes, scales;
  bool defined() const { return codes.defined(); }
};

/// A version of a tensor, or some rows of it, as a GEMM reads it; or its twins in FP8. Reading it after the
/// tensor was written in place is an error of the step's template: SpecError step_c1.
struct Operand {
  Tensor tensor;
  std::int64_t version = 0;
  std::int64_t rows = 0, columns = 0;
  Quantised by_rows, by_columns;
  bool quantised() const { return by_rows.defined() || by_columns.defined(); }
  bool defined() const { return tensor.defined() || quantised(); }
};

struct Weight {
  std::int64_t out = 0, in = 0;
  quantise::Recipe recipe = quantise::Recipe::none;  ///< of the GEMMs that read it
  bool codes = false;                                ///< it was gathered as forward's twin
  /// Of the grouped GEMMs of routed experts, which read values and cast them themselves.
  quantise::Recipe at_gemm = quantise::Recipe::none;
  bool of_experts() const { return at_gemm != quantise::Recipe::none; }
  Weight as_read() const { return {out, in, at_gemm, false, at_gemm}; }
  bool defined() const { return out > 0; }
};
struct Vector {
  std::int64_t entries = 0;
  bool defined() const { return entries > 0; }
};
/// `starts`: the GEMM writes what is there, else it adds.
struct Gradient {
  std::int64_t out = 0, in = 0;
  bool starts = false;
  Gradient continued() const { return {out, in, false}; }
};
struct VectorGradient {
  std::int64_t entries = 0;
};
/// q, k and v of all heads, side by side.
struct Heads {
  Tensor joined;
};
/// Their gradients: side by side, or apart.
struct HeadGradients {
  Tensor joined, dq, dk, dv;
};
struct Attention {
  Tensor y, lse;
  bool defined() const { return y.defined(); }
};
/// impl/ops/router/router.hpp, impl/ops/permute/permute.hpp.
struct Routing {
  Tensor scores, experts, weights, counts, lse, slots, rows, ends;
  Tensor logits;  ///< where they are kept
  /// Of several expert ranks: where this rank's tokens go; rows, weights and ends of those that came here.
  Tensor visit_slots, visit_rows, visit_ends, arrived_weights, arrived_slots, arrived_rows, own_ends;
  Tensor behind_arrived;  ///< room behind arrived_slots, of choices of other ranks
  bool defined() const { return experts.defined(); }
  const Tensor& group_slots() const { return own_ends.defined() ? arrived_slots : slots; }
  const Tensor& group_rows() const { return own_ends.defined() ? arrived_rows : rows; }
  const Tensor& group_ends() const { return own_ends.defined() ? own_ends : ends; }
  const Tensor& row_weights() const { return own_ends.defined() ? arrived_weights : weights; }
};
struct ChunkLoss {
  Tensor lse;
};
/// The head's rows as its GEMMs see them.
struct PaddedHead {
  std::int64_t rows = 0;
  Weight weight;
  Gradient gradient;
  Tensor weight_copy, gradient_copy;  ///< held where rows were added
};

/// A matrix product: [rows, in] times [in, out], or one of its two gradients.
struct Gemm {
  std::int64_t rows = 0, in = 0, out = 0;
  bool residual = false;  ///< adds a residual [rows, out] in its write-back
  bool bias = false;      ///< adds a bias [out] in its write-back
  quantise::Recipe recipe = quantise::Recipe::none;
  bool operator==(const Gemm&) const = default;
};

/// One call of an op, or several of the same size.
struct OpRecord {
  time::StepOpCount count;
  std::optional<Gemm> gemm;
  std::size_t op = 0;  ///< number of the template's call, from 0; attention's backward and its rope share one
};

/// Memory around one of the template's calls [B].
struct OpMemory {
  time::StepOp op;
  Count before;            ///< held when it begins
  Count most;              ///< at a time, from its beginning to the next call's
  std::int64_t times = 1;  ///< chunks of the head that it stands for
};

/// The ranks between which a collective runs: one of spec::RankGroups, or of a spec::ParameterSet.
enum class Group { tokens, tensor, holders, experts, state, replicas };

/// One collective, or several of the same size.
struct CollectiveRecord {
  Group over = Group::tensor;
  Collective kind = Collective::all_gather;
  std::optional<time::StepOp> op = {};  ///< that it serves; none: `block` of parameter set `set`
  std::size_t set = 0;
  std::int64_t block = 0;
  Count bytes;                         ///< as collective_table counts them [B]
  double calls = 0;                    ///< in a step
  std::size_t begun = 0, awaited = 0;  ///< the ops from begun to awaited, in Trace::ops, run meanwhile
};

/// What a run writes down.
struct Trace {
  std::vector<CollectiveRecord> collectives;  ///< in their order
  std::vector<OpRecord> ops;                  ///< in the order of the template's calls
  std::vector<OpMemory> memory;               ///< of each call
  ExecutedFlops executed;                     ///< FLOPs that run, by component and pass
};

class PaperOps {
 public:
  using Tensor = paper::Tensor;
  using Operand = paper::Operand;
  using Weight = paper::Weight;
  using Vector = paper::Vector;
  using Gradient = paper::Gradient;
  using VectorGradient = paper::VectorGradient;
  using Heads = paper::Heads;
  using HeadGradients = paper::HeadGradients;
  using Attention = paper::Attention;
  using Routing = paper::Routing;
  using ChunkLoss = paper::ChunkLoss;
  using PaddedHead = paper::PaddedHead;

  /// `lengths`: documents of each sequence of a micro-batch; empty: one each. `trace` may be null: then
  /// memory alone is followed. `share`: share_of(setting). All must outlive this. Errors: SpecError step_c3.
  PaperOps(const memory::Setting& setting, const Share& share, memory::Ledger& ledger, Trace* trace = nullptr,
           const std::vector<std::vector<std::int64_t>>& lengths = {});

  /// What runs from here on is named so, "sampling".
  void within(std::string what) { within_ = std::move(what) + ", "; }
  /// Shape of the batches from here on.
  void size_batch(std::int64_t B, std::int64_t T);
  /// No linear of what runs from here on is in FP8.
  void unquantised() { recipe_ = quantise::Recipe::none; }
  /// No backward follows what runs from here on.
  void untrained() { auxiliary_ = {}, drops_ = false; }
  /// What runs from here on stands for `times` micro-batches, the step's `first` among them or not.
  void begin_forward(std::int64_t times, bool first);
  /// Losses by row were summed by source, and are gone.
  void end_forward();
  void begin_backward(bool last);
  /// Sums over ranks behind the last backward, and what ends a step.
  void end_step();

  const ModelSpec& model() const { return s_.model; }
  step::BlockParameters<Weight, Vector> acquire(std::int64_t block);
  step::BlockParameters<Gradient, VectorGradient> gradients(std::int64_t block);
  void release(std::int64_t) const {}
  void gradients_ready(std::int64_t block);
  template <class Work>
  void defer(Work work) {
    if (!collectives_in(block_)) return work();
    deferred_.add(std::move(work));
  }
  void run_deferred();

  void moment(const char* what, std::int64_t block = 0, const char* part = "");
  /// Forward runs again while the result lives.
  std::shared_ptr<const void> recompute();

  /// x as a GEMM reads it in the compute type.
  Operand operand(const Tensor& x) const;
  /// A collective's result; what it reads is held until it was waited for. `number` is its place in
  /// Trace::collectives; with one rank, or without a trace, there is none.
  template <class T>
  struct Pending {
    T value;
    Tensor source;
    std::optional<std::size_t> number = {};
  };
  std::int64_t tensor_ranks() const { return s_.tensor_ranks; }
  std::int64_t expert_ranks() const { return s_.expert_ranks; }
  Pending<Tensor> begin_all_gather(const Site& site, Tensor x);
  Pending<Operand> begin_all_gather(const Site& site, Operand x);
  Pending<Tensor> begin_reduce_scatter(const Site& site, Tensor part);
  template <class T>
  T wait(Pending<T> pending) const {
    if (pending.number) trace_->collectives[*pending.number].awaited = trace_->ops.size();
    return std::move(pending.value);
  }
  void add(const Site& site, Tensor& sum, const Tensor& gradient);

  Operand gradient_operand(const Site& site, const Tensor& x, const Weight& weight);
  Operand kept(const Operand& value) const;
  Tensor zeros_like(const Site& site, const Tensor& x);

  Tensor embedding(const Site& site, const Weight& table);
  void embedding_backward(const Site& site, const Tensor& dx, const Gradient& table);
  step::Normed<PaperOps> rms_norm(const Site& site, const Tensor& x, const Vector& gain, const Weight& weight,
                                  ReadBy readers);
  step::Normed<PaperOps> rms_norm_of_sum(const Site& site, Tensor& sum, const Tensor& residual,
                                         const Vector& gain, const Weight& weight, ReadBy readers);
  step::NormGradient<PaperOps> rms_norm_backward(const Site& site, Tensor dy, const Tensor& x,
                                                 const Vector& gain, const Tensor& rstd, Tensor dx,
                                                 const VectorGradient& dgain, const Weight& weight,
                                                 Operand kept, ForwardValue value);
  Tensor linear(const Site& site, const Operand& x, const Weight& weight, const Vector& bias = {});
  Tensor linear_residual(const Site& site, const Tensor& residual, const Operand& x, const Weight& weight);
  Tensor linear_input_gradient(const Site& site, const Operand& dy, const Weight& weight);
  void linear_weight_gradient(const Site& site, const Operand& dy, const Operand& x, const Gradient& dweight);
  void bias_gradient(const Site& site, const Tensor& dy, const VectorGradient& dbias);
  step::QkNormed<PaperOps> qk_norm_rope(const Site& site, const Tensor& qkv, const Vector& q_gain,
                                        const Vector& k_gain);
  void qk_norm_rope_backward(const Site& site, Tensor& dqkv, const Tensor& qkv, const Vector& q_gain,
                             const Vector& k_gain, const Tensor& rstd, const VectorGradient& dq_gain,
                             const VectorGradient& dk_gain);
  void rope(const Site& site, Tensor& qkv);
  Heads heads(Tensor qkv) const { return {std::move(qkv)}; }
  Attention attention(const Site& site, const Heads& heads);
  Operand attention_operand(const Site& site, const Attention& attention, const Weight& weight,
                            ReadBy readers);
  HeadGradients attention_backward(const Site& site, Tensor dy, Heads heads, Attention saved);
  Tensor together(HeadGradients gradients);
  Tensor rope_backward(const Site& site, HeadGradients gradients);

  // Latent attention (paper_latent.cpp).
  step::LatentSplit<PaperOps> latent_split(const Site& site, const Tensor& down);
  Tensor latent_join(const Site& site, Tensor key_value, Tensor shared_key);
  Tensor latent_expand(const Site& site, const Tensor& query, const Tensor& key_value,
                       const Tensor& shared_key);
  step::LatentGradient<PaperOps> latent_expand_backward(const Site& site, Tensor d_qkv);

  Operand gate(const Site& site, const Tensor& gate_up, const Weight& down, ReadBy readers);
  step::GateGradient<PaperOps> gate_backward(const Site& site, Tensor d_gated, Tensor gate_up, Operand kept,
                                             const Weight& gate_up_weight, const Weight& down);

  // A mixture of experts (paper_experts.cpp). How many rows an expert gets changes no size: those that a
  // capacity drops have memory all the same, and are counted as work.
  Routing route(const Site& site, const Operand& x, const Weight& router, const Vector& bias);
  void router_losses(const Site& site, const Routing& routing);
  Operand router_gradient(const Site& site, Tensor d_weights, const Routing& routing, const Weight& router);
  Operand permute(const Site& site, const Operand& x, const Routing& routing, Pass pass);
  Tensor combine(const Site& site, const Tensor& base, const Tensor& rows, const Routing& routing, Pass pass);
  Pending<Operand> begin_dispatch(const Site& site, Operand x, const Routing& routing, Pass pass);
  Pending<Tensor> begin_return(const Site& site, Tensor of_arrived, const Routing& routing);
  Tensor add_returned(const Site& site, const Tensor& base, const Tensor& returned, const Routing& routing,
                      Pass pass);
  Tensor returned_weights(const Site& site, Tensor of_choices, const Routing& routing);
  Tensor grouped_linear(const Site& site, const Operand& x, const Weight& weight, const Routing& routing);
  Tensor grouped_input_gradient(const Site& site, const Operand& dy, const Weight& weight,
                                const Routing& routing);
  void grouped_weight_gradient(const Site& site, const Operand& dy, const Operand& x, const Gradient& dweight,
                               const Routing& routing);
  Operand weighted_gate(const Site& site, const Tensor& gate_up, const Routing& routing, const Weight& down,
                        ReadBy readers);
  step::WeightedGateGradient<PaperOps> weighted_gate_backward(const Site& site, Tensor d_gated,
                                                              Tensor gate_up, Operand kept,
                                                              const Routing& routing,
                                                              const Weight& gate_up_weight,
                                                              const Weight& down);

  PaddedHead padded_head(const Weight& weight, const Gradient& gradient);
  void add_padded_gradient(const PaddedHead&, const Gradient&) const {}
  std::int64_t head_tokens(const Operand& x) const { return x.rows; }
  std::int64_t chunk_logits() const { return s_.chunk_logits; }
  /// All between the first and the last are alike: one stands for them.
  std::vector<Chunk> chunks(std::int64_t N, std::int64_t most) const;
  Operand rows(const Operand& x, const Chunk& chunk);
  Tensor empty_like(const Site& site, const Operand& x);
  void copy_rows(Tensor& into, const Chunk&, const Tensor& part) const;
  ChunkLoss cross_entropy(const Site& site, Tensor& logits, const Chunk& chunk);
  void token_losses(const Site& site, const Tensor& logits, const Chunk& chunk, Tensor& losses);

 private:
  bool collectives_in(std::int64_t block) const {
    return step::collectives_in(s_.model, block, tensor_ranks(), expert_ranks());
  }
  bool on_gpu() const { return s_.machine == memory::Machine::cuda; }
  Tensor make(const std::string& name, Purpose purpose, const std::vector<std::int64_t>& shape,
              std::int64_t bytes);
  Tensor value(const Site& site, const std::vector<std::int64_t>& shape);      ///< forward's result
  Tensor statistic(const Site& site, const std::vector<std::int64_t>& shape);  ///< beside it
  Tensor temporary(const char* name, const std::vector<std::int64_t>& shape, std::int64_t bytes);
  std::vector<Tensor> held(const std::vector<memory::Scratch>& scratch);
  Tensor product(const char* name, Purpose purpose, const Gemm& gemm);
  Quantised codes(const std::string& name, Purpose purpose, const quantise::Quantisation& how,
                  std::int64_t rows, std::int64_t columns);
  Operand coded(const char* name, Purpose purpose, std::int64_t rows, std::int64_t columns,
                const Weight& weight, quantise::Role role, ReadBy readers);
  Count code_bytes(std::int64_t rows, std::int64_t columns, const Weight& weight, quantise::Role role,
                   ReadBy readers) const;
  Operand quantised(const Site& site, const char* name, Purpose purpose, const Tensor& x,
                    const Weight& weight, quantise::Role role, ReadBy readers);
  Quantised weight_twin(const Site& site, const Weight& weight, ReadBy reader);
  Quantised transposed_codes(const Site& site, const Weight& weight);
  void emulated(std::int64_t rows, std::int64_t inner, std::int64_t columns);
  std::int64_t operand_element(const Gemm& gemm) const;
  Count gemm_bytes(const Gemm& gemm) const;  ///< both operands read, the result written
  void record_grouped(const Site& site, time::StepPass pass, std::int64_t rows, std::int64_t in,
                      std::int64_t out, const Count& bytes, bool fp8 = false);
  Tensor grouped_gemm(const Site& site, const Operand& left, const Weight& weight, const Routing& routing,
                      quantise::Role role);
  Tensor grouped_product(const char* name, Purpose purpose, std::int64_t rows, std::int64_t in,
                         std::int64_t out, bool fp8);
  std::int64_t sent_tokens(std::int64_t N) const;
  std::int64_t arrived_rows(std::int64_t N) const;
  void exchange_routing(const Site& site, Routing& routing);
  Tensor added_up(const Site& site, const Tensor& base, const Tensor& rows, std::int64_t N, Pass pass);
  void norm_scratch(std::int64_t most_rows, std::int64_t columns);

  /// Starts a call of the template; records until the next belong to it.
  void begin_op(const Site& site);
  void record(const Site& site, time::StepPass pass, const Flops& flops, const Count& bytes,
              std::optional<Gemm> gemm = {});
  void record_gemm(const Site& site, time::StepPass pass, const Gemm& gemm, const Count& bytes);
  void execute(FlopComponent component, ExecutedPass pass, ExecutedCount count);
  /// Its place in the trace. It counts as awaited at once, until `wait` says when.
  std::optional<std::size_t> record(time::StepOp op, Group over, Collective kind, const Count& bytes);
  void sum_over_tokens(time::StepOp op, std::int64_t of_rows, std::int64_t of_sequences);
  void sum_shared_gradients();
  const step::BlockParameters<Weight, Vector>& parameters(std::int64_t block);
  Tensor own_ids(std::int64_t count);
  void row_losses(std::int64_t rows);
  void losses_over_tensor_ranks(const Site& site, std::int64_t rows);
  const ExecutedFlops& attention_flops();
  attention::Mask mask() const { return {.documents = documents_, .window = s_.model.window}; }
  qk_norm::Shape normed(const Vector& q_gain, const Vector& k_gain) const;
  rope::Shape turned() const;  ///< q and k
  attention::Shape attention_shape() const;

  const memory::Setting& s_;
  memory::Ledger& ledger_;
  Trace* const trace_;
  const std::vector<std::vector<std::int64_t>>& lengths_;
  const std::vector<std::int64_t> documents_;  ///< their number at each token
  const Share& share_;
  const GatheredCodes codes_;         ///< of a layout that gathers blocks
  std::vector<PaperLayout> layouts_;  ///< of each set; none without a trace
  /// By kind, recipe and codes: blocks that have these in common have the same shapes.
  std::map<std::tuple<std::int64_t, quantise::Recipe, bool>, step::BlockParameters<Weight, Vector>>
      parameters_;
  const std::int64_t element_, statistic_, all_heads_;
  std::int64_t B_ = 0, T_ = 0, N_ = 0;
  std::int64_t block_ = 0;  ///< that runs
  std::int64_t times_ = 1, chunk_times_ = 1;
  std::string within_;
  bool first_micro_batch_ = true;
  std::optional<quantise::Recipe> recipe_;  ///< instead of the setting's
  router::Auxiliary auxiliary_;
  bool drops_ = false;  ///< rows, by a capacity
  bool again_ = false;
  step::Deferred deferred_;
  Tensor kept_row_losses_;                        ///< of a mixture's micro-batch
  std::optional<ExecutedFlops> attention_flops_;  ///< of one block and micro-batch
};

}  // namespace assay::spec::paper
