// labels: unit property
// The memory that whole training steps take, counted where ATen's tensors get theirs, against the plan.
#include "spec/plan/plan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/comm/solo_communicator.hpp"
#include "tests/impl/params/counting_allocator.hpp"
#include "tests/impl/step/fp8_step_parity.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::memory_plan_test {
namespace {

using spec::Recompute;
namespace memory = spec::memory;

struct Drawn {
  memory::Setting setting;
  reference::Batch batch;
  spec::ModelSpec model;             ///< of which the setting's is what one tensor rank computes
  reference::Batch validation = {};  ///< of a forward pass of validation behind the step
};

/// Models and batches of every kind that the trainer takes, some with more activations than weights.
Drawn draw(spec::ModelSpec (*model)(std::uint64_t) = tests::tiny_model) {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1u << 30);
  const auto between = [](std::int64_t low, std::int64_t high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  Drawn out;
  memory::Setting& setting = out.setting;
  setting.model = model(seed);
  setting.model.width = between(8, 40);
  setting.model.ffn = between(8, 60);
  setting.model.vocab = between(10, 200);
  setting.model.context = 64;
  setting.dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16);
  setting.recompute = *rc::gen::elementOf(spec::all_recomputes);
  setting.micro = between(1, 4);
  setting.micro_batches = between(1, 3);
  // The runner's table of rope is as long as the context, so sequences are, too.
  setting.sequence_length = setting.model.context = between(1, 24);
  setting.documents = *rc::gen::arbitrary<bool>();
  out.model = setting.model;
  out.batch = tests::tiny_batch(setting.model, setting.micro * setting.micro_batches, setting.sequence_length,
                                setting.documents ? tests::Documents::packed : tests::Documents::whole,
                                tests::Ignored::some, seed);
  return out;
}

/// Bytes of what these tests have beside the plan's tensors: the scalars of a step (its numbers, losses, what
/// ATen makes of a number; of several ranks this rank's two losses beside their sums), and positions that the
/// batches of reference tests state even for sequences of one document.
std::int64_t most_beside(const Drawn& drawn) {
  // What routers' losses and loads are of a step, of a micro-batch, and where they are read; shares of the
  // batch so far behind each forward; by how much biases move.
  const spec::ModelSpec& model = drawn.setting.model;
  const std::int64_t numbers = model.experts ? 4 + 2 * model.experts->count : 0,
                     routing = 8 * model.sparse_layers() * numbers * (4 + drawn.setting.micro_batches);
  return 256 + routing + (drawn.setting.tensor_ranks > 1 ? 16 : 0) +
         (drawn.setting.documents ? 0 : 4 * drawn.batch.B * drawn.batch.T);
}

/// Bytes that a step took at most.
std::int64_t measured_peak(const Drawn& drawn) {
  const std::int64_t tensor = drawn.setting.tensor_ranks;
  tests::SoloCommunicator communicator(static_cast<int>(tensor),
                                       0);  // others may hold less of the vocabulary
  const auto micro_batches = tests::micro_batches(drawn.batch, drawn.setting.micro);
  tests::CountingAllocator::installed().begin();
  tests::StepRunner trainer(drawn.model, drawn.setting.dtype, at::kCPU, communicator, spec::Layout{},
                            {.adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1},
                             .clip = 1,
                             .z_loss = 1e-4,
                             .balance = 0.01,
                             .router_z = drawn.setting.auxiliary.logits ? 1e-3 : 0,
                             .balance_of_batch = drawn.setting.auxiliary.of_batch,
                             .bias_rate = 1e-3,
                             .capacity = drawn.setting.capacity},
                            1, Dtype::f32, Dtype::f32, drawn.setting.recompute, drawn.setting.linear, tensor);
  trainer.step(micro_batches, static_cast<double>(drawn.batch.valid_tokens()), 1e-3);
  if (drawn.validation.B > 0) trainer.model().token_losses(tests::token_batch(drawn.validation, at::kCPU));
  return tests::CountingAllocator::installed().peak();
}

void expect_planned(const Drawn& drawn) {
  const memory::Plan plan = memory::plan(drawn.setting);
  const std::int64_t predicted = plan.peak.to_int64(), measured = measured_peak(drawn);
  RC_LOG() << tests::describe(drawn.setting.model) << " " << tests::describe(drawn.batch) << " "
           << to_string(drawn.setting.recompute) << " dtype " << static_cast<int>(drawn.setting.dtype)
           << " micro " << drawn.setting.micro << " at " << plan.moment << ": predicted " << predicted
           << ", measured " << measured << "\n";
  RC_ASSERT(measured >= predicted);
  RC_ASSERT(measured <= predicted + most_beside(drawn));
}

