// The consoles of llm_TII, torchtitan and KempnerForge, and the choice of what writes a format's log: each
// trainer's own rounding, its own words; the others are in log_*.cpp. What they print and where
// that was read: spec/audit/readers/formats.md.
#include <array>
#include <ctime>

#include "tests/support/simulated/log_text.hpp"

namespace assay::tests {
namespace log_text {
namespace {

std::string llm_tii(const SimulatedRun& run, const Report& r) {
  const std::string rule = [] {
    std::string out;
    for (int i = 0; i < 80; ++i) out += "─";
    return out + "\n";
  }();
  const auto millions = [](double n) { return grouped(n) + text(" (%.2fM)", n / 1e6); };
  std::string out =
      "\n" + std::string(80, '=') + "\n🚀 TRAINING INITIALIZATION\n" + std::string(80, '=') + "\n";
  out += "\n📊 MODEL ARCHITECTURE:\n";
  out += "  Total parameters:      " + millions(of(r, Setting::parameters)) + "\n";
  out += "  Trainable parameters:  " + millions(of(r, Setting::parameters)) + "\n";
  out += "  Non-embedding params:  " + millions(of(r, Setting::parameters_nonembedding)) + "\n";
  out += "  Layers:                " + whole(of(r, Setting::layers)) + "\n";
  out += "  Hidden size:           " + whole(of(r, Setting::width)) + "\n";
  out += "  Attention heads:       " + whole(of(r, Setting::heads)) + "\n";
  out += "  Sequence length:       " + whole(of(r, Setting::sequence_length)) + "\n";
  out += "  Vocabulary size:       " + whole(of(r, Setting::vocab)) + "\n";
  out += "\n⚙️  TRAINING CONFIGURATION:\n";
  out += "  Batch size (micro):    " + whole(of(r, Setting::micro)) + "\n";
  out += "  Gradient accum steps:  " + whole(of(r, Setting::accumulation)) + "\n";
  out += "  Effective batch size:  " + whole(of(r, Setting::sequences)) + "\n";
  out += "  Tokens per iteration:  " + grouped(of(r, Setting::tokens_per_step)) + "\n";
  out += "  Max iterations:        " + grouped(of(r, Setting::max_steps)) + "\n";
  out += "  Learning rate:         " + shortest(of(r, Setting::learning_rate)) + "\n";
  out += "  Weight decay:          0.1\n  Gradient clip:         1.0\n";
  out += "  LR warmup iters:       " + whole(of(r, Setting::warmup_steps)) + "\n";
  out += "  LR decay iters:        " + whole(of(r, Setting::decay_steps)) + "\n";
  out += "\n🖥️  HARDWARE:\n  Device:                " + run.gpu + "\n";
  out += "  GPUs:                  " + whole(of(r, Setting::gpus)) + "\n";
  out += text("  Memory per GPU:        %.1f GB\n", of(r, Setting::gpu_memory) / 1e9);
  out += "  Precision:             bfloat16\n  TF32 enabled:          True\n  Compile:               True\n";
  out += "  Parallelism:           DDP\n";
  out += text("\n📈 THEORETICAL PERFORMANCE:\n  Hardware peak:         %.1f TFLOPS (%s bf16)\n",
              of(r, Setting::peak_flops) / 1e12, short_gpu(run.gpu).c_str());
  out += text("  FLOPs per token:       %.2f GFLOPs\n", of(r, Setting::flops_per_token) / 1e9);
  out += "  Attention/FFN ratio:   2.50\n";
  out += text("  Expected tokens/s @50%% MFU: %.0f\n",
              r[Setting::expected_tokens_per_second_half_mfu].value_or(of(r, Setting::peak_flops) * 0.5 /
                                                                       of(r, Setting::flops_per_token)));
  out += "\n" + std::string(80, '=') + "\n🏁 STARTING TRAINING\n" + std::string(80, '=') + "\n\n";
  for (const ReportedStep& s : r.steps) {
    if (!s[Field::mfu]) {
      out += text("Iter %.0f: loss %.4f, time %.0fms (warming up...)\n", of(s, Field::step),
                  of(s, Field::loss), of(s, Field::seconds) * 1e3);
      continue;
    }
    out += "\n" + rule +
           text("📍 Iter %6.0f │ Loss: %.4f │ Time: %.0fms │ LR: %.2e\n", of(s, Field::step),
                of(s, Field::loss), of(s, Field::seconds) * 1e3, of(s, Field::learning_rate)) +
           rule;
    out += text("⚡ MFU: %.2f%% │ Achieved: %.1f TF │ Peak: %.1f TF\n", of(s, Field::mfu) * 100,
                of(s, Field::flops_rate) / 1e12, of(s, Field::peak_flops) / 1e12);
    out += text("   Tokens/s: %.0f │ FLOPs/token: %.2f GF (6N+12LHQT: N=%.3fB)\n",
                of(s, Field::tokens_per_second), of(s, Field::flops_per_token) / 1e9,
                of(r, Setting::parameters) / 1e9);
    out += text("💾 Memory: %.2f GB alloc │ %.2f GB peak │ %.2f GB reserved\n",
                of(s, Field::memory_allocated) / 1e9, of(s, Field::memory_peak) / 1e9,
                of(s, Field::memory_reserved) / 1e9);
  }
  return out;
}

std::string torchtitan(const SimulatedRun& run, const Report& r) {
  std::int64_t milliseconds = 0;
  const auto line = [&](const std::string& said) {
    milliseconds += 37;
    const std::time_t second = 1767916800 + milliseconds / 1000;  // from 2026-01-09 on
    std::tm time{};
    gmtime_r(&second, &time);
    char stamp[32] = {};
    std::strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &time);
    return text("[titan] %s,%03d - root - INFO - ", stamp, static_cast<int>(milliseconds % 1000)) + said +
           "\n";
  };
  std::string out = line("Starting job: " + run.model.name + " training");
  out += line(text(
      "Building device mesh with parallelism: pp=%.0f, dp_replicate=1, dp_shard=%.0f, cp=1, tp=%.0f, ep=1",
      of(r, Setting::pipeline_parallel), of(r, Setting::data_parallel), of(r, Setting::tensor_parallel)));
  out += line(
      text("CUDA capacity: %s with %.2fGiB memory", run.gpu.c_str(), of(r, Setting::gpu_memory) / 0x1p30));
  out += line(
      text("Building %s with TransformerModelArgs(dim=%.0f, n_layers=%.0f, n_heads=%.0f, n_kv_heads=%.0f, "
           "vocab_size=%.0f, norm_eps=1e-05, rope_theta=500000, max_seq_len=%.0f)",
           run.model.name.c_str(), of(r, Setting::width), of(r, Setting::layers), of(r, Setting::heads),
           of(r, Setting::kv_heads), of(r, Setting::vocab), of(r, Setting::sequence_length)));
  out +=
      line("Model " + run.model.name + " size: " + grouped(of(r, Setting::parameters)) + " total parameters");
  out += line("Applied FSDP to the model");
  out += line(text("Peak FLOPS used for computing MFU: %.3e", of(r, Setting::peak_flops)));
  out += line("CUDA memory usage for model: 2.07GiB(2.62%)");
  out += line(
      text("Trainer is initialized with local batch size %.0f, global batch size %.0f, gradient accumulation "
           "steps %.0f, sequence length %.0f, total steps %.0f (warmup %.0f)",
           of(r, Setting::micro), of(r, Setting::sequences), of(r, Setting::accumulation),
           of(r, Setting::sequence_length), of(r, Setting::max_steps), of(r, Setting::warmup_steps)));
  out += line("Training starts at step 1");
  if (run.header_lost) out.clear();
  const std::int64_t start = milliseconds;
  for (const ReportedStep& s : r.steps) {
    milliseconds = start + std::llround(1e3 * of(s, Field::elapsed));
    out +=
        line(text("step: %2.0f  loss: %7.4f  grad_norm: %7.4f  memory: %5.2fGiB(%.2f%%)  ",
                  of(s, Field::step), of(s, Field::loss), of(s, Field::gradient_norm),
                  of(s, Field::memory_reserved) / 0x1p30, 100 * of(s, Field::memory_share)) +
             "tps: " + grouped(of(s, Field::tokens_per_second)) +
             text("  tflops: %.2f  mfu: %.2f%%", of(s, Field::flops_rate) / 1e12, of(s, Field::mfu) * 100));
  }
  return out + line("Training completed");
}

std::string kempnerforge(const SimulatedRun& run, const Report& r) {
  const auto line = [](const std::string& said) { return "[rank 0] INFO     " + said + "\n"; };
  std::string out =
      line(text("DeviceMesh: dims=['dp_shard', 'tp'], sizes=[%.0f, %.0f], world_size=%.0f",
                of(r, Setting::data_parallel), of(r, Setting::tensor_parallel), of(r, Setting::gpus)));
  out += line(text(
      "Training config: JobConfig(model=ModelConfig(dim=%.0f, n_layers=%.0f, n_heads=%.0f, n_kv_heads=%.0f, "
      "vocab_size=%.0f, ffn_hidden_dim=%.0f, max_seq_len=%.0f, tie_embeddings=%s, model_type='transformer'), "
      "train=TrainConfig(batch_size=%.0f, seq_len=%.0f, max_steps=%.0f, grad_accum_steps=%.0f, "
      "grad_clip_norm=1.0, mixed_precision='bf16'), optimizer=OptimizerConfig(name='adamw', lr=%s), "
      "scheduler=SchedulerConfig(name=<SchedulerType.%s: '%s'>, warmup_steps=%.0f, "
      "decay_steps=None, min_lr_ratio=%s))",
      of(r, Setting::width), of(r, Setting::layers), of(r, Setting::heads), of(r, Setting::kv_heads),
      of(r, Setting::vocab), of(r, Setting::ffn), of(r, Setting::sequence_length),
      run.model.tied_embeddings ? "True" : "False", r.first_micro_of * of(r, Setting::micro),
      of(r, Setting::sequence_length), of(r, Setting::max_steps), of(r, Setting::accumulation),
      shortest(of(r, Setting::learning_rate)).c_str(), run.schedule.c_str(), run.schedule.c_str(),
      of(r, Setting::warmup_steps),
      shortest(of(r, Setting::learning_rate_min) / of(r, Setting::learning_rate)).c_str()));
  out += line("Model: " + grouped(of(r, Setting::parameters)) + " parameters");
  out += line(text("Detected GPU: %s → %.1f bf16 TFLOPS", run.gpu.c_str(), run.accounting.peak / 1e12));
  out += line(text(
      "Starting training: step=0, max_steps=%.0f, batch_size=%.0f, grad_accum=%.0f, world_size=%.0f",
      of(r, Setting::max_steps), of(r, Setting::micro), of(r, Setting::accumulation), of(r, Setting::gpus)));
  for (const ReportedStep& s : r.steps)
    out += line(text("[step %.0f] loss=%.4f | lr=%.2e | grad_norm=%.3f | tok/s=", of(s, Field::step),
                     of(s, Field::loss), of(s, Field::learning_rate), of(s, Field::gradient_norm)) +
                grouped(of(s, Field::tokens_per_second)) +
                text(" | mfu=%.1f%% | mem=%.1f/%.0fGB | step_time=%.2fs", of(s, Field::mfu) * 100,
                     of(s, Field::memory_peak) / 0x1p30, of(r, Setting::gpu_memory) / 0x1p30,
                     of(s, Field::seconds)));
  return out + line(text("Training complete: %.0f steps, ", of(r, Setting::final_step)) +
                    grouped(of(r, Setting::total_tokens)) + " tokens");
}

}  // namespace
}  // namespace log_text

