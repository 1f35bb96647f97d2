#include "spec/audit/denied_lines.hpp"

#include <algorithm>

namespace assay::spec::audit {
namespace {

/// Pauses (evaluation, checkpoints) and what is done between two lines make a window longer. Chosen, as the
/// pauses of relations_clock.cpp; both sides alike, for a line may be stamped late and the next one in time.
constexpr double slack = 0.25;
struct LineOfWindow {
  std::size_t index = 0;  ///< of the step
  LineWindow window;
  double clock() const { return window.clock.middle() / window.steps; }  ///< of a step [s]
  double own() const { return window.ratio.middle() * clock(); }         ///< by the line's number [s]
  bool leaves_stamps() const { return window.ratio.low > 1 + slack || window.ratio.high * (1 + slack) < 1; }
};

double middle_of(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

bool alike(double a, double b) {
  return a < b * (1 + likeness_of_windows) && b < a * (1 + likeness_of_windows);
}

/// Lines of a part of the log whose numbers are all the same multiple of what the stamps make of them, while
/// the stamps of some are as far apart as those of the other lines, whose numbers they confirm. Pauses that
/// begin with faster steps would have to take just as long as those save.
std::vector<std::size_t> lines_of_other_numbers(const std::vector<LineOfWindow>& lines) {
  constexpr std::size_t fewest = 3, fewest_others = 2;
  std::vector<double> confirmed, times;
  for (const LineOfWindow& line : lines) {
    if (line.leaves_stamps()) times.push_back(line.window.ratio.middle());
    if (alike(line.window.ratio.middle(), 1)) confirmed.push_back(line.clock());
  }
  if (confirmed.size() < fewest || times.size() < fewest_others) return {};
  const double usual = middle_of(confirmed), factor = middle_of(times);
  const auto as_usual = [&](double clock) { return alike(clock, usual); };
  if (5 * std::count_if(confirmed.begin(), confirmed.end(), as_usual) <
      4 * static_cast<std::ptrdiff_t>(confirmed.size()))
    return {};
  std::vector<std::size_t> out;
  std::size_t with_usual_stamps = 0;
  for (const LineOfWindow& line : lines)
    if (line.leaves_stamps() && alike(line.window.ratio.middle(), factor))
      out.push_back(line.index), with_usual_stamps += as_usual(line.clock());
  return with_usual_stamps >= fewest_others && 5 * out.size() >= 4 * times.size()
             ? out
             : std::vector<std::size_t>();
}

std::vector<LineOfWindow> windows_of(const Evidence& e, Field field) {
  std::vector<LineOfWindow> out;
  for (std::size_t i = 1; i < e.steps.size(); ++i)
    if (const auto window = line_window(e, i, field)) out.push_back({i, *window});
  return out;
}

}  // namespace

DeniedLines denied_lines(const Evidence& e, Field field) {
  const std::vector<LineOfWindow> windows = windows_of(e, field);
  DeniedLines out;
  const std::size_t n = out.judged = windows.size();
  if (n < 3) return out;
  out.lines = lines_of_other_numbers(windows);
  out.part = !out.lines.empty();
  if (out.part) return out;
  std::vector<double> sorted;
  sorted.reserve(n);
  for (const LineOfWindow& line : windows) sorted.push_back(line.own());
  std::sort(sorted.begin(), sorted.end());
  const double fast = sorted[n / 10 + (n < 10 ? 1 : 0)];
  std::vector<bool> denied;
  std::size_t left = 0;
  for (const LineOfWindow& line : windows) {
    const Interval& ratio = line.window.ratio;
    denied.push_back(ratio.low > 1 + slack ||
                     (ratio.high * (1 + slack) < 1 && line.own() * (1 + slack) < fast));
    left += line.leaves_stamps();
  }
  const auto all = static_cast<std::size_t>(std::count(denied.begin(), denied.end(), true));
  out.most = 2 * left > n;
  const std::size_t allowed = n < 8 ? 1 : std::max<std::size_t>(2, n / 20);
  for (std::size_t k = 0; k < n && all <= allowed; ++k) {
    const bool before = k > 0 && denied[k - 1], behind = k + 1 < n && denied[k + 1];
    if (denied[k] && !before && !behind) out.lines.push_back(windows[k].index);
  }
  return out;
}

}  // namespace assay::spec::audit
