// labels: unit golden fuzz
#include "spec/claims/claim.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "spec/claims/page.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::claims {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Document> published() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(tests::source_dir()) / "golden/claims"))
    if (entry.path().extension() == ".toml") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Document> documents;
  for (const fs::path& path : paths)
    documents.push_back(document_from_toml(text_of(path), "golden/claims/" + path.filename().string()));
  return documents;
}

Claim claim(const std::string& printed, double unit = 1, bool counted = false) {
  Claim made;
  made.id = "made";
  made.printed = printed;
  made.unit = unit;
  made.counted = counted;
  return made;
}

void expect_interval(const Claim& made, double low, double high) {
  const Interval interval = printed_interval(made);
  EXPECT_NEAR(interval.low, low, 1e-9 * std::abs(low)) << made.printed;
  EXPECT_NEAR(interval.high, high, 1e-9 * std::abs(high)) << made.printed;
}

const char* const kRow = R"(
title = "A report"
source = "nobody, 2025"
[[claim]]
id = "tokens"
line = 3
what = "tokens of a step"
printed = "49,152"
counted = true
expect = "24 * 2048"
verdict = "holds"
)";

TEST(ClaimsSpec, EveryStatedVerdictIsTheRecomputedOne) {
  std::size_t judged = 0;
  for (const Document& document : published())
    for (const Claim& made : document.claims) {
      const Judgement judgement = judge(made, document);
      EXPECT_EQ(to_string(judgement.verdict), to_string(made.verdict))
          << document.key << "." << made.id << ": printed " << made.printed << ", recomputed "
          << (judgement.expected ? judgement.expected->middle() / made.unit : 0)
          << (judgement.under_reading
                  ? ", under the reading " + std::to_string(judgement.under_reading->middle() / made.unit)
                  : "");
      ++judged;
    }
  EXPECT_GE(judged, 300u);
}

TEST(ClaimsSpec, ThePageIsUpToDate) {
  EXPECT_TRUE(page(published()) == text_of(fs::path(tests::source_dir()) / "docs/claims.md"))
      << "run ci/claims --accept";
}

TEST(ClaimsSpec, PrintedNumbersLeaveHalfALastDigitOpen) {
  expect_interval(claim("10.44", 0.01), 0.10435, 0.10445);
  expect_interval(claim("1838", 1e-3), 1.8375, 1.8385);
  expect_interval(claim("6.3M"), 6.25e6, 6.35e6);
  expect_interval(claim("49,152", 1, true), 49152, 49152);
  expect_interval(claim("~170K"), 165e3, 175e3);
  expect_interval(claim("~3760", 1e12), 3755e12, 3765e12);
  expect_interval(claim("55-62", 0.01), 0.545, 0.625);
  expect_interval(claim("250,000-300,000"), 249999.5, 300000.5);
  expect_interval(claim("1.65e-06"), 1.645e-6, 1.655e-6);
  Claim hundreds = claim("16,200");
  hundreds.rounded_to = 100;
  expect_interval(hundreds, 16150, 16250);
  EXPECT_EQ(printed_interval(claim(">95", 0.01)).high, std::numeric_limits<double>::max());
  EXPECT_EQ(printed_interval(claim("<10")).low, 0);
  EXPECT_EQ(printed_interval(claim("up to 47", 0.01)).low, 0);
}

TEST(ClaimsSpec, C1VerdictsHaveFourNames) {
  for (const Verdict verdict :
       {Verdict::holds, Verdict::holds_under_reading, Verdict::contradicts, Verdict::not_checkable})
    EXPECT_EQ(verdict_named(to_string(verdict)), verdict);
  EXPECT_THROW(verdict_named("wrong"), SpecError);  // claim_c1
}

TEST(ClaimsSpec, C2WhatIsNoPrintedNumberIsRefused) {
  for (const char* printed : {"", "about 5", "5x", "nan", "inf", "62-55", "-", "1-", "~", ">", "5MM"})
    EXPECT_THROW(printed_interval(claim(printed)), SpecError) << printed;
}

