#pragma once
// Holds the numbers of every line of a long log to one another, in constant memory: what the first lines have
// in common, a line that is not among the kept steps has too, or it is kept.
#include <array>
#include <cstdint>
#include <vector>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

inline constexpr std::array<Field, 7> watched_fields = {
    Field::seconds, Field::tokens_per_second, Field::mfu, Field::flops_rate, Field::tokens,
    Field::loss,    Field::learning_rate};
/// A line's numbers of those fields; NaN where it has none.
using WatchedNumbers = std::array<double, watched_fields.size()>;

/// The place of each field in WatchedNumbers; -1 of those that are not watched.
inline constexpr std::array<std::int8_t, field_count> watched_places = [] {
  std::array<std::int8_t, field_count> places{};
  places.fill(-1);
  for (std::size_t i = 0; i < watched_fields.size(); ++i)
    places[static_cast<std::size_t>(watched_fields[i])] = static_cast<std::int8_t>(i);
  return places;
}();

WatchedNumbers watched_numbers(const Step& step);
/// Domain: a watched field.
inline double& watched(WatchedNumbers& numbers, Field field) {
  return numbers[static_cast<std::size_t>(watched_places[static_cast<std::size_t>(field)])];
}

/// Products and quotients that are the same on every line where the line's relations hold (tokens/s x
/// seconds, MFU / tokens/s, ...), or nearly so where one of the two is a mean. Which they are, and how far
/// they range, the first lines show: a fault of all lines is for the kept steps to show.
class LineWatch {
 public:
  /// One of the first lines.
  void learn(const Step& step);
  /// Whether the numbers of a later line leave the range of the first ones (their first to last hundredth,
  /// wider by as much again, at least by their rounding), the loss is none that training reaches, or the
  /// learning rate is a tenth off the line before.
  bool apart(const WatchedNumbers& numbers);

 private:
  struct Pair {
    std::size_t a, b;
    bool product;  ///< else a quotient; of a field with itself, the field
    double of(const WatchedNumbers& numbers) const;
    std::vector<double> first;
    double rounding = 0;  ///< of the first lines' numbers, relative
    double low = 0, high = 0;
  };
  void settle();
  std::vector<Pair> pairs_;  ///< those that the first lines hold
  double last_rate_ = 0;     ///< the learning rate of the line before
  bool settled_ = false;
};

}  // namespace assay::spec::audit
