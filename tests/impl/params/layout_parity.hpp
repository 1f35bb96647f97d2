#pragma once
// A few optimizer steps of any layout on any ranks and device against the reference on the whole batch.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "impl/params/slices.hpp"
#include "reference/train_step.hpp"
#include "spec/batch/batch.hpp"
#include "spec/data/sample_order.hpp"
#include "spec/metrics/scaling.hpp"
#include "tests/impl/comm/forwarding_communicator.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::tests {

/// The cases that a property runs, where each takes a second or two on one core: fewer than RapidCheck draws.
/// Those that shrink a failure count as well.
class FirstCases {
 public:
  explicit FirstCases(int most) : left_(most) {}
  bool over() { return left_-- <= 0; }

 private:
  int left_;
};

/// What is trained, however it is laid out.
struct LayoutCase {
  std::uint64_t seed = 0;  ///< of model, weights and batches
  std::int64_t micro = 1, accumulation = 1;
  Documents documents = Documents::whole;
  Ignored ignored = Ignored::none;
  int steps = 5;
  double tolerance = 1e-11;     ///< relative, in fp64
  std::vector<int> order = {};  ///< of micro-batches: StepRunner::step
  std::int64_t tensor = 1;      ///< ranks of which each data rank is made
  spec::Recompute recompute = spec::Recompute::norms_swiglu;
  std::int64_t chunk_logits = 0;  ///< at most, of a chunk of the head; 0: as always
  std::int64_t vocab = 0;         ///< of the model; 0: as drawn
  bool experts = false;           ///< a model with experts in some of its layers; `tensor` divides `micro`
  bool latent = false;      ///< latent attention, with experts where the seed is odd; then `tensor` is 1
  std::int64_t expert = 1;  ///< ranks that hold them between them
  bool one_expert = false;  ///< of one step: each token visits one, and all of them the same
  spec::LinearPrecision linear = {};
};

/// The drawn model, with extents that `tensor` ranks may split: fewer KV heads than ranks, as many, or more;
/// a vocabulary that they need not divide; no norm across heads. In FP8, multiples of 16.
inline spec::ModelSpec case_model(const LayoutCase& c) {
  spec::ModelSpec model = c.latent    ? latent_model(c.seed)
                          : c.experts ? routed_model(c.seed)
                                      : tiny_model(c.seed);
  if (c.expert > 1) {
    spec::Experts& experts = *model.experts;
    experts.count = c.expert * experts.groups * (1 + static_cast<std::int64_t>(c.seed % 3));
    experts.active = std::min(experts.active, experts.active_groups * (experts.count / experts.groups));
    if (c.one_expert) experts.active = experts.active_groups = 1;
  }
  const auto t = c.tensor, draw = static_cast<std::int64_t>(c.seed);
  if (c.linear.recipe != spec::quantise::Recipe::none) {
    model.head_dim = 16, model.kv_heads = 1 + draw % 2, model.heads = 2 * model.kv_heads;
    model.width = 16 * (1 + draw % 3), model.ffn = 16 * (1 + draw % 5), model.layers = 2 + draw % 2;
    if (model.experts) model.experts->first_dense = draw % 2;
    if (model.experts) model.experts->every = std::min(model.experts->every, model.layers);
    if (c.linear.experts) model.experts->width = 16 * (1 + draw % 2);
    model.context = std::max<std::int64_t>(model.context, 16), model.init_std = 0.2;
    // What a document begins with is rarely the same token twice: their attended values would be one value,
    // up to a rounding of the softmax, and values are sums of FP8 products, which lie on ties of codes.
    model.vocab = 211;
    if (model.latent) {
      model.kv_heads = model.heads, model.head_dim = 24;
      spec::LatentAttention& latent = *model.latent;
      latent.query_rank = 16 * (draw % 4), latent.key_value_rank = 32;
      latent.rope_dim = 16, latent.value_dim = 8 * (1 + draw % 3);
    }
  }
  if (c.tensor == 1) return model;
  model.kv_heads = draw % 3 == 0 ? 1 : draw % 3 == 1 ? t : t % 2 == 0 ? 2 : t;
  model.heads = t * (model.kv_heads == t ? 1 + draw % 2 : model.kv_heads);
  model.ffn = t * (2 + draw % 3);
  model.vocab = c.vocab > 0 ? c.vocab : std::max(model.vocab, t + 1);
  model.context = std::max<std::int64_t>(model.context, 12);
  model.qk_norm_across_heads = false;
  return model;
}

