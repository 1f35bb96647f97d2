// labels: unit property
#include "reference/model/model.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_parameters.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::reference::model_test {
namespace {

using tests::Allowed;
using tests::Documents;
using tests::Ignored;
using tests::values;

/// The same sums in another order. A value of a tiny model goes through at most 3 blocks, forward and
/// backward, each with about 10 sums of at most 24 terms: under 900 roundings that depend on one another.
const Allowed rounding = Allowed::relative(gamma(900, unit_roundoff(Dtype::f64)));

struct Result {
  double loss;
  Tensor<double> logits;
  Parameters<double> gradients;
};

Result run(const Parameters<double>& parameters, const spec::ModelSpec& model, const Batch& batch,
           const model::Loss& loss) {
  const auto forward = model::forward(parameters, model, batch, loss);
  return {forward.loss.loss, forward.logits, model::backward(forward, parameters, model, batch, loss)};
}

model::Loss mean_loss(const Batch& batch, double z_loss = 0) {
  return {.normalizer = static_cast<double>(batch.valid_tokens()), .z_loss = z_loss};
}

TEST(ModelReference, WithAZeroHeadEveryTokenIsAsLikelyAndTheLossIsLogV) {
  auto model = tests::corner_models().front();
  auto parameters = tests::drawn_parameters(model, 1);
  parameters.at("lm_head.weight").flat() = 0;
  const auto batch = tests::tiny_batch(model, 2, 5, Documents::whole, Ignored::some, 2);
  const auto out = model::forward(parameters, model, batch, mean_loss(batch, 0.5));
  const double log_V = std::log(static_cast<double>(model.vocab));
  ASSAY_EXPECT_CLOSE((tests::Values{{2}, {out.loss.cross_entropy, out.loss.z_loss}}),
                     (tests::Values{{2}, {log_V, 0.5 * log_V * log_V}}), rounding);
}

/// Smaller than for a single op: a row that rms_norm finds nearly zero is steep. Rounding then weighs u *
/// loss / h, about 1e-12, below the bound wherever the largest gradient is above 1e-3 (checked).
constexpr double h = 2e-4;

/// Central differences of the whole model at up to `entries` entries of every parameter tensor.
void check_gradients(const spec::ModelSpec& model, const Batch& batch, Index entries, std::uint64_t seed) {
  auto parameters = tests::drawn_parameters(model, seed);
  const auto loss = mean_loss(batch, 1e-2);
  const auto gradients = run(parameters, model, batch, loss).gradients;
  const spec::random::Stream choice(seed, spec::random::Site::test, 9);
  for (auto& parameter : parameters) {
    const std::string& name = parameter.first;
    Tensor<double>& tensor = parameter.second;
    SCOPED_TRACE(name);
    const auto& gradient = gradients.at(name);
    const Index samples = std::min(entries, tensor.size());
    tests::Values actual{{samples}, {}}, expected{{samples}, {}};
    for (Index sample = 0; sample < samples; ++sample) {
      const auto i = static_cast<Index>(
          choice.below(static_cast<std::uint64_t>(sample), static_cast<std::uint64_t>(tensor.size())));
      const Tensor<double> entry({1}, {tensor[i]});
      const auto difference = tests::central_difference(
          [&](const Tensor<double>& moved) {
            tensor[i] = moved[0];
            return model::forward(parameters, model, batch, loss).loss.loss;
          },
          entry, h);
      tensor[i] = entry[0];
      actual.data.push_back(gradient[i]);
      expected.data.push_back(difference.data.front());
    }
    const double largest = gradient.flat().abs().maxCoeff();
    EXPECT_GT(largest, 1e-3) << "too small against the rounding of the loss divided by h";
    EXPECT_TRUE(tests::close(actual, expected,
                             Allowed::elementwise(std::vector<double>(actual.data.size(), 1e-7 * largest)),
                             true));
  }
}

TEST(ModelReference, BackwardMatchesCentralDifferenceOfEveryParameterTensor) {
  auto models = tests::corner_models();
  for (auto& model : tests::latent_models()) models.push_back(std::move(model));
  for (const auto& model : models) {
    SCOPED_TRACE(tests::describe(model));
    auto batch = tests::tiny_batch(model, 2, 6, Documents::whole, Ignored::some, 5);
    batch.documents = {0, 0, 0, 1, 3, 3, 1, 2, 2, 2, 2, 2};
    batch.positions = {0, 1, 2, 0, 0, 1, 0, 0, 1, 2, 3, 4};
    check_gradients(model, batch, 6, 7);
  }
}

/// Nine tokens: a key's bias adds alike to all scores of a query but for rope, so that distances make its
/// gradient.
TEST(ModelReference, BackwardMatchesCentralDifferenceOnDrawnModels) {
  for (std::uint64_t seed = 100; seed < 110; ++seed) {
    const auto model = tests::tiny_model(seed);
    SCOPED_TRACE(tests::describe(model));
    check_gradients(model, tests::tiny_batch(model, 1, 9, Documents::whole, Ignored::none, seed), 3, seed);
  }
}

RC_GTEST_PROP(ModelReference, PackedDocumentsGiveWhatTheyGiveAlone, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto parameters = tests::drawn_parameters(model, seed);
  const auto packed = tests::tiny_batch(model, 2, 8, Documents::packed, Ignored::some, seed);
  const auto loss = mean_loss(packed, 1e-3);
  const auto whole = run(parameters, model, packed, loss);

  double sum = 0;
  auto gradients = zeros(model);
  for (std::size_t begin = 0, end; begin < packed.ids.size(); begin = end) {
    const auto T = static_cast<std::size_t>(packed.T);
    for (end = begin + 1; end % T != 0 && packed.documents[end] == packed.documents[begin];) ++end;
    const auto part = [&](const Ids& all) {
      return Ids(all.begin() + static_cast<Index>(begin), all.begin() + static_cast<Index>(end));
    };
    const auto length = static_cast<Index>(end - begin);
    Batch alone{.B = 1,
                .T = length,
                .ids = part(packed.ids),
                .targets = part(packed.targets),
                .documents = {},
                .positions = {}};
    for (Index t = 0; t < length; ++t) alone.positions.push_back(t);
    const auto one = run(parameters, model, alone, loss);
    for (Index i = 0; i < one.logits.size(); ++i)
      RC_ASSERT(one.logits[i] == whole.logits[static_cast<Index>(begin) * model.vocab + i]);
    sum += one.loss;
    tests::add(gradients, one.gradients);
  }
  ASSAY_RC_CLOSE((tests::Values{{1}, {sum}}), (tests::Values{{1}, {whole.loss}}), rounding);
  ASSAY_RC_CLOSE(tests::joined(gradients), tests::joined(whole.gradients), rounding);
}

RC_GTEST_PROP(ModelReference, ATiedGradientIsTheSumOfBothUses, (std::uint64_t seed)) {
  auto model = tests::tiny_model(seed);
  const auto batch = tests::tiny_batch(model, seed);
  model.tied_embeddings = true;
  auto parameters = tests::drawn_parameters(model, seed);
  const auto tied = run(parameters, model, batch, mean_loss(batch));

  model.tied_embeddings = false;
  parameters["lm_head.weight"] = parameters.at("model.embed_tokens.weight");
  auto untied = run(parameters, model, batch, mean_loss(batch));
  RC_ASSERT(tied.loss == untied.loss);
  untied.gradients.at("model.embed_tokens.weight").flat() += untied.gradients.at("lm_head.weight").flat();
  untied.gradients.erase("lm_head.weight");
  ASSAY_RC_CLOSE(tests::joined(tied.gradients), tests::joined(untied.gradients), Allowed::exact());
}

RC_GTEST_PROP(ModelReference, LogitsSeeNoLaterToken, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto parameters = tests::drawn_parameters(model, seed);
  auto batch = tests::tiny_batch(model, 1, 6, Documents::whole, Ignored::none, seed);
  const auto before = run(parameters, model, batch, mean_loss(batch)).logits;
  const Index t = *rc::gen::inRange<Index>(0, 6);
  auto& id = batch.ids[static_cast<std::size_t>(t)];
  id = (id + 1) % model.vocab;
  const auto after = run(parameters, model, batch, mean_loss(batch)).logits;
  for (Index i = 0; i < t * model.vocab; ++i) RC_ASSERT(after[i] == before[i]);
  bool changed = false;
  for (Index v = 0; v < model.vocab; ++v) changed = changed || after(0, t, v) != before(0, t, v);
  RC_ASSERT(changed);
}

RC_GTEST_PROP(ModelReference, ASequenceWithoutTargetsTakesNoPart, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto parameters = tests::drawn_parameters(model, seed);
  auto batch = tests::tiny_batch(model, 2, 5, Documents::packed, Ignored::some, seed);
  for (std::size_t n = 5; n < 10; ++n) batch.targets[n] = Batch::ignored;
  RC_PRE(batch.valid_tokens() > 0);
  const auto loss = mean_loss(batch, 1e-3);
  const auto both = run(parameters, model, batch, loss);
  const auto first = run(parameters, model, tests::sequences(batch, 0, 1), loss);
  RC_ASSERT(both.loss == first.loss);
  ASSAY_RC_CLOSE(tests::joined(both.gradients), tests::joined(first.gradients), Allowed::exact());
}

RC_GTEST_PROP(ModelReference, LossAndGradientScaleWithOneOverTheNormalizer, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto parameters = tests::drawn_parameters(model, seed);
  const auto batch = tests::tiny_batch(model, seed);
  const auto one = run(parameters, model, batch, {.normalizer = 3, .z_loss = 1e-3});
  auto four = run(parameters, model, batch, {.normalizer = 12, .z_loss = 1e-3});
  for (auto& [name, gradient] : four.gradients) gradient.flat() *= 4;  // a power of two rounds nothing
  RC_ASSERT(one.loss == 4 * four.loss);
  ASSAY_RC_CLOSE(tests::joined(four.gradients), tests::joined(one.gradients), Allowed::exact());
}

}  // namespace
}  // namespace assay::reference::model_test
