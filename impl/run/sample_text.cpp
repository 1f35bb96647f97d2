#include "impl/run/sample_text.hpp"

#include <ATen/ATen.h>

#include <algorithm>

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
}  // namespace

std::vector<std::string> sample_text(Model& model, std::uint64_t seed, std::int64_t count,
                                     std::int64_t length, const std::vector<std::string>& first,
                                     at::Device device) {
  at::Tensor ids = at::zeros({count, length}, at::kLong);
  auto id = ids.accessor<std::int64_t, 2>();
  std::vector<std::int64_t> given(static_cast<std::size_t>(count));
  for (std::int64_t text = 0; text < count; ++text) {
    const std::string& start = first.at(static_cast<std::size_t>(text) % first.size());
    given[static_cast<std::size_t>(text)] =
        std::min<std::int64_t>(length, static_cast<std::int64_t>(start.size()));
    for (std::int64_t t = 0; t < given[static_cast<std::size_t>(text)]; ++t)
      id[text][t] = static_cast<unsigned char>(start[static_cast<std::size_t>(t)]);
  }

  for (std::int64_t t = 1; t < length; ++t) {
    // Causal attention: positions from t on do not reach position t - 1, so a short prefix is all that is
    // computed.
    TokenBatch batch{.B = count, .T = t, .inputs = {}, .targets = {}, .positions = {}, .documents = {}};
    batch.inputs = ids.narrow(1, 0, t).contiguous().view({-1}).to(device);
    const at::Tensor last = model.logits(batch).view({count, t, -1}).select(1, t - 1);
    const at::Tensor probabilities = at::softmax(last.to(at::kDouble), -1).cpu().contiguous();
    for (std::int64_t text = 0; text < count; ++text) {
      if (t < given[static_cast<std::size_t>(text)]) continue;
      const spec::random::Stream stream(seed, spec::random::Site::generation,
                                        static_cast<std::uint32_t>(text));
      id[text][t] = draw(probabilities[text].data_ptr<double>(), probabilities.size(1),
                         stream.uniform(static_cast<std::uint64_t>(t)));
    }
  }

  std::vector<std::string> texts;
  for (std::int64_t text = 0; text < count; ++text) {
    std::string bytes;
    for (std::int64_t t = 0; t < length; ++t) bytes.push_back(static_cast<char>(id[text][t]));
    texts.push_back(std::move(bytes));
  }
  return texts;
}

}  // namespace assay::impl::run
