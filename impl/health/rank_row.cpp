#include "impl/health/rank_row.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace assay::impl {

namespace {
template <std::size_t N>
void put(char (&to)[N], const std::string& from) {
  to[from.copy(to, N - 1)] = '\0';
}
}  // namespace

std::string to_string(Doing doing) {
  static constexpr std::array names = {"data_wait", "forward",    "backward", "reduce", "clip",      "update",
                                       "other",     "checkpoint", "starting", "ending", "validation"};
  return names.at(static_cast<std::size_t>(doing));
}

std::string to_string(Outside outside) {
  static constexpr std::array names = {"nothing", "data", "a disk", "its terminal"};
  return names.at(static_cast<std::size_t>(outside));
}

Row::Held Row::advance() {
  Held held = hold();
  ++held->progress;
  return held;
}

void Row::enter(Doing doing) {
  advance()->doing = doing;
  if (entered_) entered_(view());
}

void Row::begin_step(std::int64_t step) {
  const Held row = advance();
  given_before_ += static_cast<std::uint32_t>(row->given);
  row->reached -= row->given;
  row->step = step, row->of_step = row->given = 0;
}

void Row::end_step(double seconds) {
  const Held row = advance();
  // The first step of a start finds its algorithms and fills its pools.
  if (row->steps_done++ > 0) row->longest_step = std::max(row->longest_step, seconds);
}

void Row::begin(spec::Collective collective, std::int64_t bytes) {
  const Held row = advance();
  row->collective = collective, row->bytes = bytes;
  ++row->collectives, ++row->of_step;
}

std::uint32_t Row::give() {
  const Held row = hold();
  return given_before_ + static_cast<std::uint32_t>(++row->given);
}

void Row::follow(std::function<std::uint32_t()> reached) {
  const Held row = hold();
  reached_ = std::move(reached);
}

RowView Row::beat() {
  const Held row = hold();
  const auto seen = [&] { return std::tuple(row->reached, row->outside, outside_ended_); };
  const auto before = seen();
  if (reached_) {
    const std::uint32_t given = given_before_ + static_cast<std::uint32_t>(row->given);
    row->reached = row->given - static_cast<std::int64_t>(given - reached_());
  }
  row->outside = outside_under_way(), outside_ended_ = outside_ended();
  row->progress += seen() != before;
  ++row->beat;
  return *row;
}

void Row::stand(Standing standing, const std::string& reason) {
  const Held row = hold();
  row->standing = standing;
  put(row->reason, reason);
}

void Row::set_gpu(const std::string& gpu) { put(hold()->gpu, gpu); }

}  // namespace assay::impl
