// labels: unit property
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "spec/error.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "spec/record/write.hpp"
#include "spec/text/json.hpp"
#include "tests/spec/record/draw_event.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::record::record_test {
namespace {

std::string refusal(const std::string& line) {
  try {
    from_json(line, "run.jsonl:7");
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  return "";
}

/// The line of `event` after `change` was applied to its JSON.
template <class Change>
std::string changed(const Event& event, Change change) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(to_json(event));
  change(json);
  return json.dump();
}

TEST(RecordSpec, AWarningIsOneLineInFixedOrder) {
  EXPECT_EQ(to_json(Warning{.step = 1, .code = "first_loss", .text = "off by \"9\" sd\n"}),
            R"({"event":"warning","step":1,"code":"first_loss","text":"off by \"9\" sd\n"})");
  EXPECT_EQ(to_json(Warning{.step = {}, .code = "a", .text = ""}),
            R"({"event":"warning","code":"a","text":""})");
}

TEST(RecordSpec, NumbersThatJsonCannotHoldAreNamed) {
  Step step;
  step.loss = std::nan("");
  step.gradient_norm = HUGE_VAL;
  step.z_loss = -HUGE_VAL;
  const std::string line = to_json(step);
  EXPECT_NE(line.find(R"("loss":"nan","z_loss":"-inf","gradient_norm":"inf")"), std::string::npos) << line;
  const Step back = std::get<Step>(from_json(line, "x"));
  EXPECT_TRUE(std::isnan(back.loss));
  EXPECT_EQ(back.gradient_norm, HUGE_VAL);
  EXPECT_EQ(back.z_loss, -HUGE_VAL);
}

TEST(RecordSpec, BytesThatAreNotUtf8BecomeTheReplacementCharacter) {
  EXPECT_EQ(json_string("a\xff\xc3(ü"), "\"a\xEF\xBF\xBD\xEF\xBF\xBD(ü\"");
  EXPECT_TRUE(nlohmann::json::accept(to_json(Warning{.step = {}, .code = "\xed\xa0\x80", .text = "\xf5"})));
}

TEST(RecordSpec, UnknownEventsGetTheNearestOne) {
  EXPECT_EQ(refusal(R"({"event":"setp"})"), "run.jsonl:7: unknown event \"setp\"; did you mean \"step\"?");
  EXPECT_NE(refusal(R"({"step":1})"), "");
  EXPECT_NE(refusal(R"({"event":3})"), "");
  EXPECT_EQ(refusal("[]"), "run.jsonl:7: the line is not a JSON object");
  EXPECT_EQ(refusal("{").rfind("run.jsonl:7: not valid JSON at byte 2: ", 0), 0u) << refusal("{");
  EXPECT_NE(refusal(""), "");
}

TEST(RecordSpec, MissingExtraAndWrongFieldsAreNamedWithTheirPath) {
  EXPECT_EQ(refusal(changed(Step(), [](auto& json) { json["phases"].erase("clip"); })),
            "run.jsonl:7: the field \"phases.clip\" is missing");
  EXPECT_EQ(refusal(changed(Step(), [](auto& json) { json["phases"]["nap"] = 1; })),
            "run.jsonl:7: unknown field \"phases.nap\"");
  EXPECT_EQ(refusal(changed(Step(), [](auto& json) { json["perplexity"] = 1; })),
            "run.jsonl:7: unknown field \"perplexity\"");
  EXPECT_EQ(refusal(changed(Step(), [](auto& json) { json["tokens"] = 1.5; })),
            "run.jsonl:7: \"tokens\" must be an integer, not 1.5");
  EXPECT_NE(refusal(changed(Step(), [](auto& json) { json["tokens"] = std::uint64_t(1) << 63; })), "");
  EXPECT_NE(refusal(changed(Step(), [](auto& json) { json["loss"] = "NaN"; })), "");
  EXPECT_NE(refusal(changed(Step(), [](auto& json) { json["mfu"] = nullptr; })), "");
  EXPECT_NE(refusal(changed(RunEnd(), [](auto& json) { json["reason"] = "tired"; })), "");
  EXPECT_NE(refusal(changed(RunStart(), [](auto& json) { json["gpus"] = 8; })), "");
  EXPECT_NE(refusal(changed(RunStart(), [](auto& json) { json["settings"]["a.b"] = true; })), "");
}

