#include "spec/record/read.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "spec/error.hpp"
#include "spec/record/fields.hpp"
#include "spec/text/nearest.hpp"

namespace assay::spec::record {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& where, const std::string& message) {
  throw UserError(ExitCode::bad_data, where + ": " + message);
}

class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  /// Reads every field of `object`; `ignored` is a member that is not one of them ("event" of the outermost).
  template <class T>
  void members(const Json& json, const std::string& path, T& object, const std::string& ignored = "") {
    if (!json.is_object()) wrong(path, "an object", json);
    std::size_t used = ignored.empty() ? 0 : 1;
    std::vector<std::string> known;
    fields(object, [&](const char* name, auto& member) {
      known.emplace_back(name);
      const std::string inner = path.empty() ? name : path + "." + name;
      const auto found = json.find(name);
      if (found != json.end()) {
        ++used;
        read(*found, inner, member);
      } else if (!is_optional<std::remove_cvref_t<decltype(member)>>::value) {
        refuse(where_, "the field \"" + inner + "\" is missing");
      }
    });
    if (used == json.size()) return;
    for (const auto& [name, content] : json.items()) {
      if (name != ignored && std::find(known.begin(), known.end(), name) == known.end())
        refuse(where_, "unknown field \"" + (path.empty() ? name : path + "." + name) + "\"");
    }
  }

 private:
  [[noreturn]] void wrong(const std::string& path, const std::string& expected, const Json& found) {
    refuse(where_, "\"" + path + "\" must be " + expected + ", not " +
                       found.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60));
  }

  void read(const Json& json, const std::string& path, bool& flag) {
    if (!json.is_boolean()) wrong(path, "true or false", json);
    flag = json.get<bool>();
  }
  void read(const Json& json, const std::string& path, std::int64_t& number) {
    const bool fits = json.is_number_integer() &&
                      !(json.is_number_unsigned() &&
                        json.get<std::uint64_t>() > std::uint64_t(std::numeric_limits<std::int64_t>::max()));
    if (!fits) wrong(path, "a 64-bit integer", json);
    number = json.get<std::int64_t>();
  }
  void read(const Json& json, const std::string& path, double& number) {
    if (json.is_number()) {
      number = json.get<double>();
      return;
    }
    const std::string word = json.is_string() ? json.get<std::string>() : "";
    if (word == "nan")
      number = std::numeric_limits<double>::quiet_NaN();
    else if (word == "inf" || word == "-inf")
      number = (word == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
    else
      wrong(path, "a number, \"nan\", \"inf\" or \"-inf\"", json);
  }
  void read(const Json& json, const std::string& path, std::string& text) {
    if (!json.is_string()) wrong(path, "a text", json);
    text = json.get<std::string>();
  }
  void read(const Json& json, const std::string& path, EndReason& reason) {
    for (int i = 0; i < 4; ++i) {
      if (json.is_string() && json.get<std::string>() == kEndReasons[i]) {
        reason = static_cast<EndReason>(i);
        return;
      }
    }
    wrong(path, "one of \"done\", \"saved\", \"non_finite\", \"error\"", json);
  }
  void read(const Json& json, const std::string& path, Value& value) {
    if (json.is_number_integer()) {
      std::int64_t number = 0;
      read(json, path, number);
      value = number;
    } else if (json.is_number()) {
      value = json.get<double>();
    } else if (json.is_string()) {
      value = json.get<std::string>();
    } else {
      std::vector<std::string> entries;
      read(json, path, entries);
      value = entries;
    }
  }
  void read(const Json& json, const std::string& path, Settings& settings) {
    if (!json.is_object()) wrong(path, "an object", json);
    for (const auto& [name, content] : json.items()) {
      settings.emplace_back(name, Value());
      read(content, path + "." + name, settings.back().second);
    }
  }
  template <class T>
  void read(const Json& json, const std::string& path, std::vector<T>& entries) {
    if (!json.is_array()) wrong(path, "a list", json);
    for (std::size_t i = 0; i < json.size(); ++i) {
      entries.emplace_back();
      read(json[i], path + "[" + std::to_string(i) + "]", entries.back());
    }
  }
  template <class T>
  void read(const Json& json, const std::string& path, std::optional<T>& value) {
    read(json, path, value.emplace());
  }
  template <class T>
  requires requires(T& object) {
    fields(object, [](const char*, auto&) {});
  }
  void read(const Json& json, const std::string& path, T& object) { members(json, path, object); }

  std::string where_;
};

template <std::size_t I = 0>
Event read_as(std::size_t index, Reader& reader, const Json& json) {
  if constexpr (I < std::variant_size_v<Event>) {
    if (index != I) return read_as<I + 1>(index, reader, json);
    std::variant_alternative_t<I, Event> event;
    reader.members(json, "", event, "event");
    return event;
  } else {
    return {};
  }
}

std::size_t event_index(const Json& json, const std::string& where) {
  const auto name = json.find("event");
  if (name == json.end() || !name->is_string())
    refuse(where, "the line has no \"event\" that names its kind");
  const std::string word = name->get<std::string>();
  for (std::size_t i = 0; i < event_names().size(); ++i)
    if (event_names()[i] == word) return i;
  const auto guess = nearest(word, event_names());
  refuse(where, "unknown event \"" + word + "\"" + (guess ? "; did you mean \"" + *guess + "\"?" : ""));
}

}  // namespace

Event from_json(std::string_view line, const std::string& where) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) refuse(where, "not valid JSON");
  if (!json.is_object()) refuse(where, "the line is not a JSON object");
  const std::size_t index = event_index(json, where);
  // The version is judged first: fields of another version would only give misleading messages.
  if (event_names()[index] == "run_start" && json.contains("schema") && json["schema"] != kSchema)
    refuse(where, "the record has schema " + json["schema"].dump().substr(0, 20) +
                      ", this program reads schema " + std::to_string(kSchema) +
                      "; use the version of assay that wrote it");
  Reader reader(where);
  return read_as(index, reader, json);
}

std::vector<Event> read_events(std::istream& in, const std::string& origin) {
  std::vector<Event> events;
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    const std::string where = origin + ":" + std::to_string(number);
    const bool cut_off = in.eof() && !Json::accept(line);
    if (cut_off && !events.empty()) break;
    events.push_back(from_json(line, where));
    if (events.size() == 1 && !std::holds_alternative<RunStart>(events[0]))
      refuse(where, "a record starts with a run_start event, this one with " + event_name(events[0]));
  }
  if (events.empty()) refuse(origin, "the record is empty");
  return events;
}

std::vector<Event> read_events(const std::string& file_or_folder) {
  const bool folder = std::filesystem::is_directory(file_or_folder);
  const std::string path =
      folder ? (std::filesystem::path(file_or_folder) / "run.jsonl").string() : file_or_folder;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw UserError(ExitCode::io, path + ": cannot open this record; give a run's folder or its run.jsonl");
  return read_events(file, path);
}

}  // namespace assay::spec::record
