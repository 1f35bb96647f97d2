#pragma once
// What is known of steps that no line shows, from those that lines show.
#include <cstddef>
#include <optional>
#include <vector>

#include "spec/interval.hpp"

namespace assay::spec::audit {

/// Where fewer lines than that show steps, their spread says too little of the others.
constexpr std::size_t fewest_to_tell = 8;

/// The mean time of steps that are not logged, of the times of those that are: no further outside these than
/// they lie apart. Of eight draws of one normal distribution, the mean of four others lies below that range
/// once in 15,000 times, of nine once in 30,000 (60,000 drawn); of five draws once in 340 and 680. An honest
/// log: of golden/logs/llm_tii_run_20251115_150458.json every tenth step is logged, all but the first within
/// 0.7 % of one another, and so many times their steps make 1,100.8 s, of 1,100.5 s by the clock.
/// In the unit of `logged`. Nothing where there are fewer than `fewest_to_tell`.
std::optional<Interval> unlogged_mean(const std::vector<double>& logged);

/// What contradicts must be nearer to twice, as factors go, than to once: the smallest mistake that is a
/// whole multiple (two passes, two ranks, two GPUs). For numbers of which nothing tells how exact they are.
constexpr double half_way_to_twice = 1.4142135623730951;

}  // namespace assay::spec::audit