RC_GTEST_PROP(MemoryPlanImpl, StepsOfDrawnConfigurationsTakeWhatThePlanSays, ()) { expect_planned(draw()); }

RC_GTEST_PROP(MemoryPlanImpl, WithExpertsTheyTakeWhatThePlanSays, ()) {
  Drawn drawn = draw(tests::routed_model);
  drawn.setting.auxiliary = {
      .probabilities = true, .logits = *rc::gen::arbitrary<bool>(), .of_batch = *rc::gen::arbitrary<bool>()};
  drawn.setting.capacity = *rc::gen::element(0.0, 1.0, 1.5);
  expect_planned(drawn);
}

RC_GTEST_PROP(MemoryPlanImpl, WithLatentAttentionTheyTakeWhatThePlanSays, ()) {
  Drawn drawn = draw(tests::latent_model);
  drawn.setting.auxiliary.probabilities = drawn.setting.model.experts.has_value();
  expect_planned(drawn);
}

RC_GTEST_PROP(MemoryPlanImpl, OfATensorRankTheyTakeWhatThePlanSays, ()) {
  const bool experts = *rc::gen::arbitrary<bool>();
  Drawn drawn = experts ? draw(tests::routed_model) : draw();
  const auto t = *rc::gen::inRange<std::int64_t>(2, 5);
  drawn.model.kv_heads = *rc::gen::element<std::int64_t>(1, t);
  drawn.model.heads = t * *rc::gen::inRange<std::int64_t>(1, 3);
  drawn.model.ffn = t * *rc::gen::inRange<std::int64_t>(4, 12);
  drawn.model.qk_norm_across_heads = false;
  drawn.model.context = drawn.setting.sequence_length = 4 * t;
  if (experts) {
    drawn.setting.micro *= t;
    drawn.setting.auxiliary = {.probabilities = true,
                               .logits = *rc::gen::arbitrary<bool>(),
                               .of_batch = *rc::gen::arbitrary<bool>()};
    drawn.setting.capacity = *rc::gen::element(0.0, 1.5);
  }
  drawn.setting.model = spec::tensor_model(drawn.model, t);
  drawn.setting.tensor_ranks = t;
  drawn.setting.whole = drawn.model;
  drawn.batch = tests::tiny_batch(
      drawn.model, drawn.setting.micro * drawn.setting.micro_batches, drawn.setting.sequence_length,
      drawn.setting.documents ? tests::Documents::packed : tests::Documents::whole, tests::Ignored::some, 7);
  const memory::Plan plan = memory::plan(drawn.setting);
  const std::int64_t predicted = plan.peak.to_int64(), measured = measured_peak(drawn);
  RC_LOG() << tests::describe(drawn.model) << " tensor " << t << " " << to_string(drawn.setting.recompute)
           << " dtype " << static_cast<int>(drawn.setting.dtype) << " at " << plan.moment << ": predicted "
           << predicted << ", measured " << measured << "\n";
  RC_ASSERT(measured >= predicted);
  // Gradients that several ranks hold are packed for their sum: not while activations are there.
  RC_ASSERT(measured <= predicted + most_beside(drawn));
}

/// Twins that are kept, or made and gone again, beside the rest of a step.
TEST(MemoryPlanImpl, InFp8TheyTakeWhatThePlanSays) {
  using spec::quantise::Recipe;
  int number = 0;
  std::vector<spec::ModelSpec> models = parity::fp8_models();
  models.push_back(parity::fp8_whole_experts_model(false));
  for (const spec::ModelSpec& model : models)
    for (const Recipe recipe : {Recipe::fp8_tensor, Recipe::fp8_block, Recipe::mxfp8})
      for (const spec::QuantiseWeights weights : {spec::QuantiseWeights::step, spec::QuantiseWeights::use}) {
        Drawn drawn;
        memory::Setting& setting = drawn.setting;
        setting.model = model, setting.model.layers = 2;
        constexpr Dtype dtypes[] = {Dtype::bf16, Dtype::f32, Dtype::f64};
        setting.dtype = dtypes[number % 3];
        setting.recompute =
            spec::all_recomputes[static_cast<std::size_t>(number++) % std::size(spec::all_recomputes)];
        setting.micro = 2, setting.micro_batches = 2, setting.sequence_length = 64;
        setting.linear = {.recipe = recipe, .unquantised = {}, .weights = weights};
        setting.linear.experts =
            recipe == Recipe::fp8_tensor && model.experts && model.experts->width % 16 == 0;
        drawn.model = setting.model;
        drawn.batch = tests::tiny_batch(model, 4, 64, tests::Documents::whole, tests::Ignored::some, 7);
        const std::int64_t planned = memory::plan(setting).peak.to_int64(), measured = measured_peak(drawn);
        const std::string where =
            model.name + ", " + to_string(recipe) + ", " + std::string(to_string(setting.recompute));
        EXPECT_GE(measured, planned) << where;
        EXPECT_LE(measured, planned + most_beside(drawn)) << where;
      }
}