/// Tokens of a sequence: a micro-batch of any size is split evenly.
inline std::int64_t case_tokens(const LayoutCase& c) {
  if (c.linear.recipe != spec::quantise::Recipe::none) return 16;
  return c.tensor == 1 ? 5 : c.tensor == 2 ? 6 : 2 * c.tensor;
}

inline std::string describe(const LayoutCase& c, const spec::Layout& layout) {
  std::ostringstream text;
  text << describe(case_model(c)) << ", tensor " << c.tensor << ", recompute "
       << static_cast<int>(c.recompute) << ", " << spec::to_string(layout.data) << " of " << layout.ranks
       << " ranks in shards of " << layout.shard_ranks << ", micro " << c.micro << " x " << c.accumulation
       << ", documents " << static_cast<int>(c.documents) << ", ignored " << static_cast<int>(c.ignored)
       << ", seed " << c.seed;
  if (c.experts) {
    const spec::Experts& experts = *case_model(c).experts;
    text << ", " << experts.active << " of " << experts.count << " experts over " << c.expert << " ranks";
  }
  if (const std::string linear = spec::describe(c.linear); !linear.empty()) text << ", " << linear;
  return text.str();
}

/// AdamW divides a gradient by its own size and eps: where a gradient is rounding alone, a small eps makes an
/// update of it. That is no matter of layouts, so eps is large here.
inline impl::run::StepSettings layout_settings() {
  return {
      .adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-5, .weight_decay = 0.1}, .clip = 1.0, .z_loss = 1e-3};
}

/// With losses of routers, whose shares are a sequence's or the batch's so far, moving biases and, of two
/// thirds, a capacity.
inline impl::run::StepSettings layout_settings(const LayoutCase& c) {
  impl::run::StepSettings settings = layout_settings();
  if (!c.experts) return settings;
  settings.balance = 0.3, settings.router_z = 0.05, settings.bias_rate = 0.125;
  // The order of forward passes matters to it, and in FP8 each rank's are passes of their own.
  settings.balance_of_batch =
      c.order.empty() && c.seed % 2 == 1 && c.linear.recipe == spec::quantise::Recipe::none;
  if (!c.linear.experts) settings.capacity = c.seed % 3 == 0 ? 0 : c.seed % 3 == 1 ? 1 : 1.5;
  return settings;
}

/// The same of the reference.
inline reference::balancing::Settings balancing_of(const impl::run::StepSettings& s) {
  reference::balancing::Settings out{
      .form = s.balance_of_batch ? spec::load_balancing::Form::running : spec::load_balancing::Form::sequence,
      .coefficient = s.balance,
      .router_z_coefficient = s.router_z,
      .bias_rate = s.bias_rate};
  if (s.capacity > 0) out.capacity_factor = s.capacity;
  return out;
}

/// The batch of a step, all ranks'.
inline reference::Batch whole_batch(const LayoutCase& c, std::int64_t ranks, int step) {
  return tiny_batch(case_model(c), c.micro * c.accumulation * ranks, case_tokens(c), c.documents, c.ignored,
                    c.seed * 16 + static_cast<std::uint64_t>(step));
}

/// Of a rank's micro-batch `m`, as the loader deals them.
inline std::int64_t first_sequence(const reference::Batch& whole, const LayoutCase& c, std::int64_t ranks,
                                   std::int64_t rank, std::int64_t m) {
  return spec::data::first_index({.seed = 0, .samples = whole.B, .sequences = whole.B},
                                 {.micro = c.micro, .ranks = ranks}, rank, m);
}

