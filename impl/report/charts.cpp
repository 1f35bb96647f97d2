#include <algorithm>
#include <cmath>
#include <map>

#include "impl/report/chart.hpp"
#include "impl/report/page.hpp"
#include "spec/record/fields.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::report {
namespace {

using spec::record::Run, spec::record::RunSoFar, spec::record::Step, spec::record::StepSums;

/// What a chart's x is: the step, tokens trained on, or time in steps.
enum class By { step, tokens, time };

/// The x of each step, in the unit of `x_name`.
class XAxis {
 public:
  XAxis(By by, const std::vector<NamedRun>& runs) : by_(by) {
    double longest = 0;
    for (const NamedRun& named : runs) longest = std::max(longest, total(named.run, by));
    if (by == By::time && longest > 5 * 3600)
      unit_ = 3600, name_ = "h";
    else if (by == By::time && longest > 300)
      unit_ = 60, name_ = "min";
    else
      name_ = by == By::step ? "step" : by == By::tokens ? "tokens" : "s";
  }
  const std::string& name() const { return name_; }
  std::string view() const { return by_ == By::step ? "x-step" : by_ == By::tokens ? "x-tokens" : "x-time"; }

  std::vector<double> of(const Run& run) const {
    return run.thinned ? of(run.steps, run.thinned->so_far) : of(run.steps, so_far(run.steps));
  }
  /// Of the means of a long run's steps.
  std::vector<double> of_means(const Run& run) const {
    return run.thinned ? of(run.thinned->means, run.thinned->means_at) : std::vector<double>();
  }
  /// Of what came after step `number`; `x`: as `of`.
  double after(const Run& run, const std::vector<double>& x, std::int64_t number) const {
    if (by_ == By::step) return static_cast<double>(number);
    const auto later = std::upper_bound(run.steps.begin(), run.steps.end(), number,
                                        [](std::int64_t n, const Step& step) { return n < step.step; });
    return later == run.steps.begin() ? 0 : x[static_cast<std::size_t>(later - run.steps.begin()) - 1];
  }

 private:
  static std::vector<RunSoFar> so_far(const std::vector<Step>& steps) {
    std::vector<RunSoFar> out;
    RunSoFar sum;
    for (const Step& step : steps) {
      sum.tokens += static_cast<double>(step.tokens);
      sum.seconds += std::isfinite(step.seconds) ? step.seconds : 0;
      out.push_back(sum);
    }
    return out;
  }
  std::vector<double> of(const std::vector<Step>& steps, const std::vector<RunSoFar>& at) const {
    std::vector<double> x;
    for (std::size_t i = 0; i < steps.size(); ++i)
      x.push_back(by_ == By::step     ? static_cast<double>(steps[i].step)
                  : by_ == By::tokens ? at[i].tokens
                                      : at[i].seconds / unit_);
    return x;
  }
  static double total(const Run& run, By by) {
    const StepSums sums = sums_of(run);
    return by == By::tokens ? static_cast<double>(sums.tokens) : sums.seconds;
  }

