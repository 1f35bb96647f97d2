#pragma once
// The steps of a run of any length as drawings and tables need them, in a memory that does not grow with the
// run.
#include <cstdint>
#include <optional>
#include <vector>

#include "spec/record/event.hpp"

namespace assay::spec::record {

/// What steps come to together.
struct StepSums {
  struct Share {
    double sum = 0;
    std::int64_t count = 0;  ///< steps that have it
  };
  std::int64_t count = 0, tokens = 0;
  double seconds = 0;
  Share mfu, hfu;
  std::int64_t most_bytes = 0;  ///< of a process or a GPU [B]
  Phases phases;                ///< what is finite of them

  void add(const Step& step);
};

/// Tokens and seconds up to a step, itself included.
struct RunSoFar {
  double tokens = 0, seconds = 0;
};

/// What stands for a run's steps beside those that were kept.
struct ThinnedSteps {
  StepSums sums;                   ///< of all steps
  std::vector<RunSoFar> so_far;    ///< at each step that was kept
  std::vector<Step> means;         ///< of neighbouring steps, as many each time; texts are empty
  std::vector<RunSoFar> means_at;  ///< the mean over the same steps
};

/// Takes the steps of a run in their order. Up to `most_whole` are all kept. Of more, in each of `buckets`
/// ranges, those with the least and the greatest value of each number, so that spikes stay; and the last
/// ones, of which a final loss is the mean.
class StepThinner {
 public:
  static constexpr std::int64_t most_whole = 4096, buckets = 1024;

  /// `count`: steps that will be added.
  explicit StepThinner(std::int64_t count) : count_(count) {}
  void add(const Step& step);

  struct Result {
    std::vector<Step> steps;
    std::optional<ThinnedSteps> thinned;  ///< nothing where `steps` are all
  };
  /// After the last one.
  Result result() &&;

 private:
  struct Kept {
    std::int64_t index = 0;
    Step step;
    RunSoFar so_far;
  };
  struct Extremes {
    double low = 0, high = 0;
    std::int64_t least = -1, greatest = -1;  ///< indices of steps; -1: none has the number
  };
  struct Mean {
    double sum = 0;
    std::int64_t count = 0;
  };
  void take_numbers(const Step& step, std::int64_t index);
  void drop_all_but_extremes();
  void end_bucket();

  const std::int64_t count_;
  std::int64_t index_ = 0, bucket_ = 0;
  RunSoFar so_far_;
  Result result_;
  ThinnedSteps thinned_;
  // Of the bucket, by number:
  std::vector<Extremes> extremes_;
  std::vector<Mean> means_;
  std::vector<Kept> kept_;  ///< its last steps, and of those before the extremes
  RunSoFar bucket_so_far_;
  std::int64_t in_bucket_ = 0;
};

}  // namespace assay::spec::record
