// labels: unit golden
// What trainers do by habit and is no mistake: lines printed twice, losses of rewards, counts without
// positions, names and keys of other versions.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/error.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::trainer_habits_test {
namespace {

using tests::read_text;

double value(const Step& step, Field field) { return step[field] ? step[field]->value : -1; }

/// One logged step as LLaMA-Factory's console shows it: its own line, and that of the Trainer.
std::string llama_factory(const std::string& loss, const std::string& rate, const std::string& rounded_rate,
                          const std::string& trainers_loss) {
  return "07/18/2024 16:35:52 - INFO - llamafactory.extras.callbacks - {'loss': " + loss +
         ", 'learning_rate': " + rounded_rate +
         ", 'epoch': 0.08, 'throughput': 1521.33}\n"
         "{'loss': " +
         trainers_loss + ", 'grad_norm': 0.6734, 'learning_rate': " + rate + ", 'epoch': 0.08}\n";
}

TEST(TrainerHabitsSpec, LlamaFactorysTwoLinesAreOneStep) {
  const std::string log = llama_factory("1.3710", "2.702702702702703e-05", "2.7027e-05", "1.371") +
                          llama_factory("1.2814", "5.405405405405406e-05", "5.4054e-05", "1.2814") +
                          llama_factory("1.1710", "8.108108108108109e-05", "8.1081e-05", "1.171");
  const RunRecord run = read_text(log, "max_steps=3");
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_EQ(run.steps_seen, 3);
  EXPECT_EQ(value(run.steps[2], Field::step), 3);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::gradient_norm), 0.6734);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::tokens_per_second), 1521.33);
  EXPECT_TRUE(consistent(run)) << contradictions(run);
}

std::string state(const std::vector<std::pair<int, std::string>>& entries) {
  std::string out = "{\"global_step\": 40, \"log_history\": [\n";
  for (std::size_t i = 0; i < entries.size(); ++i)
    out += (i ? ",\n" : "") + std::string("{\"epoch\": 0.1, \"learning_rate\": 1e-05, \"loss\": ") +
           entries[i].second + ", \"step\": " + std::to_string(entries[i].first) + "}";
  return out + "], \"max_steps\": 40}";
}

TEST(TrainerHabitsSpec, AStateWhoseEveryEntryIsThereTwiceHasNoDoubledSteps) {
  const RunRecord twice =
      read_text(state({{10, "2.5"}, {10, "2.5"}, {20, "2.4"}, {20, "2.4"}, {30, "2.3"}, {30, "2.3"}}));
  EXPECT_EQ(twice.steps.size(), 3u);
  const Result steps = judge("steps", twice);
  EXPECT_EQ(steps.verdict, Verdict::holds);
  EXPECT_EQ(steps.note, "");
}

TEST(TrainerHabitsSpec, DoublesThatDifferAreDoubledSteps) {
  for (const auto& entries : {std::vector<std::pair<int, std::string>>{
                                  {10, "2.5"}, {10, "2.6"}, {20, "2.4"}, {20, "2.7"}, {30, "2.3"}},
                              std::vector<std::pair<int, std::string>>{
                                  {10, "2.5"}, {20, "2.4"}, {20, "2.9"}, {30, "2.3"}, {40, "2.2"}}}) {
    const Result steps = judge("steps", read_text(state(entries)));
    EXPECT_EQ(steps.verdict, Verdict::contradicts) << entries.size();
    EXPECT_EQ(steps.causes.at(0).id, "step_doubled");
  }
  // One line doubled is one too many.
  EXPECT_EQ(judge("steps", read_text(state({{10, "2.5"}, {20, "2.4"}, {20, "2.4"}, {30, "2.3"}}))).verdict,
            Verdict::contradicts);
}

TEST(TrainerHabitsSpec, ADictionaryWhoseLossIsNotFirstIsAStep) {
  const RunRecord run = read_text(
      "{'epoch': 0.01, 'loss': 2.5012, 'grad_norm': 1.25, 'learning_rate': 1e-05}\n"
      "  5%|#    | 20/400 [00:10<03:10]{'epoch': 0.02, 'loss': 2.4100, 'grad_norm': 1.5, 'learning_rate': "
      "2e-05}\n"
      "{'eval_loss': 2.4, 'epoch': 0.02}\n"
      "{'learning_rate': 3e-05, 'epoch': 0.03, 'loss': 2.3}\n",
      "max_steps=30");
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_EQ(run.format.name, "hugging_face");
  EXPECT_EQ(run.steps[1][Field::loss]->value, 2.41);
  EXPECT_EQ(run.steps[2][Field::learning_rate]->value, 3e-05);
  EXPECT_EQ(run.unread_lines, 0);
}

