#include "impl/run/start/describe.hpp"

#include <ATen/Parallel.h>
#include <ATen/cuda/CUDAContext.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <sstream>
#include <thread>

#include "impl/data/batch.hpp"
#include "impl/machine/host.hpp"
#include "impl/machine/numa.hpp"
#include "impl/metrics/ceiling.hpp"
#include "impl/run/start/rank_device.hpp"
#include "impl/run/trainer.hpp"
#include "spec/config/keys.hpp"
#include "spec/flops/by_precision.hpp"
#include "spec/flops/exact.hpp"
#include "spec/grammar/demo_grammar.hpp"
#include "spec/grammar/entropy.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/memory/attention.hpp"
#include "spec/memory/expert_load.hpp"
#include "spec/model/initial_loss.hpp"
#include "spec/model/inventory.hpp"
#include "spec/parallel/gathered_codes.hpp"
#include "spec/step/paper/run.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::run {

namespace {
std::string no_blanks(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

/// Peaks of all ranks together: of the FLOPs that the model needs, and of those that run, where they are a
/// mix of precisions. Nothing on the CPU and for GPUs that spec/hardware does not know. [flop/s]
void add_peaks(spec::record::RunStart& start, const RunFacts& facts) {
  if (start.gpus.empty()) return;
  const spec::GpuMatch gpu = spec::find_gpu(start.gpus.front().name);
  const spec::memory::Setting& s = facts.memory.setting;
  const auto of_all = [&](std::optional<double> peak) {
    if (peak) *peak *= static_cast<double>(start.ranks.size());
    return peak;
  };
  start.peak_flops = of_all(metrics::peak_of(gpu, s.dtype, s.model, s.sequence_length, s.linear));
  if (s.linear.recipe == spec::quantise::Recipe::none) return;
  const spec::ExecutedFlops executed = spec::paper::trace(s).executed;
  Count fp8 = 0;
  for (const auto& of_component : executed.counts)
    for (const spec::ExecutedCount& count : of_component) fp8 += count.fp8;
  start.executed_peak_flops = of_all(spec::dense_peak(
      gpu, {{spec::Precision::fp8, fp8}, {metrics::precision_of(gpu, s.dtype), executed.executed() - fp8}}));
}

/// "-" for nothing: what ranks tell one another has no empty words.
std::string word(const std::string& text) { return text.empty() ? "-" : no_blanks(text); }
std::optional<std::string> text_of(const std::string& word) {
  return word == "-" ? std::nullopt : std::optional(word);
}

/// Where every rank runs, and every GPU that one of them uses.
void add_places(spec::record::RunStart& start, at::Device device, Communicator& communicator) {
  const NumaPlacement numa = numa_placement(device);
  // "threads device host processors memory-nodes gpu-node gpu-processors uuid bytes name": of these a GPU's
  // name alone may hold blanks.
  std::string mine = std::to_string(at::get_num_threads()) + " " + device.str() + " " + word(host_name()) +
                     " " + word(numa.processors) + " " + word(numa.memory_nodes) + " " +
                     (numa.gpu_node ? std::to_string(*numa.gpu_node) : "-") + " " + word(numa.gpu_processors);
  if (device.is_cuda()) {
    const cudaDeviceProp* properties = at::cuda::getDeviceProperties(device.index());
    mine += " " + gpu_uuid(device.index()) + " " + std::to_string(properties->totalGlobalMem) + " " +
            properties->name;
  }
  for (const std::string& text : communicator.all_gather(mine)) {
    std::istringstream words(text);
    spec::record::RankPlacement place{
        .rank = static_cast<std::int64_t>(start.ranks.size()), .host = {}, .device = {}, .threads = 0};
    std::string processors, memory_nodes, gpu_node, gpu_processors;
    words >> place.threads >> place.device >> place.host >> processors >> memory_nodes >> gpu_node >>
        gpu_processors;
    place.processors = text_of(processors);
    place.memory_nodes = text_of(memory_nodes);
    if (gpu_node != "-") place.gpu_node = std::stoll(gpu_node);
    place.gpu_processors = text_of(gpu_processors);
    if (spec::record::Gpu gpu; words >> gpu.uuid >> gpu.memory_bytes >> std::ws) {
      std::getline(words, gpu.name);
      place.gpu = gpu.uuid;
      start.gpus.push_back(gpu);
    }
    start.ranks.push_back(place);
  }
}

std::string reduced_in(const spec::RunConfig& config) {
  if (config.dtype == Dtype::bf16) return config.reduce == Dtype::bf16 ? "bf16" : "f32";
  return config.dtype == Dtype::f64 ? "f64" : "f32";
}

/// Tokens of a step beyond which its first loss is not expected: reading them all would hold the banner back.
constexpr std::int64_t most_counted_tokens = std::int64_t{1} << 24;

/// Expected loss of step 1, for the ids that it reads: every rank's, in global order.
std::optional<spec::record::ExpectedLoss> expected_first_loss(const RunFacts& facts) {
  // Nothing follows from the model of what weights know that were trained before.
  if (!facts.config.weights.empty() || !spec::without_initial_loss(facts.model).empty()) return {};
  const Count of_the_first = Count(spec::sequences_of(spec::global_batch(facts.config), 0));
  if (of_the_first * facts.config.sequence_length > Count(most_counted_tokens)) return {};
  const data::LoaderPlan plan = loader_plan(facts.config, facts.batch, 0, 0);
  const auto samples = spec::data::step_samples(data::sample_order(plan, facts.source), 0);
  const data::MicroBatch first = data::read_micro_batch(facts.source, samples, plan.end_of_document);
  if (first.valid_tokens == 0) return spec::record::ExpectedLoss{};
  const auto expected = spec::expected_initial_loss(
      facts.model,
      spec::token_statistics(first.inputs, first.targets, facts.config.sequence_length, data::ignore_index));
  return spec::record::ExpectedLoss{.mean = expected.mean, .standard_deviation = expected.standard_deviation};
}

/// How often the run reads what it reads more than once, each source of a mixture by its name.
std::string repeats(const RunFacts& facts) {
  const auto order = data::sample_order(loader_plan(facts.config, facts.batch, 0, 0), facts.source);
  const std::vector<std::int64_t> read = spec::data::read_before(order, facts.config.steps);
  std::string text;
  for (std::size_t k = 0; k < read.size(); ++k) {
    const std::int64_t samples = order.mixture ? order.of_sources[k].trained() : order.trained();
    if (read[k] <= samples) continue;
    const double times = static_cast<double>(read[k]) / static_cast<double>(samples);
    text += (text.empty() ? "; the run reads " : ", ") +
            (order.mixture ? facts.config.mixture[k].name : std::string("it")) + " " + spec::fixed(times, 2) +
            " times";
  }
  return text;
}

spec::record::Data data_of(const RunFacts& facts) {
  spec::record::Data data{.source = facts.config.data_paths.empty() ? "grammar" : "files",
                          .description = facts.source.description(),
                          .files = facts.config.data_paths,
                          .floor = {}};
  std::string sources;
  for (const spec::DataSource& source : facts.config.mixture)
    sources += (sources.empty() ? "; mixed " : ", ") + spec::to_text(source);
  data.description += sources + repeats(facts);
  if (facts.config.data_paths.empty())
    data.floor = spec::grammar::window_floor(spec::grammar::demo(), facts.config.sequence_length).mean;
  return data;
}

}  // namespace

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

spec::record::RunStart describe(const RunFacts& facts, Communicator& communicator) {
  spec::record::RunStart start;
  start.time = now_utc();
  start.version = ASSAY_VERSION;
  start.host = host_name();
  start.os = operating_system();
  start.cpu = cpu_model();
  start.cores = std::thread::hardware_concurrency();
  start.memory_bytes = host_memory();
  add_places(start, facts.device, communicator);
  start.model = facts.model.name;
  start.model_definition = spec::to_toml(facts.model);
  start.vocab = facts.model.vocab;
  start.parameters = spec::inventory(facts.model).parameter_count().to_int64();
  start.flops_per_token = spec::exact_flops(facts.model, facts.config.sequence_length).per_token().to_int64();
  add_peaks(start, facts);
  start.batch = {.sequences = facts.batch.sequences,
                 .micro = facts.batch.micro,
                 .accumulation = facts.batch.accumulation,
                 .ranks = facts.batch.ranks,
                 .sequence_length = facts.config.sequence_length,
                 .tokens = facts.batch.tokens_per_step(facts.config.sequence_length).to_int64()};
  const spec::Layout layout = layout_of(facts.config, communicator);
  start.layout = {.data = std::string(spec::to_string(layout.data)),
                  .shard_ranks = layout.shard_ranks,
                  .reduce = reduced_in(facts.config)};
  if (facts.config.tensor_ranks > 1) start.tensor_ranks = facts.config.tensor_ranks;
  if (facts.config.expert_ranks > 1) start.expert_ranks = facts.config.expert_ranks;
  start.steps = facts.config.steps;
  start.expected_first_loss = expected_first_loss(facts);
  start.planned_memory_bytes = facts.memory.peak.to_int64();
  const spec::memory::Setting& setting = facts.memory.setting;
  if (setting.expert_ranks > 1)
    start.planned_load = setting.load, start.most_load = spec::memory::most_load(setting);
  const bool codes =
      layout.shards_weights() &&
      !spec::gathered_codes(spec::inventory(setting.model), setting.linear, true).blocks.empty();
  if (const std::string linear = spec::describe(setting.linear, codes); !linear.empty())
    start.linear =
        linear + (setting.model.experts && !setting.linear.experts ? "; experts in the compute type" : "");
  start.attention = spec::to_string(spec::memory::attention_backend(facts.memory.setting));
  start.deterministic = facts.device.is_cpu() || facts.memory.setting.fixed_order;
  start.data = data_of(facts);
  start.settings = spec::settings(facts.config);
  return start;
}

}  // namespace assay::impl::run
