#include "impl/run/start/start.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "impl/checkpoint/disk_space.hpp"
#include "impl/checkpoint/export.hpp"
#include "impl/checkpoint/import_weights.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/data/open_source.hpp"
#include "impl/run/start/check_data.hpp"
#include "impl/run/start/describe.hpp"
#include "impl/run/start/host_ranks.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "impl/run/start/run_folder.hpp"
#include "impl/run/start/start_agreement.hpp"
#include "impl/run/trainer.hpp"
#include "impl/run/validation.hpp"
#include "impl/step/step_graph.hpp"
#include "spec/config/check.hpp"
#include "spec/config/division.hpp"
#include "spec/config/keys.hpp"
#include "spec/model/differences.hpp"
#include "spec/model/hugging_face.hpp"

namespace assay::impl::run {

namespace {

/// The model as the settings name it.
spec::HuggingFaceModel named_model(const spec::RunConfig& config) {
  spec::HuggingFaceModel found = spec::find_model_to_train(config.model, config.sequence_length);
  if (config.init_std > 0) found.model.init_std = config.init_std;
  return found;
}

/// Whether something is found under the name; a folder of weights may be left without any.
bool is_there(const std::string& model) {
  std::error_code unknown;
  const std::filesystem::path path(model);
  return std::ranges::count(spec::model_names(), model) > 0 ||
         std::filesystem::exists(std::filesystem::is_directory(path, unknown) ? path / "config.json" : path,
                                 unknown);
}

/// A run that goes on has the model of its checkpoint, whatever its file holds by now, if it is still there:
/// `notes` says what differs. A model that is asked for, or typed anew, is read.
spec::HuggingFaceModel model_of(const Request& request, const std::optional<ResumePoint>& from,
                                std::vector<std::string>& notes) {
  const auto then = from ? from->model() : std::nullopt;
  const std::string& name = request.config.model;
  const bool the_same =
      then && spec::with_whole_paths(request.config).model == spec::with_whole_paths(from->settings()).model;
  const bool there = is_there(name);
  if (!the_same || request.asks("model.name") || (there && !request.goes_on))
    return named_model(request.config);
  if (there) try {
      for (const spec::ModelDifference& each : spec::differences(named_model(request.config).model, *then))
        notes.push_back(difference_text(each, name) +
                        "; the run goes on with what it was (`assay resume --change model.name=" + name +
                        "` takes the file's)");
    } catch (const std::exception& error) {
      notes.push_back("model " + name + " cannot be read any more: " + error.what() +
                      "; the run goes on with what it was");
    }
  return {.model = *then, .without_effect = {}};
}

/// The tokenizer of the run's text, where `assay generate` finds it. No step needs it: one that cannot be
/// read is none.
std::optional<checkpoint::DataFile> tokenizer_file(const spec::RunConfig& config) try {
  for (const std::string& folder : checkpoint::tokenizer_folders(config)) {
    const std::filesystem::path path = std::filesystem::path(folder) / "tokenizer.json";
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(path, unknown)) continue;
    checkpoint::DataFile file = checkpoint::data_file(spec::whole_path(path.string()));
    file.of = checkpoint::DataFile::tokenizer;
    return file;
  }
  return {};
} catch (const UserError&) {
  return {};
}

/// What the run reads, by content.
std::vector<checkpoint::DataFile> files_of(const Start& start) {
  const spec::RunConfig& config = start.config;
  std::vector<checkpoint::DataFile> files;
  const auto add = [&](std::vector<checkpoint::DataFile> tokens, const std::vector<std::string>& paths,
                       const char* of) {
    for (std::filesystem::path path : paths)
      for (const char* ends : {".idx", ".ends"})
        if (std::error_code none;
            config.document_ends && std::filesystem::exists(path.replace_extension(ends), none))
          tokens.push_back(checkpoint::data_file(path.string()));
    for (checkpoint::DataFile& file : tokens) {
      file.of = of;
      if (!paths.empty()) file.path = spec::whole_path(file.path);  // the grammar has none
      files.push_back(std::move(file));
    }
  };
  add(start.source->files(), config.data_paths, checkpoint::DataFile::training);
  if (start.validation) add(start.validation->files(), config.eval_paths, checkpoint::DataFile::validation);
  if (auto tokenizer = tokenizer_file(config)) files.push_back(std::move(*tokenizer));
  std::error_code unknown;
  if (!config.weights.empty() && std::filesystem::is_directory(config.weights, unknown)) try {
      files.push_back(checkpoint::weights_file(spec::whole_path(config.weights)));
    } catch (const UserError&) {
      if (!start.resume) throw;  // a run that goes on does not need them
    }
  return files;
}

}  // namespace

