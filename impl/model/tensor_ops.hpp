#pragma once
// The trainer's op set: the step's template (spec/step/model.hpp) over ATen's tensors and the ops of
// impl/ops. One object serves one micro-batch.
#include <ATen/core/Tensor.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/metrics/executed_flops.hpp"
#include "impl/metrics/ranges.hpp"
#include "impl/model/key_value_cache.hpp"
#include "impl/model/parameter_access.hpp"
#include "impl/model/token_batch.hpp"
#include "impl/model/weight_twins.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/cross_entropy/cross_entropy.hpp"
#include "impl/ops/linear/linear.hpp"
#include "impl/ops/normalizer.hpp"
#include "impl/ops/permute/permute.hpp"
#include "impl/ops/permute/visits.hpp"
#include "impl/ops/quantise/quantise.hpp"
#include "impl/ops/rope/rope.hpp"
#include "impl/ops/router/router.hpp"
#include "impl/ops/swiglu/swiglu.hpp"
#include "spec/memory/head.hpp"
#include "spec/ops/linear/linear_precision.hpp"
#include "spec/parallel/placement.hpp"
#include "spec/step/deferred.hpp"
#include "spec/step/model.hpp"

namespace assay::impl {

/// A micro-batch's part of the step's loss, fp64 on the model's device [nat].
struct Loss {
  at::Tensor cross_entropy;
  at::Tensor z_loss;
  at::Tensor of_rows;               ///< [N] of a mixture's tokens, before the normalizer; else undefined
  std::vector<at::Tensor> routing;  ///< of each sparse layer (router::losses)
};

/// The tensor ranks that compute a model together, and what this one holds of its vocabulary.
struct TensorParallel {
  Communicator* ranks = nullptr;  ///< null: one rank
  std::int64_t vocab = 0;         ///< of the whole model
  std::int64_t size() const { return ranks ? ranks->size() : 1; }
  spec::OwnVocabulary own() const { return spec::own_vocabulary(vocab, {ranks->size(), ranks->rank()}); }
};

/// Sees every op of a step before it runs, on the tensors that it runs on. `call` may be made any number of
/// times, and adds to the gradients of parameters each time; it writes over `overwritten`, which must be as
/// they were when `op` returns.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void op(std::initializer_list<at::Tensor> overwritten, const std::function<void()>& call) = 0;
};

/// Called when the host knows how many rows come to this rank's experts, before they have memory: the sparse
/// layer, from 0, and the rows over their mean. What it throws ends the pass.
using ArrivalHook = std::function<void(std::int64_t layer, double load)>;

class TensorOps {
 public:
  using Tensor = at::Tensor;
  /// What a GEMM reads, [N, in], in the compute type or in FP8.
  struct Operand {
    at::Tensor value = {};
    quantise::Twins twins = {};
    bool quantised() const { return twins.rows.defined() || twins.columns.defined(); }
    bool defined() const { return value.defined() || quantised(); }
  };
  struct Weight {
    WeightMatrix matrix;                                           ///< [out, in]
    spec::quantise::Recipe recipe = spec::quantise::Recipe::none;  ///< of the GEMMs that read it
    quantise::Twins twins = {};  ///< where they are kept; of gathered codes, those
    /// Of the grouped GEMMs of routed experts, which read values and cast them themselves.
    spec::quantise::Recipe at_gemm = spec::quantise::Recipe::none;
    bool defined() const { return matrix.defined(); }
    bool of_experts() const { return at_gemm != spec::quantise::Recipe::none; }
    Weight as_read() const { return {matrix, at_gemm, twins, at_gemm}; }
  };
  using Vector = at::Tensor;
  /// Where a weight's gradient is summed, and whether the next GEMM starts the sum.
  struct Gradient {
    at::Tensor into;  ///< [out, in]
    linear::GradientSum sum = linear::GradientSum::continues;
    Gradient continued() const { return {into, linear::GradientSum::continues}; }
  };
  using VectorGradient = at::Tensor;
  using Heads = attention::Heads;
  using HeadGradients = attention::Gradients;
  struct Attention {
    attention::Forward forward;
    bool defined() const { return forward.y.defined(); }
  };
  /// Of M tokens that visit this rank's experts, in the order of the expert ranks that they come from, and of
  /// this rank's tokens where they go.
  struct Visits {
    permute::Order by_rank;  ///< what is sent
    at::Tensor packed;       ///< what goes before it; undefined once that was sent
    at::Tensor counts;       ///< int32 [2, e, 2] to each rank and from each: tokens, and choices of experts
    Communicator::Ticket counted = 0;
    // From the first dispatch on:
    std::vector<std::int64_t> sent, received;  ///< tokens to and from each rank
    std::int64_t rows = 0;                     ///< that this rank's experts have
    permute::Order order;  ///< of what came: rows by expert of this rank; choices of other ranks have none
    at::Tensor weights;    ///< [M, A] of what came
  };
  struct Routing {
    router::Choice choice;           ///< of this rank's tokens
    permute::Order order;            ///< of their rows, by expert of the model
    std::shared_ptr<Visits> visits;  ///< of several expert ranks
    bool defined() const { return choice.experts.defined(); }
    /// Of the rows that this rank's experts work on.
    const permute::Order& rows() const { return visits ? visits->order : order; }
    swiglu::RowWeights row_weights() const {
      return {visits ? visits->weights : choice.weights, rows().slots};
    }
  };
  struct ChunkLoss {
    at::Tensor lse;  ///< [n]
  };
  /// The head's rows as its GEMMs see them (spec/memory/head.hpp).
  struct PaddedHead {
    std::int64_t rows = 0;
    Weight weight;
    Gradient gradient;
  };
  /// A collective's result, which is not to be read before it was waited for.
  template <class T>
  struct Pending {
    T value;
    at::Tensor source;  ///< lives as long as the collective reads it
    Communicator::Ticket ticket = 0;
    Communicator* ranks = nullptr;
  };
  using Chunk = spec::step::Chunk;
  using ReadBy = spec::step::ReadBy;
  using ForwardValue = spec::step::ForwardValue;
  using Site = spec::step::Site;

