// labels: gpu parity property
// Documents told apart by FlashAttention's sequences of different lengths.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <iostream>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/determinism.hpp"
#include "impl/step/step_graph.hpp"
#include "spec/error.hpp"
#include "spec/ops/rope/rope.hpp"
#include "tests/impl/ops/parity/attention_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_attention_documents_test {
namespace {

using attention::Backend;

const at::Device gpu(at::kCUDA, 0);

/// As the loader gives them, for sequences of documents of these lengths in order, over and over.
struct Batch {
  std::int64_t B, T;
  std::vector<std::int32_t> numbers, positions;

  Batch(std::int64_t sequences, std::int64_t tokens, const std::vector<std::int64_t>& lengths)
      : B(sequences), T(tokens) {
    std::size_t next = 0;
    for (std::int64_t b = 0; b < B; ++b) {
      std::int32_t document = 0, position = 0;
      for (std::int64_t t = 0; t < T; ++t) {
        if (position == lengths[next % lengths.size()]) ++document, position = 0, ++next;
        numbers.push_back(document), positions.push_back(position++);
      }
      ++next;
    }
  }
  at::Tensor grid(const std::vector<std::int32_t>& list) const {
    return at::tensor(list, at::kInt).view({B, T}).to(gpu);
  }
  /// `more`: empty places beyond those that the loader makes.
  Documents documents(std::size_t more = 0) const {
    auto offsets = data::document_offsets(numbers, T);
    offsets.insert(offsets.end(), more, offsets.back());
    return {grid(numbers), at::tensor(offsets, at::kInt).to(gpu), offsets};
  }
};

/// Around the tiles of the kernels, which have 64 and 128 rows, and in no order.
const std::vector<std::int64_t> corner_lengths = {1, 63, 130, 64, 1, 65, 300, 127, 2, 128, 129, 7, 257, 900};

struct Heads {
  std::int64_t H, K, E;
};

struct Inputs {
  at::Tensor qkv, dy;
  Inputs(const Batch& batch, const Heads& h)
      : qkv(tests::normal({batch.B, batch.T, h.H + 2 * h.K, h.E}, 1, at::kBFloat16).to(gpu)),
        dy(tests::normal({batch.B, batch.T, h.H, h.E}, 2, at::kBFloat16).to(gpu)) {}
};

TEST(AttentionDocumentsCuda, DrawnDocumentsAreComputedByFlashAndMatchReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] {
    const parity::AttentionDrawn d(at::kBFloat16, gpu, /*fused_documents=*/true);
    parity::attention_matches_reference(d, Backend::flash);
  }));
}

TEST(AttentionDocumentsCuda, OneDocumentASequenceIsTheUnmaskedResult) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] {
    parity::AttentionDrawn d(at::kBFloat16, gpu, /*fused_documents=*/true);
    std::fill(d.documents.begin(), d.documents.end(), 0);
    d.window = 0;
    const auto q = tests::exact(d.q(d.qkv)), k = tests::exact(d.k(d.qkv)), v = tests::exact(d.v(d.qkv));
    const auto unmasked = reference::attention::forward(q, k, v, {});
    const auto gradient =
        parity::qkv_of(reference::attention::backward(tests::exact(d.dy), q, k, v, unmasked, {}));
    const parity::AttentionBounds bounds(d, unmasked);
    const at::Tensor qkv = d.qkv.to(gpu), dy = d.dy.to(gpu);
    for (const Documents& documents : {d.told_apart(), Documents()}) {
      const auto out = attention::forward(qkv, d.H, d.K, documents);
      RC_ASSERT(!documents.defined() || out.backend == Backend::flash);
      ASSAY_RC_CLOSE(tests::values(out.y), tests::values(unmasked.y), bounds.y());
      ASSAY_RC_CLOSE(tests::values(out.lse), tests::values(unmasked.lse), bounds.lse());
      const at::Tensor dqkv = attention::backward(dy, qkv, out, d.H, d.K, documents);
      ASSAY_RC_CLOSE(tests::values(dqkv), tests::values(gradient), bounds.dqkv(gradient));
    }
  }));
}

