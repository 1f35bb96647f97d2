// labels: property
// Holds the derived mean and spread of the first loss to what models do over many draws of their initial
// weights. The forward pass here is written for this test alone, in float and without the reference, from
// spec/model/model.md.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "spec/grammar/demo_grammar.hpp"
#include "spec/model/initial_loss.hpp"
#include "spec/model/inventory.hpp"
#include "spec/random/philox.hpp"

namespace assay::spec::initial_loss_seeds_test {
namespace {

using Matrix = std::vector<float>;  ///< row-major
using Ids = std::vector<std::int64_t>;
constexpr std::int64_t sequences = 8, length = 32;

/// x [N, in] times the transpose of w [out, in]; w is stored as [in, out] so that the inner loop is
/// contiguous.
Matrix product(const Matrix& x, const Matrix& w, std::size_t in, std::size_t out) {
  Matrix y(x.size() / in * out);
  for (std::size_t n = 0; n < x.size() / in; ++n)
    for (std::size_t i = 0; i < in; ++i)
      for (std::size_t o = 0; o < out; ++o) y[n * out + o] += x[n * in + i] * w[i * out + o];
  return y;
}

/// A matrix of independent N(0, std^2) entries: which entry stands where does not matter to the distribution.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  Matrix operator()(std::int64_t rows, std::int64_t columns, double std) {
    const random::Stream stream(seed_, random::Site::test, next_++);
    Matrix w(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(std * stream.normal(i));
    return w;
  }

 private:
  std::uint64_t seed_;
  std::uint32_t next_ = 0;
};

Matrix normalised(Matrix x, std::size_t entries, double eps) {
  for (std::size_t n = 0; n < x.size() / entries; ++n) {
    double square = 0;
    for (std::size_t d = 0; d < entries; ++d) square += double(x[n * entries + d]) * x[n * entries + d];
    const auto rstd = static_cast<float>(1 / std::sqrt(square / double(entries) + eps));
    for (std::size_t d = 0; d < entries; ++d) x[n * entries + d] *= rstd;
  }
  return x;
}

/// Rotates each head of x [N, heads * E]; position n % length.
void rotate(Matrix& x, std::size_t heads, std::size_t E, double theta) {
  for (std::size_t n = 0; n < x.size() / (heads * E); ++n)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t e = 0; e < E / 2; ++e) {
        const double angle = double(n % length) * std::pow(theta, -2.0 * double(e) / double(E));
        float &a = x[(n * heads + h) * E + e], &b = x[(n * heads + h) * E + e + E / 2];
        const float c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle)), old = a;
        a = a * c - b * s;
        b = b * c + old * s;
      }
}

Matrix attention(const Matrix& q, const Matrix& k, const Matrix& v, std::size_t H, std::size_t K,
                 std::size_t E) {
  Matrix y(q.size());
  for (std::size_t n = 0; n < q.size() / (H * E); ++n)
    for (std::size_t h = 0; h < H; ++h) {
      const std::size_t first = n - n % length, g = h * K / H;
      std::vector<double> weights;
      double sum = 0;
      for (std::size_t s = first; s <= n; ++s) {
        double score = 0;
        for (std::size_t e = 0; e < E; ++e) score += q[(n * H + h) * E + e] * k[(s * K + g) * E + e];
        weights.push_back(std::exp(score / std::sqrt(double(E))));
        sum += weights.back();
      }
      for (std::size_t s = first; s <= n; ++s)
        for (std::size_t e = 0; e < E; ++e)
          y[(n * H + h) * E + e] += static_cast<float>(weights[s - first] / sum) * v[(s * K + g) * E + e];
    }
  return y;
}

