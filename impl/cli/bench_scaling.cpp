#include "impl/cli/bench_scaling.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "impl/report/write_report.hpp"
#include "spec/batch/batch.hpp"
#include "spec/config/check.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/metrics/scaling.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/record/read.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

namespace fs = std::filesystem;
using spec::json_number;
using spec::json_string;
using spec::metrics::ScalingRow;

constexpr std::int64_t skip = 3;  ///< first steps, which find algorithms and fill pools

struct Study {
  std::string recipe;
  std::vector<std::string> settings;
  std::vector<std::int64_t> ranks;
  bool strong = false;
  std::int64_t steps = 0;
  fs::path folder;
};

/// What the study found, beside its table.
struct Verdicts {
  std::string refused;  ///< output of the audit that found something
  spec::metrics::StepDifferences differences{}, most{};
  bool agree = true;
};

std::int64_t sequences_of(const Study& study, std::int64_t ranks) {
  const std::int64_t stated = spec::load(study.recipe, study.settings).sequences;
  return study.strong ? stated : stated * ranks;
}

fs::path folder_of(const Study& study, std::int64_t ranks) {
  return study.folder / ("ranks-" + std::to_string(ranks));
}

std::vector<std::string> settings_of(const Study& study, std::int64_t ranks) {
  std::vector<std::string> all = study.settings;
  // Nothing is sampled of files of tokens.
  if (spec::load(study.recipe, study.settings).data_paths.empty()) all.emplace_back("sample.sentences=0");
  for (const std::string& more :
       {"train.steps=" + std::to_string(study.steps),
        "batch.sequences=" + std::to_string(sequences_of(study, ranks)),
        "log.every=" + std::to_string(study.steps), "run.directory=" + folder_of(study, ranks).string()})
    all.push_back(more);
  return all;
}

/// Judged for all numbers of ranks before any of them runs.
void check(const Study& study) {
  for (const std::int64_t ranks : study.ranks) {
    const spec::RunConfig config = spec::load(study.recipe, settings_of(study, ranks));
    spec::check(config, spec::find_model(config.model));
    spec::batch_of(config.sequences, config.micro, ranks);
    spec::layout_of(config.data_parallel, ranks, config.shard_ranks, /*ranks_per_host=*/ranks);
    if (fs::exists(folder_of(study, ranks) / "run.jsonl"))
      throw UserError(ExitCode::usage, folder_of(study, ranks).string() +
                                           " already holds a run: give another --run, or remove it");
  }
}

void train_on(const Study& study, std::int64_t ranks, const std::string& program) {
  std::vector<std::string> command = {program, "train", "--ranks", std::to_string(ranks)};
  if (!study.recipe.empty()) command.push_back(study.recipe);
  for (const std::string& setting : settings_of(study, ranks)) command.push_back(setting);
  constexpr double patience = 24 * 3600;  // [s]
  const Outcome outcome = run_program(command, patience);
  if (outcome.code != 0) {
    const std::string text = outcome.messages.substr(outcome.messages.size() -
                                                     std::min<std::size_t>(outcome.messages.size(), 2000));
    throw UserError(static_cast<ExitCode>(outcome.code), std::to_string(ranks) +
                                                             " ranks did not train (exit code " +
                                                             std::to_string(outcome.code) + "): " + text);
  }
  std::error_code error;  // what was trained is of no use to anyone
  fs::remove_all(folder_of(study, ranks) / "checkpoints", error);
}

