#pragma once
// The ops of a mixture of experts, on any device: the router and the order of rows against the reference's
// definitions, grouped linears and weighted gates against those of single experts in fp64.
#include <ATen/ATen.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "impl/ops/grouped_linear/grouped_linear.hpp"
#include "impl/ops/math_type.hpp"
#include "impl/ops/permute/permute.hpp"
#include "impl/ops/router/router.hpp"
#include "impl/ops/swiglu/swiglu.hpp"
#include "reference/ops/load_balancing.hpp"
#include "reference/ops/permute.hpp"
#include "reference/ops/router.hpp"
#include "spec/ops/fp8_gemm/fp8_gemm.hpp"
#include "spec/ops/permute/permute.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

/// Close, where most may be 0: the gradients of one expert's logits, of experts without rows.
inline void expect_close(const tests::Values& got, const tests::Values& wanted,
                         const tests::Allowed& allowed) {
  const auto result = tests::close(got, wanted, allowed, /*zeros_expected=*/true);
  if (!result) RC_FAIL(std::string(result.message()));
}

inline spec::Experts draw_choice() {
  spec::Experts how;
  // Seldom more than 80: each lane of a warp then has up to 16 experts.
  how.count = *rc::gen::oneOf(rc::gen::inRange<Index>(1, 80), rc::gen::inRange<Index>(1, 80),
                              rc::gen::inRange<Index>(1, 80), rc::gen::element<Index>(128, 256, 512));
  how.active = 1 + *rc::gen::inRange<Index>(0, 1000) % std::min<Index>(how.count, 9);
  how.scoring = *rc::gen::element(spec::Scoring::softmax, spec::Scoring::sigmoid);
  how.renormalised = *rc::gen::arbitrary<bool>();
  how.scaling_factor = *rc::gen::element(1.0, 2.5);
  return how;
}

/// The same with groups of experts, of which some may be visited, and a router bias.
inline spec::Experts draw_steered_choice() {
  spec::Experts how = draw_choice();
  how.groups = *rc::gen::element<Index>(1, 2, 4, 8, 40);
  if (how.groups > 1) {
    how.count = how.groups * (how.groups <= 8 ? *rc::gen::element<Index>(2, 3, 4, 5, 6, 7, 8, 32)
                                              : *rc::gen::inRange<Index>(2, 9));
    how.active_groups = 1 + *rc::gen::inRange<Index>(0, 1000) % how.groups;
    how.active = 1 + *rc::gen::inRange<Index>(0, 1000) %
                         std::min<Index>(how.active_groups * (how.count / how.groups), 9);
  }
  how.router_bias = *rc::gen::arbitrary<bool>();
  return how;
}

/// Undefined where the model has none. In fp64 half are 0, so that experts with equal scores tie, and no two
/// others are equal. In fp32 they are multiples of 1/8, of either sign: sums with the scores below are equal
/// where their terms are, else 7e-5 apart at least.
inline at::Tensor draw_bias(const spec::Experts& how, std::uint64_t seed, at::ScalarType type) {
  if (!how.router_bias) return {};
  const at::Tensor bias = tests::normal({how.count}, seed, at::kDouble);
  if (type == at::kFloat) return (bias * 8).round() / 8;
  return at::where(bias > 0, bias, at::zeros_like(bias));
}

inline reference::Tensor<double> identity(Index X) { return exact(at::eye(X, at::kDouble)); }

