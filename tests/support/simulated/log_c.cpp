// The consoles of llm.c and of llm.q, trainers of C and CUDA: what they print, and where that was read, is in
// spec/audit/readers/formats.md.
#include "tests/support/simulated/log_text.hpp"

namespace assay::tests::log_text {

std::string llmc(const SimulatedRun& run, const Report& r) {
  const std::string rule = "+-----------------------+----------------------------------------------------+\n";
  const auto row = [](const char* name, const std::string& value) {
    return text("| %-21s | %-50s |\n", name, value.c_str());
  };
  std::string out = rule + row("Parameter", "Value") + rule;
  out += row("train data pattern", "dev/data/fineweb10B/fineweb_train_*.bin") +
         row("micro batch size B", whole(r.first_micro_of * of(r, Setting::micro))) +
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

}  // namespace assay::tests::log_text
