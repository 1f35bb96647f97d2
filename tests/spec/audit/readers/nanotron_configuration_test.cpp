// labels: unit property
// The model and the schedule of nanotron's printed configuration.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::nanotron_configuration_test {
namespace {

using tests::SimulatedRun;

RunRecord read(const std::string& log) {
  std::istringstream in(log);
  return read_log(in, "log");
}

SimulatedRun simulated(std::uint64_t seed) { return tests::simulate(tests::LogFormat::nanotron, seed); }

/// `log` with `said` in place of the first `was`, which has to be there.
std::string with(std::string log, const std::string& was, const std::string& said) {
  const std::size_t at = log.find(was);
  EXPECT_NE(at, std::string::npos) << was;
  return at == std::string::npos ? log : log.replace(at, was.size(), said);
}

std::string without_line(const std::string& log, const std::string& of) {
  std::istringstream in(log);
  std::string out;
  for (std::string line; std::getline(in, line);)
    if (line.find(of) == std::string::npos) out += line + "\n";
  EXPECT_LT(out.size(), log.size()) << of;
  return out;
}

TEST(NanotronConfigurationSpec, TheModelIsReadAndItsFlopsAreHeld) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const SimulatedRun run = simulated(seed);
    const std::string log = render(run);
    const RunRecord record = read(log);
    EXPECT_EQ(record[Setting::width]->value, static_cast<double>(run.model.width));
    EXPECT_EQ(record[Setting::layers]->value, static_cast<double>(run.model.layers));
    EXPECT_EQ(record[Setting::heads]->value, static_cast<double>(run.model.heads));
    EXPECT_EQ(record[Setting::kv_heads]->value, static_cast<double>(run.model.kv_heads));
    EXPECT_EQ(record[Setting::head_dim]->value, static_cast<double>(run.model.head_dim));
    EXPECT_EQ(record[Setting::ffn]->value, static_cast<double>(run.model.ffn));
    EXPECT_EQ(record[Setting::vocab]->value, static_cast<double>(run.model.vocab));
    EXPECT_EQ(judge("flops_rate", record).verdict, Verdict::holds) << contradictions(record);
    // A line that is lost leaves the model open, and another makes other FLOPs.
    for (const char* key : {"hidden_size=", "num_key_value_heads=", "LlamaConfig("})
      EXPECT_EQ(judge("flops_rate", read(without_line(log, key))).verdict, Verdict::cannot_be_judged) << key;
    const std::string inner = "intermediate_size=" + std::to_string(run.model.ffn);
    EXPECT_EQ(judge("flops_rate", read(with(log, inner, inner + "0"))).verdict, Verdict::contradicts);
  }
}

/// A dense Qwen is counted as a Llama; experts, and blocks of two matrices, are not known.
TEST(NanotronConfigurationSpec, OtherBlocksAreOfNoKnownModel) {
  const std::string log = render(simulated(1));
  const std::string qwen = with(log, "LlamaConfig(", "Qwen2Config(");
  const auto verdict = [](const std::string& text) { return judge("flops_rate", read(text)).verdict; };
  EXPECT_EQ(verdict(qwen), Verdict::cannot_be_judged);
  EXPECT_EQ(verdict(with(qwen, "use_cache=True", "moe_config=None")), Verdict::holds);
  EXPECT_EQ(verdict(with(qwen, "use_cache=True", "moe_config=MoEConfig(num_experts=8")),
            Verdict::cannot_be_judged);
  EXPECT_EQ(verdict(with(log, "LlamaConfig(", "Starcoder2Config(")), Verdict::cannot_be_judged);
}

TEST(NanotronConfigurationSpec, TheScheduleIsReadAndHeld) {
  int wsd = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const SimulatedRun run = simulated(seed);
    const std::string log = render(run);
    const RunRecord record = read(log);
    EXPECT_EQ(record[Setting::learning_rate]->value, run.highest_rate);
    EXPECT_EQ(record[Setting::learning_rate_min]->value, run.lowest_rate);
    EXPECT_EQ(record[Setting::warmup_steps]->value, static_cast<double>(run.warmup_steps));
    EXPECT_EQ(record[Setting::decay_steps]->value, static_cast<double>(run.decay_steps));
    EXPECT_EQ(judge("learning_rate", record).verdict, Verdict::holds) << contradictions(record);
    EXPECT_EQ(judge("learning_rate", record).note, "");
    wsd += is_wsd(run);
  }
  EXPECT_GT(wsd, 5);
}

TEST(NanotronConfigurationSpec, WeightsAreNewWhereTheyAreDrawn) {
  const std::string log = render(simulated(2));
  EXPECT_EQ(read(log).weights, "new");
  EXPECT_EQ(read(without_line(log, "Parametrizing model")).weights, "");
  // Such a line before no configuration is another program's.
  EXPECT_EQ(read(without_line(log, "GeneralArgs(")).weights, "");
}

/// What nanotron makes of an argument that is None: helpers.py, lr_scheduler_builder.
TEST(NanotronConfigurationSpec, WhatTheScheduleLeavesOutIsTheTrainersDefault) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const SimulatedRun run = simulated(seed);
    if (is_wsd(run)) continue;
    const std::string log = render(run),
                      steps = "lr_decay_steps=" + std::to_string(run.decay_steps - run.warmup_steps);
    EXPECT_EQ(read(with(log, steps, "lr_decay_steps=None"))[Setting::decay_steps]->value,
              static_cast<double>(run.decay_steps));
    // Beginning at the warm-up's end is what None means.
    const std::string start = "lr_decay_starting_step=";
    EXPECT_EQ(
        judge("learning_rate", read(with(log, start + "None", start + std::to_string(run.warmup_steps))))
            .verdict,
        Verdict::holds);
    // Of a line that is lost nothing is assumed: the highest rate alone is held.
    for (const char* key : {"lr_warmup_steps=", "lr_warmup_style=", "lr_decay_style=", "lr_decay_steps=",
                            "lr_decay_starting_step="}) {
      const Result result = judge("learning_rate", read(without_line(log, key)));
      EXPECT_EQ(result.verdict, Verdict::holds) << key;
      EXPECT_NE(result.note, "") << key;
    }
    // A warm-up at the highest rate is none that is held.
    EXPECT_NE(
        judge("learning_rate", read(with(log, "lr_warmup_style='linear'", "lr_warmup_style='constant'")))
            .note,
        "");
  }
}

TEST(NanotronConfigurationSpec, AScheduleThatTheLinesDoNotFollowContradicts) {
  int judged = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const SimulatedRun run = simulated(seed);
    if (is_wsd(run) || run.log_every > 2 || run.warmup_steps < 6) continue;
    ++judged;
    const std::string was = "lr_warmup_steps=" + std::to_string(run.warmup_steps);
    EXPECT_EQ(judge("learning_rate", read(with(render(run), was, "lr_warmup_steps=2"))).verdict,
              Verdict::contradicts);
  }
  EXPECT_GT(judged, 3);
}

}  // namespace
}  // namespace assay::spec::audit::nanotron_configuration_test