/// Logits are multiples of 1/4: equal ones are equal in every type, others give scores apart. Sums of scores
/// and biases are equal where their terms are, else apart by more than fp64 rounds: with logits of one sign
/// no two sigmoids add up to 1.
inline void router_matches_reference(at::Device device) {
  const bool steered = *rc::gen::arbitrary<bool>();
  spec::Experts how = steered ? draw_steered_choice() : draw_choice();
  const auto type = *rc::gen::element(at::kFloat, at::kDouble);
  // A group's score is a sum of two: in fp32 too many of them are close.
  if (type == at::kFloat) how.groups = how.active_groups = 1;
  if (*rc::gen::inRange(0, 8) == 0 && how.groups == 1) how.count = 64, how.active = 40;
  const Index N = *rc::gen::inRange<Index>(0, 40), X = how.count, A = how.active;
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor drawn = (tests::normal({N, X}, seed, at::kDouble) * 6).round().clamp(-20, 20) / 4,
                   logits = steered ? drawn.abs().neg() : drawn, bias = draw_bias(how, seed + 7, type);
  const auto wanted = reference::router::forward(
      exact(logits), identity(X), bias.defined() ? exact(bias) : reference::Tensor<double>({0}), how);
  const router::Choice got =
      router::forward(logits.to(type).to(device, false, /*copy=*/true), how, /*groups=*/1,
                      /*keep_logits=*/false, bias.defined() ? bias.to(type).to(device) : bias);
  const at::Tensor experts = got.experts.cpu();
  RC_ASSERT(experts.numel() == static_cast<Index>(wanted.chosen.size()));
  for (Index i = 0; i < experts.numel(); ++i)
    RC_ASSERT(experts.const_data_ptr<std::int32_t>()[i] == wanted.chosen[static_cast<std::size_t>(i)]);
  const tests::Rounding rounding = tests::rounding_of(type, device);
  // exp, its argument of up to 10 in the last places, a sum of X, two divisions and a product.
  const double relative = rounding.gamma(static_cast<double>(X + A) + 6 + 2 * rounding.exponential + 2 * 10);
  const auto allowed = [&](const reference::Tensor<double>& of) {
    return tests::each(of.size(), [&](Index i) { return relative * std::abs(of[i]); });
  };
  ASSAY_RC_CLOSE(values(got.scores), values(wanted.scores), allowed(wanted.scores));
  ASSAY_RC_CLOSE(values(got.weights), values(wanted.weights), allowed(wanted.weights));

  const auto out = *rc::gen::element(type, type == at::kFloat ? at::kBFloat16 : type);
  const at::Tensor dweights = tests::normal({N, A}, seed + 1, type);
  const auto upstream = exact(dweights);
  const auto gradient =
      reference::router::backward(upstream, reference::Tensor<double>({0}), reference::Tensor<double>({0}),
                                  wanted, exact(logits), identity(X), how);
  const at::Tensor dlogits = router::backward(dweights.to(device), got, how, out);
  RC_ASSERT(dlogits.scalar_type() == out);
  // Each entry is a score times a difference of sums of at most A terms, none above this.
  const double store = tests::rounding_of(out).store;
  const auto bound = tests::each(gradient.dx.size(), [&](Index i) {
    const Index n = i / X;
    double sum = 0, t = 0;
    for (Index a = 0; a < A; ++a) {
      sum += std::abs(upstream[n * A + a]);
      t += wanted.scores[n * X + wanted.chosen[static_cast<std::size_t>(n * A + a)]];
    }
    const double of_score = how.scaling_factor * sum * (how.renormalised ? 2 / t : 1);
    const double terms = wanted.scores[i] * 2 * of_score;
    return 2 * relative * terms + store * (std::abs(gradient.dx[i]) + 2 * relative * terms);
  });
  expect_close(values(dlogits), values(gradient.dx), bound);
}

