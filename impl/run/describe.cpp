#include "impl/run/describe.hpp"

#include <ATen/Parallel.h>
#include <ATen/cuda/CUDAContext.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <thread>

#include "impl/data/batch.hpp"
#include "impl/metrics/ceiling.hpp"
#include "impl/run/host.hpp"
#include "impl/run/trainer.hpp"
#include "spec/config/keys.hpp"
#include "spec/flops/exact.hpp"
#include "spec/grammar/demo_grammar.hpp"
#include "spec/grammar/entropy.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/model/initial_loss.hpp"
#include "spec/model/inventory.hpp"

namespace assay::impl::run {

namespace {
std::vector<spec::record::Gpu> gpus_of(at::Device device) {
  if (!device.is_cuda()) return {};
  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(device.index());
  std::string uuid = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) uuid += "-";
    const auto byte = static_cast<unsigned char>(properties->uuid.bytes[i]);
    uuid += "0123456789abcdef"[byte >> 4];
    uuid += "0123456789abcdef"[byte & 15];
  }
  return {{.name = properties->name,
           .uuid = uuid,
           .memory_bytes = static_cast<std::int64_t>(properties->totalGlobalMem)}};
}

/// Dense peak of all ranks together for products in `dtype`; nothing on the CPU and for GPUs that
/// spec/hardware does not know. [flop/s]
std::optional<double> peak_flops(const std::vector<spec::record::Gpu>& gpus, Dtype dtype,
                                 const std::vector<spec::record::RankPlace>& ranks) {
  if (gpus.empty()) return {};
  std::optional<double> peak = metrics::peak_of(spec::find_gpu(gpus.front().name), dtype);
  if (peak) *peak *= static_cast<double>(ranks.size());
  return peak;
}

std::vector<spec::record::RankPlace> places(at::Device device, Communicator& communicator) {
  // "threads device host": a host name holds no blank.
  const std::string mine = std::to_string(at::get_num_threads()) + " " + device.str() + " " + host_name();
  std::vector<spec::record::RankPlace> places;
  for (const std::string& text : communicator.all_gather(mine)) {
    const std::size_t first = text.find(' '), second = text.find(' ', first + 1);
    places.push_back({.rank = static_cast<std::int64_t>(places.size()),
                      .host = text.substr(second + 1),
                      .device = text.substr(first + 1, second - first - 1),
                      .threads = std::stoll(text.substr(0, first))});
  }
  return places;
}

/// Tokens of a step beyond which its first loss is not expected: reading them all would hold the banner back.
constexpr std::int64_t most_counted_tokens = std::int64_t{1} << 24;

/// Expected loss of step 1, for the ids that it reads: every rank's, in global order.
std::optional<spec::record::ExpectedLoss> expected_first_loss(const RunFacts& facts) {
  if (facts.batch.tokens_per_step(facts.config.sequence_length) > Count(most_counted_tokens)) return {};
  const data::LoaderPlan plan = loader_plan(facts.config, facts.batch, 0, 0);
  const spec::data::SampleOrder order{
      .seed = plan.seed, .samples = facts.source.samples(), .sequences = plan.sequences};
  const auto samples = spec::data::step_samples(order, 0);
  const data::MicroBatch first = data::read_micro_batch(facts.source, samples, plan.end_of_document);
  if (first.valid_tokens == 0) return spec::record::ExpectedLoss{};
  const auto expected = spec::expected_initial_loss(
      facts.model,
      spec::token_statistics(first.inputs, first.targets, facts.config.sequence_length, data::ignore_index));
  return spec::record::ExpectedLoss{.mean = expected.mean, .standard_deviation = expected.standard_deviation};
}

spec::record::Data data_of(const RunFacts& facts) {
  spec::record::Data data{.source = facts.config.data_paths.empty() ? "grammar" : "files",
                          .description = facts.source.description(),
                          .files = facts.config.data_paths,
                          .floor = {}};
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
  start.gpus = gpus_of(facts.device);
  start.ranks = places(facts.device, communicator);
  start.model = facts.model.name;
  start.vocab = facts.model.vocab;
  start.parameters = spec::inventory(facts.model).parameter_count().to_int64();
  start.flops_per_token = spec::exact_flops(facts.model, facts.config.sequence_length).per_token().to_int64();
  start.peak_flops = peak_flops(start.gpus, facts.config.dtype, start.ranks);
  start.batch = {.sequences = facts.batch.sequences,
                 .micro = facts.batch.micro,
                 .accumulation = facts.batch.accumulation,
                 .ranks = facts.batch.ranks,
                 .sequence_length = facts.config.sequence_length,
                 .tokens = facts.batch.tokens_per_step(facts.config.sequence_length).to_int64()};
  start.steps = facts.config.steps;
  start.expected_first_loss = expected_first_loss(facts);
  start.planned_memory_bytes = facts.planned_memory;
  start.data = data_of(facts);
  start.settings = spec::settings(facts.config);
  return start;
}

}  // namespace assay::impl::run
