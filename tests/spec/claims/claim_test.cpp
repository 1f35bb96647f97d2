// labels: unit golden fuzz
#include "spec/claims/claim.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "spec/claims/page.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::claims::claim_test {
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

const char* const kRow = R"toml(
title = "A report"
source = "nobody, 2025"
[[claim]]
id = "tokens"
line = 3
what = "tokens of a step"
printed = "49,152"
counted = true
expect = "tokens_per_step(24, 1, 1, 2048)"
verdict = "holds"
)toml";

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

/// A claim with another number printed, to eight digits.
Claim printed_as(const Claim& claim, double value) {
  Claim changed = claim;
  char text[64];
  std::snprintf(text, sizeof text, "%.7e", value / claim.unit);
  changed.printed = text;
  changed.rounded_to = 0;
  changed.counted = false;
  return changed;
}

TEST(ClaimsSpec, EveryRecomputedClaimCanFailAndCanHold) {
  for (const Document& document : published())
    for (const Claim& made : document.claims) {
      if (made.expect.empty()) continue;
      const Judgement judgement = judge(made, document);
      const std::string name = document.key + "." + made.id;
      const Interval expected = *judgement.expected;
      // The recomputed number printed instead holds, whatever the verdict was.
      EXPECT_EQ(judge(printed_as(made, expected.middle()), document).verdict, Verdict::holds) << name;
      // Outside what was recomputed, above or below, nothing holds but the reading.
      const double spare = 1e-3 * std::max(std::abs(expected.low), std::abs(expected.high));
      for (const double value : {expected.low - spare, expected.high + spare}) {
        if (value <= 0) continue;  // no document prints it
        const Verdict verdict = judge(printed_as(made, value), document).verdict;
        const bool read = judgement.under_reading && judgement.under_reading->holds(value);
        EXPECT_EQ(verdict, read ? Verdict::holds_under_reading : Verdict::contradicts)
            << name << " " << value;
      }
      // No recomputation is so loose that it would take a number three times as large, nor a third.
      if (judgement.verdict != Verdict::holds || made.printed.find_first_of("<>p") != std::string::npos)
        continue;
      for (const double factor : {3.0, 1 / 3.0}) {
        const Claim other = printed_as(made, factor * judgement.printed.middle());
        EXPECT_NE(judge(other, document).verdict, Verdict::holds) << name;
      }
    }
}

TEST(ClaimsSpec, TwinsAgreeAndRepeatsFollow) {
  std::size_t twins = 0, repeats = 0;
  for (const Document& document : published())
    for (const Claim& made : document.claims)
      for (const Claim& first : document.claims) {
        if (made.twin == first.id) {
          ++twins;
          EXPECT_EQ(to_string(made.verdict), to_string(first.verdict)) << document.key << "." << made.id;
        }
        if (made.repeats == first.id) {
          ++repeats;
          EXPECT_TRUE(printed_interval(made).meets(printed_interval(first)))
              << document.key << "." << made.id;
          Claim other = made;  // a copy with a slip
          other.printed = printed_as(made, 1.5 * printed_interval(made).middle()).printed;
          other.counted = false;
          EXPECT_EQ(judge(other, document).verdict, Verdict::contradicts) << document.key << "." << made.id;
        }
      }
  EXPECT_GE(twins, 20u);
  EXPECT_GE(repeats, 30u);
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
  made.expect = "tokens_per_step(24, 1, 1, 2049)";
  EXPECT_EQ(judge(made, document).verdict, Verdict::contradicts);
  EXPECT_NEAR(*judge(made, document).ratio, 2048.0 / 2049.0, 1e-12);
  made.under = "tokens_per_step(24, 1, 1, 2048)";
  EXPECT_EQ(judge(made, document).verdict, Verdict::holds_under_reading);
  made.under = "tokens_per_step(24, 1, 1, 2047)";
  EXPECT_EQ(judge(made, document).verdict, Verdict::contradicts);
  made.missing = "the batch";
  EXPECT_EQ(judge(made, document).verdict, Verdict::not_checkable);
}

TEST(ClaimsSpec, C3AnExpressionMustRestOnSomething) {
  Document document = document_from_toml(kRow, "made.toml");
  for (const char* expect : {"49152", "24 * 2048", "2k + 1e3", "(1 - 1 / 4)"}) {
    document.claims[0].expect = expect;
    EXPECT_THROW(judge(document.claims[0], document), SpecError) << expect;  // claim_c3
  }
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
        "peak('B200', 'bf16', 'best')", "peak('B200', 'int4', 'dense')", "flops_of('all', 'llama3-8b', 8)",
        "element_bytes('bf16')", "tokens_per_step(1.5, 1, 1, 8)", "ranks(1, 2)", "iterations(1e9, 'x')"}) {
    document.claims[0].expect = expect;
    EXPECT_THROW(judge(document.claims[0], document), SpecError) << expect;
  }
}