TEST(RecordSpec, AnotherSchemaIsRefusedByItsNumber) {
  EXPECT_EQ(refusal(changed(RunStart(), [](auto& json) { json["schema"] = 2; })),
            "run.jsonl:7: the record has schema 2, this program reads schema 1; use the version of assay "
            "that wrote it");
}

TEST(RecordSpec, EveryFieldOfEveryEventIsRequiredOrOptionalAsDocumented) {
  // Dropping a field of an otherwise full event is refused exactly when the field is not std::optional.
  const std::set<std::string> optional = {"commit",
                                          "peak_flops",
                                          "expected_first_loss",
                                          "planned_memory_bytes",
                                          "planned_load",
                                          "most_load",
                                          "load",
                                          "attention",
                                          "tensor_ranks",
                                          "expert_ranks",
                                          "linear",
                                          "executed_peak_flops",
                                          "deterministic",
                                          "measured_bytes",
                                          "mfu",
                                          "hfu",
                                          "executed_flops",
                                          "balance_loss",
                                          "router_z_loss",
                                          "load_balance_worst",
                                          "load_balance_mean",
                                          "router_entropy",
                                          "dropped_choices",
                                          "message",
                                          "final_loss",
                                          "final_steps",
                                          "floor",
                                          "gap_closed",
                                          "validation",
                                          "bits_per_byte",
                                          "changed",
                                          "goodput"};
  RunStart start;
  start.commit = "c";
  start.peak_flops = 1;
  start.expected_first_loss.emplace();
  start.planned_memory_bytes = 1;
  start.planned_load = 1.25, start.most_load = 2;
  start.attention = "cudnn";
  start.tensor_ranks = 4;
  start.expert_ranks = 2;
  start.linear = "fp8_tensor: activations e4m3";
  start.executed_peak_flops = 1.5e15;
  start.deterministic = true;
  start.validation = "8 of 9 samples";
  Memory memory;
  memory.measured_bytes = 1;
  memory.load = 1.5;
  Validation validation;
  validation.bits_per_byte = 4.5;
  Step step;
  step.mfu = step.hfu = 0.5;
  step.executed_flops = 1e12;
  step.balance_loss = step.router_z_loss = 1;
  step.load_balance_worst = step.load_balance_mean = step.router_entropy = 1.5;
  step.dropped_choices = 0.125;
  ResumeFrom resume;
  resume.changed.emplace();
  RunEnd end;
  end.message = "m";
  end.final_loss = end.floor = end.gap_closed = 1;
  end.final_steps = 1;
  end.goodput.emplace();
  for (const Event& event : {Event(start), Event(step), Event(Checkpoint()), Event(resume), Event(Samples()),
                             Event(memory), Event(validation), Event(end)}) {
    const auto whole = nlohmann::ordered_json::parse(to_json(event));
    for (const auto& [name, content] : whole.items()) {
      auto json = whole;
      json.erase(name);
      EXPECT_EQ(refusal(json.dump()).empty(), optional.contains(name)) << event_name(event) << "." << name;
    }
  }
}

RC_GTEST_PROP(RecordSpec, EveryEventReadsBackAsItWasWritten, ()) {
  const Event event = tests::draw_event();
  const std::string line = to_json(event);
  RC_ASSERT(line.find('\n') == std::string::npos);
  const Event back = from_json(line, "x");
  RC_ASSERT(back == event);
  RC_ASSERT(to_json(back) == line);  // also distinguishes -0 from 0
}

