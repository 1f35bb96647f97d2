#include "spec/record/read.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <system_error>

#include "spec/error.hpp"
#include "spec/record/fields.hpp"
#include "spec/text/file.hpp"
#include "spec/text/json.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::record {
namespace {

using document::Item;
using document::Kind;

[[noreturn]] void refuse(const std::string& where, const std::string& message) {
  throw UserError(ExitCode::bad_data, where + ": " + message);
}

std::string inner(Item item, const char* name) {
  const std::string path = item.path();
  return path.empty() ? name : path + "." + name;
}

/// Refuses the first member that is not among `known`.
void refuse_unknown(Item object, const std::vector<std::string>& known) {
  for (std::size_t i = 0; i < object.size(); ++i)
    if (std::find(known.begin(), known.end(), object.key(i)) == known.end())
      object.refuse("unknown field " + quote(inner(object, object.key(i).c_str())));
}

/// A class, so that the overloads find each other whatever their order.
struct Reader {
  static void read(Item item, bool& flag) { flag = item.boolean(); }
  static void read(Item item, std::int64_t& number) { number = item.integer(); }
  static void read(Item item, std::string& text) { text = item.text(); }
  static void read(Item item, double& number) {
    if (item.is(Kind::integer) || item.is(Kind::real)) {
      number = item.real();
      return;
    }
    const std::string word = item.is(Kind::text) ? item.text() : "";
    if (word == "nan")
      number = std::numeric_limits<double>::quiet_NaN();
    else if (word == "inf" || word == "-inf")
      number = (word == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
    else
      item.wrong("a number, \"nan\", \"inf\" or \"-inf\"");
  }
  static void read(Item item, EndReason& reason) {
    for (int i = 0; i < 4; ++i) {
      if (item.is(Kind::text) && item.text() == kEndReasons[i]) {
        reason = static_cast<EndReason>(i);
        return;
      }
    }
    item.wrong("one of \"done\", \"saved\", \"non_finite\", \"error\"");
  }
  template <class T>
  static void read(Item item, std::vector<T>& entries) {
    if (!item.is(Kind::list)) item.wrong("an array");
    for (std::size_t i = 0; i < item.size(); ++i) read(item[i], entries.emplace_back());
  }
  static void read(Item item, Value& value) {
    switch (item.kind()) {
      case Kind::integer:
        value = item.integer();
        break;
      case Kind::real:
        value = item.real();
        break;
      case Kind::text:
        value = item.text();
        break;
      default:
        read(item, value.emplace<std::vector<std::string>>());
    }
  }
  static void read(Item item, Settings& settings) {
    if (!item.is(Kind::object)) item.wrong("an object");
    for (std::size_t i = 0; i < item.size(); ++i)
      read(item[i], settings.emplace_back(item.key(i), Value()).second);
  }
  template <class T>
  static void read(Item item, std::optional<T>& value) {
    read(item, value.emplace());
  }
  template <class T>
  requires requires(T& object) {
    fields(object, [](const char*, auto&) {});
  }
  static void read(Item item, T& object) { members(item, object); }

  /// Reads every field of `object`; `ignored` is a member that is not one of them ("event" of the outermost).
  template <class T>
  static void members(Item item, T& object, const std::string& ignored = "") {
    std::size_t used = ignored.empty() ? 0 : 1;
    fields(object, [&](const char* name, auto& member) {
      if (const auto found = item.find(name)) {
        ++used;
        read(*found, member);
      } else if (!is_optional<std::remove_cvref_t<decltype(member)>>::value) {
        item.refuse("the field " + quote(inner(item, name)) + " is missing");
      }
    });
    if (used == item.size()) return;
    std::vector<std::string> known = {ignored};
    fields(object, [&](const char* name, auto&) { known.emplace_back(name); });
    refuse_unknown(item, known);
  }
};

template <std::size_t I = 0>
Event read_as(std::size_t index, Item item) {
  if constexpr (I < std::variant_size_v<Event>) {
    if (index != I) return read_as<I + 1>(index, item);
    std::variant_alternative_t<I, Event> event;
    Reader::members(item, event, "event");
    return event;
  } else {
    return {};
  }
}

std::size_t event_index(Item item) {
  const auto name = item.find("event");
  if (!name || !name->is(Kind::text)) item.refuse("the line has no \"event\" that names its kind");
  for (std::size_t i = 0; i < event_names().size(); ++i)
    if (event_names()[i] == name->text()) return i;
  const auto guess = nearest(name->text(), event_names());
  item.refuse("unknown event " + quote(name->text()) + (guess ? "; did you mean \"" + *guess + "\"?" : ""));
}

Event event_of(document::Node line, const std::string& where) {
  const document::Tree tree({where}, std::move(line));
  const Item item = tree.root();
  if (!item.is(Kind::object)) item.refuse("the line is not a JSON object");
  const std::size_t index = event_index(item);
  // The version is judged first: fields of another version would only give misleading messages.
  if (event_names()[index] == "run_start")
    if (const auto schema = item.find("schema"); schema && schema->integer() != kSchema)
      item.refuse("the record has schema " + schema->shown() + ", this program reads schema " +
                  std::to_string(kSchema) + "; use the version of assay that wrote it");
  return read_as(index, item);
}

/// Nearly all lines of a record are steps, as this program wrote them. Such a line is read from its begin to
/// its end without a tree of it, in a tenth of the time. Whatever is written in another way (another order, a
/// text with escapes, no number where one belongs) is left to `event_of`, which says what is wrong with it.
class AsWritten {
 public:
  explicit AsWritten(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  std::optional<Step> step() {
    Step out;
    if (take("{") && key("event") && take("\"step\"") && members(out, false) && at_ == end_) return out;
    return std::nullopt;
  }

 private:
  void blanks() {
    while (at_ != end_ && *at_ == ' ') ++at_;
  }
  bool bytes(std::string_view text) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  /// Blanks may follow.
  bool take(std::string_view text) {
    if (!bytes(text)) return false;
    blanks();
    return true;
  }
  bool key(std::string_view name) {
    const char* const before = at_;
    if (bytes("\"") && bytes(name) && take("\"") && take(":")) return true;
    at_ = before;
    return false;
  }
  /// The members of an object, its end, but not its begin.
  template <class T>
  bool members(T& object, bool first) {
    bool all = true;
    fields(object, [&](const char* name, auto& member) {
      const char* const before = at_;
      if (all && (first || take(",")) && key(name)) {
        first = false;
        all = value(member);
      } else {
        at_ = before;
        all = all && is_optional<std::remove_cvref_t<decltype(member)>>::value;
      }
    });
    return all && take("}");
  }
  /// from_chars takes "01", "1." and "inf", which JSON has not.
  template <class Number>
  bool number(Number& out) {
    const char* digits = at_;
    if (digits != end_ && *digits == '-') ++digits;
    if (digits == end_ || *digits < '0' || *digits > '9') return false;
    if (*digits == '0' && digits + 1 != end_ && digits[1] >= '0' && digits[1] <= '9') return false;
    const auto [stop, error] = std::from_chars(at_, end_, out);
    const std::string_view token(at_, static_cast<std::size_t>(stop - at_));
    const std::size_t point = token.find('.');
    if (error != std::errc() || (point != token.npos && (point + 1 == token.size() ||
                                                         token[point + 1] == 'e' || token[point + 1] == 'E')))
      return false;
    at_ = stop;
    blanks();
    return true;
  }
  bool value(std::int64_t& out) { return number(out); }
  bool value(double& out) { return number(out); }
  bool value(std::string& out) {
    if (at_ == end_ || *at_ != '"') return false;
    const char* const begin = ++at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\' && *at_ >= ' ' && *at_ <= '~') ++at_;
    out.assign(begin, at_);
    return take("\"");
  }
  template <class T>
  bool value(std::optional<T>& out) {
    return value(out.emplace());
  }
  template <class T>
  bool value(std::vector<T>& out) {
    if (!take("[")) return false;
    if (take("]")) return true;
    do
      if (!value(out.emplace_back())) return false;
    while (take(","));
    return take("]");
  }
  template <class T>
  requires requires(T& object) {
    fields(object, [](const char*, auto&) {});
  }
  bool value(T& object) { return take("{") && members(object, true); }

  const char *at_, *end_;
};

}  // namespace

namespace {

/// The next line, held to a length that no event reaches (a start on 10,000 ranks has 1 MB): a file without
/// line ends must not fill the memory. False at the end.
bool next_line(std::istream& in, const std::string& where, std::string& line) {
  constexpr std::size_t longest = 64 << 20;
  char block[1 << 14];
  line.clear();
  for (;;) {
    in.getline(block, sizeof block);
    const auto got = static_cast<std::size_t>(in.gcount());
    if (in.bad()) return false;
    const bool more = in.fail() && got + 1 == sizeof block;  // the block is full, the line is not over
    if (!more) {
      if (in.fail() && line.empty()) return false;
      line.append(block, in.eof() ? got : got - 1);  // without the line's end
      return true;
    }
    in.clear();
    line.append(block, got);
    if (line.size() > longest)
      refuse(where,
             "the line is longer than 64 MiB, so this is no record; give a run's folder or its run.jsonl");
  }
}

}  // namespace

Event from_json(std::string_view line, const std::string& where) {
  if (auto step = AsWritten(line).step()) return *std::move(step);
  document::Node node;
  if (const auto fault = read_json(line, node)) document::Source{where}.refuse(*fault);
  return event_of(std::move(node), where);
}

std::vector<Event> read_events(std::istream& in, const std::string& origin) {
  std::vector<Event> events;
  std::string line;
  for (std::int64_t number = 1;; ++number) {
    const std::string where = origin + ":" + std::to_string(number);
    if (!next_line(in, where, line)) break;
    if (auto step = AsWritten(line).step(); step && !events.empty()) {
      events.emplace_back(*std::move(step));
      continue;
    }
    document::Node node;
    if (const auto fault = read_json(line, node)) {
      const bool cut_off = in.eof() && !events.empty();
      if (cut_off) break;
      document::Source{where}.refuse(*fault);
    }
    events.push_back(event_of(std::move(node), where));
    if (events.size() == 1 && !std::holds_alternative<RunStart>(events[0]))
      refuse(where, "a record starts with a run_start event, this one with " + event_name(events[0]));
  }
  if (in.bad()) throw UserError(ExitCode::io, origin + ": cannot be read to its end; is its disk in order?");
  if (events.empty()) refuse(origin, "the record is empty");
  return events;
}

std::vector<Event> read_events(const std::string& file_or_folder) {
  std::error_code unreadable;  // then it cannot be opened either
  const bool folder = std::filesystem::is_directory(file_or_folder, unreadable);
  const std::string path =
      folder ? (std::filesystem::path(file_or_folder) / "run.jsonl").string() : file_or_folder;
  try {
    FileStream file(path, Behind::stream);
    return read_events(file, path);
  } catch (const FileFault& fault) {
    throw UserError(ExitCode::io, path + ": cannot open this record: " + fault.why() +
                                      "; give a run's folder or its run.jsonl");
  }
}

}  // namespace assay::spec::record