/// Counts, values and gradients of the auxiliary losses, of rows in groups.
inline void router_losses_match_reference(at::Device device) {
  spec::Experts how = draw_choice();
  Index G = *rc::gen::inRange<Index>(1, 5), rows = *rc::gen::inRange<Index>(1, 12);
  // Seldom so many choices of a group, and rows of all, that several blocks of a GPU count and sum them.
  if (*rc::gen::inRange(0, 12) == 0) {
    G = *rc::gen::inRange<Index>(1, 3), rows = *rc::gen::inRange<Index>(1366, 1500);
    how.count = *rc::gen::inRange<Index>(3, 9), how.active = 3;
  }
  const Index N = G * rows, X = how.count, A = how.active;
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto type = *rc::gen::element(at::kFloat, at::kDouble);
  const double balance = *rc::gen::element(0.0, 3.0), z = *rc::gen::element(0.0, 0.5),
               Z = static_cast<double>(N + *rc::gen::inRange<Index>(0, 50));
  const at::Tensor logits = (tests::normal({N, X}, seed, at::kDouble) * 6).round().clamp(-20, 20) / 4;
  const auto wanted =
      reference::router::forward(exact(logits), identity(X), reference::Tensor<double>({0}), how);
  const auto p = reference::router::probabilities(wanted.scores, how);
  const auto f = reference::load_balancing::shares<double>(wanted.chosen, A, X, G);
  const auto of_z = reference::load_balancing::z_forward(exact(logits), Z);

  const Normalizer tokens = at::full({}, Z, at::kDouble).to(device);
  const router::Choice got =
      router::forward(logits.to(type).to(device, false, /*copy=*/true), how, G, router::keeps_logits(how, z));
  RC_ASSERT(got.logits.defined() == (z > 0 && how.scoring == spec::Scoring::sigmoid));
  const at::Tensor counts = got.counts.cpu(), sums = router::losses(got, how, tokens).cpu();
  RC_ASSERT(counts.sizes() == at::IntArrayRef({G, X}) && sums.sizes() == at::IntArrayRef({4 + X}));
  const double* sum = sums.const_data_ptr<double>();
  for (Index e = 0; e < X; ++e) {
    Index of_all = 0;
    for (Index g = 0; g < G; ++g) {
      const auto count = static_cast<Index>(std::lround(f(g, e) * static_cast<double>(A * rows)));
      RC_ASSERT(counts.const_data_ptr<std::int32_t>()[g * X + e] == count);
      of_all += count;
    }
    RC_ASSERT(sum[4 + e] == static_cast<double>(of_all));
  }
  RC_ASSERT(sum[3] == 0);  // every choice has a row

  // Of a probability: exp, its argument of up to 10, two sums of X, two divisions; and of the logarithm of a
  // row's sum, to which the largest logit is added.
  const tests::Rounding rounding = tests::rounding_of(type, device);
  const double relative =
      rounding.gamma(2 * static_cast<double>(X) + static_cast<double>(A) + 8 + 3 * rounding.exponential + 20);
  const auto of_lse = [&](Index n) { return relative * (2 + 2 * std::abs(of_z.lse(n))); };
  const auto sum_of = [&](double terms) { return rounding.gamma(static_cast<double>(terms) + 5); };
  // Where shares are of more than these tokens: sums of probabilities in place of the balance loss.
  const Index kept = *rc::gen::inRange<Index>(0, N * A + 1);
  const at::Tensor ends = at::full({X}, kept, at::TensorOptions(device).dtype(at::kInt)),
                   apart = router::losses(got, how, tokens, ends, /*probabilities=*/true).cpu();
  RC_ASSERT(apart.sizes() == at::IntArrayRef({4 + 2 * X}));
  RC_ASSERT(tests::same_bits(apart.narrow(0, 1, 2), sums.narrow(0, 1, 2)));
  RC_ASSERT(tests::same_bits(apart.narrow(0, 4, X), sums.narrow(0, 4, X)));
  const double* with_probabilities = apart.const_data_ptr<double>();
  RC_ASSERT(with_probabilities[0] == 0 && with_probabilities[3] == static_cast<double>(N * A - kept));
  for (Index e = 0; e < X; ++e) {
    double of_expert = 0;
    for (Index n = 0; n < N; ++n) of_expert += p(n, e);
    RC_ASSERT(std::abs(with_probabilities[4 + X + e] - of_expert / Z) <=
              (relative + sum_of(static_cast<double>(N))) * (1 + relative) * of_expert / Z);
  }

  const double expected = reference::load_balancing::forward(p, f, A, Z);
  RC_ASSERT(std::abs(sum[0] - expected) <=
            (relative + sum_of(static_cast<double>(N * X))) * (1 + relative) * expected);
  double squares = 0, off = 0, entropy = 0, entropy_off = 0;
  for (Index n = 0; n < N; ++n) {
    const double lse = of_z.lse(n), delta = of_lse(n);
    squares += lse * lse;
    off += 2 * std::abs(lse) * delta + delta * delta;
    for (Index e = 0; e < X; ++e) {
      const double size = -std::log(p(n, e));
      entropy += p(n, e) * size;
      // -p ln p where p is off by `relative`, and the logarithm rounded.
      entropy_off += p(n, e) * (1 + 2 * size) * 2 * relative;
    }
  }
  RC_ASSERT(std::abs(sum[1] - squares / Z) <= (off + sum_of(static_cast<double>(N)) * (squares + off)) / Z);
  RC_ASSERT(std::abs(sum[2] - entropy / Z) <=
            (entropy_off + sum_of(static_cast<double>(N * X)) * (entropy + entropy_off)) / Z);

  const auto out = *rc::gen::element(type, type == at::kFloat ? at::kBFloat16 : type);
  const at::Tensor dweights = tests::normal({N, A}, seed + 1, type, 1.0 / static_cast<double>(N));
  const auto of_weights = exact(dweights), exact_logits = exact(logits);
  const bool given = *rc::gen::arbitrary<bool>();  // shares of more than these tokens
  const at::Tensor shares = tests::normal({1, X}, seed + 2, at::kDouble).abs();
  const auto dp = reference::load_balancing::backward(balance, given ? exact(shares / shares.sum()) : f, N, A,
                                                      Z),
             dl = reference::load_balancing::z_backward(z, exact(logits), of_z.lse, Z);
  const auto gradient =
      reference::router::backward(of_weights, dp, dl, wanted, exact_logits, identity(X), how);
  const at::Tensor dlogits =
      router::backward(dweights.to(device), got, how, out,
                       {.balance = balance,
                        .z = z,
                        .tokens = tokens,
                        .shares = given ? (shares / shares.sum()).view({X}).to(device) : at::Tensor()});
  const double store = tests::rounding_of(out).store;
  expect_close(values(dlogits), values(gradient.dx), tests::each(gradient.dx.size(), [&](Index i) {
                 const Index n = i / X;
                 double upstream = 0, t = 0, all = 0, largest = 0;
                 for (Index a = 0; a < A; ++a) {
                   upstream += std::abs(of_weights[n * A + a]);
                   t += wanted.scores[n * X + wanted.chosen[static_cast<std::size_t>(n * A + a)]];
                 }
                 for (Index e = 0; e < X; ++e) {
                   all += wanted.scores(n, e);
                   largest = std::max(largest, dp(n, e));
                 }
                 if (how.scoring == spec::Scoring::softmax) all = 1;
                 const double of_score = how.scaling_factor * upstream * (how.renormalised ? 2 / t : 1);
                 const double terms = wanted.scores[i] * 2 * (of_score + largest / all);
                 // 2 z / Z lse exp(l - lse): lse is off by delta in both places.
                 const double delta = of_lse(n), lse = std::abs(of_z.lse(n)),
                              share = std::exp(exact_logits[i] - of_z.lse(n));
                 const double of_loss =
                     2 * z / Z * share * ((lse + delta) * (1 + 2 * delta + 2 * relative) - lse);
                 const double bound = 2 * relative * (terms + std::abs(dl[i])) + of_loss;
                 return bound + store * (std::abs(gradient.dx[i]) + bound);
               }));
}

