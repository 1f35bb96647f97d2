#include "spec/record/read.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
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

  /// Reads every field of `object`; `ignored`: members that are none of them.
  template <class T>
  static void members(Item item, T& object, std::vector<std::string> ignored = {}) {
    std::size_t used = 0;
    for (const std::string& name : ignored) used += item.find(name) ? 1 : 0;
    fields(object, [&](const char* name, auto& member) {
      if (const auto found = item.find(name)) {
        ++used;
        read(*found, member);
      } else if (!is_optional<std::remove_cvref_t<decltype(member)>>::value) {
        item.refuse("the field " + quote(inner(item, name)) + " is missing");
      }
    });
    if (used == item.size()) return;
    fields(object, [&](const char* name, auto&) { ignored.emplace_back(name); });
    refuse_unknown(item, ignored);
  }
};

template <std::size_t I = 0>
Event read_as(std::size_t index, Item item) {
  if constexpr (I < std::variant_size_v<Event>) {
    if (index != I) return read_as<I + 1>(index, item);
    std::variant_alternative_t<I, Event> event;
    Reader::members(item, event, {"event", "chain"});
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

Event event_of(std::string_view line, const std::string& where) {
  document::Node node;
  if (const auto fault = read_json(line, node)) document::Source{where}.refuse(*fault);
  const document::Tree tree({where}, std::move(node));
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
  /// `event`: without the brace that ends it.
  explicit AsWritten(std::string_view event) : at_(event.data()), end_(event.data() + event.size()) {}

  std::optional<Step> step() {
    Step out;
    if (take('{') && key("event") && word("\"step\"") && members(out, false) && at_ == end_) return out;
    return std::nullopt;
  }

 private:
  void blanks() {
    while (at_ != end_ && *at_ == ' ') ++at_;
  }
  /// Blanks may follow, as behind what comes next.
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    blanks();
    return true;
  }
  bool word(std::string_view text) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(text)) return false;
    at_ += text.size();
    blanks();
    return true;
  }
  /// Looked for at every place where an optional one may stand: the first letter tells most apart.
  bool key(std::string_view name) {
    const std::size_t length = name.size();
    if (static_cast<std::size_t>(end_ - at_) < length + 2 || at_[0] != '"' || at_[1] != name[0] ||
        at_[length + 1] != '"' || std::memcmp(at_ + 1, name.data(), length) != 0)
      return false;
    const char* const before = at_;
    at_ += length + 2;
    blanks();
    if (take(':')) return true;
    at_ = before;
    return false;
  }
  /// The members of an object, without its begin and end.
  template <class T>
  bool members(T& object, bool first) {
    bool all = true;
    fields(object, [&](const char* name, auto& member) {
      const char* const before = at_;
      if (all && (first || take(',')) && key(name)) {
        first = false;
        all = value(member);
      } else {
        at_ = before;
        all = all && is_optional<std::remove_cvref_t<decltype(member)>>::value;
      }
    });
    return all;
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
    return take('"');
  }
  template <class T>
  bool value(std::optional<T>& out) {
    return value(out.emplace());
  }
  template <class T>
  bool value(std::vector<T>& out) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do
      if (!value(out.emplace_back())) return false;
    while (take(','));
    return take(']');
  }
  template <class T>
  requires requires(T& object) {
    fields(object, [](const char*, auto&) {});
  }
  bool value(T& object) { return take('{') && members(object, true) && take('}'); }

  const char *at_, *end_;
};

}  // namespace

Event from_json(std::string_view line, const std::string& where) {
  const LineParts parts = parts_of(line);
  if (auto step = AsWritten(parts.event).step(); step && line.size() > parts.event.size())
    return *std::move(step);
  return event_of(line, where);
}

std::optional<std::int64_t> step_in(std::string_view line) {
  constexpr std::string_view begin = "{\"event\":\"step\",\"step\":";
  if (!line.starts_with(begin)) return std::nullopt;
  line.remove_prefix(begin.size());
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  const bool ends = stop != line.data() + line.size() && *stop == ',';
  return error == std::errc() && ends ? std::optional(number) : std::nullopt;
}

namespace {

/// Reads each line, and hands its event to `take`.
class EventReader {
 public:
  EventReader(std::istream& in, const std::string& origin, Tolerance* tolerance)
      : lines_(in, origin), origin_(origin), tolerance_(tolerance) {}

