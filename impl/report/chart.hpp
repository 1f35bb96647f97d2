#pragma once
// Charts as inline SVG: colours come from the page's style sheet (classes c0..c7), so they follow light and
// dark.
#include <string>
#include <vector>

namespace assay::impl::report {

/// Colours of the style sheet; series beyond reuse them.
inline constexpr int kColours = 8;

struct Series {
  std::string name;
  std::vector<double> x, y;  ///< same length; points that are not finite leave a gap
  int colour = 0;
  bool marked = false;  ///< few points, each drawn: it is not smoothed
  /// Of a series of which some points are left out: means of neighbouring ones, in the place of which they
  /// are smoothed; empty where none is.
  std::vector<double> means_x = {}, means_y = {};
};

/// A value to compare with: a dashed line over all steps (the floor of the loss), or a ring at the first step
/// only (its expectation).
struct Level {
  double y = 0;
  std::string label;
  bool first_step_only = false;
};

struct Chart {
  std::string title;
  std::string unit;  ///< of y
  std::vector<Series> series;
  std::vector<Level> levels;
  bool from_zero = true;   ///< the y axis starts at 0
  bool smooth = false;     ///< the points are faint, their running mean is bold
  std::string x = "step";  ///< what x is
  bool log_y = false;      ///< the y axis is logarithmic; points that are not above 0 leave a gap
  std::string views = {};  ///< classes of the page's views in which this drawing is seen; empty: in all
};

/// A line chart in a <figure> with title, axes and, when there are several series, a legend. Under the
/// pointer it shows the values of each series at that x.
std::string line_chart(const Chart& chart);

/// Several drawings of one thing in one figure, of which the page shows one (Chart::views). Domain: at least
/// one.
std::string line_chart(const std::vector<Chart>& drawings);

/// The same data stacked: each series lies on the sum of those before it. Series share their x.
std::string stacked_chart(const Chart& chart);

/// One kind of part of every bar.
struct Part {
  std::string name;
  int colour = 0;
};

/// One horizontal bar of parts that add up, with its total in words at its end.
struct Bar {
  std::string name;
  std::vector<double> parts;
  std::string total;
};

/// Bars of the same parts, one under the other on one scale. Errors: std::invalid_argument where a bar has
/// other than these parts.
std::string bar_chart(const std::string& title, const std::vector<Part>& parts, const std::vector<Bar>& bars);

/// At most `most` points: of each bucket the least and the greatest y, in their order, so that spikes stay
/// visible.
Series thinned(const Series& series, std::size_t most);

/// Mean over the finite ones of the `window` points around each point; towards the ends the window shrinks on
/// both sides, so that the first and the last point stay where they are.
Series running_mean(const Series& series, std::size_t window);

}  // namespace assay::impl::report
