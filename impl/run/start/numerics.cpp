#include "impl/run/start/numerics.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>

#include "impl/comm/refusal.hpp"
#include "impl/machine/host.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/gemm/fp8_gemm.hpp"
#include "impl/ops/grouped_linear/grouped_linear.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/parallel/placement.hpp"
#include "spec/plan/plan.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/value.hpp"

namespace assay::impl::run {

using spec::AttentionBackend;
using spec::Determinism;

namespace {

/// How much more than planned a step may take (docs/measurements: measured within 2 % of the plan).
constexpr double plan_accuracy = 1.02;

spec::RunConfig settled_as(spec::RunConfig config, AttentionBackend backend, bool fixed_order) {
  config.attention = backend;
  config.deterministic = fixed_order ? Determinism::on : Determinism::off;
  return config;
}

std::string shown_bytes(const Count& bytes) {
  return spec::bytes(static_cast<std::int64_t>(std::min(bytes.to_double(), 9e18)));
}

/// One backend after the other is asked, in a fixed order first where that is wanted.
class Settling {
 public:
  Settling(const spec::RunConfig& asked, const GpuAnswers& gpu) : asked_(asked), gpu_(gpu) {}

  /// Why `backend` does not run; else `settled` is what does.
  std::string refusal(AttentionBackend backend) {
    if (asked_.deterministic == Determinism::on) return refusal(backend, true);
    if (asked_.deterministic == Determinism::automatic) {
      why_off_ = no_room(backend);
      if (why_off_.empty()) {
        const std::string reason = refusal(backend, true);
        if (reason.empty()) return "";
        why_off_ = to_string(backend) + " refuses attention in a fixed order (" + reason +
                   "); compute.deterministic=on takes a backend that has one";
      }
    }
    return refusal(backend, false);
  }
  const spec::RunConfig& settled() const { return settled_; }
  const std::string& why_off() const { return why_off_; }

 private:
  std::string refusal(AttentionBackend backend, bool fixed_order) {
    settled_ = settled_as(asked_, backend, fixed_order);
    return gpu_.peak(settled_) > Count(gpu_.memory) ? "" : gpu_.refusal(backend, fixed_order);
  }
  std::string no_room(AttentionBackend backend) const {
    const Count peak = gpu_.peak(settled_as(asked_, backend, true));
    if (peak.to_double() * plan_accuracy <= static_cast<double>(gpu_.free) ||
        peak == gpu_.peak(settled_as(asked_, backend, false)))
      return "";
    return "with attention in a fixed order a step takes " + shown_bytes(peak) + ", and " +
           spec::bytes(gpu_.free) + " of the fullest GPU are free; a smaller batch.micro makes room";
  }

