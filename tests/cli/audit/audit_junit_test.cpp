// labels: cli golden
// Reports in JUnit's form: what they hold, and that an older one does not outlive an error.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "spec/record/write.hpp"
#include "tests/cli/audit/audit_words.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cli::audit_junit_test {
namespace {

using audit_words::audit_of;
using audit_words::golden;
using audit_words::Outcome;

TEST(AuditJUnitCli, WritesJUnit) {
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

// A pipe's "-" is no file's name.
TEST(AuditJUnitCli, ADashIsStandardOutputAlone) {
  const std::string log = golden("llm_tii_8_gpus.log"), begin = "<?xml version=\"1.0\"";
  const Outcome outcome = audit_of({log, "--junit", "-"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out.rfind(begin, 0), 0u);
  EXPECT_TRUE(outcome.out.ends_with("</testsuites>\n")) << outcome.out;
  EXPECT_FALSE(std::filesystem::exists("-"));
  EXPECT_EQ(audit_of({log + ".no", "--junit", "-"}).out.rfind(begin, 0), 0u);
  EXPECT_EQ(audit_of({log, "--junit", "-", "--nonesuch"}).out.rfind(begin, 0), 0u);
  const Outcome both = audit_of({log, "--junit", "-", "--json"});
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("both write to standard output"), std::string::npos) << both.err;
}

// By an XML parser of its own: the layout that CI systems read (testsuites > testsuite > testcase > failure,
// error or skipped), its counts, and characters that XML forbids.
TEST(AuditJUnitCli, JUnitIsWellFormedAndCountsWhatItHolds) {
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
            if outcome.tag == "skipped":
                assert outcome.get("message").startswith("not judged, for want of "), outcome.get("message")
                assert "want of no" not in outcome.get("message"), outcome.get("message")
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

TEST(AuditJUnitCli, AnOlderReportDoesNotOutliveAnError) {
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

TEST(AuditJUnitCli, AnOlderReportDoesNotOutliveARefusedCommandLine) {
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

TEST(AuditJUnitCli, AReportIsNoFileThatIsRead) {
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

}  // namespace
}  // namespace assay::impl::cli::audit_junit_test