std::string render(const SimulatedRun& run, const Report& report) {
  using namespace log_text;  // NOLINT: of this function alone
  using Render = std::string (*)(const SimulatedRun&, const Report&);
  constexpr std::array<Render, log_formats> renders = {
      assay_record, llm_tii,    llm_tii_json, torchtitan,   kempnerforge, megatron,
      nanogpt,      llmc,       llmq,         llmq_json,    hugging_face, hugging_face_console,
      csv,          json_lines, nanotron,     build_nanogpt};
  return renders[static_cast<std::size_t>(run.format)](run, report);
}

ReadArguments read_arguments(const SimulatedRun& run) {
  ReadArguments out;
  if (run.format == LogFormat::csv || run.format == LogFormat::json_lines)
    out.map =
        "step=iter,loss=train_loss,learning_rate=lr,seconds=ms:ms,tokens_per_second=tps,mfu=mfu_percent:%,"
        "memory_peak=mem_gib:GiB";
  if (run.digits_of_time > 0)
    return {"step=iter,loss=train_loss,learning_rate=lr,seconds=seconds,elapsed=clock", ""};
  switch (run.format) {
    case LogFormat::csv:
    case LogFormat::json_lines:
    case LogFormat::hugging_face:
    case LogFormat::hugging_face_console:
    case LogFormat::nanogpt:
    case LogFormat::build_nanogpt:
      out.set =
          log_text::text("gpus=%lld,sequence_length=%lld,micro=%lld", static_cast<long long>(run.gpus),
                         static_cast<long long>(run.sequence_length), static_cast<long long>(run.micro));
      // build-nanogpt prints its passes, and no FLOPs.
      if (run.format != LogFormat::build_nanogpt)
        out.set += ",accumulation=" + std::to_string(run.accounting.accumulation_stated);
      if (run.format != LogFormat::nanogpt) out.set += ",gpu=" + run.gpu + ",model=" + run.model.name;
      break;
    default:
      break;
  }
  return out;
}

}  // namespace assay::tests