/// Rows by expert, in the order of slots; and back.
inline void permute_is_a_stable_sort(at::Device device) {
  const Index N = *rc::gen::element<Index>(0, 1, 3, 40, 700), A = *rc::gen::inRange<Index>(1, 6),
              X = *rc::gen::element<Index>(1, 2, 7, 64, 300), D = *rc::gen::element<Index>(1, 5, 8, 72);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto type = tests::draw_dtype();
  const at::Tensor experts =
      ((tests::normal({N, A}, seed, at::kDouble).abs() * 1000).to(at::kInt) % X).to(at::kInt).contiguous();
  std::vector<Index> wanted(static_cast<std::size_t>(N * A));
  std::iota(wanted.begin(), wanted.end(), 0);
  const auto* expert = experts.const_data_ptr<std::int32_t>();
  std::stable_sort(wanted.begin(), wanted.end(), [&](Index a, Index b) { return expert[a] < expert[b]; });
  const permute::Order order = permute::order(experts.to(device), X);
  const at::Tensor slots = order.slots.cpu(), rows = order.rows.cpu(), ends = order.ends.cpu();
  for (Index row = 0; row < N * A; ++row) {
    const Index slot = slots.const_data_ptr<std::int32_t>()[row];
    RC_ASSERT(slot == wanted[static_cast<std::size_t>(row)]);
    RC_ASSERT(rows.const_data_ptr<std::int32_t>()[slot] == row);
  }
  for (Index e = 0; e < X; ++e)
    RC_ASSERT(ends.const_data_ptr<std::int32_t>()[e] ==
              std::count_if(expert, expert + N * A, [&](std::int32_t each) { return each <= e; }));

  const at::Tensor x = tests::normal({N, D}, seed + 1, type), base = tests::normal({N, D}, seed + 2, type);
  const at::Tensor gathered = permute::gather(x.to(device), order);
  const at::Tensor by_row = x.index_select(0, slots.to(at::kLong).div(A, "floor"));
  RC_ASSERT(tests::same_bits(gathered, by_row));
  // Every row of a token is its own: base + A x, and the order of the sum is the slots'.
  const tests::Rounding rounding = tests::rounding_of(type);
  const auto sum = exact(base.to(at::kDouble) + x.to(at::kDouble) * static_cast<double>(A));
  const auto terms = exact(base.to(at::kDouble).abs() + x.to(at::kDouble).abs() * static_cast<double>(A));
  const at::Tensor combined = permute::combine(base.to(device), gathered, order);
  ASSAY_RC_CLOSE(values(combined), values(sum), tests::each(sum.size(), [&](Index i) {
                   return rounding.stored(sum[i], rounding.gamma(static_cast<double>(A + 1)) * terms[i]);
                 }));
}

