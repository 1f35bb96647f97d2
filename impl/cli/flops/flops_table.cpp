// The report of `assay flops` for people: tables of at most 100 columns.
#include <algorithm>
#include <cmath>

#include "impl/cli/flops/flops_report.hpp"
#include "spec/model/nominal.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::cli {
namespace {

constexpr std::size_t name_width = 27;

std::string left(const std::string& text, std::size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

/// A utilisation, with a mark when it is impossible.
std::string judged(const std::optional<double>& share) {
  if (!share) return "-";
  return spec::percent(*share) + (*share > 1 ? "!" : " ");
}

void print_components(const FlopsReport& report, std::ostream& out) {
  const auto row = [&](const std::string& name, const std::string& parameters, const std::string& forward,
                       const std::string& backward, const std::string& share) {
    out << left(name, 23) << right(parameters, 20) << right(forward, 20) << right(backward, 20)
        << right(share, 9) << "\n";
  };
  const double total = report.flops.per_token().to_double();
  row("component", "parameters", "forward", "backward", "share");
  Count forward, backward, parameters;
  for (const FlopsLine& line : report.lines) {
    row(line.name, spec::grouped(line.parameters), spec::grouped(line.forward), spec::grouped(line.backward),
        spec::percent((line.forward + line.backward).to_double() / total));
    forward += line.forward;
    backward += line.backward;
    parameters += line.parameters;
  }
  row("total", spec::grouped(parameters), spec::grouped(forward), spec::grouped(backward), "100.0 %");
  out << "exact: GEMMs only, a multiply-add is 2, causal pairs counted once, no recompute\n";
  if (report.request.model.window > 0)
    out << "       of those pairs only the ones inside the window; each number is rounded to a whole FLOP\n";
  if (report.multi_token_flops)
    out << "multi-token blocks, in megatron's number alone: " << spec::grouped(report.parameters.multi_token)
        << " parameters, " << spec::grouped(*report.multi_token_flops) << " FLOPs\n";
}

/// "80 GiB at 3,350 GB/s; NVLink 900 GB/s both ways; network 400 Gb/s each way (DGX H100); 700 W".
std::string facts_of(const spec::Gpu& gpu) {
  const auto whole = [](const spec::Fact& fact, double unit) {
    return spec::grouped(std::llround(fact.value / unit));
  };
  std::string out;
  const auto add = [&](const std::string& fact) { out += (out.empty() ? "" : "; ") + fact; };
  if (gpu.memory && gpu.memory_bandwidth)
    add(whole(*gpu.memory, 0x1p30) + " GiB at " + whole(*gpu.memory_bandwidth, 1e9) + " GB/s");
  // A bridge's may have a fraction: 112.5 GB/s.
  if (gpu.nvlink)
    add("links " +
        (std::fmod(gpu.nvlink->value, 1e9) == 0 ? whole(*gpu.nvlink, 1e9)
                                                : spec::fixed(gpu.nvlink->value / 1e9, 1)) +
        " GB/s both ways");
  if (gpu.network)
    add("network " + whole(*gpu.network, 1e9) + " Gb/s each way (" + gpu.network->system + ")");
  if (gpu.power) add(whole(*gpu.power, 1) + " W");
  return out;
}

/// The utilisation of a convention, "-" where it does not apply.
std::string share_by(const FlopsReport& report, spec::Convention convention) {
  const auto line = std::ranges::find(report.conventions, convention,
                                      [](const ConventionLine& each) { return each.facts->convention; });
  return line == report.conventions.end() || !line->dense ? "-" : spec::percent(*line->dense);
}

void print_rate(const FlopsReport& report, std::ostream& out) {
  const FlopsRequest& request = report.request;
  if (request.gpu) {
    out << request.gpus << " x " << request.gpu->name << ", " << spec::to_string(request.precision) << ": "
        << spec::fixed(report.peak->dense / 1e12, 1) << " TFLOP/s dense";
    if (report.peak->sparse)
      out << ", " << spec::fixed(*report.peak->sparse / 1e12, 1) << " with 2:4 sparsity";
    out << "\n";
  }
  if (report.rate)
    out << spec::grouped(std::llround(*report.rate)) << " tokens/s of all GPUs, "
        << spec::grouped(std::llround(*report.rate / static_cast<double>(request.gpus))) << " each"
        << (request.mfu ? ", from " + spec::percent(*request.mfu) + " MFU (exact, dense)" : "") << "\n";
  if (report.rate && report.peak && !request.mfu)
    out << "MFU " << share_by(report, spec::Convention::exact) << " exact, "
        << share_by(report, spec::Convention::palm_total) << " palm_total, against the dense peak\n";
}

/// Where the peak stands, and what else documents state.
void print_gpu(const FlopsReport& report, std::ostream& out) {
  const spec::Gpu& gpu = *report.request.gpu;
  out << "\n"
      << gpu.name << "\n  " << report.peak->source.document << ", " << report.peak->source.date << "\n";
  if (report.peak->dense_is_derived) out << "  (it prints the sparse rate alone; dense is half of it)\n";
  out << "  " << facts_of(gpu) << "\n";
  if (gpu.power && !gpu.power->scope.empty()) out << "  (that power is of the " << gpu.power->scope << ")\n";
}

void print_conventions(const FlopsReport& report, std::ostream& out) {
  const bool shares = report.rate && report.peak;
  out << "\n"
      << left("convention", name_width - 2) << right("GFLOP/token", 13) << right("/ exact", 8)
      << (shares ? right("MFU ", 9) + right("sparse ", 9) : "") << "  against exact\n";
  for (const ConventionLine& line : report.conventions) {
    out << left(std::string(line.facts->name), name_width - 2);
    if (line.count.flops)
      out << right(spec::fixed(line.count.flops->to_double() / 1e9, 4), 13)
          << right(spec::fixed(*line.of_exact, 4), 8)
          << (shares ? right(judged(line.dense), 9) + right(judged(line.sparse), 9) : "") << "  "
          << line.facts->differs << (line.outside_window ? "*" : "") << "\n";
    else
      out << right("-", 13) << "  " << line.count.why_not << "\n";
  }
  if (std::ranges::any_of(report.conventions, &ConventionLine::outside_window))
    out << "* also counts pairs outside the window, which are not computed\n";
  if (shares && std::any_of(report.conventions.begin(), report.conventions.end(),
                            [](const ConventionLine& line) { return line.dense && *line.dense > 1; }))
    out << "! above 100 %: impossible, so this convention counts what is not computed\n";
}

void print_formulas(const FlopsReport& report, std::ostream& out) {
  out << "\nformulas per token, forward and backward (letters: spec/flops/conventions.md)\n";
  for (const ConventionLine& line : report.conventions)
    if (line.count.flops)
      out << left(std::string(line.facts->name), name_width) << line.formula << "\n"
          << std::string(name_width, ' ') << line.facts->source << "\n";
}

void print_budget(const FlopsReport& report, std::ostream& out) {
  const spec::metrics::Budget& budget = *report.budget;
  const FlopsRequest& request = report.request;
  out << "budget of " << spec::grouped(std::llround(budget.tokens)) << " tokens\n"
      << "  compute      " << spec::scientific(budget.flops, 3) << " FLOP (exact)\n";
  if (budget.iterations)
    out << "  iterations   " << spec::grouped(*budget.iterations) << " of "
        << spec::grouped(*request.tokens_per_step) << " tokens\n";
  out << "  time         " << spec::duration(budget.seconds) << " (" << spec::fixed(budget.seconds / 3600, 2)
      << " h)\n"
      << "  GPU hours    " << spec::fixed(budget.gpu_hours, 1) << " on " << request.gpus
      << (request.gpus == 1 ? " GPU\n" : " GPUs\n");
  if (!budget.energy) return;
  const spec::Fact& power = *request.gpu->power;
  out << "  energy       " << spec::fixed(*budget.energy / 3.6e9, 3) << " MWh at most: every "
      << (power.scope.empty() ? "GPU" : "superchip") << " at " << spec::fixed(power.value, 0)
      << " W all the time; hosts, network\n"
      << "               and cooling come on top\n";
  if (!power.scope.empty())
    out << "               that power is of the " << power.scope << "; the GPU's share is not stated\n";
}

}  // namespace

void print_table(const FlopsReport& report, bool all, std::ostream& out) {
  const FlopsRequest& request = report.request;
  out << request.model.name << ": " << spec::grouped(report.parameters.total) << " parameters";
  if (report.parameters.active != report.parameters.total)
    out << ",\n" << spec::grouped(report.parameters.active) << " active per token";
  out << ", sequences of " << spec::grouped(request.sequence_length) << " tokens\n"
      << spec::grouped(report.flops.per_token()) << " FLOPs per token, "
      << spec::grouped(report.flops.per_sequence()) << " per sequence, forward and backward\n";
  print_rate(report, out);
  if (report.budget) print_budget(report, out);
  if (request.model.window > 0)
    out << "window: a token sees the last " << spec::grouped(request.model.window)
        << " tokens, itself among them\n";
  if (const auto nominal = spec::misnamed(request.model))
    out << "its name says " << spec::fixed(*nominal / 1e9, 2) << "B parameters; counted are "
        << spec::fixed(report.parameters.total.to_double() / 1e9, 3) << "B, "
        << spec::fixed(report.parameters.total.to_double() / *nominal, 2) << " times that\n";
  out << "\n";
  print_components(report, out);
  if (request.gpu) print_gpu(report, out);
  if (all) {
    print_conventions(report, out);
    print_formulas(report, out);
  } else {
    out << "\n--all adds what " << report.conventions.size() - 1
        << " other conventions count, their formulas and sources\n";
  }
}

}  // namespace assay::impl::cli
