#include "spec/audit/readers/table.hpp"

#include <algorithm>
#include <array>

#include "spec/audit/readers/json_path.hpp"
#include "spec/audit/readers/json_scan.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

/// Cells of a CSV line (RFC 4180 without line breaks in cells), without their quotes.
void split(std::string_view line, char separator, std::vector<std::string_view>& cells) {
  cells.clear();
  for (std::size_t from = 0; from <= line.size();) {
    std::size_t to = 0;
    if (from < line.size() && line[from] == '"') {
      const std::size_t close = std::min(line.find('"', from + 1), line.size());
      cells.push_back(line.substr(from + 1, close - from - 1));
      to = std::min(line.find(separator, close), line.size());
    } else {
      to = std::min(line.find(separator, from), line.size());
      cells.push_back(trimmed(line.substr(from, to - from)));
    }
    from = to + 1;
  }
}

char separator_of(std::string_view header) {
  for (const char separator : {',', ';', '\t'})
    if (header.find(separator) != std::string_view::npos) return separator;
  return ',';
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < 20; ++i)
    out += (i ? ", " : "") + std::string(names[i].substr(0, 40));
  return out;
}

/// Whether a step has more than its number: tables also hold rows of validations, whose columns are others.
bool says_something(const Step& step) {
  for (std::size_t i = 0; i < field_count; ++i)
    if (step.fields[i] && static_cast<Field>(i) != Field::step && static_cast<Field>(i) != Field::rank)
      return true;
  return false;
}

class Csv : public LineReader {
 public:
  explicit Csv(const Mapping& mapping) : mapping_(mapping) {}

  void read(const Line& line, RecordBuilder& builder) override {
    if (trimmed(line.text).empty() || line.text.starts_with('#')) return;
    if (names_.empty()) return read_names(line.text);
    split(line.text, separator_, cells_);
    Step step;
    step.line = line.number;
    bool good = line.complete && !line.overlong && cells_.size() == names_.size();
    for (std::size_t i = 0; good && i < cells_.size(); ++i) {
      if (!known_[i] || cells_[i].empty()) continue;
      good = mapping_.take(step, names_[i], cells_[i], line.number) == Mapping::Taken::read;
    }
    if (!good)
      builder.unread(line.text);
    else if (says_something(step))
      builder.step(step);
  }

 private:
  void read_names(std::string_view header) {
    separator_ = separator_of(header);
    split(header, separator_, cells_);
    for (const std::string_view cell : cells_) {
      names_.emplace_back(cell);
      known_.push_back(mapping_.knows(cell));
    }
    if (std::none_of(known_.begin(), known_.end(), [](bool k) { return k; }))
      throw UserError(ExitCode::usage, "--map: none of its columns is in the log, whose first line names " +
                                           quote(listed(cells_)) + "; name columns of the log");
    mapping_.require_columns(
        [&](std::string_view column, Field) {
          return std::find(cells_.begin(), cells_.end(), column) != cells_.end();
        },
        "its first line names " + quote(listed(cells_)));
  }

  Mapping mapping_;
  char separator_ = ',';
  std::vector<std::string> names_;
  std::vector<bool> known_;
  std::vector<std::string_view> cells_;
};

class JsonLines : public LineReader {
 public:
  explicit JsonLines(const Mapping& mapping) : mapping_(mapping) {}

  void read(const Line& line, RecordBuilder& builder) override {
    if (trimmed(line.text).empty()) return;
    Values values(mapping_, line.number);
    JsonPaths paths(values);
    MemoryBytes bytes(line.text);
    JsonScan scan(bytes, paths);
    const bool whole = !line.overlong && scan.value() && (scan.blanks(), bytes.peek() < 0);
    if (!whole || values.unreadable)
      builder.unread(line.text);
    else if (values.known) {
      for (std::size_t i = 0; i < field_count; ++i) filled_[i] = filled_[i] || values.step.fields[i];
      if (says_something(values.step)) builder.step(values.step);
    }
  }

  void finish(RecordBuilder&) override {
    mapping_.require_columns(
        [&](std::string_view, Field field) { return filled_[static_cast<std::size_t>(field)]; },
        "no line holds a number under that key");
  }

 private:
  struct Values : JsonValues {
    const Mapping& mapping;
    std::int64_t line;
    Step step;
    bool known = false, unreadable = false;
    Values(const Mapping& m, std::int64_t l) : mapping(m), line(l) { step.line = l; }
    void value(std::string_view path, JsonKind kind, std::string_view token) override {
      if (kind == JsonKind::word) return;
      const Mapping::Taken taken = mapping.take(step, path, token, line);
      known = known || taken == Mapping::Taken::read;
      unreadable = unreadable || taken == Mapping::Taken::unreadable;
    }
  };
  Mapping mapping_;
  std::array<bool, field_count> filled_{};
};

}  // namespace

Format mapped_format() {
  Format format;
  format.name = "mapped";
  return format;
}

std::unique_ptr<LineReader> make_table(const Mapping& mapping, bool json) {
  if (json) return std::make_unique<JsonLines>(mapping);
  return std::make_unique<Csv>(mapping);
}

bool table_explains_itself(std::string_view first, const Mapping& mapping, bool json) {
  if (json) {
    return (first.find("\"step\"") != std::string_view::npos ||
            first.find("\"loss\"") != std::string_view::npos) &&
           first.starts_with('{');
  }
  std::vector<std::string_view> cells;
  split(first, separator_of(first), cells);
  return cells.size() > 1 && std::count_if(cells.begin(), cells.end(),
                                           [&](std::string_view cell) { return mapping.knows(cell); }) >= 2;
}

}  // namespace assay::spec::audit
