#include "impl/run/start/start.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <system_error>

#include "impl/checkpoint/disk_space.hpp"
#include "impl/checkpoint/import_weights.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/data/open_source.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/run/start/check_data.hpp"
#include "impl/run/start/describe.hpp"
#include "impl/run/start/host_ranks.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "impl/run/start/run_folder.hpp"
#include "impl/run/start/start_agreement.hpp"
#include "impl/run/trainer.hpp"
#include "impl/run/validation.hpp"
#include "impl/step/step_graph.hpp"
#include "spec/batch/nearest_batch.hpp"
#include "spec/config/check.hpp"
#include "spec/config/division.hpp"
#include "spec/config/keys.hpp"
#include "spec/model/hugging_face.hpp"

namespace assay::impl::run {

namespace {

/// A run that started from weights whose config.json was its model goes on without that folder.
bool goes_on_without_folder(const spec::RunConfig& config, const std::string& resume_from) {
  return !config.weights.empty() && config.model == config.weights && !resume_from.empty();
}

spec::HuggingFaceModel model_of(const spec::RunConfig& config) {
  const std::string resume_from = config.weights.empty() ? "" : resume_path(config);
  spec::HuggingFaceModel found;
  if (goes_on_without_folder(config, resume_from))
    found.model = spec::model_from_toml(checkpoint::model_of(resume_from), resume_from);
  else
    found = spec::find_model_to_train(config.model, config.sequence_length);
  if (config.init_std > 0) found.model.init_std = config.init_std;
  spec::check(config, found.model);
  if (!config.weights.empty() && resume_from.empty()) checkpoint::check_weights(config.weights, found.model);
  return found;
}

std::vector<checkpoint::DataFile> files_of(const spec::RunConfig& config) {
  std::vector<checkpoint::DataFile> files;
  for (const std::string& path : config.data_paths) files.push_back(checkpoint::data_file(path));
  if (!config.document_ends) return files;
  for (std::filesystem::path path : config.data_paths)
    for (const char* ends : {".idx", ".ends"})
      if (std::error_code none; std::filesystem::exists(path.replace_extension(ends), none))
        files.push_back(checkpoint::data_file(path.string()));
  return files;
}

/// Every stage of the ramp is of whole micro-batches. Errors: UserError (usage) with the nearest values that
/// are; spec::batch_of's.
void check_stages(const spec::RunConfig& config, const spec::Batch& batch) {
  const std::int64_t at_once = batch.micro * batch.ranks;
  std::int64_t common = config.sequences;  // a divisor of it divides every stage
  for (const spec::RampStage& stage : config.ramp) common = std::gcd(common, stage.sequences);
  for (const spec::RampStage& stage : config.ramp) {
    if (stage.sequences % at_once != 0)
      throw UserError(
          ExitCode::usage,
          "batch.ramp has a stage of " + std::to_string(stage.sequences) +
              " sequences, which is not a multiple of batch.micro = " + std::to_string(batch.micro) +
              " times " + std::to_string(batch.ranks) + " data-parallel rank" +
              (batch.ranks == 1 ? "" : "s") + " = " + std::to_string(at_once) + ": set it to " +
              spec::nearest_multiples(stage.sequences, at_once) +
              (common % batch.ranks == 0
                   ? ", or batch.micro to " + spec::nearest_divisors(common / batch.ranks, batch.micro)
                   : ""));
    spec::batch_of(stage.sequences, batch.micro, batch.ranks);
  }
}

}  // namespace

Start prepare(const Request& request, const Rank& rank) {
  Communicator& ranks = rank.communicator;
  Start start;

  start.request = request;
  start.request.config = spec::with_dtype_of(request.config, rank.choice.device.is_cuda());
  start.config = start.request.config;
  const spec::RunConfig& config = start.config;
  const std::int64_t per_host = host_ranks(ranks).each;
  Facts facts;
  refuse_together(ranks, [&] {
    if (request.config.dtype_of_machine) spec::check(config);  // what is read of bf16 alone
    spec::HuggingFaceModel found = model_of(config);
    start.model = std::move(found.model);
    start.without_effect = std::move(found.without_effect);
    const spec::Division division =
        spec::divide(config, start.model, {.all = ranks.size(), .per_host = per_host});
    start.batch = division.batch, start.layout = division.layout;
    start.source = data::open_source(config, start.model);
    if (spec::validates(config))
      start.validation = std::make_shared<data::ValidationSet>(config, start.model, start.source);
    start.data_files = files_of(config);
    start.resume = resume_point(start.request, start.data_files);
    if (start.resume && start.resume->changes.batch) {
      start.config.ramp = start.resume->changes.batch->ramp;
      if (start.config.tokens > 0) start.config.steps = spec::steps_of_tokens(start.config);
      start.batch = spec::divide(config, start.model, {.all = ranks.size(), .per_host = per_host}).batch;
    }
    check_stages(start.config, start.batch);
    if (ranks.size() > 1) facts = start_facts(config, *start.source, start.resume ? start.resume->path : "");
  });
  if (start.validation && ranks.size() > 1)
    facts.emplace_back("the validation set", start.validation->description());
  // Before any collective whose calls depend on a setting: ranks with other settings would answer another
  // one.
  require_agreement(facts, ranks);
  check_token_ids(config, start.model, ranks);
  if (start.validation)
    start.validation_hash = scan_validation(*start.validation, config.tensor_ranks, ranks);

  start.device = rank.choice;
  const at::Device device = start.device.device;
  std::optional<attention::Forced> asked;
  refuse_together(ranks, [&] {
    asked.emplace(config.attention, device);                        // refuses a GPU's backend on the CPU
    reason_against_graph(config.cuda_graph, device, ranks.size());  // refuses it on the CPU
    refuse_fp8(config, start.model, start.batch, device);
  });

  start.numerics = settle_numerics(config, start.model, start.batch, device, start.layout, ranks);
  start.plan = memory_plan(start.numerics.config, start.model, start.batch, device, start.layout);
  start.memory = machine_memory(device, ranks);
  refuse_together(
      ranks, [&] { refuse_what_cannot_fit(start.plan, config, start.model, start.batch, start.memory); });
  return start;
}

spec::record::RunStart open_record(Start& start, const Rank& rank) {
  spec::record::RunStart event =
      describe({start.config, start.model, start.batch, start.device.device, *start.source, start.plan},
               rank.communicator);
  if (start.validation) event.validation = start.validation->description();
  start.config.directory = run_directory(start.config, rank.communicator);
  event.settings = spec::settings(start.config);
  return event;
}

std::optional<std::string> disk_warning(const Start& start, const Rank& rank) {
  std::optional<std::string> warning;
  refuse_together(rank.communicator, [&] {
    if (rank.communicator.rank() == 0)
      warning = check_disk(start.config, start.model, start.resume ? start.resume->state.step : 0);
  });
  return warning;
}

}  // namespace assay::impl::run
