#include "impl/health/rank_row.hpp"

#include <algorithm>
#include <array>

namespace assay::impl {

namespace {
template <std::size_t N>
void put(std::atomic<char> (&to)[N], const std::string& from) {
  const std::size_t length = std::min(from.size(), N - 1);
  for (std::size_t i = 0; i < length; ++i) to[i] = from[i];
  to[length] = '\0';
}

template <std::size_t N>
void take(char (&to)[N], const std::atomic<char> (&from)[N]) {
  for (std::size_t i = 0; i < N; ++i) to[i] = from[i];
  to[N - 1] = '\0';
}
}  // namespace

std::string to_string(Doing doing) {
  static constexpr std::array names = {"starting", "data_wait", "forward",    "backward", "reduce",
                                       "clip",     "update",    "checkpoint", "other",    "ending"};
  return names.at(static_cast<std::size_t>(doing));
}

std::string to_string(Collective collective) {
  static constexpr std::array names = {"none",       "all-reduce",      "reduce-scatter",
                                       "all-gather", "gather of words", "barrier",
                                       "exchange",   "all-to-all"};
  return names.at(static_cast<std::size_t>(collective));
}

std::string to_string(Outside outside) {
  static constexpr std::array names = {"nothing", "data", "a disk", "its terminal"};
  return names.at(static_cast<std::size_t>(outside));
}

void Row::end_step(double seconds) {
  // The first step of a start finds its algorithms and fills its pools.
  if (steps_done_.fetch_add(1) > 0 && seconds > longest_step_) longest_step_ = seconds;
  ++progress_;
}

void Row::begin(Collective collective, std::int64_t bytes) {
  collective_ = collective;
  bytes_ = bytes;
  ++collectives_;
  ++progress_;
}

void Row::set_gpu(const std::string& gpu) { put(gpu_, gpu); }
void Row::set_reason(const std::string& reason) { put(reason_, reason); }

RowView Row::view() const {
  const Outside outside = outside_;  // before the progress that its end is
  const std::int64_t reached = reached_,
                     before = given_before_step_;  // before those that are given meanwhile
  RowView view{.beat = beat_,
               .progress = progress_,
               .step = step_,
               .steps_done = steps_done_,
               .longest_step = longest_step_,
               .collectives = collectives_,
               .of_step = collectives_ - before_step_,
               .given = given_ - before,
               .reached = reached - before,
               .bytes = bytes_,
               .collective = collective_,
               .doing = doing_,
               .standing = standing_,
               .outside = outside,
               .waits = waits_,
               .process = process_};
  take(view.gpu, gpu_);
  take(view.reason, reason_);
  return view;
}

}  // namespace assay::impl
