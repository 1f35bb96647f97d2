// labels: unit property
#include "spec/config/load.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>

#include "spec/config/check.hpp"
#include "spec/config/dump.hpp"
#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "tests/spec/config/draw_config.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/scratch.hpp"

namespace assay::spec::load_test {
namespace {

std::string refusal(std::string_view toml, const std::vector<std::string>& overrides = {}) {
  try {
    load_text(toml, "recipe.toml", overrides);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(LoadSpec, NothingGivenGivesTheDefaults) { EXPECT_EQ(load("", {}), RunConfig()); }

TEST(LoadSpec, TheCommandLineWinsOverTheRecipeAndTheRecipeOverTheDefaults) {
  const RunConfig config = load_text("[train]\nsteps = 500\nseed = 7\n", "recipe.toml", {"train.steps=1000"});
  EXPECT_EQ(config.steps, 1000);
  EXPECT_EQ(config.seed, 7u);
  EXPECT_EQ(config.sequences, RunConfig().sequences);
  EXPECT_EQ(load("", {"train.steps=100", "train.steps=200"}).steps, 200);
}

TEST(LoadSpec, NestedTablesAndDottedKeysAreTheSame) {
  EXPECT_EQ(load_text("train.steps = 9", "a", {}), load_text("[train]\nsteps = 9", "b", {}));
  EXPECT_EQ(load_text("train = { steps = 9 }", "a", {}), load("", {"train.steps=9"}));
}

TEST(LoadSpec, AbsentSettingsFollowFromOthers) {
  RunConfig config = load("", {"train.steps=1000", "model.name=path/to/my-model/config.json"});
  EXPECT_EQ(config.warmup_steps, 80);
  EXPECT_EQ(config.decay_steps, 320);
  EXPECT_EQ(config.directory, "runs/my-model");
  config = load("", {"train.steps=1", "schedule.kind=cosine", "run.directory=here", "model.name=m.toml"});
  EXPECT_EQ(config.warmup_steps, 0);
  EXPECT_EQ(config.decay_steps, RunConfig().decay_steps);
  EXPECT_EQ(config.directory, "here");
}

TEST(LoadSpec, ListsComeFromCommasOrATomlArray) {
  const std::vector<std::string> two = {"a.bin", "b.bin"};
  EXPECT_EQ(load("", {"data.paths=a.bin,b.bin", "data.dtype=uint16"}).data_paths, two);
  EXPECT_EQ(load("", {"data.paths=[\"a.bin\", \"b.bin\"]", "data.dtype=uint16"}).data_paths, two);
  EXPECT_EQ(load_text("data = {paths = ['a.bin', 'b.bin'], dtype = 'uint16'}", "x", {}).data_paths, two);
  EXPECT_NE(refusal("", {"data.paths=a.bin,"}), "");
  EXPECT_NE(refusal("", {"data.paths=[1]"}), "");
  EXPECT_NE(refusal("", {"data.paths=[\"a\""}), "");
}

TEST(LoadSpec, ResumeIsAWordOrAPath) {
  EXPECT_EQ(load("", {"checkpoint.resume=auto"}).resume, Resume::automatic);
  EXPECT_EQ(load("", {"checkpoint.resume=never"}).resume, Resume::never);
  const RunConfig config = load("", {"checkpoint.resume=runs/x/step-10"});
  EXPECT_EQ(config.resume, Resume::path);
  EXPECT_EQ(config.resume_path, "runs/x/step-10");
}

TEST(LoadSpec, UnknownSettingsGetTheNearestOneAndTheirPlace) {
  EXPECT_EQ(
      refusal("[batch]\nsequnces = 4"),
      "recipe.toml:2:1: unknown setting \"batch.sequnces\"; did you mean \"batch.sequences\"? `assay config` "
      "lists every setting");
  EXPECT_NE(refusal("", {"steps=4"}).find("did you mean \"train.steps\"?"), std::string::npos);
  EXPECT_NE(refusal("", {"learning_rate=1"}).find("did you mean \"optimizer.learning_rate\"?"),
            std::string::npos);
  EXPECT_NE(refusal("", {"train.learning_rat=1"}).find("learning_rate\"?"), std::string::npos);
  EXPECT_NE(refusal("batch = 3").find("is a group of settings"), std::string::npos);
  EXPECT_NE(refusal("[batches]").find("unknown setting \"batches\""), std::string::npos);
  EXPECT_NE(refusal("[batch.sub]\nx = 1").find("unknown setting \"batch.sub\""), std::string::npos);
}

TEST(LoadSpec, WordsOfOtherTrainersFindOurs) {
  for (const auto& [word, key] : {std::pair{"tp", "parallel.tensor"},
                                  {"parallel.tp", "parallel.tensor"},
                                  {"parallel.tensor_parallel", "parallel.tensor"},
                                  {"tensor_model_parallel_size", "parallel.tensor"},
                                  {"parallel.fsdp", "parallel.data"},
                                  {"zero_stage", "parallel.data"},
                                  {"micro_batch_size", "batch.micro"},
                                  {"train.global_batch_size", "batch.sequences"},
                                  {"max_steps", "train.steps"},
                                  {"batch.seq_len", "batch.sequence_length"},
                                  {"min_lr", "schedule.final_ratio"},
                                  {"gradient_checkpointing", "memory.recompute"},
                                  {"training.local_batch_size", "batch.micro"},
                                  {"gradient_accumulation_steps", "batch.micro"},
                                  {"batch.accumulation", "batch.micro"},
                                  {"batch.global", "batch.sequences"},
                                  {"dtype", "compute.dtype"},
                                  {"model.dtype", "compute.dtype"},
                                  {"batch.steps", "train.steps"}})
    EXPECT_NE(refusal("", {std::string(word) + "=2"}).find("did you mean \"" + std::string(key) + "\"?"),
              std::string::npos)
        << word << ": " << refusal("", {std::string(word) + "=2"});
}

TEST(LoadSpec, WhatOthersAloneHaveASettingForSaysWhatThereIs) {
  EXPECT_EQ(refusal("[optimizer]\nname = 'adamw'"),
            "recipe.toml:2:1: \"optimizer.name\" is no setting: there is one optimizer, AdamW: leave it out");
  for (const char* name : {"wandb.project", "wandb_project", "wandb", "report_to"})
    EXPECT_NE(refusal("", {std::string(name) + "=mine"}).find("log.tensorboard=\"on\""), std::string::npos)
        << name;
  EXPECT_EQ(refusal("", {"wandbox=1"}).find("log.tensorboard"), std::string::npos);
}

TEST(LoadSpec, WrongTypesSayWhatToWrite) {
  EXPECT_EQ(refusal("[data]\ndocument_ends = true"),
            "recipe.toml:2:17: data.document_ends must be one of \"off\", \"on\", not true: write \"on\"");
  EXPECT_EQ(refusal("[data]\npaths = \"x\""),
            "recipe.toml:2:9: data.paths must be a list of texts, not \"x\": write [\"x\"]");
  EXPECT_EQ(refusal("schedule.kind = true"),
            "recipe.toml:1:17: schedule.kind must be one of \"constant\", \"cosine\", \"wsd\", not true");
}

TEST(LoadSpec, WrongTypesSayWhereAndWhatWasExpected) {
  EXPECT_EQ(refusal("[train]\nsteps = 2.5"),
            "recipe.toml:2:9: train.steps must be an integer [steps], not 2.5");
  EXPECT_EQ(refusal("", {"train.steps=ten"}),
            "argument \"train.steps=ten\": train.steps must be an integer [steps], not \"ten\"");
  EXPECT_NE(refusal("train.steps = true"), "");
  EXPECT_NE(refusal("train.steps = '5x'"), "");
  EXPECT_NE(refusal("train.steps = 1979-05-27"), "");
  EXPECT_NE(refusal("[train.steps]\nx = 1"), "");
  EXPECT_NE(refusal("data.paths = 'a.bin'"), "");
  EXPECT_NE(refusal("", {"train.steps=5x"}), "");
  EXPECT_NE(refusal("", {"train.steps="}), "");
  EXPECT_NE(refusal("", {"train.steps=9223372036854775808"}), "");
  EXPECT_EQ(load_text("optimizer.clip = 2", "x", {}).clip, 2.0);  // an integer is a number
}

/// 4 sequences of 16 tokens are 64 a step; of a ramp 2 of its steps are 32 each.
TEST(LoadSpec, TokensSayTheSteps) {
  const auto steps = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"batch.sequences=4", "batch.sequence_length=16"};
    words.insert(words.end(), more.begin(), more.end());
    return load("", words).steps;
  };
  EXPECT_EQ(steps({"train.tokens=640"}), 10);
  EXPECT_EQ(steps({"train.tokens=641"}), 11);
  EXPECT_EQ(steps({"train.tokens=1"}), 1);
  EXPECT_EQ(steps({"train.tokens=640", "batch.ramp=2:2"}), 11);
  EXPECT_EQ(steps({"train.tokens=64", "batch.ramp=2:2"}), 2);
  EXPECT_EQ(load("", {"train.tokens=1M", "batch.sequences=4", "batch.sequence_length=16"}).warmup_steps,
            15'625 * 8 / 100);
  // Both, where they say the same.
  EXPECT_EQ(steps({"train.tokens=640", "train.steps=10"}), 10);
  EXPECT_EQ(refusal("[train]\ntokens = 640\nsteps = 9\n[batch]\nsequences = 4\nsequence_length = 16"),
            "recipe.toml:3:9: config_c46: train.tokens = 640 are 10 steps of this batch, and train.steps = "
            "9: leave "
            "one of the two out");
  EXPECT_NE(refusal("", {"train.tokens=640", "train.steps=9"}).find("config_c46"), std::string::npos);
  EXPECT_NE(refusal("", {"train.tokens=9223372036854775807", "batch.sequences=1", "batch.sequence_length=1"})
                .find("config_c1: train.steps = "),
            std::string::npos);
  // What is typed counts before a recipe.
  const std::string recipe = "[train]\ntokens = 640\n[batch]\nsequences = 4\nsequence_length = 16";
  EXPECT_EQ(load_text(recipe, "r", {"train.steps=9"}).tokens, 0);
  EXPECT_EQ(load_text(recipe, "r", {"batch.sequences=8"}).steps, 5);
  EXPECT_EQ(load_text("train.steps = 9", "r", {"train.tokens=40960"}).steps, 10);
  EXPECT_NE(
      refusal("batch.ramp = ['2:3']\nbatch.sequences = 4", {"batch.sequence_length=16", "train.tokens=64"})
          .find("config_c42"),
      std::string::npos);
}

/// A run's settings hold both: what is asked for anew counts, and the other follows.
TEST(LoadSpec, OfADumpTheOtherOfStepsAndTokensFollows) {
  const std::string dump =
      dump_toml(load("", {"batch.sequences=4", "batch.sequence_length=16", "train.tokens=6400",
                          "schedule.warmup_steps=1", "schedule.decay_steps=1"}));
  EXPECT_EQ(load_dump(dump, "dump").steps, 100);
  EXPECT_EQ(load_dump(dump, "dump", {"train.tokens=12800"}).steps, 200);
  EXPECT_EQ(load_dump(dump, "dump", {"batch.sequences=8"}).steps, 50);
  const RunConfig shorter = load_dump(dump, "dump", {"train.steps=7"});
  EXPECT_EQ(shorter.steps, 7);
  EXPECT_EQ(shorter.tokens, 0);
}

TEST(LoadSpec, TheTypeFollowsTheMachineUnlessTheModelIsTheDemos) {
  const auto dtype = [](const std::vector<std::string>& words) {
    return std::get<std::string>(find_key("compute.dtype")->get(load("", words)));
  };
  EXPECT_EQ(dtype({}), "f32");
  EXPECT_EQ(dtype({"model.name=llama3-8b"}), "auto");
  EXPECT_EQ(dtype({"model.weights=folder"}), "auto");
  EXPECT_EQ(dtype({"model.name=llama3-8b", "compute.dtype=f64"}), "f64");
  EXPECT_EQ(dtype({"compute.dtype=auto"}), "auto");
  const RunConfig asked = load("", {"compute.dtype=auto", "optimizer.states=bf16"});
  EXPECT_EQ(with_dtype_of(asked, true).dtype, Dtype::bf16);
  EXPECT_EQ(with_dtype_of(asked, false).dtype, Dtype::f32);
  EXPECT_FALSE(with_dtype_of(asked, true).dtype_of_machine);
  check(with_dtype_of(asked, true));
  EXPECT_THROW(check(with_dtype_of(asked, false)), SpecError);  // read of bf16 alone
  EXPECT_EQ(with_dtype_of(load("", {"compute.dtype=f64"}), true).dtype, Dtype::f64);
}

/// spec/text/amount.hpp has the rule.
TEST(LoadSpec, WholeNumbersAreReadAsPeopleWriteThem) {
  for (const char* number : {"64000", "64k", "64e3", "64_000", "6.4e4", "0.064M"}) {
    EXPECT_EQ(load("", {"train.steps=" + std::string(number)}).steps, 64'000) << number;
    EXPECT_EQ(load_text("train.steps = '" + std::string(number) + "'", "a", {}).steps, 64'000) << number;
  }
  for (const char* number : {"64_000", "64e3", "64000.0"})
    EXPECT_EQ(load_text("train.steps = " + std::string(number), "a", {}).steps, 64'000) << number;
  EXPECT_EQ(load("", {"batch.sequences=2k", "batch.ramp=1_000:2e1", "train.steps=1k"}).ramp,
            (std::vector<RampStage>{{.sequences = 1000, .steps = 20}}));
  EXPECT_EQ(load_text("train.steps = 5_000\nprofile.steps = [1e3, '1.01k']", "a", {}).profile.last, 1010);
  EXPECT_EQ(load("", {"train.seed=9223372036854775807"}).seed, std::uint64_t{INT64_MAX});
  EXPECT_EQ(load("", {"checkpoint.minutes=1_000"}).checkpoint_minutes, 1000);
  for (const char* number : {"1.5", "64q", "1e400", "k", "1__0", "1,00", "1,5", "0,003"})
    EXPECT_NE(refusal("", {"train.steps=" + std::string(number)}).find("must be an integer"),
              std::string::npos)
        << number;
}

/// A comma is a decimal one to many, and a letter a unit.
TEST(LoadSpec, RealsAreReadAsTomlHasThem) {
  EXPECT_EQ(load("", {"checkpoint.minutes=1_000.5"}).checkpoint_minutes, 1000.5);
  EXPECT_EQ(load("", {"optimizer.learning_rate=+3e-4"}).learning_rate, 3e-4);
  for (const char* setting : {"optimizer.learning_rate=0,003", "optimizer.weight_decay=0,1",
                              "checkpoint.minutes=0,5", "checkpoint.minutes=5m", "parallel.stall_seconds=10m",
                              "optimizer.learning_rate=3m", "optimizer.learning_rate=1,000"})
    EXPECT_NE(refusal("", {setting}).find(" must be a"), std::string::npos) << setting;
  EXPECT_NE(refusal("parallel.stall_seconds = '10m'").find(" must be an integer [s]"), std::string::npos);
}

TEST(LoadSpec, AllMistakesAreSaidAtOnce) {
  EXPECT_EQ(
      refusal("[train]\nstpes = 4\nseed = 'x'\n[optimizer]\nbeta1 = 2.0\nclip = true\n[profile]\nsteps = "
              "[251, 252]\n",
              {"schedule.kind=cosin", "seed"}),
      "7 mistakes:\n"
      "  recipe.toml:2:1: unknown setting \"train.stpes\"; did you mean \"train.steps\"? `assay config` "
      "lists every setting\n"
      "  recipe.toml:3:8: train.seed must be an integer, not \"x\"\n"
      "  recipe.toml:6:8: optimizer.clip must be a number, not true\n"
      "  argument \"seed\": a setting is written key=value, as in train.steps=100\n"
      "  recipe.toml:5:9: config_c1: optimizer.beta1 = 2.0 is out of range: must be [0, 1)\n"
      "  argument \"schedule.kind=cosin\": config_c1: schedule.kind = \"cosin\" is out of range: must be one "
      "of \"constant\", \"cosine\", \"wsd\"; did you mean \"cosine\"?\n"
      "  recipe.toml:8:9: config_c41: profile.steps ends with step 252, behind train.steps = 250: name steps "
      "up to that, or raise train.steps");
}

TEST(LoadSpec, OfVeryManyMistakesTheFirstTwentyAreSaid) {
  std::string recipe = "[train]\n";
  for (int i = 0; i < 500; ++i) recipe += "x" + std::to_string(i) + " = 1\n";
  const std::string said = refusal(recipe);
  EXPECT_EQ(said.find("at least 100 mistakes:\n"), 0u) << said;
  EXPECT_EQ(said.substr(said.rfind('\n')), "\n  and 80 more");
  EXPECT_EQ(std::ranges::count(said, '\n'), 21);
}

/// Of what is wrong by itself nothing more is said; of the rest every constraint.
TEST(LoadSpec, AConstraintOfAWrongSettingIsNoSecondMistake) {
  const std::string one = refusal("schedule.warmup_steps = 900", {"train.steps=ten"});
  EXPECT_EQ(one, "argument \"train.steps=ten\": train.steps must be an integer [steps], not \"ten\"");
  const std::string two = refusal("schedule.warmup_steps = 900\nprofile.steps = [251, 252]");
  EXPECT_EQ(std::ranges::count(two, '\n'), 2) << two;
}

TEST(LoadSpec, RangesAndChoicesSayWhereAndSuggest) {
  EXPECT_EQ(refusal("[optimizer]\nbeta1 = 1.0"),
            "recipe.toml:2:9: config_c1: optimizer.beta1 = 1.0 is out of range: must be [0, 1)");
  EXPECT_EQ(refusal("", {"schedule.kind=cosin"}),
            "argument \"schedule.kind=cosin\": config_c1: schedule.kind = \"cosin\" is out of range: must be "
            "one of "
            "\"constant\", \"cosine\", \"wsd\"; did you mean \"cosine\"?");
}

TEST(LoadSpec, ARemovedSettingIsRefusedWithTheReasonAndTheWayOut) {
  EXPECT_EQ(refusal("[parallel]\ndata = \"shard\"\ngather = \"copy_engines\""),
            "recipe.toml:3:1: the setting \"parallel.gather\" is gone: NCCL all-gathers weights in every run "
            "(docs/decisions/0021-no-own-copies.md); leave it out");
  for (const RemovedKey& key : removed_keys()) {
    EXPECT_EQ(find_key(key.name), nullptr) << key.name << " is a setting";
    const std::string argument = std::string(key.name) + "=nccl";
    EXPECT_EQ(refusal("", {argument}), "argument \"" + argument + "\": the setting \"" +
                                           std::string(key.name) + "\" is gone: " + std::string(key.reason) +
                                           "; leave it out");
  }
}

/// What an earlier version wrote by dump_toml: every removed setting, whatever its value was.
TEST(LoadSpec, ADumpWithRemovedSettingsLoadsWithoutThem) {
  RunConfig config;
  config.data_parallel = DataParallel::shard;
  for (const RemovedKey& key : removed_keys())
    for (const char* value : {"\"nccl\"", "\"copy_engines\"", "7"}) {
      const std::string group(key.name.substr(0, key.name.find('.'))),
          name(key.name.substr(group.size() + 1));
      std::string old = dump_toml(config);
      const std::string heading = "[" + group + "]\n";
      const std::size_t at = old.find(heading);
      ASSERT_NE(at, std::string::npos) << key.name;
      old.insert(at + heading.size(), name + " = " + value + "\n");
      EXPECT_EQ(load_dump(old, "dump"), config) << old;
    }
  EXPECT_THROW(load_dump("parallel = {data = 'shard', gathers = 'nccl'}", "dump"), UserError);
}

/// A run may have been made shorter; what a person asks for on top must happen.
TEST(LoadSpec, OfADumpWhatIsAskedForAnewMustHappen) {
  RunConfig config = load("", {"train.steps=9", "profile.steps=[5,6]"});
  config.steps = 4;
  EXPECT_EQ(load_dump(dump_toml(config), "dump").steps, 4);
  EXPECT_EQ(load_dump(dump_toml(config), "dump", {"log.every=2"}).steps, 4);
  EXPECT_THROW(load_dump(dump_toml(config), "dump", {"profile.steps=[6,7]"}), UserError);
}

/// What followed from the steps of a run follows from those that it is given; what was stated stays.
TEST(LoadSpec, OfADumpWhatFollowedFollowsAgain) {
  const RunConfig run = load("", {"train.steps=100", "schedule.decay_steps=20"});
  const auto derived = derived_settings(run);
  const RunConfig longer = load_dump(dump_toml(run), "dump", {"train.steps=1000"}, derived);
  EXPECT_EQ(longer.warmup_steps, 80);
  EXPECT_EQ(longer.decay_steps, 20);
  EXPECT_EQ(load_dump(dump_toml(run), "dump", {"train.steps=1000", "schedule.warmup_steps=7"}, derived)
                .warmup_steps,
            7);
  EXPECT_EQ(derived_settings(load_dump(dump_toml(run), "dump", {}, derived)), derived);
  // An earlier version did not say what followed: what has the value that follows is taken for it.
  const RunConfig earlier = load_dump(dump_toml(run), "dump", {"train.steps=1000"});
  EXPECT_EQ(earlier.warmup_steps, 80);
  EXPECT_EQ(earlier.decay_steps, 20);
  const RunConfig cosine = load_dump(dump_toml(load("", {})), "dump", {"schedule.kind=cosine"});
  EXPECT_EQ(cosine.schedule, ScheduleKind::cosine) << "no decay is left that nobody asked for";
}

TEST(LoadSpec, AChangeThatDoesNotGoWithWhatTheRunStatesNamesBoth) {
  const RunConfig run = load("", {"train.steps=500", "schedule.warmup_steps=300"});
  try {
    load_dump(dump_toml(run), "run/step_00000009", {"train.steps=300"}, derived_settings(run));
    FAIL() << "a warm-up that is longer than the run";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    for (const char* part :
         {"run/step_00000009: config_c4", "train.steps comes from argument \"train.steps=300\"",
          "schedule.warmup_steps = 300 was stated when the run began: change it, too"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("schedule.decay_steps = 96 was stated"), std::string::npos)
        << error.what();
  }
}

TEST(LoadSpec, SyntaxErrorsHaveLineAndColumn) {
  const std::string message = refusal("[train]\nsteps = = 3\n");
  EXPECT_EQ(message.rfind("recipe.toml:2:9: not valid TOML: ", 0), 0u) << message;
}

TEST(LoadSpec, ConstraintsBetweenSettingsAreChecked) {
  EXPECT_NE(refusal("", {"schedule.kind=cosine", "schedule.decay_steps=3"}).find("config_c6"),
            std::string::npos);
  EXPECT_NE(refusal("", {"schedule.kind=cosine", "schedule.decay_shape=1-sqrt"}).find("config_c6"),
            std::string::npos);
  EXPECT_EQ(load("", {"schedule.decay_shape=1-sqrt"}).decay_shape, DecayShape::one_minus_sqrt);
}

TEST(LoadSpec, DashesAndMissingEqualsSignsAreExplained) {
  EXPECT_EQ(refusal("", {"--train.steps=5"}),
            "argument \"--train.steps=5\": settings are written without dashes: train.steps=5");
  EXPECT_NE(refusal("", {"train.steps"}).find("key=value"), std::string::npos);
}

TEST(LoadSpec, AModelsFileIsNoRecipe) {
  const tests::Scratch scratch;
  const std::string file = (scratch.path() / "m.toml").string();
  std::ofstream(file) << to_toml(find_model("tiny-llama"));
  try {
    load(file, {});
    ADD_FAILURE() << "it was accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.what(), file + ": is a model's file, and no recipe; `assay train model.name=" + file +
                                "` trains that model");
  }
}

TEST(LoadSpec, AMissingRecipeOrAFolderIsNamed) {
  for (const std::string path : {"no/such/recipe.toml", "."}) {
    try {
      load(path, {});
      ADD_FAILURE() << path << " was accepted";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_EQ(std::string(error.what()).rfind(path + ": ", 0), 0u);
    }
  }
}

RC_GTEST_PROP(LoadSpec, ADumpLoadsBackToTheSameSettings, ()) {
  const RunConfig config = tests::draw_config();
  RC_ASSERT(load_text(dump_toml(config), "dump", {}) == config);
}

RC_GTEST_PROP(LoadSpec, OverridesAndRecipesMeanTheSame, ()) {
  const RunConfig config = tests::draw_config();
  std::vector<std::string> overrides;
  for (const Key& key : keys()) {
    if (!key.is_read(config)) continue;
    const Value value = key.get(config);
    const auto* text = std::get_if<std::string>(&value);
    overrides.push_back(key.name + "=" + (text ? *text : toml_literal(value)));
  }
  RC_ASSERT(load("", overrides) == config);
}

TEST(LoadSpec, RecipesThatCannotBeReadSayWhy) {
  const auto refused = [](const std::string& recipe) {
    try {
      load(recipe, {});
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("no.toml").find("there is no such file"), std::string::npos);
  EXPECT_NE(refused(tests::source_dir()).find("it is a folder"), std::string::npos);
  EXPECT_NE(refused("train.steps").find("written train.steps=VALUE"), std::string::npos);
}

TEST(LoadSpec, InitialsFindTheSettingAndInfinitiesAreNamed) {
  EXPECT_NE(refusal("", {"optimizer.lr=1"}).find("did you mean \"optimizer.learning_rate\"?"),
            std::string::npos);
  EXPECT_NE(refusal("", {"lr=1"}).find("did you mean \"optimizer.learning_rate\"?"), std::string::npos);
  EXPECT_NE(refusal("", {"wd=1"}).find("did you mean \"optimizer.weight_decay\"?"), std::string::npos);
  EXPECT_EQ(refusal("", {"optimizer.learning_rate=inf"}),
            "argument \"optimizer.learning_rate=inf\": optimizer.learning_rate must be a finite number");
}

TEST(ConfigDocs, TheConfigurationPageIsCurrent) {
  std::ifstream file(tests::source_dir() + "/docs/configuration.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), keys_markdown()) << "run: assay config --markdown > docs/configuration.md";
}

}  // namespace
}  // namespace assay::spec::load_test