  /// What a step's ops work on beside the step's own tensors; all must outlive this. `parameters` may be null
  /// where the template's caller brings weights and gradients itself.
  struct Context {
    const spec::ModelSpec& model;
    const rope::Table& rope_table;
    const TokenBatch& batch;
    ParameterAccess* parameters = nullptr;
    const spec::LinearPrecision* linear = nullptr;  ///< null: the compute type
    at::ScalarType compute = at::kFloat;            ///< of what GEMMs in FP8 give
    WeightTwins* twins = nullptr;                   ///< null: weights are quantised where they are used
    OpObserver* observer = nullptr;
    TensorParallel tensor = {};
    Communicator* experts = nullptr;                        ///< the ranks of an expert group; null: one rank
    const ArrivalHook* arrival = nullptr;                   ///< of several expert ranks
    std::int64_t chunk_logits = spec::memory::most_logits;  ///< at most, of a chunk of the head
    /// Of the batch's texts, whose earlier tokens attention sees as well; null: the batch is all there is.
    KeyValueCache* cache = nullptr;
    attention::Backend attention = attention::Backend::automatic;  ///< compute.attention
  };
  /// `normalizer`: valid tokens of the whole step over all micro-batches and ranks; `z`: coefficient of the
  /// z-loss. Both are read by the head alone. `auxiliary`: losses of routers.
  explicit TensorOps(const Context& context, Normalizer normalizer = 1, double z = 0,
                     router::Auxiliary auxiliary = {})
      : context_(context), normalizer_(std::move(normalizer)), z_(z), auxiliary_(std::move(auxiliary)) {}

  const Loss& loss() const { return loss_; }  ///< of the layers and of the head's chunks so far

  const spec::ModelSpec& model() const { return context_.model; }
  attention::Mask mask() const { return {context_.batch.documents, model().window}; }
  spec::step::BlockParameters<Weight, Vector> acquire(std::int64_t block);
  spec::step::BlockParameters<Gradient, VectorGradient> gradients(std::int64_t block);
  void release(std::int64_t block) { context_.parameters->release(block); }
  void gradients_ready(std::int64_t block) {
    deferred_.add_ready([this, block] { context_.parameters->gradients_ready(block); });
    if (!collectives_in(block)) run_deferred();
  }
  template <class Work>
  void defer(Work work) {
    if (!collectives_in(block_)) return work();
    deferred_.add(std::move(work));
  }
  void run_deferred();

  /// A range of traces, until the next one.
  void moment(const char* what, std::int64_t block = 0, const char* part = "") {
    moment_.turn_to([&] { return what + (block > 0 ? " " + std::to_string(block) : std::string()) + part; });
  }
  metrics::FlopScope recompute() { return metrics::FlopScope(spec::ExecutedPass::recompute); }

  std::int64_t tensor_ranks() const { return context_.tensor.size(); }
  std::int64_t expert_ranks() const { return context_.experts ? context_.experts->size() : 1; }
  Pending<Tensor> begin_all_gather(const Site& site, Tensor x);
  Pending<Operand> begin_all_gather(const Site& site, Operand x);
  Pending<Tensor> begin_reduce_scatter(const Site& site, Tensor part);
  template <class T>
  T wait(Pending<T> pending) {
    if (pending.ranks) pending.ranks->wait(pending.ticket);
    return std::move(pending.value);
  }
  void add(const Site& site, Tensor& sum, const Tensor& gradient);