TEST(ClaimsSpec, VerdictsFollowTheNumbers) {
  Document document = document_from_toml(kRow, "made.toml");
  Claim& made = document.claims[0];
  EXPECT_EQ(judge(made, document).verdict, Verdict::holds);
  made.expect = "24 * 2049";
  EXPECT_EQ(judge(made, document).verdict, Verdict::contradicts);
  EXPECT_NEAR(*judge(made, document).ratio, 2048.0 / 2049.0, 1e-12);
  made.under = "24 * 2048";
  EXPECT_EQ(judge(made, document).verdict, Verdict::holds_under_reading);
  made.under = "24 * 2047";
  EXPECT_EQ(judge(made, document).verdict, Verdict::contradicts);
  made.missing = "the batch";
  EXPECT_EQ(judge(made, document).verdict, Verdict::not_checkable);
}

TEST(ClaimsSpec, C3AnExpressionMustRestOnSomething) {
  Document document = document_from_toml(kRow, "made.toml");
  document.claims[0].expect = "49152";
  EXPECT_THROW(judge(document.claims[0], document), SpecError);
}

TEST(ClaimsSpec, C4ClaimsRestOnOthersAndNotOnThemselves) {
  Document document = document_from_toml(kRow, "made.toml");
  document.claims[0].expect = "tokens * 1";
  EXPECT_THROW(judge(document.claims[0], document), SpecError);
  Claim other = document.claims[0];
  other.id = "twice";
  other.printed = "98,304";
  other.expect = "2 * tokens";
  document.claims.push_back(other);
  EXPECT_EQ(judge(document.claims[1], document).verdict, Verdict::holds);
}

TEST(ClaimsSpec, C5FunctionsNameTheArgumentThatIsWrong) {
  Document document = document_from_toml(kRow, "made.toml");
  for (const char* expect :
       {"parameters()", "parameters(3)", "flops('exact', 'llama3-8b', 2.5)", "flops('none', 'llama3-8b', 8)",
        "peak('B200', 'bf16', 'best')", "peak('B200', 'int4', 'dense')", "flops_of('all', 'llama3-8b', 8)"}) {
    document.claims[0].expect = expect;
    EXPECT_THROW(judge(document.claims[0], document), SpecError) << expect;
  }
}

TEST(ClaimsSpec, FilesThatBreakARuleAreRefusedWithTheirLine) {
  const std::string row = kRow;
  const auto refused = [](const std::string& text) {
    try {
      document_from_toml(text, "made.toml");
      return std::string("accepted");
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      return std::string(error.what());
    }
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = row;
    text.replace(text.find(from), from.size(), to);
    return refused(text);
  };
  EXPECT_NE(with("verdict", "verdikt").find("verdict"), std::string::npos);
  EXPECT_NE(with("\"holds\"", "\"contradicts\"").find("wants a cause"), std::string::npos);
  EXPECT_NE(with("expect = \"24 * 2048\"", "").find("one of expect and missing"), std::string::npos);
  EXPECT_NE(with("line = 3", "line = 0").find("line must be"), std::string::npos);
  EXPECT_NE(with("line = 3", "line = \"3\"").find("must be an integer"), std::string::npos);
  EXPECT_NE(with("counted = true", "under = \"1 * 2\"").find("come together"), std::string::npos);
  EXPECT_NE(with("counted = true", "weight = 4").find("weight"), std::string::npos);
  EXPECT_NE(refused(row + row.substr(row.find("[[claim]]"))).find("occurs twice"), std::string::npos);
  EXPECT_NE(refused("title = \"x\"\nsource = \"y\"\n").find("[[claim]]"), std::string::npos);
  EXPECT_NE(refused("title = ").find("made.toml:1"), std::string::npos);
}

}  // namespace
}  // namespace assay::spec::claims