void add(Matrix& x, const Matrix& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

void run_block(Matrix& x, const ModelSpec& m, Draws& draw) {
  const auto D = std::size_t(m.width), H = std::size_t(m.heads), K = std::size_t(m.kv_heads),
             E = std::size_t(m.head_dim);
  const auto F = std::size_t(m.ffn);
  const double residual = m.init_std / std::sqrt(2.0 * double(m.layers));
  Matrix n = normalised(x, D, m.norm_eps);
  Matrix q = product(n, draw(m.width, m.heads * m.head_dim, m.init_std), D, H * E);
  Matrix k = product(n, draw(m.width, m.kv_heads * m.head_dim, m.init_std), D, K * E);
  const Matrix v = product(n, draw(m.width, m.kv_heads * m.head_dim, m.init_std), D, K * E);
  if (m.qk_norm) q = normalised(q, E, m.norm_eps), k = normalised(k, E, m.norm_eps);
  rotate(q, H, E, m.rope_theta);
  rotate(k, K, E, m.rope_theta);
  add(x, product(attention(q, k, v, H, K, E), draw(m.heads * m.head_dim, m.width, residual), H * E, D));
  n = normalised(x, D, m.norm_eps);
  Matrix gate = product(n, draw(m.width, m.ffn, m.init_std), D, F);
  const Matrix up = product(n, draw(m.width, m.ffn, m.init_std), D, F);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
  add(x, product(gate, draw(m.ffn, m.width, residual), F, D));
}

double first_loss(const ModelSpec& m, const Ids& inputs, const Ids& targets, std::uint64_t seed) {
  Draws draw(seed);
  const auto D = std::size_t(m.width), V = std::size_t(m.vocab);
  const Matrix embedding = draw(m.vocab, m.width, m.init_std);  // [V, D]
  Matrix x;
  for (std::int64_t id : inputs)
    x.insert(x.end(), embedding.begin() + id * m.width, embedding.begin() + (id + 1) * m.width);
  for (std::int64_t layer = 0; layer < m.layers; ++layer) run_block(x, m, draw);
  Matrix head(D * V);
  const Matrix own = draw(m.vocab, m.width, m.init_std);
  for (std::size_t v = 0; v < V; ++v)
    for (std::size_t d = 0; d < D; ++d) head[d * V + v] = (m.tied_embeddings ? embedding : own)[v * D + d];
  const Matrix logits = product(normalised(x, D, m.norm_eps), head, D, V);
  double loss = 0;
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    double sum = 0;
    for (std::size_t v = 0; v < V; ++v) sum += std::exp(double(logits[n * V + v]));
    loss += std::log(sum) - logits[n * V + std::size_t(targets[n])];
  }
  return loss / double(inputs.size());
}

struct Case {
  std::string name;
  bool tied, qk_norm, text;
  double init_std;
};

class InitialLossOverSeeds : public testing::TestWithParam<Case> {};

/// Over 48 seeds the standardised deviations of the first loss have a mean near 0, a spread near 1, and none
/// beyond 4. Bounds: with spread 1, the mean of 48 has a standard error of 0.14 and the spread one of 0.10;
/// the rest of each margin is what the mean-field derivation may be off (initial_loss.md, "What is
/// approximate").
TEST_P(InitialLossOverSeeds, DeviationsAreStandardised) {
  const Case& c = GetParam();
  const ModelSpec model{.name = c.name,
                        .vocab = 128,
                        .width = 64,
                        .layers = 2,
                        .heads = 2,
                        .kv_heads = 1,
                        .head_dim = 16,
                        .ffn = 96,
                        .context = length,
                        .tied_embeddings = c.tied,
                        .qk_norm = c.qk_norm,
                        .rope_scaling = {},
                        .init_std = c.init_std};
  constexpr int seeds = 48;
  double sum = 0, square = 0, largest = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    Ids inputs, targets;
    for (std::int64_t s = 0; s < sequences; ++s) {
      const std::string text = grammar::demo().window(1, std::uint64_t(seed * sequences + s), length + 1);
      const random::Stream uniform(9, random::Site::test, std::uint32_t(seed * sequences + s));
      for (std::int64_t t = 0; t < length; ++t) {
        const auto at = [&](std::int64_t i) {
          return c.text ? std::int64_t(static_cast<unsigned char>(text[std::size_t(i)]))
                        : std::int64_t(uniform.below(std::uint64_t(i), 128));
        };
        inputs.push_back(at(t));
        targets.push_back(at(t + 1));
      }
    }
    const double z = expected_initial_loss(model, token_statistics(inputs, targets, length))
                         .deviations(first_loss(model, inputs, targets, std::uint64_t(100 + seed)));
    sum += z;
    square += z * z;
    largest = std::max(largest, std::abs(z));
  }
  const double mean = sum / seeds, spread = std::sqrt((square - sum * mean) / (seeds - 1));
  std::printf("%s: deviations have mean %+.2f, spread %.2f, largest %.2f\n", c.name.c_str(), mean, spread,
              largest);
  EXPECT_LT(std::abs(mean), 0.6);
  EXPECT_GT(spread, 0.5);
  EXPECT_LT(spread, 1.3);
  EXPECT_LT(largest, 4);
}

INSTANTIATE_TEST_SUITE_P(InitialLoss, InitialLossOverSeeds,
                         testing::Values(Case{"untiedText", false, false, true, 0.02},
                                         Case{"untiedUniform", false, false, false, 0.02},
                                         Case{"untiedWideText", false, true, true, 0.08},
                                         Case{"tiedText", true, true, true, 0.02},
                                         Case{"tiedUniform", true, false, false, 0.02},
                                         Case{"tiedWideText", true, true, true, 0.08}),
                         [](const auto& drawn) { return drawn.param.name; });

}  // namespace
}  // namespace assay::spec::initial_loss_seeds_test
