#include "spec/config/load.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "spec/config/check.hpp"
#include "spec/config/data_sources.hpp"
#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/text/amount.hpp"
#include "spec/text/file.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/toml.hpp"

namespace assay::spec {
namespace {

struct Given {
  Value value;
  std::string where;  ///< "recipe.toml:3:9" or "argument \"train.steps=x\""
};
using Assignments = std::map<std::string, Given>;
using document::Item;
using document::Kind;

[[noreturn]] void refuse(const std::string& where, const std::string& message) {
  throw UserError(ExitCode::usage, where + ": " + message);
}

/// First letters of the words of a setting's last name: "lr" of optimizer.learning_rate; nothing for one
/// word.
std::string initials(const std::string& key) {
  const std::string last = key.substr(key.find('.') + 1);
  std::string out = last.substr(0, 1);
  for (std::size_t i = 1; i < last.size(); ++i)
    if (last[i - 1] == '_') out += last[i];
  return out.size() > 1 ? out : "";
}

/// What other trainers have a setting for, and we do not: the word, alone or before another ("wandb" also of
/// "wandb.project" and "wandb_project"), and what to write instead.
struct Absent {
  std::string_view word, instead;
};
constexpr std::string_view one_optimizer = "there is one optimizer, AdamW: leave it out";
constexpr std::string_view curves = "curves are written for TensorBoard: log.tensorboard=\"on\"";
constexpr Absent absent[] = {{"optimizer.name", one_optimizer},
                             {"optimizer.type", one_optimizer},
                             {"optimizer_name", one_optimizer},
                             {"optimizer_type", one_optimizer},
                             {"wandb", curves},
                             {"use_wandb", curves},
                             {"enable_wandb", curves},
                             {"report_to", curves}};

const Absent* find_absent(const std::string& name) {
  const auto is_of = [&](const Absent& each) {
    return name.starts_with(each.word) && (name.size() == each.word.size() || name[each.word.size()] == '.' ||
                                           name[each.word.size()] == '_');
  };
  const auto found = std::ranges::find_if(absent, is_of);
  return found == std::end(absent) ? nullptr : found;
}

[[noreturn]] void refuse_unknown(const std::string& where, const std::string& name) {
  if (const RemovedKey* removed = find_removed_key(name))
    refuse(where, "the setting \"" + name + "\" is gone: " + std::string(removed->reason) + "; leave it out");
  if (const Absent* none = find_absent(name))
    refuse(where, quote(name) + " is no setting: " + std::string(none->instead));
  if (counts_ranks(name))
    refuse(where,
           "the number of ranks, one a GPU, is no setting: give `assay train --ranks N`, or start "
           "assay-train by a launcher (srun, torchrun)");
  std::string group;
  for (const Key& key : keys())
    if (key.name.rfind(name + ".", 0) == 0) group += (group.empty() ? "" : ", ") + key.name;
  if (!group.empty()) refuse(where, "\"" + name + "\" is a group of settings, not a setting: " + group);
  const auto guess = nearest_key(name);
  refuse(where, "unknown setting " + quote(name) + (guess ? "; did you mean \"" + *guess + "\"?" : ";") +
                    " `assay config` lists every setting");
}

[[noreturn]] void refuse_type(const std::string& where, const Key& key, const std::string& found,
                              const std::string& write = "") {
  const bool chosen = key.type == KeyType::choice;
  refuse(where, key.name + " must be " + (chosen ? key.range : type_name(key.type)) +
                    (key.unit.empty() ? "" : " " + key.unit) + ", not " + found +
                    (write.empty() ? "" : ": write " + write));
}

// --- TOML ---

/// Of a setting with a unit, entries may be whole numbers.
std::optional<std::vector<std::string>> list_entries(Item item, bool numbers) {
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < item.size(); ++i) {
    if (item[i].is(Kind::text))
      entries.push_back(item[i].text());
    else if (const auto number = item[i].whole(); number && numbers)
      entries.push_back(std::to_string(*number));
    else
      return std::nullopt;
  }
  return entries;
}

/// Of seconds "10m" are ten million as a count, and ten minutes to whoever types them.
bool takes_letters(const Key& key) { return key.unit != "[s]"; }

std::optional<Value> toml_value(const Key& key, Item item) {
  const bool plain = takes_letters(key) || !item.is(Kind::text);
  if (const auto number = item.whole(); number && key.type == KeyType::integer && plain)
    return Value(*number);
  if (key.type == KeyType::number && (item.is(Kind::real) || item.is(Kind::integer)))
    return Value(item.real());
  if ((key.type == KeyType::text || key.type == KeyType::choice) && item.is(Kind::text))
    return Value(item.text());
  if (key.type == KeyType::list && item.is(Kind::list)) return list_entries(item, !key.unit.empty());
  return std::nullopt;
}

/// What an item of another type most likely meant, as TOML; empty where nobody knows.
std::string meant(const Key& key, Item item) {
  if (key.type == KeyType::list && item.is(Kind::text)) return "[" + quote(item.text()) + "]";
  const std::string word = item.is(Kind::boolean) ? (item.boolean() ? "on" : "off") : "";
  return std::ranges::find(key.choices, word) == key.choices.end() ? "" : quote(word);
}

/// What [[data.sources]] are in settings.
void add_sources(Item tables, Assignments& out) {
  const SourceTables sources = source_tables(tables);
  std::vector<std::string> mixture;
  for (const DataSource& source : sources.sources) mixture.push_back(to_text(source));
  out.insert_or_assign("data.paths", Given{sources.paths, tables.where()});
  out.insert_or_assign("data.mixture", Given{mixture, tables.where()});
}
constexpr std::string_view source_tables_key = "data.sources";

/// Removed settings and steps that never come: errors in what a person writes, not in what a run wrote.
enum class WrittenBy { person, run };

void collect(Item table, const std::string& prefix, WrittenBy by, Loaded& loaded, Assignments& out);

void collect_one(Item table, std::size_t i, const std::string& name, WrittenBy by, Loaded& loaded,
                 Assignments& out) {
  const Item item = table[i];
  if (name == source_tables_key) {
    for (const char* other : {"paths", "mixture"})
      if (const auto both = table.find(other))
        refuse(both->where(),
               std::string("data.") + other + " beside [[data.sources]], which say it: leave one out");
    loaded.config.stated.names.insert("data.paths");
    return add_sources(item, out);
  }
  const Key* key = find_key(name);
  if (!key && item.is(Kind::object) && name.find('.') == name.npos) {
    bool known = false;
    for (const Key& each : keys()) known = known || each.name.rfind(name + ".", 0) == 0;
    if (!known && item.size() == 0) refuse_unknown(table.where_key(i), name);
    return collect(item, name + ".", by, loaded, out);
  }
  if (!key && by == WrittenBy::run && find_removed_key(name)) return;
  if (!key) refuse_unknown(table.where_key(i), name);
  loaded.config.stated.names.insert(name);
  if (by == WrittenBy::person) loaded.places[name] = item.where();
  const std::optional<Value> value = toml_value(*key, item);
  if (!value) refuse_type(item.where(), *key, item.shown(), meant(*key, item));
  out.insert_or_assign(name, Given{*value, item.where()});
}

void collect(Item table, const std::string& prefix, WrittenBy by, Loaded& loaded, Assignments& out) {
  for (std::size_t i = 0; i < table.size() && !loaded.faults.full(); ++i) {
    const std::string name = prefix + table.key(i);
    if (!loaded.faults.gather([&] { collect_one(table, i, name, by, loaded, out); }))
      loaded.wrong.insert(name);
  }
}

// --- key=value ---

Value parse_list(const Key& key, const std::string& text, const std::string& where) {
  if (text.empty()) return std::vector<std::string>();
  if (text.front() == '[') {
    document::Node root;
    if (const auto fault = read_toml("list = " + text, root))
      refuse(where, "not a TOML array: " + fault->why);
    const document::Tree tree({where, ExitCode::usage, document::Format::toml}, std::move(root));
    if (const auto value = toml_value(key, tree.root().at("list"))) return *value;
    refuse_type(where, key, "an array of other things");
  }
  std::vector<std::string> entries;
  std::stringstream stream(text);
  for (std::string entry; std::getline(stream, entry, ',');) entries.push_back(entry);
  if (text.back() == ',') entries.emplace_back();
  return entries;
}

void collect_argument(const std::string& argument, Loaded& loaded, Assignments& out) {
  const std::string where = "argument " + quote(argument);
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) refuse(where, "a setting is written key=value, as in train.steps=100");
  const std::string name = argument.substr(0, equals), text = argument.substr(equals + 1);
  if (name.rfind("--", 0) == 0 && find_key(name.substr(2)))
    refuse(where, "settings are written without dashes: " + argument.substr(2, 80));
  if (name == source_tables_key) {
    const document::Tree tree = parse_toml("data.sources = " + text, where);
    loaded.config.stated.names.insert("data.paths");
    return add_sources(tree.root().at("data").at("sources"), out);
  }
  const Key* key = find_key(name);
  if (!key) refuse_unknown(where, name);
  loaded.config.stated.names.insert(name);
  loaded.places.erase(name);
  std::optional<Value> value;
  switch (key->type) {
    case KeyType::integer:
      if (const auto number = whole_number(text);
          number && (takes_letters(*key) || std::isdigit(static_cast<unsigned char>(text.back())) != 0))
        value = Value(*number);
      break;
    case KeyType::number:
      if (const auto number = real_number(text)) value = Value(*number);
      break;
    case KeyType::list:
      value = parse_list(*key, text, where);
      break;
    case KeyType::text:
    case KeyType::choice:
      value = Value(text);
      break;
  }
  if (!value) refuse_type(where, *key, quote(text));
  if (const double* number = std::get_if<double>(&*value); number && !std::isfinite(*number))
    refuse(where, key->name + " must be a finite number");
  out.insert_or_assign(name, Given{*value, where});
}

