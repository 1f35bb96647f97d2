#include "spec/count.hpp"

#include <algorithm>
#include <limits>

#include "spec/error.hpp"

namespace assay {

Count::Count(std::int64_t value) {
  require(value >= 0, "count_c1", [&] { return "a count cannot be negative: " + std::to_string(value); });
  value_ = static_cast<Wide>(value);
}

Count Count::operator+(Count other) const {
  Wide sum = 0;
  const bool overflow = __builtin_add_overflow(value_, other.value_, &sum);
  require(!overflow, "count_c1",
          [&] { return to_string() + " + " + other.to_string() + " exceeds 128 bits"; });
  return of(sum);
}

Count Count::operator-(Count other) const {
  require(value_ >= other.value_, "count_c1",
          [&] { return to_string() + " - " + other.to_string() + " is negative"; });
  return of(value_ - other.value_);
}

Count Count::operator*(Count other) const {
  Wide product = 0;
  const bool overflow = __builtin_mul_overflow(value_, other.value_, &product);
  require(!overflow, "count_c1",
          [&] { return to_string() + " * " + other.to_string() + " exceeds 128 bits"; });
  return of(product);
}

Count Count::divided_exactly_by(Count divisor) const {
  require(divisor.value_ != 0 && value_ % divisor.value_ == 0, "count_c2",
          [&] { return to_string() + " is not a multiple of " + divisor.to_string(); });
  return of(value_ / divisor.value_);
}

Count Count::divided_to_nearest(Count divisor) const {
  require(divisor.value_ != 0, "count_c2", [&] { return to_string() + " divided by 0"; });
  const Wide whole = value_ / divisor.value_, rest = value_ % divisor.value_;
  return of(rest >= divisor.value_ - rest ? whole + 1 : whole);
}

double Count::to_double() const { return static_cast<double>(value_); }

std::int64_t Count::to_int64() const {
  require(value_ <= static_cast<Wide>(std::numeric_limits<std::int64_t>::max()), "count_c1",
          [&] { return to_string() + " does not fit 64 bits"; });
  return static_cast<std::int64_t>(value_);
}

std::string Count::to_string() const {
  if (value_ == 0) return "0";
  std::string digits;
  for (Wide rest = value_; rest != 0; rest /= 10)
    digits.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace assay
