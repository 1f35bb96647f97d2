#pragma once
// What settings of the machine, the layout and the run's folder change.
#include "impl/health/judge.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/determinism.hpp"
#include "spec/model/inventory.hpp"
#include "spec/parallel/expert_ranks.hpp"
#include "spec/parallel/partition.hpp"
#include "tests/impl/run/every_key/workshop.hpp"

namespace assay::tests::every_key {

inline void threads(Workshop& shop) {
  const std::size_t one = shop.train({"compute.threads=1"}).threads;
  EXPECT_EQ(shop.train({"compute.threads=2"}).threads, one + 1);
  EXPECT_EQ(shop.train({"compute.threads=4"}).threads, one + 3);
}

inline void device(Workshop& shop) {
  EXPECT_EQ(shop.train({"compute.device=cpu"}).run.start.ranks.at(0).device, "cpu");
  const Outcome gpu = shop.train({"compute.device=cuda"}), automatic = shop.train({"compute.device=auto"});
  if (gpu.code == 0) {
    EXPECT_EQ(gpu.run.start.ranks.at(0).device, "cuda:0");
    EXPECT_EQ(automatic.run.start.ranks.at(0).device, "cuda:0");
  } else {
    EXPECT_NE(gpu.refusal.find("no usable NVIDIA GPU"), std::string::npos) << gpu.refusal;
    EXPECT_EQ(automatic.run.start.ranks.at(0).device, "cpu");
  }
}

/// Our loops and plain products add in another order. A backend that is not there is refused.
inline void attention_backend(Workshop& shop) {
  differ(shop, {"compute.device=cpu"}, {"compute.attention=auto", "compute.attention=math"}, later_losses);
  for (const char* backend : {"cudnn", "flash"}) {
    const Outcome outcome = shop.train({"compute.device=cpu", std::string("compute.attention=") + backend});
    EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::usage));
    EXPECT_NE(outcome.refusal.find("runs on NVIDIA GPUs only"), std::string::npos) << outcome.refusal;
    EXPECT_FALSE(fs::exists(shop.folder("run"))) << "a refused run leaves no trace";
  }
}

/// A CPU's sums are in one order anyway: what the ops are given is seen.
inline void repeated_bits(Workshop& shop) {
  const std::string base = losses(shop.train({}));
  EXPECT_TRUE(impl::deterministic()) << "auto on a CPU";
  EXPECT_EQ(losses(shop.train({"compute.deterministic=off"})), base);
  EXPECT_FALSE(impl::deterministic());
  const Outcome on = shop.train({"compute.deterministic=on"});
  EXPECT_EQ(losses(on), base);
  EXPECT_TRUE(impl::deterministic());
  EXPECT_EQ(on.run.start.attention, "loops");
  EXPECT_EQ(on.run.start.deterministic, true);
  EXPECT_EQ(shop.train({"compute.attention=math"}).run.start.attention, "math");
}

/// A CPU emulates every recipe, of extents that the recipe's GEMMs take.
inline void linear(Workshop& shop) {
  differ(shop, {}, {"", "compute.linear=fp8_tensor"}, losses);
  const Outcome fp8 = shop.train({"compute.linear=fp8_tensor"});
  EXPECT_EQ(
      fp8.run.start.linear,
      "fp8_tensor: activations e4m3, weights e4m3, gradients e5m2; weights quantised after each update");
  EXPECT_FALSE(shop.train({}).run.start.linear);
  EXPECT_EQ(losses(shop.train({"compute.linear=bf16"})), losses(shop.train({})));
  const Outcome refused = shop.train({"compute.linear=mxfp8"});
  EXPECT_EQ(refused.code, static_cast<int>(ExitCode::usage));
  EXPECT_NE(refused.refusal.find("48"), std::string::npos) << refused.refusal;
}

inline void linear_layers(Workshop& shop) {
  const std::string two = "model.name=" + shop.scratch.path().string() + "/other.toml";
  differ(shop, {two, "compute.linear=fp8_tensor"},
         {"", "compute.linear_bf16_layers=first", "compute.linear_bf16_layers=1"}, losses);
  const Outcome none = shop.train({two, "compute.linear=fp8_tensor", "compute.linear_bf16_layers=2"});
  EXPECT_EQ(none.code, static_cast<int>(ExitCode::usage));
  EXPECT_NE(none.refusal.find("layers 0 to 1"), std::string::npos) << none.refusal;
}

