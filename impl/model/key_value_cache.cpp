#include "impl/model/key_value_cache.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "impl/ops/attention/cached_attention.hpp"

namespace assay::impl {

KeyValueCache::KeyValueCache(const spec::ModelSpec& model, std::int64_t texts, std::int64_t tokens,
                             at::ScalarType compute, at::Device device, attention::Backend backend)
    : tokens_(tokens),
      window_(model.window),
      backend_(backend),
      lengths_(static_cast<std::size_t>(texts), 0) {
  const auto options =
      at::TensorOptions().device(device).dtype(compute == at::kDouble ? at::kDouble : at::kFloat);
  for (std::int64_t block = 0; block < model.layers; ++block) {
    keys_.push_back(at::zeros({texts, model.kv_heads, tokens, model.head_dim}, options));
    values_.push_back(at::zeros({texts, model.kv_heads, tokens, model.value_dim()}, options));
  }
}

std::int64_t KeyValueCache::bytes() const {
  std::int64_t sum = 0;
  for (const auto* tensors : {&keys_, &values_})
    for (const at::Tensor& each : *tensors) sum += static_cast<std::int64_t>(each.nbytes());
  return sum;
}

at::Tensor KeyValueCache::begin(std::int64_t T, const std::vector<std::int64_t>& counts) {
  const bool first = std::ranges::all_of(lengths_, [](std::int64_t length) { return length == 0; });
  if (counts.size() != lengths_.size() || T < 1 || T > tokens_ || (T > 1 && !first))
    throw std::invalid_argument("a pass that the cache does not take");
  counts_ = counts;
  T_ = T;
  seen_ = 0;
  std::vector<std::int64_t> positions, rows;
  for (std::size_t text = 0; text < counts.size(); ++text) {
    if (counts[text] < 0 || counts[text] > T || lengths_[text] + counts[text] > tokens_)
      throw std::invalid_argument("more tokens than the cache holds");
    // Of a text that does not go on the token is computed, in a place that is read no more.
    positions.push_back(std::min(lengths_[text], tokens_ - 1));
    seen_ = std::max(seen_, positions.back() + T);
    rows.push_back(static_cast<std::int64_t>(text) * T + std::max<std::int64_t>(counts[text], 1) - 1);
  }
  const at::Device device = keys_.front().device();
  last_rows_ = at::tensor(rows, at::kLong).to(device);
  positions_ = at::tensor(positions, at::kLong).to(device);
  return T > 1 ? at::Tensor() : positions_.to(at::kInt).view({texts(), 1});
}

attention::Forward KeyValueCache::attend(std::int64_t block, const attention::Heads& x) {
  at::Tensor& keys = keys_.at(static_cast<std::size_t>(block - 1));
  at::Tensor& values = values_.at(static_cast<std::size_t>(block - 1));
  const at::Tensor k = x.k.transpose(1, 2), v = x.v.transpose(1, 2);
  if (T_ > 1) {
    keys.narrow(2, 0, T_).copy_(k);
    values.narrow(2, 0, T_).copy_(v);
    return attention::forward(x, {{}, window_}, backend_);
  }
  const at::Tensor place = positions_.view({x.B, 1, 1, 1});
  keys.scatter_(2, place.expand({x.B, x.K, 1, x.E}), k.to(keys.scalar_type()));
  values.scatter_(2, place.expand({x.B, x.K, 1, x.W}), v.to(values.scalar_type()));
  attention::Forward out;
  out.y = attention::of_newest(x.q.reshape({x.B, x.H, x.E}), keys.narrow(2, 0, seen_),
                               values.narrow(2, 0, seen_), positions_, window_, x.scale);
  return out;
}

void KeyValueCache::end() {
  for (std::size_t text = 0; text < lengths_.size(); ++text) lengths_[text] += counts_[text];
}

}  // namespace assay::impl
