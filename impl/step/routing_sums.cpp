#include "impl/step/routing_sums.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "spec/ops/load_balancing/load_balancing.hpp"

namespace assay::impl::run {

using spec::load_balancing::numbers_before_loads;

RoutingSums::RoutingSums(const at::Tensor& rows, bool batch_shares) : rows_(rows) {
  if (batch_shares) shares_ = at::zeros_like(loads());
}

at::Tensor RoutingSums::loads() const {
  return rows_.narrow(1, numbers_before_loads, rows_.size(1) - numbers_before_loads);
}

void RoutingSums::sum_over_tensor_ranks(Communicator& tensor) {
  if (!empty() && tensor.size() > 1) tensor.all_reduce_sum(rows_.view({-1}));
}

void RoutingSums::add(const std::vector<at::Tensor>& of_layers, LayoutGroups& groups) {
  if (empty()) return;
  for (std::size_t layer = 0; layer < of_layers.size(); ++layer)
    rows_[static_cast<std::int64_t>(layer)] += of_layers[layer].narrow(0, 0, rows_.size(1));
  if (!shares_.defined()) return;
  const at::Tensor so_far = loads().clone();
  if (groups.tensor().size() > 1) groups.tensor().all_reduce_sum(so_far);
  if (groups.all().size() > 1) groups.tokens().all_reduce_sum(so_far);
  shares_.copy_(so_far / so_far.sum(1, /*keepdim=*/true));
  const std::int64_t X = shares_.size(1);
  for (std::size_t layer = 0; layer < of_layers.size(); ++layer) {
    const auto row = static_cast<std::int64_t>(layer);
    const at::Tensor probabilities = of_layers[layer].narrow(0, rows_.size(1), X);
    rows_[row][0] += (shares_[row] * probabilities).sum() * X;
  }
}

RoutingResult RoutingSums::result(const at::Tensor& numbers, bool drops) const {
  const at::Tensor rows = numbers.view(rows_.sizes());
  RoutingResult out;
  double dropped = 0, choices = 0;
  const auto layers = static_cast<double>(rows.size(0));
  for (std::int64_t layer = 0; layer < rows.size(0); ++layer) {
    const double* row = rows[layer].const_data_ptr<double>();
    const std::span<const double> loads(row + numbers_before_loads,
                                        static_cast<std::size_t>(rows.size(1) - numbers_before_loads));
    const double load = spec::load_balancing::largest_load(loads);
    out.balance += row[0];
    out.router_z += row[1];
    out.entropy += row[2] / layers;
    out.worst_load = std::max(out.worst_load, load);
    out.mean_load += load / layers;
    dropped += row[3];
    choices += std::accumulate(loads.begin(), loads.end(), 0.0);
  }
  if (drops) out.dropped = choices > 0 ? dropped / choices : 0;
  return out;
}

}  // namespace assay::impl::run
