#pragma once
// What is known of steps that no line shows, from those that lines show.
#include <cstddef>
#include <optional>
#include <vector>

#include "spec/interval.hpp"

namespace assay::spec::audit {

/// Where fewer lines than that show steps, their spread says too little of the others.
constexpr std::size_t fewest_to_tell = 8;

/// What contradicts must be nearer to twice, as factors go, than to once: the smallest mistake that is a
/// whole multiple (two passes, two ranks, two GPUs). For numbers of which nothing tells how exact they are.
constexpr double half_way_to_twice = 1.4142135623730951;

/// Logged steps are no random draw: they wait for the GPU, gather loss and norms from all ranks, and write.
/// No number of a log tells how much of their time that is. Chosen: up to a tenth, and of short steps up to
/// five milliseconds. [share], [s]
constexpr double most_of_logging = 0.1, longest_logging = 0.005;

/// The least that a step which is not logged takes, of the time of a logged one of `seconds`. [share]
double least_without_logging(double seconds);

/// From the least to the most that these may be. Domain: there are some.
Interval hull(const std::vector<Interval>& numbers);

/// How far these lie apart: of `fewest_to_tell` and more, their lower ends, since so many that print one
/// number are no chance of steps that lie a digit beyond it; of fewer, as far as they may. Domain: there are
/// some.
double apart(const std::vector<Interval>& numbers);

/// The mean time of steps that are not logged, of the times of those that are, as widely as they are printed:
/// no further outside these than they lie apart, and below them what logging may add as well. Of eight
/// draws of one normal distribution the mean of four others lies beyond once in about 9,000 times on either
/// side; times whose tail is heavier lie beyond it oftener, how often no log tells. An honest log: of
/// golden/logs/llm_tii_run_20251115_150458.json every tenth step is logged, all but the first within 0.7 % of
/// one another, and so many times their steps make 1,100.8 s, of 1,100.5 s by the clock.
/// [s]; nothing where there are fewer than `fewest_to_tell`.
std::optional<Interval> unlogged_times(const std::vector<Interval>& logged);

/// So few lines of an excerpt may be alike by chance: their spread and a tenth. Of four draws of one normal
/// distribution of a fifth the range is below a tenth once in about 150 times. Chosen. [lines], [share]
constexpr std::size_t fewest_of_excerpt = 4;
constexpr double told_by_few = 0.1;

/// As `unlogged_times`, of steps that are logged as those that are shown, whose lines were left out of an
/// excerpt. [s]; nothing where there are fewer than `fewest_of_excerpt`.
std::optional<Interval> left_out_times(const std::vector<Interval>& shown);

/// Of a step that is not logged, where lines say so little that one logged step stands for it. [s]
Interval told_by_one(Interval logged);

}  // namespace assay::spec::audit
