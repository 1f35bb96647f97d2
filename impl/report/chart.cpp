#include "impl/report/chart.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "impl/report/axis.hpp"
#include "impl/report/html.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::report {
namespace {

// Units of the drawing; the page scales it to its column.
constexpr double kWidth = 560, kHeight = 260;
constexpr double kLeft = 52, kRight = 14, kTop = 12, kBottom = 30;
constexpr std::size_t kMostPoints = 600;
constexpr std::size_t kMostColumns = 160;  // of stacked areas

std::string number(double value) { return spec::fixed(value, 1); }

std::string colour_class(int colour) { return "c" + std::to_string(colour % kColours); }

struct Frame {
  Axis x, y;
  double left(double value) const { return kLeft + x.position(value) * (kWidth - kLeft - kRight); }
  double top(double value) const { return kTop + (1 - y.position(value)) * (kHeight - kTop - kBottom); }
};

std::string text_at(double x, double y, const std::string& anchor, const std::string& text,
                    const std::string& kind = "") {
  return "<text" + (kind.empty() ? "" : " class=\"" + kind + "\"") + " x=\"" + number(x) + "\" y=\"" +
         number(y) + "\" text-anchor=\"" + anchor + "\">" + escaped(text) + "</text>\n";
}

std::string horizontal(const Frame& frame, double y, const std::string& kind) {
  return "<line class=\"" + kind + "\" x1=\"" + number(kLeft) + "\" x2=\"" + number(kWidth - kRight) +
         "\" y1=\"" + number(frame.top(y)) + "\" y2=\"" + number(frame.top(y)) + "\"/>\n";
}

std::string axes(const Frame& frame, const std::string& x_name) {
  std::string out;
  for (std::size_t i = 0; i < frame.y.ticks.size(); ++i) {
    out += horizontal(frame, frame.y.ticks[i], "grid");
    out += text_at(kLeft - 6, frame.top(frame.y.ticks[i]) + 4, "end", frame.y.labels[i]);
  }
  for (std::size_t i = 0; i < frame.x.ticks.size(); ++i) {
    const double x = frame.left(frame.x.ticks[i]);
    // Labels at the right end would leave the drawing.
    out += text_at(std::min(x, kWidth - kRight), kHeight - kBottom + 18, x > kWidth - 30 ? "end" : "middle",
                   frame.x.labels[i]);
  }
  out += text_at(kLeft - 6, kHeight - kBottom + 18, "end", x_name);
  return out + horizontal(frame, frame.y.low, "axis");
}

/// "M x y L x y ..." with a new M after each gap.
std::string path(const Frame& frame, const Series& series) {
  std::string out;
  bool pen_down = false;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const bool finite = std::isfinite(series.y[i]) && std::isfinite(series.x[i]);
    if (finite)
      out += (pen_down ? "L" : "M") + number(frame.left(series.x[i])) + " " + number(frame.top(series.y[i]));
    pen_down = finite;
  }
  return out;
}

/// Besides colour, lines of several runs differ in dashes, so that one drawn over another leaves it visible.
std::string line(const Frame& frame, const Series& series, const std::string& kind) {
  return "<path class=\"" + kind + " " + colour_class(series.colour) + " dash" +
         std::to_string(series.colour % 3) + "\" d=\"" + path(frame, series) + "\"/>\n";
}

std::string legend_entry(const std::string& name, int colour, bool marked) {
  return std::string("<li><span class=\"key ") + (marked ? "mark " : "") + colour_class(colour) +
         "\"></span>" + escaped(name) + "</li>";
}

std::string legend(const std::vector<Series>& series) {
  std::string out = "<ul class=\"legend\">";
  for (const Series& each : series) out += legend_entry(each.name, each.colour, each.marked);
  return out + "</ul>\n";
}

std::string svg(const Chart& chart, const std::string& drawing) {
  return "<svg" + (chart.views.empty() ? "" : " class=\"view " + chart.views + "\"") + " viewBox=\"0 0 " +
         number(kWidth) + " " + number(kHeight) + "\" role=\"img\" aria-label=\"" +
         escaped(chart.title + " by " + chart.x + (chart.unit.empty() ? "" : ", " + chart.unit)) + "\">\n" +
         drawing + "</svg>\n";
}

/// `drawings`: one <svg> or several.
std::string figure(const Chart& chart, const std::string& drawings, bool with_legend) {
  return "<figure>\n<figcaption>" + escaped(chart.title) +
         (chart.unit.empty() ? "" : " <span class=\"unit\">" + escaped(chart.unit) + "</span>") +
         "</figcaption>\n" + drawings + (with_legend ? legend(chart.series) : "") + "</figure>\n";
}