/// Ranks whose micro-batches share the scales of experts in FP8.
inline std::int64_t passes_at_once(const LayoutCase& c) { return c.linear.experts ? c.expert : 1; }

/// A rank's micro-batches of a batch, dealt as the loader deals them.
inline std::vector<reference::Batch> dealt(const reference::Batch& whole, const LayoutCase& c,
                                           std::int64_t ranks, std::int64_t rank) {
  std::vector<reference::Batch> mine;
  for (std::int64_t m = 0; m < c.accumulation; ++m) {
    const std::int64_t first = first_sequence(whole, c, ranks, rank, m);
    mine.push_back(sequences(whole, first, first + c.micro));
  }
  return mine;
}

/// A batch as the reference takes it: as one micro-batch, but in FP8, where scales are those of a
/// micro-batch (of experts over several ranks: of these ranks' micro-batches), and where the order of passes
/// matters: as what all ranks work on at a time.
inline std::vector<reference::Batch> for_reference(const reference::Batch& whole, const LayoutCase& c,
                                                   std::int64_t ranks) {
  if (layout_settings(c).balance_of_batch) return micro_batches(whole, c.micro * ranks);
  if (c.linear.recipe == spec::quantise::Recipe::none) return {whole};
  std::vector<reference::Batch> all;
  for (std::int64_t rank = 0; rank < ranks; rank += passes_at_once(c))
    for (std::int64_t m = 0; m < c.accumulation; ++m) {
      std::int64_t first = 0;
      for (std::int64_t other = 0; other < passes_at_once(c); ++other) {
        const std::int64_t its = first_sequence(whole, c, ranks, rank + other, m);
        if (other == 0) first = its;
        if (its != first + other * c.micro) throw std::logic_error("an expert group's sequences lie apart");
      }
      all.push_back(sequences(whole, first, first + passes_at_once(c) * c.micro));
    }
  return all;
}

inline reference::Recipes recipes_of(const LayoutCase& c, const spec::ModelSpec& model) {
  reference::Recipes recipes = reference::recipes_of(c.linear, model.layers);
  recipes.parts = passes_at_once(c);
  return recipes;
}

/// All shards of a buffer on every rank. Collective.
inline at::Tensor whole_of(const impl::ParameterBuffers& buffers, impl::Communicator& shard,
                           const at::Tensor& buffer) {
  at::Tensor whole = at::zeros({buffers.inventory.flat_size}, buffer.options());
  for (std::int64_t b = 0; b < buffers.inventory.blocks; ++b) {
    const auto range = buffers.inventory.block_range(b);
    shard.wait(shard.begin_all_gather(impl::owned(buffers, buffer, b).clone(),
                                      whole.narrow(0, range.begin, range.end - range.begin)));
  }
  return whole;
}

inline at::Tensor whole_of(StepRunner& runner, const at::Tensor& buffer) {
  return whole_of(runner.buffers(), runner.groups().sets()[0].state, buffer);
}

