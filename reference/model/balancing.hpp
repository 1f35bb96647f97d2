#pragma once
// How a step's mixtures of experts are kept balanced: auxiliary losses over the forward passes of all of its
// micro-batches, and what these losses send back. [spec/ops/load_balancing/load_balancing.md]
#include <optional>
#include <vector>

#include "reference/model/model.hpp"
#include "spec/ops/load_balancing/load_balancing.hpp"

namespace assay::reference::balancing {

using spec::load_balancing::Form;

/// What a run says of its mixtures of experts.
struct Settings {
  Form form = Form::global;
  double coefficient = 0;                                ///< of the balance loss
  double router_z_coefficient = 0;                       ///< of the router's z-loss
  double bias_rate = 0;                                  ///< step of the routers' biases
  std::optional<double> capacity_factor = std::nullopt;  ///< none: drop-less
};

/// Over a whole optimizer step. Entry l of a vector is of layer l; of a dense layer it is empty.
struct Balance {
  double balance = 0;  ///< without its coefficient, as router_z
  double router_z = 0;
  double dropped = 0;                      ///< share of all choices that have no row
  std::vector<std::vector<Index>> counts;  ///< [L][X] choices of each expert
  /// [micro-batches][L], of the losses times their coefficients
  std::vector<std::vector<experts::Upstream<double>>> upstreams;
};

/// Shapes:    forwards, the passes over `micro_batches`, which are those of all ranks; for Form::running each
///            holds the sequences that all ranks work on at a time, in the order of the passes
/// Errors:    SpecError of load_balancing
Balance balance(const std::vector<model::Forward<double>>& forwards, const std::vector<Batch>& micro_batches,
                const spec::ModelSpec& model, const Settings& settings);

}  // namespace assay::reference::balancing
