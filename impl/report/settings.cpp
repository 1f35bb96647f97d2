// Settings of runs, and those in which they differ.
#include <algorithm>
#include <utility>

#include "impl/report/html.hpp"
#include "impl/report/page.hpp"

namespace assay::impl::report {
namespace {

std::string value_text(const spec::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return spec::toml_literal(value);
}

/// A setting and its value in each run; "–" where a run's version had none.
struct Row {
  std::string name;
  std::vector<std::string> cells;
  bool differs() const {
    return std::any_of(cells.begin(), cells.end(), [&](const auto& cell) { return cell != cells[0]; });
  }
};

std::vector<Row> rows_of(const std::vector<NamedRun>& runs) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const auto& [name, value] : runs[i].run.start.settings) {
      auto row =
          std::find_if(rows.begin(), rows.end(), [&, &key = name](const Row& r) { return r.name == key; });
      if (row == rows.end()) row = rows.insert(row, {name, std::vector<std::string>(runs.size(), "–")});
      row->cells[i] = value_text(value);
    }
  return rows;
}

std::string table(const std::vector<NamedRun>& runs, const std::vector<Row>& rows) {
  std::string out =
      std::string("<div class=\"scroll\"><table") + (runs.size() > 1 ? " class=\"compared\"" : "") + ">\n";
  if (runs.size() > 1) {
    out += "<thead><tr><th></th>";
    for (const NamedRun& named : runs)
      out += "<th class=\"number\" scope=\"col\">" + escaped(named.name) + "</th>";
    out += "</tr></thead>\n";
  }
  out += "<tbody>\n";
  for (const Row& row : rows) {
    out += std::string(row.differs() ? "<tr class=\"differs\">" : "<tr>") + "<th scope=\"row\"><code>" +
           escaped(row.name) + "</code></th>";
    for (const std::string& cell : row.cells) out += "<td class=\"number\">" + escaped(cell) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace

std::string differences(const std::vector<NamedRun>& runs) {
  std::vector<Row> rows = rows_of(runs);
  // Folders always differ, and runs are named after them.
  std::erase_if(rows, [](const Row& row) { return !row.differs() || row.name == "run.directory"; });
  return "<section>\n<h2>What differs</h2>\n" +
         (rows.empty() ? "<p>No setting but the folder: these are runs of one recipe.</p>\n"
                       : table(runs, rows)) +
         "</section>\n";
}

std::string settings(const std::vector<NamedRun>& runs) {
  return "<section>\n<h2>Settings</h2>\n" + table(runs, rows_of(runs)) + "</section>\n";
}

}  // namespace assay::impl::report
