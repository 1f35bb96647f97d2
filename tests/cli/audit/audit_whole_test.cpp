// labels: cli golden
// An audit prints all that it has to say, or nothing: what fails late leaves no half of it behind.
#include <gtest/gtest.h>

#include <fstream>
#include <ostream>
#include <streambuf>

#include "tests/cli/audit/audit_words.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cli::audit_whole_test {
namespace {

using audit_words::audit_of;
using audit_words::golden;
using audit_words::Outcome;

/// Keeps what it is given, piece by piece.
class Pieces : public std::streambuf {
 public:
  std::vector<std::string> given;

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    given.emplace_back(text, static_cast<std::size_t>(size));
    return size;
  }
  int_type overflow(int_type c) override {
    given.emplace_back(1, traits_type::to_char_type(c));
    return c;
  }
};

const std::vector<std::vector<std::string>> forms = {{}, {"--json"}};

/// The report is written last.
TEST(AuditWholeCli, AReportThatCannotBeWrittenLeavesNothingOnTheScreen) {
  const tests::Scratch scratch;
  for (std::vector<std::string> words : forms) {
    words.insert(words.begin(), {golden("llm_tii_2_gpus.log"), golden("llm_tii_8_gpus.log")});
    EXPECT_NE(audit_of(words).out, "");
    words.insert(words.end(), {"--junit", scratch.path().string() + "/no/audit.xml"});
    const Outcome outcome = audit_of(words);
    EXPECT_EQ(outcome.code, 74);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("cannot write "), std::string::npos) << outcome.err;
  }
}

/// The others are reported whole; the one that cannot be read, and what it holds before that, is not.
TEST(AuditWholeCli, ALogThatCannotBeReadLeavesTheOthersVerdicts) {
  const tests::Scratch scratch;
  const std::string bad = scratch.path().string() + "/bad.log", good = golden("llm_tii_8_gpus.log"),
                    report = scratch.path().string() + "/audit.xml";
  std::ofstream(bad) << "nothing of a trainer's\n";
  const std::string alone = audit_of({good}).out;
  for (const std::vector<std::string>& words : {std::vector{good, bad}, {bad, good}}) {
    const Outcome outcome = audit_of({words[0], words[1], "--junit", report});
    EXPECT_EQ(outcome.code, 65);
    EXPECT_EQ(outcome.out, alone);
    EXPECT_NE(outcome.err.find(bad), std::string::npos) << outcome.err;
    std::stringstream xml;
    xml << std::ifstream(report).rdbuf();
    EXPECT_NE(xml.str().find("name=\"readable\" time=\"0\"><error"), std::string::npos) << xml.str();
    EXPECT_NE(xml.str().find("<failure"), std::string::npos) << xml.str();
    EXPECT_NE(xml.str().find("errors=\"1\""), std::string::npos) << xml.str();
    const auto json = nlohmann::json::parse(audit_of({words[0], words[1], "--json"}).out);
    EXPECT_EQ(json.at("runs").size(), 1u);
    EXPECT_EQ(json.at("unreadable").at(0).at("origin"), bad);
  }
}

TEST(AuditWholeCli, LogsNoneOfWhichCanBeReadPrintNothing) {
  const tests::Scratch scratch;
  const std::string bad = scratch.path().string() + "/bad.log",
                    other = scratch.path().string() + "/other.log";
  std::ofstream(bad) << "nothing of a trainer's\n";
  std::ofstream(other) << "nor here\n";
  for (std::vector<std::string> words : forms) {
    words.insert(words.begin(), {bad, other});
    const Outcome outcome = audit_of(words);
    EXPECT_EQ(outcome.code, 65);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(bad), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(other), std::string::npos) << outcome.err;
  }
}

/// Whatever failed between two pieces would leave the first.
TEST(AuditWholeCli, AllOfItIsWrittenAtOnce) {
  for (std::vector<std::string> words : forms) {
    words.insert(words.begin(), {"audit", golden("llm_tii_2_gpus.log"), golden("llm_tii_8_gpus.log")});
    Pieces pieces;
    std::ostream out(&pieces);
    std::ostringstream err;
    EXPECT_EQ(run(words, {out, err}), 1);
    ASSERT_EQ(pieces.given.size(), 1u);
    words.erase(words.begin());
    EXPECT_EQ(pieces.given[0], audit_of(words).out);
  }
}

}  // namespace
}  // namespace assay::impl::cli::audit_whole_test