TEST(ClaimsSpec, C6RepeatsAndTwinsReferToAClaimThatStandsForItself) {
  Document document = document_from_toml(kRow, "made.toml");
  Claim again = document.claims[0];
  again.id = "again";
  again.expect.clear();
  again.repeats = "tokens";
  document.claims.push_back(again);
  EXPECT_EQ(judge(document.claims[1], document).verdict, Verdict::holds);
  document.claims[0].missing = "the batch";
  EXPECT_EQ(judge(document.claims[1], document).verdict, Verdict::not_checkable);  // follows the first
  document.claims[1].printed = "50,000";
  EXPECT_EQ(judge(document.claims[1], document).verdict, Verdict::contradicts);
  for (const char* first : {"again", "nothing"}) {
    document.claims[1].repeats = first;
    EXPECT_THROW(judge(document.claims[1], document), SpecError) << first;  // claim_c6
  }
  Claim twin = again;
  twin.id = "twin", twin.repeats.clear(), twin.expect = "tokens * 1", twin.twin = "again";
  document.claims.push_back(twin);
  EXPECT_THROW(judge(document.claims[2], document), SpecError);  // claim_c6: a twin of a repeat
}

TEST(ClaimsSpec, FunctionsOfRunsGiveWhatTheSpecGives) {
  Document document = document_from_toml(kRow, "made.toml");
  document.inputs.push_back({"half_open", 1, "", "an input", 0.5});
  Claim range = document.claims[0];
  range.id = "range", range.printed = "100-200", range.counted = false, range.unit = 1;
  document.claims.push_back(range);
  const auto value = [&](const std::string& expect) {
    document.claims[0].expect = expect;
    return *judge(document.claims[0], document).expected;
  };
  EXPECT_EQ(value("sequences(24, 64, 2)"), exact_interval(3072));
  EXPECT_EQ(value("tokens_per_step(24, 64, 2, 2048)"), exact_interval(6291456));
  EXPECT_EQ(value("accumulation(512, 1, 2)"), exact_interval(256));
  EXPECT_EQ(value("ranks(1, 2, 3, 4, 5)"), exact_interval(120));
  EXPECT_EQ(value("element_bytes('BF16') * half_open"), exact_interval(1));
  EXPECT_EQ(value("iterations(6B, 4194304)"), (Interval{1430, 1431}));
  EXPECT_EQ(value("scaling_efficiency(30, 4, 10, 1)"), exact_interval(0.75));
  EXPECT_DOUBLE_EQ(value("learning_rate(0.0003, 2000, 25000, 10)").low, 0.0003 * 11 / 2000);
  // A report's 10.8422 is no loss of uniform tokens, and one of text in which tokens repeat.
  EXPECT_FALSE(value("first_loss('llama-1.36b', 393216)").holds(10.8422));
  EXPECT_NEAR(value("first_loss('llama-1.36b', 393216)").middle(), 10.834, 1e-3);
  EXPECT_TRUE(value("first_loss_of_text('llama-1.36b', 393216, 0.005)").holds(10.8422));
  // Intervals keep their ends: 100 to 200 as printed is 99.5 to 200.5.
  const Interval rates = value("tokens_per_second(2000, range)");
  EXPECT_DOUBLE_EQ(rates.low, 2000 / 200.5);
  EXPECT_DOUBLE_EQ(rates.high, 2000 / 99.5);
  const Interval used = value("utilisation(range, 4, range, 2)");
  EXPECT_DOUBLE_EQ(used.low, 99.5 * 4 / (200.5 * 2));
  EXPECT_DOUBLE_EQ(used.high, 200.5 * 4 / (99.5 * 2));
  const Interval at = value("tokens_per_second_at(half_open, range, 1000, 2)");
  EXPECT_DOUBLE_EQ(at.low, 1000 / 200.5);
  EXPECT_DOUBLE_EQ(at.high, 1000 / 99.5);
  const Interval achieved = value("achieved_flops(3, range)"),
                 seconds = value("training_seconds(1000, range)");
  EXPECT_DOUBLE_EQ(achieved.high, 601.5);
  EXPECT_DOUBLE_EQ(seconds.low, 1000 / 200.5);
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
  EXPECT_NE(with("expect = \"tokens_per_step(24, 1, 1, 2048)\"", "").find("exactly one of"),
            std::string::npos);
  EXPECT_NE(with("line = 3", "line = 0").find("line must be"), std::string::npos);
  EXPECT_NE(with("line = 3", "line = \"three\"").find("must be an integer"), std::string::npos);
  EXPECT_NE(with("counted = true", "under = \"1 * 2\"").find("come together"), std::string::npos);
  EXPECT_NE(with("counted = true", "weight = 4").find("weight"), std::string::npos);
  EXPECT_NE(with("counted = true", "repeats = \"x\"").find("exactly one of"), std::string::npos);
  const std::string input = "[[input]]\nid = \"tokens\"\nwhat = \"x\"\nvalue = 1\n";
  EXPECT_NE(with("[[claim]]", input + "[[claim]]").find("one of line"), std::string::npos);
  EXPECT_NE(with("[[claim]]", input + "line = 2\n[[claim]]").find("occurs twice"), std::string::npos);
  EXPECT_NE(refused(row + row.substr(row.find("[[claim]]"))).find("occurs twice"), std::string::npos);
  EXPECT_NE(refused("title = \"x\"\nsource = \"y\"\n").find("[[claim]]"), std::string::npos);
  EXPECT_NE(refused("title = ").find("made.toml:1"), std::string::npos);
}

}  // namespace
}  // namespace assay::spec::claims::claim_test
