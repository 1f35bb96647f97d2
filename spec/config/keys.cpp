#include "spec/config/keys.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>

#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/amount.hpp"
#include "spec/text/utf8.hpp"

namespace assay::spec {
namespace {

constexpr std::int64_t kMany = 1'000'000'000;       // sequences, tokens of one sequence, threads
constexpr std::int64_t kSteps = 1'000'000'000'000;  // steps, samples
constexpr std::int64_t most_profiled_steps = 100;   // traces are large
constexpr std::int64_t kInt64 = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse(const Key& key, const Value& value) {
  // config_c1
  throw SpecError("config_c1", key.name + " = " + shown(value) + " is out of range: must be " + key.range +
                                   (key.unit.empty() ? "" : " " + key.unit));
}

Key named(std::string name, KeyType type, std::string unit, std::string meaning) {
  Key key;
  key.name = std::move(name);
  key.type = type;
  key.unit = std::move(unit);
  key.meaning = std::move(meaning);
  return key;
}

/// The setter must see the finished key for its message, so it looks the key up by name when it refuses.
template <class Holds, class Assign>
void guard(Key& key, Holds holds, Assign assign) {
  key.set = [name = key.name, holds, assign](RunConfig& config, const Value& value) {
    if (!holds(value)) refuse(*find_key(name), value);
    assign(config, value);
  };
}

template <class Integer>
Key integer(std::string name, Integer RunConfig::*member, std::int64_t low, std::int64_t high,
            std::string unit, std::string meaning) {
  Key key = named(std::move(name), KeyType::integer, std::move(unit), std::move(meaning));
  key.range = ">= " + std::to_string(low);
  if (high != kInt64) key.range += " and <= " + std::to_string(high);
  key.get = [member](const RunConfig& config) { return Value(static_cast<std::int64_t>(config.*member)); };
  guard(
      key,
      [low, high](const Value& value) {
        const std::int64_t number = std::get<std::int64_t>(value);
        return number >= low && number <= high;
      },
      [member](RunConfig& config, const Value& value) {
        config.*member = static_cast<Integer>(std::get<std::int64_t>(value));
      });
  return key;
}

/// `range` is "> 0", ">= 0", "[0, 1)" or "[0, 1]", the only shapes that a setting needs.
Key number(std::string name, double RunConfig::*member, const std::string& range, std::string unit,
           std::string meaning) {
  Key key = named(std::move(name), KeyType::number, std::move(unit), std::move(meaning));
  key.range = range;
  key.get = [member](const RunConfig& config) { return Value(config.*member); };
  guard(
      key,
      [range](const Value& value) {
        const double x = std::get<double>(value);
        if (!std::isfinite(x)) return false;
        if (range == "> 0") return x > 0;
        if (range == ">= 0") return x >= 0;
        if (range == "[0, 1)") return x >= 0 && x < 1;
        return x >= 0 && x <= 1;
      },
      [member](RunConfig& config, const Value& value) { config.*member = std::get<double>(value); });
  return key;
}

template <class Enum>
Key choice(std::string name, Enum RunConfig::*member, std::vector<std::pair<std::string, Enum>> names,
           std::string meaning) {
  Key key = named(std::move(name), KeyType::choice, "", std::move(meaning));
  key.range = "one of";
  for (const auto& [word, unused] : names) {
    key.choices.push_back(word);
    key.range += (key.choices.size() == 1 ? " " : ", ") + ('"' + word + '"');
  }
  key.get = [member, names](const RunConfig& config) {
    for (const auto& [word, each] : names)
      if (each == config.*member) return Value(word);
    return Value(std::string());
  };
  guard(
      key,
      [names](const Value& value) {
        for (const auto& [word, unused] : names)
          if (word == std::get<std::string>(value)) return true;
        return false;
      },
      [member, names](RunConfig& config, const Value& value) {
        for (const auto& [word, each] : names)
          if (word == std::get<std::string>(value)) config.*member = each;
      });
  return key;
}

Key text(std::string name, std::string RunConfig::*member, std::string meaning) {
  Key key = named(std::move(name), KeyType::text, "", std::move(meaning));
  key.range = "not empty";
  key.get = [member](const RunConfig& config) { return Value(config.*member); };
  guard(
      key, [](const Value& value) { return !std::get<std::string>(value).empty(); },
      [member](RunConfig& config, const Value& value) { config.*member = std::get<std::string>(value); });
  return key;
}

Key list(std::string name, std::vector<std::string> RunConfig::*member, std::string meaning) {
  Key key = named(std::move(name), KeyType::list, "", std::move(meaning));
  key.range = "no empty entry";
  key.get = [member](const RunConfig& config) { return Value(config.*member); };
  guard(
      key,
      [](const Value& value) {
        for (const std::string& entry : std::get<std::vector<std::string>>(value))
          if (entry.empty()) return false;
        return true;
      },
      [member](RunConfig& config, const Value& value) {
        config.*member = std::get<std::vector<std::string>>(value);
      });
  return key;
}

/// Two step numbers; an empty list stands for none.
std::optional<StepWindow> step_window(const std::vector<std::string>& entries) {
  if (entries.empty()) return StepWindow();
  const auto step = [](const std::string& text) { return whole_number(text).value_or(0); };
  if (entries.size() != 2) return {};
  const StepWindow window{.first = step(entries[0]), .last = step(entries[1])};
  const bool holds = window.first >= 1 && window.last >= window.first && window.last <= kSteps &&
                     window.last - window.first < most_profiled_steps;
  return holds ? std::optional(window) : std::nullopt;
}

Key profiled_steps() {
  Key key =
      named("profile.steps", KeyType::list, "[steps]",
            "First and last step of those that are traced, [12, 14]: a trace that Perfetto and Chrome open, "
            "NVTX ranges, and a table of op times, in profile/ in run.directory; empty: none");
  key.range = "empty, or two steps in order, at most " + std::to_string(most_profiled_steps) + " of them";
  key.get = [](const RunConfig& config) {
    std::vector<std::string> entries;
    if (config.profile.on())
      entries = {std::to_string(config.profile.first), std::to_string(config.profile.last)};
    return Value(entries);
  };
  guard(
      key,
      [](const Value& value) { return step_window(std::get<std::vector<std::string>>(value)).has_value(); },
      [](RunConfig& config, const Value& value) {
        config.profile = *step_window(std::get<std::vector<std::string>>(value));
      });
  return key;
}

/// "never", "auto", or the path of a checkpoint.
Key resume() {
  Key key =
      named("checkpoint.resume", KeyType::text, "",
            "Where the run starts: \"never\" from step 0, \"auto\" from the newest committed checkpoint of "
            "run.directory if there is one, or the path of a checkpoint");
  key.range = "not empty";
  key.get = [](const RunConfig& config) {
    if (config.resume == Resume::path) return Value(config.resume_path);
    return Value(std::string(config.resume == Resume::never ? "never" : "auto"));
  };
  guard(
      key, [](const Value& value) { return !std::get<std::string>(value).empty(); },
      [](RunConfig& config, const Value& value) {
        const std::string& word = std::get<std::string>(value);
        config.resume = word == "never" ? Resume::never : word == "auto" ? Resume::automatic : Resume::path;
        config.resume_path = config.resume == Resume::path ? word : "";
      });
  return key;
}

/// A list of values that are written as texts: `read` gives nothing for a text that is none.
template <class Entry>
Key entries(std::string name, std::vector<Entry> RunConfig::*member,
            std::optional<Entry> (*read)(std::string_view), std::string range, std::string meaning) {
  Key key = named(std::move(name), KeyType::list, "", std::move(meaning));
  key.range = std::move(range);
  key.get = [member](const RunConfig& config) {
    std::vector<std::string> texts;
    for (const Entry& entry : config.*member) texts.push_back(to_text(entry));
    return Value(texts);
  };
  guard(
      key,
      [read](const Value& value) {
        return std::ranges::all_of(std::get<std::vector<std::string>>(value),
                                   [read](const std::string& text) { return read(text).has_value(); });
      },
      [member, read](RunConfig& config, const Value& value) {
        (config.*member).clear();
        for (const std::string& text : std::get<std::vector<std::string>>(value))
          (config.*member).push_back(*read(text));
      });
  return key;
}

Key data_dtype() {
  Key key = named("data.dtype", KeyType::choice, "",
                  "Type of the ids in raw token files, little-endian; other formats know theirs");
  key.choices = {"uint16", "uint32"};
  key.range = "one of \"uint16\", \"uint32\"";
  key.get = [](const RunConfig& config) { return Value(config.data_dtype); };
  guard(
      key,
      [](const Value& value) {
        const std::string& word = std::get<std::string>(value);
        return word.empty() || word == "uint16" || word == "uint32";
      },
      [](RunConfig& config, const Value& value) { config.data_dtype = std::get<std::string>(value); });
  return key;
}

/// "none", or a folder.
Key weights() {
  Key key = named("model.weights", KeyType::text, "",
                  "Folder of Hugging Face weights (safetensors) that training starts from instead of "
                  "initial ones from train.seed, or \"none\"; without model.name its config.json says the "
                  "model");
  key.range = "not empty";
  key.get = [](const RunConfig& config) { return Value(config.weights.empty() ? "none" : config.weights); };
  guard(
      key, [](const Value& value) { return !std::get<std::string>(value).empty(); },
      [](RunConfig& config, const Value& value) {
        const std::string& word = std::get<std::string>(value);
        config.weights = word == "none" ? "" : word;
      });
  return key;
}

Key compute_dtype() {
  using Named = std::pair<std::string, Dtype>;
  Key key = choice<Dtype>("compute.dtype", &RunConfig::dtype,
                          {Named("f64", Dtype::f64), Named("f32", Dtype::f32), Named("bf16", Dtype::bf16)},
                          "Type of activations and working weights; auto: bf16 on a GPU, f32 on a CPU");
  key.choices.insert(key.choices.begin(), "auto");
  key.range.insert(std::string_view("one of ").size(), "\"auto\", ");
  const Key settled = key;
  key.get = [settled](const RunConfig& config) {
    return config.dtype_of_machine ? Value(std::string("auto")) : settled.get(config);
  };
  key.set = [settled](RunConfig& config, const Value& value) {
    const bool automatic = value == Value(std::string("auto"));
    if (!automatic) settled.set(config, value);
    config.dtype_of_machine = automatic;
  };
  return key;
}

Key when(std::string condition, bool (*is_read)(const RunConfig&), Key key) {
  key.condition = std::move(condition);
  key.is_read = is_read;
  return key;
}

Key neutral_at(Value value, Key key) {
  key.neutral = std::move(value);
  return key;
}

/// An absent value that follows from others is `value`; with a text, the default column says `how`.
Key follows(std::string how, std::function<std::optional<Value>(const RunConfig&)> value, Key key) {
  key.derived = std::move(how);
  key.follows = std::move(value);
  return key;
}

/// The setting names files or folders, but for `words`.
Key path(std::vector<std::string> words, Key key) {
  key.path = true;
  key.words = std::move(words);
  return key;
}

/// A setting that suits one model alone.
std::string to_be_stated(const std::string& of_demo) {
  return "of " + std::string(demo_model) + " " + of_demo + ", else to be stated";
}
Key stated(const std::string& of_demo, Key key) {
  key.derived = to_be_stated(of_demo);
  return key;
}

/// A run of another model than the demo's has to state the setting; `value` is usual.
auto to_state(std::string value, std::string advice) {
  return [=](const RunConfig&, bool) -> std::optional<Usual> { return Usual{value, advice}; };
}
std::optional<Usual> data_of_own_model(const RunConfig&, bool own) {
  if (!own) return {};
  return Usual{"tokens.bin",
               "its token files (recipes/own-text/tokenise.py makes them from text); [] for text of the "
               "built-in grammar, one byte a token"};
}
std::optional<Usual> usual_rate(const RunConfig& config, bool) {
  if (!config.weights.empty()) return Usual{"1e-5", "usual to go on from weights that are trained"};
  return Usual{"3e-4",
               "usual from initial weights: 6e-4 for 100 million parameters, 3e-4 for a billion, 1e-4 for "
               "tens of them"};
}

/// The table as it is made.
struct Table {
  std::vector<Key> keys;
  std::function<OnResume(const RunConfig&)> meaning;

