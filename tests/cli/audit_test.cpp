// labels: cli golden
// The logs of golden/logs/ through the verb: verdicts, corrected numbers, formats, exit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "impl/cli/verb.hpp"
#include "spec/record/write.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cli::audit_test {
namespace {

struct Outcome {
  int code;
  std::string out, err;
};

Outcome audit_of(std::vector<std::string> words) {
  words.insert(words.begin(), "audit");
  std::ostringstream out, err;
  const int code = run(words, {out, err});
  return {code, out.str(), err.str()};
}

std::string golden(const std::string& name) { return tests::source_dir() + "/golden/logs/" + name; }

double middle(const nlohmann::json& interval) {
  return (interval.at(0).get<double>() + interval.at(1).get<double>()) / 2;
}

nlohmann::json result_of(const nlohmann::json& run, const std::string& id) {
  for (const auto& result : run.at("results"))
    if (result.at("id") == id) return result;
  return {};
}

std::vector<std::string> changes_of(const nlohmann::json& reading) {
  std::vector<std::string> out;
  for (const auto& change : reading.at("changes")) out.push_back(change.at("text"));
  std::sort(out.begin(), out.end());
  return out;
}

TEST(AuditCli, TheScalingReportIsAccountingNotSpeed) {
  const Outcome screen = audit_of({golden("llm_tii_2_gpus.log"), golden("llm_tii_8_gpus.log")});
  EXPECT_EQ(screen.code, 1);
  EXPECT_EQ(screen.err, "");
  for (const char* said :
       {"tokens/s is one rank's", "the peak is the sparse one of bf16",
        "accumulation 4 was performed, not 64", "MFU 37.24 % exact, 41.77 % palm_total",
        "MFU 37.18 % exact, 41.70 % palm_total",
        "printed tokens/s 0.998x, MFU 0.250x; corrected tokens/s 3.994x, per GPU 0.998x. accounting"})
    EXPECT_NE(screen.out.find(said), std::string::npos) << said << "\n" << screen.out;
}

TEST(AuditCli, TheReportItselfHoldsBothRuns) {
  const auto json = nlohmann::json::parse(audit_of({golden("llm_tii_report.md"), "--json"}).out);
  ASSERT_EQ(json.at("runs").size(), 2u);
  for (const auto& one : json.at("runs")) {
    const auto& corrected = one.at("readings").at(0).at("corrected");
    EXPECT_NEAR(middle(corrected.at("mfu_exact")), 0.372, 0.001);
    EXPECT_NEAR(middle(corrected.at("mfu_palm_total")), 0.417, 0.001);
  }
}

TEST(AuditCli, TheJsonLogAsWorkedByHand) {
  const Outcome outcome = audit_of({golden("llm_tii_run_20251115_150458.json"), "--json"});
  EXPECT_EQ(outcome.code, 1);
  const auto json = nlohmann::json::parse(outcome.out);
  const auto& one = json.at("runs").at(0);
  for (const char* id : {"rate_time", "mfu", "parameters", "parameters_nonembedding", "ffn_flops_per_layer"})
    EXPECT_EQ(result_of(one, id).at("verdict"), "contradicts") << id;
  for (const char* id : {"flops_rate", "peak", "flops_per_token", "device_memory", "memory", "first_loss",
                         "average_seconds", "average_mfu", "steps", "mfu_possible", "final"})
    EXPECT_EQ(result_of(one, id).at("verdict"), "holds") << id;
  const auto& best = one.at("readings").at(0);
  EXPECT_EQ(changes_of(best), (std::vector<std::string>{
                                  "\"without embedding\" counts the embedding",
                                  "another shape ran: 16 key/value heads, one for each query head, not 8, "
                                  "and an inner width of 5,461 = int(8 x 2,048 / 3), not 6,144",
                                  "tokens/s is one rank's, and the MFU is made of it"}));
  EXPECT_NEAR(middle(best.at("corrected").at("mfu_palm_total")), 0.735, 0.002);
  EXPECT_NEAR(middle(best.at("corrected").at("mfu_exact")), 0.586, 0.002);
}

TEST(AuditCli, RealLogsWithoutContradiction) {
  for (const char* log :
       {"kempnerforge_13b_8_gpus.log", "llmc_gpt2_1558m_8_gpus.log", "llmq_rtx_4090.log",
        "megatron_mixtral_16_gpus.log", "nanogpt_a100.log", "torchtitan_debug_model.log",
        "hugging_face_alpaca.log", "hugging_face_grpo.log", "nanotron_time_per_iteration.log"}) {
    const Outcome outcome = audit_of({golden(log)});
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find(": consistent, "), std::string::npos) << outcome.out;
  }
}