/// Routed experts in FP8 as well, recorded as such; refused without experts, of odd extents, in other
/// recipes.
inline void linear_experts(Workshop& shop) {
  const std::string fp8 = "compute.linear=fp8_tensor", on = "compute.linear_experts=on",
                    routed = "model.name=" + shop.folder("routed.toml");
  differ(shop, {routed, fp8}, {"", on}, losses);
  const auto text = [](const Outcome& o) { return o.run.start.linear.value_or(""); };
  EXPECT_NE(text(shop.train({routed, fp8})).find("experts in the compute type"), std::string::npos);
  const std::string both = text(shop.train({routed, fp8, on}));
  EXPECT_NE(both.find("routed experts too"), std::string::npos) << both;
  EXPECT_EQ(both.find("compute type"), std::string::npos) << both;
  for (const Settings& bad :
       {Settings{routed, on}, Settings{fp8, on}, Settings{routed, "compute.linear=mxfp8", on},
        Settings{"model.name=" + shop.folder("experts.toml"), fp8, on}}) {
    const Outcome refused = shop.train(bad);
    EXPECT_EQ(refused.code, static_cast<int>(ExitCode::usage)) << refused.refusal;
  }
}

/// The same losses, with and without twins in memory.
inline void linear_weights(Workshop& shop) {
  const Settings fp8 = {"compute.linear=fp8_tensor"};
  const auto planned = [](const Outcome& o) {
    return std::to_string(o.run.start.planned_memory_bytes.value_or(0));
  };
  differ(shop, fp8, {"compute.linear_weights=step", "compute.linear_weights=use"}, planned);
  EXPECT_EQ(losses(shop.train({fp8[0], "compute.linear_weights=step"})),
            losses(shop.train({fp8[0], "compute.linear_weights=use"})));
}

/// On a CPU: refused. On a GPU what is recorded is told, and the losses are the same.
inline void cuda_graph(Workshop& shop) {
  const Outcome cpu = shop.train({"compute.cuda_graph=on"});
  EXPECT_EQ(cpu.code, static_cast<int>(ExitCode::usage));
  EXPECT_NE(cpu.refusal.find("captures steps on NVIDIA GPUs only"), std::string::npos) << cpu.refusal;
  EXPECT_FALSE(fs::exists(shop.folder("run"))) << "a refused run leaves no trace";
  if (shop.train({"compute.device=cuda"}).code != 0) return;
  const auto notices = [](const Outcome& o) {
    std::string text;
    for (const auto& warning : o.run.warnings) text += warning.code == "cuda_graph" ? warning.text : "";
    return text;
  };
  const Outcome off = shop.train({"compute.device=cuda", "compute.cuda_graph=off"}),
                on = shop.train({"compute.device=cuda", "compute.cuda_graph=on"});
  EXPECT_EQ(notices(off), "");
  EXPECT_NE(notices(on).find("are replayed"), std::string::npos) << notices(on);
  EXPECT_EQ(losses(on), losses(off));
}

/// The same losses from more FLOPs.
inline void recompute(Workshop& shop) {
  const auto executed = [](const Outcome& o) {
    return o.run.steps.empty() ? "" : std::to_string(o.run.steps[0].executed_flops.value_or(0));
  };
  differ(shop, {}, {"", "memory.recompute=attention", "memory.recompute=block"}, executed);
  const std::string latent = "model.name=" + shop.folder("latent.toml");
  differ(shop, {latent},
         {"", "memory.recompute=mla_up", "memory.recompute=attention", "memory.recompute=block"}, executed);
  for (const Settings& model : {Settings{}, Settings{latent}}) {
    const std::string base = losses(shop.train(model));
    for (const spec::Recompute each : spec::all_recomputes) {
      if (model.empty() && each == spec::Recompute::mla_up) continue;
      Settings settings = model;
      settings.push_back("memory.recompute=" + std::string(to_string(each)));
      EXPECT_EQ(losses(shop.train(settings)), base) << to_string(each);
    }
  }
  EXPECT_NE(shop.train({"memory.recompute=mla_up"}).refusal.find("of latent attention again"),
            std::string::npos);
}