  By by_;
  double unit_ = 1;
  std::string name_;
};

/// One series per run of `value(step)`.
template <class Value>
std::vector<Series> series_of(const std::vector<NamedRun>& runs, const XAxis& x, Value value) {
  std::vector<Series> out;
  for (const NamedRun& named : runs) {
    Series series{named.name, x.of(named.run), {}, static_cast<int>(out.size())};
    for (const Step& step : named.run.steps) series.y.push_back(value(step));
    series.means_x = x.of_means(named.run);
    if (named.run.thinned)
      for (const Step& step : named.run.thinned->means) series.means_y.push_back(value(step));
    out.push_back(std::move(series));
  }
  return out;
}

template <class Value>
std::vector<Series> series_of(const std::vector<NamedRun>& runs, Value value) {
  return series_of(runs, XAxis(By::step, runs), value);
}

/// How much of the runs is seen: the last `share` of x.
struct Range {
  const char* view;
  const char* name;
  double share;
};
constexpr Range ranges[] = {
    {"z-all", "whole run", 1}, {"z-half", "last half", 0.5}, {"z-tenth", "last tenth", 0.1}};

/// Whether the level lies between values that are seen: any other would squeeze them.
bool among(const Level& level, const std::vector<Series>& all) {
  bool above = false, below = false;
  for (const Series& series : all)
    for (const double y : series.y) above = above || y >= level.y, below = below || y <= level.y;
  return above && below && !level.first_step_only;
}

/// The chart's points in that range, on axes of their own.
Chart zoomed(Chart chart, const Range& range) {
  if (range.share == 1) return chart;
  double low = INFINITY, high = -INFINITY;
  for (const Series& series : chart.series)
    for (const double x : series.x) low = std::min(low, x), high = std::max(high, x);
  for (Series& series : chart.series) {
    const auto take = [&](std::vector<double>& x, std::vector<double>& y) {
      std::size_t seen = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!(x[i] < high - range.share * (high - low))) x[seen] = x[i], y[seen++] = y[i];
      x.resize(seen), y.resize(seen);
    };
    take(series.x, series.y);
    take(series.means_x, series.means_y);
  }
  chart.from_zero = false;
  std::erase_if(chart.levels, [&](const Level& level) { return !among(level, chart.series); });
  return chart;
}

/// A chart by step, tokens and time, of each range, and each of these with a logarithmic y where `with_log`.
/// `chart_by` gives the chart of an x.
template <class ChartBy>
std::string viewed(const std::vector<NamedRun>& runs, bool with_log, const ChartBy& chart_by) {
  std::vector<Chart> drawings;
  for (const By by : {By::step, By::tokens, By::time}) {
    const XAxis x(by, runs);
    const Chart whole = chart_by(x);
    for (const Range& range : ranges) {
      Chart chart = zoomed(whole, range);
      chart.x = x.name();
      const std::string view = x.view() + " " + range.view;
      chart.views = view + (with_log ? " y-linear" : "");
      drawings.push_back(chart);
      if (!with_log) continue;
      chart.views = view + " y-log";
      chart.log_y = true;
      drawings.push_back(std::move(chart));
    }
  }
  return line_chart(drawings);
}

/// Losses of each run's steps, and beside them those of its validations.
std::vector<Series> losses(const std::vector<NamedRun>& runs, const XAxis& x) {
  std::vector<Series> out = series_of(runs, x, [](const Step& s) { return s.loss; });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const NamedRun& named = runs[i];
    if (named.run.validations.empty()) continue;
    // Of several runs in its run's colour, with dots.
    Series series{(runs.size() > 1 ? named.name + ", " : "") + "validation",
                  {},
                  {},
                  runs.size() > 1 ? static_cast<int>(i) : 1,
                  true};
    const std::vector<double> places = x.of(named.run);
    for (const spec::record::Validation& validation : named.run.validations) {
      series.x.push_back(x.after(named.run, places, validation.step));
      series.y.push_back(validation.loss);
    }
    out.push_back(std::move(series));
  }
  if (runs.size() == 1 && out.size() > 1) out[0].name = "training";
  return out;
}

/// The floor and the expected first loss; those that runs share are drawn once.
std::vector<Level> loss_levels(const std::vector<NamedRun>& runs) {
  std::vector<Level> levels;
  const auto add = [&](const Level& added) {
    for (const Level& level : levels)
      if (level.label == added.label) return;
    levels.push_back(added);
  };
  for (const NamedRun& named : runs) {
    const spec::record::RunStart& start = named.run.start;
    if (start.data.floor) add({*start.data.floor, "floor " + spec::fixed(*start.data.floor, 4)});
    if (const auto& expected = start.expected_first_loss)
      add({expected->mean,
           "expected first loss " + spec::fixed(expected->mean, 3) + " ± " +
               spec::fixed(expected->standard_deviation, 3),
           true});
  }
  return levels;
}

