#include "spec/ops/attention/attention.hpp"

#include <algorithm>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::attention {

namespace {
std::string text(const std::vector<std::int64_t>& extents) {
  std::string joined;
  for (std::int64_t extent : extents) joined += (joined.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + joined + "]";
}

Documents of_sequence(const Shape& shape, Documents documents, std::int64_t b) {
  return documents.subspan(static_cast<std::size_t>(b * shape.keys()),
                           static_cast<std::size_t>(shape.keys()));
}

void check_documents(const Shape& shape, Documents documents) {
  // attention_c3
  require(documents.empty() || static_cast<std::int64_t>(documents.size()) == shape.B * shape.keys(),
          "attention_c3", [&] {
            return std::to_string(documents.size()) +
                   " document numbers for B*S=" + std::to_string(shape.B * shape.keys()) + " tokens";
          });
  if (documents.empty()) return;
  for (std::int64_t b = 0; b < shape.B; ++b) {
    const Documents sequence = of_sequence(shape, documents, b);
    const auto unsorted = std::is_sorted_until(sequence.begin(), sequence.end());
    // attention_c4
    require(unsorted == sequence.end(), "attention_c4", [&] {
      return "document " + std::to_string(*unsorted) + " follows a larger one at token " +
             std::to_string(unsorted - sequence.begin()) + " of sequence " + std::to_string(b);
    });
  }
}
}  // namespace

void check(const Shape& shape, const Mask& mask) {
  // attention_c5
  require(shape.E >= 1 && shape.H >= 1 && shape.B >= 0 && shape.T >= 0 && shape.W >= 0 && shape.S >= 0,
          "attention_c5", [&] {
            return "B=" + std::to_string(shape.B) + ", T=" + std::to_string(shape.T) +
                   ", H=" + std::to_string(shape.H) + ", E=" + std::to_string(shape.E) +
                   (shape.W ? ", W=" + std::to_string(shape.W) : "") +
                   (shape.S ? ", S=" + std::to_string(shape.S) : "");
          });
  // attention_c2
  require(shape.K >= 1 && shape.H % shape.K == 0, "attention_c2", [&] {
    return "K=" + std::to_string(shape.K) + " key/value heads do not divide H=" + std::to_string(shape.H);
  });
  check_documents(shape, mask.documents);
  // attention_c6
  require(mask.window >= 0, "attention_c6", [&] { return "window=" + std::to_string(mask.window); });
  const std::int64_t behind = mask.first + shape.T - shape.keys();  // queries that have no key of their own
  // attention_c7
  require(mask.first >= 0 && (behind <= 0 || (mask.documents.empty() && shape.keys() > 0 &&
                                              (mask.window == 0 || behind < mask.window))),
          "attention_c7", [&] {
            return "queries at " + std::to_string(mask.first) + " to " +
                   std::to_string(mask.first + shape.T - 1) + ", keys at 0 to " +
                   std::to_string(shape.keys() - 1) + ", window=" + std::to_string(mask.window) +
                   (mask.documents.empty() ? "" : ", with documents");
          });
}

void check_extents(const char* name, const std::vector<std::int64_t>& extents,
                   const std::vector<std::int64_t>& expected) {
  // attention_c1
  require(extents == expected, "attention_c1",
          [&] { return std::string(name) + " is " + text(extents) + ", expected " + text(expected); });
}

std::int64_t first_visible(const Shape& shape, const Mask& mask, std::int64_t b, std::int64_t t) {
  const std::int64_t at = mask.first + t,
                     in_window = mask.window > 0 ? std::max<std::int64_t>(at - mask.window + 1, 0) : 0;
  if (mask.documents.empty()) return in_window;
  const Documents sequence = of_sequence(shape, mask.documents, b);
  return std::max<std::int64_t>(
      in_window, std::lower_bound(sequence.begin(), sequence.end(), sequence[static_cast<std::size_t>(at)]) -
                     sequence.begin());
}

std::int64_t last_visible(const Shape& shape, const Mask& mask, std::int64_t t) {
  return std::min(mask.first + t, shape.keys() - 1);
}

Count document_pairs(std::int64_t n, std::int64_t window) {
  const auto triangle = [](std::int64_t side) { return (side * (Count(side) + 1)).divided_exactly_by(2); };
  return window > 0 && window < n ? triangle(n) - triangle(n - window) : triangle(n);
}

/// Of one document: all pairs up to the last query, without those of the queries before the first, and
/// without those of keys that are not there.
Count visible_pairs(const Shape& s, const Mask& mask) {
  const auto pairs_of = [&](std::int64_t n) {
    return document_pairs(std::max<std::int64_t>(n, 0), mask.window);
  };
  if (mask.documents.empty())
    return s.B * (pairs_of(mask.first + s.T) - pairs_of(mask.first) -
                  (pairs_of(mask.first + s.T - s.keys()) - pairs_of(mask.first - s.keys())));
  Count pairs;
  for (std::int64_t b = 0; b < s.B; ++b)
    for (std::int64_t t = 0; t < s.T; ++t)
      pairs += last_visible(s, mask, t) - first_visible(s, mask, b, t) + 1;
  return pairs;
}

// Per pair: scores and y in matmul; scale, - max, exp, sum. Per row: W divisions, log, + max.
Flops forward_flops(const Shape& s, const Mask& mask) {
  const Count pairs = s.H * visible_pairs(s, mask), rows = Count(s.B) * s.T * s.H;
  return {2 * pairs * (Count(s.E) + s.value_dim()), 4 * pairs + rows * (Count(s.value_dim()) + 2)};
}

// Per pair: dp, dv, dq, dk in matmul; dp - delta, * p, * scale. Per row: delta.
Flops backward_flops(const Shape& s, const Mask& mask) {
  const Count pairs = s.H * visible_pairs(s, mask), rows = Count(s.B) * s.T * s.H;
  return {4 * pairs * (Count(s.E) + s.value_dim()), 3 * pairs + 2 * rows * s.value_dim()};
}

Flops recomputed_flops(const Shape& s, const Mask& mask) {
  const Count pairs = s.H * visible_pairs(s, mask);
  return {2 * pairs * s.E, 3 * pairs};
}

/// q of E and y of W entries for each query, k of E and v of W for each key.
static Count operands(const Shape& s) {
  return (Count(s.B) * s.T * s.H + Count(s.B) * s.keys() * s.K) * (Count(s.E) + s.value_dim());
}

Count forward_bytes(const Shape& s, std::int64_t element, std::int64_t statistic) {
  return operands(s) * element + Count(s.B) * s.T * s.H * statistic;
}

Count backward_bytes(const Shape& s, std::int64_t element, std::int64_t statistic) {
  return 2 * operands(s) * element + Count(s.B) * s.T * s.H * statistic;
}

}  // namespace assay::spec::attention
