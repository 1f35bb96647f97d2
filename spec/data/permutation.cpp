#include "spec/data/permutation.hpp"

#include <cmath>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::data {
namespace {

// Luby and Rackoff need 4 rounds on large halves; on the few bits of a small data set more rounds mix better.
constexpr int rounds = 8;

std::uint64_t ceil_sqrt(std::uint64_t n) {
  auto root =
      static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n)));  // off by one at most for n <= 2^62
  while (root * root >= n && root > 1) --root;
  while (root * root < n) ++root;
  return root;
}

std::uint32_t checked_epoch(std::int64_t epoch) {
  // permutation_c2
  require(epoch >= 0 && epoch < std::int64_t{1} << 32, "permutation_c2",
          [&] { return "epoch=" + std::to_string(epoch); });
  return static_cast<std::uint32_t>(epoch);
}

}  // namespace

Permutation::Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t n, random::Site site)
    : stream_(seed, site, checked_epoch(epoch)), n_(n) {
  // permutation_c1
  require(n >= 1 && n <= std::int64_t{1} << 62, "permutation_c1", [&] { return "n=" + std::to_string(n); });
  side_ = ceil_sqrt(static_cast<std::uint64_t>(n));
}

// A half is below 2^31, so (round, half) never meets another round's index.
std::uint64_t Permutation::round_value(int round, std::uint64_t half) const {
  return stream_.below(static_cast<std::uint64_t>(round) << 32 | half, side_);
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  std::uint64_t left = value / side_, right = value % side_;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t mixed = (left + round_value(round, right)) % side_;
    left = right;
    right = mixed;
  }
  return left * side_ + right;
}

std::uint64_t Permutation::decrypt(std::uint64_t value) const {
  std::uint64_t left = value / side_, right = value % side_;
  for (int round = rounds; round-- > 0;) {
    const std::uint64_t mixed = (right + side_ - round_value(round, left)) % side_;
    right = left;
    left = mixed;
  }
  return left * side_ + right;
}

void Permutation::check(std::int64_t element) const {
  // permutation_c3
  require(element >= 0 && element < n_, "permutation_c3",
          [&] { return std::to_string(element) + " is not in [0, " + std::to_string(n_) + ")"; });
}

std::int64_t Permutation::operator()(std::int64_t position) const {
  check(position);
  auto value = static_cast<std::uint64_t>(position);
  do value = encrypt(value);
  while (value >= static_cast<std::uint64_t>(n_));
  return static_cast<std::int64_t>(value);
}

std::int64_t Permutation::inverse(std::int64_t sample) const {
  check(sample);
  auto value = static_cast<std::uint64_t>(sample);
  do value = decrypt(value);
  while (value >= static_cast<std::uint64_t>(n_));
  return static_cast<std::int64_t>(value);
}

std::int64_t sample_at(std::uint64_t seed, std::int64_t epoch, std::int64_t position, std::int64_t n) {
  return Permutation(seed, epoch, n)(position);
}

}  // namespace assay::spec::data
