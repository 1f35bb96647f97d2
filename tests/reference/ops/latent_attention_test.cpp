// labels: unit property golden
#include "reference/ops/latent_attention.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numbers>

#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_rope.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::latent_attention_test {
namespace {

using latent_attention::Setting;
using latent_attention::Weights;
using spec::rope::Pairs;
using tests::Allowed;
using tests::values;

const double u = unit_roundoff(Dtype::f64);

/// The weights by name, in the order of the op.
template <class S>
std::vector<std::pair<const char*, Tensor<S> Weights<S>::*>> members() {
  using W = Weights<S>;
  return {{"q_a_proj", &W::query_down},
          {"q_a_layernorm", &W::query_gain},
          {"q_b_proj", &W::query_up},
          {"kv_a_proj_with_mqa", &W::key_value_down},
          {"kv_a_layernorm", &W::key_value_gain},
          {"kv_b_proj", &W::key_value_up}};
}

struct Case {
  spec::latent_attention::Shape shape;
  Setting setting;
  Ids documents;
  Tensor<double> x, dy;
  Weights<double> weights;

  /// With the mask of this case's documents.
  Setting set() const {
    Setting all = setting;
    all.mask.documents = documents;
    return all;
  }
};

/// Compressed and direct queries, one head and several, odd sizes, value heads narrower and wider than key
/// heads; documents, windows, both pairings, factors of the angles and of the scores.
Case draw_case(int most_tokens = 4) {
  const auto between = [](Index least, Index most) { return *rc::gen::inRange<Index>(least, most + 1); };
  const Index B = between(1, 2), T = between(1, most_tokens), R = 2 * between(1, 2), own = between(1, 3);
  Case c;
  c.shape = {.B = B,
             .T = T,
             .D = between(1, 4),
             .H = between(1, 3),
             .Cq = between(0, 3),
             .Ckv = between(1, 3),
             .E = own + R,
             .R = R,
             .W = between(1, 5)};
  const bool packed = *rc::gen::arbitrary<bool>();
  for (Index n = 0; n < B * T; ++n) {
    const Index step = between(0, 1);
    const bool starts = n % T == 0;
    if (packed) c.documents.push_back(starts ? 0 : c.documents.back() + step);
    c.setting.positions.push_back(between(0, 40));
  }
  const auto& s = c.shape;
  c.setting.eps = 0.1;  // large enough that its place in the gradient matters
  c.setting.inverse_frequencies = spec::rope::inverse_frequencies(R, 1e4, {});
  c.setting.form = {.pairs = *rc::gen::element(Pairs::halves, Pairs::neighbours),
                    .factor = *rc::gen::element(1.0, 1.2)};
  c.setting.score_factor = *rc::gen::element(1.0, 1.5);
  c.setting.mask.window = between(0, 4);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  c.x = tests::normal({B, T, s.D}, seed);
  c.dy = tests::normal({B, T, s.H, s.W}, seed + 1);
  if (s.Cq > 0) {
    c.weights.query_down = tests::normal({s.Cq, s.D}, seed + 2);
    c.weights.query_gain = tests::normal({s.Cq}, seed + 3);
  }
  c.weights.query_up = tests::normal({s.H * s.E, s.Cq > 0 ? s.Cq : s.D}, seed + 4);
  c.weights.key_value_down = tests::normal({s.Ckv + R, s.D}, seed + 5);
  c.weights.key_value_gain = tests::normal({s.Ckv}, seed + 6);
  c.weights.key_value_up = tests::normal({s.H * (own + s.W), s.Ckv}, seed + 7);
  return c;
}

latent_attention::Forward<double> forward(const Case& c) {
  return latent_attention::forward(c.x, c.weights, c.shape, c.set());
}

latent_attention::Backward<double> gradient_of(const Case& c) {
  return latent_attention::backward(c.dy, c.x, c.weights, forward(c), c.shape, c.set());
}

std::string refusal(const Case& c) {
  try {
    forward(c);
    return "accepted";
  } catch (const SpecError& error) {
    return error.label();
  }
}

/// The case of the spec's example: every extent is 1 but T = 2, E = 3 and R = 2.
Case example() {
  const double q = std::sqrt(3.0) * std::log(3.0);
  Case c;
  c.shape = {.B = 1, .T = 2, .D = 1, .H = 1, .Cq = 0, .Ckv = 1, .E = 3, .R = 2, .W = 1};
  c.setting = {.eps = 9, .positions = {0, 1}, .inverse_frequencies = {std::numbers::pi / 2}};
  c.x = Tensor<double>({1, 2, 1}, {1, -1});
  c.dy = Tensor<double>({1, 2, 1, 1}, {0, 1});
  c.weights.query_up = Tensor<double>({3, 1}, {0, q, 0});
  c.weights.key_value_down = Tensor<double>({3, 1}, {4, 1, 0});
  c.weights.key_value_gain = Tensor<double>({1}, {1.25});
  c.weights.key_value_up = Tensor<double>({2, 1}, {0, 8});
  return c;
}

TEST(LatentAttentionReference, GivesTheSpecExample) {
  const Case c = example();
  const double ln3 = std::log(3.0), root = std::sqrt(3.0);
  // Every number goes through fewer than 60 roundings, of values below 16.
  const auto bound = [](std::size_t entries) {
    return Allowed::elementwise(std::vector<double>(entries, 16 * gamma(60, u)));
  };
  const auto expect = [&](const Tensor<double>& actual, const std::vector<double>& expected) {
    EXPECT_TRUE(tests::close(values(actual), {actual.shape(), expected}, bound(expected.size()), true));
  };
  for (const Pairs pairs : {Pairs::halves, Pairs::neighbours}) {  // of one pair they are the same
    Case paired = c;
    paired.setting.form.pairs = pairs;
    const auto out = forward(paired);
    expect(out.q, {0, root * ln3, 0, 0, 0, -root * ln3});
    expect(out.k, {0, 1, 0, 0, 0, -1});
    expect(out.v, {8, -8});
    expect(out.attention.y, {8, -4});
    expect(out.attention.lse, {ln3, std::log(4.0)});
    const auto gradient = gradient_of(paired);
    expect(gradient.dx, {0.72, 2.16 + 6 * ln3});
    expect(gradient.dweights.query_up, {0, -root, root});
    expect(gradient.dweights.key_value_down, {-0.36, -3 * ln3, -3 * ln3});
    expect(gradient.dweights.key_value_gain, {-3.2});
    expect(gradient.dweights.key_value_up, {0, -0.5});
  }
}

TEST(LatentAttentionReference, MatchesTransformersInFloat64) {
  for (const char* name : {"compressed_queries", "direct_queries", "halves", "yarn_documents"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/latent_attention/") + name + ".json");
    const auto number = [&](const char* key) { return static_cast<Index>(golden.scalar(key)); };
    Case c;
    c.x = tests::tensor(golden.tensor("x")), c.dy = tests::tensor(golden.tensor("dy"));
    c.shape = {.B = c.x.extent(0),
               .T = c.x.extent(1),
               .D = c.x.extent(2),
               .H = number("heads"),
               .Cq = number("query_rank"),
               .Ckv = number("key_value_rank"),
               .E = number("head_dim"),
               .R = number("rope_dim"),
               .W = number("value_dim")};
    const auto scaling = tests::rope_scaling(golden);
    c.documents = golden.ids("documents");
    c.setting = {
        .eps = golden.scalar("eps"),
        .positions = golden.ids("positions"),
        .inverse_frequencies = spec::rope::inverse_frequencies(c.shape.R, golden.scalar("theta"), scaling),
        .form = {.pairs = number("interleaved") ? Pairs::neighbours : Pairs::halves,
                 .factor = spec::rope::attention_factor(scaling)},
        .score_factor = spec::latent_attention::score_factor(scaling)};
    const bool direct = c.shape.Cq == 0;
    const auto stored = [&](const std::string& key) {
      return direct && key == "q_b_proj" ? std::string("q_proj") : key;
    };
    for (const auto& [key, member] : members<double>())
      if (!direct || member == &Weights<double>::query_up || std::string(key).starts_with("kv"))
        c.weights.*member = tests::tensor(golden.tensor(stored(key)));

    ASSAY_EXPECT_CLOSE(values(forward(c).attention.y), golden.tensor("y"), Allowed::relative(1e-10));
    const auto gradient = gradient_of(c);
    ASSAY_EXPECT_CLOSE(values(gradient.dx), golden.tensor("dx"), Allowed::relative(1e-10));
    for (const auto& [key, member] : members<double>()) {
      SCOPED_TRACE(key);
      if ((c.weights.*member).size() == 0)
        EXPECT_EQ((gradient.dweights.*member).size(), 0);
      else
        ASSAY_EXPECT_CLOSE(values(gradient.dweights.*member), golden.tensor("d" + stored(key)),
                           Allowed::relative(1e-10));
    }
  }
}

TEST(LatentAttentionReference, C1RejectsAnotherShape) {
  EXPECT_EQ(refusal(example()), "accepted");
  for (const auto& [name, member] : members<double>()) {
    Case c = example();
    c.weights.*member = Tensor<double>({2, 3});
    EXPECT_EQ(refusal(c), "latent_attention_c1") << name;
  }
  Case c = example();
  c.x = Tensor<double>({1, 3, 1});
  EXPECT_EQ(refusal(c), "latent_attention_c1");
  c = example();
  const auto saved = forward(c);
  EXPECT_THROW(latent_attention::backward(c.x, c.x, c.weights, saved, c.shape, c.set()), SpecError);
}

TEST(LatentAttentionReference, C2ToC4RejectWhatTheSpecRejects) {
  Case c = example();
  c.shape.Ckv = 0;
  EXPECT_EQ(refusal(c), "latent_attention_c2");
  c = example();
  c.shape.R = 3;
  EXPECT_EQ(refusal(c), "latent_attention_c3");
  c = example();
  c.setting.eps = 0;
  EXPECT_EQ(refusal(c), "latent_attention_c4");
}

RC_GTEST_PROP(LatentAttentionReference, BackwardMatchesCentralDifference, ()) {
  const Case c = draw_case(3);
  const auto gradient = gradient_of(c);
  const auto loss = [&](const Case& moved) { return tests::dot(c.dy, forward(moved).attention.y); };
  // The queries of a token that sees itself alone have no gradient: the bound is that of the op's scale.
  double largest = gradient.dx.flat().abs().maxCoeff();
  for (const auto& [name, member] : members<double>())
    if ((c.weights.*member).size() > 0)
      largest = std::max(largest, (gradient.dweights.*member).flat().abs().maxCoeff());
  const auto agree = [&](const char* name, const Tensor<double>& actual, const tests::Values& expected) {
    const std::vector<double> bound(expected.data.size(), 1e-7 * largest);
    const auto result =
        tests::close(values(actual), expected, Allowed::elementwise(bound), /*zeros_expected=*/true);
    if (!result) RC_FAIL(name + (": " + std::string(result.message())));
  };
  const auto by_x = [&](const Tensor<double>& x) {
    Case moved = c;
    moved.x = x;
    return loss(moved);
  };
  agree("x", gradient.dx, tests::central_difference(by_x, c.x));
  for (const auto& [name, member] : members<double>()) {
    if ((c.weights.*member).size() == 0) continue;
    const auto by_weight = [&, member = member](const Tensor<double>& weight) {
      Case moved = c;
      moved.weights.*member = weight;
      return loss(moved);
    };
    agree(name, gradient.dweights.*member, tests::central_difference(by_weight, c.weights.*member));
  }
}

RC_GTEST_PROP(LatentAttentionReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Case c = draw_case();
  Weights<Counted> weights;
  for (std::size_t i = 0; i < members<double>().size(); ++i)
    if (const auto& weight = c.weights.*members<double>()[i].second; weight.size() > 0)
      weights.*members<Counted>()[i].second = tests::counted(weight);
  const auto x = tests::counted(c.x), dy = tests::counted(c.dy);
  const Setting setting = c.set();
  latent_attention::Forward<Counted> out;
  const Count forward =
      tests::operations_of([&] { out = latent_attention::forward(x, weights, c.shape, setting); });
  const Count backward =
      tests::operations_of([&] { latent_attention::backward(dy, x, weights, out, c.shape, setting); });
  const Flops model = spec::latent_attention::forward_flops(c.shape, setting.mask);
  const Flops executed =
      spec::latent_attention::backward_flops(c.shape, setting.mask) +
      spec::attention::recomputed_flops(spec::latent_attention::attention_of(c.shape), setting.mask);
  RC_ASSERT(forward == model.matmul + model.vector);
  RC_ASSERT(backward == executed.matmul + executed.vector);
}

/// The sums of the scores in another order, as the published code has them: without keys and values of the
/// heads, which are absorbed into the query and the output (DeepSeek-V2, section 2.1.2).
RC_GTEST_PROP(LatentAttentionReference, IsAttentionOverTheCompressedVectors, ()) {
  const Case c = draw_case();
  const auto& s = c.shape;
  const auto out = forward(c);
  const Index own = s.E - s.R;
  const auto up = [&](Index h, Index row, Index i) {
    return c.weights.key_value_up(h * (own + s.W) + row, i);
  };
  Tensor<double> y(out.attention.y.shape());
  for (Index b = 0; b < s.B; ++b)
    for (Index h = 0; h < s.H; ++h)
      for (Index t = 0; t < s.T; ++t) {
        std::vector<double> mixed(static_cast<std::size_t>(s.Ckv), 0.0), scores;
        double sum = 0;
        const Index first =
            spec::attention::first_visible(spec::latent_attention::attention_of(s), c.set().mask, b, t);
        for (Index at = first; at <= t; ++at) {
          double score = 0;
          for (Index i = 0; i < s.Ckv; ++i) {
            double absorbed = 0;
            for (Index e = 0; e < own; ++e) absorbed += out.q(b, t, h, e) * up(h, e, i);
            score += absorbed * out.key_value_norm.y(b, at, i);
          }
          for (Index r = own; r < s.E; ++r) score += out.q(b, t, h, r) * out.k(b, at, 0, r);
          scores.push_back(c.setting.score_factor * score / std::sqrt(static_cast<double>(s.E)));
        }
        for (double score : scores) sum += std::exp(score - out.attention.lse(b, h, t));
        RC_ASSERT(std::abs(sum - 1) < 1e-11);
        for (Index at = first; at <= t; ++at)
          for (Index i = 0; i < s.Ckv; ++i)
            mixed[static_cast<std::size_t>(i)] +=
                std::exp(scores[static_cast<std::size_t>(at - first)] - out.attention.lse(b, h, t)) *
                out.key_value_norm.y(b, at, i);
        for (Index w = 0; w < s.W; ++w)
          for (Index i = 0; i < s.Ckv; ++i)
            y(b, t, h, w) += up(h, own + w, i) * mixed[static_cast<std::size_t>(i)];
      }
  ASSAY_RC_CLOSE(values(y), values(out.attention.y), Allowed::relative(1e-10));
}

RC_GTEST_PROP(LatentAttentionReference, AllHeadsShareTheTurnedKey, ()) {
  const Case c = draw_case();
  const auto k = forward(c).k;
  for (Index b = 0; b < c.shape.B; ++b)
    for (Index t = 0; t < c.shape.T; ++t)
      for (Index h = 1; h < c.shape.H; ++h)
        for (Index r = c.shape.E - c.shape.R; r < c.shape.E; ++r) RC_ASSERT(k(b, t, h, r) == k(b, t, 0, r));
}

}  // namespace
}  // namespace assay::reference::latent_attention_test