/// A whole buffer of this rank, [flat_size] of its inventory, as the whole model's, from all tensor ranks.
/// NaN where holders of an entry do not have the same bits, and where a row of padding is not zero.
/// Collective.
inline at::Tensor of_tensor_ranks(StepRunner& runner, const at::Tensor& whole) {
  const impl::ParameterBuffers& buffers = runner.buffers();
  impl::Communicator& tensor = runner.groups().tensor();
  at::Tensor parts = at::empty({tensor.size(), whole.numel()}, whole.options()),
             out = at::full({buffers.model.flat_size}, std::nan(""), whole.options());
  tensor.wait(tensor.begin_all_gather(whole, parts.view({-1})));
  for (std::size_t i = 0; i < buffers.placements.size(); ++i) {
    const spec::Parameter &own = buffers.inventory.parameters[i],
                          &of_model = buffers.model.parameters[buffers.placements[i].number];
    for (int rank = 0; rank < tensor.size(); ++rank) {
      const spec::Placement placement = spec::placement(of_model, own, {tensor.size(), rank});
      at::Tensor part = parts[rank].narrow(0, own.offset, own.size).view(own.shape);
      if (placement.dimension >= 0) {
        const std::int64_t padding = part.size(placement.dimension) - placement.count;
        if (!part.narrow(placement.dimension, placement.count, padding).eq(0).all().item<bool>())
          return at::full_like(out, std::nan(""));
        part = part.narrow(placement.dimension, 0, placement.count);
      }
      at::Tensor to = impl::view(out, of_model);
      if (placement.dimension >= 0) to = to.narrow(placement.dimension, placement.begin, placement.count);
      if (placement.holder > 0 && !at::equal(to, part)) return at::full_like(out, std::nan(""));
      to.copy_(part);
    }
  }
  return out;
}

/// What a rank holds or may gather.
enum class Of { shards, this_rank };

/// One buffer of the whole model, [flat_size] of its inventory: from all shards, or this rank's own whole
/// one, of all tensor and expert ranks. Collective.
inline at::Tensor whole_model(StepRunner& runner, at::Tensor impl::ParameterBuffers::*which,
                              Of of = Of::shards) {
  const impl::ParameterBuffers& buffers = runner.buffers();
  const auto whole = [&](std::size_t set) {
    const impl::ParameterBuffers& held = *buffers.sets().at(set);
    const at::Tensor& own = held.*which;
    return of == Of::this_rank && held.whole(own) ? own
                                                  : whole_of(held, runner.groups().sets().at(set).state, own);
  };
  at::Tensor out = of_tensor_ranks(runner, whole(0));
  if (buffers.others.empty()) return out;
  impl::Communicator& group = runner.groups().expert();
  const at::Tensor mine = whole(1).contiguous(),
                   all = at::empty({group.size(), mine.numel()}, mine.options());
  group.wait(group.begin_all_gather(mine, all.view({-1})));
  for (int rank = 0; rank < group.size(); ++rank) {
    // Each rank's experts lie where this one's do.
    const spec::Share theirs = runner.share(runner.groups().ranks().experts.first + rank);
    for (std::size_t i = 0; i < theirs.sets.at(1).placements.size(); ++i) {
      const spec::Parameter& own = buffers.others[0].inventory.parameters[i];
      const std::int64_t offset = buffers.model.parameters[theirs.sets[1].placements[i].number].offset;
      out.narrow(0, offset, own.size).copy_(all[rank].narrow(0, own.offset, own.size));
    }
  }
  return out;
}

/// Pairs of a token and an expert rank that holds one of its experts, by the reference's routers, over sparse
/// layers and micro-batches. A dropped choice leads nowhere.
inline Count visits_of(const reference::Parameters<double>& parameters, const spec::ModelSpec& model,
                       const std::vector<reference::Batch>& micro_batches, std::int64_t ranks,
                       const reference::Recipes& recipes, std::optional<double> capacity_factor) {
  std::int64_t visits = 0;
  for (const reference::Batch& batch : micro_batches) {
    const auto forward = reference::model::forward(parameters, model, batch, {.normalizer = 1, .z_loss = 0},
                                                   recipes, capacity_factor);
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      if (!model.sparse(layer)) continue;
      const auto& experts = forward.blocks[static_cast<std::size_t>(layer)].experts;
      const std::int64_t A = model.experts->active, each = model.experts->count / ranks;
      for (std::int64_t n = 0; n < batch.B * batch.T; ++n) {
        std::set<std::int64_t> visited;
        for (std::int64_t a = 0; a < A; ++a) {
          const auto slot = static_cast<std::size_t>(n * A + a);
          if (experts.plan.rows[slot] >= 0) visited.insert(experts.router.chosen[slot] / each);
        }
        visits += static_cast<std::int64_t>(visited.size());
      }
    }
  }
  return visits;
}

