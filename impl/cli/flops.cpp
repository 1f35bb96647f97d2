#include "spec/flops/exact.hpp"

#include <algorithm>

#include "impl/cli/verb.hpp"
#include "spec/error.hpp"
#include "spec/model/inventory.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::cli {
namespace {

using spec::FlopComponent;
using spec::Pass;

/// One line of the table: a component that multiplies, or the norms, which do not.
struct Line {
  std::string name;
  Count parameters;
  Count forward, backward;  ///< per token [flop]
};

/// The component that a parameter belongs to; the norms are none.
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
    case Role::router_bias:
      return "biases";
    case Role::norm:
      break;
  }
  return "norms";
}

std::vector<Line> lines_of(const spec::FlopBreakdown& flops, const spec::Inventory& inventory) {
  std::vector<Line> lines;
  const Count tokens(flops.sequence_length);
  for (std::size_t i = 0; i < spec::flop_components; ++i) {
    const auto component = static_cast<FlopComponent>(i);
    lines.push_back({std::string(spec::to_string(component)), 0,
                     flops.at(component, Pass::forward).divided_exactly_by(tokens),
                     flops.at(component, Pass::backward).divided_exactly_by(tokens)});
  }
  lines.push_back({"norms", 0, 0, 0});
  lines.push_back({"biases", 0, 0, 0});
  for (const spec::Parameter& parameter : inventory.parameters)
    for (Line& line : lines)
      if (line.name == component_of(parameter.role)) line.parameters += Count(parameter.size);
  // A model has no lines for what it does not have; the lookup stays, as it costs nothing and is asked about.
  lines.erase(std::remove_if(lines.begin(), lines.end(),
                             [](const Line& line) {
                               return line.name != "embedding" && line.parameters == Count(0) &&
                                      line.forward == Count(0);
                             }),
              lines.end());
  return lines;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

void print_table(const spec::ModelSpec& model, const spec::FlopBreakdown& flops,
                 const std::vector<Line>& lines, std::ostream& out) {
  const Count total = flops.per_token();
  out << model.name << ": " << spec::grouped(spec::inventory(model).parameter_count())
      << " parameters, sequences of " << spec::grouped(flops.sequence_length) << " tokens\n\n";
  std::size_t longest = 17;
  for (const Line& line : lines) longest = std::max(longest, line.name.size());
  const auto row = [&](const std::string& name, const std::string& parameters, const std::string& forward,
                       const std::string& backward, const std::string& share) {
    out << name << std::string(longest + 1 - name.size(), ' ') << right(parameters, 18) << right(forward, 20)
        << right(backward, 20) << right(share, 9) << "\n";
  };
  row("component", "parameters", "forward", "backward", "share");
  Count forward, backward, parameters;
  for (const Line& line : lines) {
    const double share = (line.forward + line.backward).to_double() / total.to_double();
    row(line.name, spec::grouped(line.parameters), spec::grouped(line.forward), spec::grouped(line.backward),
        spec::percent(share));
    forward += line.forward;
    backward += line.backward;
    parameters += line.parameters;
  }
  row("total", spec::grouped(parameters), spec::grouped(forward), spec::grouped(backward), "100.0 %");
  out << "\n"
      << spec::grouped(total) << " FLOPs per token, " << spec::grouped(flops.per_sequence())
      << " per sequence, forward and backward\n"
      << "exact: matrix products only, a multiply-add is 2, causal pairs counted once, no recompute\n";
}

void print_json(const spec::ModelSpec& model, const spec::FlopBreakdown& flops,
                const std::vector<Line>& lines, std::ostream& out) {
  using spec::json_string;
  // Counts are decimal strings: one step of a large model passes 2^53.
  out << "{\"model\":" << json_string(model.name)
      << ",\"convention\":\"exact\",\"sequence_length\":" << flops.sequence_length << ",\"parameters\":\""
      << spec::inventory(model).parameter_count().to_string() << "\",\"matmul_parameters\":\""
      << spec::matmul_parameters(model).to_string() << "\",\"flops_per_token\":\""
      << flops.per_token().to_string() << "\",\"flops_per_sequence\":\"" << flops.per_sequence().to_string()
      << "\",\n \"components\":[";
  for (const Line& line : lines)
    out << (&line == &lines.front() ? "" : ",\n  ") << "{\"name\":" << json_string(line.name)
        << ",\"parameters\":\"" << line.parameters.to_string() << "\",\"forward_per_token\":\""
        << line.forward.to_string() << "\",\"backward_per_token\":\"" << line.backward.to_string() << "\"}";
  out << "]}\n";
}

}  // namespace

int flops(const Arguments& arguments, Streams streams) {
  if (arguments.positional.size() != 1)
    throw UserError(ExitCode::usage, "`assay flops` takes one MODEL, as in `assay flops llama3-8b`");
  const spec::ModelSpec model = spec::find_model(arguments.positional[0]);
  const spec::FlopBreakdown breakdown = spec::exact_flops(model, arguments.positive("seq", model.context));
  const std::vector<Line> lines = lines_of(breakdown, spec::inventory(model));
  if (arguments.has("json"))
    print_json(model, breakdown, lines, streams.out);
  else
    print_table(model, breakdown, lines, streams.out);
  return 0;
}

}  // namespace assay::impl::cli
