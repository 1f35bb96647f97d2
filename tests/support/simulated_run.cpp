#include "tests/support/simulated_run.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <numeric>

#include "spec/flops/exact.hpp"
#include "spec/random/philox.hpp"

namespace assay::tests {
namespace {

constexpr std::string_view names[] = {"assay",        "llm_tii",    "llm_tii_json", "torchtitan",
                                      "kempnerforge", "megatron",   "nanogpt",      "llmc",
                                      "llmq",         "llmq_json",  "hugging_face", "hugging_face_console",
                                      "csv",          "json_lines", "nanotron",     "build_nanogpt"};
static_assert(std::size(names) == log_formats);

/// Draws of one run, in the order in which they are asked for.
class Draw {
 public:
  Draw(std::uint64_t seed, LogFormat format) : Draw(seed, 1000 + static_cast<std::uint32_t>(format)) {}
  Draw(std::uint64_t seed, std::uint32_t index) : stream_(seed, spec::random::Site::test, index) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(stream_.below(at_++, static_cast<std::uint64_t>(high - low + 1)));
  }
  double real(double low, double high) { return low + (high - low) * stream_.uniform(at_++); }
  double normal() { return stream_.normal(at_++); }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<std::int64_t>(choices.size()) - 1)];
  }

 private:
  spec::random::Stream stream_;
  std::uint64_t at_ = 0;
};