  Operand gradient_operand(const Site& site, const Tensor& x, const Weight& weight);
  Operand kept(const Operand& value) { return {value.value, {{}, value.twins.columns}}; }
  Tensor zeros_like(const Site& site, const Tensor& x);

  Tensor embedding(const Site& site, const Weight& table);
  void embedding_backward(const Site& site, const Tensor& dx, const Gradient& table);
  spec::step::Normed<TensorOps> rms_norm(const Site& site, const Tensor& x, const Vector& gain,
                                         const Weight& weight, ReadBy readers);
  spec::step::Normed<TensorOps> rms_norm_of_sum(const Site& site, Tensor& sum, const Tensor& residual,
                                                const Vector& gain, const Weight& weight, ReadBy readers);
  spec::step::NormGradient<TensorOps> rms_norm_backward(const Site& site, Tensor dy, const Tensor& x,
                                                        const Vector& gain, const Tensor& rstd, Tensor dx,
                                                        const VectorGradient& dgain, const Weight& weight,
                                                        Operand kept, ForwardValue value);
  Tensor linear(const Site& site, const Operand& x, const Weight& weight, const Vector& bias = {});
  Tensor linear_residual(const Site& site, const Tensor& residual, const Operand& x, const Weight& weight);
  Tensor linear_input_gradient(const Site& site, const Operand& dy, const Weight& weight);
  void linear_weight_gradient(const Site& site, const Operand& dy, const Operand& x, const Gradient& dweight);
  void bias_gradient(const Site& site, const Tensor& dy, const VectorGradient& dbias);
  spec::step::QkNormed<TensorOps> qk_norm_rope(const Site& site, const Tensor& qkv, const Vector& q_gain,
                                               const Vector& k_gain);
  void qk_norm_rope_backward(const Site& site, Tensor& dqkv, const Tensor& qkv, const Vector& q_gain,
                             const Vector& k_gain, const Tensor& rstd, const VectorGradient& dq_gain,
                             const VectorGradient& dk_gain);
  void rope(const Site& site, Tensor& qkv);
  Heads heads(const Tensor& qkv) const;
  Attention attention(const Site& site, const Heads& heads);
  Operand attention_operand(const Site& site, const Attention& attention, const Weight& weight,
                            ReadBy readers);
  HeadGradients attention_backward(const Site& site, Tensor dy, Heads heads, Attention saved);
  Tensor together(const HeadGradients& gradients);
  Tensor rope_backward(const Site& site, HeadGradients gradients);

  spec::step::LatentSplit<TensorOps> latent_split(const Site& site, const Tensor& down);
  Tensor latent_join(const Site& site, Tensor key_value, Tensor shared_key);
  Tensor latent_expand(const Site& site, const Tensor& query, const Tensor& key_value,
                       const Tensor& shared_key);
  spec::step::LatentGradient<TensorOps> latent_expand_backward(const Site& site, Tensor d_qkv);

  Operand gate(const Site& site, const Tensor& gate_up, const Weight& down, ReadBy readers);
  spec::step::GateGradient<TensorOps> gate_backward(const Site& site, Tensor d_gated, Tensor gate_up,
                                                    Operand kept, const Weight& gate_up_weight,
                                                    const Weight& down);

  Routing route(const Site& site, const Operand& x, const Weight& router, const Vector& bias);
  void router_losses(const Site& site, const Routing& routing);
  Operand router_gradient(const Site& site, Tensor d_weights, const Routing& routing, const Weight& router);
  Operand permute(const Site& site, const Operand& x, const Routing& routing, spec::Pass pass);
  Tensor combine(const Site& site, const Tensor& base, const Tensor& rows, const Routing& routing,
                 spec::Pass pass);
  Pending<Operand> begin_dispatch(const Site& site, Operand x, const Routing& routing, spec::Pass pass);
  Pending<Tensor> begin_return(const Site& site, Tensor of_arrived, const Routing& routing);
  Tensor add_returned(const Site& site, const Tensor& base, const Tensor& returned, const Routing& routing,
                      spec::Pass pass);
  Tensor returned_weights(const Site& site, Tensor of_choices, const Routing& routing);
  Tensor grouped_linear(const Site& site, const Operand& x, const Weight& weight, const Routing& routing);
  Tensor grouped_input_gradient(const Site& site, const Operand& dy, const Weight& weight,
                                const Routing& routing);
  void grouped_weight_gradient(const Site& site, const Operand& dy, const Operand& x, const Gradient& dweight,
                               const Routing& routing);
  Operand weighted_gate(const Site& site, const Tensor& gate_up, const Routing& routing, const Weight& down,
                        ReadBy readers);
  spec::step::WeightedGateGradient<TensorOps> weighted_gate_backward(const Site& site, Tensor d_gated,
                                                                     Tensor gate_up, Operand kept,
                                                                     const Routing& routing,
                                                                     const Weight& gate_up_weight,
                                                                     const Weight& down);

