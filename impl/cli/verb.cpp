#include "impl/cli/verb.hpp"

#include <algorithm>

#include "impl/cli/launch_ranks.hpp"
#include "spec/error.hpp"
#include "spec/failure.hpp"
#include "spec/text/labels.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

std::vector<Option> with(std::vector<Option> options, const std::vector<Option>& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

const Option kJson = {"json", "", "", "machine-readable output"};

const Verb& find_verb(const std::string& name) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return verb;
    names.push_back(verb.name);
  }
  const auto guess = spec::nearest(name, names);
  throw UserError(ExitCode::usage, "unknown verb " + spec::quote(name) +
                                       (guess ? "; did you mean \"" + *guess + "\"?" : ";") +
                                       " `assay help` lists the verbs");
}

Arguments parsed(const std::vector<std::string>& words, const std::vector<Option>& options,
                 const std::string& verb, Streams streams) {
  try {
    return parse(words, options, verb);
  } catch (const UserError& error) {
    if (verb == "audit") audit_refused(clear_ones(words, options), error.what(), streams);
    throw;
  }
}

int dispatch(const std::vector<std::string>& words, Streams streams) {
  if (words.empty()) {
    streams.err << help_text();
    return static_cast<int>(ExitCode::usage);
  }
  std::string name = words[0];
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version" || name == "-V") name = "version";
  const Verb& verb = find_verb(name);
  std::vector<Option> options = verb.options;
  options.push_back({"help", "h", "", "this text"});
  const Arguments arguments = parsed({words.begin() + 1, words.end()}, options, verb.name, streams);
  if (arguments.has("help")) {
    streams.out << help_text(verb);
    return 0;
  }
  if (verb.operands.empty() && !arguments.positional.empty())
    throw UserError(ExitCode::usage, "`assay " + verb.name + "` takes no argument, not " +
                                         spec::quote(arguments.positional[0]) + "; `assay help " + verb.name +
                                         "` lists its options");
  return verb.action(arguments, streams);
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"train",
       "[RECIPE.toml] [key=value ...]",
       "train a model; without arguments a tiny one on this machine's CPU in about a minute",
       {"assay train", "assay train recipe.toml train.steps=1000",
        "assay train --ranks 2 batch.sequences=64"},
       with(rank_options("ranks on this machine (default 1)"),
            {{"dump-config", "", "", "print every setting as a complete recipe and stop"}}),
       train},
      {"resume",
       "RUN",
       "go on with a run from its newest whole checkpoint, with the settings that it had",
       {"assay resume runs/tiny-llama", "assay resume runs/tiny-llama --change train.steps=1000",
        "assay resume runs/own/checkpoints/step_00010000 --into runs/own-decay --change train.steps=12000"},
       with(rank_options("ranks on this machine (default: as many as the run had)"),
            {{"change", "", "KEY=VALUE", "a setting that is another one from here on; recorded", true},
             {"into", "", "FOLDER", "a new folder that the run goes on in: a branch"}}),
       resume},
      {"flops",
       "MODEL",
       "parameters and FLOPs of a model under every convention; MFU; what a token budget costs",
       {"assay flops llama3-8b", "assay flops path/to/config.json --seq 4096 --json",
        "assay flops llama3-8b --hardware H200 --gpus 8 --tokens-per-second 80k",
        "assay flops qwen3-1.8b --hardware B200 --gpus 8 --tokens 82B --mfu 40% --tokens-per-step 4194304"},
       {{"seq", "", "T", "tokens of one sequence (default: the model's context)"},
        {"hardware", "", "GPU", "a name, \"H100\", or as drivers print it: \"NVIDIA H100 80GB HBM3\""},
        {"gpus", "", "N", "number of GPUs (default 1)"},
        {"dtype", "", "D", "what the GEMMs compute in (default bf16)"},
        {"tokens-per-second", "", "R", "rate of all GPUs together; gives MFU under each convention"},
        {"mfu", "", "SHARE", "instead of a rate: \"40%\" of the dense peak by exact"},
        {"tokens", "", "N", "a budget, \"82B\": time, GPU hours, energy at that rate"},
        {"tokens-per-step", "", "N", "tokens of one optimizer step: iterations of the budget"},
        {"all", "", "", "also every trainer's convention, with formula and source"},
        kJson},
       flops},
      {"bench",
       "ceilings | ops | step [RECIPE.toml] [key=value ...] | scaling [RECIPE.toml] [key=value ...]",
       "what this machine reaches, what ops take, where a step goes, what more ranks bring",
       {"assay bench ceilings --model llama3-8b --micro 4 --seq 4096", "assay bench ops --model tiny-llama",
        "assay bench ceilings --ranks 2 --model llama-1.36b",
        "assay bench step recipes/h200/llama-1.36b.toml", "assay bench scaling --ranks 1,2 --json"},
       {{"model", "", "M", "ceilings, ops: the model (default: llama-1.36b on a GPU, tiny-llama on a CPU)"},
        {"micro", "", "N", "ceilings, ops: sequences of one micro-batch"},
        {"seq", "", "T", "ceilings, ops: tokens of one sequence"},
        {"dtype", "", "D", "ceilings, ops: bf16, f32 or f64 (default: bf16 on a GPU, f32 on a CPU)"},
        {"device", "", "D", "ceilings, ops: auto, cpu or cuda"},
        {"repeats", "", "N", "calls of each op (default 20); steps of each kind (default 3)"},
        {"seconds", "", "S", "ceilings, ops: time each for at least S seconds, until the clock has settled"},
        {"tune", "", "MS", "ceilings: instead, find and keep the GEMMs' algorithms, MS of load for each"},
        {"run", "", "FOLDER", "step: also write it into a run's folder; scaling: keep the runs there"},
        {"ranks", "", "N", "ceilings: instead, collectives of N ranks; scaling: a list (default 1,2)"},
        {"strong", "", "", "scaling: the same step on more ranks, not the same sequences for every rank"},
        {"steps", "", "N", "scaling: steps of each run (default 12, of which the first 3 do not count)"},
        kJson},
       bench},
      {"generate",
       "RUN | CHECKPOINT | FOLDER",
       "go on with a text: sample from a run, a checkpoint or a folder of Hugging Face weights",
       {"assay generate runs/tiny-llama",
        "assay generate path/to/Qwen3-0.6B --prompt \"The capital of France\"",
        "assay generate runs/own --prompt \"One\" --prompt \"Two\" --temperature 0 --tokens 50 --json",
        "assay generate path/to/weights --ids 5,17,3"},
       {{"prompt", "", "TEXT", "what the text begins with, - : standard input; given again, another text",
         true},
        {"ids", "", "LIST", "a prompt as token ids, where no tokenizer is known", true},
        {"tokens", "", "N", "new tokens of each text, at most (default 128)"},
        {"temperature", "", "T",
         "0: the likeliest token each time; below 1 bolder, above 1 wilder (default 1)"},
        {"top-p", "", "P", "draw among the fewest tokens whose probabilities reach P (default 1)"},
        {"seed", "", "N", "of what is drawn (default 1)"},
        {"dtype", "", "D", "bf16, f32 or f64 (default: bf16 on a GPU, f32 on a CPU)"},
        {"device", "", "D", "auto, cpu or cuda"},
        kJson},
       generate},
      {"audit",
       "LOG...",
       "recompute every number of a training log from the others; name contradictions and their causes",
       {"assay audit runs/tiny-llama", "assay audit gpus2.log gpus8.log --model llama-1.36b",
        "assay audit metrics.csv --map step=iter,loss=loss,seconds=ms:ms --gpus 8 --gpu \"NVIDIA H100 80GB "
        "HBM3\"",
        "assay audit --explain mfu"},
       {{"model", "", "M", "the model, where the log does not name it: a name, config.json or .toml"},
        {"gpu", "", "X", "the GPU, where the log does not name it"},
        {"gpus", "", "N", "number of GPUs"},
        {"seq", "", "T", "tokens of one sequence"},
        {"map", "", "COLUMNS", "meaning of a table's columns: FIELD=COLUMN[:UNIT],...", true},
        {"set", "", "SETTINGS", "what the log does not hold: SETTING=VALUE,...", true},
        kJson,
        {"junit", "", "FILE", "also write JUnit XML, for CI systems; - : to standard output, alone"},
        {"explain", "", "ID", "what an invariant says and forgives; `all` lists them"}},
       audit},
      {"checkpoint",
       "show | verify | export | reshard",
       "show or verify a checkpoint or Hugging Face weights; export it to Hugging Face or other files",
       {"assay checkpoint show runs/tiny-llama", "assay checkpoint verify path/to/Qwen3-0.6B",
        "assay checkpoint export runs/tiny-llama tiny-llama-hf --dtype bf16",
        "assay checkpoint reshard runs/tiny-llama one-file --files 1"},
       {{"dtype", "", "D", "export: type of the weights: bf16 (default), fp32, fp16 or fp64"},
        {"shard-bytes", "", "N", "export: most bytes of tensors in one file (default 5000000000)"},
        {"files", "", "N", "reshard: number of files (default 1)"}},
       checkpoint},
      {"data",
       "inspect FILE... | verify FILE... | convert FROM TO",
       "what token files hold; whether every id is in a vocabulary; other formats as raw ids",
       {"assay data inspect train.bin", "assay data verify train.bin val.bin --model llama3-8b",
        "assay data convert tokens.npy tokens.bin"},
       {{"dtype", "", "D", "type of raw ids: uint16 or uint32; other formats know theirs"},
        {"vocab", "", "N", "verify: ids are below N"},
        {"model", "", "M", "verify: ids are of this model's vocabulary: a name, config.json or .toml"},
        kJson},
       data},
      {"report",
       "RUN...",
       "one self-contained HTML page of a run, or of several compared; or their numbers as CSV",
       {"assay report runs/tiny-llama", "assay report runs/a runs/b", "assay report runs/a runs/b --csv"},
       {{"output", "o", "FILE", "file, or - (default: the run's report.html, of several compare.html here)"},
        {"csv", "", "", "steps, skipped steps and validations with every recorded number"}},
       report},
      {"claims",
       "FILE...",
       "published numbers recomputed, as a page; exit code 1 where a file states another verdict, else 0",
       {"assay claims golden/claims/b200_scaling.toml", "assay claims golden/claims/*.toml --json"},
       {kJson},
       claims},
      {"doctor",
       "",
       "what this machine can run, what is missing, and the fix",
       {"assay doctor"},
       {kJson},
       doctor},
      {"config",
       "[PREFIX]",
       "every setting with type, default, range and meaning",
       {"assay config", "assay config optimizer"},
       {kJson, {"markdown", "", "", "the page docs/configuration.md"}},
       config},
      {"completion",
       "bash|zsh|fish",
       "shell completion of verbs, options and settings",
       {"source <(assay completion bash)", "assay completion fish > ~/.config/fish/completions/assay.fish"},
       {},
       completion},
      {"version", "", "the version of this program", {"assay version"}, {kJson}, version},
      {"help", "[VERB]", "this overview, or the help of one verb", {"assay help train"}, {}, help},
  };
  return all;
}

int help(const Arguments& arguments, Streams streams) {
  if (arguments.positional.empty())
    streams.out << help_text();
  else
    streams.out << help_text(find_verb(arguments.positional[0]));
  return 0;
}

int run(const std::vector<std::string>& words, Streams streams) {
  return guarded(streams, [&] { return dispatch(words, streams); });
}

int guarded(Streams streams, const std::function<int()>& action) {
  const auto fail = [&](ExitCode code, const std::string& message) {
    streams.out.flush();
    streams.err << "assay: error: " << spec::without_labels(message) << "\n";
    return static_cast<int>(code);
  };
  try {
    const int code = action();
    streams.out.flush();
    // A run that a closed pipe asked to stop has said so by its code.
    if (!streams.out && code == 0)
      return fail(ExitCode::io, "standard output cannot be written; is its disk full?");
    return code;
  } catch (const std::exception& error) {
    const Failure failure = failure_of(error);
    return failure.code == ExitCode::bug
               ? fail(failure.code, "this is a fault of assay, please report it: " + failure.text)
               : fail(failure.code, failure.text);
  }
}

}  // namespace assay::impl::cli