/// The phases of the record in its order. Computing is blue and orange, waiting red.
const std::vector<Part>& phases() {
  static const std::vector<Part> parts = [] {
    const std::map<std::string, int> colours = {{"data_wait", 6}, {"forward", 0}, {"backward", 1},
                                                {"reduce", 3},    {"clip", 5},    {"update", 2},
                                                {"checkpoint", 4}};
    std::vector<Part> all;
    const spec::record::Phases none;
    spec::record::fields(none, [&](std::string name, double) {
      const auto colour = colours.find(name);
      std::replace(name.begin(), name.end(), '_', ' ');
      all.push_back({name, colour == colours.end() ? 7 : colour->second});
    });
    return all;
  }();
  return parts;
}

std::vector<double> phase_seconds(const spec::record::Phases& phases) {
  std::vector<double> seconds;
  spec::record::fields(phases, [&](const char*, double value) { seconds.push_back(value); });
  return seconds;
}

std::string throughput(const std::vector<NamedRun>& runs) {
  return viewed(runs, false, [&](const XAxis& x) {
    return Chart{
        "Throughput", "tokens/s", series_of(runs, x, [](const Step& s) { return s.tokens_per_second; }),
        {},           true,       true};
  });
}

/// Which of the views are shown: radio buttons that the style sheet reads.
std::string choices() {
  const auto choice = [](const char* group, const char* view, const char* name, bool checked) {
    return std::string("<label><input type=\"radio\" name=\"") + group + "\" id=\"" + view + "\"" +
           (checked ? " checked" : "") + "> " + name + "</label> ";
  };
  std::string zoom;
  for (const Range& range : ranges) zoom += choice("z", range.view, range.name, range.share == 1);
  return "<div class=\"choices soft\">curves by " + choice("x", "x-step", "step", true) +
         choice("x", "x-tokens", "tokens", false) + choice("x", "x-time", "time in steps", false) +
         "<span></span>losses and norm on a " + choice("y", "y-linear", "linear", true) +
         choice("y", "y-log", "logarithmic", false) + "axis<span></span>zoom " + zoom + "</div>\n";
}

/// A number that some runs have, times `scale`; nothing where none has it.
std::string of_some(const std::vector<NamedRun>& runs, const std::string& title, const std::string& unit,
                    std::optional<double> Step::*value, double scale) {
  auto series = series_of(runs, [&](const Step& s) { return s.*value ? scale * *(s.*value) : NAN; });
  const bool any = std::any_of(series.begin(), series.end(), [](const Series& each) {
    return std::any_of(each.y.begin(), each.y.end(), [](double y) { return std::isfinite(y); });
  });
  return any ? line_chart({title, unit, std::move(series), {}, true, true}) : "";
}

std::string memory(const std::vector<NamedRun>& runs) {
  const auto on_device = [](const NamedRun& named) {
    return std::any_of(named.run.steps.begin(), named.run.steps.end(),
                       [](const Step& s) { return s.device_peak_bytes > 0; });
  };
  const bool device = std::any_of(runs.begin(), runs.end(), on_device);
  auto series = series_of(runs, [&](const Step& s) {
    return static_cast<double>(device ? s.device_peak_bytes : s.resident_bytes) / (1 << 20);
  });
  return line_chart({device ? "Peak GPU memory" : "Memory of rank 0",
                     device ? "MiB" : "MiB, of the whole process",
                     std::move(series),
                     {},
                     true,
                     false});
}

