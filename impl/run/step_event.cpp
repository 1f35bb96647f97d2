#include "impl/run/step_event.hpp"

#include <optional>

#include "impl/machine/host.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::run {

namespace {

/// `flops` of all ranks in `seconds` as a share of `peak`, all ranks' too; nothing when the peak is unknown,
/// or when no machine could have done it.
std::optional<double> share_of_peak(double flops, double seconds, const std::optional<double>& peak) {
  if (!peak || !(seconds > 0) || flops > *peak * seconds) return {};
  return flops / seconds / *peak;
}

}  // namespace

spec::record::Step event_of(const StepReport& report, const spec::record::RunStart& start,
                            at::Device device) {
  const double seconds = report.seconds + report.waited_for_save;
  const auto phase = [&](Phase p) { return report.phases[static_cast<std::size_t>(p)]; };
  spec::record::Step event{
      .step = report.step + 1,
      .loss = report.result.cross_entropy,
      .z_loss = report.result.z_loss,
      .gradient_norm = report.result.gradient_norm,
      .clip_coefficient = report.result.clip_coefficient,
      .learning_rate = report.learning_rate,
      .tokens = report.tokens,
      .valid_tokens = report.valid_tokens,
      .seconds = seconds,
      .tokens_per_second = static_cast<double>(report.tokens) / seconds,
      .mfu = share_of_peak(static_cast<double>(report.tokens) * static_cast<double>(start.flops_per_token) -
                               report.dropped_flops,
                           seconds, start.peak_flops),
      .hfu = share_of_peak(report.executed_flops, seconds,
                           start.executed_peak_flops ? start.executed_peak_flops : start.peak_flops),
      .executed_flops = report.executed_flops,
      .phases = {.data_wait = phase(Phase::data_wait),
                 .forward = phase(Phase::forward),
                 .backward = phase(Phase::backward),
                 .reduce = phase(Phase::reduce),
                 .clip = phase(Phase::clip),
                 .update = phase(Phase::update),
                 .checkpoint = report.waited_for_save,
                 .other = phase(Phase::other)},
      .sample_hash = spec::hexadecimal(report.sample_hash),
      .weights_hash = report.weights_hash.empty() ? std::nullopt : std::optional(report.weights_hash),
      .resident_bytes = resident_bytes(),
      .device_peak_bytes = device_peak_bytes(device)};
  if (const auto& routing = report.result.routing) {
    event.balance_loss = routing->balance;
    event.router_z_loss = routing->router_z;
    event.load_balance_worst = routing->worst_load;
    event.load_balance_mean = routing->mean_load;
    event.router_entropy = routing->entropy;
    event.dropped_choices = routing->dropped;
  }
  if (!report.sources.empty()) event.sources.emplace();
  for (std::size_t k = 0; k < report.sources.size(); ++k) {
    const StepReport::Source& source = report.sources[k];
    spec::record::StepSource& said = event.sources->emplace_back();
    said = {.name = source.name,
            .tokens = source.tokens,
            .valid_tokens = source.valid_tokens,
            .loss = {},
            .epochs = source.epochs};
    if (source.valid_tokens > 0)
      said.loss = report.result.source_losses[k] / static_cast<double>(source.valid_tokens);
  }
  return event;
}

spec::record::SkippedStep skipped_event_of(const StepReport& report, std::int64_t skipped,
                                           std::int64_t allowed) {
  return {.step = report.step + 1,
          .reason = report.not_finite,
          .loss = report.result.cross_entropy,
          .gradient_norm = report.result.gradient_norm,
          .learning_rate = report.learning_rate,
          .tokens = report.tokens,
          .seconds = report.seconds + report.waited_for_save,
          .sample_hash = spec::hexadecimal(report.sample_hash),
          .skipped = skipped,
          .allowed = allowed};
}

}  // namespace assay::impl::run