std::string table(const Study& study, const std::vector<ScalingRow>& rows, const Verdicts& verdicts) {
  std::ostringstream out;
  char line[256];
  out << (study.strong ? "strong scaling: the same step on more ranks\n"
                       : "weak scaling: the same sequences for every rank\n");
  std::snprintf(line, sizeof line, "%5s %5s %-9s %9s %4s %10s %13s %13s %10s %8s %8s %8s %8s %8s\n", "ranks",
                "hosts", "layout", "sequences", "acc", "s/step", "tokens/s", "of a rank", "efficiency", "MFU",
                "exposed", "waiting", "compute", "fixed");
  out << line;
  for (const ScalingRow& row : rows) {
    char mfu[16] = "-";
    if (row.mfu) std::snprintf(mfu, sizeof mfu, "%.2f %%", 100 * *row.mfu);
    std::snprintf(line, sizeof line,
                  "%5lld %5lld %-9s %9lld %4lld %10.4g %13.1f %13.1f %8.2f %% %8s %6.2f %% %6.2f %% %6.2f %% "
                  "%6.2f %%\n",
                  static_cast<long long>(row.ranks), static_cast<long long>(row.hosts), row.layout.c_str(),
                  static_cast<long long>(row.sequences), static_cast<long long>(row.accumulation),
                  row.step_seconds, row.tokens_per_second, row.tokens_per_second_of_rank,
                  100 * row.efficiency, mfu, 100 * row.exposed, 100 * row.lost_waiting,
                  100 * row.lost_compute, 100 * row.lost_fixed);
    out << line;
  }
  out << "efficiency: tokens/s of a rank against the first line's; what is lost: waiting + compute + fixed\n";
  if (study.strong) {
    const auto& found = verdicts.differences;
    char most[32] = " (nothing bounds them)";
    if (std::isfinite(verdicts.most.later_loss))
      std::snprintf(most, sizeof most, " of %.2g", verdicts.most.later_loss);
    std::snprintf(
        line, sizeof line,
        "the same steps: first loss differs by %.2g of %.2g, its gradient's norm by %.2g of %.2g, later "
        "losses by %.2g%s: ",
        found.first_loss, verdicts.most.first_loss, found.first_gradient_norm,
        verdicts.most.first_gradient_norm, found.later_loss, most);
    out << line << (verdicts.agree ? "roundings" : "MORE THAN ROUNDINGS (spec/metrics/scaling.md, C2)")
        << "\n";
  }
  out << (verdicts.refused.empty() ? "assay audit accepts every record\n" : verdicts.refused);
  return out.str();
}

std::string row_json(const ScalingRow& row) {
  const auto field = [](const char* name, double value) {
    return std::string(",\"") + name + "\":" + json_number(value);
  };
  std::string out =
      "{\"ranks\":" + std::to_string(row.ranks) + ",\"hosts\":" + std::to_string(row.hosts) +
      ",\"layout\":" + json_string(row.layout) + ",\"sequences\":" + std::to_string(row.sequences) +
      ",\"accumulation\":" + std::to_string(row.accumulation) + field("step_seconds", row.step_seconds) +
      field("tokens_per_second", row.tokens_per_second) +
      field("tokens_per_second_of_rank", row.tokens_per_second_of_rank) + field("efficiency", row.efficiency);
  if (row.mfu) out += field("mfu", *row.mfu);
  return out + field("exposed", row.exposed) + field("lost_waiting", row.lost_waiting) +
         field("lost_compute", row.lost_compute) + field("lost_fixed", row.lost_fixed) + "}";
}

std::string json(const Study& study, const std::vector<ScalingRow>& rows, const Verdicts& verdicts) {
  std::string out = "{\"schema\":\"assay.bench.scaling/1\",\"scaling\":";
  out += study.strong ? "\"strong\"" : "\"weak\"";
  out += ",\"steps\":" + std::to_string(study.steps) + ",\"steps_left_out\":" + std::to_string(skip);
  std::string lines;
  for (const ScalingRow& row : rows) lines += (lines.empty() ? "\n" : ",\n") + row_json(row);
  out += ",\"rows\":[" + lines + "]";
  if (study.strong)
    out += ",\"first_loss_difference\":" + json_number(verdicts.differences.first_loss) +
           ",\"first_gradient_norm_difference\":" + json_number(verdicts.differences.first_gradient_norm) +
           ",\"loss_difference\":" + json_number(verdicts.differences.later_loss) +
           ",\"same_steps\":" + (verdicts.agree ? "true" : "false");
  return out + ",\"audit_accepts\":" + (verdicts.refused.empty() ? "true" : "false") + "}\n";
}

