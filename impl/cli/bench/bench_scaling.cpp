#include "impl/cli/bench/bench_scaling.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <set>
#include <sstream>

#include "impl/cli/bench/bench_print_scaling.hpp"
#include "impl/machine/output_folder.hpp"
#include "impl/report/scaling_picture.hpp"
#include "impl/report/write_report.hpp"
#include "spec/config/check.hpp"
#include "spec/config/division.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/record/read.hpp"
#include "spec/text/amount.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t skip = 3;  ///< first steps, which find algorithms and fill pools

struct Study {
  std::string recipe;
  std::vector<std::string> settings;
  std::vector<std::int64_t> ranks;
  bool strong = false;
  std::int64_t steps = 0;
  fs::path folder;
};

std::int64_t sequences_of(const Study& study, std::int64_t ranks) {
  const spec::RunConfig config = spec::load(study.recipe, study.settings);
  return study.strong ? config.sequences : config.sequences * spec::data_ranks(config, ranks);
}

/// One run of the study: on the first GPUs, or, by itself, on a GPU that others have, too.
struct Part {
  std::int64_t ranks = 0;
  std::string gpu{};        ///< as CUDA_VISIBLE_DEVICES takes it; empty: what is there
  std::int64_t number = 0;  ///< of the rank that has this GPU in the run of all
};

fs::path folder_of(const Study& study, const Part& part) {
  std::string name = "ranks-" + std::to_string(part.ranks);
  if (part.number > 0) name += "-gpu-" + std::to_string(part.number);
  return study.folder / name;
}

std::vector<std::string> settings_of(const Study& study, const Part& part) {
  std::vector<std::string> all = study.settings;
  // Nothing is sampled of files of tokens.
  if (spec::load(study.recipe, study.settings).data_paths.empty()) all.emplace_back("sample.sentences=0");
  for (const std::string& more :
       {"train.steps=" + std::to_string(study.steps),
        "batch.sequences=" + std::to_string(sequences_of(study, part.ranks)),
        // What is trained is of no use to anyone.
        std::string("checkpoint.every=0"), std::string("checkpoint.minutes=0"),
        std::string("checkpoint.at_end=off"), std::string("checkpoint.keep_best=off"),
        "log.every=" + std::to_string(study.steps), "run.directory=" + folder_of(study, part).string()})
    all.push_back(more);
  return all;
}

/// Judged for all numbers of ranks before any of them runs.
void check(const Study& study) {
  for (const std::int64_t ranks : study.ranks) {
    const spec::RunConfig config = spec::load(study.recipe, settings_of(study, {ranks}));
    const spec::ModelSpec model = spec::find_model_to_train(config.model, config.sequence_length).model;
    spec::check(config, model);
    spec::divide(config, model, {.all = ranks, .per_host = ranks});
    if (fs::exists(folder_of(study, {ranks}) / "run.jsonl"))
      throw UserError(ExitCode::usage, folder_of(study, {ranks}).string() +
                                           " already holds a run: give another --run, or remove it");
  }
}

void train(const Study& study, const Part& part, const std::string& program) {
  std::vector<std::string> command;
  if (!part.gpu.empty()) command = {"/usr/bin/env", "CUDA_VISIBLE_DEVICES=" + part.gpu};
  command.insert(command.end(), {program, "train", "--ranks", std::to_string(part.ranks)});
  if (!study.recipe.empty()) command.push_back(study.recipe);
  for (const std::string& setting : settings_of(study, part)) command.push_back(setting);
  constexpr double patience = 24 * 3600;  // [s]
  const Outcome outcome = run_program(command, patience);
  if (outcome.code != 0) {
    const std::string text = outcome.messages.substr(outcome.messages.size() -
                                                     std::min<std::size_t>(outcome.messages.size(), 2000));
    throw UserError(static_cast<ExitCode>(outcome.code), std::to_string(part.ranks) + " ranks did not train" +
                                                             (part.gpu.empty() ? "" : " on " + part.gpu) +
                                                             " (exit code " + std::to_string(outcome.code) +
                                                             "): " + text);
  }
}