void collect(const std::vector<std::string>& overrides, Loaded& loaded, Assignments& out) {
  for (const std::string& argument : overrides) {
    const std::string name = argument.substr(0, argument.find('='));
    if (loaded.faults.gather([&] { collect_argument(argument, loaded, out); }))
      loaded.wrong.erase(name);  // the recipe's, which is overridden; it stays a mistake
    else
      loaded.wrong.insert(name);
  }
}

// --- putting together ---

std::string choice_hint(const Key& key, const Value& value) {
  if (key.type != KeyType::choice) return "";
  const auto guess = nearest(std::get<std::string>(value), key.choices);
  return guess ? "; did you mean \"" + *guess + "\"?" : "";
}

/// Into the settings, which then state them.
void assign(const Assignments& given, Loaded& loaded) {
  for (const auto& setting : given) {
    const Key& key = *find_key(setting.first);
    const Given& each = setting.second;
    const bool taken = loaded.faults.gather([&] {
      try {
        key.set(loaded.config, each.value);
      } catch (const SpecError& error) {
        refuse(each.where, error.what() + choice_hint(key, each.value));
      }
    });
    if (!taken) loaded.wrong.insert(key.name);
  }
}

/// Where `asked` has one of two settings that say the same, what was said of the other is past.
void forget_alternatives(const Assignments& asked, RunConfig& config) {
  static const RunConfig defaults;
  for (const Key& key : keys()) {
    if (!asked.contains(key.alternative) || asked.contains(key.name)) continue;
    if (key.derived.empty()) key.set(config, key.get(defaults));
    config.stated.names.erase(key.name);
  }
}

