#include "spec/flops/executed.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "spec/error.hpp"
#include "spec/ops/attention/attention.hpp"
#include "spec/ops/latent_attention/latent_attention.hpp"

namespace assay::spec {

namespace {
void check_arguments(const std::vector<std::int64_t>& lengths, const AttentionKernel& kernel) {
  // executed_c1
  require(!lengths.empty() && std::ranges::all_of(lengths, [](auto length) { return length >= 1; }),
          "executed_c1", [&] {
            std::string text = "document lengths";
            for (const std::int64_t length : lengths) text += " " + std::to_string(length);
            return text;
          });
  // executed_c2
  require(kernel.kind != AttentionKernel::Kind::tiles || (kernel.tile_rows >= 1 && kernel.column_block >= 1),
          "executed_c2", [&] {
            return "tile_rows=" + std::to_string(kernel.tile_rows) +
                   " column_block=" + std::to_string(kernel.column_block);
          });
}

/// Pairs (query token, key token) of one sequence and one head, in the two shapes of attention's products:
/// into scores (a pair is an output) and out of them (a pair is an input).
struct Pairs {
  Count visible;         ///< within a document and the window, causal
  Count other_document;  ///< causal and within the window, of two documents
  Count masked;          ///< run, not visible
  Count padded_columns;  ///< of scores, run beyond the last token of a tile
};

Pairs pairs_of(const std::vector<std::int64_t>& lengths, std::int64_t window, const AttentionKernel& kernel) {
  const std::int64_t T = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::vector<std::int64_t> start;  // of each token's document
  for (const std::int64_t length : lengths) {
    const auto first = static_cast<std::int64_t>(start.size());
    start.resize(start.size() + static_cast<std::size_t>(length), first);
  }
  Pairs pairs;
  for (const std::int64_t length : lengths) pairs.visible += attention::document_pairs(length, window);
  pairs.other_document = attention::document_pairs(T, window) - pairs.visible;
  if (kernel.kind == AttentionKernel::Kind::square) pairs.masked = Count(T) * T - pairs.visible;
  if (kernel.kind != AttentionKernel::Kind::tiles) return pairs;
  const std::int64_t block = kernel.column_block;
  Count seen;
  for (std::int64_t begin = 0; begin < T; begin += kernel.tile_rows) {
    const std::int64_t end = std::min(T, begin + kernel.tile_rows), rows = end - begin;
    const std::int64_t in_window = window > 0 ? begin - window + 1 : 0,
                       first = std::max(start[static_cast<std::size_t>(begin)], in_window) / block * block;
    seen += Count(rows) * (end - first);
    pairs.padded_columns += Count(rows) * ((end + block - 1) / block * block - end);
  }
  pairs.masked = seen - pairs.visible;
  return pairs;
}

/// Whether the component's products of forward, all or but for a last one, run again for backward.
bool runs_again(FlopComponent component, Recompute recompute) {
  using enum FlopComponent;
  if (recompute == Recompute::attention)
    return component == attention_scores || component == attention_values;
  return recompute == Recompute::block && component != head && component != embedding && component != down;
}

/// Adds attention's products of `blocks` blocks of `heads` heads.
class Attention {
 public:
  Attention(const Pairs& pairs, const AttentionKernel& kernel, Count heads_of_all_blocks)
      : pairs_(pairs),
        block_(kernel.kind == AttentionKernel::Kind::tiles ? kernel.column_block : 1),
        heads_(heads_of_all_blocks) {}

  /// [rows, width] times [width, columns], columns being tokens: the scores, the probabilities' gradient.
  ExecutedCount into_pairs(std::int64_t width) const {
    return {.needed = 2 * heads_ * pairs_.visible * width,
            .masked_pairs = 2 * heads_ * pairs_.masked * width,
            .padding = 2 * heads_ * pairs_.padded_columns * width,
            .skipped_pairs = 2 * heads_ * pairs_.other_document * width};
  }
  /// Sums over pairs into rows of `width` columns: the values, the gradients of q, k and v.
  ExecutedCount out_of_pairs(std::int64_t width) const {
    const std::int64_t padded = (width + block_ - 1) / block_ * block_;
    return {.needed = 2 * heads_ * pairs_.visible * width,
            .masked_pairs = 2 * heads_ * pairs_.masked * width,
            .padding = 2 * heads_ * (pairs_.visible + pairs_.masked) * (padded - width),
            .skipped_pairs = 2 * heads_ * pairs_.other_document * width};
  }

