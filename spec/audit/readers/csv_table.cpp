#include "spec/audit/readers/csv_table.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "spec/audit/readers/log_shape.hpp"
#include "spec/audit/readers/row_kind.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

/// The cell of a CSV line (RFC 4180 without line breaks in cells) at `at`, without its quotes or blanks; `at`
/// moves to the separator behind it, or to the end.
std::string_view next_cell(const char*& at, const char* end, char separator) {
  const char* const from = at;
  if (at != end && *at == '"') {
    const char* const close = std::find(at + 1, end, '"');
    at = std::find(close, end, separator);
    return {from + 1, static_cast<std::size_t>(close - from - 1)};
  }
  while (at != end && *at != separator) ++at;
  return trimmed({from, static_cast<std::size_t>(at - from)});
}

}  // namespace

std::vector<std::string_view> cells(std::string_view line, char separator) {
  std::vector<std::string_view> out;
  const char *at = line.data(), *const end = at + line.size();
  while (true) {
    out.push_back(next_cell(at, end, separator));
    if (at == end) return out;
    ++at;
  }
}

char separator_of(std::string_view header) {
  for (const char separator : {',', ';', '\t'})
    if (header.find(separator) != std::string_view::npos) return separator;
  return ',';
}

namespace {

std::string listed(const std::vector<std::string_view>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < 20; ++i)
    out += (i ? ", " : "") + std::string(names[i].substr(0, 40));
  return out;
}

class Csv : public LineReader {
 public:
  explicit Csv(const Mapping& mapping) : mapping_(mapping) {}

  void read(const Line& line, RecordBuilder& builder) override {
    if (builder.may_defer())
      if (const auto glance = shapes_.glance(line); glance && builder.defer(line.text, *glance, again_))
        return;
    if (trimmed(line.text).empty()) return;
    if (line.text.starts_with('#') || columns_.empty())
      if (is_elision(line.text)) return builder.left_out();
    if (line.text.starts_with('#')) return;
    if (columns_.empty()) return read_names(line.text, builder);
    Step step;
    step.line = line.number;
    if (shapes_.read(line, step)) return builder.step(step, shapes_.fields());
    taken_.clear();
    all_plain_ = true;
    if (is_of_validation(line.text)) return builder.paused();
    if (mapping_.shares_are_open()) settle_shares(line.text);
    if (line.overlong || !read_cells(line.text, step, line.number)) {
      if (says_left_out(line.text)) return builder.left_out();
      return builder.unread(line.text);
    }
    if (!line.complete) forget_last_cell(step);
    if (mapping_.says_something(step)) {
      if (all_plain_) shapes_.learn(line, taken_);
      builder.step(step);
    }
  }

  void finish(RecordBuilder& builder) override {
    const auto& [column, word] = validation_said_;
    if (builder.steps_seen() == 0 && !column.empty()) refuse_validations_alone(column, word);
  }

 private:
  /// A column of the log: what it means, nothing for most.
  using Column = std::span<const Mapping::Meaning>;

  void settle_shares(std::string_view line) {
    const std::vector<std::string_view> row = cells(line, separator_);
    for (std::size_t i = 0; i < row.size() && i < names_.size(); ++i)
      mapping_.settle_shares(names_[i], row[i]);
  }

  /// By the row's own word.
  bool is_of_validation(std::string_view line) {
    if (row_kinds_.empty()) return false;
    const std::vector<std::string_view> row = cells(line, separator_);
    const auto said = std::find_if(row_kinds_.begin(), row_kinds_.end(), [&](std::size_t i) {
      return i < row.size() && audit::is_of_validation(names_[i], row[i]);
    });
    if (said == row_kinds_.end()) return false;
    if (validation_said_.first.empty()) validation_said_ = {names_[*said], std::string(row[*said])};
    return true;
  }

  /// "...", or as much in every cell.
  bool says_left_out(std::string_view line) const {
    const std::vector<std::string_view> row = cells(line, separator_);
    return is_elision(line) || std::all_of(row.begin(), row.end(), is_elision);
  }