  PaddedHead padded_head(const Weight& weight, const Gradient& gradient);
  void add_padded_gradient(const PaddedHead& padded, const Gradient& gradient);
  std::int64_t head_tokens(const Operand& x) const { return x.value.size(0); }
  std::int64_t chunk_logits() const { return context_.chunk_logits; }
  std::vector<Chunk> chunks(std::int64_t N, std::int64_t most) const;
  Operand rows(const Operand& x, const Chunk& chunk);
  Tensor empty_like(const Site& site, const Operand& x);
  void copy_rows(Tensor& into, const Chunk& chunk, const Tensor& part);
  ChunkLoss cross_entropy(const Site& site, Tensor& logits, const Chunk& chunk);
  void token_losses(const Site& site, const Tensor& logits, const Chunk& chunk, Tensor& losses);

 private:
  bool collectives_in(std::int64_t block) const {
    return spec::step::collectives_in(model(), block, tensor_ranks(), expert_ranks());
  }
  bool drops() const { return auxiliary_.capacity > 0; }
  permute::Choices choices(const Routing& routing) const;
  void begin_routing(Routing& routing);
  Pending<Tensor> begin_choices(const Routing& routing);
  void order_arrived(const Routing& routing, const Tensor& packed);
  /// Runs `op` for `site`, which its GEMMs count for. It writes over `overwritten` beside its results.
  template <class Op>
  auto run(const Site& site, std::initializer_list<at::Tensor> overwritten, const Op& op) {
    const metrics::FlopScope scope(site.component);
    const metrics::Place place(site.value);
    if (context_.observer) context_.observer->op(overwritten, [&] { op(); });
    return op();
  }
  /// x as `readers` of `weight`'s GEMMs read it. Frees x where nothing else holds it.
  Operand read_by(const Site& site, Tensor x, const Weight& weight, spec::quantise::Role role,
                  ReadBy readers);
  /// `over`: as of amax_over.
  quantise::Twins quantised(const Site& site, const at::Tensor& x, spec::quantise::Recipe recipe,
                            spec::quantise::Role role, ReadBy readers, Communicator* over = nullptr);
  Tensor grouped_gemm(const Site& site, const Operand& left, const Weight& weight, const Routing& routing,
                      spec::quantise::Role role);
  /// The orientation of a weight that forward's GEMM or the input's gradient reads, [out, in] or [in, out].
  quantise::Quantised weight_twin(const Site& site, const Weight& weight, ReadBy reader);
  /// Ids of the vocabulary, or targets, as those of this tensor rank's part of it.
  at::Tensor own(const at::Tensor& ids) const;
  /// The columns of logits that are no padding: of the vocabulary, or of this tensor rank's part of it.
  at::Tensor of_vocabulary(const at::Tensor& logits) const;
  /// The sums that a chunk's loss is made of, over all tensor ranks' parts of its logits.
  void keep_row_losses(const Chunk& chunk, const at::Tensor& targets, const at::Tensor& of_target,
                       const at::Tensor& lse);
  cross_entropy::Partial loss_sums(const at::Tensor& logits, const at::Tensor& targets);
  /// [N, heads E] as [B, T, heads, E].
  at::Tensor by_head(const at::Tensor& x) const;
  at::Tensor by_value_head(const at::Tensor& x) const;  ///< [N, H W] as [B, T, H, W]
  attention::Form attention_form() const { return attention::form_of(model(), context_.attention); }
  double norm_eps(const Site& site) const {
    return site.latent ? model().latent->norm_eps : model().norm_eps;
  }
  at::Tensor by_token(const at::Tensor& x) const;  ///< and back

  const Context context_;
  const Normalizer normalizer_;
  const double z_;
  const router::Auxiliary auxiliary_;
  std::int64_t block_ = 0;  ///< that was acquired last
  Loss loss_;
  metrics::Range moment_;
  spec::step::Deferred deferred_;
};

using Activations = spec::step::Activations<TensorOps>;
using BlockActivations = spec::step::BlockActivations<TensorOps>;

}  // namespace assay::impl