 private:
  const Pairs pairs_;
  const std::int64_t block_;
  const Count heads_;
};
}  // namespace

std::string_view to_string(ExecutedPass pass) {
  return pass == ExecutedPass::recompute ? "recompute" : to_string(static_cast<Pass>(pass));
}

ExecutedCount& ExecutedCount::operator+=(const ExecutedCount& other) {
  needed += other.needed;
  masked_pairs += other.masked_pairs;
  padding += other.padding;
  skipped_pairs += other.skipped_pairs;
  fp8 += other.fp8;
  return *this;
}

Count ExecutedFlops::executed(ExecutedPass pass) const {
  Count sum;
  for (const auto& of_component : counts) sum += of_component[static_cast<std::size_t>(pass)].executed();
  return sum;
}

Count ExecutedFlops::executed() const {
  return executed(ExecutedPass::forward) + executed(ExecutedPass::backward) +
         executed(ExecutedPass::recompute);
}

ExecutedFlops& ExecutedFlops::operator+=(const ExecutedFlops& other) {
  for (std::size_t component = 0; component < flop_components; ++component)
    for (std::size_t pass = 0; pass < executed_passes; ++pass)
      counts[component][pass] += other.counts[component][pass];
  return *this;
}

ExecutedFlops executed_flops(const ModelSpec& model, const std::vector<std::int64_t>& document_lengths,
                             const AttentionKernel& kernel, Recompute recompute) {
  check(model);
  check_arguments(document_lengths, kernel);
  const std::int64_t T = std::accumulate(document_lengths.begin(), document_lengths.end(), std::int64_t{0});
  const FlopBreakdown exact = exact_flops(model, T);
  ExecutedFlops out;
  const auto count = [&](FlopComponent component, ExecutedPass pass) -> ExecutedCount& {
    return out.counts[static_cast<std::size_t>(component)][static_cast<std::size_t>(pass)];
  };
  using enum FlopComponent;
  constexpr auto forward = ExecutedPass::forward, backward = ExecutedPass::backward;
  for (std::size_t i = 0; i < flop_components; ++i) {
    const auto component = static_cast<FlopComponent>(i);
    if (component == attention_scores || component == attention_values) continue;
    count(component, forward).needed = exact.at(component, Pass::forward);
    count(component, backward).needed = exact.at(component, Pass::backward);
  }
  out += executed_attention(Count(model.layers) * model.heads, model.head_dim, model.value_dim(),
                            document_lengths, model.window, kernel);
  for (std::size_t i = 0; i < flop_components; ++i) {
    const auto component = static_cast<FlopComponent>(i);
    if (runs_again(component, recompute))
      count(component, ExecutedPass::recompute) += count(component, forward);
  }
  if (model.latent && (recompute == Recompute::mla_up || recompute == Recompute::attention)) {
    const Count up =
                    model.layers * latent_attention::up_flops(latent_attention::shape_of(model, 1, T)).matmul,
                direct = exact.at(qkv, Pass::forward);  // queries that are not compressed
    count(qkv, ExecutedPass::recompute).needed += direct;
    count(latent_projections, ExecutedPass::recompute).needed += up - direct;
  }
  if (recompute == Recompute::block)
    for (const FlopComponent experts : {routed_experts, shared_experts}) {
      const std::int64_t matrices = gated(model.mlp) ? 3 : 2;  // the last one's value is not read again
      Count& again = count(experts, ExecutedPass::recompute).needed;
      again = (matrices - 1) * again.divided_exactly_by(matrices);
    }
  return out;
}

ExecutedFlops executed_attention(const Count& heads, std::int64_t E, std::int64_t W,
                                 const std::vector<std::int64_t>& document_lengths, std::int64_t window,
                                 const AttentionKernel& kernel) {
  check_arguments(document_lengths, kernel);
  ExecutedFlops out;
  const auto count = [&](FlopComponent component, ExecutedPass pass) -> ExecutedCount& {
    return out.counts[static_cast<std::size_t>(component)][static_cast<std::size_t>(pass)];
  };
  using enum FlopComponent;
  const Attention attention(pairs_of(document_lengths, window, kernel), kernel, heads);
  count(attention_scores, ExecutedPass::forward) = attention.into_pairs(E);
  count(attention_values, ExecutedPass::forward) = attention.out_of_pairs(W);
  for (int gradient = 0; gradient < 2; ++gradient)  // dq and dk
    count(attention_scores, ExecutedPass::backward) += attention.out_of_pairs(E);
  count(attention_values, ExecutedPass::backward) = attention.into_pairs(W);     // dp
  count(attention_values, ExecutedPass::backward) += attention.out_of_pairs(W);  // dv
  count(attention_scores, ExecutedPass::recompute) = attention.into_pairs(E);    // p from lse
  return out;
}

}  // namespace assay::spec
