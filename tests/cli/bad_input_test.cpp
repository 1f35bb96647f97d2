// labels: cli fault
// Whatever is given to the verbs that read files: one line that says what, where and what to do; never a
// crash, never a number, never more memory than the file deserves.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "impl/cli/verb.hpp"
#include "spec/text/utf8.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cli::bad_input_test {
namespace {

struct Outcome {
  int code;
  std::string out, err;
};

Outcome run_words(const std::vector<std::string>& words) {
  std::ostringstream out, err;
  const int code = run(words, {out, err});
  return {code, out.str(), err.str()};
}

/// One line, or one for each of several mistakes, readable on any terminal, no number, and a code that blames
/// the input.
void expect_refused(const std::vector<std::string>& words) {
  const Outcome outcome = run_words(words);
  std::string what;
  for (const std::string& word : words) what += spec::valid_utf8(word.substr(0, 100)) + " ";
  EXPECT_TRUE(outcome.code == 2 || outcome.code == 65 || outcome.code == 74) << what << outcome.code;
  EXPECT_EQ(outcome.out, "") << what;
  EXPECT_EQ(outcome.err.rfind("assay: error: ", 0), 0u) << what << outcome.err;
  const auto lines = std::ranges::count(outcome.err, '\n');
  if (outcome.err.find(" mistakes:\n  ") == std::string::npos)
    EXPECT_EQ(lines, 1) << what << outcome.err;
  else
    EXPECT_LE(lines, 22) << what << outcome.err;
  EXPECT_EQ(outcome.err, spec::valid_utf8(outcome.err)) << what;
  EXPECT_LT(outcome.err.size(), 2000u) << what;
}

struct BadInputCli : testing::Test {
  tests::Scratch scratch;
  std::string folder = scratch.path().string() + "/";
  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder + name, std::ios::binary) << bytes;
    return folder + name;
  }
  std::vector<std::string> files() const {
    const std::string line = "iter 0: loss 10.9", digits(1 << 20, '9');
    std::string utf16 = "\xff\xfe";
    for (const char c : line + "\n") utf16 += std::string{c, '\0'};
    mkdir((folder + "folder").c_str(), 0700);
    EXPECT_EQ(symlink("loop", (folder + "loop").c_str()), 0);
    return {folder + "missing",
            folder + "folder",
            folder + "loop",
            "",
            "/dev/null",
            "/dev/zero",
            file("empty", ""),
            file("blank", " \n\n"),
            file("binary", std::string("\x7f"
                                       "ELF\x02\x01\0\0\xff\xfe\xfd",
                                       11)),
            file("half", line),
            file("utf16", utf16),
            file("utf16be", std::string("\0i\0t\0e\0r", 8)),
            file("number", "iter 0: loss " + digits),
            file("number.json", "{\"log_history\":[{\"loss\":" + digits + ",\"step\":1}]}"),
            file("number.jsonl", "{\"event\":\"step\",\"step\":" + digits + ",\"loss\":1,\"seconds\":1}\n"),
            file("half.json", "{\"log_history\":[{\"loss\":1"),
            file("deep.json", std::string(1 << 20, '[')),
            file("half.toml", "name = \"x\"\nvoc"),
            file("nan.toml", "name = \"x\"\nvocab = nan\n"),
            file("negative.json", R"({"model_type":"llama","vocab_size":-1,"hidden_size":0})"),
            file("not_a_number.json", R"({"model_type":"llama","vocab_size":NaN})")};
  }
};

TEST_F(BadInputCli, FilesOfEveryKind) {
  for (const std::string& path : files())
    for (const char* verb : {"flops", "audit", "claims", "report"}) expect_refused({verb, path});
}

