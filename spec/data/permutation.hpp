#pragma once
// The shuffle of an epoch: a keyed permutation of [0, n) that is a pure function of the position, so that
// nothing is stored, whatever n is. Construction and constraints: spec/data/sample_order.md.
#include <cstdint>

#include "spec/random/philox.hpp"

namespace assay::spec::data {

/// Bijection of [0, n) onto itself, keyed by (seed, site, epoch).
/// Source: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002: a generalised Feistel
/// network on Z_a x Z_a with a = ceil(sqrt(n)) (their method 3), restricted to [0, n) by cycle walking (their
/// method 2). Cost: 8 Philox blocks, times a^2 / n < 1 + 3 / sqrt(n) on average for the walk.
class Permutation {
 public:
  /// Errors: SpecError permutation_c1 (n not in [1, 2^62]), permutation_c2 (epoch not in [0, 2^32)).
  Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t n,
              random::Site site = random::Site::sample_order);

  std::int64_t size() const { return n_; }

  /// Image of a position. Errors: SpecError permutation_c3 (position not in [0, n)).
  std::int64_t operator()(std::int64_t position) const;

  /// Position whose image is `sample`. Errors: SpecError permutation_c3 (sample not in [0, n)).
  std::int64_t inverse(std::int64_t sample) const;

 private:
  std::uint64_t round_value(int round, std::uint64_t half) const;
  std::uint64_t encrypt(std::uint64_t value) const;
  std::uint64_t decrypt(std::uint64_t value) const;
  void check(std::int64_t element) const;

  random::Stream stream_;
  std::int64_t n_;
  std::uint64_t side_;  ///< a
};

/// Permutation(seed, epoch, n)(position).
std::int64_t sample_at(std::uint64_t seed, std::int64_t epoch, std::int64_t position, std::int64_t n);

}  // namespace assay::spec::data
