#include "impl/report/csv.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "spec/record/fields.hpp"
#include "spec/text/json.hpp"

namespace assay::impl::report {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

/// Columns in the order in which they are first met, and rows that hold some of them.
class Rows {
 public:
  void begin(const std::string& run, const char* event) {
    rows_.emplace_back();
    put("run", run);
    put("event", event);
  }

  template <class Event>
  void add(const Event& event, const std::string& before = "") {
    spec::record::fields(event, [&](const char* name, const auto& value) { take(before + name, value); });
  }

  std::string text() const {
    std::string out;
    for (std::size_t i = 0; i < columns_.size(); ++i) out += (i > 0 ? "," : "") + quoted(columns_[i]);
    out += "\r\n";
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        const auto cell = row.find(i);
        out += std::string(i > 0 ? "," : "") + (cell == row.end() ? "" : quoted(cell->second));
      }
      out += "\r\n";
    }
    return out;
  }

 private:
  template <class Value>
  void take(const std::string& name, const std::optional<Value>& value) {
    if (value) take(name, *value);
  }
  void take(const std::string& name, const std::vector<spec::record::StepSource>& sources) {
    for (const spec::record::StepSource& source : sources)
      spec::record::fields(source, [&](const std::string& field, const auto& value) {
        if (field != "name") take(name + "." + source.name + "." + field, value);
      });
  }
  template <class Value>
  void take(const std::string& name, const Value& value) {
    if constexpr (std::is_same_v<Value, bool>)
      put(name, value ? "true" : "false");
    else if constexpr (std::is_integral_v<Value>)
      put(name, std::to_string(value));
    else if constexpr (std::is_floating_point_v<Value>)
      put(name, std::isnan(value)   ? "nan"
                : std::isinf(value) ? (value > 0 ? "inf" : "-inf")
                                    : spec::json_number(value));
    else if constexpr (std::is_convertible_v<Value, std::string>)
      put(name, value);
    else
      add(value, name + ".");
  }

  void put(const std::string& name, const std::string& cell) {
    const auto found = numbers_.try_emplace(name, columns_.size());
    if (found.second) columns_.push_back(name);
    rows_.back()[found.first->second] = cell;
  }

  std::vector<std::string> columns_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::map<std::size_t, std::string>> rows_;
};

}  // namespace

std::string csv(const std::vector<NamedRun>& runs) {
  Rows rows;
  for (const NamedRun& named : runs) {
    const spec::record::Run& run = named.run;
    auto skipped = run.skipped.begin();
    auto validation = run.validations.begin();
    // What was skipped before `step`, and evaluated before it.
    const auto catch_up = [&](std::int64_t step) {
      while (true) {
        const bool skip = skipped != run.skipped.end() && skipped->step < step;
        const bool evaluated = validation != run.validations.end() && validation->step < step;
        if (!skip && !evaluated) return;
        if (skip && (!evaluated || skipped->step <= validation->step)) {
          rows.begin(named.name, "skipped");
          rows.add(*skipped++);
        } else {
          rows.begin(named.name, "validation");
          rows.add(*validation++);
        }
      }
    };
    for (const spec::record::Step& step : run.steps) {
      catch_up(step.step);
      rows.begin(named.name, "step");
      rows.add(step);
    }
    catch_up(INT64_MAX);
  }
  return rows.text();
}

}  // namespace assay::impl::report
