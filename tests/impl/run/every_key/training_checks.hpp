#pragma once
// What settings of training, optimizer, loss and schedule change.
#include "tests/impl/run/every_key/workshop.hpp"

namespace assay::tests::every_key {

inline std::map<std::string, Check> training_checks() {
  return {
      {"train.steps",
       [](Workshop& shop) {
         expect(shop, {}, {{"train.steps=3", "1 2 3 "}, {"train.steps=5", "1 2 3 4 5 "}}, steps_done);
       }},
      {"train.tokens",  // 4 sequences of 16 a step
       [](Workshop& shop) {
         expect(shop, {"-train.steps"}, {{"train.tokens=192", "1 2 3 "}, {"train.tokens=193", "1 2 3 4 "}},
                steps_done);
       }},
      {"train.on_non_finite",
       [](Workshop& shop) {
         // The first update makes weights so large that no later loss is a number.
         const Settings grows = {"optimizer.learning_rate=1e30", "schedule.warmup_steps=0"};
         const auto with = [&](Settings more) {
           more.insert(more.end(), grows.begin(), grows.end());
           return shop.train(more);
         };
         const Outcome stopped = with({"train.on_non_finite=stop"});
         EXPECT_EQ(stopped.code, static_cast<int>(ExitCode::non_finite));
         EXPECT_EQ(checkpoints(stopped), "step_00000001 ") << "the state before the bad step";
         const Outcome skipped = with({"train.on_non_finite=skip"});
         EXPECT_EQ(skipped.code, 0) << skipped.refusal;
         EXPECT_EQ(steps_done(skipped), "1 ");
         ASSERT_EQ(skipped.run.skipped.size(), 3u);
         for (std::int64_t i = 0; i < 3; ++i) {
           const auto& step = skipped.run.skipped[static_cast<std::size_t>(i)];
           EXPECT_EQ(step.step, i + 2);
           EXPECT_EQ(step.skipped, i + 1);
           EXPECT_EQ(step.allowed, 10);
           EXPECT_NE(step.reason, "");
         }
         EXPECT_NE(skipped.printed.find("3 steps that were not finite"), std::string::npos)
             << skipped.printed;
         EXPECT_EQ(checkpoints(skipped), "step_00000004 ");
       }},
      {"train.max_skipped",
       [](Workshop& shop) {
         const Settings grows = {"optimizer.learning_rate=1e30", "schedule.warmup_steps=0",
                                 "train.on_non_finite=skip"};
         for (const auto& [most, code] : {std::pair("3", 0), std::pair("2", 76)}) {
           Settings settings = grows;
           settings.push_back(std::string("train.max_skipped=") + most);
           const Outcome outcome = shop.train(settings);
           EXPECT_EQ(outcome.code, code) << outcome.refusal;
           EXPECT_EQ(checkpoints(outcome), code == 0 ? "step_00000004 " : "step_00000003 ");
         }
       }},
      {"train.seed",
       [](Workshop& shop) {
         differ(shop, {}, {"", "train.seed=7"}, samples_read);
         // Initial weights: a step of all 24 samples of the file is the same for every order of them, but for
         // rounding.
         differ(shop, files_of(shop, {"batch.sequences=24"}), {"", "train.seed=7"},
                [](const Outcome& o) { return losses(o).substr(0, std::string("5.5452").size()); });
       }},
      {"optimizer.learning_rate", changes({}, {"", "optimizer.learning_rate=0.01"}, later_losses)},
      {"optimizer.beta1", changes({}, {"", "optimizer.beta1=0.5"}, later_losses)},
      {"optimizer.beta2", changes({}, {"", "optimizer.beta2=0.5"}, later_losses)},
      {"optimizer.eps", changes({}, {"", "optimizer.eps=0.01"}, later_losses)},
      {"optimizer.weight_decay", changes({}, {"", "optimizer.weight_decay=0"}, later_losses)},
      {"optimizer.clip", changes({}, {"", "optimizer.clip=0", "optimizer.clip=0.01"},
                                 [](const Outcome& o) {
                                   return each_step(o, &spec::record::Step::clip_coefficient, 0) +
                                          later_losses(o);
                                 })},
      {"optimizer.states",
       [](Workshop& shop) {
         const Settings states = {"optimizer.states=f32", "optimizer.states=bf16"};
         differ(shop, {"compute.dtype=bf16"}, states, later_losses);
         differ(shop, {"compute.dtype=bf16"}, states, weight_bytes);
         Settings both = {"compute.dtype=bf16", "optimizer.states=bf16", "checkpoint.every=2"};
         const Outcome whole = shop.train(both);
         EXPECT_EQ(losses(whole), losses(shop.train(both)));
         both.push_back("checkpoint.resume=" + shop.folder("run/checkpoints/step_00000002"));
         both.push_back("run.directory=" + shop.folder("rest"));
         const Outcome rest = shop.train(both, true);
         ASSERT_EQ(rest.run.steps.size(), 2u) << rest.refusal;
         for (std::size_t i = 0; i < 2; ++i)
           EXPECT_EQ(rest.run.steps[i].loss, whole.run.steps[i + 2].loss) << i;
       }},
      {"loss.z_loss", changes({}, {"", "loss.z_loss=0.01"}, later_losses)},
      {"experts.balance", of_routers("experts.balance=0.5")},
      {"experts.router_z", of_routers("experts.router_z=0.05")},
      {"experts.balance_over", of_routers("experts.balance_over=global_batch")},
      {"experts.bias_rate",
       [](Workshop& shop) {
         differ(shop, {"model.name=" + shop.folder("biased.toml")}, {"", "experts.bias_rate=0.5"},
                later_losses);
         EXPECT_NE(shop.train({"experts.bias_rate=0.5"}).refusal.find("has no router bias"),
                   std::string::npos);
       }},
      {"experts.capacity",
       [](Workshop& shop) {
         of_routers("experts.capacity=1")(shop);
         const auto dropped = [](const Outcome& o) {
           return o.run.steps.back().dropped_choices.value_or(-1);
         };
         const std::string experts = "model.name=" + shop.folder("experts.toml");
         EXPECT_EQ(dropped(shop.train({experts})), -1);
         EXPECT_GT(dropped(shop.train({experts, "experts.capacity=1"})), 0);
         EXPECT_EQ(dropped(shop.train({experts, "experts.capacity=2"})), 0);  // all tokens of a sequence
         EXPECT_NE(shop.train({experts, "experts.capacity=1"}).printed.find("dropped"), std::string::npos);
       }},
      {"schedule.kind",
       changes({"-schedule.decay_steps"},
               {"schedule.kind=wsd", "schedule.kind=cosine", "schedule.kind=constant"}, rates_and_losses)},
      {"schedule.warmup_steps", changes({}, {"", "schedule.warmup_steps=2"}, later_losses)},
      {"schedule.decay_steps", changes({}, {"", "schedule.decay_steps=3"}, later_losses)},
      {"schedule.decay_shape", changes({}, {"", "schedule.decay_shape=1-sqrt"}, later_losses)},
      {"schedule.final_ratio",
       changes({"schedule.decay_steps=3"}, {"", "schedule.final_ratio=0.5"}, later_losses)},
  };
}

}  // namespace assay::tests::every_key