/// Documents longer than a kernel's tiles, relative to the largest entry; the bounds of the unmasked shapes
/// (attention_test.cpp), where sums have at most as many terms.
TEST(AttentionDocumentsCuda, DocumentsOfManyTilesMatchPlainProducts) {
  ASSAY_NEEDS_GPU();
  attention::new_choices();
  const Batch batch(2, 1100, corner_lengths);
  const Documents documents = batch.documents();
  const at::Tensor positions = batch.grid(batch.positions);
  for (const Heads h : {Heads{18, 18, 128}, Heads{16, 4, 128}, Heads{8, 2, 64}, Heads{4, 4, 192}}) {
    const Inputs in(batch, h);
    const auto out = attention::forward(in.qkv, h.H, h.K, documents);
    EXPECT_EQ(out.backend, Backend::flash);
    const at::Tensor dqkv = attention::backward(in.dy, in.qkv, out, h.H, h.K, documents);
    for (const std::string& line : attention::new_choices()) std::cout << line << std::endl;
    const at::Tensor wide = in.qkv.to(at::kDouble);
    const auto plain = attention::aten::forward({wide, h.H, h.K}, documents);
    at::Tensor plain_dqkv =
        attention::aten::backward(in.dy.to(at::kDouble), {wide, h.H, h.K}, plain, documents).joined;
    const double bound = 6 * unit_roundoff(Dtype::bf16) * std::sqrt(900.0);
    EXPECT_TRUE(out.y.is_contiguous() && out.lse.is_contiguous());
    EXPECT_LE(parity::share_of_largest(out.y, plain.y), 6 * unit_roundoff(Dtype::bf16));
    EXPECT_LE((out.lse - plain.lse).abs().max().item<double>(),
              parity::fused_lse_bound(in.qkv, h.H, h.K, plain.lse));
    const double dqkv_share = parity::share_of_largest(dqkv, plain_dqkv);
    EXPECT_LE(dqkv_share, bound);
    EXPECT_LE(parity::relative_norm(dqkv, plain_dqkv), parity::gradient_norm_bound);
    const auto angles = spec::rope::inverse_frequencies(h.E, 10000, {});
    const auto table = rope::table(angles, batch.T, at::kBFloat16, gpu),
               wide_table = rope::table(angles, batch.T, at::kDouble, gpu);
    const at::Tensor before =
        parity::turned_back(attention::backward(in.dy, {in.qkv, h.H, h.K}, out, documents), table, positions);
    rope::rotate(plain_dqkv, h.H + h.K, wide_table, positions, /*inverse=*/true);
    // Turning a pair mixes its two errors, and rounds once more.
    EXPECT_LE(parity::share_of_largest(before, plain_dqkv),
              std::sqrt(2.0) * (bound + unit_roundoff(Dtype::bf16)));
    EXPECT_LE(parity::relative_norm(before, plain_dqkv),
              parity::gradient_norm_bound + unit_roundoff(Dtype::bf16));
    std::cout << "heads " << h.H << "+2x" << h.K << " of " << h.E << " with documents: y off by "
              << parity::share_of_largest(out.y, plain.y) << ", lse by "
              << parity::share_of_largest(out.lse, plain.lse) << ", dqkv by " << dqkv_share
              << " of the largest entry" << std::endl;
  }
}

TEST(AttentionDocumentsCuda, GivesTheSameBitsTwiceForwardAndInAFixedOrderBackward) {
  ASSAY_NEEDS_GPU();
  const Batch batch(3, 700, corner_lengths);
  const Documents documents = batch.documents();
  const Inputs in(batch, {8, 2, 64});
  EXPECT_TRUE(tests::repeatable([&] {
    const auto out = attention::forward(in.qkv, 8, 2, documents);
    return std::vector{out.y, out.lse};
  }));
  set_deterministic(true);
  const auto out = attention::forward(in.qkv, 8, 2, documents);
  EXPECT_EQ(out.backend, Backend::flash);
  for (int again = 0; again < 3; ++again)
    EXPECT_TRUE(tests::repeatable(
        [&] { return std::vector{attention::backward(in.dy, in.qkv, out, 8, 2, documents)}; }));
  set_deterministic(false);
}

/// 8 heads times 64 places and more are beyond a GPU's multiprocessors, so that the fixed order is one.
TEST(AttentionDocumentsCuda, EmptyPlacesChangeNothing) {
  ASSAY_NEEDS_GPU();
  const Batch batch(2, 400, corner_lengths);
  const Inputs in(batch, {8, 4, 128});
  set_deterministic(true);
  const auto with = [&](std::size_t more) {
    const Documents documents = batch.documents(more);
    const auto out = attention::forward(in.qkv, 8, 4, documents);
    EXPECT_EQ(out.backend, Backend::flash);
    return std::vector{out.y, out.lse, attention::backward(in.dy, in.qkv, out, 8, 4, documents)};
  };
  const auto few = with(0), many = with(300);
  for (std::size_t i = 0; i < few.size(); ++i) EXPECT_TRUE(tests::same_bits(few[i], many[i])) << i;
  set_deterministic(false);
}

