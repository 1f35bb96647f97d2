// labels: cli fault
// `assay resume`: a run goes on with the settings that its folder has, from the newest checkpoint that is
// whole, extended or into a branch, and what alters results is changed by name alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::resume_test {
namespace {

namespace fs = std::filesystem;

class Resume : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
    const auto trained = tests::assay(
        {"train", "compute.device=cpu", "compute.threads=1", "batch.sequences=4", "sample.sentences=0",
         "train.steps=6", "checkpoint.every=2", "checkpoint.keep=9", "train.seed=5",
         "schedule.warmup_steps=1", "schedule.decay_steps=0", "run.directory=" + folder("run")});
    ASSERT_EQ(trained.code, 0) << trained.messages;
  }

  std::string folder(const std::string& name) const { return (scratch.path() / name).string(); }
  std::string checkpoint(int step) const {
    return folder("run/checkpoints/step_0000000" + std::to_string(step));
  }
  spec::record::Run run(const std::string& name = "run") const {
    return spec::record::assemble(spec::record::read_events(folder(name)));
  }
  /// One byte of the checkpoint's tensors is another.
  void damage(int step) const {
    for (const auto& entry : fs::directory_iterator(checkpoint(step))) {
      if (entry.path().extension() != ".safetensors") continue;
      std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
      const auto at = static_cast<std::streamoff>(fs::file_size(entry.path())) / 2;
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at);
      file.put(static_cast<char>(byte ^ 1));
      return;
    }
    FAIL() << "no tensors in " << checkpoint(step);
  }

  tests::Scratch scratch;
};

/// The record is whole, and holds no line of the other run.
TEST_F(Resume, AnotherRunsCheckpointIsNoDamageOfTheRecord) {
  const auto other = tests::assay({"train", "compute.device=cpu", "compute.threads=1", "batch.sequences=4",
                                   "sample.sentences=0", "train.steps=2", "train.seed=6",
                                   "run.directory=" + folder("other")});
  ASSERT_EQ(other.code, 0) << other.messages;
  fs::remove_all(checkpoint(2));
  fs::create_directory_symlink(folder("other/checkpoints/step_00000002"), checkpoint(2));
  auto report = tests::assay({"report", folder("run")});
  EXPECT_EQ(report.messages, "") << "linked";
  fs::remove(checkpoint(2));
  fs::copy(folder("other/checkpoints/step_00000002"), checkpoint(2), fs::copy_options::recursive);
  report = tests::assay({"report", folder("run")});
  EXPECT_NE(report.messages.find("step_00000002 was saved behind is missing: lines were cut out, or it is "
                                 "another run's checkpoint"),
            std::string::npos)
      << report.messages;
  const auto resumed = tests::assay({"resume", folder("run"), "--change", "train.steps=8"});
  ASSERT_EQ(resumed.code, 0) << resumed.messages;
  const auto end = run().end;
  ASSERT_TRUE(end && end->run_goodput) << "earlier starts do not count";
  EXPECT_EQ(end->run_goodput->starts, 2);
}

TEST_F(Resume, DamagedLinesLeaveNoGoodputOfAllStarts) {
  std::string record;
  {
    std::ifstream file(folder("run/run.jsonl"), std::ios::binary);
    record.assign(std::istreambuf_iterator<char>(file), {});
  }
  record.replace(record.find("\"tokens\":", record.find("\"event\":\"step\"")), 9, "\"Tokens\":");
  std::ofstream(folder("run/run.jsonl"), std::ios::binary) << record;
  const auto resumed = tests::assay({"resume", folder("run"), "--change", "train.steps=8"});
  ASSERT_EQ(resumed.code, 0) << resumed.messages;
  const auto events = spec::record::starts_and_ends(folder("run"));
  const auto* end = std::get_if<spec::record::RunEnd>(&events.back());
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->run_goodput);
}

TEST_F(Resume, NoSettingIsTypedAgainAndTheStepsAreTheSameBits) {
  const auto before = run();
  for (const int step : {6, 4}) fs::remove_all(checkpoint(step));
  const auto resumed = tests::assay({"resume", folder("run")});
  ASSERT_EQ(resumed.code, 0) << resumed.messages;
  const auto after = run();
  ASSERT_EQ(after.resumes.size(), 1u);
  EXPECT_EQ(after.resumes[0].step, 2);
  ASSERT_EQ(after.steps.size(), before.steps.size());
  for (std::size_t i = 0; i < after.steps.size(); ++i)
    EXPECT_EQ(after.steps[i].loss, before.steps[i].loss) << i;
}

