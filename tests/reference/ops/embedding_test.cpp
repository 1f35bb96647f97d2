// labels: unit property golden
#include "reference/ops/embedding.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "spec/ops/embedding/embedding.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::embedding_test {
namespace {

using tests::Allowed;
using tests::values;

/// N ids below V: repeats are likely because V is small.
Ids draw_ids(Index N, Index V) {
  return *rc::gen::container<Ids>(static_cast<std::size_t>(N), rc::gen::inRange<std::int64_t>(0, V));
}

TEST(EmbeddingReference, GivesTheSpecExample) {
  const Tensor<double> table({3, 2}, {1, 2, 3, 4, 5, 6});
  const Ids ids{2, 0, 2};
  ASSAY_EXPECT_CLOSE(values(embedding::forward(table, ids)), (tests::Values{{3, 2}, {5, 6, 1, 2, 5, 6}}),
                     Allowed::exact());
  const Tensor<double> dy({3, 2}, {1, 10, 2, 20, 4, 40});
  ASSAY_EXPECT_CLOSE(values(embedding::backward(dy, ids, 3)), (tests::Values{{3, 2}, {2, 20, 0, 0, 5, 50}}),
                     Allowed::exact());
}

TEST(EmbeddingReference, MatchesTorchFloat64) {
  for (const char* name : {"repeated_ids", "sparse_ids"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/embedding/") + name + ".json");
    const auto table = tests::tensor(golden.tensor("table"));
    const Ids ids = golden.ids("ids");
    const auto y = embedding::forward(table, ids).reshaped(golden.tensor("y").shape);
    const auto dtable = embedding::backward(tests::tensor(golden.tensor("dy")), ids, table.extent(0));
    ASSAY_EXPECT_CLOSE(values(y), golden.tensor("y"), Allowed::exact());
    ASSAY_EXPECT_CLOSE(values(dtable), golden.tensor("dtable"), Allowed::relative(1e-10));
  }
}

TEST(EmbeddingReference, C1RejectsAnIdOutsideTheTable) {
  EXPECT_THROW(embedding::forward(tests::normal({3, 2}, 1), {0, 3}), SpecError);
  EXPECT_THROW(embedding::backward(tests::normal({2, 2}, 1), {0, 3}, 3), SpecError);
}

TEST(EmbeddingReference, C2RejectsAnEmptyTable) {
  EXPECT_THROW(embedding::forward(Tensor<double>({0, 2}), {}), SpecError);
}

TEST(EmbeddingReference, C3RejectsAnUpstreamOfAnotherSize) {
  EXPECT_THROW(embedding::backward(tests::normal({3, 2}, 1), {0, 1}, 3), SpecError);
}

TEST(EmbeddingReference, AcceptsNoIds) {
  EXPECT_EQ(embedding::forward(tests::normal({3, 2}, 1), {}).shape(), (Shape{0, 2}));
}

RC_GTEST_PROP(EmbeddingReference, BackwardMatchesCentralDifference, ()) {
  const Index N = *rc::gen::inRange(1, 6), V = *rc::gen::inRange(1, 5), D = *rc::gen::inRange(1, 5);
  const Ids ids = draw_ids(N, V);
  const auto table = tests::normal({V, D}, *rc::gen::arbitrary<std::uint64_t>()),
             dy = tests::normal({N, D}, 2);
  const auto by_table = [&](const auto& moved) { return tests::dot(dy, embedding::forward(moved, ids)); };
  const auto result =
      tests::close(values(embedding::backward(dy, ids, V)), tests::central_difference(by_table, table),
                   Allowed::relative(1e-7), /*zeros_expected=*/true);  // rows that no id reads
  if (!result) RC_FAIL(std::string(result.message()));
}

RC_GTEST_PROP(EmbeddingReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Index N = *rc::gen::inRange(0, 6), V = *rc::gen::inRange(1, 5), D = *rc::gen::inRange(1, 5);
  const Ids ids = draw_ids(N, V);
  const auto table = tests::counted(tests::normal({V, D}, 1)), dy = tests::counted(tests::normal({N, D}, 2));
  const spec::embedding::Shape shape{.N = N, .V = V, .D = D};
  RC_ASSERT(tests::operations_of([&] { embedding::forward(table, ids); }) ==
            spec::embedding::forward_flops(shape).vector);
  RC_ASSERT(tests::operations_of([&] { embedding::backward(dy, ids, V); }) ==
            spec::embedding::backward_flops(shape).vector);
}

RC_GTEST_PROP(EmbeddingReference, PermutedIdsGivePermutedRows, ()) {
  const Index V = *rc::gen::inRange(1, 9), D = *rc::gen::inRange(1, 5);
  const Ids ids = draw_ids(*rc::gen::inRange(1, 9), V), backwards(ids.rbegin(), ids.rend());
  const auto table = tests::normal({V, D}, *rc::gen::arbitrary<std::uint64_t>());
  const auto y = embedding::forward(table, ids), reversed = embedding::forward(table, backwards);
  const Index N = y.extent(0);
  for (Index n = 0; n < N; ++n) {
    for (Index d = 0; d < D; ++d) RC_ASSERT(reversed(N - 1 - n, d) == y(n, d));
  }
}

RC_GTEST_PROP(EmbeddingReference, GradientCountsHowOftenEachRowIsRead, ()) {
  const Index V = *rc::gen::inRange(1, 9);
  const Ids ids = draw_ids(*rc::gen::inRange(0, 20), V);
  Tensor<double> ones({static_cast<Index>(ids.size()), 1});
  ones.flat().setOnes();
  const auto dtable = embedding::backward(ones, ids, V);
  for (Index v = 0; v < V; ++v)
    RC_ASSERT(dtable(v, 0) == static_cast<double>(std::count(ids.begin(), ids.end(), v)));
}

}  // namespace
}  // namespace assay::reference::embedding_test