Study study_of(const Arguments& arguments) {
  Study study;
  const std::vector<std::string> rest(arguments.positional.begin() + 1, arguments.positional.end());
  std::tie(study.recipe, study.settings) = recipe_and_settings(rest);
  study.ranks = ranks_list(arguments.value("ranks", "1,2"));
  study.strong = arguments.has("strong");
  study.steps = arguments.positive("steps", 12);
  if (study.steps <= skip)
    throw UserError(ExitCode::usage, "--steps " + std::to_string(study.steps) + ": the first " +
                                         std::to_string(skip) + " do not count; give more");
  if (study.strong && study.ranks.size() < 2)
    throw UserError(ExitCode::usage,
                    "--strong compares the same step on several numbers of ranks, and --ranks " +
                        std::to_string(study.ranks.front()) + " is one; give for example --ranks 1,2");
  study.folder = arguments.value("run", "");
  return study;
}

/// A folder that goes with its study, where none was asked for.
struct Borrowed {
  explicit Borrowed(Study& study) {
    if (!study.folder.empty()) return;
    std::string name = (fs::temp_directory_path() / "assay-scaling-XXXXXX").string();
    if (!mkdtemp(name.data())) throw UserError(ExitCode::io, "cannot create a folder like " + name);
    study.folder = folder = name;
  }
  ~Borrowed() {
    std::error_code error;
    if (!folder.empty()) fs::remove_all(folder, error);
  }
  fs::path folder;
};

}  // namespace

std::vector<std::int64_t> ranks_list(const std::string& text) {
  std::set<std::int64_t> ranks;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const bool digits = !word.empty() && word.size() < 7 && word.find_first_not_of("0123456789") == word.npos;
    if (!digits || std::stoll(word) < 1)
      throw UserError(ExitCode::usage, "--ranks " + spec::quote(text) + ": numbers of ranks, as in 1,2,4");
    ranks.insert(std::stoll(word));
  }
  if (ranks.empty()) throw UserError(ExitCode::usage, "--ranks is empty: give numbers of ranks, as in 1,2,4");
  return {ranks.begin(), ranks.end()};
}

int bench_scaling(const Arguments& arguments, Streams streams) {
  Study study = study_of(arguments);
  const bool keeps = !study.folder.empty();
  const Borrowed borrowed(study);
  check(study);
  find_trainer();
  const std::string program = beside_this_program("assay");
  std::vector<spec::record::Run> runs;
  std::vector<std::string> folders;
  Verdicts verdicts;
  for (const std::int64_t ranks : study.ranks) {
    streams.err << "training on " << ranks << (ranks == 1 ? " rank" : " ranks") << std::endl;
    train_on(study, ranks, program);
    folders.push_back(folder_of(study, ranks).string());
    const Outcome audit = run_program({program, "audit", folders.back()}, 600);
    if (audit.code != 0 && verdicts.refused.empty()) verdicts.refused = audit.output + audit.messages;
    runs.push_back(spec::record::assemble(spec::record::read_events(folders.back())));
  }
  const std::vector<ScalingRow> rows = spec::metrics::scaling_table(runs, skip);
  if (study.strong) {
    const auto tokens = static_cast<double>(runs.front().steps.front().valid_tokens);
    verdicts.differences = spec::metrics::step_differences(runs);
    verdicts.most = spec::metrics::most_differences(spec::load(study.recipe, study.settings).dtype, tokens);
    verdicts.agree = spec::metrics::agree(verdicts.differences, verdicts.most);
  }
  if (keeps) {
    std::ofstream(study.folder / "scaling.json") << json(study, rows, verdicts);
    const auto page = report::write_report(folders, (study.folder / "report.html").string());
    streams.err << "written: " << (study.folder / "scaling.json").string() << " and " << page.file.string()
                << "\n";
  }
  streams.out << (arguments.has("json") ? json(study, rows, verdicts) : table(study, rows, verdicts));
  return static_cast<int>(verdicts.refused.empty() && verdicts.agree ? ExitCode::done
                                                                     : ExitCode::contradiction);
}

}  // namespace assay::impl::cli
