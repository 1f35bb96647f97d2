// labels: unit property
// What our own record says twice has to agree to the last digits: each number of a true record is changed,
// and the line of the change is named.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "spec/audit/identities.hpp"
#include "spec/error.hpp"
#include "spec/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "spec/record/chain.hpp"
#include "spec/record/goodput.hpp"
#include "spec/record/run.hpp"
#include "spec/record/write.hpp"
#include "tests/spec/record/draw_damage.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::identities_test {
namespace {

/// Steps `first` to `last`, and the end that they come to.
struct Start {
  record::RunStart start = tests::example_start();
  std::vector<record::Step> steps;
  record::RunEnd end;

  Start(std::int64_t first, std::int64_t last) {
    start.data.floor = 0.5;
    for (std::int64_t number = first; number <= last; ++number) {
      record::Step step = tests::example_step(number);
      step.loss = 5 - 0.1 * static_cast<double>(number);
      step.seconds = 0.25 + 0.001 * static_cast<double>(number % 3);
      steps.push_back(step);
      end.tokens += step.tokens;
      end.seconds += step.seconds;
    }
    end.steps = last - first + 1;
    end.tokens_per_second = static_cast<double>(end.tokens) / end.seconds;
    end.final_steps = std::min<std::int64_t>(record::final_loss_steps, end.steps);
    end.final_loss = record::mean_loss(steps, record::final_loss_steps);
    end.floor = start.data.floor;
    end.gap_closed = record::gap_closed(*end.final_loss, *end.floor, start.vocab);
  }
};

/// A run that was stopped at step 12, went on to step 24, and was given more steps.
struct ThreeStarts {
  Start first{1, 12}, second{13, 24}, third{25, 27};
  std::string damaged_line, behind_second;  ///< of the second

