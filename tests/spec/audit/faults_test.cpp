// labels: property slow
// 300 truthful logs of every trainer hold no contradiction; every fault put into 40 logs is found and named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/audit/relations.hpp"
#include "tests/support/audit_faults.hpp"
#include "tests/support/audit_floors.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::audit::faults_test {
namespace {

using tests::Fault;
using tests::LogFormat;
using tests::SimulatedRun;

constexpr int draws_of_a_fault = 40;
constexpr std::uint64_t truthful_seeds = 300, first_seed = 5000;

RunRecord record_of(const SimulatedRun& run, const std::string& text, const std::string& also_set = "") {
  const tests::ReadArguments arguments = read_arguments(run);
  ReadOptions options;
  options.map = arguments.map;
  // What is stated beside them replaces the run's own arguments: nothing may be given twice.
  std::istringstream own(arguments.set);
  options.set = also_set;
  for (std::string part; std::getline(own, part, ',');)
    if (("," + also_set).find("," + part.substr(0, part.find('=') + 1)) == std::string::npos)
      options.set += (options.set.empty() ? "" : ",") + part;
  std::istringstream in(text);
  return read_log(in, std::string(to_string(run.format)), options);
}

TEST(AuditFaultsSpec, TruthfulLogsOfEveryTrainerAreConsistent) {
  for (std::size_t format = 0; format < tests::log_formats; ++format)
    for (std::uint64_t seed = 0; seed < truthful_seeds; ++seed) {
      const SimulatedRun run = tests::simulate(static_cast<LogFormat>(format), seed);
      const RunRecord record = record_of(run, render(run));
      ASSERT_TRUE(consistent(record)) << to_string(run.format) << ", seed " << seed << "\n"
                                      << contradictions(record);
    }
}

/// Of few logged steps, slower than the others for being logged, printed to few digits: a truthful clock,
/// total and mean contradict nothing; those of a clock that is a fifth too slow do, where times are printed
/// well.
TEST(AuditFaultsSpec, TruthfulLogsOfFewStepsAreConsistent) {
  int well = 0, told = 0;
  for (std::uint64_t seed = 0; seed < 2 * truthful_seeds; ++seed) {
    SimulatedRun run = tests::simulate(LogFormat::csv, seed, 400);
    log_seldom(run, seed);
    double seconds = 0;
    for (const tests::SimulatedStep& step : run.steps) seconds += step.seconds;
    const auto log = [&](double clock) {
      tests::Report report = tests::report(run);
      for (tests::ReportedStep& step : report.steps) *step[Field::elapsed] *= clock;
      char stated[100];
      std::snprintf(stated, sizeof stated, "total_seconds=%.6g,average_seconds=%.6g", seconds * clock,
                    seconds * clock / 400);
      return record_of(run, render(run, report), stated);
    };
    const RunRecord record = log(1);
    ASSERT_TRUE(consistent(record)) << "seed " << seed << "\n" << contradictions(record);
    EXPECT_EQ(judge("wall_clock", record).verdict, Verdict::holds) << "seed " << seed;
    if (run.digits_of_time < 3 || run.log_every < 5 || seconds < 40) continue;
    ++well;
    for (const char* id : {"wall_clock", "total_seconds", "average_seconds"})
      told += judge(id, log(0.8)).verdict == Verdict::contradicts;
  }
  EXPECT_GT(well, 100);
  EXPECT_GT(told, 2 * well);
}

/// Of a long log's rounded rates every 128th fits several schedules; the one that was meant has to be found.
TEST(AuditFaultsSpec, ALongTruthfulLogIsConsistent) {
  SimulatedRun run = tests::simulate(tests::LogFormat::kempnerforge, 11, 72'994);
  run.log_every = 1;
  const RunRecord record = record_of(run, render(run));
  EXPECT_LT(record.steps.size(), 72'994u);
  EXPECT_TRUE(consistent(record)) << contradictions(record);
}

/// The formats whose lines each stand for themselves, so that a log without some of them is still a log.
bool is_of_lines(LogFormat format) {
  return format != LogFormat::llm_tii_json && format != LogFormat::llmq_json &&
         format != LogFormat::hugging_face && format != LogFormat::csv && format != LogFormat::json_lines &&
         format != LogFormat::assay;
}

/// The log without the lines that `drop` takes.
template <class Drop>
std::string without(const std::string& log, Drop drop) {
  std::istringstream in(log);
  std::string out;
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);)
    if (!drop(line, ++number)) out += line + "\n";
  return out;
}

/// What nanoGPT's header says, to as many digits as it prints.
std::string nanogpt_facts(const SimulatedRun& run) {
  char text[200];
  std::snprintf(text, sizeof text, ",parameters=%.2fM,layers=%lld,width=%lld,heads=%lld",
                run.parameters / 1e6, static_cast<long long>(run.model.layers),
                static_cast<long long>(run.model.width), static_cast<long long>(run.model.heads));
  return text;
}

/// A truthful log stays one when what stands before its steps is lost, in part or whole, and when the reader
/// states the facts that were lost.
TEST(AuditFaultsSpec, TruthfulLogsWithoutTheirHeadersAreConsistent) {
  int judged = 0;
  for (std::size_t format = 0; format < tests::log_formats; ++format) {
    if (!is_of_lines(static_cast<LogFormat>(format))) continue;
    for (std::uint64_t seed = 0; seed < truthful_seeds; ++seed) {
      const SimulatedRun run = tests::simulate(static_cast<LogFormat>(format), seed);
      const std::string log = render(run);
      const std::int64_t first = record_of(run, log).steps.front().line;
      const auto header = [&](const std::string&, std::int64_t number) { return number < first; };
      const auto peak = [&](const std::string& line, std::int64_t number) {
        return number < first &&
               (line.find("eak") != std::string::npos || line.find("Detected GPU") != std::string::npos);
      };
      const auto one = [&](const std::string&, std::int64_t number) {
        return number < first && number == 1 + static_cast<std::int64_t>(seed) % first;
      };
      std::string facts = "gpu=" + run.gpu + ",gpus=" + std::to_string(run.gpus) +
                          ",sequence_length=" + std::to_string(run.sequence_length);
      if (!run.gpt2 && run.model == find_model(run.model.name)) facts += ",model=" + run.model.name;
      if (run.format == LogFormat::nanogpt) facts += nanogpt_facts(run);
      // Some formats hold no facts, and their reader states them all.
      const bool lost = read_arguments(run).set.empty() || run.format == LogFormat::nanogpt;
      for (const auto& [what, record] :
           {std::pair("without its header", record_of(run, without(log, header))),
            std::pair("without its peak", record_of(run, without(log, peak))),
            std::pair("without one line", record_of(run, without(log, one))),
            std::pair("with its facts stated", record_of(run, without(log, header), lost ? facts : ""))}) {
        ASSERT_TRUE(consistent(record)) << to_string(run.format) << ", seed " << seed << ", " << what << "\n"
                                        << contradictions(record);
        if (usable(record.steps.back()[Field::mfu]))
          judged += judge("mfu", record).verdict == Verdict::holds ||
                    judge("mfu_of_flops_rate", record).verdict == Verdict::holds ||
                    judge("mfu_of_batch", record).verdict == Verdict::holds;
      }
    }
  }
  EXPECT_GT(judged, 1000);  // against the data sheet's peaks, not for want of one
}

/// Logs that are cut off the beginning, and programs that start again from a checkpoint: between two logged
/// steps, so that the first one may be any of the new start.
TEST(AuditFaultsSpec, TruthfulLogsThatBeginInTheMiddleOrAnewAreConsistent) {
  int later = 0;
  for (std::size_t format = 0; format < tests::log_formats; ++format)
    for (std::uint64_t seed = 0; is_of_lines(static_cast<LogFormat>(format)) && seed < truthful_seeds;
         ++seed) {
      SimulatedRun run = tests::simulate(static_cast<LogFormat>(format), seed);
      const std::string log = render(run);
      const RunRecord whole = record_of(run, log);
      if (whole.steps.size() < 4) continue;
      const std::int64_t begin = whole.steps[1 + seed % (whole.steps.size() - 2)].line;
      const std::int64_t first = whole.steps.front().line;
      const RunRecord tail = record_of(run, without(log, [&](const std::string&, std::int64_t number) {
                                         return number < begin && (seed % 2 == 0 || number >= first);
                                       }));
      ASSERT_TRUE(consistent(tail)) << to_string(run.format) << ", seed " << seed << "\n"
                                    << contradictions(tail);
      if (run.format != LogFormat::nanogpt) continue;
      run.resumed_at = 1 + static_cast<std::int64_t>(seed % (run.steps.size() - 1));
      const RunRecord resumed = record_of(run, render(run));
      ASSERT_TRUE(consistent(resumed)) << "resumed at " << run.resumed_at << ", seed " << seed << "\n"
                                       << contradictions(resumed);
      const std::int64_t to_line = (run.log_every - run.resumed_at % run.log_every) % run.log_every;
      later += to_line >= 5;
    }
  EXPECT_GT(later, 20);
}

/// What the audit names first: the first change of its best reading, or the cause of what contradicts on its
/// own.
std::string named_first(const Audit& audit) {
  if (!audit.contradicts) return "nothing";
  for (const Change& change : audit.readings.front().changes) return change.id;
  for (const Result& result : audit.results)
    if (result.verdict == Verdict::contradicts && !result.causes.empty()) return result.causes.front().id;
  return "no cause";
}

/// Whether the fault is named first, or told as what explains the log as well.
bool told(const Audit& audit, const Fault& fault) {
  const auto is = [&](const std::string& id) { return id == fault.id || fault.also.contains(id); };
  if (is(named_first(audit))) return true;
  for (const Reading& reading : audit.readings)
    for (const Change& change : reading.changes)
      if (equally(audit.readings.front(), reading) &&
          (is(change.id) || std::any_of(change.alternative_ids.begin(), change.alternative_ids.end(), is)))
        return audit.contradicts;
  return false;
}

struct Row {
  int draws = 0, detected = 0, right = 0, told = 0;
  std::map<std::string, int> named;
  std::map<std::string, int> twins;         ///< not drawn: the numbers are those of another fault too
  std::map<std::string, int> contradicted;  ///< draws in which, by invariant
};

void take(const Fault& fault, const SimulatedRun& run, const std::string& log, Row& row) {
  ++row.draws;
  const RunRecord record = record_of(run, log);
  const Audit one = audit(record);
  const std::string name = named_first(one);
  ++row.named[name];
  row.detected += one.contradicts;
  for (const Result& result : one.results)
    if (result.verdict == Verdict::contradicts) ++row.contradicted[result.id];
  for (const Reading& reading : one.readings)
    for (const auto& mfu : {reading.corrected.mfu_exact, reading.corrected.mfu_palm_total})
      EXPECT_TRUE(!mfu || mfu->high <= 1) << fault.id << " in " << to_string(run.format);
  row.right += name == fault.id || fault.also.contains(name);
  row.told += told(one, fault);
}

/// Puts the fault into `draws` logs of `formats` in turn; fewer when it does not show in `seeds` runs.
Row draw(const Fault& fault, const std::vector<LogFormat>& formats, int draws, std::uint64_t seeds) {
  Row row;
  for (std::uint64_t seed = 0; row.draws < draws && seed < seeds; ++seed) {
    const SimulatedRun truth = tests::simulate(formats[seed % formats.size()], first_seed + seed);
    SimulatedRun run = truth;
    const auto faulty = fault.inject(run, seed);
    if (!faulty) continue;
    const auto twin = std::find_if(fault.twins.begin(), fault.twins.end(),
                                   [&](const tests::Twin& t) { return t.same(truth, seed); });
    if (twin != fault.twins.end()) {
      ++row.twins[twin->text];
      continue;
    }
    const std::string log = render(run, *faulty);
    if (log != render(truth)) take(fault, run, log, row);
  }
  return row;
}

Row draw(const Fault& fault) { return draw(fault, fault.formats, draws_of_a_fault, 20 * draws_of_a_fault); }

/// What was named instead of the fault: "`peak_sparse` 1".
std::string others(const Fault& fault, const Row& row) {
  std::string out;
  for (const auto& [name, count] : row.named)
    if (name != fault.id)
      out += (out.empty() ? "" : ", ") + (name.find(' ') == std::string::npos ? "`" + name + "`" : name) +
             " " + std::to_string(count);
  return out;
}

std::string share(int part, int of) { return std::to_string(part) + "/" + std::to_string(of); }

/// Draws that were left out, by fault.
std::string twin_table(const std::vector<std::pair<const Fault*, Row>>& rows) {
  std::ostringstream out;
  out << "\n## Draws left out\n\n"
         "No log can tell two faults apart that give the same numbers. Such draws were passed over; where a "
         "run cannot show\nthe fault at all (one GPU, one pass, a short log) there was nothing to draw.\n\n"
         "| fault | the same numbers as | draws left out |\n|---|---|---|\n";
  for (const auto& [fault, row] : rows)
    for (const tests::Twin& twin : fault->twins) {
      const auto count = row.twins.find(twin.text);
      out << "| `" << fault->id << "` (" << fault->text << ") | " << twin.text << " | "
          << (count == row.twins.end() ? 0 : count->second) << " |\n";
    }
  return out.str();
}

/// Of many rows.
struct Sum {
  int rows = 0, draws = 0, detected = 0, right = 0, told = 0;
  void add(const Row& row) {
    ++rows;
    draws += row.draws, detected += row.detected, right += row.right, told += row.told;
  }
};

constexpr int draws_elsewhere = 12;
constexpr std::uint64_t seeds_elsewhere = 60;

/// A fault in a format other than those that it is scored in.
struct Elsewhere {
  const Fault* fault;
  LogFormat format;
  Row row;
};
const std::vector<Elsewhere>& elsewhere() {
  static const std::vector<Elsewhere> all = [] {
    std::vector<Elsewhere> out;
    for (const Fault& fault : tests::faults())
      for (std::size_t i = 0; i < tests::log_formats; ++i) {
        const auto format = static_cast<LogFormat>(i);
        if (std::count(fault.formats.begin(), fault.formats.end(), format) > 0) continue;
        Row row = draw(fault, {format}, draws_elsewhere, seeds_elsewhere);
        if (row.draws > 0) out.push_back({&fault, format, std::move(row)});
      }
    return out;
  }();
  return all;
}

/// The same faults in the logs of every other trainer that prints what they touch.
std::string other_trainers(Sum& sum) {
  std::ostringstream out;
  out << "\n## The same faults in other trainers' logs\n\n"
         "The formats above were chosen for each fault. Here it is put into every other\nformat in which it "
         "changes the text, "
      << draws_elsewhere << " draws where " << seeds_elsewhere
      << " runs give as many. \"Nothing\" is the right answer where the log\nholds no second number: an "
         "MFU without a peak or a model, a learning rate without its schedule (Hugging Face, CSV,\nJSON "
         "lines), a time that nothing else rests on, a low first loss where weights may be a "
         "checkpoint's.\nAnother name is another fault with the same numbers there, or a miss. \"Told\" "
         "counts "
         "the draws in which the fault is\nnamed first, or as one of the readings that explain the log "
         "equally.\n\n"
         "| fault | trainer | detected | right first | told | named first instead "
         "|\n|---|---|---|---|---|---|\n";
  for (const auto& [fault, format, row] : elsewhere()) {
    sum.add(row);
    out << "| `" << fault->id << "` (" << fault->text << ") | " << to_string(format) << " | "
        << share(row.detected, row.draws) << " | " << share(row.right, row.draws) << " | "
        << share(row.told, row.draws) << " | " << others(*fault, row) << " |\n";
  }
  return out.str();
}

std::string page(const std::vector<std::pair<const Fault*, Row>>& rows) {
  std::ostringstream out;
  Sum scored, elsewhere;
  for (const auto& [fault, row] : rows) scored.add(row);
  const std::string others_table = other_trainers(elsewhere);
  out << "# Faults put into logs, and what `assay audit` names\n\n"
         "Generated by `ASSAY_REGENERATE=1 spec_tests --file=tests/spec/audit/faults_test.cpp`. Each fault "
         "is put into "
      << draws_of_a_fault << " logs of\nsimulated runs (tests/support/simulated_run.hpp, seeds from "
      << first_seed
      << ", the trainers in turn) before they are rendered as text and read\nback. Detected: some invariant "
         "contradicts. "
         "Right: the first cause named is the fault, or a name for the same numbers.\n\n"
      << "In the formats named beside each fault, chosen among those whose logs tell it from others: "
      << rows.size() << " faults, " << scored.draws << " logs: " << scored.detected << " detected, "
      << scored.right
      << " with the right cause\nfirst. In every other format where the fault changes the text ("
      << elsewhere.rows << " pairs of fault and format, the last table): " << elsewhere.draws
      << " logs: " << elsewhere.detected << " detected,\n"
      << elsewhere.right << " with the right cause first, " << elsewhere.told
      << " with it first or among equals. Of all that are detected, "
      << share(scored.right + elsewhere.right, scored.detected + elsewhere.detected)
      << " have the right cause\nfirst. " << truthful_seeds << " truthful logs of each of "
      << tests::log_formats
      << " formats, and those of lines without their headers,\nwithout their peaks, without one line: none "
         "contradicts.\n\n"
         "| fault | what was done | trainers | detected | right first | named instead "
         "|\n|---|---|---|---|---|---|\n";
  for (const auto& [fault, row] : rows) {
    out << "| `" << fault->id << "` | " << fault->text << " | ";
    for (std::size_t i = 0; i < fault->formats.size(); ++i)
      out << (i ? ", " : "") << to_string(fault->formats[i]);
    out << " | " << share(row.detected, row.draws) << " | " << share(row.right, row.draws) << " | "
        << others(*fault, row) << " |\n";
  }
  out << twin_table(rows) << others_table;
  return out.str();
}

/// The faults in the formats that they are scored in.
const std::vector<std::pair<const Fault*, Row>>& scored() {
  static const std::vector<std::pair<const Fault*, Row>> all = [] {
    std::vector<std::pair<const Fault*, Row>> out;
    for (const Fault& fault : tests::faults()) out.emplace_back(&fault, draw(fault));
    return out;
  }();
  return all;
}

TEST(AuditFaultsSpec, EveryFaultIsFoundAndNamed) {
  int draws = 0, detected = 0, right = 0;
  for (const auto& [fault, row] : scored()) {
    EXPECT_EQ(row.draws, draws_of_a_fault) << fault->id << ": " << fault->text;
    EXPECT_GE(row.detected, 0.99 * row.draws) << fault->id << ": " << fault->text;
    EXPECT_GE(row.right, 0.95 * row.draws) << fault->id << ": " << fault->text;
    draws += row.draws, detected += row.detected, right += row.right;
  }
  EXPECT_GE(scored().size(), 25u);
  EXPECT_GE(detected, 0.99 * draws);
  EXPECT_GE(right, 0.95 * draws);
  const std::string text = page(scored()),
                    path = tests::source_dir() + "/docs/measurements/audit-confusion.md";
  if (std::getenv("ASSAY_REGENERATE") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ostringstream there;
  there << std::ifstream(path).rdbuf();
  EXPECT_TRUE(there.str() == text) << path << " is not what is measured: see its first lines";
}

/// Invariants that no fault contradicts in half of its draws: these need some draw of some fault only.
const std::map<std::string, const char*>& seldom_contradicted() {
  static constexpr const char *in_turn =
                                  "its fault is put into several formats in turn, of which few print it",
                              *elsewhere_alone = "contradicted in other trainers' logs alone";
  static const std::map<std::string, const char*> all = {
      {"scaling", "of several logs (compare_runs): of no fault here"},
      {"mfu_of_batch", in_turn},
      {"sequences_total", in_turn},
      {"step_tokens", in_turn},
      {"flops_rate_of_batch", in_turn},
      {"total_seconds", in_turn},
      {"ranks", elsewhere_alone},
      {"parameters_nonembedding", elsewhere_alone},
      {"wall_clock", elsewhere_alone},
      {"line_clock", elsewhere_alone},
  };
  return all;
}

/// So that no invariant stands without a fault that it finds, not by chance or as a side effect: in half of
/// the draws of some fault, in the formats that are named beside it.
TEST(AuditFaultsSpec, EveryInvariantIsContradictedByAFault) {
  std::map<std::string, std::string> by;
  std::map<std::string, double> most;
  std::set<std::string> any = {"scaling"};
  for (const auto& [fault, row] : scored())
    for (const auto& [id, draws] : row.contradicted) {
      any.insert(id);
      if (const double share = static_cast<double>(draws) / row.draws; share > most[id])
        most[id] = share, by[id] = fault->id + " (" + fault->text + ")";
    }
  for (const auto& [fault, format, row] : elsewhere())
    for (const auto& [id, draws] : row.contradicted) any.insert(id);
  std::size_t listed = 0;
  for (const Invariant& invariant : invariants()) {
    const std::string id(invariant.id);
    EXPECT_TRUE(any.contains(id)) << id;
    const bool seldom = seldom_contradicted().contains(id);
    listed += seldom;
    // One that is found oftener leaves the list.
    EXPECT_EQ(most[id] < 0.5, seldom) << id << ": " << most[id] << " of the draws of " << by[id];
  }
  EXPECT_EQ(listed, seldom_contradicted().size());
}

/// Where the log does not tell, the reason is listed; every other pair is held to nine draws of ten.
TEST(AuditFaultsSpec, EveryPairOfFaultAndFormatKeepsItsFloor) {
  std::size_t used = 0;
  for (const auto& [fault, format, row] : elsewhere()) {
    const auto floor = std::find_if(tests::floors().begin(), tests::floors().end(),
                                    [&, f = fault, t = format](const tests::Floor& one) {
                                      return one.fault == f->id && one.what == f->text && one.format == t;
                                    });
    const bool listed = floor != tests::floors().end();
    used += listed;
    const double share = 0.9 * row.draws;
    EXPECT_GE(row.detected, listed ? floor->detected : share)
        << fault->id << " (" << fault->text << ") in " << to_string(format);
    EXPECT_GE(row.right, listed ? floor->right : share)
        << fault->id << " (" << fault->text << ") in " << to_string(format);
    EXPECT_GE(row.told, listed ? floor->told : share)
        << fault->id << " (" << fault->text << ") in " << to_string(format);
  }
  EXPECT_EQ(used, tests::floors().size());  // none of a pair that is not drawn
}

}  // namespace
}  // namespace assay::spec::audit::faults_test
