#pragma once
// Numbers that a trainer prints as a mean over steps, held against those of the single steps. Where the
// trainer's source says how the mean is formed, each line says by itself what the step's own number was.
#include <optional>
#include <vector>

#include "spec/audit/relations.hpp"

namespace assay::spec::audit {

/// How `field` is formed, where its trainer smooths it. Nothing for other means, and for numbers that are
/// none.
std::optional<RunningMean> running_mean(const Evidence& evidence, Field field);

/// The most usual distance between the steps of two lines that follow each other; 0 where there are none.
double usual_distance(const Evidence& evidence);

/// Collects a printed number of each line beside what the line's other numbers make of it.
class Means {
 public:
  /// `differ`: the one is a mean and the other is of a step alone. Means of one window agree as single steps
  /// do. The MFU of a log whose trainer nobody knows may be of a step or such a mean: its lines tell.
  Means(const Evidence& evidence, Field field, bool differ, Comparison& to)
      : e_(evidence),
        to_(to),
        field_(field),
        differ_(differ),
        open_(!differ && field == Field::mfu && !evidence.trainer.means_known) {}

  /// `made` of the numbers as they may be, `likely` of those printed. Single steps are held each by itself.
  void add(std::size_t step, const Printed& printed, Interval made, double likely) {
    if (differ_ || open_)
      lines_.push_back({step, &printed, made, likely});
    else
      add_sample(to_, printed, made, static_cast<std::int64_t>(step), likely);
  }

  /// Adds the samples of means: known ones by what each line adds to the one before, others within the range
  /// of all steps so far.
  void finish();

  /// Places of the log that were examined to find where its starts begin: no more than there are lines,
  /// stretches and restarts.
  std::size_t looked_at() const { return looked_at_; }

 private:
  struct Line {
    std::size_t step;
    const Printed* printed;
    Interval made;
    double likely;
  };
  struct Ratio {
    Interval range;
    double likely;
  };
  using Ratios = std::vector<std::optional<Ratio>>;
  struct Known {
    Interval numbers{0, 0};
    double likely = 0;
    bool known = false;
  };
  struct Chain {
    Known shown, formed;  ///< the mean of the line before: as printed, and as single numbers form it
    std::optional<Ratio> by_line;
    std::size_t last = 0;   ///< that line
    bool left_out = false;  ///< the line behind it said nothing
  };

  Ratios alone() const;
  Interval unseen_steps() const;
  Chain first(std::size_t line, const RunningMean& mean, Interval shown, double c) const;
  Ratios of_mean(const RunningMean& mean, std::optional<Interval> factor) const;
  // running_mean_excerpts.cpp
  /// What line `k` adds to the mean of the line before where lines between the two are left out of the log,
  /// if that makes it hold.
  std::optional<Ratio> left_out_before(std::size_t k, const Chain& chain, const RunningMean& mean,
                                       const Interval& factor) const;
  bool goes_on(std::size_t k, const RunningMean& mean, const Interval& factor) const;
  Interval made_by_others(std::size_t line) const;
  static Ratio with_lines_between(const Known& before, const Line& line, const Interval& others,
                                  const RunningMean& mean, double between, bool stalled);
  static std::size_t misses(const Ratios& ratios, const Interval& factor);
  bool unmeasured_between(std::size_t from, std::size_t to) const;

  static Ratio closer(const Ratio& by_line, const Ratio& by_all, std::optional<Interval> factor);
  static std::vector<Interval> ranges_of(const Ratios& ratios);
  void within_range() const;
  void add_all(const Ratios& ratios);
  void by_its_lines();  // running_mean_unsaid.cpp
  void find_beginnings();
  bool follows_unmeasured(std::size_t line) const;
  double steps_between(std::size_t from, std::size_t to, const RunningMean& mean) const;

  const Evidence& e_;
  Comparison& to_;
  Field field_;
  bool differ_;
  bool open_;  ///< nobody says whether it is a mean
  std::vector<Line> lines_;
  std::vector<bool> begins_;   ///< of each line: the first of a start
  std::size_t looked_at_ = 0;  ///< lines, stretches and restarts, to find them
  double usual_ = 1;           ///< distance of two lines of the log [steps]
};

}  // namespace assay::spec::audit
