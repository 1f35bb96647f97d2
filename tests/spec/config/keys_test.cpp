// labels: unit
#include "spec/config/keys.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <set>

#include "spec/error.hpp"
#include "tests/support/scratch.hpp"

namespace assay::spec::keys_test {
namespace {

/// A value in range that differs from the current one.
Value another(const Key& key, const RunConfig& config) {
  Value now = key.get(config);
  switch (key.type) {
    case KeyType::integer:
      return std::get<std::int64_t>(now) + 1;
    case KeyType::number:
      return std::get<double>(now) / 2 + 0.25;
    case KeyType::list:
      if (key.name == "profile.steps") return std::vector<std::string>{"2", "3"};
      if (key.name == "batch.ramp") return std::vector<std::string>{"2:3"};
      if (key.name == "data.mixture") return std::vector<std::string>{"web:0.5"};
      return std::vector<std::string>{"tokens.bin"};
    case KeyType::text:
      return std::string("another");
    case KeyType::choice:
      if (key.name == "compute.dtype") return std::string("bf16");
      for (const std::string& word : key.choices)
        if (Value(word) != now) return word;
  }
  return now;
}

TEST(KeysSpec, EveryKeyHasAUniqueDottedNameAndAMeaning) {
  std::set<std::string> names;
  for (const Key& key : keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_EQ(std::count(key.name.begin(), key.name.end(), '.'), 1) << key.name;
    EXPECT_GE(key.meaning.size(), 10u) << key.name;
    EXPECT_NE(key.meaning.back(), '.') << key.name;
    EXPECT_EQ(key.type == KeyType::choice, !key.choices.empty()) << key.name;
    EXPECT_EQ(find_key(key.name), &key);
  }
  EXPECT_EQ(find_key("batch"), nullptr);
}

TEST(KeysSpec, EveryKeyChangesItsOwnSettingAndNoOther) {
  for (const Key& key : keys()) {
    RunConfig config;
    const Value value = another(key, config);
    ASSERT_NE(value, key.get(config)) << key.name;
    key.set(config, value);
    EXPECT_EQ(key.get(config), value) << key.name;
    EXPECT_NE(config, RunConfig()) << key.name << " is parsed and ignored";
    for (const Key& other : keys()) {
      if (&other == &key) continue;
      EXPECT_EQ(other.get(config), other.get(RunConfig())) << key.name << " moves " << other.name;
    }
  }
}

TEST(KeysSpec, SettingEveryKeyReachesEveryFieldOfRunConfig) {
  // A field added to RunConfig breaks these bindings; whoever adds one adds its key and its line here.
  RunConfig config;
  for (const Key& key : keys()) key.set(config, another(key, config));
  const auto& [model, weights, init_std, sequences, ramp, micro, sequence_length, paths, mixture, dtype, end,
               ends, prefetch, samples, eval_paths, eval_share, eval_sequences, eval_every, eval_at_end,
               steps, tokens, rate, beta1, beta2, eps, decay, clip, z_loss, balance, router_z, balance_over,
               bias_rate, on_non_finite, max_skipped, capacity, schedule, warmup, decay_steps, shape, ratio,
               compute, of_machine, states, linear, linear_layers, linear_experts, linear_weights, device,
               attention, deterministic, graph, threads, recompute, seed, data_parallel, shard_ranks, tensor,
               expert, reduce, check_replicas, stall, directory, every, minutes, saved_at_end, keep,
               keep_best, asynchronous, resume, resume_path, log_every, tensorboard, profile, sentences,
               stated] = config;
  const RunConfig defaults;
  const auto& [model0, weights0, init_std0, sequences0, ramp0, micro0, sequence_length0, paths0, mixture0,
               dtype0, end0, ends0, prefetch0, samples0, eval_paths0, eval_share0, eval_sequences0,
               eval_every0, eval_at_end0, steps0, tokens0, rate0, beta10, beta20, eps0, decay0, clip0,
               z_loss0, balance0, router_z0, balance_over0, bias_rate0, on_non_finite0, max_skipped0,
               capacity0, schedule0, warmup0, decay_steps0, shape0, ratio0, compute0, of_machine0, states0,
               linear0, linear_layers0, linear_experts0, linear_weights0, device0, attention0, deterministic0,
               graph0, threads0, recompute0, seed0, data_parallel0, shard_ranks0, tensor0, expert0, reduce0,
               check_replicas0, stall0, directory0, every0, minutes0, saved_at_end0, keep0, keep_best0,
               asynchronous0, resume0, resume_path0, log_every0, tensorboard0, profile0, sentences0,
               stated0] = defaults;
  EXPECT_TRUE(model != model0 && weights != weights0 && init_std != init_std0 && sequences != sequences0 &&
              micro != micro0 && ramp != ramp0 && mixture != mixture0);
  EXPECT_TRUE(sequence_length != sequence_length0 && paths != paths0 && dtype != dtype0 && end != end0 &&
              ends != ends0);
  EXPECT_TRUE(prefetch != prefetch0 && samples != samples0 && steps != steps0 && tokens != tokens0 &&
              rate != rate0 && beta1 != beta10);
  EXPECT_TRUE(beta2 != beta20 && eps != eps0 && decay != decay0 && clip != clip0 && z_loss != z_loss0 &&
              balance != balance0 && router_z != router_z0);
  EXPECT_TRUE(eval_paths != eval_paths0 && eval_share != eval_share0 && eval_sequences != eval_sequences0 &&
              eval_every != eval_every0 && eval_at_end != eval_at_end0 && keep_best != keep_best0);
  EXPECT_TRUE(balance_over != balance_over0 && bias_rate != bias_rate0 && capacity != capacity0);
  EXPECT_TRUE(data_parallel != data_parallel0 && shard_ranks != shard_ranks0 && tensor != tensor0 &&
              expert != expert0 && reduce != reduce0 && check_replicas != check_replicas0 && stall != stall0);
  EXPECT_TRUE(schedule != schedule0 && warmup != warmup0 && decay_steps != decay_steps0 && shape != shape0 &&
              ratio != ratio0);
  EXPECT_TRUE(compute != compute0 && states != states0 && device != device0 && attention != attention0 &&
              deterministic != deterministic0 && graph != graph0 && threads != threads0 && seed != seed0);
  EXPECT_TRUE(linear != linear0 && linear_layers != linear_layers0 && linear_weights != linear_weights0 &&
              linear_experts != linear_experts0);
  EXPECT_TRUE(directory != directory0 && every != every0 && saved_at_end != saved_at_end0 && keep != keep0 &&
              resume != resume0 && asynchronous != asynchronous0);
  EXPECT_TRUE(on_non_finite != on_non_finite0 && max_skipped != max_skipped0 && minutes != minutes0 &&
              tensorboard != tensorboard0 && profile != profile0);
  EXPECT_EQ(of_machine, of_machine0);
  find_key("compute.dtype")->set(config, std::string("auto"));
  EXPECT_TRUE(config.dtype_of_machine);
  EXPECT_TRUE(recompute != recompute0 && resume_path != resume_path0 && log_every != log_every0 &&
              sentences != sentences0);
  EXPECT_EQ(stated, stated0) << "of no setting";
}

TEST(KeysSpec, PathsAreWholeInEveryWorkingDirectoryAndWordsStayWords) {
  const std::string here = std::filesystem::current_path().string();
  for (const Key& key : keys()) {
    RunConfig config;
    if (!key.path) {
      key.set(config, another(key, config));
      EXPECT_EQ(key.get(with_whole_paths(config)), key.get(config)) << key.name;
      continue;
    }
    const bool list = key.type == KeyType::list;
    const auto whole = [&](const std::string& path) {
      key.set(config, list ? Value(std::vector<std::string>{path}) : Value(path));
      const Value now = key.get(with_whole_paths(config));
      return list ? std::get<std::vector<std::string>>(now).at(0) : std::get<std::string>(now);
    };
    EXPECT_EQ(whole("a/b.bin"), here + "/a/b.bin") << key.name;
    EXPECT_EQ(whole("./a//b.bin"), here + "/a/b.bin") << key.name;
    EXPECT_EQ(whole("/a/b.bin"), "/a/b.bin") << key.name;
    for (const std::string& word : key.words) EXPECT_EQ(whole(word), word) << key.name;
  }
  EXPECT_EQ(with_whole_paths(RunConfig()).model, "tiny-llama");
  // Behind a link, the folder above is not the one that the name says.
  const tests::Scratch scratch;
  std::filesystem::create_directories(scratch.path() / "far/below");
  std::filesystem::create_directory_symlink(scratch.path() / "far/below", scratch.path() / "link");
  RunConfig linked;
  linked.directory = (scratch.path() / "link/../run").string();
  EXPECT_EQ(with_whole_paths(linked).directory,
            (std::filesystem::canonical(scratch.path()) / "far/run").string());
  // What no text can hold stays as it was typed, and finds its files from the same folder.
  std::filesystem::create_directory(scratch.path() / "no\xffutf8");
  std::filesystem::current_path(scratch.path() / "no\xffutf8");
  linked.directory = "run";
  EXPECT_EQ(with_whole_paths(linked).directory, "run");
  std::filesystem::current_path(here);
}

TEST(KeysSpec, WhatFollowsFromTheStepsFollowsAgainUnlessItWasStated) {
  RunConfig then;
  then.steps = 100, then.warmup_steps = 9, then.decay_steps = 32;  // 9: of a version that derived another
  then.stated.names = {"schedule.decay_steps"};
  RunConfig now = then;
  follow(now, then);
  EXPECT_EQ(now.warmup_steps, 9) << "nothing has changed";
  now.steps = 1000;
  follow(now, then);
  EXPECT_EQ(now.warmup_steps, 80);
  EXPECT_EQ(now.decay_steps, 32) << "it was stated";
  now.stated.names = {"schedule.warmup_steps"};
  now.warmup_steps = 3;
  follow(now, then);
  EXPECT_EQ(now.warmup_steps, 3);
  const std::vector<std::string> derived = {"schedule.warmup_steps", "schedule.decay_steps", "run.directory"};
  EXPECT_EQ(derived_settings(RunConfig()), derived);
  // What is read no more is at its default, so that it is no mistake.
  RunConfig other = RunConfig();
  other.steps = 1000;
  follow(other);
  RunConfig cosine = other;
  cosine.schedule = ScheduleKind::cosine;
  follow(cosine, other);
  EXPECT_EQ(cosine.decay_steps, RunConfig().decay_steps);
  // A run goes on where it is now.
  RunConfig moved;
  moved.directory = "elsewhere/tiny-llama";
  follow(moved, RunConfig());
  EXPECT_EQ(moved.directory, "elsewhere/tiny-llama");
}

TEST(KeysSpec, C1RefusesValuesOutsideTheRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const Key& key : keys()) {
    RunConfig config;
    std::vector<Value> bad;
    if (key.type == KeyType::integer) bad = {std::int64_t(-2), std::numeric_limits<std::int64_t>::min()};
    if (key.type == KeyType::number) bad = {-1e-300, nan, inf, -inf};
    if (key.type == KeyType::choice) bad = {std::string("no such choice")};
    if (key.type == KeyType::list) bad = {std::vector<std::string>{"a", ""}};
    if (key.type == KeyType::text) bad = {std::string()};
    for (const Value& value : bad) {
      try {
        key.set(config, value);
        ADD_FAILURE() << key.name << " accepts " << toml_literal(value);
      } catch (const SpecError& error) {
        EXPECT_EQ(error.label(), "config_c1");
        EXPECT_NE(std::string(error.what()).find(key.range), std::string::npos) << error.what();
      }
    }
    EXPECT_EQ(config, RunConfig()) << key.name << " was changed by a refused value";
  }
}

TEST(KeysSpec, TheMessageNamesSettingValueRangeAndUnit) {
  RunConfig config;
  try {
    find_key("train.steps")->set(config, std::int64_t(0));
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(),
                 "config_c1: train.steps = 0 is out of range: must be >= 1 and <= 1000000000000 [steps]");
  }
}

TEST(KeysSpec, OpenEndsOfRangesAreOpen) {
  RunConfig config;
  EXPECT_THROW(find_key("optimizer.beta1")->set(config, 1.0), SpecError);
  EXPECT_NO_THROW(find_key("optimizer.beta1")->set(config, 0.0));
  EXPECT_THROW(find_key("optimizer.eps")->set(config, 0.0), SpecError);
  EXPECT_NO_THROW(find_key("schedule.final_ratio")->set(config, 1.0));
  EXPECT_THROW(find_key("schedule.final_ratio")->set(config, 1.0000001), SpecError);
}

}  // namespace
}  // namespace assay::spec::keys_test