/// A line for each source of each run's mixture.
std::vector<Series> losses_by_source(const std::vector<NamedRun>& runs, const XAxis& x) {
  std::vector<Series> all;
  for (const NamedRun& named : runs) {
    std::map<std::string, Series> of_sources;
    const auto take = [&](const std::vector<Step>& steps, const std::vector<double>& places,
                          std::vector<double> Series::*to_x, std::vector<double> Series::*to_y) {
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (!steps[i].sources) continue;
        for (const spec::record::StepSource& source : *steps[i].sources) {
          if (!source.loss) continue;
          (of_sources[source.name].*to_x).push_back(places[i]);
          (of_sources[source.name].*to_y).push_back(*source.loss);
        }
      }
    };
    take(named.run.steps, x.of(named.run), &Series::x, &Series::y);
    if (named.run.thinned)
      take(named.run.thinned->means, x.of_means(named.run), &Series::means_x, &Series::means_y);
    for (auto& [source, series] : of_sources) {
      series.name = runs.size() == 1 ? source : named.name + ", " + source;
      series.colour = static_cast<int>(all.size());
      all.push_back(std::move(series));
    }
  }
  return all;
}

std::string by_source(const std::vector<NamedRun>& runs) {
  if (losses_by_source(runs, XAxis(By::step, runs)).empty()) return "";
  return viewed(runs, true, [&](const XAxis& x) {
    return Chart{"Loss by source", "nats per token", losses_by_source(runs, x), {}, true, true};
  });
}

std::string phases_by_step(const NamedRun& named) {
  Chart chart{"Where a step's time goes", "ms, mean of neighbouring steps", {}, {}, true, false};
  for (std::size_t phase = 0; phase < phases().size(); ++phase) {
    Series series{phases()[phase].name, {}, {}, phases()[phase].colour};
    bool any = false;
    for (const Step& step : named.run.thinned ? named.run.thinned->means : named.run.steps) {
      const double milliseconds = 1e3 * phase_seconds(step.phases)[phase];
      any = any || milliseconds > 0;
      series.x.push_back(static_cast<double>(step.step));
      series.y.push_back(milliseconds);
    }
    if (any) chart.series.push_back(std::move(series));
  }
  return stacked_chart(chart);
}

std::string phase_bars(const std::vector<NamedRun>& runs) {
  std::vector<Bar> bars;
  for (const NamedRun& named : runs) {
    Bar bar{named.name, {}, ""};
    double total = 0;
    const StepSums sums = sums_of(named.run);
    for (const double seconds : phase_seconds(sums.phases))
      bar.parts.push_back(sums.count > 0 ? seconds / static_cast<double>(sums.count) : 0);
    for (const double part : bar.parts) total += part;
    bar.total = spec::fixed(1e3 * total, 1) + " ms";
    if (runs.size() == 1) bar.name = "mean step";
    bars.push_back(std::move(bar));
  }
  return bar_chart("Mean time of a step by phase", phases(), bars);
}

}  // namespace

std::string charts(const std::vector<NamedRun>& runs) {
  std::string out = choices() + "<section class=\"charts\">\n";
  out += viewed(runs, true, [&](const XAxis& x) {
    return Chart{"Loss", "nats per token", losses(runs, x), loss_levels(runs), true, true};
  });
  out += by_source(runs);
  out += line_chart(
      {"Learning rate", "", series_of(runs, [](const Step& s) { return s.learning_rate; }), {}, true, false});
  out += viewed(runs, true, [&](const XAxis& x) {
    return Chart{"Gradient norm",
                 "before clipping",
                 series_of(runs, x, [](const Step& s) { return s.gradient_norm; }),
                 {},
                 true,
                 true};
  });
  out += throughput(runs);
  out += of_some(runs, "Model FLOP utilisation (MFU)", "% of dense peak", &Step::mfu, 100);
  out += of_some(runs, "Hardware FLOP utilisation (HFU)", "% of dense peak", &Step::hfu, 100);
  out += of_some(runs, "Load of the busiest expert, worst layer", "times the mean load",
                 &Step::load_balance_worst, 1);
  out += of_some(runs, "Router entropy", "nats per token", &Step::router_entropy, 1);
  out += of_some(runs, "Choices dropped by the capacity", "% of all", &Step::dropped_choices, 100);
  out += memory(runs);
  if (runs.size() == 1) out += phases_by_step(runs[0]);
  out += phase_bars(runs);
  return out + "</section>\n";
}

}  // namespace assay::impl::report