  Result judged() const {
    std::string text;
    for (const Start* each : {&first, &second, &third}) {
      text += record::to_json(each->start) + "\n";
      const std::int64_t from = each->steps.front().step - 1;
      if (from > 0) text += record::to_json(record::ResumeFrom{from, "checkpoints"}) + "\n";
      for (const record::Step& step : each->steps) text += record::to_json(step) + "\n";
      if (each == &second) text += damaged_line;
      text += record::to_json(each->end) + "\n";
      if (each == &second) text += behind_second;
    }
    return judge("ends", tests::read_text(text));
  }
};

TEST(IdentitiesSpec, TruthfulEndsHold) {
  const Result result = ThreeStarts().judged();
  EXPECT_EQ(result.verdict, Verdict::holds) << result.note;
}

TEST(IdentitiesSpec, EveryNumberOfEveryLaterEndIsHeldToItsSteps) {
  const std::function<void(record::RunEnd&)> changes[] = {
      [](record::RunEnd& end) { end.steps += 1; },
      [](record::RunEnd& end) { end.tokens += 4096; },
      [](record::RunEnd& end) { end.seconds *= 1 + 1e-9; },
      [](record::RunEnd& end) { end.tokens_per_second *= 1 + 1e-9; },
      [](record::RunEnd& end) { *end.final_loss += 1e-9, end.gap_closed.reset(); },
      [](record::RunEnd& end) { *end.gap_closed += 1e-9; }};
  int number = 0;
  for (const auto& change : changes) {
    for (Start ThreeStarts::*which : {&ThreeStarts::second, &ThreeStarts::third}) {
      ThreeStarts run;
      change((run.*which).end);
      const Result result = run.judged();
      ASSERT_EQ(result.verdict, Verdict::contradicts) << number;
      EXPECT_EQ(result.causes.at(0).id, "does_not_follow");
    }
    ++number;
  }
}

TEST(IdentitiesSpec, AnEndOfTheWholeRunIsNotALaterStarts) {
  ThreeStarts run;
  run.second.end.steps = 24;
  EXPECT_EQ(run.judged().verdict, Verdict::contradicts);
}

TEST(IdentitiesSpec, TheEndOfALostRankIsHeldToItselfAlone) {
  ThreeStarts run;
  run.second.end.exit_code = static_cast<std::int64_t>(ExitCode::peer_lost);
  run.second.end.reason = record::EndReason::error;
  run.second.end.steps += 1;
  EXPECT_EQ(run.judged().verdict, Verdict::holds);
  run.second.end.tokens_per_second *= 2;
  EXPECT_EQ(run.judged().verdict, Verdict::contradicts);
}

/// A step that stands in no line is told by `steps`: its tokens are nobody's to sum up here.
TEST(IdentitiesSpec, AnEndBehindAMissingLineIsHeldToItselfAlone) {
  ThreeStarts run;
  run.second.steps.erase(run.second.steps.begin() + 3);
  EXPECT_EQ(run.judged().verdict, Verdict::holds);
  run.second.end.tokens_per_second *= 2;
  EXPECT_EQ(run.judged().verdict, Verdict::contradicts);
}

/// A line that cannot be read may have been a start, of other settings and another clock.
TEST(IdentitiesSpec, NothingIsHeldBehindALineThatCannotBeRead) {
  ThreeStarts run;
  run.damaged_line = "{\"event\":\"run_sta\n";
  run.second.end.steps += 1;
  EXPECT_NE(run.judged().verdict, Verdict::contradicts);
}

TEST(IdentitiesSpec, OfTwoEndsOfOneStartTheLaterCounts) {
  ThreeStarts run;
  const record::RunEnd right = run.second.end;
  run.second.end.steps += 1;
  run.behind_second = record::to_json(right) + "\n";
  EXPECT_EQ(run.judged().verdict, Verdict::holds);
}

/// Six steps of a mixture on one GPU over a batch that grows, of which the fourth is skipped, with two
/// validations and a save: as the trainer writes them (impl/run).
std::vector<record::Event> true_record() {
  record::RunStart start = tests::example_start();
  start.gpus = {{.name = "NVIDIA H200", .uuid = "GPU-1", .memory_bytes = 150'000'000'000}};
  start.peak_flops = 9e14, start.executed_peak_flops = 8e14;
  start.steps = 6;
  start.settings = {{"optimizer.clip", 0.5}, {"data.end_of_document", std::int64_t{-1}}};
  std::vector<record::Event> events = {start};
  const double length = static_cast<double>(start.batch.sequence_length);
  const double sizes[] = {156 * length, 70 * length};
  double elapsed = 1.5, read[] = {0, 0};
  record::RunEnd end;
  record::Goodput goodput;
  goodput.start_up = 1.5;
  std::vector<record::Step> steps;
  for (std::int64_t number = 1; number <= 6; ++number) {
    record::Step step = tests::example_step(number);
    const std::int64_t sequences[] = {number < 4 ? 3 : 6, number < 4 ? 1 : 2};
    step.tokens = step.valid_tokens = 0, step.loss = 0;
    step.sources.emplace();
    for (int k = 0; k < 2; ++k) {
      record::StepSource source;
      source.name = k ? "code" : "web";
      source.tokens = sequences[k] * 128;
      source.valid_tokens = source.tokens - number * k;
      source.loss = 4.5 - 0.1 * static_cast<double>(number) + k;
      source.epochs = (read[k] += static_cast<double>(source.tokens)) / sizes[k];
      step.tokens += source.tokens, step.valid_tokens += source.valid_tokens;
      step.loss += static_cast<double>(source.valid_tokens) * *source.loss;
      step.sources->push_back(source);
    }
    step.loss /= static_cast<double>(step.valid_tokens);
    step.gradient_norm = 2.0 / static_cast<double>(number);
    step.clip_coefficient = clip_grad_norm::coefficient(step.gradient_norm, 0.5);
    step.seconds = 0.25 + 0.01 * static_cast<double>(number);
    step.phases = {.data_wait = 0.01, .forward = step.seconds - 0.01};
    if (number == 3) step.seconds += step.phases.checkpoint = 0.125, goodput.saves += 0.125;
    step.tokens_per_second = static_cast<double>(step.tokens) / step.seconds;
    step.executed_flops = 6e9 * static_cast<double>(step.tokens);
    step.hfu = *step.executed_flops / step.seconds / 8e14;
    step.mfu.reset();
    elapsed += step.seconds + 0.001;
    if (number == 4) {
      record::SkippedStep skipped;
      skipped.step = 4, skipped.skipped = 1, skipped.allowed = 2;
      skipped.tokens = step.tokens, skipped.seconds = step.seconds;
      events.emplace_back(skipped);
      goodput.steps += step.seconds;
    } else {
      step.elapsed_seconds = elapsed;
      events.emplace_back(step);
      steps.push_back(step);
      end.tokens += step.tokens, end.seconds += step.seconds;
      goodput.data_wait += step.phases.data_wait;
      goodput.steps += step.seconds - step.phases.data_wait - step.phases.checkpoint;
    }
    if (number % 3 != 0) continue;
    record::Validation validation;
    validation.step = number, validation.loss = step.loss, validation.perplexity = std::exp(step.loss);
    validation.bits_per_byte = step.loss / std::numbers::ln2;
    validation.seconds = 0.5;
    events.emplace_back(validation);
    elapsed += 0.5, goodput.evaluation += 0.5;
  }
  end.steps = end.final_steps.emplace(5);
  end.tokens_per_second = static_cast<double>(end.tokens) / end.seconds;
  end.final_loss = record::mean_loss(steps, 10);
  goodput.other = 0.01;
  goodput.seconds = goodput.start_up + goodput.steps + goodput.data_wait + goodput.saves +
                    goodput.evaluation + goodput.other;
  goodput.tokens_per_second = static_cast<double>(end.tokens) / goodput.seconds;
  end.goodput = goodput;
  events.emplace_back(end);
  const record::RunGoodput sum = record::run_goodput(events);
  std::get<record::RunEnd>(events.back()).run_goodput = sum;
  return events;
}

std::string text_of(const std::vector<record::Event>& events) {
  record::Chain chain;
  std::string text;
  for (const record::Event& event : events) text += chain.line_of(record::to_json(event)) + "\n";
  return text;
}
RunRecord read_events(const std::vector<record::Event>& events) { return tests::read_text(text_of(events)); }

/// The true record that an identity is held to: losses of sources are not on a GPU.
std::vector<record::Event> true_record_of(std::string_view id) {
  std::vector<record::Event> events = true_record();
  if (id == "source_losses") std::get<record::RunStart>(events[0]).gpus.clear();
  return events;
}

TEST(IdentitiesSpec, EachHoldsOfATrueRecord) {
  EXPECT_EQ(judge("source_losses", read_events(true_record())).verdict, Verdict::cannot_be_judged);
  for (const IdentityRow& row : identities()) {
    const Result result = judge(row.invariant.id, read_events(true_record_of(row.invariant.id)));
    EXPECT_EQ(result.verdict, Verdict::holds)
        << row.invariant.id << ": " << (result.causes.empty() ? result.note : result.causes[0].text);
  }
}

TEST(IdentitiesSpec, RunsWhoseRecordsWereJoinedAreHeldEachByItself) {
  std::string text;
  for (int run = 0; run < 2; ++run) text += text_of(true_record());
  std::istringstream in(text);
  const std::vector<RunRecord> both = read_logs(in, "both");
  for (const RunRecord& record : both)
    for (const IdentityRow& row : identities())
      EXPECT_NE(judge(row.invariant.id, record).verdict, Verdict::contradicts) << row.invariant.id;
  EXPECT_EQ(judge("ends", both.back()).verdict, Verdict::holds);
}

/// Whichever line of a record with two starts is cut, none of what is left contradicts itself.
TEST(IdentitiesSpec, NoLineThatIsCutMakesAnotherContradict) {
  std::vector<std::string> lines;
  for (int start = 0; start < 2; ++start)
    for (record::Event event : true_record()) {
      if (auto* end = std::get_if<record::RunEnd>(&event)) end->run_goodput.reset();
      lines.push_back(record::to_json(event));
    }
  for (std::size_t cut = 0; cut < lines.size(); ++cut) {
    std::string text;
    for (std::size_t i = 0; i < lines.size(); ++i)
      text += (i == cut ? lines[i].substr(0, lines[i].size() / 2) : lines[i]) + "\n";
    std::istringstream in(text);
    for (const RunRecord& record : read_logs(in, "cut"))
      for (const IdentityRow& row : identities())
        EXPECT_NE(judge(row.invariant.id, record).verdict, Verdict::contradicts)
            << row.invariant.id << " without line " << cut + 1;
  }
}

/// Event `line` (from 1) of a true record with another number.
struct Changed {
  const char* id;
  std::int64_t line;
  std::function<void(record::Event&)> change;
};
template <class Kind>
Changed in(const char* id, std::int64_t line, void (*change)(Kind&)) {
  return {id, line, [change](record::Event& event) { change(std::get<Kind>(event)); }};
}

TEST(IdentitiesSpec, AChangedNumberContradictsAndItsLineIsNamed) {
  using record::RunEnd, record::Step, record::Validation;
  constexpr std::int64_t first = 2, third = 4, validation = 5, sixth = 8, last = 10;
  const Changed all[] = {
      in<Validation>("perplexity", validation, [](Validation& v) { v.perplexity *= 1 + 1e-9; }),
      in<Validation>("bits_per_byte", validation, [](Validation& v) { *v.bits_per_byte *= 1 + 1e-9; }),
      in<Step>("clip_coefficient", third, [](Step& s) { s.clip_coefficient *= 1 + 1e-9; }),
      in<Step>("clip_coefficient", first, [](Step& s) { s.gradient_norm *= 2; }),
      in<Step>("executed_flops", third, [](Step& s) { *s.executed_flops += 2; }),
      in<Step>("executed_flops", sixth, [](Step& s) { *s.executed_flops += 2; }),
      in<Step>("hfu_of_executed", first, [](Step& s) { *s.hfu *= 1 + 1e-9; }),
      in<Step>("elapsed", first, [](Step& s) { *s.elapsed_seconds = 0.2; }),
      in<Step>("elapsed", third, [](Step& s) { *s.elapsed_seconds -= 0.02; }),
      in<Step>("source_tokens", third, [](Step& s) { s.sources->at(1).tokens += 128; }),
      in<Step>("source_tokens", third, [](Step& s) { s.sources->at(1).valid_tokens -= 1; }),
      in<Step>("source_losses", third, [](Step& s) { *s.sources->at(0).loss += 1e-4; }),
      in<Step>("source_losses", third, [](Step& s) { s.loss += 1e-4; }),
      in<Step>("source_epochs", first, [](Step& s) { s.sources->at(0).epochs *= 1 + 1e-4; }),
      in<Step>("source_epochs", third, [](Step& s) { s.sources->at(1).epochs *= 1 + 1e-9; }),
      in<Step>("source_epochs", sixth, [](Step& s) { s.sources->at(1).epochs *= 1 + 1e-9; }),
      in<RunEnd>("ends", last, [](RunEnd& e) { e.tokens += 128; }),
      in<RunEnd>("ends", last, [](RunEnd& e) { e.goodput->tokens_per_second *= 1 + 1e-9; }),
      in<RunEnd>("goodput", last, [](RunEnd& e) { e.goodput->other += 1e-6; }),
      in<RunEnd>("goodput", last, [](RunEnd& e) { e.goodput->data_wait += 0.1, e.goodput->steps -= 0.1; }),
      in<RunEnd>("goodput", last, [](RunEnd& e) { e.goodput->other += 0.1, e.goodput->steps -= 0.1; }),
      in<RunEnd>("goodput", last, [](RunEnd& e) { e.goodput->other += 0.1, e.goodput->evaluation -= 0.1; }),
      in<RunEnd>("goodput", last, [](RunEnd& e) { e.goodput->steps += 0.1, e.goodput->saves -= 0.1; }),
      in<RunEnd>("goodput", last, [](RunEnd& e) { e.goodput->steps -= 0.5, e.goodput->saves += 0.5; }),
      in<RunEnd>("goodput", last, [](RunEnd& e) { e.goodput->start_up += 0.1, e.goodput->seconds += 0.1; }),
      in<RunEnd>("run_goodput", last, [](RunEnd& e) { e.run_goodput->productive += 1e-6; }),
      in<RunEnd>("run_goodput", last, [](RunEnd& e) { e.run_goodput->starts = 2; }),
      in<RunEnd>("run_goodput", last,
                 [](RunEnd& e) { std::swap(e.run_goodput->skipped, e.run_goodput->redone); }),
  };
  std::set<std::string_view> tried;
  for (const Changed& each : all) {
    std::vector<record::Event> events = true_record_of(each.id);
    each.change(events[static_cast<std::size_t>(each.line - 1)]);
    const Result result = judge(each.id, read_events(events));
    EXPECT_EQ(result.verdict, Verdict::contradicts) << each.id << " of line " << each.line;
    ASSERT_FALSE(result.lines.empty()) << each.id;
    EXPECT_EQ(result.lines.front(), each.line) << each.id;
    tried.insert(each.id);
  }
  EXPECT_EQ(tried.size() + 1, identities().size())
      << "all but the chain, which every change of a text breaks";
}

/// Whatever is changed in a line, it is named; an end behind which the run went on hides nothing of it.
TEST(IdentitiesSpec, ALineThatIsNotAsItWasWrittenIsNamed) {
  for (const bool goes_on : {false, true}) {
    std::vector<record::Event> events = true_record();
    if (goes_on) events.insert(events.begin() + 5, events.back());
    EXPECT_EQ(judge("chain", read_events(events)).verdict, Verdict::holds);
    std::string text = text_of(events);
    std::size_t begin = 0;  // of line 2, or of the first one behind an end that was not the last
    for (int line = 1; line < (goes_on ? 7 : 2); ++line) begin = text.find('\n', begin) + 1;
    text.insert(text.find(',', begin) + 1, " ");
    const Result result = judge("chain", tests::read_text(text));
    EXPECT_EQ(result.verdict, Verdict::contradicts);
    EXPECT_EQ(result.lines, std::vector<std::int64_t>{goes_on ? 7 : 2});
    const std::string cut = text_of(events);
    EXPECT_EQ(judge("chain", tests::read_text(cut.substr(0, cut.size() - 40))).verdict, Verdict::holds);
  }
}

RC_GTEST_PROP(IdentitiesSpec, EveryDamageToARecordContradictsOrIsRefused, ()) {
  std::istringstream text(text_of(true_record()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line + "\n");
  std::istringstream in(tests::damaged(lines));
  try {
    for (const RunRecord& record : read_logs(in, "damaged"))
      if (judge("chain", record).verdict == Verdict::contradicts) return;
    RC_LOG() << in.str().substr(in.str().size() > 700 ? in.str().size() - 700 : 0);
    RC_FAIL("not found");
  } catch (const UserError& error) {
    RC_ASSERT(error.code() == ExitCode::bad_data);
  }
}

/// A number of one line may be the wrong one though the next line's contradicts: no more than these two do.
TEST(IdentitiesSpec, OneWrongNumberContradictsNoFurtherThanTheNextLine) {
  for (const auto& [id, change] :
       {std::pair<const char*, void (*)(record::Step&)>{"executed_flops",
                                                        [](record::Step& s) { *s.executed_flops += 2; }},
        {"elapsed", [](record::Step& s) { *s.elapsed_seconds += 9; }},
        {"source_epochs", [](record::Step& s) { s.sources->at(0).epochs *= 2; }}}) {
    std::vector<record::Event> events = true_record();
    change(std::get<record::Step>(events[1]));
    const Result result = judge(id, read_events(events));
    EXPECT_EQ(result.lines, std::vector<std::int64_t>{3}) << id;
  }
}

TEST(IdentitiesSpec, WithoutClippingTheCoefficientIsOne) {
  std::vector<record::Event> events = true_record();
  std::get<record::RunStart>(events[0]).settings[0].second = 0.0;
  EXPECT_EQ(judge("clip_coefficient", read_events(events)).verdict, Verdict::contradicts);
  for (record::Event& event : events)
    if (auto* step = std::get_if<record::Step>(&event)) step->clip_coefficient = 1;
  EXPECT_EQ(judge("clip_coefficient", read_events(events)).verdict, Verdict::holds);
}

TEST(IdentitiesSpec, StepsOfDocumentsAndOfExpertsThatDropChoicesRunOtherProducts) {
  for (const auto& [setting, value] : {std::pair<const char*, Value>{"data.end_of_document", std::int64_t{0}},
                                       {"data.document_ends", std::string("on")},
                                       {"experts.capacity", 1.25}}) {
    std::vector<record::Event> events = true_record();
    auto& settings = std::get<record::RunStart>(events[0]).settings;
    settings.pop_back();
    settings.emplace_back(setting, value);
    *std::get<record::Step>(events[3]).executed_flops += 2;
    EXPECT_EQ(judge("executed_flops", read_events(events)).verdict, Verdict::cannot_be_judged) << setting;
  }
}

/// The tokens of a ramp's steps are its own, and steps that were skipped stand in no line: no mean of lines
/// is told as the run's.
TEST(IdentitiesSpec, OfABatchThatGrowsTheEndIsHeldToItsSteps) {
  std::vector<record::Event> events = true_record();
  auto& start = std::get<record::RunStart>(events[0]);
  start.batch = {
      .sequences = 8, .micro = 4, .accumulation = 2, .ranks = 1, .sequence_length = 128, .tokens = 1024};
  start.settings.emplace_back("batch.ramp", std::vector<std::string>{"4:3"});
  std::erase_if(
      events, [](const record::Event& event) { return std::holds_alternative<record::SkippedStep>(event); });
  std::get<record::RunEnd>(events.back()).run_goodput.reset();
  for (const char* id : {"ends", "goodput", "source_epochs"})
    EXPECT_EQ(judge(id, read_events(events)).verdict, Verdict::holds) << id;
  std::get<record::RunEnd>(events.back()).tokens_per_second *= 1.1;
  const RunRecord record = read_events(events);
  EXPECT_EQ(judge("ends", record).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("average_rate", record).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(judge("total_tokens", record).verdict, Verdict::cannot_be_judged);
}

}  // namespace
}  // namespace assay::spec::audit::identities_test
