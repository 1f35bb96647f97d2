#pragma once
// The verbs of `assay`: one table behind dispatch, help and shell completion.
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "impl/cli/arguments.hpp"
#include "spec/config/run_config.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::cli {

/// The two streams of a verb: results and messages.
struct Streams {
  std::ostream& out;
  std::ostream& err;
};

/// Runs a verb. Returns the exit code. Errors: UserError, SpecError, mapped by `run`.
using Action = int (*)(const Arguments& arguments, Streams streams);

struct Verb {
  std::string name;
  std::string operands;               ///< "MODEL", "[RECIPE.toml] [key=value ...]"
  std::string summary;                ///< one line
  std::vector<std::string> examples;  ///< command lines
  std::vector<Option> options;        ///< --help is added to every verb
  Action action;
};

/// All verbs in the order of the help.
const std::vector<Verb>& verbs();

// One file each: train.cpp, flops.cpp, ...
int train(const Arguments& arguments, Streams streams);
int resume(const Arguments& arguments, Streams streams);
int flops(const Arguments& arguments, Streams streams);
int bench(const Arguments& arguments, Streams streams);
int generate(const Arguments& arguments, Streams streams);
int audit(const Arguments& arguments, Streams streams);
int report(const Arguments& arguments, Streams streams);
int claims(const Arguments& arguments, Streams streams);
int checkpoint(const Arguments& arguments, Streams streams);
int data(const Arguments& arguments, Streams streams);
int doctor(const Arguments& arguments, Streams streams);
int config(const Arguments& arguments, Streams streams);
int completion(const Arguments& arguments, Streams streams);
int version(const Arguments& arguments, Streams streams);
int help(const Arguments& arguments, Streams streams);

/// Replaces an older --junit report of `audit` where its command line is refused; `clear` is what of it can
/// be read.
void audit_refused(const Arguments& clear, const std::string& why, Streams streams);

/// "0.1.0".
std::string program_version();

/// Operands of `train`: the recipe (the one word without "=", empty when there is none) and the settings.
/// Errors: UserError(usage) for two recipes.
std::pair<std::string, std::vector<std::string>> recipe_and_settings(const std::vector<std::string>& words);

/// What `assay bench` was asked to measure. Empty: the measuring program chooses, by the device.
struct BenchPlan {
  std::string what;  ///< "ceilings", "ops" or "step"
  std::optional<spec::ModelSpec> model;
  std::optional<std::int64_t> micro, tokens, tune_milliseconds;
  std::optional<Dtype> dtype;
  spec::Device device = spec::Device::automatic;
  std::int64_t ranks = 0;  ///< that are started for collectives; 0: those that a launcher has started
  std::int64_t repeats = 20;
  double seconds = 0;
  bool json = false;
  std::optional<spec::RunConfig> config;  ///< of a step
  std::string run_folder;                 ///< where a step's JSON goes, too
};

/// Errors: UserError(usage) for an unknown subject (with the nearest), an option of another subject, a model
/// or recipe that cannot be trained.
BenchPlan bench_plan(const Arguments& arguments);

/// `assay-train --bench WORDS`, in that program alone (bench_main.cpp).
int run_bench(const std::vector<std::string>& words, Streams streams);

/// What `assay generate` was asked for.
struct GeneratePlan {
  std::string path;                  ///< a run, a checkpoint, or a folder of Hugging Face weights
  std::vector<std::string> prompts;  ///< texts, "-": standard input; empty where ids are given, or nothing
  std::vector<std::vector<std::int64_t>> ids;  ///< of prompts
  std::optional<std::int64_t> most;            ///< new tokens of each; empty: 128, or what the context allows
  double temperature = 1, top_p = 1;
  std::int64_t seed = 1;
  std::optional<Dtype> dtype;  ///< empty: bf16 on a GPU, f32 on a CPU
  spec::Device device = spec::Device::automatic;
  bool json = false;
};

/// Errors: UserError(usage).
GeneratePlan generate_plan(const Arguments& arguments);

/// `assay-train --generate WORDS`, in that program alone (generate/generate_main.cpp).
int run_generate(const std::vector<std::string>& words, Streams streams);

/// Path of assay-train. Errors: UserError(usage) when it is not there, or lacks libraries.
std::string find_trainer();

/// Help of the program (verbs, examples, exit codes) and of one verb.
std::string help_text();
std::string help_text(const Verb& verb);

/// The program: finds the verb and runs it, guarded. `words` are the arguments after the program's name.
int run(const std::vector<std::string>& words, Streams streams);

/// Calls `action` and returns its exit code; an error is printed as "assay: error: ..." to streams.err and
/// mapped to its exit code (spec/error.hpp). Standard output that cannot be written is an error too.
int guarded(Streams streams, const std::function<int()>& action);

}  // namespace assay::impl::cli