/// The bytes of a step by the formula, in fp64; `visits` of this rank's tokens.
inline spec::Volume formula_of(const LayoutCase& c, StepRunner& runner, const Count& visits) {
  const spec::ModelSpec model = case_model(c);
  const spec::StepTraffic traffic{.accumulation = c.accumulation,
                                  .gradient_bytes = 8,
                                  .weight_bytes = 8,
                                  .tied_embeddings = model.tied_embeddings,
                                  .linear = c.linear,
                                  .balance_of_batch = layout_settings(c).balance_of_batch};
  const spec::Share share = runner.share();
  auto formula = spec::step_volume(share, traffic);
  formula.tensor = spec::tensor_volume(share, {.tokens = c.micro * case_tokens(c),
                                               .accumulation = c.accumulation,
                                               .recompute = c.recompute,
                                               .activation_bytes = 8,
                                               .statistic_bytes = 8,
                                               .gradient_bytes = 8,
                                               .balance_of_batch = traffic.balance_of_batch});
  if (share.sets.size() > 1) {
    formula.expert_group = spec::expert_volume(model, c.expert,
                                               {.visits = visits,
                                                .accumulation = c.accumulation,
                                                .recompute = c.recompute,
                                                .activation_bytes = 8,
                                                .statistic_bytes = 8,
                                                .linear = c.linear});
  }
  return total(formula);
}

/// Of what is learned: the largest difference of any entry, relative to the largest entry of all; infinite
/// where one is NaN.
inline double distance(const at::Tensor& whole, const spec::Inventory& inventory,
                       const reference::Parameters<double>& expected) {
  double largest = 0, difference = 0;
  for (const spec::Parameter& parameter : inventory.parameters) {
    if (!parameter.learned()) continue;
    const Values got = values(whole, parameter);
    const auto& wanted = expected.at(parameter.name).flat();
    for (std::size_t i = 0; i < got.data.size(); ++i) {
      const double error = std::abs(got.data[i] - wanted[static_cast<Eigen::Index>(i)]);
      if (!(error <= difference)) difference = std::isnan(error) ? HUGE_VAL : error;
      largest = std::max(largest, std::abs(wanted[static_cast<Eigen::Index>(i)]));
    }
  }
  return difference / largest;
}

/// Whether a rank's router biases are those of the reference. In fp64 both add the same numbers: bit for bit.
inline bool same_router_biases(const impl::ParameterBuffers& buffers,
                               const reference::Parameters<double>& expected) {
  for (std::size_t i = 0; i < buffers.model.parameters.size(); ++i) {
    const at::Tensor bias = impl::router_bias_of(buffers, i);
    if (!bias.defined()) continue;
    const at::Tensor got = bias.cpu();
    const auto& wanted = expected.at(buffers.model.parameters[i].name).flat();
    for (std::int64_t e = 0; e < got.numel(); ++e)
      if (got.const_data_ptr<double>()[e] != wanted[e]) return false;
  }
  return true;
}

/// Of what the ranks of a group counted. Collective.
inline Count sum_over(impl::Communicator& group, const Count& bytes) {
  std::int64_t all = 0;
  for (const std::string& each : group.all_gather(std::to_string(bytes.to_int64()))) all += std::stoll(each);
  return Count(all);
}

inline std::string by_collective(const spec::Volume& volume) {
  std::string text;
  for (const spec::CollectiveFacts& each : spec::collective_table)
    text += std::string(each.words) + " " + volume[each.collective].to_string() + " ";
  return text;
}

/// Of the most visited expert of any layer over the mean.
inline double worst_load(const std::vector<std::vector<reference::Index>>& layers) {
  double worst = 0;
  for (const std::vector<reference::Index>& loads : layers) {
    if (loads.empty()) continue;  // a dense layer
    const auto sum = std::accumulate(loads.begin(), loads.end(), reference::Index{0});
    const auto most = *std::max_element(loads.begin(), loads.end());
    if (sum > 0)
      worst = std::max(worst, static_cast<double>(most * static_cast<reference::Index>(loads.size())) /
                                  static_cast<double>(sum));
  }
  return worst;
}