/// Neither documents nor sequences see each other: other numbers in one leave the bits of all others.
TEST(AttentionDocumentsCuda, ADocumentIsNotChangedByTheOthers) {
  ASSAY_NEEDS_GPU();
  const Batch batch(2, 400, {100, 37, 263});
  const Documents documents = batch.documents();
  const Inputs in(batch, {4, 2, 64});
  at::Tensor changed = in.qkv.clone();
  changed.narrow(0, 1, 1).narrow(1, 100, 37).fill_(3);
  const auto before = attention::forward(in.qkv, 4, 2, documents),
             after = attention::forward(changed, 4, 2, documents);
  const auto part = [](const at::Tensor& y, std::int64_t b, std::int64_t t, std::int64_t n) {
    return y.narrow(0, b, 1).narrow(1, t, n);
  };
  EXPECT_TRUE(tests::same_bits(part(before.y, 0, 0, 400), part(after.y, 0, 0, 400)));
  EXPECT_TRUE(tests::same_bits(part(before.y, 1, 0, 100), part(after.y, 1, 0, 100)));
  EXPECT_TRUE(tests::same_bits(part(before.y, 1, 137, 263), part(after.y, 1, 137, 263)));
  EXPECT_FALSE(tests::same_bits(part(before.y, 1, 100, 37), part(after.y, 1, 100, 37)));
}

TEST(AttentionDocumentsCuda, TheChoiceIsToldWithTheReasonOfEachRefusal) {
  ASSAY_NEEDS_GPU();
  const Batch batch(1, 90, {40, 50});
  const Documents documents = batch.documents();
  const auto told = [&](const at::Tensor& qkv, const attention::Mask& mask) {
    attention::new_choices();
    const auto out = attention::forward(qkv, 2, 1, mask);
    attention::backward(out.y, qkv, out, 2, 1, mask);
    const auto lines = attention::new_choices();
    EXPECT_EQ(lines.size(), 1u);
    return lines.empty() ? "" : lines[0];
  };
  const at::Tensor qkv = tests::normal({1, 90, 4, 40}, 1, at::kBFloat16).to(gpu);
  EXPECT_NE(told(qkv, documents).find("with documents: flash; cudnn is not given documents"),
            std::string::npos);
  EXPECT_NE(told(qkv, Documents(documents.numbers)).find("math; cudnn is not given documents without"),
            std::string::npos);
  EXPECT_NE(told(qkv.to(at::kFloat), documents).find("math; cudnn takes bf16 only; flash takes bf16 only"),
            std::string::npos);
  EXPECT_NE(told(tests::normal({1, 90, 4, 264}, 1, at::kBFloat16).to(gpu), documents).find("flash refused: "),
            std::string::npos);
  try {
    attention::forward(qkv, 2, 1, documents, {.backend = Backend::cudnn});
    ADD_FAILURE() << "cudnn took documents";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("cudnn is not given documents"), std::string::npos);
  }
}

/// A recording refuses whatever waits for the device, and reads the documents where they are: replayed on
/// other documents it gives their bits.
TEST(AttentionDocumentsCuda, IsRecordedWithoutWaitingAndReplayedOnOtherDocuments) {
  ASSAY_NEEDS_GPU();
  set_deterministic(true);
  const Batch first(2, 500, corner_lengths), other(2, 500, {230, 1, 5, 90});
  const Inputs in(first, {8, 2, 64});
  const Documents recorded = first.documents();
  const auto attend = [&](const Documents& documents) {
    const auto out = attention::forward(in.qkv, 8, 2, documents);
    EXPECT_EQ(out.backend, Backend::flash);
    return std::vector{out.y, out.lse, attention::backward(in.dy, in.qkv, out, 8, 2, documents)};
  };
  const auto eager_first = attend(first.documents()), eager_other = attend(other.documents());
  EXPECT_FALSE(tests::same_bits(eager_first[0], eager_other[0]));
  const auto recorder = run::make_cuda_graphs(gpu);
  std::vector<at::Tensor> kept;
  recorder->on_its_stream([&] {
    recorder->capture(run::StepPart::forward, [&] { kept = attend(recorded); });
    for (const auto* eager : {&eager_first, &eager_other}) {
      const Documents now = (eager == &eager_first ? first : other).documents();
      recorded.numbers.copy_(now.numbers);
      ASSERT_EQ(recorded.offsets.sizes(), now.offsets.sizes());
      recorded.offsets.copy_(now.offsets);
      recorder->replay(run::StepPart::forward);
      for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(tests::same_bits(kept[i], (*eager)[i])) << i;
    }
  });
  kept.clear();
  recorder->forget();
  set_deterministic(false);
}

TEST(AttentionDocumentsCuda, FlopsAreThoseOfVisiblePairs) {
  ASSAY_NEEDS_GPU();
  const Batch batch(2, 300, corner_lengths);
  const Documents documents = batch.documents();
  const Inputs in(batch, {8, 2, 64});
  const metrics::FlopCounter counter;
  const auto out = attention::forward(in.qkv, 8, 2, documents);
  const Count forward = 4 * Count(8) * 64 * attention::Mask(documents).visible_pairs();
  EXPECT_EQ(counter.measured().total(), forward);
  attention::backward(in.dy, in.qkv, out, 8, 2, documents);
  EXPECT_EQ((counter.measured().total() - forward) * 2, 5 * forward);
}

}  // namespace
}  // namespace assay::impl::cuda_attention_documents_test
