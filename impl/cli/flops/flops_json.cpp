// The report of `assay flops` for programs.
#include "impl/cli/flops/flops_report.hpp"
#include "spec/model/nominal.hpp"
#include "spec/text/json.hpp"

namespace assay::impl::cli {
namespace {

using spec::json_number;
using spec::json_string;

std::string text(std::string_view name, std::string_view value) {
  return json_string(name) + ":" + json_string(value);
}
std::string count(std::string_view name, const Count& value) { return text(name, value.to_string()); }
std::string number(std::string_view name, double value) {
  return json_string(name) + ":" + json_number(value);
}
std::string number_or_null(std::string_view name, const std::optional<double>& value) {
  return json_string(name) + ":" + (value ? json_number(*value) : "null");
}

void print_convention(const ConventionLine& line, std::ostream& out) {
  out << "{" << text("name", line.facts->name) << "," << text("formula", line.formula) << ","
      << text("source", line.facts->source) << ","
      << text("differs",
              std::string(line.facts->differs) + (line.outside_window ? "; pairs outside the window" : ""));
  if (line.count.flops)
    out << "," << count("flops_per_token", *line.count.flops) << "," << number("of_exact", *line.of_exact);
  else
    out << ",\"flops_per_token\":null," << text("why_not", line.count.why_not);
  if (line.dense)
    out << "," << number("mfu_dense", *line.dense) << "," << number_or_null("mfu_sparse", line.sparse);
  out << "}";
}

void print_hardware(const FlopsReport& report, std::ostream& out) {
  const FlopsRequest& request = report.request;
  const spec::Peak& peak = *report.peak;
  const auto fact = [](std::string_view name, const std::optional<spec::Fact>& stated) {
    return number_or_null(name, stated ? std::optional(stated->value) : std::nullopt);
  };
  const spec::Gpu& gpu = *request.gpu;
  out << ",\n \"hardware\":{" << text("id", request.gpu->id) << "," << text("name", request.gpu->name)
      << ",\"gpus\":" << request.gpus << "," << text("precision", spec::to_string(request.precision)) << ","
      << number("peak_dense", peak.dense) << "," << number_or_null("peak_sparse", peak.sparse)
      << ",\"dense_is_derived\":" << (peak.dense_is_derived ? "true" : "false") << ","
      << text("source", peak.source.document) << "," << text("source_date", peak.source.date) << ","
      << fact("memory_bytes", gpu.memory) << "," << fact("memory_bytes_per_second", gpu.memory_bandwidth)
      << "," << fact("nvlink_bytes_per_second", gpu.nvlink) << ","
      << fact("host_link_bytes_per_second", gpu.host_link) << ","
      << fact("network_bits_per_second", gpu.network) << ","
      << text("network_system", gpu.network ? gpu.network->system : "") << "," << fact("power_w", gpu.power)
      << "," << text("power_scope", gpu.power ? gpu.power->scope : "") << "}";
}

void print_budget_json(const FlopsReport& report, std::ostream& out) {
  const spec::metrics::Budget& budget = *report.budget;
  out << ",\n \"budget\":{" << number("tokens", budget.tokens) << "," << number("flops", budget.flops)
      << ",\"iterations\":" << (budget.iterations ? std::to_string(*budget.iterations) : "null") << ","
      << number("seconds", budget.seconds) << "," << number("gpu_hours", budget.gpu_hours) << ","
      << number_or_null("energy_j", budget.energy) << "}";
}

}  // namespace

void print_json(const FlopsReport& report, std::ostream& out) {
  const FlopsRequest& request = report.request;
  out << "{" << text("model", request.model.name) << "," << text("convention", "exact")
      << ",\"sequence_length\":" << request.sequence_length << ",\"window\":" << request.model.window << ","
      << count("parameters", report.parameters.total) << ","
      << number_or_null("nominal_parameters", spec::nominal_parameters(request.model.name)) << ","
      << count("active_parameters", report.parameters.active) << ","
      << count("matmul_parameters", spec::matmul_parameters(request.model)) << ","
      << count("flops_per_token", report.flops.per_token()) << ","
      << count("flops_per_sequence", report.flops.per_sequence());
  if (report.multi_token_flops)
    out << "," << count("multi_token_parameters", report.parameters.multi_token) << ","
        << count("multi_token_flops_per_token", *report.multi_token_flops);
  out << ",\n \"components\":[";
  for (const FlopsLine& line : report.lines)
    out << (&line == &report.lines.front() ? "" : ",\n  ") << "{" << text("name", line.name) << ","
        << count("parameters", line.parameters) << "," << count("forward_per_token", line.forward) << ","
        << count("backward_per_token", line.backward) << "}";
  out << "],\n \"conventions\":[";
  for (const ConventionLine& line : report.conventions) {
    out << (&line == &report.conventions.front() ? "" : ",\n  ");
    print_convention(line, out);
  }
  out << "]";
  if (request.gpu) print_hardware(report, out);
  if (report.rate) out << ",\n " << number("tokens_per_second", *report.rate);
  if (report.budget) print_budget_json(report, out);
  out << "}\n";
}

}  // namespace assay::impl::cli
