// The console that each trainer writes of a simulated run: its own rounding, its own words. What they print
// and where that was read: spec/audit/readers/formats.md. One function per trainer is one list of formats.
#include <array>
#include <ctime>

#include "tests/support/simulated_log_text.hpp"

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
    return text("[titan] 2026-01-%02d %02d:%02d:%02d,%03d - root - INFO - ",
                static_cast<int>(9 + milliseconds / 86400000 % 20),
                static_cast<int>(milliseconds / 3600000 % 24), static_cast<int>(milliseconds / 60000 % 60),
                static_cast<int>(milliseconds / 1000 % 60), static_cast<int>(milliseconds % 1000)) +
           said + "\n";
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
      run.model.tied_embeddings ? "True" : "False", of(r, Setting::micro), of(r, Setting::sequence_length),
      of(r, Setting::max_steps), of(r, Setting::accumulation),
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

std::string nanogpt(const SimulatedRun& run, const Report& r) {
  const auto set = [](const char* name, const std::string& value) {
    return std::string("Overriding: ") + name + " = " + value + "\n";
  };
  const std::string options =
      set("batch_size", whole(of(r, Setting::micro))) +
      set("block_size", whole(of(r, Setting::sequence_length))) +
      set("gradient_accumulation_steps", whole(of(r, Setting::accumulation) * of(r, Setting::gpus))) +
      set("n_layer", whole(of(r, Setting::layers))) + set("n_head", whole(of(r, Setting::heads))) +
      set("n_embd", whole(of(r, Setting::width))) +
      set("learning_rate", shortest(of(r, Setting::learning_rate))) +
      set("min_lr", shortest(of(r, Setting::learning_rate_min))) +
      set("warmup_iters", whole(of(r, Setting::warmup_steps))) +
      set("lr_decay_iters", whole(of(r, Setting::decay_steps))) +
      set("max_iters", whole(of(r, Setting::max_steps))) +
      "tokens per iteration will be: " + grouped(of(r, Setting::tokens_per_step)) + "\n";
  const std::string size = text("number of parameters: %.2fM\n", of(r, Setting::parameters) / 1e6);
  std::string out = options + "Initializing a new model from scratch\n";
  out += "defaulting to vocab_size of GPT-2 to 50304 (50257 rounded up for efficiency)\n" + size;
  const double L = static_cast<double>(run.model.layers), D = static_cast<double>(run.model.width),
               vectors = (2 * L + 1) * D;  // no biases
  const double matrices = (50304 + static_cast<double>(run.sequence_length)) * D + 12 * L * D * D;
  out += "num decayed parameter tensors: " + whole(4 * L + 2) + ", with " +
         grouped(std::round(r.decayed_parameters_of * matrices)) + " parameters\n" +
         "num non-decayed parameter tensors: " + whole(2 * L + 1) + ", with " + grouped(vectors) +
         " parameters\nusing fused AdamW: True\n";
  out += "compiling the model... (takes a ~minute)\n";
  out += text("step 0: train loss %.4f, val loss %.4f\n", run.expected_first_loss, run.expected_first_loss);
  bool resumed = run.resumed_at == 0;
  for (const ReportedStep& s : r.steps) {
    if (!resumed && of(s, Field::step) >= static_cast<double>(run.resumed_at)) {
      out += options + "Resuming training from out\n" + size;
      resumed = true;
    }
    out += text("iter %.0f: loss %.4f, time %.2fms, mfu %.2f%%\n", of(s, Field::step), of(s, Field::loss),
                of(s, Field::seconds) * 1e3, s[Field::mfu] ? *s[Field::mfu] * 100 : -100.0);
  }
  return out;
}

