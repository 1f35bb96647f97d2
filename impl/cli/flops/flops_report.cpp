#include "impl/cli/flops/flops_report.hpp"

#include <algorithm>
#include <map>

#include "spec/error.hpp"
#include "spec/model/inventory.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::cli {
namespace {

using spec::FlopComponent;
using spec::Pass;

/// The component that a parameter belongs to; norms and biases are none.
std::string component_of(spec::Role role) {
  using spec::Role;
  const auto name = [](FlopComponent component) { return std::string(spec::to_string(component)); };
  switch (role) {
    case Role::embedding:
    case Role::positions:
      return name(FlopComponent::embedding);
    case Role::query:
    case Role::key:
    case Role::value:
    case Role::query_key_value:
      return name(FlopComponent::qkv);
    case Role::query_down:
    case Role::query_up:
    case Role::key_value_down:
    case Role::key_value_up:
      return name(FlopComponent::latent_projections);
    case Role::attention_output:
      return name(FlopComponent::attention_output);
    case Role::gate:
    case Role::up:
      return name(FlopComponent::gate_up);
    case Role::down:
      return name(FlopComponent::down);
    case Role::head:
      return name(FlopComponent::head);
    case Role::router:
      return name(FlopComponent::router);
    case Role::expert_gate:
    case Role::expert_up:
    case Role::expert_down:
      return name(FlopComponent::routed_experts);
    case Role::shared_gate:
    case Role::shared_up:
    case Role::shared_down:
      return name(FlopComponent::shared_experts);
    case Role::multi_token_projection:
      return name(FlopComponent::multi_token_projection);
    case Role::bias:
      return "biases";
    case Role::norm:
    case Role::router_bias:  // not learned, never asked for
      break;
  }
  return "norms";
}

/// Parameters by component. Fine experts make 10^5 tensors whose names would cost most of the run, so of the
/// routed ones only the active are listed and the rest is what the total leaves.
std::map<std::string, Count> parameters_of(const spec::ModelSpec& model, const Count& total) {
  spec::ModelSpec listed = model;
  const bool fewer = model.experts && !model.mlp_bias;
  if (fewer) {
    listed.experts->count = model.experts->active;
    listed.experts->groups = listed.experts->active_groups = 1;  // no parameter depends on them
  }
  std::map<std::string, Count> by_component;
  for (const spec::Parameter& parameter : spec::inventory(listed).parameters)
    if (parameter.learned()) by_component[component_of(parameter.role)] += parameter.size;
  if (!fewer) return by_component;
  by_component[component_of(spec::Role::router)] =
      model.sparse_layers() * (Count(model.experts->count) * model.width);
  Count& routed = by_component[component_of(spec::Role::expert_up)];
  routed = 0;
  Count rest;
  for (const auto& [component, size] : by_component) rest += size;
  routed = total - rest;
  return by_component;
}

std::vector<FlopsLine> lines_of(const spec::FlopBreakdown& flops, const spec::ModelSpec& model,
                                const Count& total) {
  std::map<std::string, Count> parameters = parameters_of(model, total);
  const Count tokens(flops.sequence_length);
  std::vector<FlopsLine> lines;
  for (std::size_t i = 0; i < spec::flop_components; ++i) {
    const auto component = static_cast<FlopComponent>(i);
    const std::string name(spec::to_string(component));
    lines.push_back({name, parameters[name], flops.at(component, Pass::forward).divided_to_nearest(tokens),
                     flops.at(component, Pass::backward).divided_to_nearest(tokens)});
  }
  for (const char* name : {"norms", "biases"}) lines.push_back({name, parameters[name], 0, 0});
  // A model has no lines for what it does not have; the lookup stays, as it costs nothing and is asked about.
  std::erase_if(lines, [](const FlopsLine& line) {
    return line.name != "embedding" && line.parameters == Count(0) && line.forward == Count(0);
  });
  return lines;
}

const spec::Peak& peak_of(const spec::Gpu& gpu, spec::Precision precision) {
  if (const spec::Peak* peak = gpu.peak(precision)) return *peak;
  std::string known;
  for (const auto& [other, peak] : gpu.peaks)
    known += (known.empty() ? "" : ", ") + std::string(spec::to_string(other));
  throw UserError(ExitCode::usage, "no document of " + gpu.name + " states a peak for " +
                                       std::string(spec::to_string(precision)) +
                                       ", so there is no MFU; it has " + known + " (--dtype)");
}

void add_rate(FlopsReport& report) {
  const FlopsRequest& request = report.request;
  const double exact = report.flops.per_token().to_double();
  report.rate = request.tokens_per_second;
  if (request.mfu && report.peak)
    report.rate = spec::metrics::tokens_per_second_at(*request.mfu, exact, report.peak->dense, request.gpus);
  if (!report.rate || !report.peak) return;
  const double share = spec::metrics::utilisation(exact, *report.rate, report.peak->dense, request.gpus);
  // With an MFU given, rounding alone may pass 1.
  if (!request.mfu && share > 1)
    throw UserError(ExitCode::usage,
                    spec::grouped(static_cast<std::int64_t>(*report.rate)) + " tokens/s on " +
                        std::to_string(request.gpus) + " " + request.gpu->id + " would be " +
                        spec::percent(share) +
                        " MFU, more than the hardware can do; check --tokens-per-second, --gpus, "
                        "--seq and --dtype");
}

void add_conventions(FlopsReport& report) {
  const FlopsRequest& request = report.request;
  const double exact = report.flops.per_token().to_double();
  for (const spec::ConventionFacts& facts : spec::conventions()) {
    const auto of = [&](auto function) {
      return function(facts.convention, request.model, request.sequence_length);
    };
    ConventionLine line{.facts = &facts,
                        .formula = of(spec::formula_of),
                        .outside_window = of(spec::counts_outside_window),
                        .count = of(spec::flops_per_token),
                        .of_exact = {},
                        .dense = {},
                        .sparse = {}};
    if (line.count.flops) {
      const double flops = line.count.flops->to_double();
      const auto share = [&](double peak) {
        return spec::metrics::utilisation(flops, *report.rate, peak, request.gpus);
      };
      line.of_exact = flops / exact;
      if (report.rate && report.peak) line.dense = share(report.peak->dense);
      if (report.rate && report.peak && report.peak->sparse) line.sparse = share(*report.peak->sparse);
    }
    report.conventions.push_back(line);
  }
}

}  // namespace

FlopsReport flops_report(const FlopsRequest& request) {
  FlopsReport report;
  report.request = request;
  report.parameters = spec::parameter_counts(request.model);
  report.flops = spec::exact_flops(request.model, request.sequence_length);
  if (request.model.multi_token_layers > 0)
    report.multi_token_flops = spec::multi_token_flops(request.model, request.sequence_length).per_token();
  report.lines = lines_of(report.flops, request.model, report.parameters.total);
  if (request.gpu) report.peak = &peak_of(*request.gpu, request.precision);
  add_rate(report);
  add_conventions(report);
  if (request.tokens && report.rate) {
    std::optional<double> power;
    if (request.gpu && request.gpu->power) power = request.gpu->power->value;
    report.budget = spec::metrics::budget(*request.tokens, report.flops.per_token().to_double(), *report.rate,
                                          request.gpus, request.tokens_per_step, power);
  }
  return report;
}

}  // namespace assay::impl::cli