/// In a column of the drawing: the value of each series at the point that is nearest to its middle.
std::string values_under(const Frame& frame, const Chart& chart, double middle) {
  std::string text;
  double at = NAN;
  for (const Series& series : chart.series) {
    std::size_t nearest = series.x.size();
    double least = INFINITY;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const double distance = std::fabs(frame.left(series.x[i]) - middle);
      if (std::isfinite(series.y[i]) && distance < least) least = distance, nearest = i;
    }
    if (nearest == series.x.size()) continue;
    const double y = series.y[nearest];
    if (std::isnan(at)) at = series.x[nearest];
    text += "\n" + (chart.series.size() > 1 ? series.name + ": " : std::string()) +
            (std::fabs(y) >= 1e-2 && std::fabs(y) < 1e6 ? spec::fixed(y, 4) : spec::scientific(y, 3));
  }
  if (text.empty()) return "";
  const bool whole = at == std::floor(at) && std::fabs(at) < 1e15;
  return chart.x + " " + (whole ? spec::grouped(static_cast<std::int64_t>(at)) : spec::fixed(at, 2)) + text;
}

/// What a pointer finds: columns that are seen under it alone, each with its values.
std::string hover(const Frame& frame, const Chart& chart) {
  constexpr std::size_t columns = 80;
  Chart thin = chart;
  for (Series& series : thin.series) series = thinned(series, 2 * columns);
  const double width = (kWidth - kLeft - kRight) / columns;
  std::string out;
  for (std::size_t i = 0; i < columns; ++i) {
    const double left = kLeft + static_cast<double>(i) * width;
    const std::string text = values_under(frame, thin, left + width / 2);
    if (!text.empty())
      out += "<rect class=\"under\" x=\"" + number(left) + "\" y=\"" + number(kTop) + "\" width=\"" +
             number(width) + "\" height=\"" + number(kHeight - kTop - kBottom) + "\"><title>" +
             escaped(text) + "</title></rect>\n";
  }
  return out;
}

std::string level_mark(const Frame& frame, const Level& level) {
  const double y = frame.top(level.y);
  if (level.first_step_only)
    return "<circle class=\"ring\" cx=\"" + number(kLeft) + "\" cy=\"" + number(y) + "\" r=\"4.5\"/>\n" +
           text_at(kLeft + 12, y + 4, "start", level.label, "label");
  // Below the line where there is room: curves come from above.
  const bool below = y + 16 < kHeight - kBottom;
  return horizontal(frame, level.y, "level") +
         text_at(kWidth - kRight - 2, below ? y + 14 : y - 6, "end", level.label, "label");
}

std::string nothing_to_draw() {
  return text_at(kWidth / 2, kHeight / 2, "middle", "no finite values", "label");
}

/// Axes over all finite points and levels; false when there is no point.
bool frame_of(const Chart& chart, Frame& frame) {
  double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
  for (const Series& series : chart.series) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
      x_low = std::min(x_low, series.x[i]);
      x_high = std::max(x_high, series.x[i]);
      y_low = std::min(y_low, series.y[i]);
      y_high = std::max(y_high, series.y[i]);
    }
  }
  if (!(x_low <= x_high)) return false;
  for (const Level& level : chart.levels) {
    if (!std::isfinite(level.y) || (chart.log_y && !(level.y > 0))) continue;
    y_low = std::min(y_low, level.y);
    y_high = std::max(y_high, level.y);
  }
  if (chart.log_y) {
    frame = {make_axis(x_low, x_high, 6, false), make_log_axis(y_low, y_high)};
    return true;
  }
  if (chart.from_zero) {
    y_low = std::min(y_low, 0.0);
    if (y_high == y_low) y_high = 1;
  }
  frame = {make_axis(x_low, x_high, 6, false), make_axis(y_low, y_high, 5, true)};
  return true;
}

}  // namespace