/// All at the same time: of several GPUs none is cooler, or has more of the host, than when all work
/// together.
void train_together(const Study& study, const std::vector<Part>& parts, const std::string& program) {
  std::vector<std::future<void>> runs;
  runs.reserve(parts.size());
  for (const Part& part : parts)
    runs.push_back(std::async(std::launch::async, [&] { train(study, part, program); }));
  for (auto& run : runs) run.wait();
  for (auto& run : runs) run.get();
}

spec::record::Run record_of(const Study& study, const Part& part) {
  return spec::record::assemble(spec::record::read_events(folder_of(study, part).string()));
}

/// A rank by itself on every GPU of `all`, the run of most ranks; where that had no GPUs of one host, one
/// rank.
std::vector<Part> alone(const spec::record::Run& all) {
  std::vector<Part> parts;
  for (const auto& row : all.start.ranks) {
    if (!row.gpu || row.host != all.start.ranks.front().host) return {{.ranks = 1}};
    parts.push_back({.ranks = 1, .gpu = *row.gpu, .number = row.rank});
  }
  return parts;
}

/// Trains all runs of the study, that of most ranks first, which names the GPUs. Results in the order of
/// ranks.
std::vector<Part> train_all(const Study& study, const std::string& program, std::ostream& says) {
  std::vector<Part> done;
  for (auto ranks = study.ranks.rbegin(); ranks != study.ranks.rend(); ++ranks) {
    std::vector<Part> parts = {{.ranks = *ranks}};
    if (*ranks == 1 && !done.empty()) parts = alone(record_of(study, done.back()));
    says << "training on " << *ranks << (*ranks == 1 ? " rank" : " ranks")
         << (parts.size() > 1 ? ", each of " + std::to_string(parts.size()) + " GPUs by itself" : "")
         << std::endl;
    train_together(study, parts, program);
    done.insert(done.begin(), parts.begin(), parts.end());
  }
  return done;
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

/// In which a run computed: compute.dtype=auto was settled there.
Dtype dtype_of(const spec::record::Run& run) {
  spec::RunConfig config;
  for (const auto& [name, value] : run.start.settings)
    if (name == "compute.dtype") spec::find_key(name)->set(config, value);
  return config.dtype;
}

}  // namespace

std::vector<std::int64_t> ranks_list(const std::string& text) {
  std::set<std::int64_t> ranks;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto number = spec::whole_number(word);
    if (!number || *number < 1 || *number > 1'000'000)
      throw UserError(ExitCode::usage, "--ranks " + spec::quote(text) + ": numbers of ranks, as in 1,2,4");
    ranks.insert(*number);
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
  ScalingStudy found{.strong = study.strong, .steps = study.steps, .steps_left_out = skip};
  std::vector<spec::record::Run> runs;
  std::vector<std::string> folders;
  for (const Part& part : train_all(study, program, streams.err)) {
    folders.push_back(folder_of(study, part).string());
    const Outcome audit = run_program({program, "audit", folders.back()}, 600);
    if (audit.code != 0 && found.refused.empty()) found.refused = audit.output + audit.messages;
    runs.push_back(record_of(study, part));
  }
  found.rows = spec::metrics::scaling_table(runs, skip);
  if (study.strong) {
    const auto tokens = static_cast<double>(runs.front().steps.front().valid_tokens);
    found.differences = spec::metrics::step_differences(runs);
    found.most = spec::metrics::most_differences(dtype_of(runs.front()), tokens);
    found.agree = spec::metrics::agree(found.differences, found.most);
  }
  if (keeps) {
    replace_file(OutputFolder(study.folder), "scaling.json", scaling_json(found));
    const auto page = report::write_report(folders, (study.folder / "report.html").string(),
                                           report::scaling_picture(found.rows, study.strong));
    streams.err << "written: " << (study.folder / "scaling.json").string() << " and " << page.file.string()
                << "\n";
  }
  streams.out << (arguments.has("json") ? scaling_json(found) : scaling_text(found));
  return static_cast<int>(found.refused.empty() && found.agree ? ExitCode::done : ExitCode::contradiction);
}

}  // namespace assay::impl::cli