/// One number again and again is a log of that number.
TEST(TrainerHabitsSpec, EqualLinesAreNoDoubles) {
  std::string log;
  for (int i = 0; i < 6; ++i) log += "{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n";
  EXPECT_EQ(read_text(log).steps.size(), 6u);
}

TEST(TrainerHabitsSpec, LlamaFactorysJsonLinesExplainThemselves) {
  const RunRecord run = read_text(
      "{\"current_steps\": 10, \"total_steps\": 30, \"loss\": 1.371, \"lr\": 2.7e-05, \"epoch\": 0.08, "
      "\"throughput\": 1521.33, \"total_tokens\": 18240}\n"
      "{\"current_steps\": 20, \"total_steps\": 30, \"loss\": 1.2814, \"lr\": 5.4e-05, \"epoch\": 0.16, "
      "\"throughput\": 1530.81, \"total_tokens\": 37104}\n");
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(value(run.steps[1], Field::step), 20);
  EXPECT_DOUBLE_EQ(value(run.steps[1], Field::learning_rate), 5.4e-5);
  EXPECT_EQ(value(run.steps[1], Field::tokens_total), 37104);
}

/// TRL prints losses of 0 and below 0 for policies, and near 0 for preferences: no cross-entropy.
TEST(TrainerHabitsSpec, LossesOfRewardsAreNotJudgedAsCrossEntropies) {
  const std::string policy =
      "{'loss': 0.0, 'grad_norm': 0.1, 'learning_rate': 9e-07, 'reward': 0.5, 'kl': 0.0, 'epoch': 0.01}\n"
      "{'loss': -0.0021, 'grad_norm': 0.1, 'learning_rate': 9e-07, 'reward': 0.6, 'kl': 0.0, 'epoch': "
      "0.02}\n";
  const std::string preference =
      "{'loss': 0.00003, 'grad_norm': 0.1, 'learning_rate': 9e-07, 'rewards/chosen': 4.0, 'epoch': 0.01}\n"
      "{'loss': 0.00002, 'grad_norm': 0.1, 'learning_rate': 8e-07, 'rewards/chosen': 4.1, 'epoch': 0.02}\n";
  const std::string json_lines =
      "{\"loss\": 1e-08, \"grad_norm\": 0.04, \"learning_rate\": 1e-08, \"reward\": 0.66}\n"
      "{\"loss\": 4e-08, \"grad_norm\": 0.03, \"learning_rate\": 1e-08, \"reward\": 0.78}\n";
  for (const std::string& log : {policy, preference, json_lines}) {
    const RunRecord run = read_text(log);
    EXPECT_EQ(run.steps.size(), 2u);
    EXPECT_EQ(judge("loss_possible", run).verdict, Verdict::cannot_be_judged);
    EXPECT_TRUE(consistent(run)) << contradictions(run);
  }
  EXPECT_EQ(
      judge("loss_possible", read_text("{'loss': -0.2, 'learning_rate': 9e-07, 'epoch': 0.01}\n")).verdict,
      Verdict::contradicts);
}

TEST(TrainerHabitsSpec, AGradientThatOverflowsIsNotALossThatDoes) {
  const auto finite = [](const std::string& loss, const std::string& norm) {
    RunRecord run = read_text(
        "{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
        "{'loss': " +
        loss + ", 'grad_norm': " + norm + ", 'learning_rate': 1e-05, 'epoch': 0.2}\n");
    run.dtype = "bf16";  // no loss scaling, which ends a log so too
    return judge("loss_finite", run);
  };
  EXPECT_EQ(finite("2.4", "1.1").verdict, Verdict::holds);
  for (const char* norm : {"nan", "inf"}) {
    const Result gradient = finite("2.4", norm);
    EXPECT_EQ(gradient.verdict, Verdict::contradicts);
    EXPECT_EQ(gradient.contradicted, 1);
    EXPECT_EQ(gradient.causes.at(0).id, "gradient_not_finite");
  }
  EXPECT_EQ(finite("nan", "nan").causes.at(0).id, "loss_not_finite");
}

/// A schedule may begin and end at exactly 0.
TEST(TrainerHabitsSpec, ALearningRateOfZeroAtEitherEndIsOfTheSchedule) {
  std::string log;
  for (int i = 0; i <= 40; ++i) {
    const double rate = i < 10 ? 1e-4 * i / 10 : 1e-4 * (40 - i) / 30;
    char line[160];
    std::snprintf(line, sizeof line, "%d,%.4f,%.10g\n", i, 3 - 0.01 * i, rate);
    log += line;
  }
  const RunRecord run = read_text("step,loss,learning_rate\n" + log,
                                  "schedule=linear,learning_rate=1e-4,learning_rate_min=0,warmup_steps=10,"
                                  "decay_steps=40,max_steps=40");
  ASSERT_EQ(run.steps.size(), 41u);
  EXPECT_EQ(value(run.steps.front(), Field::learning_rate), 0);
  EXPECT_EQ(value(run.steps.back(), Field::learning_rate), 0);
  EXPECT_EQ(judge("learning_rate", run).verdict, Verdict::holds) << contradictions(run);
  EXPECT_EQ(judge("values_possible", run).verdict, Verdict::holds);
  const RunRecord bare = read_text("step,loss,learning_rate\n" + log);
  EXPECT_TRUE(consistent(bare)) << contradictions(bare);
}