/// The first `most` rows of each expert from each group of tokens, in the order of slots; the others stand
/// behind all of them and take no part.
inline void limited_order_is_the_references_plan(at::Device device) {
  const Index G = *rc::gen::inRange<Index>(1, 6), of_group = *rc::gen::element<Index>(1, 2, 7, 90),
              N = G * of_group, X = *rc::gen::element<Index>(1, 2, 7, 64, 300),
              A = 1 + *rc::gen::inRange<Index>(0, 100) % std::min<Index>(X, 5),
              D = *rc::gen::element<Index>(1, 8, 72);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto type = tests::draw_dtype();
  const double factor = *rc::gen::element(0.3, 1.0, 1.25, 2.0, 100.0);
  // Of few experts most of the time.
  const at::Tensor logits = tests::normal({N, X}, seed, at::kDouble) - at::arange(X, at::kDouble) * 0.3;
  spec::Experts how;
  how.count = X, how.active = A;
  const router::Choice choice = router::forward(logits.clone().to(device), how, G);
  const at::Tensor experts = choice.experts.cpu();
  reference::Ids chosen(experts.const_data_ptr<std::int32_t>(),
                        experts.const_data_ptr<std::int32_t>() + experts.numel());
  const auto plan = reference::permute::plan(chosen, N, A, X, factor, G);
  const Index most = spec::permute::capacity({.N = of_group, .A = A, .X = X}, factor);
  const permute::Order order =
      permute::limited(permute::order(choice.experts, X), choice.experts, choice.counts, most);
  const at::Tensor slots = order.slots.cpu(), rows = order.rows.cpu(), ends = order.ends.cpu();
  const auto* slot = slots.const_data_ptr<std::int32_t>();
  for (Index i = 0; i < N * A; ++i)
    RC_ASSERT(rows.const_data_ptr<std::int32_t>()[i] == plan.rows[static_cast<std::size_t>(i)]);
  for (Index e = 0; e < X; ++e)
    RC_ASSERT(ends.const_data_ptr<std::int32_t>()[e] == plan.offsets[static_cast<std::size_t>(e) + 1]);
  std::vector<Index> seen(slot, slot + N * A);
  for (Index r = 0; r < plan.R(); ++r)
    RC_ASSERT(slot[r] ==
              plan.tokens[static_cast<std::size_t>(r)] * A + plan.slots[static_cast<std::size_t>(r)]);
  std::sort(seen.begin(), seen.end());
  for (Index i = 0; i < N * A; ++i) RC_ASSERT(seen[static_cast<std::size_t>(i)] == i);
  const auto dropped = router::losses(choice, how, 1, order.ends).cpu();
  RC_ASSERT(dropped.const_data_ptr<double>()[3] == static_cast<double>(N * A - plan.R()));

  const at::Tensor x = tests::normal({N, D}, seed + 1, type), base = tests::normal({N, D}, seed + 2, type);
  at::Tensor gathered = permute::gather(x.to(device), order);
  const at::Tensor by_row = x.index_select(0, slots.narrow(0, 0, plan.R()).to(at::kLong).div(A, "floor"));
  RC_ASSERT(tests::same_bits(gathered.narrow(0, 0, plan.R()), by_row));
  // What was dropped is not read.
  gathered.narrow(0, plan.R(), N * A - plan.R()).fill_(std::numeric_limits<double>::quiet_NaN());
  const tests::Rounding rounding = tests::rounding_of(type);
  const at::Tensor kept = rows.ge(0).sum(1, true).to(at::kDouble);
  const auto sum = exact(base.to(at::kDouble) + x.to(at::kDouble) * kept);
  const auto terms = exact(base.to(at::kDouble).abs() + x.to(at::kDouble).abs() * kept);
  const at::Tensor combined = permute::combine(base.to(device), gathered, order);
  ASSAY_RC_CLOSE(values(combined), values(sum), tests::each(sum.size(), [&](Index i) {
                   return rounding.stored(sum[i], rounding.gamma(static_cast<double>(A + 1)) * terms[i]);
                 }));
}

/// Rows of X experts, `counts` of each, in `type` on `device`.
struct GroupedCase {
  at::Device device;
  at::ScalarType type;
  std::vector<Index> counts;
  Index in, out;
  std::uint64_t seed;
  Index X = static_cast<Index>(counts.size()), R = std::accumulate(counts.begin(), counts.end(), Index{0});
  at::Tensor x = tests::normal({R, in}, seed, type).to(device),
             dy = tests::normal({R, out}, seed + 1, type).to(device),
             weight = tests::normal({X * out, in}, seed + 2, type).to(device);

