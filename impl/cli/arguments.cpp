#include "impl/cli/arguments.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/text/amount.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw UserError(ExitCode::usage, message); }

/// "--json", or "-o, --output FILE" as people type it.
std::string typed(const Option& option) { return "--" + option.name; }

/// Refuses an option that `assay train` does not have: most are settings, which it takes without dashes.
[[noreturn]] void refuse_of_train(const std::string& word, const std::string& name, const std::string& value,
                                  const std::optional<std::string>& option) {
  const std::string head = "unknown option " + spec::quote(word) + " of `assay train`; ";
  const auto shown = [&](const char* otherwise) {
    return value.empty() ? otherwise : value.substr(0, 80) + (value.size() > 80 ? "..." : "");
  };
  std::string plain = name;
  std::replace(plain.begin(), plain.end(), '-', '_');
  if (plain == "n" || plain == "np" || spec::counts_ranks(plain))
    refuse(head + "the number of ranks is given as --ranks " + shown("N"));
  if (plain == "c" || plain == "config" || plain == "recipe")
    refuse(head + "a recipe is given by its path alone, as in `assay train " + shown("recipe.toml") + "`");
  auto key = spec::key_called(plain);
  if (!key && option) refuse(head + "did you mean \"" + *option + "\"?");
  if (!key) key = spec::nearest_key(plain);
  if (key) refuse(head + "settings are written without dashes: " + *key + "=" + shown("VALUE"));
  refuse(head + "`assay help train` lists its options, `assay config` every setting");
}

/// The option `word`. `value` is what follows it, for the hint.
const Option& option_named(const std::string& word, const std::string& value,
                           const std::vector<Option>& options, const std::string& verb) {
  const bool is_long = word.rfind("--", 0) == 0;
  const std::string name = word.substr(is_long ? 2 : 1);
  std::vector<std::string> known;
  for (const Option& option : options) {
    if (name == (is_long ? option.name : option.letter)) return option;
    known.push_back(typed(option));
  }
  if (spec::find_key(name))
    refuse(spec::quote(word) + ": settings are written without dashes, as in " + name + "=VALUE");
  const auto guess = spec::nearest("--" + name.substr(0, 80), known);
  if (verb == "train") refuse_of_train(word, name, value, guess);
  refuse("unknown option " + spec::quote(word) + " of `assay " + verb + "`" +
         (guess ? "; did you mean \"" + *guess + "\"?" : ";") + " `assay help " + verb +
         "` lists its options");
}

}  // namespace

std::vector<std::string> Arguments::values(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::vector<std::string>() : found->second;
}

std::string Arguments::value(const std::string& name, const std::string& otherwise) const {
  if (!has(name)) return otherwise;
  std::string all;
  for (const std::string& each : options.at(name)) all += (&each == &options.at(name)[0] ? "" : ",") + each;
  return all;
}

std::vector<std::string> Arguments::words() const {
  std::vector<std::string> all;
  for (const auto& [name, values] : options) {
    if (values.empty()) all.push_back("--" + name);
    for (const std::string& value : values) all.push_back("--" + name + "=" + value);
  }
  return all;
}

spec::RunConfig computing(const Arguments& arguments) {
  std::vector<std::string> settings;
  for (const char* name : {"dtype", "device"})
    if (arguments.has(name))
      settings.push_back(std::string("compute.") + name + "=" + arguments.value(name, ""));
  return spec::load("", settings);
}

std::int64_t Arguments::positive(const std::string& name, std::int64_t otherwise) const {
  if (!has(name)) return otherwise;
  const std::string text = value(name, "");
  const auto number = spec::whole_number(text);
  if (!number && !text.empty() && text.find_first_not_of("0123456789") == std::string::npos)
    refuse("--" + name + " must be at most " + std::to_string(std::numeric_limits<std::int64_t>::max()) +
           ", not " + spec::quote(text));
  if (!number || *number < 1) refuse("--" + name + " must be an integer >= 1, not " + spec::quote(text));
  return *number;
}

Arguments clear_ones(const std::vector<std::string>& words, const std::vector<Option>& options) {
  Arguments out;
  const auto end = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != end; ++word) {
    const std::size_t equals = word->find('=');
    const auto option = std::find_if(options.begin(), options.end(), [&](const Option& o) {
      return word->substr(0, equals) == "--" + o.name && !o.value.empty();
    });
    if (option == options.end())
      out.positional.push_back(*word);
    else if (equals != std::string::npos)
      out.options[option->name] = {word->substr(equals + 1)};
    else if (word + 1 != end)
      out.options[option->name] = {*++word};
  }
  if (end != words.end()) out.positional.insert(out.positional.end(), end + 1, words.end());
  return out;
}

void refuse_repeats(const std::vector<std::string>& paths) {
  std::map<std::filesystem::path, std::string> seen;
  for (const std::string& path : paths) {
    std::error_code error;
    std::filesystem::path folder = std::filesystem::canonical(path, error);
    if (error) continue;  // whoever reads it says why it cannot
    if (folder.filename() == "run.jsonl") folder = folder.parent_path();
    const auto [first, fresh] = seen.emplace(folder, path);
    if (!fresh)
      refuse(spec::quote(path) + (first->second == path ? "" : " and " + spec::quote(first->second)) +
             (first->second == path ? " is given twice" : " are one file") + "; give each once");
  }
}

Arguments parse(const std::vector<std::string>& words, const std::vector<Option>& options,
                const std::string& verb) {
  Arguments out;
  bool options_ended = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (options_ended || word.size() < 2 || word[0] != '-') {
      out.positional.push_back(word);
      continue;
    }
    if (word == "--") {
      options_ended = true;
      continue;
    }
    const std::size_t equals = word.find('=');
    const bool attached = equals != std::string::npos;
    const std::string follows = attached ? word.substr(equals + 1) : i + 1 < words.size() ? words[i + 1] : "";
    const std::string name = word.substr(0, equals);
    const Option& option = option_named(name, follows, options, verb);
    if (attached && option.value.empty()) refuse("the option \"" + typed(option) + "\" takes no value");
    if (!attached && !option.value.empty() && ++i == words.size())
      refuse("the option \"" + typed(option) + "\" needs a value: " + option.value);
    std::vector<std::string>& values = out.options[option.name];
    if (option.value.empty()) continue;
    if (!values.empty() && !option.list && values[0] != follows)
      refuse("the option \"" + typed(option) + "\" is given as " + spec::quote(values[0]) + " and as " +
             spec::quote(follows) + "; give it once");
    if (values.empty() || option.list) values.push_back(follows);
  }
  return out;
}

}  // namespace assay::impl::cli