TEST(AuditCli, ExplainsInvariants) {
  const std::string told = audit_of({"--explain", "loss_finite"}).out,
                    begin =
                        "loss_finite\n  loss and gradient norm are finite\n  After a NaN no step trains a ";
  EXPECT_EQ(told.rfind(begin, 0), 0u) << told;
  EXPECT_EQ(told.back(), '\n');
  EXPECT_NE(audit_of({"--explain", "all"}).out.find("\nscaling\n"), std::string::npos);
  const Outcome unknown = audit_of({"--explain", "mfuu"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("did you mean \"mfu\"?"), std::string::npos) << unknown.err;
  const Outcome nothing_near = audit_of({"--explain", "nonesuch"});
  EXPECT_EQ(nothing_near.code, 2);
  EXPECT_NE(nothing_near.err.find("\"nonesuch\"; known: ranks, sequences, "), std::string::npos)
      << nothing_near.err;
}

TEST(AuditCli, WritesJUnit) {
  const tests::Scratch scratch;
  const std::string path = scratch.path().string() + "/audit.xml";
  EXPECT_EQ(audit_of({golden("llm_tii_8_gpus.log"), "--junit", path}).code, 1);
  std::ifstream file(path);
  const std::string xml((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(xml.rfind("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", 0), 0u);
  EXPECT_NE(xml.find("failures=\"4\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("name=\"peak\" time=\"0\"><failure type=\"contradiction\" message=\"peak: printed "
                     "36000.0 TFLOP/s, recomputed 18000.0 TFLOP/s"),
            std::string::npos)
      << xml;
  EXPECT_EQ(
      audit_of({golden("llm_tii_8_gpus.log"), "--junit", scratch.path().string() + "/no/audit.xml"}).code,
      74);
}

// By an XML parser of its own: the layout that CI systems read (testsuites > testsuite > testcase > failure,
// error or skipped), its counts, and characters that XML forbids.
TEST(AuditCli, JUnitIsWellFormedAndCountsWhatItHolds) {
  const tests::Scratch scratch;
  const std::string folder = scratch.path().string() + "/",
                    log = folder + "a<b>&\"\x01\xff\xef\xbf\xbf\xef\xbf\xbe.log";
  std::ofstream(log)
      << "iter 0: loss nan, time 100.00ms, mfu 10.00%\niter 1: loss 1.0000, time 100.00ms, mfu "
         "10.00%\n";
  const auto check = [&](const std::string& xml) {
    return tests::shell("python3 - " + xml + R"( <<'EOF'
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "testsuites", root.tag
total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
for suite in root:
    assert suite.tag == "testsuite" and suite.get("name") and float(suite.get("time")) >= 0
    cases = list(suite)
    found = {"tests": len(cases)}
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        found[count] = sum(len(case.findall(tag)) for case in cases)
    for case in cases:
        assert case.tag == "testcase" and case.get("classname") and case.get("name") and len(case) <= 1
        for outcome in case:
            assert outcome.tag == "skipped" or outcome.get("type"), outcome.tag
            assert outcome.get("message"), case.get("name")
            if outcome.tag == "failure": assert outcome.get("message").startswith(case.get("name") + ": ")
    for count, number in found.items():
        assert int(suite.get(count)) == number, (count, number)
        total[count] += number
for count, number in total.items(): assert int(root.get(count)) == number, (count, number)
print(total["failures"], total["errors"])
EOF
)");
  };
  EXPECT_EQ(audit_of({golden("llm_tii_2_gpus.log"), golden("llm_tii_8_gpus.log"), log, "--junit",
                      folder + "out.xml"})
                .code,
            1);
  const auto failures = check(folder + "out.xml");
  EXPECT_EQ(failures.code, 0) << failures.messages;
  EXPECT_EQ(failures.output.substr(failures.output.find(' ')), " 0\n");
  EXPECT_EQ(audit_of({folder + "missing.log", "--junit", folder + "error.xml"}).code, 2);
  const auto errors = check(folder + "error.xml");
  EXPECT_EQ(errors.code, 0) << errors.messages;
  EXPECT_EQ(errors.output, "0 1\n");
}

TEST(AuditCli, TheCommandLineFillsInWhatALogLeavesOut) {
  const auto json = nlohmann::json::parse(audit_of({golden("llmq_rtx_4090.log"), "--gpus", "1", "--seq",
                                                    "1024", "--model", "qwen3-0.6b", "--json"})
                                              .out);
  EXPECT_EQ(json.at("runs").at(0).at("model"), "qwen3-0.6b");
  EXPECT_EQ(json.at("runs").at(0).at("gpus"), 1);
}

/// Every log through a pipe: the same page but for the name.
TEST(AuditCli, AuditsStandardInput) {
  const std::string program = tests::binary_dir() + "/bin/assay";
  int logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden(""))) {
    const std::string path = entry.path().string();
    if (path.ends_with("README.md")) continue;
    const auto piped = tests::shell("cat '" + path + "' | '" + program + "' audit -");
    const auto named = tests::shell("'" + program + "' audit '" + path + "'");
    EXPECT_EQ(piped.code, named.code) << path << piped.messages;
    std::string expected = named.output;
    for (std::size_t at = 0; (at = expected.find(path, at)) != std::string::npos;)
      expected.replace(at, path.size(), "standard input");
    EXPECT_EQ(piped.output, expected) << path;
    ++logs;
  }
  EXPECT_GE(logs, 13);
  const auto empty = tests::shell("'" + program + "' audit - < /dev/null");
  EXPECT_EQ(empty.code, 65);
  EXPECT_NE(empty.messages.find("standard input: is empty"), std::string::npos) << empty.messages;
}

TEST(AuditCli, ALengthThatContradictsIsNamed) {
  const Outcome outcome = audit_of({golden("llm_tii_8_gpus.log"), "--seq", "1024"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("sequences are of 2,048 tokens, not 1,024"), std::string::npos) << outcome.out;
}

TEST(AuditCli, ARunOnTheCpuIsNotOneOfGpus) {
  const tests::Scratch scratch;
  const std::string path = scratch.path().string() + "/run.jsonl";
  std::ofstream(path) << spec::record::to_json(tests::example_start()) << "\n"
                      << spec::record::to_json(tests::example_step(1)) << "\n";
  const Outcome cpu = audit_of({path});
  EXPECT_NE(cpu.out.find("tiny-llama, 2 ranks on the CPU)"), std::string::npos) << cpu.out;
  EXPECT_NE(cpu.out.find("16,384 /s on all ranks, 8,192 /s per rank (no peak of a CPU, so no MFU)"),
            std::string::npos)
      << cpu.out;
  EXPECT_EQ(cpu.out.find(" GPU"), cpu.out.find(" GPU: the run is on CPUs")) << cpu.out;
  const auto json = nlohmann::json::parse(audit_of({path, "--json"}).out);
  EXPECT_EQ(json.at("runs").at(0).at("device"), "cpu");
  // The command line knows better than the log.
  EXPECT_NE(audit_of({path, "--gpu", "H200 SXM"}).out.find("2 x NVIDIA H200 SXM)"), std::string::npos);
}

TEST(AuditCli, ALogWithoutStepsIsNotConsistent) {
  const tests::Scratch scratch;
  const std::string folder = scratch.path().string() + "/", table = folder + "table.csv",
                    started = folder + "run.jsonl", report = folder + "audit.xml";
  std::ofstream(table) << "iter,loss,ms\n";
  auto start = tests::example_start();
  start.flops_per_token = 5'311'488;
  std::ofstream(started) << spec::record::to_json(start) << "\n";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{table, "--map", "step=iter,loss=loss"},
        {table, "--map", "step=iter,loss=loss", "--gpus", "8"},
        {started}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--junit", report});
    const Outcome outcome = audit_of(all);
    EXPECT_EQ(outcome.code, 65) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(words[0] + ": holds no step in 1 line,"), std::string::npos) << outcome.err;
    std::ifstream file(report);
    const std::string xml((std::istreambuf_iterator<char>(file)), {});
    EXPECT_NE(xml.find("errors=\"1\""), std::string::npos) << xml;
  }
  // A summary of steps that the log does not hold is judged, and so is a start that contradicts itself.
  const std::string summary = folder + "trainer_state.json";
  std::ofstream(summary)
      << "{\n\"log_history\": [{\"train_runtime\": 100.0, \"train_samples_per_second\": 32.0, "
         "\"train_steps_per_second\": 0.5, \"train_loss\": 2.5, \"step\": 50}]}\n";
  EXPECT_EQ(audit_of({summary, "--set", "max_steps=50"}).code, 0) << audit_of({summary}).err;
  EXPECT_EQ(audit_of({summary, "--set", "max_steps=60"}).code, 1);
  EXPECT_EQ(audit_of({started, "--set", "sequences=33"}).code, 1);
}