  const spec::RunConfig& asked_;
  const GpuAnswers& gpu_;
  spec::RunConfig settled_;
  std::string why_off_;
};

/// compute.linear_weights=auto: with each update where `fits`, and where this rank holds the weights whole.
spec::RunConfig with_twins(spec::RunConfig config, const std::function<bool(const spec::RunConfig&)>& fits) {
  if (config.linear == spec::quantise::Recipe::none || config.linear_weights != spec::TwinsMade::automatic)
    return config;
  config.linear_weights = spec::TwinsMade::step;
  const bool gathered =
      config.data_parallel == spec::DataParallel::shard || config.data_parallel == spec::DataParallel::hybrid;
  if (gathered || !fits(config)) config.linear_weights = spec::TwinsMade::use;
  return config;
}

/// "compute.attention=\"flash\" compute.deterministic=\"on\""
std::string settled_text(const spec::RunConfig& config) {
  std::string text;
  for (const spec::Key& key : spec::keys())
    if (key.settled) text += (text.empty() ? "" : " ") + key.name + "=" + spec::toml_literal(key.get(config));
  return text;
}

}  // namespace

Numerics settle(const spec::RunConfig& asked, const spec::attention::Case& of, const GpuAnswers& gpu) {
  Settling settling(asked, gpu);
  const spec::attention::Choice choice =
      choose(of, [&](AttentionBackend backend) { return settling.refusal(backend); });
  Numerics out{settling.settled(), {}};
  if (!choice.reasons.empty()) {
    std::string text = describe(of) + ": " + to_string(choice.backend);
    for (const std::string& reason : choice.reasons) text += "; " + reason;
    out.notes.push_back({.step = {}, .code = "attention", .text = text});
  }
  out.config = with_twins(out.config, [&](const spec::RunConfig& config) {
    return gpu.peak(config).to_double() * plan_accuracy <= static_cast<double>(gpu.free);
  });
  if (!settling.why_off().empty())
    out.notes.push_back({.step = {},
                         .code = "deterministic",
                         .text = "compute.deterministic=auto is off, so that this run's "
                                 "last bits are its own: " +
                                 settling.why_off()});
  return out;
}

Numerics agree_on_numerics(const std::function<Numerics()>& settle, Communicator& communicator) {
  if (communicator.size() == 1) return settle();
  Numerics mine;
  refuse_together(communicator, [&] { mine = settle(); });
  const std::vector<std::string> all = communicator.all_gather(settled_text(mine.config));
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw AgreedError(ExitCode::usage,
                        "the GPUs of the ranks do not take the same attention: rank 0 comes to " + all[0] +
                            ", rank " + std::to_string(rank) + " to " + all[rank] +
                            "; give both settings by name, such as compute.attention=math, or "
                            "use GPUs of one model");
  return mine;
}

void refuse_fp8(const spec::RunConfig& config, const spec::ModelSpec& model, const spec::Batch& batch,
                at::Device device) {
  if (config.linear == spec::quantise::Recipe::none) return;
  spec::check(spec::linear_precision(config, model), model, batch.micro * config.sequence_length);
  if (const std::string why = fp8::refusal(config.linear, device); !why.empty())
    throw UserError(ExitCode::usage, why);
  if (device.is_cuda() && config.dtype != Dtype::bf16)
    throw UserError(ExitCode::usage,
                    std::string("compute.linear=") + to_string(config.linear) +
                        " on a GPU needs compute.dtype=bf16; leave compute.linear out, or train on the CPU "
                        "(compute.device=cpu), where FP8 is emulated beside every dtype");
  if (device.is_cuda() && config.linear_experts && !grouped_linear::cuda::has_kernels())
    throw UserError(
        ExitCode::usage,
        "compute.linear_experts=on needs a GPU of compute capability 9.0 and a build with CUTLASS "
        "(ci/setup fetches its headers); leave compute.linear_experts out");
}

Numerics settle_numerics(const spec::RunConfig& asked, const spec::ModelSpec& model, const spec::Batch& batch,
                         at::Device device, const spec::Layout& layout, Communicator& communicator) {
  const auto attention_case = [&](spec::memory::Machine machine) {
    return spec::memory::attention_case(spec::memory::setting_of(asked, model, batch, machine));
  };
  if (!device.is_cuda()) {
    refuse_together(communicator, [&] { choose(attention_case(spec::memory::Machine::cpu)); });
    Numerics out{with_twins(asked, [](const spec::RunConfig&) { return true; }), {}};
    if (asked.deterministic == Determinism::automatic) out.config.deterministic = Determinism::on;
    return out;
  }
  std::int64_t free = device_free_memory(device);
  for (const std::string& text : communicator.all_gather(std::to_string(free)))
    free = std::min<std::int64_t>(free, std::stoll(text));
  const spec::attention::Case of = attention_case(spec::memory::Machine::cuda);
  const auto peak = [&](const spec::RunConfig& config) {
    return memory_plan(config, model, batch, device, layout).peak;
  };
  const auto refusal = [&](AttentionBackend backend, bool fixed_order) {
    spec::attention::Case tried = of;
    tried.fixed_order = fixed_order;
    return attention::cuda::refusal(tried, backend, device);
  };
  return agree_on_numerics(
      [&] {
        try {
          return settle(asked, of,
                        {.memory = device_memory(device), .free = free, .peak = peak, .refusal = refusal});
        } catch (const c10::OutOfMemoryError& error) {
          throw out_of_memory(error, batch, device).value();
        }
      },
      communicator);
}

}  // namespace assay::impl::run
