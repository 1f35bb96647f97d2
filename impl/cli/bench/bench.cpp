#include <algorithm>
#include <filesystem>

#include "impl/cli/bench/bench_scaling.hpp"
#include "impl/cli/launch_ranks.hpp"
#include "impl/cli/program.hpp"
#include "impl/cli/verb.hpp"
#include "impl/data/data_files.hpp"
#include "spec/config/check.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/model/trainable.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

const std::vector<std::string>& subjects() {
  static const std::vector<std::string> all = {"ceilings", "ops", "step", "scaling"};
  return all;
}

/// What is measured: the first operand.
std::string subject_named(const Arguments& arguments) {
  std::string what = arguments.positional.empty() ? "" : arguments.positional[0];
  if (std::find(subjects().begin(), subjects().end(), what) != subjects().end()) return what;
  const auto guess = spec::nearest(what, subjects());
  throw UserError(ExitCode::usage,
                  "`assay bench` measures ceilings, ops, step or scaling" +
                      (what.empty() ? std::string("; name one")
                                    : ", not " + spec::quote(what) +
                                          (guess ? "; did you mean \"" + *guess + "\"?" : "")));
}

/// Options that belong to the other subjects are refused, not ignored.
void refuse_options(const Arguments& arguments, const std::vector<std::string>& foreign,
                    const std::string& what, const std::string& why) {
  for (const std::string& name : foreign)
    if (arguments.has(name))
      throw UserError(ExitCode::usage, "--" + name + " is no option of `assay bench " + what + "`: " + why);
}

constexpr const char* who_takes_ranks = "`assay bench ceilings` and `assay bench scaling` take it";

/// Ranks of the collectives; 0: one device is measured, unless a launcher has started several ranks.
std::int64_t ranks_of(const Arguments& arguments) {
  if (!arguments.has("ranks")) return 0;
  if (arguments.value("ranks", "").find(',') != std::string::npos)
    throw UserError(ExitCode::usage, "--ranks " + spec::quote(arguments.value("ranks", "")) +
                                         ": `assay bench ceilings` measures one number of ranks; `assay "
                                         "bench scaling` takes a list");
  const std::int64_t ranks = arguments.positive("ranks", 2);
  if (ranks == 1)
    throw UserError(ExitCode::usage,
                    "--ranks 1: a collective is between two ranks at least; without --ranks `assay bench "
                    "ceilings` measures one device");
  if (arguments.has("tune"))
    throw UserError(ExitCode::usage,
                    "--tune is no option of `assay bench ceilings --ranks`: GEMMs are tuned on one "
                    "device, and what was found is kept for all");
  return ranks;
}

}  // namespace

BenchPlan bench_plan(const Arguments& arguments) {
  BenchPlan plan;
  plan.what = subject_named(arguments);
  const std::vector<std::string> rest(arguments.positional.begin() + 1, arguments.positional.end());
  plan.repeats = arguments.positive("repeats", plan.what == "step" ? 3 : 20);
  plan.json = arguments.has("json");
  if (plan.what == "step") {
    refuse_options(arguments, {"model", "micro", "seq", "dtype", "device", "seconds", "tune"}, plan.what,
                   "the recipe says it, or a setting (assay help train)");
    refuse_options(arguments, {"ranks"}, plan.what, who_takes_ranks);
    const auto [recipe, settings] = recipe_and_settings(rest);
    plan.config = spec::load(recipe, settings);
    data::name_data_files(*plan.config);
    if (plan.config->tensor_ranks > 1)
      throw UserError(ExitCode::usage,
                      "parallel.tensor = " + std::to_string(plan.config->tensor_ranks) +
                          ": `assay bench step` measures one rank: add parallel.tensor=1, or measure all "
                          "ranks together by `assay bench scaling`");
    if (!plan.config->weights.empty())
      throw UserError(ExitCode::usage,
                      "model.weights = " + spec::quote(plan.config->weights) +
                          ": `assay bench step` measures with initial weights, which take the same time; "
                          "leave it out");
    if (plan.config->expert_ranks > 1)
      throw UserError(ExitCode::usage,
                      "parallel.expert = " + std::to_string(plan.config->expert_ranks) +
                          ": `assay bench step` measures one rank: add parallel.expert=1, or measure all "
                          "ranks together by `assay bench scaling`");
    plan.run_folder = arguments.value("run", "");
    spec::check(*plan.config,
                spec::find_model_to_train(plan.config->model, plan.config->sequence_length).model);
    return plan;
  }
  refuse_options(arguments, {"run"}, plan.what, "only a step goes into a run's report");
  if (plan.what == "ops") refuse_options(arguments, {"tune"}, plan.what, "`assay bench ceilings` tunes");
  if (plan.what == "ceilings")
    plan.ranks = ranks_of(arguments);
  else
    refuse_options(arguments, {"ranks"}, plan.what, who_takes_ranks);
  if (!rest.empty())
    throw UserError(ExitCode::usage, "`assay bench " + plan.what + "` takes no " + spec::quote(rest[0]) +
                                         "; a model is given as --model NAME");
  if (arguments.has("model")) {
    plan.model = spec::find_model(arguments.value("model", ""));
    spec::require_trainable(*plan.model);
  }
  if (arguments.has("micro")) plan.micro = arguments.positive("micro", 1);
  if (arguments.has("seq")) plan.tokens = arguments.positive("seq", 1);
  if (arguments.has("seconds")) plan.seconds = static_cast<double>(arguments.positive("seconds", 1));
  if (arguments.has("tune")) plan.tune_milliseconds = arguments.positive("tune", 1);
  const spec::RunConfig read = computing(arguments);
  if (arguments.has("dtype")) plan.dtype = read.dtype;
  plan.device = read.device;
  return plan;
}

int bench(const Arguments& arguments, Streams streams) {
  if (subject_named(arguments) == "scaling") {
    refuse_options(arguments, {"model", "micro", "seq", "dtype", "device", "seconds", "tune", "repeats"},
                   "scaling", "the recipe says it, or a setting (assay help train)");
    return bench_scaling(arguments, streams);
  }
  refuse_options(arguments, {"strong", "steps"}, subject_named(arguments), "`assay bench scaling` takes it");
  // What can be judged without tensors is judged here, at once: a measurement takes minutes.
  const BenchPlan plan = bench_plan(arguments);
  std::error_code unknown;
  if (!plan.run_folder.empty() && !std::filesystem::is_directory(plan.run_folder, unknown))
    throw UserError(ExitCode::io,
                    plan.run_folder + ": no folder; --run takes the folder of a run that exists");
  std::vector<std::string> words = {find_trainer(), "--bench"};
  for (const std::string& word : arguments.words())
    if (!word.starts_with("--ranks=")) words.push_back(word);  // the launcher's
  words.push_back("--");
  words.insert(words.end(), arguments.positional.begin(), arguments.positional.end());
  if (plan.ranks > 1) return launch_ranks({.here = plan.ranks, .all = plan.ranks}, words);
  become(words, thread_environment());
}

}  // namespace assay::impl::cli