/// A trainer that prints the rate of one GPU is not one that hides something when several are slower each.
TEST(AuditCli, ASlowerRunOfRatesPerGpuIsNoAccounting) {
  const tests::Scratch scratch;
  const auto log_on = [&](int gpus, int seconds_of_ten, const std::string& rates) {
    const std::string n = std::to_string(gpus);
    const auto line = [](int seconds, const std::string& said) {
      return "[titan] 2025-11-20 09:" + std::to_string(13 + seconds / 60) + ":" +
             std::to_string(100 + seconds % 60).substr(1) + ",000 - root - INFO - " + said + "\n";
    };
    std::string text =
        line(0, "Building 1-D device mesh with ['dp_shard'], [" + n + "]") +
        line(0, "CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory") +
        line(0, "Model llama3 8B size: 8,030,261,248 total parameters") +
        line(0, "Peak FLOPS used for computing MFU: 9.890e+14") +
        line(0, "Trainer is initialized with local batch size 1, global batch size " + n +
                    ", gradient accumulation steps 1, sequence length 8192, total steps 100 (warmup 20)");
    for (int i = 1; i <= 4; ++i)
      text +=
          line(i * seconds_of_ten, "step: " + std::to_string(10 * i) + "  loss: " + std::to_string(9 - i) +
                                       ".2500  grad_norm:  3.1000  memory: 42.00GiB(53.10%)  " + rates);
    return scratch.write(n + ".log", text).string();
  };
  const auto verdict_of = [&](int seconds_of_ten, const std::string& rates) {
    const auto json =
        nlohmann::json::parse(audit_of({log_on(2, 13, "tps: 6,302  tflops: 364.95  mfu: 36.90%"),
                                        log_on(8, seconds_of_ten, rates), "--json"})
                                  .out);
    return json.at("differences").at(0).at("verdict").get<std::string>();
  };
  EXPECT_EQ(verdict_of(13, "tps: 6,302  tflops: 364.95  mfu: 36.90%"), "equally fast per GPU (0.00 %)");
  EXPECT_EQ(verdict_of(20, "tps: 4,096  tflops: 237.22  mfu: 23.99%"), "real: 0.65x per GPU");
}

