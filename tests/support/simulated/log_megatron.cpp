// Megatron-LM's console: its list of arguments, and its lines. What it prints and where that was read:
// spec/audit/readers/formats.md.
#include <ctime>

#include "tests/support/simulated/log_text.hpp"

namespace assay::tests::log_text {
namespace {

/// The time that a run that began on a day of 2024 has come to, cut off behind the second or millisecond.
std::string stamp(double elapsed, bool to_milliseconds) {
  const std::int64_t begin = 1712372376, milliseconds = std::llround(1e3 * elapsed);
  const std::time_t second = begin + milliseconds / 1000;
  std::tm time{};
  gmtime_r(&second, &time);
  char out[32] = {};
  std::strftime(out, sizeof out, "%Y-%m-%d %H:%M:%S", &time);
  return out + (to_milliseconds ? text(".%03d", static_cast<int>(milliseconds % 1000)) : std::string());
}

/// As Megatron prints it: a period, the first layer sparse, or a list of all layers.
std::string layers_with_experts(const spec::ModelSpec& model) {
  if (!model.experts || model.experts->first_dense == 0)
    return std::to_string(model.experts ? model.experts->every : 1);
  std::string out;
  for (std::int64_t l = 0; l < model.layers; ++l)
    out += std::string(out.empty() ? "[" : ", ") + (l < model.experts->first_dense ? "0" : "1");
  return out + "]";
}

}  // namespace

std::string megatron(const SimulatedRun& run, const Report& r) {
  std::string out = text(
      "using world size: %.0f, data-parallel size: %.0f, context-parallel size: 1, "
      "tensor-model-parallel size: %.0f, pipeline-model-parallel size: %.0f \n",
      of(r, Setting::gpus), of(r, Setting::data_parallel), of(r, Setting::tensor_parallel),
      of(r, Setting::pipeline_parallel));
  out += std::string("using torch.") + (run.fp16 ? "half" : "bfloat16") +
         " for parameters ...\n------------------------ arguments ------------------------\n";
  const auto argument = [&](const std::string& name, const std::string& value) {
    out += "  " + name + " " + std::string(name.size() < 48 ? 48 - name.size() : 1, '.') + " " + value + "\n";
  };
  argument("accumulate_allreduce_grads_in_fp32", "True");
  argument("bf16", run.fp16 ? "False" : "True");
  argument("context_parallel_size", "1");
  argument("data_parallel_size", whole(of(r, Setting::data_parallel)));
  argument("expert_model_parallel_size", "1");
  argument("ffn_hidden_size", whole(of(r, Setting::ffn)));
  argument("fp16", run.fp16 ? "True" : "False");
  argument("fp8", "None");
  argument("global_batch_size", whole(of(r, Setting::sequences)));
  argument("group_query_attention", run.model.kv_heads == run.model.heads ? "False" : "True");
  argument("hidden_size", whole(of(r, Setting::width)));
  argument("kv_channels", whole(of(r, Setting::head_dim)));
  argument("log_interval", std::to_string(run.log_every));
  argument("lr", shortest(of(r, Setting::learning_rate)));
  // What the trainer's counter grows by, and its schedule with it.
  const double sequences = static_cast<double>(run.micro * run.accounting.accumulation * run.data_parallel);
  const bool by_samples = run.schedule_by == SimulatedRun::ScheduleBy::samples,
             by_share = run.schedule_by == SimulatedRun::ScheduleBy::share_of_decay;
  const auto samples = [&](Setting setting) {
    return by_samples && r[setting] ? whole(*r[setting] * sequences) : std::string("None");
  };
  const auto iterations = [&](Setting setting) {
    return !by_samples && r[setting] ? whole(*r[setting]) : std::string("None");
  };
  argument("lr_decay_iters", iterations(Setting::decay_steps));
  argument("lr_decay_samples", samples(Setting::decay_steps));
  argument("lr_decay_style", run.schedule);
  argument("lr_warmup_fraction",
           by_share ? shortest(of(r, Setting::warmup_steps) / of(r, Setting::decay_steps)) : "None");
  argument("lr_warmup_init", shortest(run.first_rate));
  argument("lr_warmup_iters", by_samples || by_share ? "0" : whole(of(r, Setting::warmup_steps)));
  argument("lr_warmup_samples", by_samples ? samples(Setting::warmup_steps) : "0");
  argument("lr_wsd_decay_iters", iterations(Setting::wsd_decay_steps));
  argument("lr_wsd_decay_samples", samples(Setting::wsd_decay_steps));
  argument("lr_wsd_decay_style", r[Setting::wsd_decay_steps] ? run.wsd_decay : "exponential");
  argument("micro_batch_size", whole(of(r, Setting::micro)));
  argument("min_lr", shortest(of(r, Setting::learning_rate_min)));
  const auto& experts = run.model.experts;
  argument("moe_ffn_hidden_size", experts ? std::to_string(experts->width) : "None");
  argument("moe_layer_freq", layers_with_experts(run.model));
  argument("moe_router_topk", experts ? std::to_string(experts->active) : "2");
  argument("moe_shared_expert_intermediate_size",
           experts && experts->shared_width > 0 ? std::to_string(experts->shared_width) : "None");
  argument("multi_latent_attention", "False");
  argument("num_attention_heads", whole(of(r, Setting::heads)));
  argument("num_experts", experts ? std::to_string(experts->count) : "None");
  argument("num_layers", whole(of(r, Setting::layers)));
  argument("num_query_groups", whole(of(r, Setting::kv_heads)));
  argument("padded_vocab_size", whole(of(r, Setting::vocab)));
  argument("params_dtype", run.fp16 ? "torch.float16" : "torch.bfloat16");
  argument("pipeline_model_parallel_size", whole(of(r, Setting::pipeline_parallel)));
  argument("seq_length", whole(of(r, Setting::sequence_length)));
  argument("squared_relu", "False");
  argument("swiglu", run.model.mlp == spec::Mlp::swiglu ? "True" : "False");
  argument("tensor_model_parallel_size", whole(of(r, Setting::tensor_parallel)));
  argument("train_iters", iterations(Setting::max_steps));
  argument("train_samples", samples(Setting::max_steps));
  argument("world_size", whole(of(r, Setting::gpus)));
  out += "-------------------- end of arguments ---------------------\n";
  out += "INFO:megatron.core.num_microbatches_calculator:setting number of microbatches to constant " +
         whole(of(r, Setting::accumulation)) + "\n";
  for (const ReportedStep& s : r.steps) {
    out += " [" + stamp(of(s, Field::elapsed), run.fp16) + "]";
    out += text(
        " iteration %8.0f/%8.0f | consumed samples: %12.0f | elapsed time per iteration "
        "(ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E | global batch size: "
        "%5.0f |",
        of(s, Field::step), of(s, Field::planned_steps), of(s, Field::sequences_total),
        of(s, Field::seconds) * 1e3, of(s, Field::flops_rate) / 1e12, of(s, Field::learning_rate),
        of(s, Field::step_sequences));
    if (run.prints_sequences_rate)
      out += text(" samples per second: %.3f |", of(s, Field::sequences_per_second));
    if (s[Field::loss]) out += text(" lm loss: %.6E |", *s[Field::loss]);
    out += text(" loss scale: %.1f |", run.fp16 ? 65536.0 : 1.0);
    if (s[Field::gradient_norm]) out += text(" grad norm: %.3f |", *s[Field::gradient_norm]);
    out += text(" number of skipped iterations: %3.0f | number of nan iterations:   0 |\n",
                s[Field::skipped].value_or(0));
    if (&s == r.steps.data())
      out += text(
          "[Rank 0] (after %.0f iterations) memory (MB) | allocated: %.1f | max allocated: %.1f | reserved: "
          "%.1f | max reserved: %.1f\n",
          of(s, Field::step), of(s, Field::memory_allocated) / 0x1p20, of(s, Field::memory_peak) / 0x1p20,
          of(s, Field::memory_reserved) / 0x1p20, of(s, Field::memory_reserved) / 0x1p20);
  }
  return out;
}

}  // namespace assay::tests::log_text