Start prepare(const Request& request, const Rank& rank) {
  Communicator& ranks = rank.communicator;
  Start start;
  const spec::RunConfig& config = start.config;
  const spec::RunRanks run_ranks{.all = ranks.size(), .per_host = host_ranks(ranks).each};
  Facts facts;
  refuse_together(ranks, [&] {
    start.request = request;
    start.resume = resume_point(request);
    if (start.resume) spec::follow(start.request.config, start.resume->settings());
    const bool settles = start.request.config.dtype_of_machine;
    start.request.config = spec::with_dtype_of(start.request.config, rank.choice.device.is_cuda());
    start.config = start.request.config;
    if (settles) spec::check(config);  // what is read of bf16 alone
    spec::HuggingFaceModel found = model_of(start.request, start.resume, start.notes);
    spec::check(config, found.model);
    if (!config.weights.empty() && !start.resume) checkpoint::check_weights(config.weights, found.model);
    start.model = std::move(found.model);
    start.without_effect = std::move(found.without_effect);
    const spec::Division division = spec::divide(config, start.model, run_ranks);
    start.batch = division.batch, start.layout = division.layout;
    start.source = data::open_source(config, start.model);
    if (spec::validates(config))
      start.validation = std::make_shared<data::ValidationSet>(config, start.model, start.source);
    start.identity = {.model = start.model, .files = files_of(start)};
    if (start.resume) {
      compare(start.request, start.identity, *start.resume);
      for (std::string& line : other_files(start.request, start.identity, *start.resume))
        start.notes.push_back(std::move(line));
    }
    if (start.resume && start.resume->changes.batch) {
      start.config.ramp = start.resume->changes.batch->ramp;
      if (start.config.tokens > 0) start.config.steps = spec::steps_of_tokens(start.config);
      start.batch = spec::divide(config, start.model, run_ranks).batch;
    }
    spec::check_stages(start.config, start.model, run_ranks);
    if (ranks.size() > 1)
      facts = start_facts(config, start.identity, *start.source, start.resume ? start.resume->path : "");
  });
  if (start.validation && ranks.size() > 1)
    facts.emplace_back("the validation set", start.validation->description());
  // Before any collective whose calls depend on a setting: ranks with other settings would answer another
  // one.
  require_agreement(facts, ranks);
  // Rank 0 writes the record; the disk of another host may hold none.
  if (start.resume)
    start.resume->end_is_done = ranks.all_gather(start.resume->end_is_done ? "done" : "").front() == "done";
  check_token_ids(config, start.model, ranks);
  if (start.validation)
    start.validation_hash = scan_validation(*start.validation, config.tensor_ranks, ranks);

  start.device = rank.choice;
  const at::Device device = start.device.device;
  refuse_together(ranks, [&] {
    reason_against_graph(config.cuda_graph, device, ranks.size());  // refuses it on the CPU
    refuse_fp8(config, start.model, start.batch, device);
  });

  start.numerics = settle_numerics(config, start.model, start.batch, device, start.layout, ranks);
  start.memory = machine_memory(device, ranks);
  start.room = room_of_every_rank(config, start.batch, device, start.memory, ranks);
  start.plan = memory_plan(start.numerics.config, start.model, start.batch, device, start.layout, start.room);
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