struct Gpu {
  const char* name;
  double dense, sparse, memory;
};
/// Peaks of the vendors' data sheets, bf16; memory as the driver reports it.
constexpr Gpu a100 = {"NVIDIA A100-SXM4-80GB", 312e12, 624e12, 85'097'971'712.0};
constexpr Gpu h100 = {"NVIDIA H100 80GB HBM3", 989e12, 1979e12, 85'520'809'984.0};
constexpr Gpu h200 = {"NVIDIA H200", 989e12, 1979e12, 150'754'820'096.0};
constexpr Gpu b200 = {"NVIDIA B200", 2250e12, 4500e12, 191'505'498'112.0};

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

void draw_schedule(Draw& draw, SimulatedRun& run, std::int64_t steps) {
  run.schedule = "cosine";
  if (run.format == LogFormat::hugging_face || run.format == LogFormat::hugging_face_console)
    run.schedule = draw.one_of<const char*>({"cosine", "linear"});
  run.highest_rate = draw.one_of<double>({1e-4, 3e-4, 6e-4, 1.5e-3});
  run.lowest_rate = run.highest_rate * draw.one_of<double>({0.1, 0.05});
  if (run.format == LogFormat::hugging_face || run.format == LogFormat::hugging_face_console)
    run.lowest_rate = 0;
  run.warmup_steps = draw.between(2, steps / 3);
  run.decay_steps = steps;
}

/// Half of the runs whose trainer has other schedules run one of those. Of a stream of their own, as what
/// loss scaling skips, so that all other numbers of a seed stay what they are.
void draw_rarities(std::uint64_t seed, SimulatedRun& run, std::int64_t steps) {
  Draw draw(seed, 5000 + static_cast<std::uint32_t>(run.format));
  const bool other = draw.between(0, 1) == 1;
  run.wsd_decay = draw.one_of<const char*>({"linear", "cosine", "exponential", "minus_sqrt"});
  run.wsd_decay_steps = draw.between(2, std::max<std::int64_t>(2, steps / 4));
  const auto choose = [&](std::initializer_list<const char*> kinds) {
    const char* const kind = draw.one_of<const char*>(kinds);
    if (other) run.schedule = kind;
  };
  switch (run.format) {
    case LogFormat::megatron:
      choose({"linear", "constant", "inverse-square-root", "WSD", "WSD"});
      break;
    case LogFormat::llmc:
      run.wsd_decay = "minus_sqrt";
      run.wsd_decay_steps = steps - static_cast<std::int64_t>(0.8 * static_cast<double>(steps));
      choose({"linear", "constant", "wsd"});
      break;
    case LogFormat::assay:
      choose({"linear"});
      break;
    case LogFormat::nanotron:
      run.wsd_decay = "linear";
      choose({"linear", "wsd"});
      run.batch_in_tokens = draw.between(0, 1) == 1;
      break;
    case LogFormat::kempnerforge:
      choose({"linear", "constant"});
      break;
    default:
      break;
  }
  const bool scaled = run.format == LogFormat::megatron || run.format == LogFormat::hugging_face ||
                      run.format == LogFormat::hugging_face_console;
  run.fp16 = scaled && draw.between(0, 2) == 0;
  // The scale starts too high, and is raised again now and then.
  const std::int64_t at_first = draw.between(1, 3);
  std::int64_t left_out = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    SimulatedStep& step = run.steps[static_cast<std::size_t>(i)];
    step.skipped = run.fp16 && (i < at_first || draw.between(0, 39) == 0);
    left_out += step.skipped;
    // Both trainers' schedules wait.
    step.learning_rate = scheduled_rate(run, i - left_out);
    if (step.skipped) step.gradient_norm = draw.one_of<double>({std::nan(""), HUGE_VAL});
  }
}

}  // namespace

bool is_wsd(const SimulatedRun& run) { return run.schedule == "wsd" || run.schedule == "WSD"; }

double scheduled_rate(const SimulatedRun& run, std::int64_t i) {
  const double peak = run.highest_rate, low = run.lowest_rate;
  double u = static_cast<double>(i + 1), rise = static_cast<double>(run.warmup_steps);
  const double end = static_cast<double>(run.decay_steps);
  double length = end - rise;
  switch (run.format) {
    case LogFormat::nanogpt:
    case LogFormat::llm_tii:
    case LogFormat::llm_tii_json:
      if (i < run.warmup_steps) return peak * u / (rise + 1);
      u = static_cast<double>(i);
      break;
    case LogFormat::llmc:
    case LogFormat::build_nanogpt:
      if (i < run.warmup_steps) return peak * u / rise;
      u = static_cast<double>(i);
      break;
    case LogFormat::llmq:
    case LogFormat::llmq_json:
      if (i < run.warmup_steps) return peak * static_cast<double>(i) / rise;
      u = static_cast<double>(i);
      length = end;
      break;
    default:
      if (u <= rise) return run.first_rate + (peak - run.first_rate) * u / rise;
  }
  const double x = std::min(1.0, (u - rise) / length);
  if (run.schedule == "constant") return peak;
  if (run.schedule == "linear") return peak + (low - peak) * x;
  if (run.schedule == "inverse-square-root") {
    // Of samples: no less than one of them.
    const double one = run.schedule_by == SimulatedRun::ScheduleBy::samples ? 1 / run.sequences() : 1.0;
    return std::max(low, peak * std::sqrt(std::max(one, rise) / std::max(one, u)));
  }
  if (is_wsd(run)) {
    const double decay = static_cast<double>(run.wsd_decay_steps),
                 y = std::clamp((u - (end - decay)) / decay, 0.0, 1.0);
    const double left = run.wsd_decay == "linear"        ? 1 - y
                        : run.wsd_decay == "cosine"      ? (1 + std::cos(std::numbers::pi * y)) / 2
                        : run.wsd_decay == "exponential" ? 2 * std::pow(0.5, y) - 1
                                                         : 1 - std::sqrt(y);
    return low + left * (peak - low);
  }
  return low + (peak - low) * 0.5 * (1 + std::cos(std::numbers::pi * x));
}

namespace {

void draw_steps(Draw& draw, SimulatedRun& run, std::int64_t steps) {
  const double V = static_cast<double>(run.model.vocab);
  run.expected_first_loss = std::log(V) + draw.real(0.005, 0.05);
  run.expected_first_loss_deviation = draw.real(0.005, 0.02);
  run.loss_floor = draw.real(1.2, 2.5);
  const double mfu = draw.real(0.15, 0.58), speed = mfu * run.peak_dense * static_cast<double>(run.gpus);
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

double convention_flops(LogFormat format, const SimulatedRun& run) {
  const spec::ModelSpec& m = run.model;
  const double N = run.parameters, L = static_cast<double>(m.layers), D = static_cast<double>(m.width),
               A = static_cast<double>(m.heads) * static_cast<double>(m.head_dim),
               T = static_cast<double>(run.sequence_length), embedding = static_cast<double>(m.vocab) * D;
  switch (format) {
    case LogFormat::llm_tii:
    case LogFormat::llm_tii_json:
    case LogFormat::nanogpt:
    case LogFormat::build_nanogpt:  // prints none
      return 6 * N + 12 * L * A * T;
    case LogFormat::torchtitan:
      // A tied table is the head's, and counts.
      return 6 * (m.tied_embeddings ? N : N - embedding) + 12 * L * A * T;
    case LogFormat::kempnerforge:
      return 6 * spec::matmul_parameters(m).to_double() + 12 * L * D * T;
    case LogFormat::llmc:
      return 6 * N + 6 * L * D * T;
    case LogFormat::nanotron: {
      const double K = static_cast<double>(m.kv_heads) * D / static_cast<double>(m.heads);
      return 6 * (L * D * (2 * D + 2 * K + 3 * static_cast<double>(m.ffn)) + embedding) + 12 * L * D * T;
    }
    case LogFormat::megatron: {
      // A token's matrices: gate and up, or up alone, and down; of experts, those that it visits.
      const double K = static_cast<double>(m.kv_heads) * static_cast<double>(m.head_dim),
                   matrices = m.mlp == spec::Mlp::gelu ? 2 : 3, F = static_cast<double>(m.ffn);
      double sparse = 0, width = 0;
      if (m.experts) {
        for (std::int64_t l = m.experts->first_dense; l < m.layers; l += m.experts->every) ++sparse;
        width = static_cast<double>(m.experts->active) * static_cast<double>(m.experts->width) +
                static_cast<double>(m.experts->shared_width);
      }
      const double mlps = matrices * D * ((L - sparse) * F + sparse * width);
      return 6 * (L * D * (2 * A + 2 * K) + mlps) + 6 * embedding + 6 * L * A * T;
    }
    case LogFormat::llmq:
    case LogFormat::llmq_json: {
      // Matrices of the blocks and the head; attention over T / 2 keys on average.
      const double K = static_cast<double>(m.kv_heads) * static_cast<double>(m.head_dim);
      const double blocks = L * (D * (2 * A + 2 * K) + 3 * D * static_cast<double>(m.ffn));
      return 6 * blocks + 6 * embedding + 6 * L * A * T;
    }
    default:
      return spec::exact_flops_per_token(m, run.sequence_length).to_double();
  }
}

Accounting documented(const SimulatedRun& run) {
  Accounting a;
  a.peak = run.peak_dense;
  a.flops_per_token = convention_flops(run.format, run);
  a.accumulation = a.accumulation_stated = run.accumulation;
  switch (run.format) {
    case LogFormat::torchtitan:
    case LogFormat::megatron:
      a.rate = a.numerator = a.peak_of = Whose::gpu;
      break;
    case LogFormat::nanogpt:  // one rank against one A100, whatever the GPU
      a.peak = a100.dense;
      a.numerator = a.peak_of = Whose::gpu;
      break;
    case LogFormat::llmc:
    case LogFormat::nanotron:
      a.numerator = a.peak_of = Whose::gpu;
      break;
    default:
      break;
  }
  return a;
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
  draw_schedule(draw, run, steps);
  const bool every = format == LogFormat::assay || format == LogFormat::llmc || format == LogFormat::llmq ||
                     format == LogFormat::llmq_json || format == LogFormat::csv ||
                     format == LogFormat::json_lines || format == LogFormat::build_nanogpt;
  run.log_every = every ? 1 : draw.one_of<std::int64_t>({1, 2, 5, 10});
  run.memory_allocated = std::round(run.gpu_memory * draw.real(0.05, 0.3));
  run.memory_peak = std::round(run.gpu_memory * draw.real(0.3, 0.8));
  run.memory_reserved = std::round(run.memory_peak * draw.real(1.01, 1.15));
  run.accounting = documented(run);
  draw_steps(draw, run, steps);
  draw_rarities(seed, run, steps);
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