TEST(AuditCli, RunsOfOtherWorkAreComparedByTheirMfu) {
  const Outcome other = audit_of({golden("llm_tii_2_gpus.log"), golden("kempnerforge_13b_8_gpus.log")});
  EXPECT_NE(other.out.find("other work (llama-1.36b and kempnerforge-13b), so tokens/s do not compare: exact "
                           "MFU 37.24 % and 33.99 %"),
            std::string::npos)
      << other.out;
  EXPECT_EQ(other.out.find("real: "), std::string::npos) << other.out;
  // One model on two GPUs: both speeds are there, and what each GPU could do.
  const tests::Scratch scratch;
  const auto log_on = [&](const std::string& gpu, double seconds) {
    std::string text = "step,seconds,tokens_per_second\n";
    for (int i = 1; i <= 20; ++i)
      text +=
          std::to_string(i) + "," + std::to_string(seconds) + "," + std::to_string(65536 / seconds) + "\n";
    std::string path = scratch.path().string() + "/" + gpu + ".csv";
    std::ofstream(path) << text;
    return path;
  };
  const auto json = nlohmann::json::parse(
      audit_of({log_on("a", 1.0), log_on("b", 0.8), "--set",
                "model=llama3-8b,gpu=H100 SXM,gpus=8,sequence_length=8192,sequences=8", "--json"})
          .out);
  const auto& difference = json.at("differences").at(0);
  EXPECT_NEAR(difference.at("mfu_exact").get<double>(), 1.25, 0.01);
  EXPECT_EQ(difference.at("verdict"), "real: 1.25x per GPU");
  // Of a model that is not known, only the tokens are compared.
  const std::string first = log_on("a", 1.0), second = log_on("b", 0.8);
  const auto unknown = nlohmann::json::parse(
      audit_of({first, second, "--set", "gpu=H100 SXM,gpus=8,sequence_length=8192,sequences=8", "--json"})
          .out);
  EXPECT_EQ(unknown.at("differences").at(0).at("verdict"),
            "1.25x the tokens/s per GPU, but the model of " + first + " and of " + second +
                " is not known, so a token may be other work (--model M)");
  const Outcome one = audit_of({golden("llm_tii_2_gpus.log"), golden("nanotron_time_per_iteration.log")});
  EXPECT_EQ(one.out.find("real: "), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("cannot be compared: no number of GPUs (--gpus N)"), std::string::npos) << one.out;
}

