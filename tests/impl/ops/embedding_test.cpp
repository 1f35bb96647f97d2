// labels: parity property
#include "impl/ops/embedding.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/embedding.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl {
namespace {

using reference::Index;
using tests::exact;
using tests::values;

RC_GTEST_PROP(EmbeddingImpl, MatchesReference, ()) {
  const auto type = tests::draw_dtype();
  const Index V = *rc::gen::inRange<Index>(1, 12), D = *rc::gen::inRange<Index>(1, 80);
  const auto ids = *rc::gen::container<reference::Ids>(rc::gen::inRange<Index>(0, V));
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Index N = static_cast<Index>(ids.size());
  const at::Tensor table = tests::normal({V, D}, seed, type), dy = tests::normal({N, D}, seed + 1, type);
  const at::Tensor before = tests::normal({V, D}, seed + 2, tests::math_of(type));

  const auto y = reference::embedding::forward(exact(table), ids);
  auto expected = reference::embedding::backward(exact(dy), ids, V);
  expected.flat() += exact(before).flat();
  auto sizes = exact(dy);
  sizes.flat() = sizes.flat().abs();
  const auto terms = reference::embedding::backward(sizes, ids, V);
  const auto bound = tests::each(V * D, [&](Index i) {  // T2: one addition per occurrence of the id
    const auto count = static_cast<double>(std::count(ids.begin(), ids.end(), i / D));
    return tests::rounding_of(type).gamma(count + 1) * (terms[i] + std::abs(exact(before)[i]));
  });
  for (bool generic : {false, true}) {
    RC_LOG() << (generic ? "aten" : "cpu") << "\n";
    const at::Tensor id = tests::integers(ids), dtable = before.clone();
    ASSAY_RC_CLOSE(values(generic ? embedding::aten::forward(table, id) : embedding::forward(table, id)),
                   values(y), tests::Allowed::exact());
    generic ? embedding::aten::backward(dy, id, dtable) : embedding::backward(dy, id, dtable);
    ASSAY_RC_CLOSE(values(dtable), values(expected), bound);
  }
}

TEST(EmbeddingImpl, SumsInTheSameOrderOnAnyNumberOfThreads) {
  reference::Ids ids;
  for (Index n = 0; n < 1000; ++n) ids.push_back(n * n % 17);
  const at::Tensor dy = tests::normal({1000, 100}, 1, at::kFloat);
  EXPECT_TRUE(tests::repeatable([&] {
    at::Tensor dtable = at::zeros({17, 100});
    embedding::backward(dy, tests::integers(ids), dtable);
    return std::vector{dtable, embedding::forward(dtable, tests::integers(ids))};
  }));
}

TEST(EmbeddingImpl, C1RejectsAnIdOutsideTheTable) {
  for (Index id : {-1, 3})
    EXPECT_EQ(tests::refusal([&] {
                embedding::forward(at::ones({3, 2}), tests::integers({0, id}));
              }),
              "embedding_c1");
}

TEST(EmbeddingImpl, C2RejectsAnEmptyTable) {
  EXPECT_EQ(tests::refusal([] {
              embedding::forward(at::ones({0, 2}), tests::integers({0}));
            }),
            "embedding_c2");
}

TEST(EmbeddingImpl, C3RejectsAnUpstreamOfAnotherSize) {
  EXPECT_EQ(tests::refusal([] {
              embedding::backward(at::ones({2, 2}), tests::integers({0}), at::ones({3, 2}));
            }),
            "embedding_c3");
}

}  // namespace
}  // namespace assay::impl