  /// What the settings that follow mean for a run that goes on.
  void next_are(OnResume each) {
    meaning = [each](const RunConfig&) { return each; };
  }
  /// The key in its place, of which further columns may be set.
  Key& push_back(Key key) {
    key.on_resume = meaning;
    return keys.emplace_back(std::move(key));
  }
};

/// The balance loss over the batch so far is made of micro-batches.
OnResume micro_on_resume(const RunConfig& config) {
  return config.balance_over == load_balancing::Form::running ? OnResume::identity : OnResume::rounding;
}

std::optional<Value> folder_of_weights(const RunConfig& config) {
  return config.weights.empty() ? std::nullopt : std::optional<Value>(config.weights);
}
std::optional<Value> steps_of_its_tokens(const RunConfig& config) {
  if (config.tokens == 0) return {};
  return Value(std::min(steps_of_tokens(config), kSteps + 1));  // config_c1
}
std::optional<Value> usual_warmup(const RunConfig& config) { return Value(config.steps * 8 / 100); }
std::optional<Value> usual_decay(const RunConfig& config) {
  if (config.schedule != ScheduleKind::wsd) return {};
  return Value(config.steps * 32 / 100);
}
/// The demo computes in f32, everywhere the same.
std::optional<Value> dtype_of_machine(const RunConfig& config) {
  return config.model == demo_model ? std::nullopt : std::optional<Value>("auto");
}
/// runs/ and what the model is called, also where it was given as ".." or ".".
std::optional<Value> usual_directory(const RunConfig& config) {
  std::error_code error;
  std::filesystem::path model = std::filesystem::absolute(config.model, error).lexically_normal();
  if (!model.has_filename() || model.filename() == "config.json") model = model.parent_path();
  if (model.extension() == ".toml") model.replace_extension();
  return Value("runs/" + (model.has_filename() ? model.filename().string() : "model"));
}

bool reads_files(const RunConfig& config) { return !config.data_paths.empty(); }
bool has_no_end_token(const RunConfig& config) { return reads_files(config) && config.end_of_document < 0; }
bool starts_afresh(const RunConfig& config) { return config.weights.empty(); }
bool quantises(const RunConfig& config) { return config.linear != quantise::Recipe::none; }
bool computes_in_bf16(const RunConfig& config) {
  return config.dtype_of_machine || config.dtype == Dtype::bf16;
}
bool reads_grammar(const RunConfig& config) { return config.data_paths.empty(); }
bool is_hybrid(const RunConfig& config) { return config.data_parallel == DataParallel::hybrid; }
bool is_wsd(const RunConfig& config) { return config.schedule == ScheduleKind::wsd; }
bool skips(const RunConfig& config) { return config.on_non_finite == OnNonFinite::skip; }
bool decays(const RunConfig& config) { return config.schedule != ScheduleKind::constant; }

void add_model_and_data(Table& all) {
  using C = RunConfig;
  all.next_are(OnResume::content);
  all.push_back(path(
      model_names(),
      follows(
          "`\"tiny-llama\"`; with model.weights its folder", folder_of_weights,
          text("model.name", &C::model,
               "Model to train: a name of spec/models, a .toml, a config.json or a folder that holds one"))));
  all.push_back(path({"none"}, weights()));
  all.next_are(OnResume::state);
  all.push_back(when("model.weights is \"none\"", starts_afresh,
                     number("model.init_std", &C::init_std, ">= 0", "",
                            "Standard deviation of the initial matrices; 0: the model's own")));
  all.next_are(OnResume::identity);
  all.push_back(
      integer("batch.sequences", &C::sequences, 1, kMany, "[sequences]",
              "Sequences of one optimizer step over all ranks and micro-batches: the global batch"));
  all.push_back(
      entries<RampStage>("batch.ramp", &C::ramp, ramp_stage, "two whole numbers from 1 each",
                         "Stages of a smaller global batch before batch.sequences, each SEQUENCES:STEPS, as "
                         "32:1000,64:1000; samples are read in the same order as without; empty: none"));
  all.meaning = micro_on_resume;
  all.push_back(
      integer("batch.micro", &C::micro, 0, kMany, "[sequences]",
              "Sequences of one micro-batch, on one data-parallel rank; 0: batch.sequences / "
              "data-parallel ranks, no accumulation; with batch.ramp as many as divide every stage"));
  all.next_are(OnResume::identity);
  Key& length = all.push_back(stated("128", integer("batch.sequence_length", &C::sequence_length, 1, kMany,
                                                    "[tokens]", "Tokens of one sequence")));
  length.to_state = to_state("2048", "tokens of a sequence, at most the model's context");
  length.validation = OfValidation::samples;
  all.next_are(OnResume::content);
  all.push_back(
         path({}, list("data.paths", &C::data_paths,
                       "Files of token ids: raw, of llm.c, of Megatron (.bin beside .idx), .npy; empty: text "
                       "of the built-in grammar")))
      .to_state = data_of_own_model;
  all.next_are(OnResume::identity);
  all.push_back(
      when("data.paths is given", reads_files,
           entries<DataSource>(
               "data.mixture", &C::mixture, data_source,
               "names of letters, digits, \".\", \"_\" and \"-\"; weights above 0 with at most six decimals",
               "Sources that data.paths are of, in their order, each NAME:WEIGHT, or NAME:WEIGHT:FILES for "
               "several files, as web:0.7:2,code:0.3: shares of the training data, mixed sequence by "
               "sequence; in a recipe [[data.sources]] with path, weight and name say both; empty: one "
               "source")));
  all.next_are(OnResume::content);
  all.push_back(when("data.paths is given", reads_files, data_dtype())).reads = "data.paths";
  all.next_are(OnResume::identity);
  all.push_back(when(
      "data.paths is given", reads_files,
      integer("data.end_of_document", &C::end_of_document, -1, 0xFFFFFFFF, "[token id]",
              "Token that ends a document: attention does not cross it; -1: a sequence is one document")));
  all.push_back(when(
      "data.paths is given and data.end_of_document is -1", has_no_end_token,
      choice<bool>("data.document_ends", &C::document_ends, {{"off", false}, {"on", true}},
                   "Whether documents end where the format says so, the .idx of Megatron or the .ends "
                   "beside raw ids: attention does not cross these ends; an error where a file has none")));
  all.next_are(OnResume::rounding);
  all.push_back(integer("data.prefetch", &C::prefetch, 0, 1'000'000, "[steps]",
                        "Optimizer steps whose batches are read ahead by the loader's thread"));
  all.next_are(OnResume::identity);
  all.push_back(when("data.paths is empty", reads_grammar,
                     integer("data.grammar_samples", &C::grammar_samples, 1, kSteps, "[sequences]",
                             "Distinct sequences of the grammar's text in one epoch")));
}

Key validating(Key key) { return when("eval.paths or eval.share is given", validates, std::move(key)); }

void add_validation(Table& all) {
  using C = RunConfig;
  all.next_are(OnResume::output);
  all.push_back(
      when("data.paths is given", reads_files,
           path({}, list("eval.paths", &C::eval_paths,
                         "Files of token ids on which the run is validated, with the document ends of "
                         "data.paths; raw ones of its type; empty: none"))));
  all.next_are(OnResume::identity);
  all.push_back(number("eval.share", &C::eval_share, "[0, 1)", "",
                       "Share of the data's samples, chosen by a hash of their numbers, that is held out of "
                       "training and on which the run is validated; 0: none"))
      .validation = OfValidation::held_out;
  all.next_are(OnResume::output);
  all
      .push_back(validating(integer(
          "eval.sequences", &C::eval_sequences, 0, kMany, "[sequences]",
          "Sequences of the validation set that are evaluated, evenly spread over it; 0: all of them")))
      .validation = OfValidation::evaluated;
  all.push_back(
      validating(integer("eval.every", &C::eval_every, 0, kSteps, "[steps]",
                         "Steps between validations: forward alone, no part of a step's time; 0: none")));
  all.push_back(
      neutral_at(Value(std::string("off")),
                 validating(choice<bool>("eval.at_end", &C::eval_at_end, {{"off", false}, {"on", true}},
                                         "Whether the run is validated after its last step"))));
}

void add_training(Table& all) {
  using C = RunConfig;
  all.next_are(OnResume::length);
  Key& steps = all.push_back(
      follows(to_be_stated("250") + ", or train.tokens", steps_of_its_tokens,
              integer("train.steps", &C::steps, 1, kSteps, "[steps]", "Optimizer steps of the whole run")));
  steps.to_state = to_state("1000", "optimizer steps, or by tokens, train.tokens=100M");
  steps.alternative = "train.tokens";
  all.push_back(integer("train.tokens", &C::tokens, 0, kInt64, "[tokens]",
                        "In place of train.steps: tokens that the run reads, of which its steps follow, the "
                        "last one whole; 0: as many as its steps have"))
      .alternative = "train.steps";
  all.next_are(OnResume::identity);
  all.push_back(integer("train.seed", &C::seed, 0, kInt64, "",
                        "Seed of initial weights, sample order and sampled text"))
      .validation = OfValidation::held_out;
  all.next_are(OnResume::rounding);
  all.push_back(choice<OnNonFinite>(
      "train.on_non_finite", &C::on_non_finite, {{"stop", OnNonFinite::stop}, {"skip", OnNonFinite::skip}},
      "What becomes of a step whose loss or gradient is not finite: stop saves the state before it and "
      "ends the run; skip leaves weights and optimizer as they were and goes on with the next step"));
  all.push_back(when("train.on_non_finite is \"skip\"", skips,
                     integer("train.max_skipped", &C::max_skipped, 1, kSteps, "[steps]",
                             "Steps that the whole run may skip; the next one that is not finite ends it")));
  all.next_are(OnResume::identity);
  all.push_back(stated("3e-3", number("optimizer.learning_rate", &C::learning_rate, "> 0", "",
                                      "Peak learning rate of AdamW")))
      .to_state = usual_rate;
  all.push_back(number("optimizer.beta1", &C::beta1, "[0, 1)", "", "Decay of AdamW's mean of gradients"));
  all.push_back(
      number("optimizer.beta2", &C::beta2, "[0, 1)", "", "Decay of AdamW's mean of squared gradients"));
  all.push_back(
      number("optimizer.eps", &C::adam_eps, "> 0", "", "Term added to the root of AdamW's denominator"));
  all.push_back(number("optimizer.weight_decay", &C::weight_decay, ">= 0", "",
                       "Decoupled weight decay of matrices; gains have none"));
  all.push_back(
      number("optimizer.clip", &C::clip, ">= 0", "", "Largest global gradient norm; 0: no clipping"));
  all.next_are(OnResume::state);
  all.push_back(
      when("compute.dtype is \"bf16\"", computes_in_bf16,
           choice<Dtype>("optimizer.states", &C::states, {{"f32", Dtype::f32}, {"bf16", Dtype::bf16}},
                         "Weights and moments between steps: f32 moments and master weights, or all bf16, "
                         "rounded stochastically")));
  all.next_are(OnResume::identity);
  all.push_back(
      number("loss.z_loss", &C::z_loss, ">= 0", "", "Coefficient of the squared log of the softmax sum"));
  all.push_back(neutral_at(
      Value(0.0),
      number("experts.balance", &C::balance, ">= 0", "",
             "Coefficient of the balance loss of routers, summed over layers; counts only for models "
             "with experts")));
  all.push_back(choice<load_balancing::Form>(
      "experts.balance_over", &C::balance_over,
      {{"sequence", load_balancing::Form::sequence}, {"global_batch", load_balancing::Form::running}},
      "Tokens over which the balance loss compares the loads of experts: each sequence's, or all that the "
      "step's micro-batches of all ranks had so far; counts only for models with experts"));
  all.push_back(neutral_at(
      Value(0.0),
      number("experts.bias_rate", &C::bias_rate, ">= 0", "",
             "By how much a step raises the router bias of experts below the mean load, and lowers "
             "that of the others; counts only for models with a router bias")));
  all.push_back(number("experts.capacity", &C::capacity, ">= 0", "",
                       "Rows that an expert takes of a sequence at most, over their mean; later ones are "
                       "dropped, and their share recorded. 0: none is; else at least 1; counts only for "
                       "models with experts"));
  all.push_back(
      number("experts.router_z", &C::router_z, ">= 0", "",
             "Coefficient of the squared log of the routers' softmax sums, summed over layers; counts "
             "only for models with experts"));
  all.next_are(OnResume::length);
  all.push_back(choice<ScheduleKind>(
      "schedule.kind", &C::schedule,
      {{"constant", ScheduleKind::constant}, {"cosine", ScheduleKind::cosine}, {"wsd", ScheduleKind::wsd}},
      "Learning rate after warm-up: constant, half a cosine, or warm-up, stable, decay"));
  all.push_back(follows("8 % of train.steps", usual_warmup,
                        integer("schedule.warmup_steps", &C::warmup_steps, 0, kSteps, "[steps]",
                                "Steps of the linear warm-up")));
  all.push_back(when(
      "schedule.kind is \"wsd\"", is_wsd,
      neutral_at(Value(std::int64_t{0}), follows("32 % of train.steps", usual_decay,
                                                 integer("schedule.decay_steps", &C::decay_steps, 0, kSteps,
                                                         "[steps]", "Steps of the decay at the end")))));
  all.push_back(
      when("schedule.kind is \"wsd\"", is_wsd,
           choice<DecayShape>("schedule.decay_shape", &C::decay_shape,
                              {{"linear", DecayShape::linear}, {"1-sqrt", DecayShape::one_minus_sqrt}},
                              "Fall of the decay: straight, or 1 - sqrt(x), steep at first")));
  all.push_back(when("schedule.kind is not \"constant\"", decays,
                     number("schedule.final_ratio", &C::final_lr_ratio, "[0, 1]", "",
                            "Last learning rate as a fraction of the peak")));
}

void add_machine_and_run(Table& all) {
  using C = RunConfig;
  all.next_are(OnResume::state);
  all.push_back(follows("auto; of tiny-llama f32", dtype_of_machine, compute_dtype()));
  all.next_are(OnResume::identity);
  all.push_back(choice<quantise::Recipe>("compute.linear", &C::linear,
                                         {{"bf16", quantise::Recipe::none},
                                          {"fp8_tensor", quantise::Recipe::fp8_tensor},
                                          {"fp8_block", quantise::Recipe::fp8_block},
                                          {"mxfp8", quantise::Recipe::mxfp8}},
                                         "What the GEMMs of the blocks' linears read, but for experts "
                                         "(compute.linear_experts): bf16: compute.dtype, "
                                         "whatever that is; FP8 with one scale a "
                                         "tensor (activations and weights E4M3, gradients E5M2), with 1 x "
                                         "128 and 128 x 128 blocks (all E4M3), or "
                                         "MXFP8's 1 x 32 (all E4M3)"));
  all.push_back(when("compute.linear is not \"bf16\"", quantises,
                     list("compute.linear_bf16_layers", &C::linear_bf16_layers,
                          "Layers whose linears are not quantised: numbers from 0, \"first\", \"last\"")));
  all.push_back(choice<bool>(
      "compute.linear_experts", &C::linear_experts, {{"off", false}, {"on", true}},
      "With compute.linear=fp8_tensor: whether routed experts, too, compute their outputs and the gradients "
      "of their inputs in FP8, and those of their weights in compute.dtype. Measured, it gains with a width "
      "of 1,024 and 2,048 rows an expert, and loses with 768 and 1,024"));
  all.next_are(OnResume::rounding);
  all.push_back(when("compute.linear is not \"bf16\"", quantises,
                     choice<TwinsMade>(
                         "compute.linear_weights", &C::linear_weights,
                         {{"auto", TwinsMade::automatic}, {"step", TwinsMade::step}, {"use", TwinsMade::use}},
                         "When weights are quantised: once after each update, kept in both orientations (2 "
                         "bytes a weight), or "
                         "before each GEMM that reads them; auto: step where it fits in memory")))
      .settled = true;
  all.push_back(choice<Device>("compute.device", &C::device,
                               {{"auto", Device::automatic}, {"cpu", Device::cpu}, {"cuda", Device::cuda}},
                               "Where tensors live; auto: a GPU if one is usable, else the CPU"));
  all.push_back(choice<AttentionBackend>("compute.attention", &C::attention,
                                         {{"auto", AttentionBackend::automatic},
                                          {"cudnn", AttentionBackend::cudnn},
                                          {"flash", AttentionBackend::flash},
                                          {"math", AttentionBackend::math}},
                                         "What computes attention; auto: cuDNN, flash, plain GEMMs on a GPU, "
                                         "our loops on a CPU; a named one "
                                         "that cannot is an error"))
      .settled = true;
  all
      .push_back(choice<Determinism>(
          "compute.deterministic", &C::deterministic,
          {{"auto", Determinism::automatic}, {"off", Determinism::off}, {"on", Determinism::on}},
          "Whether a run, repeated or resumed on this GPU model with these libraries, gives the same bits: "
          "attention's backward adds in a fixed order, and GEMMs keep the algorithms that the run's folder "
          "names; auto: on where the fixed order fits in memory, and always on a CPU"))
      .settled = true;
  all.push_back(
      choice<bool>("compute.cuda_graph", &C::cuda_graph, {{"off", false}, {"on", true}},
                   "Whether a run on one GPU captures its steps in CUDA graphs after the first ones and "
                   "replays them: the same numbers with less work for the CPU; on a CPU an error"));
  all.push_back(integer("compute.threads", &C::threads, 0, 4096, "[threads]",
                        "CPU threads of one rank; 0: cores of the host / ranks on it"))
      .of_host = true;
  std::vector<std::pair<std::string, Recompute>> recomputes;
  recomputes.reserve(all_recomputes.size());
  for (const Recompute each : all_recomputes) recomputes.emplace_back(to_string(each), each);
  all.push_back(choice<Recompute>("memory.recompute", &C::recompute, recomputes,
                                  "What backward computes again instead of keeping it: nothing, values of "
                                  "norms and SwiGLU, latent attention's q, k and v too (mla_up), "
                                  "attention's forward too, or a block from its input"));
  all.push_back(
      choice<DataParallel>("parallel.data", &C::data_parallel,
                           {{"replicate", DataParallel::replicate},
                            {"zero1", DataParallel::zero1},
                            {"shard", DataParallel::shard},
                            {"hybrid", DataParallel::hybrid}},
                           "What each rank holds: everything; a shard of the optimizer's state and the "
                           "rest whole; a shard of everything; a shard within groups of ranks"));
  all.push_back(
      when("parallel.data is \"hybrid\"", is_hybrid,
           integer("parallel.shard_ranks", &C::shard_ranks, 0, 1 << 20, "[ranks]",
                   "Neighbouring data-parallel ranks that hold one copy between them; 0: those of a host")));
  all.push_back(integer("parallel.tensor", &C::tensor_ranks, 1, 1 << 20, "[ranks]",
                        "Neighbouring ranks that compute each matrix together, and hold parts of the "
                        "residual stream between (tensor and sequence parallelism)"));
  all.push_back(integer("parallel.expert", &C::expert_ranks, 1, 1 << 20, "[ranks]",
                        "Neighbouring ranks that hold the experts of each layer between them, "
                        "and send each other the rows of tokens (expert parallelism)"));
  all.push_back(
      when("compute.dtype is \"bf16\"", computes_in_bf16,
           choice<Dtype>("parallel.reduce", &C::reduce, {{"f32", Dtype::f32}, {"bf16", Dtype::bf16}},
                         "Type in which gradients are summed over ranks")));
  all.push_back(integer("parallel.check_replicas_every", &C::check_replicas_every, 0, kSteps, "[steps]",
                        "Steps between comparisons of the ranks' copies of the weights, bit for bit; 0: "
                        "never"));
  all.push_back(
      integer("parallel.stall_seconds", &C::stall_seconds, 30, kMany, "[s]",
              "Time for which a rank that starts, ends, or waits for data, a disk or a terminal may "
              "not go on; then it counts as lost, and the job ends"));
  all.next_are(OnResume::output);
  all.push_back(path({}, follows("runs/ and the model's name", usual_directory,
                                 text("run.directory", &C::directory,
                                      "Folder of the record, the report and the checkpoints"))))
      .no_change = "a run goes on in its own folder; --into FOLDER goes on in a new one";
  all.push_back(integer("checkpoint.every", &C::checkpoint_every, 0, kSteps, "[steps]",
                        "Steps between checkpoints; 0: only by checkpoint.minutes, at the end and when "
                        "stopped"));
  all.push_back(choice<bool>("checkpoint.at_end", &C::checkpoint_at_end, {{"off", false}, {"on", true}},
                             "Whether the run is saved after its last step; off, for a run that is only "
                             "measured: a run that is stopped before is still saved"));
  all.push_back(number("checkpoint.minutes", &C::checkpoint_minutes, ">= 0", "[min]",
                       "Time after which a run that has not saved saves, by rank 0's clock; 0: never"));
  all.push_back(integer("checkpoint.keep", &C::checkpoint_keep, 1, 1'000'000, "[checkpoints]",
                        "Newest committed checkpoints that are kept"));
  all.push_back(choice<bool>(
      "checkpoint.asynchronous", &C::checkpoint_asynchronous, {{"off", false}, {"on", true}},
      "Whether steps go on while a checkpoint is written: the state is copied to the host first, which takes "
      "memory of its size there, shared among the ranks; off, or where the host lacks it: steps wait"));
  all.push_back(validating(choice<bool>(
      "checkpoint.keep_best", &C::keep_best, {{"off", false}, {"on", true}},
      "Whether the run is saved whenever its validation loss is the lowest so far, and that checkpoint is "
      "kept beside the newest, named checkpoints/best")));
  all.push_back(path({"never", "auto"}, resume())).no_change =
      "what to go on from is the RUN of `assay resume RUN`, a run's folder or one of its checkpoints";
  all.push_back(integer("log.every", &C::log_every, 1, kSteps, "[steps]",
                        "Steps between printed lines; the record has every step"));
  all.push_back(choice<bool>("log.tensorboard", &C::log_tensorboard, {{"off", false}, {"on", true}},
                             "Whether event files for TensorBoard are written to run.directory: what the "
                             "record has of steps and validations, as curves"));
  all.push_back(profiled_steps());
  all.push_back(when("data.paths is empty", reads_grammar,
                     neutral_at(Value(std::int64_t{0}),
                                integer("sample.sentences", &C::sample_sentences, 0, 1'000'000, "[sentences]",
                                        "Sentences sampled at the end and judged by the grammar; 0: none"))));
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    Table table;
    add_model_and_data(table);
    add_validation(table);
    add_training(table);
    add_machine_and_run(table);
    return std::move(table.keys);
  }();
  return all;
}

const Key* find_key(std::string_view name) {
  for (const Key& key : keys())
    if (key.name == name) return &key;
  return nullptr;
}

std::span<const RemovedKey> removed_keys() {
  static constexpr RemovedKey all[] = {
      {"parallel.gather", "NCCL all-gathers weights in every run (docs/decisions/0021-no-own-copies.md)"},
      {"parallel.scatter",
       "NCCL reduce-scatters gradients in every run (docs/decisions/0021-no-own-copies.md)"},
  };
  return all;
}

const RemovedKey* find_removed_key(std::string_view name) {
  for (const RemovedKey& key : removed_keys())
    if (key.name == name) return &key;
  return nullptr;
}

std::string_view to_string(OnResume meaning) {
  constexpr std::string_view names[] = {"identity", "length", "state", "content", "rounding", "output"};
  return names[static_cast<std::size_t>(meaning)];
}

namespace {
/// Of a setting that follows from others; nothing of another.
std::optional<Value> followed(const Key& key, const RunConfig& config) {
  if (config.stated.names.contains(key.name)) return {};
  return key.follows(config);
}
}  // namespace

std::string whole_path(const std::string& text) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(text, error);
  // Behind a link "a/.." is not ".".
  const bool up = std::ranges::count(path, "..") > 0;
  const std::string out =
      (up ? std::filesystem::weakly_canonical(path, error) : path.lexically_normal()).string();
  return error || valid_utf8(out) != out ? text : out;
}
bool is_derived(const Key& key, const RunConfig& config) { return followed(key, config).has_value(); }

