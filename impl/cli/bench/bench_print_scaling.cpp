#include "impl/cli/bench/bench_print_scaling.hpp"

#include <cmath>
#include <cstdio>
#include <sstream>

#include "spec/text/json.hpp"

namespace assay::impl::cli {
namespace {

using spec::json_number;
using spec::json_string;
using spec::metrics::ScalingRow;

std::string row_json(const ScalingRow& row) {
  const auto field = [](const char* name, double value) {
    return std::string(",\"") + name + "\":" + json_number(value);
  };
  std::string out =
      "{\"ranks\":" + std::to_string(row.ranks) +
      (row.tensor_ranks > 1 ? ",\"tensor_ranks\":" + std::to_string(row.tensor_ranks) : "") +
      ",\"hosts\":" + std::to_string(row.hosts) + ",\"layout\":" + json_string(row.layout) +
      ",\"sequences\":" + std::to_string(row.sequences) +
      ",\"accumulation\":" + std::to_string(row.accumulation) + field("step_seconds", row.step_seconds) +
      field("tokens_per_second", row.tokens_per_second) +
      field("tokens_per_second_of_rank", row.tokens_per_second_of_rank) + field("efficiency", row.efficiency);
  if (!row.gpu.empty()) out += ",\"gpu\":" + json_string(row.gpu);
  if (row.mfu) out += field("mfu", *row.mfu);
  return out + field("exposed", row.exposed) + field("lost_imbalance", row.lost_imbalance) +
         field("lost_waiting", row.lost_waiting) + field("lost_compute", row.lost_compute) +
         field("lost_fixed", row.lost_fixed) + "}";
}

/// Of GPUs that ran by themselves, the one that a step of all waits for, and how far it is below the fastest;
/// empty where fewer than two did.
std::string slowest_by_itself(const std::vector<ScalingRow>& rows) {
  const ScalingRow *slowest = nullptr, *fastest = nullptr;
  const auto rate = [](const ScalingRow* row) { return row->tokens_per_second_of_rank; };
  for (const ScalingRow& row : rows) {
    if (row.gpu.empty()) continue;
    if (!slowest || rate(&row) < rate(slowest)) slowest = &row;
    if (!fastest || rate(&row) > rate(fastest)) fastest = &row;
  }
  if (!slowest || slowest->gpu == fastest->gpu) return "";
  char line[160];
  std::snprintf(line, sizeof line, ", %.1f tokens/s, %.2f %% below the fastest\n", rate(slowest),
                100 * (1 - rate(slowest) / rate(fastest)));
  return "slowest by itself: " + slowest->gpu + line;
}

}  // namespace

std::string scaling_text(const ScalingStudy& study) {
  std::ostringstream out;
  char line[256];
  out << (study.strong ? "strong scaling: the same step on more ranks\n"
                       : "weak scaling: the same sequences for every data-parallel rank\n");
  if (!study.rows.empty() && study.rows.front().tensor_ranks > 1)
    out << "each data-parallel rank is made of " << study.rows.front().tensor_ranks << " tensor ranks\n";
  std::snprintf(line, sizeof line, "%5s %5s %-9s %9s %4s %10s %13s %13s %10s %8s %8s %9s %8s %8s %8s\n",
                "ranks", "hosts", "layout", "sequences", "acc", "s/step", "tokens/s", "of a rank",
                "efficiency", "MFU", "exposed", "imbalance", "waiting", "compute", "fixed");
  out << line;
  for (const ScalingRow& row : study.rows) {
    char mfu[16] = "-";
    if (row.mfu) std::snprintf(mfu, sizeof mfu, "%.2f %%", 100 * *row.mfu);
    std::snprintf(line, sizeof line,
                  "%5lld %5lld %-9s %9lld %4lld %10.4g %13.1f %13.1f %8.2f %% %8s %6.2f %% %7.2f %% %6.2f %% "
                  "%6.2f %% %6.2f %%\n",
                  static_cast<long long>(row.ranks), static_cast<long long>(row.hosts), row.layout.c_str(),
                  static_cast<long long>(row.sequences), static_cast<long long>(row.accumulation),
                  row.step_seconds, row.tokens_per_second, row.tokens_per_second_of_rank,
                  100 * row.efficiency, mfu, 100 * row.exposed, 100 * row.lost_imbalance,
                  100 * row.lost_waiting, 100 * row.lost_compute, 100 * row.lost_fixed);
    out << line;
  }
  out << slowest_by_itself(study.rows);
  out << "efficiency: tokens/s of a rank against those of the fewest ranks, on average; what is lost: "
         "imbalance + waiting + "
         "compute + fixed\n";
  if (study.strong) {
    const auto& found = study.differences;
    char most[32] = " (nothing bounds them)";
    if (std::isfinite(study.most.later_loss))
      std::snprintf(most, sizeof most, " of %.2g", study.most.later_loss);
    std::snprintf(
        line, sizeof line,
        "the same steps: first loss differs by %.2g of %.2g, its gradient's norm by %.2g of %.2g, later "
        "losses by %.2g%s: ",
        found.first_loss, study.most.first_loss, found.first_gradient_norm, study.most.first_gradient_norm,
        found.later_loss, most);
    out << line << (study.agree ? "roundings" : "MORE THAN ROUNDINGS (spec/metrics/scaling.md, C2)") << "\n";
  }
  out << (study.refused.empty() ? "assay audit accepts every record\n" : study.refused);
  return out.str();
}

std::string scaling_json(const ScalingStudy& study) {
  std::string out = "{\"schema\":\"assay.bench.scaling/1\",\"scaling\":";
  out += study.strong ? "\"strong\"" : "\"weak\"";
  out += ",\"steps\":" + std::to_string(study.steps) +
         ",\"steps_left_out\":" + std::to_string(study.steps_left_out);
  std::string lines;
  for (const ScalingRow& row : study.rows) lines += (lines.empty() ? "\n" : ",\n") + row_json(row);
  out += ",\"rows\":[" + lines + "]";
  if (study.strong)
    out += ",\"first_loss_difference\":" + json_number(study.differences.first_loss) +
           ",\"first_gradient_norm_difference\":" + json_number(study.differences.first_gradient_norm) +
           ",\"loss_difference\":" + json_number(study.differences.later_loss) +
           ",\"same_steps\":" + (study.agree ? "true" : "false");
  return out + ",\"audit_accepts\":" + (study.refused.empty() ? "true" : "false") + "}\n";
}

}  // namespace assay::impl::cli