/// A tab is a blank of JSON that nothing of ours writes: such a line is read by way of a tree.
RC_GTEST_PROP(RecordSpec, AStepIsTheSameHoweverItsLineIsRead, ()) {
  std::string line = to_json(tests::drawn<Step>());
  const Event quick = from_json(line, "x");
  line.insert(1, "\t");
  RC_ASSERT(to_json(from_json(line, "x")) == to_json(quick));
}

TEST(RecordSpec, WhatIsNoNumberOfJsonIsNoneOfAStep) {
  Step step;
  step.loss = 12.5;
  const std::string line = to_json(step), number = "12.5";
  for (const char* wrong :
       {"012.5", "12.", "12.e1", ".5", "+1", "inf", "nan", "1e999", "0x1", "12.5 1", "\"1\"", ""}) {
    std::string other = line;
    other.replace(line.find(number), number.size(), wrong);
    EXPECT_NE(refusal(other), "") << wrong;
  }
  for (const char* right : {"1e1", "-0.5", " 12.5 ", "12"}) {
    std::string other = line;
    other.replace(line.find(number), number.size(), right);
    EXPECT_EQ(refusal(other), "") << right;
  }
  EXPECT_NE(refusal(line + "}"), "");
  EXPECT_NE(refusal(line.substr(0, line.size() - 1)), "");
}

TEST(RecordSpec, ARecordStartsWithARunStart) {
  std::istringstream in(to_json(Step()) + "\n");
  EXPECT_THROW(read_events(in, "x"), UserError);
  std::istringstream empty("");
  EXPECT_THROW(read_events(empty, "x"), UserError);
  EXPECT_THROW(read_events("/no/such/run"), UserError);
}

TEST(RecordSpec, OnlyALastLineThatWasCutOffIsLeftOut) {
  const std::string start = to_json(RunStart()) + "\n", step = to_json(Step());
  std::istringstream cut(start + step + "\n" + step.substr(0, 40));
  EXPECT_EQ(read_events(cut, "x").size(), 2u);
  std::istringstream whole(start + step);
  EXPECT_EQ(read_events(whole, "x").size(), 2u);
  std::istringstream middle(start + step.substr(0, 40) + "\n" + step + "\n");
  try {
    read_events(middle, "run.jsonl");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("run.jsonl:2: not valid JSON at byte 41: ", 0), 0u)
        << error.what();
  }
}

Step numbered(std::int64_t number, double loss) {
  Step step;
  step.step = number;
  step.loss = loss;
  return step;
}

TEST(RunSpec, ValidationsGoWithTheirSteps) {
  const auto at = [](std::int64_t step, double loss) {
    Validation validation;
    validation.step = step, validation.loss = loss;
    return validation;
  };
  const auto run = assemble({RunStart(), numbered(1, 9), at(1, 8.5), numbered(2, 8), at(2, 7.5), RunStart(),
                             ResumeFrom{.step = 1, .path = "p"}, numbered(2, 8), at(2, 7.25), at(2, 7)});
  ASSERT_EQ(run.validations.size(), 2u);
  EXPECT_EQ(run.validations[0].loss, 8.5);
  EXPECT_EQ(run.validations[1].loss, 7);
}

TEST(RunSpec, AResumedRunCountsTheLaterStepsOnly) {
  const auto run = assemble({RunStart(), numbered(1, 9), numbered(2, 8), numbered(3, 7), RunEnd(), RunStart(),
                             ResumeFrom{.step = 1, .path = "p"}, numbered(2, 6)});
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(run.steps[0].loss, 9);
  EXPECT_EQ(run.steps[1].loss, 6);
  EXPECT_FALSE(run.end.has_value());
  EXPECT_EQ(run.resumes.size(), 1u);
}