TEST(AuditCli, ARateIsToldAsWhoseItIs) {
  const Outcome of_one = audit_of({golden("torchtitan_debug_model.log")});
  EXPECT_NE(of_one.out.find("corrected: - on all GPUs, 34,852 /s per GPU"), std::string::npos) << of_one.out;
  // nanotron prints both: 15,500 of all over 1,940 of one are 8 GPUs, and no other number.
  const Outcome both = audit_of({golden("nanotron_two_lines.log")});
  EXPECT_NE(both.out.find("15,500 /s on all GPUs, 1,938 /s per GPU"), std::string::npos) << both.out;
}

TEST(AuditCli, AListMayBeGivenInParts) {
  const std::string log = golden("torchtitan_debug_model.log");
  const Outcome parts = audit_of({log, "--set", "gpus=8", "--set", "gpu=NVIDIA H100 SXM"});
  EXPECT_EQ(parts.out, audit_of({log, "--set", "gpus=8,gpu=NVIDIA H100 SXM"}).out);
  EXPECT_NE(parts.out.find("8 x NVIDIA H100 SXM"), std::string::npos) << parts.out;
  const Outcome twice = audit_of({log, "--set", "gpus=8", "--set", "gpus=4"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_NE(twice.err.find("gpus is given twice"), std::string::npos) << twice.err;
}

TEST(AuditCli, AContradictionSaysWhatTheCommandLineStated) {
  const std::string log = golden("llm_tii_2_gpus.log"),
                    said = "the command line says --gpu H100 SXM, not the log";
  EXPECT_NE(audit_of({log, "--gpu", "H100 SXM"}).out.find(said), std::string::npos);
  EXPECT_EQ(audit_of({log}).out.find("the command line"), std::string::npos);
}

TEST(AuditCli, TheJsonSaysWhatTheCommandLineStated) {
  const std::string log = golden("torchtitan_debug_model.log");
  const auto own = nlohmann::json::parse(audit_of({log, "--json"}).out).at("runs").at(0);
  EXPECT_TRUE(own.at("stated").empty());
  const auto told =
      nlohmann::json::parse(audit_of({log, "--json", "--gpus", "4", "--set", "gpus=2,layers=3"}).out);
  const auto& stated = told.at("runs").at(0).at("stated");
  ASSERT_EQ(stated.size(), 2u);
  EXPECT_EQ(stated.at(0).at("name"), "gpus");
  EXPECT_EQ(stated.at(0).at("option"), "--gpus 4") << "it takes the place of --set";
  EXPECT_EQ(stated.at(1).at("option"), "--set layers=3");
}

TEST(AuditCli, LinesOfASecondTrainerAndRanksAreTold) {
  const tests::Scratch scratch;
  const std::string path = scratch.path().string() + "/two.log";
  std::ofstream two(path);
  for (int step = 1; step <= 11; ++step)
    for (int rank = 0; rank < 8; ++rank)
      two << "step:  " << step << "  loss:  7.6" << step << "  grad_norm: 26.6250  tps: 10,0" << 50 - rank % 2
          << "\n";
  two << std::ifstream(golden("megatron_mixtral_16_gpus.log")).rdbuf();
  two.close();
  const Outcome screen = audit_of({path});
  EXPECT_NE(screen.out.find("11 steps of each of 8 ranks"), std::string::npos) << screen.out;
  EXPECT_NE(screen.out.find("3 lines from line 89 on look like step lines of megatron"), std::string::npos)
      << screen.out;
  const auto json = nlohmann::json::parse(audit_of({path, "--json"}).out).at("runs").at(0);
  EXPECT_EQ(json.at("steps"), 11);
  EXPECT_EQ(json.at("ranks"), 8);
  EXPECT_EQ(json.at("not_read").at(0).at("line"), 89);
}

TEST(AuditCli, SettingsBehindAnUnknownPrefixAreTold) {
  const tests::Scratch scratch;
  const std::string path = scratch.path().string() + "/odd.log";
  std::ofstream log(path);
  for (const char* const line :
       {"batch_size = 12", "block_size = 1024", "iter 0: loss 10.9876, time 140.00ms, mfu 37.00%",
        "iter 1: loss 9.1234, time 134.20ms, mfu 37.10%"})
    log << "odd >> " << line << "\n";
  log.close();
  const Outcome screen = audit_of({path});
  EXPECT_NE(screen.out.find("2 lines from line 1 on say settings behind \"odd >> \""), std::string::npos)
      << screen.out;
  const auto json = nlohmann::json::parse(audit_of({path, "--json"}).out).at("runs").at(0);
  EXPECT_EQ(json.at("settings_behind").at("prefix"), "odd >> ");
  EXPECT_EQ(json.at("settings_behind").at("count"), 2);
  EXPECT_TRUE(nlohmann::json::parse(audit_of({golden("megatron_mixtral_16_gpus.log"), "--json"}).out)
                  .at("runs")
                  .at(0)
                  .at("settings_behind")
                  .is_null());
}

TEST(AuditCli, AnOlderReportDoesNotOutliveAnError) {
  const tests::Scratch scratch;
  const std::string folder = scratch.path().string() + "/", report = folder + "audit.xml",
                    log = golden("nanogpt_a100.log");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--gpu", "H101"},
                                                {"--model", "nonesuch"},
                                                {"--gpus", "0"},
                                                {"--seq", "x"},
                                                {"--set", "gpuss=8"},
                                                {"--map", "stepp=iter"},
                                                {log},
                                                {folder + "missing.log"}}) {
    ASSERT_EQ(audit_of({log, "--junit", report}).code, 0);
    std::vector<std::string> words = {log, "--junit", report};
    words.insert(words.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(audit_of(words).code, 2) << wrong[0];
    std::ifstream file(report);
    const std::string xml((std::istreambuf_iterator<char>(file)), {});
    EXPECT_NE(xml.find("failures=\"0\" errors=\"1\""), std::string::npos) << wrong[0] << "\n" << xml;
  }
}

TEST(AuditCli, AnOlderReportDoesNotOutliveARefusedCommandLine) {
  const tests::Scratch scratch;
  const std::string folder = scratch.path().string() + "/", report = folder + "audit.xml",
                    log = golden("nanogpt_a100.log");
  const auto text_of = [](const std::string& path) {
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{log, "--gpuss", "8", "--junit", report},
        {log, "--junit", report, "--nonesuch"},
        {log, "--junit=" + report, "-x"},
        {log, "--junit", report, "--json=yes"},
        {log, "--junit", report, "--gpus"},
        {"--junit", report}}) {
    ASSERT_EQ(audit_of({log, "--junit", report}).code, 0);
    EXPECT_EQ(audit_of(wrong).code, 2);
    EXPECT_NE(text_of(report).find("failures=\"0\" errors=\"1\""), std::string::npos) << text_of(report);
  }
  // Nor does a command line that is refused overwrite a log.
  std::filesystem::copy(log, folder + "v.log");
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{folder + "v.log", "--nonesuch", "--junit", folder + "v.log"},
        {"--gpuss", "8", "--junit", folder + "./v.log", "--", folder + "v.log"},
        {"--gpu", "--junit", folder + "v.log", "--nonesuch"}}) {
    EXPECT_EQ(audit_of(wrong).code, 2);
    EXPECT_EQ(text_of(folder + "v.log"), text_of(log));
  }
}