  /// Of a row that nothing ends the other cells are whole; digits of the last one may be lost, the letters of
  /// "nan" and "inf" not.
  void forget_last_cell(Step& step) {
    for (const Mapping::Meaning& meaning : columns_.back())
      if (auto& number = step[meaning.field]; number && std::isfinite(number->value)) number.reset();
    all_plain_ = false;
  }

  /// False when the line has not one cell per column, or a cell cannot be read.
  bool read_cells(std::string_view line, Step& step, std::int64_t number) {
    const Column* column = columns_.data();
    const Column* const last = column + columns_.size();
    const char *at = line.data(), *const end = at + line.size();
    for (;; ++column) {
      if (column == last) return false;
      if (column->size() != 1 || !read_plain_cell(at, end, step, column->front(), number)) {
        const std::string_view cell = next_cell(at, end, separator_);
        if (!column->empty() && !cell.empty()) {
          all_plain_ = false;
          if (Mapping::take(step, *column, cell, number) != Mapping::Taken::read) return false;
        }
      }
      if (at == end) break;
      ++at;
    }
    return column + 1 == last;
  }

  /// Most cells: a plain number, and nothing else.
  bool read_plain_cell(const char*& at, const char* end, Step& step, const Mapping::Meaning& meaning,
                       std::int64_t number) {
    const char* now = at;
    while (now != end && *now == ' ') ++now;
    const char* const start = now;
    Printed printed;
    if (!take_plain(now, end, meaning.kind, meaning.unit, number, printed, separator_ != ',')) return false;
    if (now != end && *now != separator_) return false;
    step[meaning.field] = printed;
    taken_.add(start, meaning.field, meaning.kind, meaning.unit,
               separator_ == ',' ? Written::ungrouped : Written::printed);
    at = now;
    return true;
  }

  void read_names(std::string_view header, RecordBuilder& builder) {
    separator_ = separator_of(header);
    const std::vector<std::string_view> names = cells(header, separator_);
    if (std::any_of(names.begin(), names.end(), of_rewards)) builder.of_rewards();
    std::size_t next = 0;
    names_.assign(names.begin(), names.end());
    for (const std::string_view name : names) {
      if (is_row_kind(name)) row_kinds_.push_back(columns_.size());
      columns_.push_back(mapping_.meanings(name, next));
      if (!columns_.back().empty() && std::count(names.begin(), names.end(), name) > 1)
        throw UserError(mapping_.stated() ? ExitCode::usage : ExitCode::bad_data,
                        "two columns of the log are called " + quote(name) +
                            ", and which of them is meant cannot be known; rename one in its first line");
    }
    if (std::all_of(columns_.begin(), columns_.end(), [](const Column& c) { return c.empty(); }))
      throw UserError(ExitCode::usage, "--map: none of its columns is in the log, whose first line names " +
                                           quote(listed(names)) + "; name columns of the log");
    mapping_.require_columns(
        [&](std::string_view column, Field) {
          return std::find(names.begin(), names.end(), column) != names.end();
        },
        "its first line names " + quote(listed(names)));
  }

  Mapping mapping_;
  LineShapes shapes_;
  ReadAgain again_ = [this](std::string_view text, std::int64_t line, Step& step) {
    if (shapes_.read(text, line, step) == 0) read_cells(text, step, line);
  };
  TakenNumbers taken_;
  bool all_plain_ = true;  // of the last line
  char separator_ = ',';
  std::vector<Column> columns_;
  std::vector<std::string> names_;
  std::vector<std::size_t> row_kinds_;                   // columns that say what a row is of
  std::pair<std::string, std::string> validation_said_;  // the first that said so, and its word
};

}  // namespace

std::unique_ptr<LineReader> make_csv(const Mapping& mapping) { return std::make_unique<Csv>(mapping); }

}  // namespace assay::spec::audit