/// A digit of a step, and then the end of the file: the report and a resume say so and go on, the audit
/// contradicts, and the lines of the new start hold.
TEST_F(Resume, ADamagedRecordIsToldAndGoneOnWith) {
  const std::string record = folder("run/run.jsonl");
  const auto text = [&] {
    std::ifstream in(record, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  const std::string whole = text();
  std::string changed = whole;
  char& digit = changed[changed.find("\"loss\":", changed.find("\"step\":3")) + 10];
  digit = digit == '7' ? '8' : '7';
  const auto line =
      std::to_string(1 + std::count(whole.begin(), whole.begin() + (&digit - changed.data()), '\n'));
  const struct {
    std::string text, told, audited;
  } damages[] = {
      {changed, record + ":" + line + ": record_c3: the line is not as it was written",
       "the line is not as it was written"},
      {whole.substr(0, whole.find("\"step\":6")), "step_00000006 was saved behind is missing",
       "step_00000006 was saved behind is missing"},
  };
  EXPECT_EQ(tests::assay({"audit", folder("run")}).code, 0);
  EXPECT_EQ(tests::assay({"report", folder("run")}).messages, "");
  std::int64_t steps = 6;
  for (const auto& damage : damages) {
    std::ofstream(record, std::ios::binary) << damage.text;
    const auto report = tests::assay({"report", folder("run")});
    EXPECT_EQ(report.code, 0);
    EXPECT_NE(report.messages.find(damage.told), std::string::npos) << report.messages;
    std::ifstream html(folder("run/report.html"));
    const std::string page{std::istreambuf_iterator<char>(html), {}};
    EXPECT_LT(page.find("This record is damaged"), page.find("class=\"tile")) << "at the top";
    const auto audit = tests::assay({"audit", folder("run")});
    EXPECT_EQ(audit.code, 1) << audit.output;
    EXPECT_NE(audit.output.find(damage.audited), std::string::npos) << audit.output;
    const auto resumed =
        tests::assay({"resume", folder("run"), "--change", "train.steps=" + std::to_string(++steps)});
    EXPECT_EQ(resumed.code, 0) << resumed.messages;
    EXPECT_NE(resumed.messages.find(damage.told), std::string::npos) << resumed.messages;
    const std::string after = text();
    ASSERT_EQ(after.rfind(damage.text.substr(0, damage.text.rfind('\n') + 1), 0), 0u)
        << "nothing is taken away";
    const std::size_t start = after.rfind("{\"event\":\"run_start\"");
    spec::record::Chain chain;
    chain.go_on_behind(std::string_view(after).substr(0, start - 1).substr(after.rfind('\n', start - 2) + 1));
    std::istringstream lines(after.substr(start));
    for (std::string each; std::getline(lines, each);)
      EXPECT_EQ(chain.follow(each), spec::record::Link::right) << each;
    std::ofstream(record, std::ios::binary) << whole;
    fs::remove_all(folder("run/checkpoints/step_0000000" + std::to_string(steps)));
  }
}

/// The first line is lost: the report waits for a start that is whole, and no promise is made before.
TEST_F(Resume, ARecordWithoutItsFirstLineIsReportedFromTheNextStartOn) {
  const std::string record = folder("run/run.jsonl");
  std::ifstream in(record);
  std::string first, rest;
  std::getline(in, first);
  rest.assign(std::istreambuf_iterator<char>(in), {});
  std::ofstream(record) << rest;
  EXPECT_EQ(tests::assay({"report", folder("run")}).code, 65) << "of no start";
  const auto resumed = tests::assay({"resume", folder("run"), "--change", "train.steps=8"});
  ASSERT_EQ(resumed.code, 0) << resumed.messages;
  EXPECT_EQ(resumed.messages.find("writes it later"), std::string::npos) << resumed.messages;
  const auto report = tests::assay({"report", folder("run")});
  EXPECT_EQ(report.code, 0) << report.messages;
  EXPECT_NE(report.messages.find(record + ":1: a record starts with a run_start event, this one with"),
            std::string::npos)
      << report.messages;
  const auto text = tests::assay({"report", folder("run"), "-o", "-"});
  EXPECT_EQ(text.output.rfind("<!doctype html>", 0), 0u) << text.output.substr(0, 80);
  EXPECT_NE(text.output.find("This record is damaged"), std::string::npos);
  EXPECT_NE(text.output.find("8 of 8"), std::string::npos);
}

/// Its end is cut off at a line: the chain of what is left is whole, and the checkpoints know of more.
TEST_F(Resume, ARecordThatWasCutContradictsItsCheckpoints) {
  const auto audited = [&](const std::string& path) { return tests::assay({"audit", path}); };
  EXPECT_EQ(audited(folder("run")).code, 0);
  const std::string record = folder("run/run.jsonl");
  std::string kept;
  std::ifstream in(record);
  for (std::string line; std::getline(in, line) && line.find("\"step\":4,") == line.npos;)
    kept += line + "\n";
  std::ofstream(record) << kept;
  for (const std::string& path : {folder("run"), record}) {
    const auto cut = audited(path);
    EXPECT_EQ(cut.code, 1) << cut.output << cut.messages;
    EXPECT_NE(cut.output.find("the line that " + checkpoint(4) +
                              " was saved behind is missing: lines were cut out"),
              std::string::npos)
        << cut.output;
  }
  ASSERT_EQ(tests::assay({"resume", folder("run"), "--change", "train.steps=8"}).code, 0);
  const auto resumed = audited(folder("run"));
  EXPECT_EQ(resumed.code, 1);
  EXPECT_EQ(resumed.output.find("run 1 of"), std::string::npos) << resumed.output;
  EXPECT_NE(resumed.output.find("steps 4 to 6 are missing: the run was resumed after step 6"),
            std::string::npos)
      << resumed.output;
}

TEST_F(Resume, ADamagedNewestCheckpointIsToldPassedOverAndPutAside) {
  const auto before = run();
  damage(6);
  fs::resize_file(checkpoint(4) + "/manifest.json", 40);
  const auto resumed = tests::assay({"resume", folder("run")});
  ASSERT_EQ(resumed.code, 0) << resumed.messages;
  EXPECT_NE(resumed.messages.find("step_00000006"), std::string::npos) << resumed.messages;
  EXPECT_NE(resumed.messages.find("step_00000004"), std::string::npos) << resumed.messages;
  const auto after = run();
  ASSERT_EQ(after.resumes.size(), 1u);
  EXPECT_EQ(after.resumes[0].step, 2);
  EXPECT_EQ(std::count_if(after.warnings.begin(), after.warnings.end(),
                          [](const auto& each) { return each.code == "damaged_checkpoint"; }),
            2);
  EXPECT_TRUE(fs::exists(checkpoint(6) + ".damaged"));
  EXPECT_EQ(tests::assay({"checkpoint", "verify", checkpoint(6)}).code, 0) << "it is saved anew";
  EXPECT_EQ(after.steps.back().loss, before.steps.back().loss);
}

TEST_F(Resume, WhatAltersResultsIsChangedByNameAndRecorded) {
  const auto extended = tests::assay(
      {"resume", folder("run"), "--change", "train.steps=8", "--change", "optimizer.learning_rate=0.001"});
  ASSERT_EQ(extended.code, 0) << extended.messages;
  const auto after = run();
  EXPECT_EQ(after.steps.size(), 8u);
  ASSERT_EQ(after.resumes.size(), 1u);
  ASSERT_TRUE(after.resumes[0].changed.has_value());
  const auto rate = std::find_if(after.resumes[0].changed->begin(), after.resumes[0].changed->end(),
                                 [](const auto& each) { return each.name == "optimizer.learning_rate"; });
  ASSERT_NE(rate, after.resumes[0].changed->end());
  EXPECT_EQ(rate->before, spec::Value(3e-3));
  EXPECT_EQ(rate->now, spec::Value(0.001));
  EXPECT_EQ(rate->asked, true);
  EXPECT_EQ(after.steps.back().learning_rate, 0.001);
  // The state is of this model, whoever asks.
  const auto refused = tests::assay({"resume", folder("run"), "--change", "compute.dtype=f64"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.messages.find("compute.dtype is \"f64\", was \"f32\""), std::string::npos)
      << refused.messages;
  EXPECT_EQ(run().steps.size(), 8u);
}

TEST_F(Resume, ABranchGoesOnInAFolderOfItsOwn) {
  const auto branch = tests::assay(
      {"resume", checkpoint(4), "--into", folder("branch"), "--change", "schedule.decay_steps=2"});
  ASSERT_EQ(branch.code, 0) << branch.messages;
  const auto whole = run(), other = run("branch");
  EXPECT_EQ(whole.steps.size(), 6u);
  ASSERT_EQ(other.steps.size(), 2u);
  EXPECT_EQ(other.steps[0].step, 5);
  EXPECT_EQ(other.steps[0].sample_hash, whole.steps[4].sample_hash);
  EXPECT_LT(other.steps[1].learning_rate, whole.steps[5].learning_rate);
  EXPECT_EQ(tests::assay({"resume", checkpoint(4), "--into", folder("branch")}).code, 2) << "it holds a run";
}

TEST_F(Resume, ABranchOfACompleteRunNamesTheCommandThatMakesIt) {
  const auto complete = tests::assay({"resume", folder("run"), "--into", folder("branch")});
  EXPECT_EQ(complete.code, 0);
  EXPECT_FALSE(fs::exists(folder("branch")));
  EXPECT_NE(complete.messages.find("`assay resume " + folder("run") + " --change train.steps=12 --into " +
                                   folder("branch") + "`"),
            std::string::npos)
      << complete.messages;
}

TEST_F(Resume, ALargerBatchGoesOnInMicroBatchesOfTheStepsBefore) {
  const auto larger =
      tests::assay({"resume", folder("run"), "--change", "train.steps=8", "--change", "batch.sequences=8"});
  ASSERT_EQ(larger.code, 0) << larger.messages;
  const auto steps = run().steps;
  ASSERT_EQ(steps.size(), 8u);
  EXPECT_EQ(steps[5].tokens, 4 * 128);
  EXPECT_EQ(steps[6].tokens, 8 * 128);
}

TEST_F(Resume, FewerStepsThanAreDoneAreRefused) {
  const auto refused = tests::assay({"resume", folder("run"), "--change", "train.steps=3"});
  EXPECT_EQ(refused.code, 2) << refused.messages;
  EXPECT_NE(refused.messages.find("is of step 6, behind train.steps = 3: give more steps than are done"),
            std::string::npos)
      << refused.messages;
}

TEST_F(Resume, ACopyUnderTheNameOfALaterStepIsPassedOverAndNamed) {
  fs::copy(checkpoint(2), checkpoint(7), fs::copy_options::recursive);
  const auto shown = tests::assay({"checkpoint", "show", folder("run")});
  EXPECT_EQ(shown.code, 65);
  EXPECT_NE(shown.messages.find(": holds step 2, and its name says step 7"), std::string::npos)
      << shown.messages;
  const auto resumed = tests::assay({"resume", folder("run"), "--change", "train.steps=7"});
  ASSERT_EQ(resumed.code, 0) << resumed.messages;
  // One that is whole is not called damaged, and no advice is given that what was done has overtaken.
  EXPECT_NE(resumed.messages.find("holds step 2, and its name says step 7: it is a copy, or was renamed; "
                                  "passed over, the run goes on after step 6; it is now " +
                                  checkpoint(7) + ".misnamed"),
            std::string::npos)
      << resumed.messages;
  EXPECT_EQ(resumed.messages.find("damaged"), std::string::npos) << resumed.messages;
  EXPECT_EQ(run().warnings.at(0).code, "misnamed_checkpoint");
  EXPECT_TRUE(fs::exists(checkpoint(7) + ".misnamed"));
  EXPECT_EQ(run().resumes.at(0).step, 6);
  EXPECT_EQ(tests::assay({"checkpoint", "verify", checkpoint(7)}).code, 0) << "it is saved anew";
}

TEST_F(Resume, WhatCannotGoOnIsRefusedInOneLine) {
  for (const auto& [words, code] : std::vector<std::pair<std::vector<std::string>, int>>{
           {{"resume"}, 2},
           {{"resume", folder("nowhere")}, 2},
           {{"resume", folder("run"), "log.every=2"}, 2},
           {{"resume", folder("run"), "--change", "train.stesp=9"}, 2},
           {{"resume", scratch.path().string()}, 65}}) {
    const auto refused = tests::assay(words);
    EXPECT_EQ(refused.code, code) << refused.messages;
    EXPECT_EQ(std::count(refused.messages.begin(), refused.messages.end(), '\n'), 1) << refused.messages;
  }
}

/// A run of a model and on tokens of its own, all of them in a folder that it names by relative paths.
class ResumeOfFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
    write_model("10000.0", "1e-5");
    write_tokens("tokens.bin", 1);
    write_tokens("val.bin", 2);
  }
  std::string at(const std::string& name) const { return (scratch.path() / name).string(); }
  void write_model(const std::string& rope_theta, const std::string& norm_eps) const {
    scratch.write("mine.toml",
                  "name = 'mine'\nfamily = 'llama'\nvocab = 256\nwidth = 16\nlayers = 1\nheads = 2\n"
                  "kv_heads = 1\nhead_dim = 8\nffn = 24\ncontext = 64\ntied_embeddings = true\n"
                  "qk_norm = false\nnorm_eps = " +
                      norm_eps + "\nrope_theta = " + rope_theta + "\n");
  }
  /// Ids that depend on `stride`, over a file that is there in place.
  void write_tokens(const std::string& name, int stride) const {
    std::string ids;
    for (int i = 0; i < 3000; ++i) ids += {static_cast<char>(i * i * stride % 251), '\0'};
    if (!fs::exists(at(name))) scratch.write(name, "");
    std::fstream file(at(name), std::ios::in | std::ios::out | std::ios::binary);
    file << ids;
  }
  std::string command(const std::string& more) const {
    return "cd " + scratch.path().string() + " && " + tests::assay_path() +
           " train model.name=mine.toml data.paths=tokens.bin data.dtype=uint16 run.directory=run "
           "compute.device=cpu compute.threads=1 batch.sequences=2 batch.sequence_length=16 "
           "optimizer.learning_rate=3e-3 " +
           more;
  }
  impl::cli::Outcome train(const std::string& more) const { return tests::shell(command(more)); }
  /// Leaves the run as if it had ended after step `step` of its three.
  void go_back_to(int step) const {
    for (int each = step + 1; each <= 3; ++each)
      fs::remove_all(at("run/checkpoints/step_0000000" + std::to_string(each)));
  }
  spec::record::Run run() const { return spec::record::assemble(spec::record::read_events(at("run"))); }
  void expect_losses(const spec::record::Run& wanted) const {
    const auto now = run();
    ASSERT_EQ(now.steps.size(), wanted.steps.size());
    for (std::size_t i = 0; i < now.steps.size(); ++i)
      EXPECT_EQ(now.steps[i].loss, wanted.steps[i].loss) << i;
  }

  tests::Scratch scratch;
};
constexpr const char* three_steps = "train.steps=3 checkpoint.every=1 checkpoint.keep=9";

TEST_F(ResumeOfFiles, TheModelIsThatOfTheRunWhateverItsFileSaysByNow) {
  ASSERT_EQ(train(three_steps).code, 0);
  const auto whole = run();
  go_back_to(1);
  write_model("20000.0", "1e-6");
  const std::string rope = "rope_theta of model ", values = " is 20000.0, was 10000.0";
  // What is typed must be what it was.
  const auto refused = train(std::string(three_steps) + " checkpoint.resume=auto");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.messages.find("norm_eps of model mine.toml is 1e-06, was 1e-05; " + rope + "mine.toml" +
                                  values),
            std::string::npos)
      << refused.messages;
  // Where nothing is, the run goes on as it was, and says what is not.
  const auto resumed = tests::assay({"resume", at("run")});
  ASSERT_EQ(resumed.code, 0) << resumed.messages;
  EXPECT_NE(resumed.messages.find(rope + at("mine.toml") + values), std::string::npos) << resumed.messages;
  expect_losses(whole);
  // By name it is another model from here on.
  go_back_to(1);
  const auto changed = tests::assay({"resume", at("run"), "--change", "model.name=" + at("mine.toml")});
  ASSERT_EQ(changed.code, 0) << changed.messages;
  const auto other = run();
  EXPECT_NE(other.steps[2].loss, whole.steps[2].loss);
  const auto& settings = *other.resumes.back().changed;
  EXPECT_EQ(
      std::ranges::count(settings,
                         spec::record::ChangedSetting{
                             .name = "model.rope_theta", .before = 10000.0, .now = 20000.0, .asked = true}),
      1);
}