std::string llmc(const SimulatedRun& run, const Report& r) {
  const std::string rule = "+-----------------------+----------------------------------------------------+\n";
  const auto row = [](const char* name, const std::string& value) {
    return text("| %-21s | %-50s |\n", name, value.c_str());
  };
  std::string out = rule + row("Parameter", "Value") + rule;
  out += row("train data pattern", "dev/data/fineweb10B/fineweb_train_*.bin") +
         row("micro batch size B", whole(of(r, Setting::micro))) +
         row("sequence length T", whole(of(r, Setting::sequence_length))) +
         row("total batch size", whole(of(r, Setting::tokens_per_step))) + row("LR scheduler", run.schedule) +
         row("learning rate (LR)", text("%e", of(r, Setting::learning_rate))) +
         row("warmup iterations", whole(of(r, Setting::warmup_steps))) +
         row("final LR fraction",
             text("%e", of(r, Setting::learning_rate_min) / of(r, Setting::learning_rate))) +
         row("max_steps", whole(of(r, Setting::max_steps))) + rule + row("device", run.gpu) +
         row("peak TFlops", text("%.1f", of(r, Setting::peak_flops) / 1e12)) + row("precision", "BF16") +
         rule;
  out += row("weight init method", "random") + row("max_sequence_length T", "1024") +
         row("vocab_size V", whole(of(r, Setting::vocab))) + row("padded_vocab_size Vp", "50304") +
         row("num_layers L", whole(of(r, Setting::layers))) +
         row("num_heads NH", whole(of(r, Setting::heads))) + row("channels C", whole(of(r, Setting::width))) +
         row("num_parameters", whole(of(r, Setting::parameters))) + rule +
         row("train_num_batches", whole(of(r, Setting::max_steps))) + row("val_num_batches", "20") + rule +
         row("num_processes", whole(of(r, Setting::gpus))) + row("zero_stage", "1") + rule;
  out += text("batch_size B=%.0f * seq_len T=%.0f * num_processes=%.0f and total_batch_size=%.0f\n",
              of(r, Setting::micro), of(r, Setting::sequence_length), of(r, Setting::gpus),
              of(r, Setting::tokens_per_step));
  out += "=> setting grad_accum_steps=" + whole(of(r, Setting::accumulation)) + "\n";
  out += text("val loss %f\n", run.expected_first_loss);
  for (const ReportedStep& s : r.steps)
    out += text(
        "step %4.0f/%.0f | loss %7.6f (%+.2fz)| norm %6.4f (%+.2fz)| lr %.2e | %.2f ms | %.1f%% bf16 MFU | "
        "%.0f "
        "tok/s\n",
        of(s, Field::step), of(r, Setting::max_steps), of(s, Field::loss), std::nan(""),
        of(s, Field::gradient_norm), 0.25, of(s, Field::learning_rate), of(s, Field::seconds) * 1e3,
        of(s, Field::mfu) * 100, of(s, Field::tokens_per_second));
  return out;
}

std::string llmq(const SimulatedRun& run, const Report& r) {
  std::string out = "[Options]\n";
  const auto option = [&](const char* name, const std::string& value) {
    out += text("  %-20s: %s\n", name, value.c_str());
  };
  option("batch-size", whole(of(r, Setting::micro)));
  option("final-lr-fraction", shortest(of(r, Setting::learning_rate_min) / of(r, Setting::learning_rate)));
  option("gpus", whole(of(r, Setting::gpus)));
  option("grad-accumulation", whole(of(r, Setting::accumulation)));
  option("learning-rate", shortest(of(r, Setting::learning_rate)));
  option("matmul-dtype", "bf16");
  option("model", run.model.name);
  option("seq-len", whole(of(r, Setting::sequence_length)));
  option("steps", whole(of(r, Setting::max_steps)));
  option("warmup", whole(of(r, Setting::warmup_steps)));
  out += "\n[System 0]\n  Device 0: " + run.gpu + "\n  CUDA version: driver 13000, runtime 13000\n";
  out += text("  Memory: 906 MiB / %.0f MiB\n\n", std::floor(of(r, Setting::gpu_memory) / 0x1p20));
  out += text("[Speed of Light]\n  Peak BF16: %8.1f TFLOP/s\n  SOL:       %8.0f tok/s\n\n",
              run.accounting.peak / 1e12,
              run.accounting.peak * static_cast<double>(run.gpus) / run.accounting.flops_per_token);
  for (const ReportedStep& s : r.steps) {
    const double ms = of(s, Field::seconds) * 1e3, tps = of(s, Field::tokens_per_second);
    // llm.q divides whole milliseconds and cuts off: its numbers are never above the true ones.
    const std::string time =
        ms >= 100000 ? text("%5.0f  s", std::floor(ms / 1000)) : text("%5.0f ms", std::floor(ms));
    const std::string rate =
        !(tps >= 100000) ? text("%5.0f", std::floor(tps)) : text("%4.0fk", std::floor(tps / 1000));
    out += text("[T] step %5.0f [%5.1f%%] | time: %s | norm %10f | loss %10f | tps %s | sol %.1f%%\n",
                of(s, Field::step), 12.5, time.c_str(), of(s, Field::gradient_norm), of(s, Field::loss),
                rate.c_str(), of(s, Field::mfu) * 100);
  }
  return out;
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