/// A forward pass of many more tokens than a micro-batch: it is the peak, and what it is planned to be.
RC_GTEST_PROP(MemoryPlanImpl, AValidationTakesWhatThePlanSays, ()) {
  Drawn drawn = draw(*rc::gen::arbitrary<bool>() ? tests::sparse_model : tests::tiny_model);
  drawn.setting.recompute = Recompute::block, drawn.setting.micro = 1, drawn.setting.micro_batches = 1;
  drawn.setting.auxiliary = {.probabilities = drawn.setting.model.experts.has_value(), .logits = false};
  drawn.batch = tests::tiny_batch(
      drawn.setting.model, 1, drawn.setting.sequence_length,
      drawn.setting.documents ? tests::Documents::packed : tests::Documents::whole, tests::Ignored::some, 5);
  drawn.setting.validation_batch = *rc::gen::inRange<std::int64_t>(24, 40);
  drawn.validation = tests::tiny_batch(
      drawn.setting.model, drawn.setting.validation_batch, drawn.setting.sequence_length,
      drawn.setting.documents ? tests::Documents::packed : tests::Documents::whole, tests::Ignored::some, 6);
  const memory::Plan plan = memory::plan(drawn.setting);
  RC_PRE(plan.moment.starts_with("validation, "));
  const std::int64_t predicted = plan.peak.to_int64(), measured = measured_peak(drawn),
                     N = drawn.validation.B * drawn.validation.T;
  RC_LOG() << tests::describe(drawn.setting.model) << " " << tests::describe(drawn.validation) << " dtype "
           << static_cast<int>(drawn.setting.dtype) << " at " << plan.moment << ": predicted " << predicted
           << ", measured " << measured << "\n";
  // The inputs of the step are gone here, those of the plan stay. Beside the plan stand positions that the
  // batch states without documents, or slots of more documents than are planned for.
  const std::int64_t inputs = drawn.batch.B * drawn.batch.T * 24 + 4 * (drawn.batch.B * drawn.batch.T + 65);
  RC_ASSERT(measured >= predicted - inputs);
  RC_ASSERT(measured <= predicted + most_beside(drawn) + 4 * N);
}

/// A step of which activations are nearly all.
Drawn long_step(const spec::ModelSpec& model, Recompute recompute) {
  Drawn drawn;
  drawn.setting.model = model;
  drawn.setting.model.layers = 6;
  drawn.setting.model.context = 64;
  drawn.setting.recompute = recompute;
  drawn.setting.micro = 8, drawn.setting.sequence_length = 64;
  drawn.model = drawn.setting.model;
  drawn.batch =
      tests::tiny_batch(drawn.setting.model, 8, 64, tests::Documents::whole, tests::Ignored::none, 4);
  return drawn;
}

void expect_each_takes_less(const spec::ModelSpec& model) {
  std::int64_t before = 0;
  for (const Recompute recompute : spec::recomputes_of(model)) {
    const Drawn drawn = long_step(model, recompute);
    const std::int64_t measured = measured_peak(drawn),
                       predicted = memory::plan(drawn.setting).peak.to_int64();
    EXPECT_GE(measured, predicted) << to_string(recompute);
    EXPECT_LE(measured, predicted + most_beside(drawn)) << to_string(recompute);
    EXPECT_TRUE(before == 0 || measured < before) << to_string(recompute);
    before = measured;
  }
}

TEST(MemoryPlanImpl, EachSettingOfRecomputeTakesLess) {
  expect_each_takes_less(tests::corner_models().front());
}

TEST(MemoryPlanImpl, EachSettingOfRecomputeTakesLessWithLatentAttention) {
  for (const spec::ModelSpec& model : tests::latent_models()) expect_each_takes_less(model);
}

}  // namespace
}  // namespace assay::impl::memory_plan_test