/// Routers of zeros, with which every token visits the experts of the lowest numbers.
inline void zero_routers(StepRunner& runner, reference::TrainState& state) {
  const impl::ParameterBuffers& buffers = runner.buffers();
  for (std::size_t i = 0; i < buffers.inventory.parameters.size(); ++i) {
    const spec::Parameter& parameter = buffers.inventory.parameters[i];
    if (parameter.role != spec::Role::router) continue;
    state.parameters.at(parameter.name).flat().setZero();
    const at::Tensor held = buffers.whole(buffers.weights) ? impl::view(buffers.weights, parameter)
                                                           : impl::owned_of(buffers, buffers.weights, i);
    if (held.defined()) held.zero_();
  }
  runner.parameters().weights_changed();
}

/// What one rank of a layout does not do as the reference: empty, or the first thing that differs.
/// Collective. `spoil`: makes a wrong input of a right one.
inline std::string difference_from_reference(const LayoutCase& c, const spec::Layout& layout,
                                             impl::Communicator& communicator, at::Device device,
                                             const std::function<void(impl::run::StepInput&)>& spoil = {}) {
  spec::Volume volume;
  CountingCommunicator counting(communicator, volume);
  const spec::ModelSpec model = case_model(c);
  const impl::run::StepSettings s = layout_settings(c);
  StepRunner runner(model, Dtype::f64, device, counting, layout, s, c.seed, Dtype::f32, Dtype::f32,
                    c.recompute, c.linear, c.tensor, c.expert);
  if (c.chunk_logits > 0) runner.model().limit_chunks(c.chunk_logits);
  reference::TrainState state = reference::initial_state(model, c.seed);
  if (c.one_expert) zero_routers(runner, state);
  const reference::Recipes recipes = recipes_of(c, model);
  const reference::balancing::Settings balancing = balancing_of(s);
  std::string found;
  const auto compare = [&](const std::string& what, double error, double allowed) {
    if (!(error <= allowed) && found.empty())
      found = what + " is off by " + std::to_string(error / allowed) + " of what is allowed";
  };
  for (int step = 0; step < (c.one_expert ? 1 : c.steps); ++step) {
    const std::string where = "step " + std::to_string(step) + ": ";
    const reference::Batch whole = whole_batch(c, layout.ranks, step);
    const auto micro_batches = for_reference(whole, c, layout.ranks);
    const auto before =
        reference::step_gradients(state.parameters, model, micro_batches, s.z_loss, recipes, balancing);
    const std::int64_t data_rank = runner.groups().batch().rank();
    // Each tensor rank sends the tokens of its own sequences.
    std::vector<reference::Batch> routed;
    const std::int64_t own_sequences = c.micro / c.tensor,
                       first = own_sequences * runner.groups().tensor().rank();
    if (c.expert > 1)
      for (const reference::Batch& batch : dealt(whole, c, layout.ranks, data_rank))
        routed.push_back(sequences(batch, first, first + own_sequences));
    reference::Recipes of_a_rank = recipes;
    of_a_rank.parts = 1;
    const Count visits =
        visits_of(state.parameters, model, routed, c.expert, of_a_rank, balancing.capacity_factor);
    const auto expected = reference::train_step(state, model, micro_batches,
                                                {.beta1 = s.adamw.beta1,
                                                 .beta2 = s.adamw.beta2,
                                                 .eps = s.adamw.eps,
                                                 .weight_decay = s.adamw.weight_decay,
                                                 .clip = s.clip,
                                                 .z_loss = s.z_loss,
                                                 .balancing = balancing},
                                                3e-3, recipes);
    volume = {};
    const auto result = runner.step(dealt(whole, c, layout.ranks, data_rank),
                                    static_cast<double>(whole.valid_tokens()), 3e-3, spoil, c.order);
    spec::Volume formula = formula_of(c, runner, visits);
    // A rank sends its own tokens, and sends back those of others: a group's ranks together as the formula.
    for (spec::Volume* each : {&formula, &volume}) {
      Count& sent = (*each)[spec::Collective::all_to_all];
      sent = sum_over(runner.groups().expert(), sent);
    }
    // Weights are gathered as often as their block is asked for anew: other orders ask otherwise.
    if (c.order.empty() && volume != formula && found.empty())
      found = where + "bytes " + by_collective(volume) + "; the formula has " + by_collective(formula);
    const auto near = [&](const std::string& what, double got, double wanted) {
      compare(where + what, std::abs(got - wanted), c.tolerance * std::abs(wanted));
    };
    near("loss", result.cross_entropy, expected.cross_entropy);
    near("z-loss", result.z_loss, expected.z_loss);
    near("gradient norm", result.gradient_norm, expected.gradient_norm);
    near("clip coefficient", result.clip_coefficient, expected.clip_coefficient);
    if (result.routing) {
      near("balance loss", result.routing->balance, expected.balance);
      near("router z-loss", result.routing->router_z, expected.router_z);
      near("dropped share", result.routing->dropped.value_or(0), expected.dropped);
      if (result.routing->dropped.has_value() != (s.capacity > 0) && found.empty())
        found = where + "the dropped share is not reported";
      if (!same_router_biases(runner.buffers(), state.parameters) && found.empty())
        found = where + "router biases are others";
      near("load", result.routing->worst_load, worst_load(before.balance.counts));
    }
    runner.parameters().settle_weights();
    const impl::ParameterBuffers& buffers = runner.buffers();
    const auto off = [&](at::Tensor impl::ParameterBuffers::*which,
                         const reference::Parameters<double>& wanted, Of of = Of::shards) {
      return distance(whole_model(runner, which, of), buffers.model, wanted);
    };
    compare(where + "the gradient", off(&impl::ParameterBuffers::gradients, before.gradients), c.tolerance);
    compare(where + "what the optimizer holds", off(&impl::ParameterBuffers::master, state.parameters),
            c.tolerance);
    if (buffers.whole(buffers.weights))
      compare(where + "this rank's weights",
              off(&impl::ParameterBuffers::weights, state.parameters, Of::this_rank), c.tolerance);
  }
  return found;
}

