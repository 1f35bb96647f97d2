#pragma once
// What the routers of a step report, summed over its micro-batches and ranks
// (spec/ops/load_balancing/load_balancing.md).
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "impl/params/layouts/layout_groups.hpp"

namespace assay::impl::run {

/// What a step's tokens did in the routers of its sparse layers.
struct RoutingResult {
  double balance = 0;   ///< balance loss, without its coefficient, summed over layers
  double router_z = 0;  ///< router z-loss, likewise
  double worst_load = 0,
         mean_load = 0;                ///< largest load of an expert over the mean: of the worst layer, mean
  double entropy = 0;                  ///< of the probabilities [nat], mean over tokens and layers
  std::optional<double> dropped = {};  ///< share of all choices without a row, where a capacity is set
};

class RoutingSums {
 public:
  RoutingSums() = default;
  /// `rows` [sparse layers, 4 + X] fp64 in the step's losses, of X experts (router::losses). `batch_shares`:
  /// the balance loss compares shares of the batch so far, of all ranks; otherwise those of each sequence.
  RoutingSums(const at::Tensor& rows, bool batch_shares);

  bool empty() const { return !rows_.defined(); }
  /// Adds what a forward pass measured in each sparse layer.
  void add(const std::vector<at::Tensor>& of_layers, LayoutGroups& groups);
  /// [sparse layers, X] fp64 as they are now; undefined: of each sequence.
  const at::Tensor& shares() const { return shares_; }
  /// Choices of each expert [sparse layers, X]: this rank's, and once the losses are summed all ranks'.
  at::Tensor loads() const;
  /// Tensor ranks have the same losses of tokens, and routers' rows of tokens of their own.
  void sum_over_tensor_ranks(Communicator& tensor);
  /// From the step's numbers on the host, `rows` [sparse layers * (4 + X)]. `drops`: a capacity is set.
  RoutingResult result(const at::Tensor& rows, bool drops) const;

 private:
  at::Tensor rows_, shares_;  ///< undefined in a model without experts
};

}  // namespace assay::impl::run