TEST(RunSpec, GoodputIsOfAllStartsTogether) {
  RunEnd first, second;
  first.goodput = {.tokens_per_second = 9, .seconds = 30, .start_up = 10, .steps = 20};
  second.goodput = {.tokens_per_second = 9, .seconds = 20, .steps = 10, .saves = 10};
  Step step = numbered(1, 9), later = numbered(2, 8);
  step.tokens = later.tokens = 100;
  const std::vector<Event> events = {
      RunStart(), step, later, first, RunStart(), ResumeFrom{.step = 1, .path = "p"}, later, second};
  const auto run = assemble(events);
  ASSERT_EQ(run.earlier_ends.size(), 1u);
  EXPECT_EQ(goodput(run),
            (Goodput{.tokens_per_second = 4, .seconds = 50, .start_up = 10, .steps = 30, .saves = 10}))
      << "of a step that was done twice, the later one counts";
  auto crashed = events;
  crashed.erase(crashed.begin() + 3);
  EXPECT_FALSE(goodput(assemble(crashed)));
}

TEST(RunSpec, GapClosedIsOneAtTheFloorAndZeroAtAUniformGuess) {
  EXPECT_EQ(gap_closed(1.0, 1.0, 256), 1.0);
  EXPECT_EQ(gap_closed(std::log(256.0), 1.0, 256), 0.0);
  EXPECT_NEAR(gap_closed(1.5, 0.5, 100), (std::log(100.0) - 1.5) / (std::log(100.0) - 0.5), 1e-15);
}

TEST(RunSpec, SharesOfGoodputAreThoseOfItsParts) {
  const Goodput goodput{.tokens_per_second = 1,
                        .seconds = 200,
                        .start_up = 10,
                        .steps = 150,
                        .data_wait = 1,
                        .saves = 35,
                        .other = 4};
  EXPECT_EQ(fractions(goodput), "steps 75.0 %, data wait 0.5 %, saves 17.5 %, start-up 5.0 %, other 2.0 %");
}

TEST(RunSpec, C2RefusesAFloorAboveAUniformGuess) {
  EXPECT_THROW(gap_closed(1, std::log(16.0), 16), SpecError);
}

TEST(RecordSpec, C1RefusesTheFieldsOfAnUnknownEvent) { EXPECT_THROW(field_names("stop"), SpecError); }

TEST(RunSpec, MeanLossTakesTheLastSteps) {
  const std::vector<Step> steps = {numbered(1, 4), numbered(2, 2), numbered(3, 1)};
  EXPECT_EQ(mean_loss(steps, 2), 1.5);
  EXPECT_EQ(mean_loss(steps, 9), 7.0 / 3);
  EXPECT_EQ(mean_loss({}, 2), std::nullopt);
}

TEST(RecordSpec, ARecordOfSchemaOneReadsForEver) {
  // Frozen when schema 1 was made; not to be regenerated. A new schema gets a file of its own beside it.
  const std::string path = tests::source_dir() + "/tests/spec/record/schema_1.jsonl";
  std::ifstream in(path);
  std::set<std::string> kinds;
  for (std::string line; std::getline(in, line);) {
    const Event event = from_json(line, path);
    EXPECT_EQ(to_json(event), line);
    kinds.insert(event_name(event));
  }
  EXPECT_EQ(kinds.size(), event_names().size() - 5)
      << "it holds every kind of event but memory, validation, weights, skipped and profile, later ones";
  EXPECT_EQ(read_events(path).size(), 9u);
}

TEST(RecordDocs, EveryFieldIsDocumentedAndNoneIsStale) {
  std::ifstream page(tests::source_dir() + "/spec/record/record.md");
  std::map<std::string, std::set<std::string>> documented;
  std::string event;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("## `", 0) == 0) event = line.substr(4, line.size() - 5);
    if (line.rfind("| `", 0) == 0) documented[event].insert(line.substr(3, line.find('`', 3) - 3));
  }
  ASSERT_EQ(documented.size(), event_names().size());
  for (const std::string& name : event_names()) {
    const auto fields = field_names(name);
    EXPECT_EQ(documented[name], std::set<std::string>(fields.begin(), fields.end())) << name;
  }
}

}  // namespace
}  // namespace assay::spec::record::record_test