TEST_F(ResumeOfFiles, NoFileIsNeededButTheDataWhereverItIsStarted) {
  ASSERT_EQ(train(std::string(three_steps) + " eval.paths=val.bin").code, 0);
  const auto whole = run();
  go_back_to(1);
  fs::remove(at("mine.toml"));
  const auto elsewhere = tests::shell("cd / && " + tests::assay_path() + " resume " + at("run"));
  ASSERT_EQ(elsewhere.code, 0) << elsewhere.messages;
  expect_losses(whole);
  go_back_to(2);
  const auto typed = train(std::string(three_steps) + " eval.paths=val.bin checkpoint.resume=auto");
  ASSERT_EQ(typed.code, 0) << typed.messages;
  expect_losses(whole);
  const auto other = train(std::string(three_steps) + " checkpoint.resume=auto model.name=other.toml");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.messages.find("no model and no file is called \"other.toml\""), std::string::npos)
      << other.messages;
}

TEST_F(ResumeOfFiles, AScheduleThatNobodySetFollowsTheSteps) {
  ASSERT_EQ(train("train.steps=25 checkpoint.every=5 checkpoint.keep=1").code, 0);
  const auto longer = tests::assay({"resume", at("run"), "--change", "train.steps=50"});
  ASSERT_EQ(longer.code, 0) << longer.messages;
  const auto after = run();
  const auto setting = [&](const std::string& name) {
    for (const auto& [each, value] : after.start.settings)
      if (each == name) return value;
    return spec::Value();
  };
  EXPECT_EQ(setting("schedule.decay_steps"), spec::Value(std::int64_t{16}));
  EXPECT_EQ(setting("schedule.warmup_steps"), spec::Value(std::int64_t{4}));
  EXPECT_EQ(after.steps.back().step, 50);
  EXPECT_EQ(after.steps[33].learning_rate, 3e-3) << "stable until the last 16 steps";
  EXPECT_LT(after.steps.back().learning_rate, 1e-3);
  const auto audited = tests::assay({"audit", at("run")});
  EXPECT_EQ(audited.code, 0) << audited.output;
}

