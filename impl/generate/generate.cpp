#include "impl/generate/generate.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "spec/random/philox.hpp"

namespace assay::impl::generate {

namespace {
/// Ids [rows, T] of the prompts, from the left; behind the last one copies of the first.
at::Tensor side_by_side(const std::vector<Ids>& prompts, std::int64_t rows, std::int64_t T) {
  at::Tensor ids = at::zeros({rows, T}, at::kLong);
  auto* to = ids.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < rows; ++row, to += T) {
    const auto text = static_cast<std::size_t>(row);
    std::ranges::copy(prompts[text < prompts.size() ? text : 0], to);
  }
  return ids;
}
}  // namespace

std::vector<Ids> generate(Model& model, const Request& request, const Hooks& hooks) {
  const std::vector<Ids>& prompts = request.prompts;
  const std::size_t texts = prompts.size();
  // Tensor ranks hold equal parts of the tokens: copies of the first text fill the batch up.
  const auto rows = (static_cast<std::int64_t>(texts) + request.tensor_ranks - 1) / request.tensor_ranks *
                    request.tensor_ranks;
  std::size_t longest = 0;
  for (const Ids& prompt : prompts) longest = std::max(longest, prompt.size());
  KeyValueCache cache = model.cache(rows, static_cast<std::int64_t>(longest) + request.most);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(rows),
                                   static_cast<std::int64_t>(prompts[0].size()));
  for (std::size_t text = 0; text < texts; ++text)
    counts[text] = static_cast<std::int64_t>(prompts[text].size());
  std::vector<bool> open(texts, true);
  std::vector<Ids> out(texts);
  at::Tensor tokens = side_by_side(prompts, rows, static_cast<std::int64_t>(longest));
  for (std::int64_t step = 0; step < request.most; ++step) {
    const at::Tensor logits = model.next_logits(tokens, counts, cache).to(at::kDouble).cpu().contiguous();
    const std::int64_t V = logits.size(1);
    Ids drawn;
    for (std::size_t text = 0; text < texts; ++text) {
      if (!open[text]) continue;
      const spec::random::Stream stream(request.sampling.seed, spec::random::Site::generation,
                                        static_cast<std::uint32_t>(text));
      drawn.push_back(choose({logits.const_data_ptr<double>() + static_cast<std::int64_t>(text) * V,
                              static_cast<std::size_t>(V)},
                             request.sampling, stream.uniform(prompts[text].size() + out[text].size())));
    }
    if (hooks.agreed) drawn = hooks.agreed(drawn);
    tokens = at::zeros({rows, 1}, at::kLong);
    std::ranges::fill(counts, 0);
    auto next = drawn.begin();
    for (std::size_t text = 0; text < texts; ++text) {
      if (!open[text]) continue;
      const std::int64_t id = *next++;
      out[text].push_back(id);
      tokens[static_cast<std::int64_t>(text)][0] = id;
      counts[text] = 1;
      if (hooks.drawn) hooks.drawn(text, id);
      if (std::ranges::find(request.ends, id) != request.ends.end()) open[text] = false, counts[text] = 0;
    }
    if (std::ranges::none_of(counts, [](std::int64_t count) { return count > 0; })) break;
  }
  return out;
}

}  // namespace assay::impl::generate