  at::Tensor ends() const {
    at::Tensor ends = at::empty({X}, at::kInt);
    std::partial_sum(counts.begin(), counts.end(), ends.data_ptr<std::int32_t>());
    return ends.to(device);
  }
  /// Weight gradients of bf16 by ATen's grouped GEMM are rounded to bf16 before they are added; our kernels,
  /// and GEMMs of one expert, sum in fp32.
  bool rounds_gradients() const {
    return R > 0 && grouped_linear::rows_known_on_device_alone(device, type, in, out) &&
           !grouped_linear::cuda::has_kernels();
  }
  template <class Body>
  void each_expert(const Body& body) const {
    Index begin = 0;
    for (Index e = 0; e < X; begin += counts[static_cast<std::size_t>(e++)])
      body(e, begin, counts[static_cast<std::size_t>(e)]);
  }
};

inline GroupedCase draw_grouped(at::Device device) {
  // Rows of each expert; often none.
  std::vector<Index> counts(static_cast<std::size_t>(*rc::gen::element<Index>(1, 2, 5, 9)));
  for (Index& count : counts) count = *rc::gen::element<Index>(0, 0, 1, 3, 20, 130);
  const auto type = tests::draw_dtype();
  const Index in = tests::draw_extent(device, 24, 128), out = tests::draw_extent(device, 24, 128);
  return {device, type, counts, in, out, *rc::gen::arbitrary<std::uint64_t>()};
}

/// `result` in fp64 and the sums of its terms' sizes, [rows, columns] each; `count` terms an entry.
inline testing::AssertionResult close_sums(const at::Tensor& got, const at::Tensor& result,
                                           const at::Tensor& sizes, Index count,
                                           const tests::Rounding& rounding) {
  const auto wanted = exact(result), terms = exact(sizes);
  return tests::close(values(got), values(wanted),
                      tests::each(wanted.size(),
                                  [&](Index i) {
                                    return rounding.stored(
                                        wanted[i], rounding.gamma(static_cast<double>(count + 2)) * terms[i]);
                                  }),
                      /*zeros_expected=*/true);
}

/// All three parts against GEMMs of single experts, of the same inputs in fp64 on the same device.
inline testing::AssertionResult grouped_linears_are_linears(const GroupedCase& c) {
  const at::Tensor ends = c.ends(), x = c.x.to(at::kDouble), dy = c.dy.to(at::kDouble),
                   weight = c.weight.to(at::kDouble).view({c.X, c.out, c.in});
  const tests::Rounding rounding = tests::rounding_of(c.type);
  at::Tensor y = at::zeros({c.R, c.out}, x.options()), y_sizes = y.clone(),
             dx = at::zeros({c.R, c.in}, x.options()), dx_sizes = dx.clone();
  c.each_expert([&](Index e, Index begin, Index rows) {
    const auto of = [&](const at::Tensor& all) { return all.narrow(0, begin, rows); };
    of(y).copy_(of(x).mm(weight[e].t()));
    of(y_sizes).copy_(of(x).abs().mm(weight[e].t().abs()));
    of(dx).copy_(of(dy).mm(weight[e]));
    of(dx_sizes).copy_(of(dy).abs().mm(weight[e].abs()));
  });
  if (auto result = close_sums(grouped_linear::forward(c.x, c.weight, ends), y, y_sizes, c.in, rounding);
      !result)
    return result << " of y";
  if (auto result =
          close_sums(grouped_linear::backward_input(c.dy, c.weight, ends), dx, dx_sizes, c.out, rounding);
      !result)
    return result << " of dx";

  const at::ScalarType sum_type = math_type(c.type);
  const tests::Rounding of_sum = tests::rounding_of(sum_type);
  const double store = c.rounds_gradients() ? unit_roundoff(Dtype::bf16) : 0;
  for (const auto sum : {linear::GradientSum::starts, linear::GradientSum::continues}) {
    const at::Tensor before = tests::normal({c.X * c.out, c.in}, c.seed + 3, sum_type).to(c.device);
    at::Tensor dweight = before.to(at::kDouble).view({c.X, c.out, c.in}).clone(), sizes = dweight.abs();
    if (sum == linear::GradientSum::starts) dweight.zero_(), sizes.zero_();
    Index most = 0;
    at::Tensor own = at::zeros_like(sizes);
    c.each_expert([&](Index e, Index begin, Index rows) {
      const at::Tensor left = dy.narrow(0, begin, rows).t(), right = x.narrow(0, begin, rows);
      own[e] = left.mm(right);
      dweight[e] += own[e];
      sizes[e] += left.abs().mm(right.abs());
      most = std::max(most, rows);
    });
    at::Tensor into = before.clone();
    grouped_linear::backward_weight(c.dy, c.x, ends, into, sum);
    const auto wanted = exact(dweight.view({-1, c.in})), terms = exact(sizes.view({-1, c.in})),
               rounded = exact(own.abs().view({-1, c.in}));
    if (auto result = tests::close(values(into), values(wanted),
                                   tests::each(wanted.size(),
                                               [&](Index i) {
                                                 const double bound =
                                                     of_sum.gamma(static_cast<double>(most + 2)) * terms[i];
                                                 return bound + store * (rounded[i] + bound);
                                               }),
                                   /*zeros_expected=*/true);
        !result)
      return result << (sum == linear::GradientSum::starts ? " of dweight" : " of dweight, added");
  }
  return testing::AssertionSuccess();
}