TEST_F(BadInputCli, AClaimThatCannotBeRecomputedIsNamedWithItsFile) {
  const std::string path = file("div0.toml",
                                "title = \"Mine\"\nsource = \"me\"\n[[claim]]\nid = \"p\"\nline = 1\nwhat = "
                                "\"parameters\"\nprinted = \"8.03\"\nunit = 1e9\nunit_name = \"B\"\nexpect = "
                                "\"1/0\"\nverdict = \"holds\"\n");
  expect_refused({"claims", path});
  const Outcome outcome = run_words({"claims", path});
  EXPECT_EQ(outcome.code, 65);
  EXPECT_NE(outcome.err.find("div0.toml"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("claim \"p\""), std::string::npos) << outcome.err;
}

TEST_F(BadInputCli, WordsSayWhy) {
  const std::string commas = file("semi.csv", "iter;loss;ms\n1;11,4500;994,76\n2;11,4000;990,10\n");
  expect_refused({"audit", commas, "--map", "step=iter,loss=loss,seconds=ms:ms"});
  EXPECT_NE(run_words({"audit", commas, "--map", "step=iter,loss=loss,seconds=ms:ms"})
                .err.find("a comma where a point"),
            std::string::npos);
  expect_refused({"flops", "llama3-8b", "--hardware", "H200", "--mfu", "40%", "--tokens", "1.5"});
  const Outcome longer = run_words({"flops", "gpt2", "--seq", "4096"});
  EXPECT_EQ(longer.code, 0);
  EXPECT_NE(longer.err.find("gpt2 has 1024 learned positions"), std::string::npos) << longer.err;
}

TEST_F(BadInputCli, NumbersThatAreNone) {
  const std::string log = file("log", "iter 0: loss 10.9000, time 100.00ms, mfu 10.00%\n"),
                    digits(100'000, '9');
  const std::vector<std::string> bad = {"0", "-1", "nan", "inf", "-inf", "1e999", "", digits, "\xff\xfe"};
  for (const std::string& number : bad) {
    for (const char* option : {"--gpus", "--seq"}) expect_refused({"audit", log, option, number});
    for (const char* option : {"--seq", "--tokens-per-second", "--gpus", "--mfu"})
      expect_refused({"flops", "llama3-8b", "--hardware", "H200", option, number});
    expect_refused({"audit", log, "--set", "gpus=" + number});
    expect_refused({"flops", number});
    expect_refused({"flops", "llama3-8b", "--hardware", number});
    expect_refused({"audit", log, "--explain", number});
    expect_refused({"audit", log, "--model", number});
    expect_refused({"audit", log, "--gpu", number});
    expect_refused({number});
    if (!number.empty()) expect_refused({"config", number});
  }
  for (const char* setting : {"warmup_steps=-1", "learning_rate=-0.1", "gpu_memory=0", "gpus", "=1", "gpus="})
    expect_refused({"audit", log, "--set", setting});
}

TEST_F(BadInputCli, CountsThatAreTooLargeOrNoNumbersSayWhy) {
  const std::string log = file("log", "iter 0: loss 10.9000, time 100.00ms, mfu 10.00%\n");
  const auto error = [](const std::vector<std::string>& words) { return run_words(words).err; };
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"flops", "llama3-8b", "--seq", "8q"}, {"audit", log, "--seq", "8q"}}) {
    EXPECT_NE(error(words).find("--seq must be an integer"), std::string::npos) << error(words);
    EXPECT_NE(error(words).find("not \"8q\""), std::string::npos) << error(words);
  }
  EXPECT_NE(
      error({"audit", log, "--gpus", "12345678901234567890"}).find("must be at most 9223372036854775807"),
      std::string::npos);
}

TEST_F(BadInputCli, AFileGivenTwice) {
  const std::string log = file("log", "iter 0: loss 10.9000, time 100.00ms, mfu 10.00%\n");
  for (const char* verb : {"audit", "claims", "report"}) {
    expect_refused({verb, log, log});
    expect_refused({verb, log, folder + "./log"});
  }
  EXPECT_NE(run_words({"audit", log, folder + "./log"}).err.find("are one file; give each once"),
            std::string::npos);
}

/// Root may read every file: while this lives, the process is another user.
struct NotRoot {
  const uid_t before = geteuid();
  NotRoot() {
    constexpr uid_t nobody = 65534;
    if (before == 0) {
      EXPECT_EQ(seteuid(nobody), 0);
    }
  }
  ~NotRoot() { EXPECT_EQ(seteuid(before), 0); }
};

TEST_F(BadInputCli, NothingMayBeRead) {
  const std::string path = file("secret.json", "{}");
  chmod(path.c_str(), 0);
  chmod(folder.c_str(), 0755);
  const NotRoot other;
  ASSERT_EQ(eaccess(folder.c_str(), X_OK), 0);
  for (const char* verb : {"flops", "audit", "claims", "report"}) expect_refused({verb, path});
}

TEST_F(BadInputCli, AByteOrderMarkAndNulBytesAreNoFault) {
  const std::string log = "iter 0: loss 10.9000, time 100.00ms, mfu 10.00%\n";
  EXPECT_EQ(run_words({"audit", file("mark", "\xef\xbb\xbf" + log)}).code, 0);
  std::string nul = log;
  nul.insert(9, 1, '\0');
  EXPECT_EQ(run_words({"audit", file("nul", nul)}).code, 0);
}

// One line of 1 GB through a pipe, in 256 MiB of address space: read in constant memory, or refused.
TEST_F(BadInputCli, AnEndlessLineTakesNoMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer's shadow needs more address space than the test allows";
#endif
  for (const char* verb : {"audit", "report", "claims"}) {
    const auto outcome = tests::shell("head -c 1000000000 /dev/zero | tr '\\0' a | (ulimit -v 262144; " +
                                      tests::assay_path() + " " + verb + " /dev/stdin)");
    EXPECT_EQ(outcome.code, 65) << verb << outcome.messages;
    EXPECT_EQ(outcome.output, "");
    EXPECT_EQ(std::count(outcome.messages.begin(), outcome.messages.end(), '\n'), 1) << outcome.messages;
  }
}

TEST_F(BadInputCli, APipeIsReadOnce) {
  const auto outcome = tests::shell("printf 'iter 0: loss 10.9000, time 100.00ms, mfu 10.00%%\\n' | " +
                                    tests::assay_path() + " audit /dev/stdin");
  EXPECT_EQ(outcome.code, 0) << outcome.messages;
}

}  // namespace
}  // namespace assay::impl::cli::bad_input_test