TEST(TrainerHabitsSpec, TorchtitansModelsAndGpusAreFoundByTheirNames) {
  const std::string head =
      "[titan] 2025-03-11 10:01:05,101 - root - INFO - Building 1-D device mesh with ['dp_shard'], [8]\n"
      "[titan] 2025-03-11 10:01:05,102 - root - INFO - GPU capacity: NVIDIA A100-SXM4-80GB (0) with 79.15GiB "
      "memory\n";
  const std::string step =
      "[titan] 2025-03-11 10:01:30,000 - root - INFO - step:  1  loss: 12.2571  memory: 47.72GiB(60.33%)  "
      "wps: 618  mfu: 3.62%\n";
  const RunRecord run =
      read_text(head +
                "[titan] 2025-03-11 10:01:06,000 - root - INFO - Model llama3 8B size: 8,030,261,248 total "
                "parameters\n" +
                step);
  EXPECT_EQ(run.gpu, "NVIDIA A100-SXM4-80GB");
  const Audit one = audit(run);
  EXPECT_EQ(one.model, "llama3-8b");
  EXPECT_EQ(one.gpu, "NVIDIA A100 SXM 80GB");
}

/// The names of 2 and 28 GPUs in one log: each run keeps its own, whatever the order.
TEST(TrainerHabitsSpec, GpusOfSeveralNamesAreKeptApart) {
  const auto log = [](const std::string& gpu) {
    tests::SimulatedRun run = tests::simulate(tests::LogFormat::torchtitan, 7);
    run.gpu = gpu;
    return render(run);
  };
  const std::vector<std::string> names = {"NVIDIA H100 80GB HBM3", "NVIDIA B200", "NVIDIA A100-SXM4-80GB"};
  for (const auto& order : {std::vector<int>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    std::string text;
    for (const int i : order) text += log(names[static_cast<std::size_t>(i)]);
    std::istringstream in(text);
    const std::vector<RunRecord> runs = read_logs(in, "three runs");
    ASSERT_EQ(runs.size(), 3u);
    for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(runs[k].gpu, names[static_cast<std::size_t>(order[k])]);
  }
}

/// Lines of nanotron since 2025 name their time otherwise (golden/logs/nanotron_time_per_iteration.log).
TEST(TrainerHabitsSpec, MegatronsLinesOfOtherVersionsAreRead) {
  const RunRecord old = read_text(
      " iteration      100/  320000 | elapsed time per iteration (ms): 528.9 | learning rate 1.500E-04 | lm "
      "loss "
      "7.120000E+00 | loss scale 131072.0 |\n"
      " iteration      200/  320000 | elapsed time per iteration (ms): 527.1 | learning rate 1.500E-04 | lm "
      "loss "
      "6.720000E+00 | loss scale 131072.0 |\n");
  ASSERT_EQ(old.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(value(old.steps[0], Field::loss), 7.12);
  EXPECT_DOUBLE_EQ(value(old.steps[1], Field::learning_rate), 1.5e-4);
  EXPECT_DOUBLE_EQ(value(old.steps[1], Field::seconds), 0.5271);
}

TEST(TrainerHabitsSpec, AMappedColumnThatIsNotThereIsAnErrorThatNamesThoseThatAre) {
  const auto message = [](const std::string& text, const std::string& map) -> std::string {
    try {
      read_text(text, "", map);
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  };
  for (const char* log : {"iter,train_loss\n1,2.5\n2,2.4\n",
                          "{\"iter\":1,\"train_loss\":2.5}\n{\"iter\":2,\"train_loss\":2.4}\n",
                          "[{\"iter\":1,\"train_loss\":2.5},{\"iter\":2,\"train_loss\":2.4}]"}) {
    EXPECT_EQ(message(log, "step=iter,loss=train_loss"), "") << log;
    EXPECT_EQ(message(log, "loss=train_loss"), "") << log;
    for (const char* map : {"step=iter,loss=lss", "step=it,loss=train_loss"}) {
      const std::string said = message(log, map);
      EXPECT_NE(said.find("no column \""), std::string::npos) << log << said;
      EXPECT_NE(said.find("iter, train_loss"), std::string::npos) << log << said;
    }
  }
}

}  // namespace
}  // namespace assay::spec::audit::trainer_habits_test
