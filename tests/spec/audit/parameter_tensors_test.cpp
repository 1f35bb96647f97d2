// labels: unit
// nanoGPT's count of parameters, held to the tensors that it counts for its optimizer.
#include <gtest/gtest.h>

#include <algorithm>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::parameter_tensors_test {
namespace {

/// GPT-2 of nanoGPT's config/train_gpt2.py (no biases, 50,304 rows), on an A100 at 40 %.
struct NanoGpt {
  std::string parameters = "123.59M", decayed = "50, with 124,354,560", others = "25, with 19,200";
  std::string settings = "",
              vocab = "defaulting to vocab_size of GPT-2 to 50304 (50257 rounded up for efficiency)\n";

  RunRecord read() const {
    std::string log =
        "Overriding config with config/train_gpt2.py:\nbatch_size = 12\nblock_size = 1024\n"
        "gradient_accumulation_steps = 40\n" +
        settings + "tokens per iteration will be: 491,520\n" + vocab +
        "Initializing a new model from scratch\n";
    if (!parameters.empty()) log += "number of parameters: " + parameters + "\n";
    if (!decayed.empty())
      log += "num decayed parameter tensors: " + decayed +
             " parameters\nnum non-decayed parameter tensors: " + others + " parameters\n";
    log += "iter 0: loss 10.9573, time 12624.30ms, mfu -100.00%\n";
    for (int i = 10; i < 100; i += 10)
      log += "iter " + std::to_string(i) + ": loss 9.5" + std::to_string(100 - i) +
             "0, time 420.00ms, mfu 40.08%\n";
    return tests::read_text(log);
  }
  Result count() const { return judge("parameters", read()); }
  std::string cause() const {
    const RunRecord record = read();
    const Audit told = audit(record);
    const auto& changes = told.readings.front().changes;
    return changes.empty() ? "" : changes.front().id + ": " + changes.front().text;
  }
};

TEST(ParameterTensorsSpec, TheCountOfTheTensorsHolds) {
  EXPECT_EQ(NanoGpt().count().verdict, Verdict::holds);
  EXPECT_EQ(contradictions(NanoGpt().read()), "");
  // All of them, positions too, as the first versions printed.
  EXPECT_EQ(NanoGpt{.parameters = "124.37M"}.count().verdict, Verdict::holds);
  // Six layers 384 wide over 65 characters, with biases: no built-in model.
  const NanoGpt small{.parameters = "11.07M", .decayed = "26, with 11,035,008", .others = "50, with 30,720"};
  NanoGpt named = small;
  named.vocab = "found vocab_size = 65 (inside data/shakespeare_char/meta.pkl)\n";
  EXPECT_EQ(small.count().verdict, Verdict::cannot_be_judged);  // other rows than it says
  named.parameters = "10.67M";
  EXPECT_EQ(named.count().verdict, Verdict::holds);
}

/// The lines with length and vocabulary are lost: 1,024 positions are no more than likely.
TEST(ParameterTensorsSpec, ALengthThatNoLineStatesIsNotTakenForGranted) {
  const auto lost = [](const std::string& decayed) {
    return contradictions(
        tests::read_text("number of parameters: 123.59M\nnum decayed parameter tensors: 50, with " + decayed +
                         " parameters\nnum non-decayed parameter tensors: 25, with 19,200 parameters\n"
                         "iter 0: loss 10.9573, time 12624.30ms, mfu -100.00%\n"
                         "iter 10: loss 9.5100, time 420.00ms, mfu 40.08%\n"));
  };
  for (const char* tables : {"124,354,560", "123,764,736", "125,140,992"})  // of 1,024, 256 and 2,048
    EXPECT_EQ(lost(tables), "") << tables;
  EXPECT_NE(lost("124,354,561"), "");
  EXPECT_NE(lost("136,789,216"), "");
}

TEST(ParameterTensorsSpec, AnotherCountContradictsAndIsNamed) {
  NanoGpt run{.parameters = "353.77M"};
  EXPECT_EQ(run.count().verdict, Verdict::contradicts);
  EXPECT_EQ(run.cause(),
            "parameters_of_other_model: the parameters are another model's: gpt2-medium's, or gpt3-350m's");
  run.parameters = "84.95M";
  EXPECT_EQ(run.cause(), "embedding_not_counted: the embedding is left out");
  run.parameters = "208.54M";
  EXPECT_EQ(run.cause(), "layers_other: the parameters are those of 24 layers, not 12");
  run.parameters = "123.55M";
  EXPECT_EQ(
      run.cause(),
      "vocabulary_not_padded: the parameters are those of a vocabulary of 50,257, not of the 50,304 that "
      "the tensors have");
  run.parameters = "150.00M";
  EXPECT_EQ(run.count().verdict, Verdict::contradicts);
  const RunRecord record = run.read();
  EXPECT_EQ(run.cause(),
            "parameters_miscounted: the count of parameters is wrong: FLOP/s go with the tensors that are "
            "printed, not with it (the tensors make 123,587,328)");
  // FLOPs go on with the model that the tensors are of.
  EXPECT_EQ(judge("mfu_of_batch", run.read()).verdict, Verdict::holds);
}

TEST(ParameterTensorsSpec, TensorsThatAreNotTheCountsContradict) {
  EXPECT_EQ(judge("parameter_tensors", NanoGpt().read()).verdict, Verdict::holds);
  // With biases: 74 vectors more, of 13 widths a block and 2 beside them.
  EXPECT_EQ(judge("parameter_tensors", NanoGpt{.parameters = "123.65M", .others = "98, with 121,344"}.read())
                .verdict,
            Verdict::holds);
  for (const auto& [decayed, others] : {std::pair("50, with 136,790,016", "25, with 19,200"),
                                        {"50, with 124,354,560", "25, with 21,120"},
                                        {"50, with 124,354,561", "25, with 19,200"}}) {
    const RunRecord record = NanoGpt{.decayed = decayed, .others = others}.read();
    const Result result = judge("parameter_tensors", record);
    EXPECT_EQ(result.verdict, Verdict::contradicts) << decayed << " " << others;
    EXPECT_EQ(result.recomputed.low, 124373760) << decayed;
    ASSERT_FALSE(result.causes.empty());
    EXPECT_EQ(result.causes.front().id, "tensors_miscounted");
    EXPECT_EQ(judge("parameters", record).verdict, Verdict::holds) << decayed;
  }
  // A fork's tensors, and a log without the other group's line.
  EXPECT_EQ(judge("parameter_tensors", NanoGpt{.decayed = "62, with 152,666,112"}.read()).verdict,
            Verdict::cannot_be_judged);
  EXPECT_EQ(judge("parameter_tensors", NanoGpt{.decayed = ""}.read()).verdict, Verdict::cannot_be_judged);
}

TEST(ParameterTensorsSpec, TensorsOfAForkAreNotHeld) {
  NanoGpt run{.parameters = "150.00M"};
  run.decayed = "62, with 152,666,112";  // three matrices in each MLP
  EXPECT_EQ(run.count().verdict, Verdict::cannot_be_judged);
  run.decayed = "50, with 124,354,560", run.others = "27, with 19,200";  // as many entries, two more tensors
  EXPECT_EQ(run.count().verdict, Verdict::cannot_be_judged);
  run.others = "25, with 19,200", run.decayed = "50, with 124,354,561";  // not of such tables
  EXPECT_EQ(run.count().verdict, Verdict::cannot_be_judged);
  run = NanoGpt{.parameters = "150.00M", .settings = "n_layer = 11\n"};
  EXPECT_EQ(run.count().verdict, Verdict::cannot_be_judged);
  run = NanoGpt{.parameters = "150.00M", .decayed = ""};
  EXPECT_EQ(run.count().verdict, Verdict::cannot_be_judged);
}

/// Blocks are alike, so that of 12 of them there are a multiple of 12 matrices beside the two tables.
TEST(ParameterTensorsSpec, CountsOfTensorsThatNoBlocksMakeContradict) {
  for (const auto& [decayed, others] : {std::pair("99, with 124,354,560", "25, with 19,200"),
                                        {"49, with 124,354,560", "25, with 19,200"},
                                        {"50, with 124,354,560", "99, with 19,200"},
                                        {"50, with 124,354,560", "99, with 121,344"}}) {
    const Result result =
        judge("parameter_tensors", NanoGpt{.parameters = "", .decayed = decayed, .others = others}.read());
    ASSERT_EQ(result.verdict, Verdict::contradicts) << decayed << " " << others;
    EXPECT_EQ(result.causes.front().id, "tensors_miscounted");
    EXPECT_NE(result.causes.front().text.find("12 blocks alike"), std::string::npos);
  }
  // Queries, keys and values apart: 6 matrices and, with biases, 10 vectors of each block, of as many
  // entries.
  for (const auto& [decayed, others] : {std::pair("74, with 124,354,560", "25, with 19,200"),
                                        {"74, with 124,354,560", "122, with 121,344"},
                                        {"99, with 124,355,328", "25, with 19,200"}})  // of one more position
    EXPECT_NE(
        judge("parameter_tensors", NanoGpt{.parameters = "", .decayed = decayed, .others = others}.read())
            .verdict,
        Verdict::contradicts)
        << decayed << " " << others;
}

RunRecord build_nanogpt(const std::string& decayed, const std::string& others = "98, with 121,344") {
  std::string log =
      "total desired batch size: 524288\n=> calculated gradient accumulation steps: 1\n"
      "num decayed parameter tensors: " +
      decayed + " parameters\nnum non-decayed parameter tensors: " + others + " parameters\n";
  for (int i = 0; i < 10; ++i)
    log += "step     " + std::to_string(i) + " | loss: 10.9" + std::to_string(90 - i) +
           "000 | lr 8.3916e-07 | norm: 2.0199 | dt: 341.30ms | "
           "tok/sec: 1536150.01\n";
  return tests::read_text(log);
}

/// build-nanogpt: GPT-2 with biases and 50,304 rows, whose tensors alone say what it is.
TEST(ParameterTensorsSpec, BuildNanoGptsTensorsAreOfOneModel) {
  const RunRecord honest = build_nanogpt("50, with 124,354,560");
  EXPECT_EQ(judge("parameter_tensors", honest).verdict, Verdict::holds);
  EXPECT_EQ(contradictions(honest), "");
  // Forks: another vocabulary, another inner width, which has other biases too.
  EXPECT_EQ(contradictions(build_nanogpt("50, with 124,318,464")), "");
  EXPECT_EQ(contradictions(build_nanogpt("50, with 110,198,784", "98, with 112,128")), "");
  // By whole rows too many: told, for nothing says that no fork has such a vocabulary.
  EXPECT_EQ(judge("parameter_tensors", honest).note, "");
  EXPECT_EQ(judge("parameter_tensors", build_nanogpt("50, with 136,790,016")).note,
            "with 1,024 positions they have 66,496 tokens, where the trainer's source has 50,304: another "
            "vocabulary, or a wrong count");
  for (const char* lie : {"50, with 124,354,561", "50, with 124,478,913", "99, with 124,354,560"})
    EXPECT_EQ(judge("parameter_tensors", build_nanogpt(lie)).verdict, Verdict::contradicts) << lie;
  EXPECT_EQ(judge("parameter_tensors", build_nanogpt("50, with 124,354,560", "99, with 121,344")).verdict,
            Verdict::contradicts);
}

TEST(ParameterTensorsSpec, TheTensorsAloneSayTheModel) {
  EXPECT_EQ(judge("mfu_of_batch", NanoGpt{.parameters = ""}.read()).verdict, Verdict::holds);
  EXPECT_EQ(judge("mfu_of_batch", NanoGpt{.parameters = "", .decayed = ""}.read()).verdict,
            Verdict::cannot_be_judged);
}

}  // namespace
}  // namespace assay::spec::audit::parameter_tensors_test
