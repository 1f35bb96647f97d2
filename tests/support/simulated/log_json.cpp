// The logs that are JSON or tables: each trainer's rounding and keys. Where they were read:
// spec/audit/readers/formats.md.
#include <algorithm>

#include "spec/record/write.hpp"
#include "tests/support/simulated/log_text.hpp"

namespace assay::tests::log_text {

namespace {

/// Of a run that came to its end.
std::string llm_tii_summary(const Report& r) {
  if (!r[Setting::average_seconds] || !r[Setting::average_mfu] || r.steps.empty()) return "";
  const ReportedStep& last = r.steps.back();
  return "  \"summary\": {\n    \"final_iter\": " + whole(of(last, Field::step)) +
         ",\n    \"final_train_loss\": " + shortest(of(last, Field::loss)) +
         ",\n    \"avg_time_ms\": " + shortest(*r[Setting::average_seconds] * 1e3) +
         ",\n    \"avg_mfu\": " + shortest(*r[Setting::average_mfu] * 100) + "\n  },\n";
}

}  // namespace

std::string llm_tii_json(const SimulatedRun& run, const Report& r) {
  const std::string config = text(
      "{\n    \"gradient_accumulation_steps\": %.0f,\n    \"batch_size\": %.0f,\n    \"block_size\": %.0f,\n"
      "    \"n_layer\": %.0f,\n    \"n_head\": %.0f,\n    \"n_embd\": %.0f,\n    \"learning_rate\": %s,\n"
      "    \"max_iters\": %.0f,\n    \"warmup_iters\": %.0f,\n    \"lr_decay_iters\": %.0f,\n    \"min_lr\": "
      "%s,\n"
      "    \"decay_lr\": true,\n    \"dtype\": \"bfloat16\"\n  }",
      of(r, Setting::accumulation) * of(r, Setting::gpus), of(r, Setting::micro),
      of(r, Setting::sequence_length), of(r, Setting::layers), of(r, Setting::heads), of(r, Setting::width),
      shortest(of(r, Setting::learning_rate)).c_str(), of(r, Setting::max_steps),
      of(r, Setting::warmup_steps), of(r, Setting::decay_steps),
      shortest(of(r, Setting::learning_rate_min)).c_str());
  std::string out = "{\n  \"run_name\": \"run_20251115_150458\",\n  \"config\": " + config + ",\n";
  out += text(
      "  \"startup_info\": {\n    \"model\": {\n      \"total_params\": %.0f,\n      \"trainable_params\": "
      "%.0f,\n"
      "      \"non_embedding_params\": %.0f\n    },\n",
      of(r, Setting::parameters), of(r, Setting::parameters), of(r, Setting::parameters_nonembedding));
  out += "    \"hardware\": {\n      \"gpu_name\": \"" + run.gpu + "\",\n" +
         text("      \"num_gpus\": %.0f,\n      \"gpu_memory_gb\": %s,\n", of(r, Setting::gpus),
              shortest(of(r, Setting::gpu_memory) / 1e9).c_str()) +
         "      \"precision\": \"bfloat16\",\n      \"parallelism\": \"DDP\"\n    }\n  },\n  "
         "\"training_iterations\": [";
  const char* comma = "";
  for (const ReportedStep& s : r.steps) {
    const auto number = [&](Field field, double unit = 1) { return shortest(of(s, field) * unit); };
    out += std::string(comma) + "\n    {\n      \"iter\": " + whole(of(s, Field::step)) +
           ",\n      \"loss\": " + number(Field::loss) +
           ",\n      \"time_ms\": " + number(Field::seconds, 1e3);
    comma = ",";
    if (!s[Field::mfu]) {
      out += ",\n      \"mfu\": -100.0\n    }";
      continue;
    }
    out += ",\n      \"mfu\": {\n        \"mfu\": " + number(Field::mfu) +
           ",\n        \"mfu_percent\": " + number(Field::mfu, 100) +
           ",\n        \"flops_achieved\": " + number(Field::flops_rate) +
           ",\n        \"flops_per_token\": " + number(Field::flops_per_token) +
           ",\n        \"ffn_flops_per_layer\": " + shortest(of(r, Setting::ffn_flops_per_layer)) +
           ",\n        \"tokens_per_sec\": " + number(Field::tokens_per_second) +
           ",\n        \"hardware_peak_flops\": " + number(Field::peak_flops) +
           ",\n        \"gpu_name\": \"" + short_gpu(run.gpu) + "\",\n        \"precision\": \"bf16\",\n" +
           "        \"num_gpus\": " + shortest(of(r, Setting::gpus)) + "\n      },\n      \"memory\": {\n" +
           "        \"allocated_gb\": " + number(Field::memory_allocated, 1e-9) +
           ",\n        \"reserved_gb\": " + number(Field::memory_reserved, 1e-9) +
           ",\n        \"max_allocated_gb\": " + number(Field::memory_peak, 1e-9) +
           ",\n        \"max_reserved_gb\": " + number(Field::memory_reserved, 1e-9) + "\n      }\n    }";
  }
  out += "\n  ],\n  \"eval_steps\": [],\n" + llm_tii_summary(r) +
         "  \"metadata\": {\n    \"world_size\": " + whole(of(r, Setting::gpus)) +
         ",\n    \"dtype\": \"bfloat16\"\n  }\n}";
  return out;
}

std::string llmq_json(const SimulatedRun& run, const Report& r) {
  const std::string time = "\"time\": \"2026-02-18 10:11:12.123456789\"";
  std::string out = "[\n";
  const auto option = [&](const char* name, const std::string& value) {
    out += "  {\"log\": \"option\", " + time + ", \"step\": 0, \"name\": \"" + name +
           "\", \"value\": " + value + "},\n";
  };
  option("batch-size", whole(of(r, Setting::micro)));
  option("final-lr-fraction", shortest(of(r, Setting::learning_rate_min) / of(r, Setting::learning_rate)));
  option("gpus", whole(of(r, Setting::gpus)));
  option("grad-accumulation", whole(of(r, Setting::accumulation)));
  option("learning-rate", shortest(of(r, Setting::learning_rate)));
  option("matmul-dtype", "\"bf16\"");
  option("model", "\"" + run.model.name + "\"");
  option("seq-len", whole(of(r, Setting::sequence_length)));
  option("steps", whole(of(r, Setting::max_steps)));
  option("warmup", whole(of(r, Setting::warmup_steps)));
  for (int rank = 0; rank < static_cast<int>(of(r, Setting::gpus)); ++rank)
    out +=
        "  {\"log\": \"gpu-model\", " + time +
        text(", \"rank\": %d, \"step\": 0, \"id\": %d, \"name\": \"%s\", \"memory\": %.0f, \"free\": 1},\n",
             rank, rank, run.gpu.c_str(), of(r, Setting::gpu_memory));
  const char* comma = "";
  for (const ReportedStep& s : r.steps) {
    out += comma;
    out += "  {\"log\": \"step\", " + time +
           text(
               ", \"step\": %.0f, \"epoch\": 0.125, \"step_tokens\": %.0f, \"duration_ms\": %.0f, \"norm\": "
               "%s, \"loss\": %s, "
               "\"lr\": %s}",
               of(s, Field::step), of(s, Field::tokens), std::floor(of(s, Field::seconds) * 1e3),
               shortest(of(s, Field::gradient_norm)).c_str(), shortest(of(s, Field::loss)).c_str(),
               shortest(of(s, Field::learning_rate)).c_str());
    comma = ",\n";
  }
  return out + "\n]\n";
}

namespace {

/// To so many significant digits, none behind the point cut off: "0.4", "12".
std::string to_digits(double number, int digits) {
  const int before = static_cast<int>(std::floor(std::log10(number))) + 1;
  return text("%.*f", std::max(0, digits - before), number);
}

/// A table of few lines: spec/audit/unlogged_steps.hpp.
std::string csv_with_clock(const SimulatedRun& run, const Report& r) {
  std::string out = "iter,train_loss,lr,seconds,clock\n";
  for (const ReportedStep& s : r.steps)
    out +=
        text("%.0f,%.4f,%.3e,%s,%.3f\n", of(s, Field::step), of(s, Field::loss), of(s, Field::learning_rate),
             to_digits(of(s, Field::seconds), run.digits_of_time).c_str(), of(s, Field::elapsed));
  return out;
}

}  // namespace

std::string csv(const SimulatedRun& run, const Report& r) {
  if (run.digits_of_time > 0) return csv_with_clock(run, r);
  std::string out = "iter,train_loss,lr,ms,tps,mfu_percent,mem_gib\n";
  for (const ReportedStep& s : r.steps)
    out += text("%.0f,%.4f,%.3e,%.1f,%.0f,%.2f,%.2f\n", of(s, Field::step), of(s, Field::loss),
                of(s, Field::learning_rate), of(s, Field::seconds) * 1e3, of(s, Field::tokens_per_second),
                of(s, Field::mfu) * 100, of(s, Field::memory_peak) / 0x1p30);
  return out;
}

std::string json_lines(const SimulatedRun&, const Report& r) {
  std::string out;
  for (const ReportedStep& s : r.steps)
    out += "{\"iter\": " + whole(of(s, Field::step)) + ", \"train_loss\": " + shortest(of(s, Field::loss)) +
           ", \"lr\": " + shortest(of(s, Field::learning_rate)) +
           ", \"ms\": " + shortest(of(s, Field::seconds) * 1e3) +
           ", \"tps\": " + shortest(of(s, Field::tokens_per_second)) +
           ", \"mfu_percent\": " + shortest(of(s, Field::mfu) * 100) +
           ", \"mem_gib\": " + shortest(of(s, Field::memory_peak) / 0x1p30) + "}\n";
  return out;
}

namespace {

std::string memory_event(const ReportedMemory& reported) {
  const auto bytes = [](double number) { return std::llround(number); };
  spec::record::Memory memory;
  memory.step = 1;
  memory.device = "cuda:0";
  memory.capacity_bytes = bytes(reported.capacity);
  memory.planned_bytes = bytes(reported.planned);
  memory.state_bytes = bytes(reported.state);
  memory.moment = "the head";
  memory.measured_bytes = bytes(reported.measured);
  memory.tensors = {{"weights", "state", 1, bytes(reported.state)},
                    {"x", "activations", 4, bytes(reported.parts) - bytes(reported.state)}};
  return spec::record::to_json(memory);
}

}  // namespace

std::string assay_record(const SimulatedRun& run, const Report& r) {
  const auto integer = [](double number) { return std::isfinite(number) ? std::llround(number) : 0LL; };
  spec::record::RunStart start;
  start.time = "2026-11-21T09:54:12Z";
  start.version = "0.1.0";
  start.host = "host", start.os = "Linux 6.1.0", start.cpu = "AMD EPYC";
  start.cores = 64;
  start.memory_bytes = std::int64_t{1} << 40;
  for (std::int64_t rank = 0; rank < integer(of(r, Setting::gpus)); ++rank) {
    start.gpus.push_back({run.gpu, "GPU-" + std::to_string(rank), integer(of(r, Setting::gpu_memory))});
    start.ranks.push_back({rank, "host", "cuda:" + std::to_string(rank % 8), 8});
  }
  start.model = run.model.name;
  start.vocab = integer(of(r, Setting::vocab));
  start.parameters = integer(of(r, Setting::parameters));
  start.flops_per_token = integer(of(r, Setting::flops_per_token));
  start.peak_flops = of(r, Setting::peak_flops);
  start.batch = {.sequences = integer(of(r, Setting::sequences)),
                 .micro = integer(of(r, Setting::micro)),
                 .accumulation = integer(of(r, Setting::accumulation)),
                 .ranks = integer(of(r, Setting::data_parallel)),
                 .sequence_length = integer(of(r, Setting::sequence_length)),
                 .tokens = integer(of(r, Setting::tokens_per_step))};
  start.steps = integer(of(r, Setting::max_steps));
  start.planned_memory_bytes = integer(r.memory.planned_at_start);
  start.expected_first_loss = {of(r, Setting::expected_first_loss),
                               of(r, Setting::expected_first_loss_deviation)};
  start.data = {
      .source = "grammar", .description = "drawn", .files = {}, .floor = of(r, Setting::loss_floor)};
  start.settings = {
      {"compute.dtype", std::string("bf16")},
      {"optimizer.learning_rate", of(r, Setting::learning_rate)},
      {"schedule.kind", run.schedule},
      {"schedule.warmup_steps", static_cast<std::int64_t>(of(r, Setting::warmup_steps))},
      {"schedule.final_ratio", of(r, Setting::learning_rate_min) / of(r, Setting::learning_rate)}};
  std::string out = spec::record::to_json(start) + "\n";
  for (const ReportedStep& s : r.steps) {
    spec::record::Step step;
    step.step = integer(of(s, Field::step));
    step.loss = of(s, Field::loss);
    step.gradient_norm = of(s, Field::gradient_norm);
    step.clip_coefficient = 1;
    step.learning_rate = of(s, Field::learning_rate);
    step.tokens = integer(of(s, Field::tokens));
    step.valid_tokens = integer(of(s, Field::valid_tokens));
    step.seconds = of(s, Field::seconds);
    step.tokens_per_second = of(s, Field::tokens_per_second);
    step.mfu = s[Field::mfu];
    step.hfu = s[Field::hfu];
    // The parts are timed one by one: what is printed of a whole step does not reach them.
    step.phases.forward = of(s, Field::phases);
    step.sample_hash = "00ff";
    step.device_peak_bytes = integer(of(s, Field::memory_peak));
    out += spec::record::to_json(step) + "\n";
    if (&s == r.steps.data() && step.step == 1) out += memory_event(r.memory) + "\n";
  }
  spec::record::RunEnd end;
  end.steps = integer(of(r, Setting::final_step));
  end.tokens = integer(of(r, Setting::total_tokens));
  end.seconds = of(r, Setting::total_seconds);
  end.tokens_per_second = of(r, Setting::average_tokens_per_second);
  if (r[Setting::final_loss]) {
    end.final_loss = r[Setting::final_loss];
    end.final_steps = integer(of(r, Setting::final_loss_steps));
    end.floor = r[Setting::loss_floor];
    end.gap_closed = r[Setting::gap_closed];
  }
  return out + spec::record::to_json(end) + "\n";
}

}  // namespace assay::tests::log_text
