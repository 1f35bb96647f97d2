// labels: unit property golden fault
// A token at a time, with keys and values kept, gives what whole forward passes give; and greedily what
// transformers gives (golden/greedy).
#include "impl/generate/generate.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/generate/loaded_weights.hpp"
#include "impl/params/layouts/local_parameters.hpp"
#include "spec/error.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/tiny_models.hpp"
#include "tests/support/weight_folders.hpp"

namespace assay::impl::generate::generate_test {
namespace {

TokenBatch batch_of(const at::Tensor& ids) {
  return {.B = ids.size(0),
          .T = ids.size(1),
          .inputs = ids.reshape({-1}),
          .targets = {},
          .positions = {},
          .documents = {}};
}

/// A model with initial weights, router biases of some size among them.
struct Fresh {
  ParameterBuffers buffers;
  LocalParameters parameters;
  Model model;

  Fresh(const spec::ModelSpec& spec, Dtype dtype, std::uint64_t seed)
      : buffers(made(spec, dtype, seed)),
        parameters(buffers, spec),
        model(spec, parameters, std::max<std::int64_t>(spec.context, 32), scalar_type(dtype), at::kCPU) {}

 private:
  static ParameterBuffers made(const spec::ModelSpec& spec, Dtype dtype, std::uint64_t seed) {
    ParameterBuffers out = allocate(spec, dtype, at::kCPU);
    initialise(out, spec, seed);
    if (out.router_biases.defined())
      out.router_biases.copy_(at::linspace(-0.2, 0.2, out.router_biases.numel()).view_as(out.router_biases));
    refresh(out.gains);
    return out;
  }
};

/// Largest difference of logits, beside their size, of texts of lengths `first` that go on for `more` tokens:
/// all at once, and step by step.
double difference(Model& model, const at::Tensor& ids, const std::vector<std::int64_t>& first,
                  std::int64_t more) {
  const auto B = ids.size(0);
  std::int64_t longest = 0;
  for (const std::int64_t length : first) longest = std::max(longest, length);
  KeyValueCache cache = model.cache(B, longest + more);
  at::Tensor tokens = at::zeros({B, longest}, at::kLong);
  for (std::int64_t b = 0; b < B; ++b) tokens[b].narrow(0, 0, first[b]).copy_(ids[b].narrow(0, 0, first[b]));
  std::vector<std::int64_t> counts = first;
  double most = 0;
  for (std::int64_t step = 0; step <= more; ++step) {
    const at::Tensor next = model.next_logits(tokens, counts, cache);
    for (std::int64_t b = 0; b < B; ++b) {
      const std::int64_t length = first[b] + step;
      EXPECT_EQ(cache.lengths()[b], length);
      const at::Tensor whole = model.logits(batch_of(ids[b].narrow(0, 0, length).unsqueeze(0)))[length - 1];
      most =
          std::max(most, ((next[b] - whole).abs().max() / whole.abs().max()).to(at::kDouble).item<double>());
    }
    tokens = at::zeros({B, 1}, at::kLong);
    for (std::int64_t b = 0; b < B; ++b) tokens[b][0] = ids[b][std::min(first[b] + step, ids.size(1) - 1)];
    counts.assign(first.size(), 1);
    if (step == more) break;
  }
  return most;
}

void equal_to_whole_passes(const spec::ModelSpec& spec, std::uint64_t seed) {
  const c10::InferenceMode no_autograd;
  Fresh fresh(spec, Dtype::f64, seed);
  const std::vector<std::int64_t> first = {1 + static_cast<std::int64_t>(seed % 5),
                                           1 + static_cast<std::int64_t>(seed / 5 % 7), 2};
  const at::Tensor ids =
      at::arange(3 * 16).mul(static_cast<std::int64_t>(7 + seed % 11)).remainder(spec.vocab).view({3, 16});
  EXPECT_LE(difference(fresh.model, ids, first, 6), 1e-11) << tests::describe(spec) << " seed " << seed;
}

TEST(Incremental, IsEqualToWholePassesForDrawnModels) {
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (const auto& draw :
         {tests::tiny_model, tests::sparse_model, tests::routed_model, tests::latent_model})
      equal_to_whole_passes(draw(seed), seed);
}

TEST(Incremental, IsEqualToWholePassesAtTheCorners) {
  std::uint64_t seed = 0;
  for (const auto& models : {tests::corner_models(), tests::latent_models()})
    for (const spec::ModelSpec& model : models) equal_to_whole_passes(model, ++seed);
}

/// A window cuts the oldest tokens off, those of the prompt and the model's own.
TEST(Incremental, AWindowIsThatOfTheModel) {
  spec::ModelSpec spec = tests::tiny_model(3);
  for (const std::int64_t window : {1, 2, 5}) {
    spec.window = window;
    equal_to_whole_passes(spec, 11);
  }
}

/// In bf16 both paths round; they stay as near each other as bf16 is to the values.
TEST(Incremental, IsNearWholePassesInBf16) {
  const c10::InferenceMode no_autograd;
  for (const auto& draw : {tests::tiny_model, tests::latent_model}) {
    const spec::ModelSpec spec = draw(2);
    Fresh fresh(spec, Dtype::bf16, 2);
    const at::Tensor ids = at::arange(2 * 12).mul(5).remainder(spec.vocab).view({2, 12});
    EXPECT_LE(difference(fresh.model, ids, {3, 5}, 4), 0.1) << tests::describe(spec);
  }
}

class Greedy : public testing::TestWithParam<std::string> {};

TEST_P(Greedy, IsTransformersGreedily) {
  const c10::InferenceMode no_autograd;
  const auto golden = tests::load_golden("greedy/" + GetParam() + ".json");
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const WeightsPlace place = find_weights(tests::weight_folder(GetParam()));
    LoadedWeights weights(place, type, at::kCPU);
    Model model(place.model, weights, 64, type, at::kCPU);
    Request request{.prompts = {}, .most = 20, .sampling = {.temperature = 0}, .ends = {}};
    std::vector<Ids> wanted;
    for (const char* number : {"0", "1", "2"}) {
      request.prompts.push_back(golden.ids(std::string("prompt_") + number));
      wanted.push_back(golden.ids(std::string("new_") + number));
    }
    EXPECT_EQ(generate(model, request), wanted) << "as a batch";
    for (std::size_t text = 0; text < wanted.size(); ++text) {
      Request alone = request;
      alone.prompts = {request.prompts[text]};
      EXPECT_EQ(generate(model, alone).front(), wanted[text]) << "alone";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Folders, Greedy, testing::ValuesIn(tests::weight_folders()),
                         [](const auto& of) { return of.param; });

TEST(Generate, EndsATextBehindAnEndAndGoesOnWithTheOthers) {
  const c10::InferenceMode no_autograd;
  const spec::ModelSpec spec = tests::tiny_model(1);
  Fresh fresh(spec, Dtype::f64, 1);
  Request request{
      .prompts = {{0}, {spec.vocab - 1, 0}, {1}}, .most = 12, .sampling = {.seed = 9}, .ends = {}};
  std::vector<std::pair<std::size_t, std::int64_t>> drawn;
  const std::vector<Ids> free = generate(
      fresh.model, request,
      {.agreed = {}, .drawn = [&](std::size_t text, std::int64_t id) { drawn.emplace_back(text, id); }});
  ASSERT_EQ(drawn.size(), 36u);
  EXPECT_EQ(drawn[4], std::pair(std::size_t{1}, free[1][1]));
  EXPECT_EQ(generate(fresh.model, request), free) << "another call, other texts";
  request.ends = {free[1][3]};
  const std::vector<Ids> ended = generate(fresh.model, request);
  for (std::size_t text = 0; text < 3; ++text) {
    const auto end = std::ranges::find(free[text], request.ends[0]);
    const Ids wanted(free[text].begin(), end == free[text].end() ? end : end + 1);
    EXPECT_EQ(ended[text], wanted) << text;
  }
  EXPECT_LE(ended[1].size(), 4u);
  request.sampling.seed = 10;
  EXPECT_NE(generate(fresh.model, request), ended);
}

/// Texts draw from streams of their own: two with one prompt part.
TEST(Generate, TextsOfOnePromptPart) {
  const c10::InferenceMode no_autograd;
  Fresh fresh(tests::tiny_model(1), Dtype::f64, 1);
  const std::vector<Ids> texts =
      generate(fresh.model, {.prompts = {{0}, {0}}, .most = 24, .sampling = {.seed = 9}, .ends = {}});
  EXPECT_NE(texts[0], texts[1]);
}

/// Rows that fill the batch up for tensor ranks are no texts.
TEST(Generate, RowsThatFillTheBatchUpChangeNothing) {
  const c10::InferenceMode no_autograd;
  Fresh fresh(tests::tiny_model(4), Dtype::f64, 4);
  Request request{.prompts = {{0, 0}, {0}}, .most = 8, .sampling = {}, .ends = {}};
  const std::vector<Ids> plain = generate(fresh.model, request);
  request.tensor_ranks = 5;
  EXPECT_EQ(generate(fresh.model, request), plain);
}

TEST(Cache, RefusesWhatItDoesNotHold) {
  KeyValueCache cache(tests::tiny_model(0), 2, 4, at::kFloat, at::kCPU);
  EXPECT_THROW(cache.begin(5, {1, 1}), std::invalid_argument);
  EXPECT_THROW(cache.begin(2, {3, 1}), std::invalid_argument);
  EXPECT_THROW(cache.begin(2, {2}), std::invalid_argument);
  EXPECT_FALSE(cache.begin(3, {3, 1}).defined());
  cache.end();
  EXPECT_EQ(cache.lengths(), (std::vector<std::int64_t>{3, 1}));
  EXPECT_THROW(cache.begin(2, {1, 1}), std::invalid_argument) << "several tokens behind others";
  EXPECT_TRUE(at::equal(cache.begin(1, {1, 1}), at::tensor({3, 1}, at::kInt).view({2, 1})));
  cache.end();
  EXPECT_THROW(cache.begin(1, {1, 1}), std::invalid_argument) << "more than it holds";
  EXPECT_NO_THROW(cache.begin(1, {0, 1}));
}

TEST(LoadedWeights, HaveNoGradients) {
  const WeightsPlace place = find_weights(tests::weight_folder("qwen3"));
  EXPECT_TRUE(place.hugging_face);
  LoadedWeights weights(place, at::kBFloat16, at::kCPU);
  EXPECT_THROW(weights.gradients(0), std::logic_error);
  EXPECT_THROW(find_weights(tests::weight_folder("qwen3") + "/.."), UserError);
}

}  // namespace
}  // namespace assay::impl::generate::generate_test