inline void grouped_linear_is_a_linear_an_expert(at::Device device) {
  const auto result = grouped_linears_are_linears(draw_grouped(device));
  if (!result) RC_FAIL(std::string(result.message()));
}

/// Values of a matrix in FP8 in fp64, and as tensor cores align them (spec/ops/fp8_gemm/fp8_gemm.hpp).
struct Fp8Values {
  at::Tensor values, magnitudes;
  Fp8Values(const quantise::Quantised& x, const spec::quantise::Quantisation& how)
      : values(quantise::dequantise(x, at::kDouble)) {
    const double least = spec::quantise::least_normal(how.format) * x.scales.item<double>();
    magnitudes = at::where(values == 0, values, values.abs().clamp_min(least));
  }
};

/// Forward and the input's gradient in FP8 against GEMMs of single experts, of the same codes in fp64.
inline testing::AssertionResult grouped_fp8_linears_are_linears(const GroupedCase& c) {
  using quantise::Orientation;
  using spec::quantise::Role;
  const auto how = [](Role role) {
    return spec::quantise::quantisation(spec::quantise::Recipe::fp8_tensor, role);
  };
  const at::Tensor ends = c.ends();
  const quantise::Quantised x8 = quantise::quantise(c.x, how(Role::activation), Orientation::rows).rows,
                            dy8 = quantise::quantise(c.dy, how(Role::gradient), Orientation::rows).rows;
  const quantise::Twins w8 = quantise::quantise(c.weight, how(Role::weight), Orientation::both);
  const Fp8Values x(x8, how(Role::activation)), dy(dy8, how(Role::gradient)),
      weight(w8.rows, how(Role::weight));
  const auto of_expert = [&](const at::Tensor& all, Index e) { return all.view({c.X, c.out, c.in})[e]; };
  at::Tensor y = at::zeros({c.R, c.out}, x.values.options()), y_sizes = y.clone(),
             dx = at::zeros({c.R, c.in}, x.values.options()), dx_sizes = dx.clone();
  c.each_expert([&](Index e, Index begin, Index rows) {
    const auto of = [&](const at::Tensor& all) { return all.narrow(0, begin, rows); };
    of(y).copy_(of(x.values).mm(of_expert(weight.values, e).t()));
    of(y_sizes).copy_(of(x.magnitudes).mm(of_expert(weight.magnitudes, e).t()));
    of(dx).copy_(of(dy.values).mm(of_expert(weight.values, e)));
    of(dx_sizes).copy_(of(dy.magnitudes).mm(of_expert(weight.magnitudes, e)));
  });
  const tests::Rounding rounding = tests::rounding_of(c.type);
  const bool kernels = c.device.is_cuda() && c.type == at::kBFloat16 && grouped_linear::cuda::has_kernels();
  const auto close = [&](const at::Tensor& got, const at::Tensor& result, const at::Tensor& sizes,
                         Index terms, spec::fp8_gemm::Accumulation accumulation) {
    if (!kernels) return close_sums(got, result, sizes, terms, rounding);
    const auto wanted = exact(result), magnitudes = exact(sizes);
    return tests::close(values(got), values(wanted),
                        tests::each(wanted.size(),
                                    [&](Index i) {
                                      return rounding.stored(
                                          wanted[i],
                                          spec::fp8_gemm::gemm_bound(accumulation, terms, magnitudes[i]));
                                    }),
                        /*zeros_expected=*/true);
  };
  using spec::fp8_gemm::Accumulation;
  if (auto result = close(grouped_linear::forward(x8, w8.rows, ends, c.type), y, y_sizes, c.in,
                          Accumulation::hopper_fast);
      !result)
    return result << " of y";
  if (auto result = close(grouped_linear::backward_input(dy8, w8.columns, ends, c.type), dx, dx_sizes, c.out,
                          Accumulation::hopper);
      !result)
    return result << " of dx";
  return testing::AssertionSuccess();
}

