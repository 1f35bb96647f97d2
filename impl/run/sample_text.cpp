#include "impl/run/sample_text.hpp"

#include <ATen/ATen.h>

#include <numeric>

#include "spec/random/philox.hpp"

namespace assay::impl::run {

namespace {
/// Index drawn from probabilities [V] (fp64, CPU, sum about 1) by inverting the cumulative sum at u in (0,
/// 1).
std::int64_t draw(const double* probabilities, std::int64_t V, double u) {
  double cumulative = 0, total = 0;
  for (std::int64_t v = 0; v < V; ++v) total += probabilities[v];
  for (std::int64_t v = 0; v < V; ++v) {
    cumulative += probabilities[v];
    if (u * total < cumulative) return v;
  }
  return V - 1;
}

/// Ids [n, t] of the texts numbered in `open`, all of t bytes.
at::Tensor ids_of(const std::vector<std::string>& texts, const std::vector<std::size_t>& open) {
  at::Tensor ids = at::empty(
      {static_cast<std::int64_t>(open.size()), static_cast<std::int64_t>(texts[open[0]].size())}, at::kLong);
  auto* id = ids.data_ptr<std::int64_t>();
  for (const std::size_t text : open)
    for (const char byte : texts[text]) *id++ = static_cast<unsigned char>(byte);
  return ids;
}
}  // namespace

std::vector<std::string> sample_sentences(Model& model, std::uint64_t seed, std::int64_t count,
                                          std::int64_t length, at::Device device,
                                          const std::function<std::string(const std::string&)>& agreed) {
  std::vector<std::string> texts(static_cast<std::size_t>(count), "\n");
  std::vector<std::size_t> open(texts.size());  // not ended yet
  std::iota(open.begin(), open.end(), std::size_t{0});
  for (std::int64_t t = 1; t < length && !open.empty(); ++t) {
    const auto n = static_cast<std::int64_t>(open.size());
    const at::Tensor ids = ids_of(texts, open).view({-1}).to(device);
    const TokenBatch batch{.B = n, .T = t, .inputs = ids, .targets = {}, .positions = {}, .documents = {}};
    const at::Tensor last = model.last_logits(batch);
    const at::Tensor probabilities = at::softmax(last.to(at::kDouble), -1).cpu().contiguous();
    const std::int64_t V = probabilities.size(1);
    const double* row = probabilities.const_data_ptr<double>();
    std::string drawn;
    for (const std::size_t text : open) {
      const spec::random::Stream stream(seed, spec::random::Site::generation,
                                        static_cast<std::uint32_t>(text));
      drawn.push_back(static_cast<char>(draw(row, V, stream.uniform(static_cast<std::uint64_t>(t)))));
      row += V;
    }
    drawn = agreed(drawn);
    for (std::size_t i = 0; i < open.size(); ++i) texts[open[i]].push_back(drawn[i]);
    std::erase_if(open, [&](std::size_t text) { return texts[text].back() == '\n'; });
  }
  for (std::string& text : texts) text.erase(0, 1);
  return texts;
}

}  // namespace assay::impl::run
