// labels: unit
// What a trainer does decides what its numbers are held to: the same record under every trainer's name.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "spec/audit/evidence.hpp"
#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/doubled_lines.hpp"
#include "spec/audit/readers/unnumbered_steps.hpp"
#include "spec/audit/readers/whole_columns.hpp"
#include "spec/audit/trainer.hpp"
#include "spec/audit/useful_options.hpp"
#include "spec/audit/whole_shape.hpp"
#include "tests/spec/audit/run_that_agrees.hpp"

namespace assay::spec::audit::trainer_properties_test {
namespace {

using tests::counted;
using tests::measured;
using tests::plain;
using Names = std::set<std::string>;

/// The trainers of whose record the invariant has that verdict.
Names those(RunRecord record, std::string_view invariant, Verdict verdict) {
  Names out;
  for (const Trainer& trainer : trainers()) {
    record.format.name = trainer.name;
    if (judge(invariant, record).verdict == verdict) out.insert(std::string(trainer.name));
  }
  return out;
}

/// 4 sequences of a step where one pass of 4 GPUs has 2 x 4: whose models may lie on several GPUs may have
/// fewer ranks than GPUs.
TEST(TrainerPropertiesSpec, WhoseGpusAreRanks) {
  RunRecord run = plain();
  run[Setting::accumulation].reset();
  run[Setting::sequences] = counted(4);
  EXPECT_EQ(those(run, "sequences", Verdict::contradicts),
            (Names{"assay", "llm_tii", "nanogpt", "build_nanogpt", "llmc", "llmq"}));
  EXPECT_EQ(those(run, "sequences", Verdict::holds), Names{});
}

/// Without a word of how a model is split over its GPUs.
TEST(TrainerPropertiesSpec, WhoseLogSaysHowModelsAreSplit) {
  RunRecord run = plain();
  EXPECT_EQ(those(run, "sequences", Verdict::cannot_be_judged),
            (Names{"torchtitan", "kempnerforge", "megatron", "nanotron"}));
  run[Setting::data_parallel] = counted(4);
  EXPECT_EQ(those(run, "ranks", Verdict::cannot_be_judged), (Names{"torchtitan", "megatron", "nanotron"}));
  run[Setting::tensor_parallel] = counted(1);
  EXPECT_EQ(those(run, "ranks", Verdict::cannot_be_judged), (Names{"torchtitan", "megatron", "nanotron"}));
  run[Setting::pipeline_parallel] = counted(1);
  EXPECT_EQ(those(run, "ranks", Verdict::cannot_be_judged), Names{});
}

/// The rates of 1/sqrt(step), however steps are numbered, and no word of the schedule.
TEST(TrainerPropertiesSpec, WhoseScheduleIsACosine) {
  RunRecord run = plain();
  run[Setting::learning_rate] = counted(1e-3);
  run[Setting::learning_rate_min] = counted(1e-5);
  run[Setting::warmup_steps] = counted(2);
  run[Setting::max_steps] = counted(100);
  const Names only = {"assay", "llm_tii", "nanogpt", "llmq"};
  Names other;
  for (const Trainer& trainer : trainers())
    if (!only.contains(std::string(trainer.name))) other.insert(std::string(trainer.name));
  Names held;
  for (const int from : {-1, 0, 1}) {
    for (int i = 1; i <= 12; ++i) {
      const double step = i + from;
      const double warm = step < 2 ? step / 2 : std::sqrt(2 / step);
      run.steps[static_cast<std::size_t>(i - 1)][Field::learning_rate] = measured(1e-3 * warm, 1e-8);
    }
    const Names contradicted = those(run, "learning_rate", Verdict::contradicts);
    for (const std::string& name : only) EXPECT_TRUE(contradicted.contains(name)) << name << " " << from;
    held.merge(those(run, "learning_rate", Verdict::holds));
  }
  EXPECT_EQ(held, other);
}

/// One line's time is twice the others', at the same rate; no setting says how much is in a step.
TEST(TrainerPropertiesSpec, WhoseMeansAreKnown) {
  RunRecord run = plain();
  for (const Setting setting : {Setting::sequence_length, Setting::sequences, Setting::tokens_per_step,
                                Setting::micro, Setting::accumulation})
    run[setting].reset();
  for (Step& step : run.steps) step[Field::tokens_total].reset(), step[Field::elapsed].reset();
  run.steps[6][Field::seconds] = measured(4, 0.005);
  EXPECT_EQ(those(run, "work_steady", Verdict::cannot_be_judged), (Names{"assay", "hugging_face", "mapped"}));
  EXPECT_EQ(those(run, "work_steady", Verdict::holds), Names{});
}

/// A dense Llama on a cut of two stages, every size printed.
RunRecord llama(double ffn) {
  RunRecord run;
  run[Setting::layers] = counted(32);
  run[Setting::width] = counted(4096);
  run[Setting::heads] = counted(32);
  run[Setting::kv_heads] = counted(8);
  run[Setting::ffn] = counted(ffn);
  run[Setting::vocab] = counted(128256);
  run[Setting::parameters] = counted(8030261248);
  run.tied_embeddings = false;
  run.mlp = BlockMlp{};
  return run;
}

TEST(TrainerPropertiesSpec, WhoseCountIsOfTheModelBeforeItIsCut) {
  RunRecord run = llama(14336);
  const auto whole = [&] {
    Names out;
    for (const Trainer& trainer : trainers()) {
      run.format.name = trainer.name;
      if (shape_whole(run)) out.insert(std::string(trainer.name));
    }
    return out;
  };
  EXPECT_EQ(whole(), (Names{"torchtitan", "kempnerforge", "megatron"}));
  run[Setting::pipeline_parallel] = counted(2);
  EXPECT_EQ(whole(), Names{"torchtitan"});
}

/// An inner width that the count denies, as it would any vocabulary: the count is llama3-8b's, of 14,336.
TEST(TrainerPropertiesSpec, WhosePresetSaysTheInnerWidth) {
  RunRecord run = llama(20000);
  Names preset;
  for (const Trainer& trainer : trainers()) {
    run.format.name = trainer.name;
    std::string basis;
    const auto model = model_of(run, basis);
    if (model && model->name == "llama3-8b" && basis == "parameters as printed")
      preset.insert(std::string(trainer.name));
  }
  EXPECT_EQ(preset, Names{"torchtitan"});
}

/// 124,439,808 parameters with 50,257 rows of the vocabulary; llm.c counts 50,304.
TEST(TrainerPropertiesSpec, WhoseCountHasThePaddedVocabulary) {
  RunRecord run;
  run.format.name = "llmc";
  run[Setting::layers] = run[Setting::heads] = counted(12);
  run[Setting::width] = counted(768);
  run[Setting::vocab] = counted(50257);
  run[Setting::sequence_length] = counted(1024);
  run[Setting::parameters] = counted(124475904);
  EXPECT_EQ(judge("parameters", run).verdict, Verdict::holds);
  run[Setting::parameters] = counted(200000000);
  const Result result = judge("parameters", run);
  EXPECT_EQ(result.verdict, Verdict::contradicts);
  EXPECT_EQ(result.recomputed.low, 124475904);
}

/// The trainers of whose run, at `rate` tokens/s in steps of 2 s, a reading holds that change.
Names offered(RunRecord run, double rate, std::string_view change) {
  Names out;
  for (Step& step : run.steps) step[Field::tokens_per_second] = measured(rate, 0.5);
  for (const Trainer& trainer : trainers()) {
    run.format.name = trainer.name;
    for (const Reading& reading : audit(run).readings)
      for (const Change& one : reading.changes)
        if (one.id == change) out.insert(std::string(trainer.name));
  }
  return out;
}

/// Four passes are configured, on four ranks. Of trainers that share them among the ranks one pass of each is
/// no slip, and four are one.
TEST(TrainerPropertiesSpec, WhoseRanksShareTheConfiguredPasses) {
  RunRecord run = plain();
  for (const Setting setting : {Setting::sequences, Setting::tokens_per_step, Setting::accumulation})
    run[setting].reset();
  for (Step& step : run.steps)
    for (const Field field : {Field::tokens_total, Field::mfu, Field::flops_rate}) step[field].reset();
  run[Setting::accumulation_configured] = counted(4);
  run[Setting::data_parallel] = counted(4);
  const Names sharing = {"llm_tii", "nanogpt"};
  EXPECT_EQ(offered(run, 16000, "accumulation_multiplied"), sharing);
  const Names blamed = offered(run, 4000, "accumulation_not_performed");
  EXPECT_EQ(blamed.size() + sharing.size(), trainers().size());
  for (const std::string& name : sharing) EXPECT_FALSE(blamed.contains(name)) << name;
}

/// The trainers of whose record `holds` is true.
Names of_whom(RunRecord record, const std::function<bool(RunRecord)>& holds) {
  Names out;
  for (const Trainer& trainer : trainers()) {
    record.format.name = trainer.name;
    if (holds(record)) out.insert(std::string(trainer.name));
  }
  return out;
}

Names all_but(const Names& some) {
  return of_whom({}, [&](const RunRecord& record) { return !some.contains(record.format.name); });
}

/// 1.2 of the peak of a GPU that is not named.
TEST(TrainerPropertiesSpec, WhoseMfuAboveOneIsOfAFasterGpu) {
  RunRecord run = plain();
  run.gpu = "";
  for (Step& step : run.steps) {
    step[Field::mfu] = measured(1.2, 5e-5);
    step[Field::tokens_per_second].reset(), step[Field::seconds].reset(), step[Field::flops_rate].reset();
  }
  EXPECT_EQ(those(run, "mfu_possible", Verdict::contradicts), all_but({}));
  const auto of_constant_peak = [](const RunRecord& record) {
    for (const Result& result : audit(record).results)
      for (const Cause& cause : result.causes)
        if (result.id == "mfu_possible" && cause.id == "peak_constant") return true;
    return false;
  };
  EXPECT_EQ(of_whom(run, of_constant_peak), Names{"nanogpt"});
}

/// Every line stands twice.
TEST(TrainerPropertiesSpec, WhoseLinesMayBePrintedTwice) {
  RunRecord run = plain();
  run[Setting::gpus] = counted(1);
  run.steps.clear();
  for (Step step : plain().steps) {
    step[Field::learning_rate] = measured(3e-4, 5e-6);
    run.steps.insert(run.steps.end(), 2, step);
  }
  run.steps_seen = static_cast<std::int64_t>(run.steps.size());
  const auto merged = [](RunRecord record) {
    const std::size_t before = record.steps.size();
    merge_doubled_lines(record);
    return record.steps.size() < before;
  };
  EXPECT_EQ(of_whom(run, merged), all_but({"assay", "mapped"}));
  // The second with more digits of its rate, and without the time.
  for (std::size_t i = 1; i < run.steps.size(); i += 2) {
    run.steps[i][Field::learning_rate] = measured(3.0001e-4, 5e-9);
    run.steps[i][Field::seconds].reset();
  }
  EXPECT_EQ(of_whom(run, merged), Names{"hugging_face"});
}

TEST(TrainerPropertiesSpec, WhoseLinesMayNameNoStep) {
  RunRecord run = plain();
  run[Setting::max_steps] = counted(120);
  for (Step& step : run.steps) step[Field::step].reset();
  EXPECT_EQ(of_whom(run,
                    [](RunRecord record) {
                      number_steps(record);
                      return record.steps[2][Field::step] && record.steps[2][Field::step]->value == 30;
                    }),
            Names{"hugging_face"});
}

/// 4000.0 tokens/s on every line.
TEST(TrainerPropertiesSpec, WhoseRatesOthersMayHaveRounded) {
  RunRecord run = plain();
  for (Step& step : run.steps) step[Field::tokens_per_second] = measured(4000, 0.05);
  EXPECT_EQ(of_whom(run,
                    [](RunRecord record) {
                      widen_whole_columns(record);
                      return record.steps[0][Field::tokens_per_second]->high > 4000.4;
                    }),
            Names{"mapped"});
}

/// Without the number of GPUs: an option says it, but of a whole record.
TEST(TrainerPropertiesSpec, WhoseRecordNoOptionCompletes) {
  RunRecord run = plain();
  run[Setting::gpus].reset();
  EXPECT_EQ(of_whom(run, [](const RunRecord& record) { return useful_options(record).empty(); }),
            Names{"assay"});
  EXPECT_EQ(
      of_whom(run, [](const RunRecord& record) { return may_stand_in(record, "tokens whose loss counts"); }),
      Names{"assay"});
}

}  // namespace
}  // namespace assay::spec::audit::trainer_properties_test