namespace {
std::string drawing_of(const Chart& given) {
  Chart chart = given;
  for (Series& series : chart.series)
    for (std::vector<double>* values : {&series.y, &series.means_y})
      for (double& y : *values)
        if (chart.log_y && !(y > 0)) y = NAN;
  Frame frame;
  if (!frame_of(chart, frame)) return svg(chart, nothing_to_draw());
  std::string drawing = axes(frame, chart.x);
  for (const Series& series : chart.series) {
    const Series points = thinned(series, kMostPoints);
    const Series means =
        series.means_x.empty() ? series : Series{series.name, series.means_x, series.means_y, series.colour};
    const std::size_t window = means.x.size() / 40;
    if (chart.smooth && window >= 2 && !series.marked) {
      drawing += line(frame, points, "faint");
      drawing += line(frame, thinned(running_mean(means, window), kMostPoints), "line");
    } else {
      drawing += line(frame, points, "line");
    }
    for (std::size_t i = 0; i < series.x.size() && (series.marked || series.x.size() == 1); ++i)
      if (std::isfinite(series.y[i]))
        drawing += "<circle class=\"dot " + colour_class(series.colour) + "\" cx=\"" +
                   number(frame.left(series.x[i])) + "\" cy=\"" + number(frame.top(series.y[i])) +
                   "\" r=\"3\"/>\n";
  }
  for (const Level& level : chart.levels)
    if (std::isfinite(level.y) && (!chart.log_y || level.y > 0)) drawing += level_mark(frame, level);
  return svg(chart, drawing + hover(frame, chart));
}
}  // namespace

std::string line_chart(const Chart& chart) { return line_chart(std::vector<Chart>{chart}); }

std::string line_chart(const std::vector<Chart>& drawings) {
  std::string all;
  for (const Chart& chart : drawings) all += drawing_of(chart);
  return figure(drawings.at(0), all, drawings.at(0).series.size() > 1);
}

std::string stacked_chart(const Chart& chart) {
  if (chart.series.empty() || chart.series[0].x.size() < 2) return "";
  // Columns of means: the areas must add up, so every series is cut at the same steps.
  const std::vector<double>& steps = chart.series[0].x;
  const std::size_t columns = std::min(kMostColumns, steps.size());
  std::vector<Series> tops;
  std::vector<double> x, base(columns, 0.0);
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t begin = c * steps.size() / columns, end = (c + 1) * steps.size() / columns;
    x.push_back((steps[begin] + steps[end - 1]) / 2);
  }
  for (const Series& series : chart.series) {
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t begin = c * steps.size() / columns, end = (c + 1) * steps.size() / columns;
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i) sum += std::isfinite(series.y[i]) ? series.y[i] : 0;
      base[c] += sum / static_cast<double>(end - begin);
    }
    tops.push_back({series.name, x, base, series.colour});
  }
  Frame frame;
  if (!frame_of({chart.title, chart.unit, tops, {}, true, false}, frame))
    return figure(chart, svg(chart, nothing_to_draw()), false);
  std::string areas;
  // The highest first: each lower area covers the part that is not the higher one's own.
  for (auto top = tops.rbegin(); top != tops.rend(); ++top)
    areas += "<path class=\"area " + colour_class(top->colour) + "\" d=\"" + path(frame, *top) + "L" +
             number(frame.left(x.back())) + " " + number(frame.top(0)) + "L" + number(frame.left(x[0])) +
             " " + number(frame.top(0)) + "Z\"/>\n";
  return figure(chart, svg(chart, axes(frame, chart.x) + areas), true);
}

std::string bar_chart(const std::string& title, const std::vector<Part>& parts,
                      const std::vector<Bar>& bars) {
  double longest = 0;
  for (const Bar& bar : bars) {
    if (bar.parts.size() != parts.size())
      throw std::invalid_argument("bar \"" + bar.name + "\" has " + std::to_string(bar.parts.size()) +
                                  " parts, not " + std::to_string(parts.size()));
    longest = std::max(longest, std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0));
  }
  if (!(longest > 0)) return "";
  std::string out =
      "<figure class=\"bars\">\n<figcaption>" + escaped(title) + "</figcaption>\n<div class=\"grid-bars\">\n";
  std::vector<bool> shown(parts.size(), false);
  for (const Bar& bar : bars) {
    out += "<span>" + escaped(bar.name) + "</span><span class=\"bar-track\">";
    for (std::size_t i = 0; i < bar.parts.size(); ++i) {
      const double share = bar.parts[i] / longest;
      if (share < 0.0005) continue;
      shown[i] = true;
      out += "<span class=\"part " + colour_class(parts[i].colour) +
             "\" style=\"width:" + spec::fixed(100 * share, 2) + "%\" title=\"" + escaped(parts[i].name) +
             "\"></span>";
    }
    out += "</span><span class=\"bar-total\">" + escaped(bar.total) + "</span>\n";
  }
  out += "</div>\n<ul class=\"legend\">";
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (shown[i]) out += legend_entry(parts[i].name, parts[i].colour, false);
  return out + "</ul>\n</figure>\n";
}

}  // namespace assay::impl::report