inline void grouped_fp8_linear_is_a_linear_an_expert(at::Device device) {
  GroupedCase drawn = draw_grouped(device);
  RC_PRE(device.is_cpu() || drawn.type != at::kDouble);  // no kernel quantises fp64
  const auto whole = [](Index extent) { return (extent + 15) / 16 * 16; };
  const auto result = grouped_fp8_linears_are_linears(
      {drawn.device, drawn.type, drawn.counts, whole(drawn.in), whole(drawn.out), drawn.seed});
  if (!result) RC_FAIL(std::string(result.message()));
}

/// A weighted gate is a gate whose rows are multiplied, and the gradient of a weight what it is multiplied
/// with.
inline void weighted_gate_is_a_gate_times_weights(at::Device device) {
  const Index N = *rc::gen::inRange<Index>(0, 30), F = tests::draw_extent(device, 40, 600);
  const auto type = tests::draw_dtype();
  const auto activation = *rc::gen::element(swiglu::Activation::silu, swiglu::Activation::gelu_tanh);
  const auto value = *rc::gen::element(ForwardValue::again, ForwardValue::kept);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor in = tests::normal({N, 2 * F}, seed, type), dy = tests::normal({N, F}, seed + 1, type),
                   weights = tests::normal({N, 1}, seed + 2, math_type(type)),
                   slots = at::arange(N - 1, -1, -1, at::kInt);
  const at::Tensor of_row = weights.flip(0).to(at::kDouble);  // slots turn the order around
  const at::Tensor wide = in.to(at::kDouble), gated = swiglu::aten::forward(wide, activation);
  const swiglu::RowWeights rows{weights.to(device), slots.to(device)};
  const tests::Rounding rounding = tests::rounding_of(type, device);
  const auto expect = [&](const at::Tensor& got, const at::Tensor& result, const at::Tensor& sizes,
                          double roundings) {
    const auto wanted = exact(result), terms = exact(sizes);
    ASSAY_RC_CLOSE(values(got), values(wanted), tests::each(wanted.size(), [&](Index i) {
                     return rounding.stored(wanted[i],
                                            rounding.gamma(roundings) * terms[i] + rounding.smallest);
                   }));
  };
  // swiglu's bounds (swiglu_parity.hpp) are of single entries; here all sizes are taken for what they are at
  // most.
  const at::Tensor gate = wide.narrow(1, 0, F).abs(), up = wide.narrow(1, F, F).abs(),
                   upstream = dy.to(at::kDouble);
  const double relative = 40 + 4 * rounding.exponential;
  expect(swiglu::forward_weighted(in.to(device), activation, rows), gated * of_row,
         gate * up * of_row.abs() * (1 + gate * gate), relative);

  at::Tensor d = dy.to(device, false, /*copy=*/true), dweights = at::full_like(rows.values, 7);
  const at::Tensor gradient =
      swiglu::backward_weighted(d, in.to(device, false, /*copy=*/true), activation, value, rows, dweights);
  at::Tensor wide_dy = upstream * of_row;
  const at::Tensor wanted =
      swiglu::aten::backward(wide_dy.clone(), wide.clone(), activation, ForwardValue::kept);
  const at::Tensor slope = (1 + gate) * (1 + gate) * (1 + gate);
  expect(gradient, wanted, at::cat({wide_dy.abs() * up * slope, wide_dy.abs() * gate * slope}, 1), relative);
  if (value == ForwardValue::again)
    expect(d, gated * of_row, gate * up * of_row.abs() * (1 + gate * gate), relative);
  else
    RC_ASSERT(tests::same_bits(d, dy));
  const auto sums = exact((upstream * gated).sum(1, true).flip(0)),
             sizes = exact((upstream.abs() * gate * up * (1 + gate * gate)).sum(1, true).flip(0));
  const tests::Rounding of_sum = tests::rounding_of(math_type(type), device);
  ASSAY_RC_CLOSE(values(dweights), values(sums), tests::each(sums.size(), [&](Index i) {
                   return of_sum.gamma(static_cast<double>(F) + relative) * sizes[i] + of_sum.smallest;
                 }));
}

}  // namespace assay::impl::parity