/// A rate that grows without bound makes the loss lowest on the way: that checkpoint is kept, and a resumed
/// run knows how low it was.
inline void keep_best(Workshop& shop) {
  const Settings base = {"eval.share=0.5",          "eval.sequences=4",         "eval.every=1",
                         "checkpoint.keep=1",       "schedule.kind=constant",   "-schedule.decay_steps",
                         "schedule.warmup_steps=0", "optimizer.learning_rate=3"};
  const auto with = [&](Settings more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  const Outcome off = shop.train(with({"checkpoint.keep_best=off"}));
  EXPECT_EQ(checkpoints(off), "step_00000004 ");
  const Outcome on = shop.train(with({"checkpoint.keep_best=on"}));
  EXPECT_EQ(losses(on), losses(off));
  ASSERT_EQ(on.run.validations.size(), 4u);
  std::int64_t best = 0;
  double lowest = HUGE_VAL;
  for (const auto& validation : on.run.validations) {
    EXPECT_EQ(validation.lowest, validation.loss < lowest) << validation.step;
    if (validation.lowest) lowest = validation.loss, best = validation.step;
  }
  ASSERT_LT(best, 4) << "the rate is too low for this test";
  EXPECT_EQ(checkpoints(on), "best step_0000000" + std::to_string(best) + " step_00000004 ");
  EXPECT_EQ(fs::read_symlink(shop.folder("run/checkpoints/best")), "step_0000000" + std::to_string(best));

  const Outcome more =
      shop.train(with({"checkpoint.keep_best=on", "checkpoint.resume=auto", "train.steps=6"}), true);
  ASSERT_EQ(more.run.validations.size(), 6u) << more.refusal;
  for (std::size_t i = 4; i < 6; ++i) {
    EXPECT_EQ(more.run.validations[i].lowest, more.run.validations[i].loss < lowest);
    lowest = std::min(lowest, more.run.validations[i].loss);
  }
}

inline void resume(Workshop& shop) {
  shop.train({"train.steps=4", "checkpoint.every=2"});
  const Outcome anew = shop.train({"checkpoint.resume=never"}, true);
  EXPECT_EQ(anew.run.steps.size(), 4u);
  EXPECT_TRUE(anew.run.resumes.empty());
  EXPECT_NE(std::find(anew.files.begin(), anew.files.end(), shop.folder("run-2/run.jsonl")),
            anew.files.end());

  fs::remove_all(shop.folder("run/checkpoints/step_00000004"));
  const Outcome newest = shop.train({"checkpoint.resume=auto"}, true);
  ASSERT_EQ(newest.run.resumes.size(), 1u) << newest.refusal;
  EXPECT_EQ(newest.run.resumes[0].step, 2);

  const std::string second = shop.folder("run/checkpoints/step_00000002");
  const Outcome named =
      shop.train({"checkpoint.resume=" + second, "run.directory=" + shop.folder("c")}, true);
  ASSERT_EQ(named.run.resumes.size(), 1u) << named.refusal;
  EXPECT_EQ(named.run.resumes[0].path, second);
  EXPECT_EQ(steps_done(named), "3 4 ");

  // A run that was started when bits were not kept, by default or by name, goes on by default.
  shop.train({"compute.deterministic=off", "train.steps=4", "checkpoint.every=2"});
  fs::remove_all(shop.folder("run/checkpoints/step_00000004"));
  const Outcome kept = shop.train({"checkpoint.resume=auto"}, true);
  EXPECT_EQ(kept.run.resumes.size(), 1u) << kept.refusal;
}

inline void directory(Workshop& shop) {
  for (const char* name : {"here", "there"}) {
    const Outcome outcome = shop.train({"run.directory=" + shop.folder(name)});
    for (const char* file : {"/run.jsonl", "/checkpoints"})
      EXPECT_NE(std::find(outcome.files.begin(), outcome.files.end(), shop.folder(name) + file),
                outcome.files.end())
          << name << file;
  }
}

/// What a rank holds.
inline void layouts(Workshop& shop) {
  const spec::Inventory whole = spec::inventory(spec::find_model(shop.folder("model.toml")));
  const auto expect_held = [&](const std::string& layout, int parts_of_weights, int parts_of_moments) {
    Settings settings = {"parallel.data=" + layout};
    if (layout == "hybrid") settings.push_back("parallel.shard_ranks=2");
    const Together together = train_together(shop, 4, settings);
    // Weights that every rank holds are padded as the shares of the state are.
    const spec::Partition state = spec::partition(whole, parts_of_moments);
    EXPECT_EQ(together.weights, state.inventory.flat_size / parts_of_weights) << layout;
    EXPECT_EQ(together.moments, state.shard_size) << layout;
  };
  expect_held("replicate", 1, 1);
  expect_held("zero1", 1, 4);
  expect_held("shard", 4, 4);
  expect_held("hybrid", 2, 2);
}

inline void shard_ranks(Workshop& shop) {
  const spec::Inventory whole = spec::inventory(spec::find_model(shop.folder("model.toml")));
  for (const int ranks : {1, 2, 4})
    EXPECT_EQ(
        train_together(shop, 4, {"parallel.data=hybrid", "parallel.shard_ranks=" + std::to_string(ranks)})
            .moments,
        spec::partition(whole, ranks).shard_size)
        << ranks;
  const Outcome two = shop.train({"parallel.data=hybrid", "parallel.shard_ranks=2"});
  EXPECT_NE(two.refusal.find("does not divide the 1 data-parallel rank;"), std::string::npos) << two.refusal;
}

/// A part of every matrix, and the same losses.
inline void tensor(Workshop& shop) {
  const spec::ModelSpec model = spec::find_model(shop.folder("model.toml"));
  std::vector<double> losses;
  for (const std::int64_t t : {1, 2}) {
    const Together together = train_together(shop, static_cast<int>(t),
                                             {"compute.dtype=f64", "parallel.tensor=" + std::to_string(t)});
    EXPECT_EQ(together.weights, spec::inventory(spec::tensor_model(model, t)).flat_size) << t;
    if (losses.empty()) losses = together.losses;
    for (std::size_t step = 0; step < losses.size(); ++step)
      EXPECT_NEAR(together.losses[step], losses[step], 1e-11 * losses[step]) << t;
  }
  const Outcome alone = shop.train({"parallel.tensor=2"});
  EXPECT_NE(alone.refusal.find("does not divide the 1 rank;"), std::string::npos) << alone.refusal;
}

/// A part of the experts, and the same losses.
inline void expert(Workshop& shop) {
  const std::string named = "model.name=" + shop.folder("experts.toml");
  const spec::ModelSpec model = spec::find_model(shop.folder("experts.toml"));
  std::vector<double> losses;
  for (const std::int64_t e : {1, 2}) {
    const Together together =
        train_together(shop, 2, {named, "compute.dtype=f64", "parallel.expert=" + std::to_string(e)});
    const spec::Share share =
        spec::share(model, {.layout = spec::layout_of(spec::DataParallel::replicate, 2), .expert_ranks = e});
    EXPECT_EQ(together.weights, share.sets.front().partition.inventory.flat_size);
    if (losses.empty()) losses = together.losses;
    for (std::size_t step = 0; step < losses.size(); ++step)
      EXPECT_NEAR(together.losses[step], losses[step], 1e-11 * losses[step]) << e;
  }
  const Outcome alone = shop.train({named, "parallel.expert=2"});
  EXPECT_NE(alone.refusal.find("does not divide the 1 data-parallel rank;"), std::string::npos)
      << alone.refusal;
  EXPECT_NE(shop.train({"parallel.expert=2"}).refusal.find("has no experts"), std::string::npos);
}

/// The sum of two ranks' gradients, rounded to bf16 or not, moves the second loss.
inline void reduce(Workshop& shop) {
  const auto losses = [&](const std::string& dtype) {
    return train_together(shop, 2, {"compute.dtype=bf16", "parallel.reduce=" + dtype}).losses;
  };
  const std::vector<double> f32 = losses("f32"), bf16 = losses("bf16");
  EXPECT_EQ(f32[0], bf16[0]);
  EXPECT_NE(f32[1], bf16[1]);
  EXPECT_EQ(f32, losses("f32")) << "no two runs are alike";
  const auto recorded = [](const Outcome& o) { return o.run.start.layout ? o.run.start.layout->reduce : ""; };
  expect(shop, {"compute.dtype=bf16"}, {{"parallel.reduce=f32", "f32"}, {"parallel.reduce=bf16", "bf16"}},
         recorded);
}

/// A run on one rank has no watch: what the watch of several is given.
inline void stall_seconds(Workshop& shop) {
  for (const int seconds : {30, 600, 86400}) {
    const auto config = spec::load("", shop.with({"parallel.stall_seconds=" + std::to_string(seconds)}));
    EXPECT_EQ(impl::limits_of(20, static_cast<double>(config.stall_seconds)).outside, seconds);
  }
}

inline std::map<std::string, Check> machine_checks() {
  return {
      {"compute.dtype",
       changes({}, {"compute.dtype=f64", "compute.dtype=f32", "compute.dtype=bf16"}, losses)},
      {"compute.device", device},
      {"compute.attention", attention_backend},
      {"compute.deterministic", repeated_bits},
      {"compute.linear", linear},
      {"compute.linear_bf16_layers", linear_layers},
      {"compute.linear_experts", linear_experts},
      {"compute.linear_weights", linear_weights},
      {"compute.cuda_graph", cuda_graph},
      {"compute.threads", threads},
      {"memory.recompute", recompute},
      {"parallel.data", layouts},
      {"parallel.shard_ranks", shard_ranks},
      {"parallel.tensor", tensor},
      {"parallel.expert", expert},
      {"parallel.reduce", reduce},
      {"parallel.check_replicas_every",
       [](Workshop& shop) {
         expect(shop, {},
                {{"parallel.check_replicas_every=0", ""}, {"parallel.check_replicas_every=2", "2 4 "}},
                [](const Outcome& o) {
                  std::string steps;
                  for (const auto& step : o.run.steps)
                    if (step.weights_hash) steps += std::to_string(step.step) + " ";
                  return steps;
                });
       }},
      {"parallel.stall_seconds", stall_seconds},
      {"run.directory", directory},
      {"checkpoint.every",
       [](Workshop& shop) {
         expect(shop, {"checkpoint.keep=9"},
                {{"checkpoint.every=0", "step_00000004 "},
                 {"checkpoint.every=1", "step_00000001 step_00000002 step_00000003 step_00000004 "},
                 {"checkpoint.every=3", "step_00000003 step_00000004 "}},
                checkpoints);
       }},
      {"checkpoint.minutes",
       [](Workshop& shop) {
         expect(shop, {"checkpoint.keep=9", "checkpoint.asynchronous=off"},
                {{"checkpoint.minutes=0", "step_00000004 "},
                 {"checkpoint.minutes=1000", "step_00000004 "},
                 {"checkpoint.minutes=1e-12", "step_00000001 step_00000002 step_00000003 step_00000004 "}},
                checkpoints);
       }},
      {"checkpoint.at_end",
       [](Workshop& shop) {
         expect(shop, {"checkpoint.every=3"},
                {{"checkpoint.at_end=on", "step_00000003 step_00000004 "},
                 {"checkpoint.at_end=off", "step_00000003 "}},
                checkpoints);
         expect(shop, {}, {{"checkpoint.at_end=off", ""}}, checkpoints);
         const Outcome again = shop.train({"checkpoint.resume=auto"}, true);
         EXPECT_NE(again.refusal.find("complete and was not saved"), std::string::npos) << again.refusal;
         // A save that is due after the last step is made.
         expect(shop, {"checkpoint.every=4"}, {{"checkpoint.at_end=off", "step_00000004 "}}, checkpoints);
       }},
      {"checkpoint.keep",
       [](Workshop& shop) {
         expect(shop, {"checkpoint.every=1"},
                {{"checkpoint.keep=1", "step_00000004 "},
                 {"checkpoint.keep=3", "step_00000002 step_00000003 step_00000004 "}},
                checkpoints);
       }},
      {"checkpoint.keep_best", keep_best},
      {"checkpoint.asynchronous",
       [](Workshop& shop) {
         // The last save is one that the run waits for.
         expect(shop, {"checkpoint.every=2"},
                {{"checkpoint.asynchronous=on", "beside waited "},
                 {"checkpoint.asynchronous=off", "waited waited "}},
                [](const Outcome& o) {
                  std::string saves;
                  for (const auto& save : o.run.checkpoints)
                    saves += save.asynchronous.value() ? "beside " : "waited ";
                  return saves;
                });
       }},
      {"checkpoint.resume", resume},
      {"log.every",
       [](Workshop& shop) {
         expect(shop, {}, {{"log.every=1", "1 2 3 4 "}, {"log.every=3", "1 3 4 "}}, printed_steps);
       }},
      {"log.tensorboard",
       [](Workshop& shop) {
         const auto curves = [&](const Outcome&) {
           std::string names;
           for (const auto& entry : fs::directory_iterator(shop.folder("run")))
             if (entry.path().filename().string().starts_with("events.out.tfevents.")) names += "file ";
           return names;
         };
         expect(shop, {}, {{"log.tensorboard=off", ""}, {"log.tensorboard=on", "file "}}, curves);
       }},
      {"profile.steps",
       [](Workshop& shop) {
         const auto profiled = [](const Outcome& o) {
           std::string steps;
           for (const auto& profile : o.run.profiles)
             steps += std::to_string(profile.first_step) + "-" + std::to_string(profile.last_step) + " ";
           return steps;
         };
         const std::string base = losses(shop.train({}));
         expect(shop, {},
                {{"profile.steps=[]", ""}, {"profile.steps=[2,3]", "2-3 "}, {"profile.steps=[3,4]", "3-4 "}},
                profiled);
         EXPECT_EQ(losses(shop.train({"profile.steps=[2,3]"})), base) << "the same bits";
       }},
      {"sample.sentences",
       [](Workshop& shop) {
         const auto judged = [](const Outcome& o) {
           return o.run.samples ? std::to_string(o.run.samples->judged) : "nothing";
         };
         expect(shop, {}, {{"sample.sentences=0", "nothing"}, {"sample.sentences=5", "5"}}, judged);
       }},
  };
}

}  // namespace assay::tests::every_key