/// Whether `text` has the setting `name` as a word.
bool names(std::string_view text, std::string_view name) {
  const auto is_of_a_name = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1))
    if (!is_of_a_name(at - 1) && !is_of_a_name(at + name.size())) return true;
  return false;
}

/// Where those settings come from that the refusal of a change names.
std::string origins(const std::string& refusal, const Assignments& asked, const RunConfig& then) {
  std::string text;
  for (const Key& key : keys()) {
    if (refusal.find(key.name + " = ") == std::string::npos) continue;
    if (const auto change = asked.find(key.name); change != asked.end())
      text += "; " + key.name + " comes from " + change->second.where;
    else if (then.stated.names.contains(key.name))
      text +=
          "; " + key.name + " = " + shown(key.get(then)) + " was stated when the run began: change it, too";
  }
  return text;
}

/// A word without "=" is taken for a recipe: it may have been meant as a setting.
[[noreturn]] void refuse_recipe(const std::string& recipe, const std::string& why) {
  const bool setting = find_key(recipe) != nullptr;
  const std::string shown = recipe.size() <= 200 ? recipe : recipe.substr(0, 200) + "...";
  refuse(shown, "cannot read this recipe: " + why +
                    (setting ? "; a setting is written " + recipe + "=VALUE"
                             : "; give the path of a TOML file, or settings as key=value"));
}

/// Of a model's file no word is a setting.
void refuse_model_file(std::string_view text, const std::string& recipe) {
  document::Node node;
  if (read_toml(text, node)) return;
  const document::Tree tree({recipe, ExitCode::usage, document::Format::toml}, std::move(node));
  const auto has = [&](const char* name, Kind kind) {
    const auto found = tree.root().find(name);
    return found && found->is(kind);
  };
  if (has("family", Kind::text) && has("vocab", Kind::integer) && has("layers", Kind::integer))
    refuse(recipe, "is a model's file, and no recipe; `assay train model.name=" + shell_word(recipe) +
                       "` trains that model");
}

}  // namespace

bool counts_ranks(const std::string& name) {
  constexpr std::string_view names[] = {"gpus",  "num_gpus",   "n_gpus",  "ngpus",         "nproc_per_node",
                                        "nproc", "world_size", "devices", "num_processes", "ranks"};
  return std::ranges::find(names, name.substr(name.rfind('.') + 1)) != std::end(names);
}

