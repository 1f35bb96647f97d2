#include <algorithm>

#include "impl/cli/verb.hpp"
#include "spec/config/dump.hpp"
#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/text/json.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

using spec::json_string;

std::string default_text(const spec::Key& key) {
  return key.derived.empty() ? spec::toml_literal(key.get(spec::RunConfig())) : key.derived;
}

std::string json_entry(const spec::Key& key) {
  std::string choices;
  for (const std::string& choice : key.choices) choices += (choices.empty() ? "" : ",") + json_string(choice);
  return "{\"key\":" + json_string(key.name) + ",\"type\":" + json_string(spec::type_name(key.type)) +
         ",\"default\":" + json_string(default_text(key)) + ",\"unit\":" + json_string(key.unit) +
         ",\"range\":" + json_string(key.range) + ",\"choices\":[" + choices + "]" +
         ",\"meaning\":" + json_string(key.meaning) + ",\"condition\":" + json_string(key.condition) + "}";
}

std::vector<const spec::Key*> selected(const std::string& prefix) {
  std::vector<const spec::Key*> out;
  std::vector<std::string> names;
  for (const spec::Key& key : spec::keys()) {
    names.push_back(key.name);
    names.push_back(key.name.substr(0, key.name.find('.')));
    if (key.name.rfind(prefix, 0) == 0) out.push_back(&key);
  }
  if (!out.empty()) return out;
  const auto guess = spec::nearest(prefix, names);
  throw UserError(ExitCode::usage, "no setting starts with " + spec::quote(prefix) +
                                       (guess ? "; did you mean \"" + *guess + "\"?" : ";") +
                                       " `assay config` lists every setting");
}

}  // namespace

int config(const Arguments& arguments, Streams streams) {
  if (arguments.positional.size() > 1)
    throw UserError(ExitCode::usage, "`assay config` takes one PREFIX at most");
  if (arguments.has("markdown")) {
    streams.out << spec::keys_markdown();
    return 0;
  }
  const auto keys = selected(arguments.positional.empty() ? "" : arguments.positional[0]);
  if (arguments.has("json")) {
    for (const spec::Key* key : keys) streams.out << (key == keys.front() ? "[" : ",\n ") << json_entry(*key);
    streams.out << "]\n";
    return 0;
  }
  std::size_t width = 0;
  for (const spec::Key* key : keys) width = std::max(width, key->name.size() + default_text(*key).size());
  for (const spec::Key* key : keys) {
    const std::string head = key->name + " = " + default_text(*key);
    streams.out << head << std::string(width + 5 - head.size(), ' ') << key->meaning
                << (key->unit.empty() ? "" : " " + key->unit) << (key->range.empty() ? "" : "; " + key->range)
                << (key->condition.empty() ? "" : "; read when " + key->condition) << "\n";
  }
  return 0;
}

}  // namespace assay::impl::cli