TEST(AuditCli, AReportIsNoFileThatIsRead) {
  const tests::Scratch scratch;
  const std::string folder = scratch.path().string() + "/";
  const auto text_of = [](const std::string& path) {
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  std::filesystem::copy(golden("nanogpt_a100.log"), folder + "v.log");
  std::filesystem::create_symlink("v.log", folder + "link.log");
  std::ofstream(folder + "run.jsonl") << spec::record::to_json(tests::example_start()) << "\n"
                                      << spec::record::to_json(tests::example_step(1)) << "\n";
  const std::string log = text_of(folder + "v.log"), run = text_of(folder + "run.jsonl");
  for (const auto& [read, report] :
       {std::pair("v.log", "v.log"), std::pair("v.log", "./v.log"), std::pair("link.log", "v.log"),
        std::pair("v.log", "link.log"), std::pair("", "run.jsonl")}) {
    const Outcome outcome = audit_of({folder + read, "--junit", folder + report});
    EXPECT_EQ(outcome.code, 2) << read << " " << report;
    EXPECT_NE(outcome.err.find("would overwrite a file that is read"), std::string::npos) << outcome.err;
    EXPECT_EQ(text_of(folder + "v.log"), log);
    EXPECT_EQ(text_of(folder + "run.jsonl"), run);
  }
  const auto redirected =
      tests::shell(tests::assay_path() + " audit - --junit " + folder + "v.log < " + folder + "v.log");
  EXPECT_EQ(redirected.code, 2) << redirected.messages;
  EXPECT_EQ(text_of(folder + "v.log"), log);
}

TEST(AuditCli, BadInputIsOneLine) {
  const tests::Scratch scratch;
  const std::string empty = scratch.path().string() + "/empty.log";
  std::ofstream(empty).close();
  const auto refused = [](std::vector<std::string> words, int code) {
    const Outcome outcome = audit_of(std::move(words));
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refused({}, 2);
  refused({"/no/such.log"}, 2);
  refused({empty}, 65);
  refused({golden("llm_tii_8_gpus.log"), "--model", "nonesuch"}, 2);
  refused({golden("llm_tii_8_gpus.log"), "--gpu", "nonesuch"}, 2);
  refused({golden("llm_tii_8_gpus.log"), "--gpus", "0"}, 2);
}

/// Which steps of a long log the verdicts rest on, in every output; a wrong line between them is found.
TEST(AuditCli, ALongLogSaysWhichOfItsStepsAreJudged) {
  tests::Scratch scratch;
  const std::string path = scratch.path().string() + "/long.csv", report = scratch.path().string() + "/a.xml";
  const auto write = [&](int wrong) {
    std::ofstream out(path);
    out << "step,loss,seconds,tokens_per_second\n";
    for (int i = 1; i <= 20'000; ++i)
      out << i << ",2.5," << 0.25 + 0.001 * (i % 9) << ","
          << (i == wrong ? 1.3 : 1) * 4096 / (0.25 + 0.001 * (i % 9)) << "\n";
  };
  const std::vector<std::string> words = {path, "--set", "tokens_per_step=4096", "--junit", report};
  write(0);
  const Outcome screen = audit_of(words);
  EXPECT_EQ(screen.code, 0) << screen.out << screen.err;
  EXPECT_NE(
      screen.out.find("of 20,000 steps: the first and last, evenly spaced ones, and those whose numbers "
                      "stand apart from the first lines' (0)"),
      std::string::npos)
      << screen.out;
  const auto json =
      nlohmann::json::parse(audit_of({path, "--set", "tokens_per_step=4096", "--json"}).out).at("runs").at(0);
  EXPECT_EQ(json.at("steps_seen"), 20'000);
  EXPECT_LT(json.at("steps_judged"), 10'000);
  EXPECT_EQ(json.at("steps_left_out"), 0);
  std::ostringstream xml;
  xml << std::ifstream(report).rdbuf();
  EXPECT_NE(xml.str().find("<property name=\"steps_seen\" value=\"20000\"/>"), std::string::npos)
      << xml.str();
  write(7'003);
  const Outcome wrong = audit_of(words);
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.out.find("(line 7004)"), std::string::npos) << wrong.out;
  EXPECT_NE(wrong.out.find("stand apart from the first lines' (1)"), std::string::npos) << wrong.out;
}

}  // namespace
}  // namespace assay::impl::cli::audit_test