std::optional<std::string> key_called(const std::string& name) {
  // Of nanoGPT, Megatron-LM, torchtitan, DeepSpeed, Hugging Face and common command lines.
  static const std::map<std::string_view, std::string_view> elsewhere = {
      {"o", "run.directory"},
      {"out", "run.directory"},
      {"output", "run.directory"},
      {"out_dir", "run.directory"},
      {"output_dir", "run.directory"},
      {"dir", "run.directory"},
      {"model", "model.name"},
      {"model_path", "model.name"},
      {"model_name_or_path", "model.name"},
      {"dataset", "data.paths"},
      {"dataset_path", "data.paths"},
      {"data_path", "data.paths"},
      {"batch_size", "batch.sequences"},
      {"global_batch_size", "batch.sequences"},
      {"global_batch", "batch.sequences"},
      {"global", "batch.sequences"},
      {"train_batch_size", "batch.sequences"},
      {"micro_batch", "batch.micro"},
      {"micro_batch_size", "batch.micro"},
      {"local_batch_size", "batch.micro"},
      {"per_device_train_batch_size", "batch.micro"},
      {"train_micro_batch_size_per_gpu", "batch.micro"},
      {"gradient_accumulation_steps", "batch.micro"},
      {"gradient_accumulation", "batch.micro"},
      {"accumulation", "batch.micro"},
      {"accumulation_steps", "batch.micro"},
      {"grad_accum_steps", "batch.micro"},
      {"seq", "batch.sequence_length"},
      {"seq_len", "batch.sequence_length"},
      {"seq_length", "batch.sequence_length"},
      {"max_seq_len", "batch.sequence_length"},
      {"block_size", "batch.sequence_length"},
      {"context_length", "batch.sequence_length"},
      {"iters", "train.steps"},
      {"max_iters", "train.steps"},
      {"train_iters", "train.steps"},
      {"max_steps", "train.steps"},
      {"num_steps", "train.steps"},
      {"total_steps", "train.steps"},
      {"training_steps", "train.steps"},
      {"iterations", "train.steps"},
      {"max_lr", "optimizer.learning_rate"},
      {"min_lr", "schedule.final_ratio"},
      {"warmup", "schedule.warmup_steps"},
      {"warmup_iters", "schedule.warmup_steps"},
      {"lr_warmup_iters", "schedule.warmup_steps"},
      {"lr_decay_iters", "schedule.decay_steps"},
      {"lr_scheduler_type", "schedule.kind"},
      {"lr_decay_style", "schedule.kind"},
      {"grad_clip", "optimizer.clip"},
      {"clip_grad", "optimizer.clip"},
      {"max_norm", "optimizer.clip"},
      {"max_grad_norm", "optimizer.clip"},
      {"dtype", "compute.dtype"},
      {"torch_dtype", "compute.dtype"},
      {"precision", "compute.dtype"},
      {"mixed_precision", "compute.dtype"},
      {"fp8", "compute.linear"},
      {"attn_implementation", "compute.attention"},
      {"attention_backend", "compute.attention"},
      {"activation_checkpointing", "memory.recompute"},
      {"gradient_checkpointing", "memory.recompute"},
      {"recompute_granularity", "memory.recompute"},
      {"tp", "parallel.tensor"},
      {"tp_size", "parallel.tensor"},
      {"tensor_parallel", "parallel.tensor"},
      {"tensor_parallel_size", "parallel.tensor"},
      {"tensor_parallel_degree", "parallel.tensor"},
      {"tensor_model_parallel_size", "parallel.tensor"},
      {"ep", "parallel.expert"},
      {"ep_size", "parallel.expert"},
      {"expert_parallel", "parallel.expert"},
      {"expert_parallel_size", "parallel.expert"},
      {"expert_model_parallel_size", "parallel.expert"},
      {"dp", "parallel.data"},
      {"fsdp", "parallel.data"},
      {"zero", "parallel.data"},
      {"zero_stage", "parallel.data"},
      {"sharding_strategy", "parallel.data"},
      {"dp_shard", "parallel.shard_ranks"},
      {"data_parallel_shard_degree", "parallel.shard_ranks"},
      {"save_steps", "checkpoint.every"},
      {"save_interval", "checkpoint.every"},
      {"ckpt_interval", "checkpoint.every"},
      {"resume_from_checkpoint", "checkpoint.resume"},
      {"logging_steps", "log.every"},
      {"log_interval", "log.every"}};
  const std::string word = name.substr(name.rfind('.') + 1);
  // First, since two of ours end in "dtype", and others mean that of the computation.
  if (const auto known = elsewhere.find(word); known != elsewhere.end()) return std::string(known->second);
  for (const Key& key : keys())
    if (word == key.name.substr(key.name.find('.') + 1)) return key.name;
  return std::nullopt;
}