/// How far the first step of a layout in bf16 is off replicate's, of the same weights and batch: the sums run
/// in another order, and no more (spec/metrics/scaling.md, C2). Empty where it is within that.
inline std::string first_step_off_replicates(const LayoutCase& c, const spec::Layout& layout,
                                             impl::Communicator& communicator, at::Device device) {
  const std::int64_t ranks = communicator.size();
  const auto whole = whole_batch(c, ranks, 0);
  const auto tokens = static_cast<double>(whole.valid_tokens());
  const auto first_step = [&](const spec::Layout& each) {
    StepRunner runner(tiny_model(c.seed), Dtype::bf16, device, communicator, each, layout_settings(), c.seed);
    return runner.step(dealt(whole, c, ranks, communicator.rank()), tokens, 1e-2);
  };
  const auto one = first_step(layout);
  const auto other = first_step(spec::layout_of(spec::DataParallel::replicate, ranks));
  const auto most = spec::metrics::most_differences(Dtype::bf16, tokens);
  const auto apart = [](double a, double b) { return std::abs(a / b - 1); };
  const double loss = apart(one.cross_entropy, other.cross_entropy),
               norm = apart(one.gradient_norm, other.gradient_norm);
  return loss <= most.first_loss && norm <= most.first_gradient_norm
             ? ""
             : "loss " + std::to_string(one.cross_entropy) + ", replicate's " +
                   std::to_string(other.cross_entropy) + "; gradient norm " +
                   std::to_string(one.gradient_norm) + ", " + std::to_string(other.gradient_norm);
}

}  // namespace assay::tests
