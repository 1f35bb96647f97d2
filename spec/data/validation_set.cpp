#include "spec/data/validation_set.hpp"

#include <algorithm>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::data {

std::int64_t validation_batch(std::int64_t sequence_length, std::int64_t most, std::int64_t unit,
                              std::int64_t tokens) {
  // validation_set_c1
  require(sequence_length >= 1 && most >= 0 && unit >= 1, "validation_set_c1", [&] {
    return "sequence_length=" + std::to_string(sequence_length) + ", most=" + std::to_string(most) +
           ", unit=" + std::to_string(unit);
  });
  std::int64_t batch = std::max<std::int64_t>(tokens / sequence_length, 1);
  if (most > 0) batch = std::min(batch, most);
  while (batch * sequence_length % unit != 0) ++batch;
  return batch;
}

std::int64_t Evaluated::place(std::int64_t index) const {
  // validation_set_c2
  require(set >= 1 && most >= 0 && most < std::int64_t{1} << 31 && index >= 0 && index < count(),
          "validation_set_c2", [&] {
            return "sequence " + std::to_string(index) + " of " + std::to_string(count()) + " of a set of " +
                   std::to_string(set);
          });
  const std::int64_t apart = set / count(), rest = set % count();  // rest is 0 where all are evaluated
  return index * apart + index * rest / count();
}

double sum_in_order(std::span<const double> losses) {
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum;
}

}  // namespace assay::spec::data