void follow(RunConfig& config) {
  for (const Key& key : keys())
    if (const auto value = followed(key, config)) key.set(config, *value);
}

void follow(RunConfig& config, const RunConfig& then) {
  static const RunConfig defaults;
  for (const Key& key : keys()) {
    const auto now = followed(key, config), before = followed(key, then);
    const bool stated = config.stated.names.contains(key.name) || then.stated.names.contains(key.name);
    const OnResume meaning = key.on_resume(config);
    if (stated || (!now && !before) || meaning == OnResume::output || meaning == OnResume::content) continue;
    key.set(config, now == before ? key.get(then) : now.value_or(key.get(defaults)));
  }
}

std::vector<std::string> derived_settings(const RunConfig& config) {
  std::vector<std::string> names;
  for (const Key& key : keys())
    if (followed(key, config)) names.push_back(key.name);
  return names;
}

RunConfig with_whole_paths(RunConfig config) {
  for (const Key& key : keys()) {
    if (!key.path) continue;
    Value value = key.get(config);
    if (auto* text = std::get_if<std::string>(&value); text && std::ranges::count(key.words, *text) == 0)
      *text = whole_path(*text);
    if (auto* entries = std::get_if<std::vector<std::string>>(&value))
      std::ranges::transform(*entries, entries->begin(), whole_path);
    key.set(config, value);
  }
  return config;
}

std::vector<std::pair<std::string, Value>> settings(const RunConfig& config) {
  std::vector<std::pair<std::string, Value>> all;
  for (const Key& key : keys()) all.emplace_back(key.name, key.get(config));
  return all;
}

}  // namespace assay::spec