/// Of tokens, and of what the run is validated on.
TEST_F(ResumeOfFiles, TokensThatAreOverwrittenEndTheRunAfterASave) {
  for (const std::string file : {"tokens.bin", "val.bin"}) {
    fs::remove_all(at("run"));
    fs::remove(at("out"));
    const std::string before = [&] {
      std::ifstream stream(at(file), std::ios::binary);
      return std::string{std::istreambuf_iterator<char>(stream), {}};
    }();
    // Asked to overwrite once two steps are printed; 3,000 steps leave it time.
    const auto stopped = tests::shell(
        "set -m; (" + command("train.steps=3000 eval.paths=val.bin eval.every=5 eval.at_end=off") + ") > " +
        at("out") + " 2>&1 & until grep -q 'step  *2/3000' " + at("out") +
        " 2>/dev/null; do sleep 0.01; done; head -c 200 /dev/zero | dd of=" + at(file) +
        " conv=notrunc status=none; wait $!");
    EXPECT_EQ(stopped.code, 65) << file;
    std::ifstream out(at("out"));
    const std::string said{std::istreambuf_iterator<char>(out), {}};
    EXPECT_NE(said.find(file + "\" was overwritten since it was opened"), std::string::npos) << said;
    const auto cut = run();
    const std::size_t done = cut.steps.size();
    EXPECT_GE(done, 2u);
    EXPECT_EQ(cut.checkpoints.back().step, static_cast<std::int64_t>(done)) << "the state before is saved";
    if (file == "tokens.bin") {
      const auto refused = tests::assay({"resume", at("run")});
      EXPECT_EQ(refused.code, 2);
      EXPECT_NE(refused.messages.find("the content of data.paths: file 1 is "), std::string::npos)
          << refused.messages;
    }
    std::ofstream(at(file), std::ios::binary) << before;
    const auto resumed =
        tests::assay({"resume", at("run"), "--change", "train.steps=" + std::to_string(done + 1)});
    EXPECT_EQ(resumed.code, 0) << resumed.messages;
    EXPECT_EQ(run().steps.size(), done + 1);
  }
}

}  // namespace
}  // namespace assay::resume_test