// People remember the last word best.
std::optional<std::string> nearest_key(const std::string& name) {
  if (auto called = key_called(name)) return called;
  std::vector<std::string> full, last;
  for (const Key& key : keys()) {
    full.push_back(key.name);
    last.push_back(key.name.substr(key.name.find('.') + 1));
  }
  // "optimizer.lr" finds optimizer.learning_rate.
  const std::string given = name.substr(name.rfind('.') + 1);
  for (const Key& key : keys())
    if (!given.empty() && initials(key.name) == given) return key.name;
  const auto word = nearest(given, last);
  auto whole = nearest(name, full);
  if (!word || (whole && name.find('.') != std::string::npos)) return whole;
  for (std::size_t i = 0; i < last.size(); ++i)
    if (last[i] == *word) return full[i];
  return whole;
}

void Loaded::gather(const std::function<void()>& check) {
  Faults found;
  found.gather(check);
  for (const std::string& message : found.messages()) {
    if (std::ranges::any_of(wrong, [&](const std::string& name) { return names(message, name); })) continue;
    const auto place =
        std::ranges::find_if(places, [&](const auto& each) { return names(message, each.first); });
    faults.gather([&] {
      throw UserError(ExitCode::usage, (place == places.end() ? "" : place->second + ": ") + message);
    });
  }
}

namespace {
Loaded load_from(std::string_view toml, const std::string& origin,
                 const std::vector<std::string>& overrides) {
  Loaded loaded;
  Assignments given, asked;
  collect(parse_toml(toml, origin).root(), "", WrittenBy::person, loaded, given);
  collect(overrides, loaded, asked);
  for (const auto& [name, each] : asked) given.erase(name);
  assign(given, loaded);
  forget_alternatives(asked, loaded.config);
  assign(asked, loaded);
  loaded.gather([&] { follow(loaded.config); });
  loaded.gather([&] { check(loaded.config); });
  loaded.gather([&] { check_reached(loaded.config); });
  return loaded;
}
}  // namespace

RunConfig load_text(std::string_view toml, const std::string& origin,
                    const std::vector<std::string>& overrides) {
  const Loaded loaded = load_from(toml, origin, overrides);
  loaded.faults.refuse();
  return loaded.config;
}

RunConfig load_dump(std::string_view toml, const std::string& origin,
                    const std::vector<std::string>& overrides,
                    const std::optional<std::vector<std::string>>& derived) {
  Loaded loaded;
  Assignments given, asked;
  collect(parse_toml(toml, origin).root(), "", WrittenBy::run, loaded, given);
  assign(given, loaded);
  loaded.gather([&] { follow(loaded.config); });
  loaded.gather([&] { check(loaded.config); });
  loaded.faults.refuse();
  RunConfig& config = loaded.config;
  for (const Key& key : keys())
    if (derived ? std::ranges::count(*derived, key.name) > 0 : key.follows(config) == key.get(config))
      config.stated.names.erase(key.name);
  if (overrides.empty()) return config;

  RunConfig then = config;
  collect(overrides, loaded, asked);
  forget_alternatives(asked, then);
  forget_alternatives(asked, config);
  assign(asked, loaded);
  loaded.faults.refuse();
  follow(config, then);
  Faults broken;
  broken.gather([&] { check(config); });
  if (asked.contains("profile.steps") || asked.contains("batch.ramp"))
    broken.gather([&] { check_reached(config); });
  for (const std::string& message : broken.messages())
    loaded.faults.gather([&] { refuse(origin, message + origins(message, asked, then)); });
  loaded.faults.refuse();
  return config;
}

Loaded load_all(const std::string& recipe, const std::vector<std::string>& overrides) {
  Loaded loaded;
  loaded.faults.gather([&] {
    std::string text;
    try {
      if (!recipe.empty()) text = read_file(recipe, file_limits::recipe);
    } catch (const FileFault& fault) {
      refuse_recipe(recipe, fault.kind() == FileFault::Kind::missing ? "there is no such file" : fault.why());
    }
    refuse_model_file(text, recipe);
    loaded = load_from(text, recipe, overrides);
  });
  return loaded;
}

RunConfig load(const std::string& recipe, const std::vector<std::string>& overrides) {
  const Loaded loaded = load_all(recipe, overrides);
  loaded.faults.refuse();
  return loaded.config;
}

}  // namespace assay::spec
