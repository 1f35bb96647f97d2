#include "tests/support/simulated/run.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/simulated/draw.hpp"

namespace assay::tests {
namespace {

using simulated::a100;
using simulated::b200;
using simulated::Draw;
using simulated::Gpu;
using simulated::h100;
using simulated::h200;

constexpr std::string_view names[] = {"assay",        "llm_tii",    "llm_tii_json", "torchtitan",
                                      "kempnerforge", "megatron",   "nanogpt",      "llmc",
                                      "llmq",         "llmq_json",  "hugging_face", "hugging_face_console",
                                      "csv",          "json_lines", "nanotron",     "build_nanogpt"};
static_assert(std::size(names) == log_formats);

bool is_gpt2(LogFormat format) {
  return format == LogFormat::nanogpt || format == LogFormat::llmc || format == LogFormat::build_nanogpt;
}

void draw_model(Draw& draw, SimulatedRun& run) {
  spec::ModelSpec& m = run.model;
  run.gpt2 = is_gpt2(run.format);
  if (!run.gpt2) {
    // nanotron's heads are as wide as the model over their number: those of qwen3-0.6b are not.
    const char* const second = run.format == LogFormat::nanotron ? "llama2-7b" : "qwen3-0.6b";
    m = spec::find_model(draw.one_of<const char*>({"llama3-8b", second, "qwen3-1.8b", "llama-1.36b"}));
    run.parameters = spec::parameter_count(m).to_double();
    const double embedding = static_cast<double>(m.vocab) * static_cast<double>(m.width);
    run.parameters_nonembedding = run.parameters - embedding;
    return;
  }
  struct Size {
    const char* name;
    std::int64_t layers, width, heads;
  };
  const Size size = draw.one_of<Size>({{"gpt2", 12, 768, 12},
                                       {"gpt2-medium", 24, 1024, 16},
                                       {"gpt2-large", 36, 1280, 20},
                                       {"gpt2-xl", 48, 1600, 25}});
  m.name = size.name;
  m.vocab = run.format == LogFormat::llmc ? 50257 : 50304;
  m.width = size.width;
  m.layers = size.layers;
  m.heads = m.kv_heads = size.heads;
  m.head_dim = size.width / size.heads;
  m.ffn = 4 * size.width;
  m.context = 1024;
  m.tied_embeddings = true;
  const double V = 50304, D = static_cast<double>(m.width), L = static_cast<double>(m.layers);
  // nanoGPT by default has no biases and leaves positions out of the number it prints; the others have both.
  run.parameters = run.format == LogFormat::nanogpt ? V * D + L * (12 * D * D + 2 * D) + D
                                                    : V * D + 1024 * D + L * (12 * D * D + 13 * D) + 2 * D;
  run.parameters_nonembedding = run.parameters - V * D;
}

/// Megatron-LM trains GPTs and mixtures too, and says a schedule in three ways. Of a stream of its own.
void draw_megatron(std::uint64_t seed, SimulatedRun& run) {
  Draw draw(seed, 6000 + static_cast<std::uint32_t>(run.format));
  spec::ModelSpec& m = run.model;
  const std::int64_t kind = draw.between(0, 3);
  if (kind == 2) m.mlp = spec::Mlp::gelu;
  if (kind == 3) {
    spec::Experts experts;
    experts.count = draw.one_of<std::int64_t>({8, 16, 64});
    experts.active = draw.one_of<std::int64_t>({1, 2, 4});
    experts.width = draw.one_of<std::int64_t>({m.ffn, m.ffn / 4});
    experts.shared_width = draw.one_of<std::int64_t>({0, 0, m.ffn / 4});
    experts.first_dense = draw.between(0, 2);
    if (experts.first_dense == 0 && m.layers % 2 == 0) experts.every = draw.between(1, 2);
    m.experts = experts;
    if (draw.between(0, 3) == 0) m.mlp = spec::Mlp::gelu;
  }
  run.schedule_by = static_cast<SimulatedRun::ScheduleBy>(draw.between(0, 2));
  if (draw.between(0, 1) == 1) run.first_rate = 0.02 * draw.real(1e-4, 1e-3);
  run.prints_sequences_rate = draw.between(0, 1) == 1;
}

void draw_layout(Draw& draw, SimulatedRun& run) {
  run.gpus = std::int64_t{1} << draw.between(0, 6);
  const bool pipelined = run.format == LogFormat::megatron || run.format == LogFormat::nanotron,
             parallel =
                 pipelined || run.format == LogFormat::torchtitan || run.format == LogFormat::kempnerforge;
  if (parallel) run.tensor_parallel = std::min<std::int64_t>(run.gpus, std::int64_t{1} << draw.between(0, 3));
  if (pipelined)
    run.pipeline_parallel =
        std::min<std::int64_t>(run.gpus / run.tensor_parallel, std::int64_t{1} << draw.between(0, 2));
  if (run.format == LogFormat::llmq || run.format == LogFormat::llmq_json)
    run.gpus = std::min<std::int64_t>(run.gpus, 8);
  run.data_parallel = run.gpus / (run.tensor_parallel * run.pipeline_parallel);
  run.micro = draw.between(1, 32);
  run.accumulation = draw.between(1, 16);
  run.sequence_length = run.gpt2 ? draw.one_of<std::int64_t>({256, 512, 1024})
                                 : draw.one_of<std::int64_t>({512, 1024, 2048, 4096});
  run.sequence_length = std::min(run.sequence_length, run.model.context);
}

void draw_steps(Draw& draw, SimulatedRun& run, std::int64_t steps) {
  const double V = static_cast<double>(run.model.vocab);
  run.expected_first_loss = std::log(V) + draw.real(0.005, 0.05);
  run.expected_first_loss_deviation = draw.real(0.005, 0.02);
  run.loss_floor = draw.real(1.2, 2.5);
  // No truthful log prints more than its peak, whatever GPU's that is.
  const double drawn = draw.real(0.15, 0.58),
               mfu = std::min(drawn, 0.9 * run.accounting.peak / run.peak_dense),
               speed = mfu * run.peak_dense * static_cast<double>(run.gpus);
  const double seconds = run.tokens() * convention_flops(run.format, run) / speed;
  const double noise = draw.real(0.002, 0.02), first_is_slower = draw.real(1.5, 10);
  for (std::int64_t i = 0; i < steps; ++i) {
    SimulatedStep step;
    step.seconds =
        seconds * (1 + noise * std::clamp(draw.normal(), -3.0, 3.0)) * (i == 0 ? first_is_slower : 1);
    const double curve = std::pow(1 + static_cast<double>(i) / 20, -0.4);
    step.loss = run.loss_floor + (run.expected_first_loss - run.loss_floor) * curve *
                                     (i == 0 ? 1 : 1 + 0.005 * std::clamp(draw.normal(), -3.0, 3.0));
    step.gradient_norm = draw.real(0.2, 4);
    run.steps.push_back(step);
  }
  run.seconds_outside = draw.real(1, 30);
}

/// Of Hugging Face's Trainer: runs by steps, and runs of passes over data that is no whole number of batches.
/// Of a stream of its own.
void draw_passes(std::uint64_t seed, SimulatedRun& run) {
  Draw draw(seed, 8000 + static_cast<std::uint32_t>(run.format));
  run.by_steps = draw.between(0, 2) == 0;
  const std::int64_t passes = draw.between(1, 4), steps = std::ssize(run.steps);
  if (run.by_steps) return;
  if (steps % passes == 0) run.data_passes = passes;
  if (draw.between(0, 1) == 1)
    run.short_by = static_cast<double>(draw.between(0, static_cast<std::int64_t>(run.sequences()) - 1));
}

}  // namespace

std::string_view to_string(LogFormat format) { return names[static_cast<std::size_t>(format)]; }

double SimulatedRun::sequences() const {
  return static_cast<double>(micro) * static_cast<double>(accumulation) * static_cast<double>(data_parallel);
}
double SimulatedRun::tokens() const { return sequences() * static_cast<double>(sequence_length); }
double SimulatedRun::lacking(double done) const {
  return std::floor(done * static_cast<double>(data_passes) / static_cast<double>(steps.size())) * short_by;
}
std::int64_t SimulatedRun::first_number() const {
  switch (format) {
    case LogFormat::llm_tii:
    case LogFormat::llm_tii_json:
    case LogFormat::nanogpt:
    case LogFormat::llmq:
    case LogFormat::llmq_json:
    case LogFormat::build_nanogpt:
      return 0;
    default:
      return 1;
  }
}

SimulatedRun simulate(LogFormat format, std::uint64_t seed, std::int64_t wanted) {
  Draw draw(seed, format);
  SimulatedRun run;
  run.format = format;
  draw_model(draw, run);
  if (format == LogFormat::megatron) draw_megatron(seed, run);
  const Gpu gpu = format == LogFormat::llmc   ? a100
                  : format == LogFormat::llmq ? h100
                                              : draw.one_of<Gpu>({a100, h100, h200, b200});
  run.gpu = gpu.name;
  run.peak_dense = gpu.dense;
  run.peak_sparse = gpu.sparse;
  run.gpu_memory = gpu.memory;
  draw_layout(draw, run);
  const std::int64_t drawn = draw.between(20, 120), steps = wanted > 0 ? wanted : drawn;
  simulated::draw_schedule(draw, run, steps);
  const bool every = format == LogFormat::assay || format == LogFormat::llmc || format == LogFormat::llmq ||
                     format == LogFormat::llmq_json || format == LogFormat::csv ||
                     format == LogFormat::json_lines || format == LogFormat::build_nanogpt;
  run.log_every = every ? 1 : draw.one_of<std::int64_t>({1, 2, 5, 10});
  run.memory_allocated = std::round(run.gpu_memory * draw.real(0.05, 0.3));
  run.memory_peak = std::round(run.gpu_memory * draw.real(0.3, 0.8));
  run.memory_reserved = std::round(run.memory_peak * draw.real(1.01, 1.15));
  run.accounting = documented(run);
  draw_steps(draw, run, steps);
  simulated::draw_rarities(seed, run, steps);
  if (format == LogFormat::hugging_face || format == LogFormat::hugging_face_console) draw_passes(seed, run);
  return run;
}

void log_seldom(SimulatedRun& run, std::uint64_t seed) {
  Draw draw(seed, 7000 + static_cast<std::uint32_t>(run.format));
  run.log_every = draw.one_of<std::int64_t>({2, 5, 10, 20});
  run.digits_of_time = static_cast<int>(draw.between(1, 5));
  // Short steps too, of some milliseconds.
  const double mean = draw.one_of<double>({1, 0.1, 0.01}) * draw.real(0.5, 5),
               noise = draw.one_of<double>({0.0005, 0.002, 0.02}),
               logging = std::max(draw.real(0, 0.1) * mean, draw.real(0, 0.004));
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const bool logged = (static_cast<std::int64_t>(i) + 1) % run.log_every == 0;
    run.steps[i].seconds = mean * (1 + noise * std::clamp(draw.normal(), -3.0, 3.0)) + (logged ? logging : 0);
  }
}

}  // namespace assay::tests
