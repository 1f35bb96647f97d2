#include "spec/metrics/metrics.hpp"

#include <cmath>
#include <string>

#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::metrics {
namespace {

void check_positive(double value, const char* name) {
  // metrics_c1
  require(std::isfinite(value) && value > 0, "metrics_c1",
          [&] { return std::string(name) + "=" + scientific(value, 3) + " must be positive and finite"; });
}

double at_most_all(double fraction, const char* name) {
  // metrics_c2
  require(fraction <= 1, "metrics_c2", [&] {
    return std::string(name) + "=" + percent(fraction, 2) +
           " is above 100 %: the rate is too high for this peak and number of GPUs, or the peak or the FLOPs "
           "are wrong";
  });
  return fraction;
}

}  // namespace

double tokens_per_second(const Count& tokens, double seconds) {
  check_positive(tokens.to_double(), "tokens");
  check_positive(seconds, "seconds");
  return tokens.to_double() / seconds;
}

double achieved_flops(double flops_per_token, double tokens_per_second) {
  check_positive(flops_per_token, "flops_per_token");
  check_positive(tokens_per_second, "tokens_per_second");
  return flops_per_token * tokens_per_second;
}

double utilisation(double flops_per_token, double tokens_per_second, double peak, std::int64_t gpus) {
  check_positive(peak, "peak");
  check_positive(static_cast<double>(gpus), "gpus");
  return achieved_flops(flops_per_token, tokens_per_second) / (peak * static_cast<double>(gpus));
}

double mfu(double flops_per_token, double tokens_per_second, double peak, std::int64_t gpus) {
  return at_most_all(utilisation(flops_per_token, tokens_per_second, peak, gpus), "MFU");
}

double hfu(double executed_flops_per_token, double tokens_per_second, double peak, std::int64_t gpus) {
  return at_most_all(utilisation(executed_flops_per_token, tokens_per_second, peak, gpus), "HFU");
}

double tokens_per_second_at(double mfu, double flops_per_token, double peak, std::int64_t gpus) {
  check_positive(mfu, "mfu");
  check_positive(flops_per_token, "flops_per_token");
  check_positive(peak, "peak");
  check_positive(static_cast<double>(gpus), "gpus");
  return at_most_all(mfu, "MFU") * peak * static_cast<double>(gpus) / flops_per_token;
}

double scaling_efficiency(double rate, std::int64_t gpus, double base_rate, std::int64_t base_gpus) {
  check_positive(rate, "rate");
  check_positive(static_cast<double>(gpus), "gpus");
  check_positive(base_rate, "base_rate");
  check_positive(static_cast<double>(base_gpus), "base_gpus");
  return rate / static_cast<double>(gpus) / (base_rate / static_cast<double>(base_gpus));
}

Budget budget(double tokens, double flops_per_token, double tokens_per_second, std::int64_t gpus,
              std::optional<std::int64_t> tokens_per_step, std::optional<double> power) {
  check_positive(tokens, "tokens");
  check_positive(flops_per_token, "flops_per_token");
  check_positive(tokens_per_second, "tokens_per_second");
  check_positive(static_cast<double>(gpus), "gpus");
  Budget out;
  out.tokens = tokens;
  out.flops = tokens * flops_per_token;
  out.tokens_per_second = tokens_per_second;
  out.seconds = tokens / tokens_per_second;
  out.gpu_hours = out.seconds * static_cast<double>(gpus) / 3600;
  if (tokens_per_step) {
    check_positive(static_cast<double>(*tokens_per_step), "tokens_per_step");
    const double steps = std::ceil(tokens / static_cast<double>(*tokens_per_step));
    // metrics_c3
    require(steps < 0x1p62, "metrics_c3", [&] { return "iterations=" + scientific(steps, 3); });
    out.iterations = static_cast<std::int64_t>(steps);
  }
  if (power) {
    check_positive(*power, "power");
    out.energy = *power * static_cast<double>(gpus) * out.seconds;
  }
  return out;
}

}  // namespace assay::spec::metrics