  /// Where there is a `step`, it takes the numbers of steps whose lines are as this program writes them, and
  /// these are not read any further.
  void read(const std::function<void(Event&&)>& take, const std::function<void(std::int64_t)>& step = {}) {
    while (lines_.next()) {
      if (!lines_.as_written()) tell_damage();
      if (tolerance_)
        std::erase_if(tolerance_->places,
                      [&](const StatedPlace& place) { return place.hash == parts_of(lines_.text()).hash; });
      if (const auto number = step && !empty_ && lines_.ended() ? step_in(lines_.text()) : std::nullopt) {
        step(*number);
        continue;
      }
      auto event = next_event();
      if (!event) continue;
      started_ = started_ || std::holds_alternative<RunStart>(*event);
      if (std::exchange(empty_, false) && !started_) tell_no_start(*event);
      take(*std::move(event));
    }
    if (empty_) refuse(origin_, "the record is empty");
    if (!started_) refuse(origin_, "no run_start event of this record can be read");
    if (!tolerance_) return;
    for (const StatedPlace& place : tolerance_->places)
      tolerance_->damage.note("the line that " + place.by +
                              " was saved behind is missing: lines were cut out, or it is another run's "
                              "checkpoint");
  }

 private:
  /// Nothing for a line that cannot be read, or was cut off.
  std::optional<Event> next_event() try {
    return from_json(lines_.text(), lines_.where());
  } catch (const UserError& error) {
    const bool chained = lines_.chain().begun();
    document::Node node;
    // Without hashes, a last line that is no JSON is taken for one that was cut off.
    if (!chained && !lines_.ended() && !empty_ && read_json(lines_.text(), node)) return std::nullopt;
    if (!chained || !tolerance_) throw;
    if (lines_.as_written()) tolerance_->damage.note(error.what());  // otherwise said already
    return std::nullopt;
  }

  /// The first start is lost; a later one may be whole.
  void tell_no_start(const Event& first) try {
    refuse(lines_.where(), "a record starts with a run_start event, this one with " + event_name(first));
  } catch (const UserError& error) {
    if (!tolerance_ || !lines_.chain().begun()) throw;
    tolerance_->damage.note(error.what());
  }

  void tell_damage() try {
    refuse(lines_.where(),
           "record_c3: the line is not as it was written, or not behind the line that it was written behind");
  } catch (const UserError& error) {
    if (!tolerance_) throw;
    tolerance_->damage.note(error.what());
  }

  RecordLines lines_;
  const std::string origin_;
  Tolerance* const tolerance_;
  bool empty_ = true, started_ = false;
};

}  // namespace

void for_each_event_and_step(std::istream& in, const std::string& origin,
                             const std::function<void(Event&&)>& take,
                             const std::function<void(std::int64_t)>& step, Tolerance& tolerance) {
  EventReader(in, origin, &tolerance).read(take, step);
}

void for_each_event(std::istream& in, const std::string& origin, const std::function<void(Event&&)>& take,
                    Tolerance* tolerance) {
  EventReader(in, origin, tolerance).read(take);
}

std::vector<Event> read_events(std::istream& in, const std::string& origin, Tolerance* tolerance) {
  std::vector<Event> events;
  for_each_event(
      in, origin, [&](Event&& event) { events.push_back(std::move(event)); }, tolerance);
  return events;
}

std::string record_file(const std::string& file_or_folder) {
  std::error_code unreadable;  // then it cannot be opened either
  const bool folder = std::filesystem::is_directory(file_or_folder, unreadable);
  return folder ? (std::filesystem::path(file_or_folder) / "run.jsonl").string() : file_or_folder;
}

std::vector<Event> starts_and_ends(const std::string& file_or_folder) {
  const std::string path = record_file(file_or_folder);
  std::vector<Event> events;
  constexpr std::size_t farthest = 20;  // `{"event":"run_start"` and blanks
  try {
    FileStream file(path);
    for (RecordLines lines(file, path); lines.next();) {
      const bool wanted =
          std::min(lines.text().find("\"run_start\""), lines.text().find("\"run_end\"")) <= farthest;
      if (!wanted) continue;
      try {
        events.push_back(from_json(lines.text(), lines.where()));
      } catch (const UserError&) {
        // Of an earlier version, damaged or cut off.
      }
    }
  } catch (const UserError&) {
    // There is none, or the rest is no record.
  }
  return events;
}

std::vector<Event> read_events(const std::string& file_or_folder, Tolerance* tolerance) {
  const std::string path = record_file(file_or_folder);
  try {
    FileStream file(path, Behind::stream);
    return read_events(file, path, tolerance);
  } catch (const FileFault& fault) {
    throw UserError(ExitCode::io, path + ": cannot open this record: " + fault.why() +
                                      "; give a run's folder or its run.jsonl");
  }
}

}  // namespace assay::spec::record
