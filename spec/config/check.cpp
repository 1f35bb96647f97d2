#include "spec/config/check.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/model/trainable.hpp"
#include "spec/text/faults.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/ranks.hpp"

namespace assay::spec {
namespace {

std::vector<std::int64_t> weights_of(const RunConfig& config) {
  std::vector<std::int64_t> weights;
  for (const DataSource& source : config.mixture) weights.push_back(source.weight);
  return weights;
}

void check_mixture(const RunConfig& config, Faults& faults) {
  if (config.mixture.empty()) return;
  std::int64_t files = 0;
  for (const DataSource& source : config.mixture) {
    files += source.files;
    // config_c39
    faults.require(std::ranges::count(config.mixture, source.name, &DataSource::name) == 1, "config_c39",
                   [&] {
                     return "two sources of data.mixture are called " + quote(source.name) +
                            ": give each a name of its own, or one several files";
                   });
  }
  // config_c40
  faults.require(files == std::ssize(config.data_paths), "config_c40", [&] {
    return "data.mixture is of " + std::to_string(files) + (files == 1 ? " file" : " files") +
           ", data.paths names " + std::to_string(config.data_paths.size()) +
           ": say of each source of several files how many they are, NAME:WEIGHT:FILES";
  });
  faults.gather([&] { data::Mixture::in_lowest_terms(weights_of(config)); });
}

void check_validation(const RunConfig& config, Faults& faults) {
  // config_c37
  faults.require(config.eval_share == 0 || config.eval_paths.empty(), "config_c37", [&] {
    return "eval.paths and eval.share = " + shown(config.eval_share) +
           " are two validation sets: leave one of them out";
  });
  // config_c38
  faults.require(!validates(config) || config.eval_every > 0 || config.eval_at_end, "config_c38", [] {
    return std::string(
        "a validation set is given and never evaluated: set eval.every, or eval.at_end to \"on\", or leave "
        "out eval.paths and eval.share");
  });
}

void check_schedule(const RunConfig& config, Faults& faults) {
  const bool wsd = config.schedule == ScheduleKind::wsd;
  // config_c4 (each term is at most 1e12 by config_c1, so the sum cannot overflow)
  faults.require(config.warmup_steps + (wsd ? config.decay_steps : 0) <= config.steps, "config_c4", [&] {
    return "schedule.warmup_steps = " + std::to_string(config.warmup_steps) +
           (wsd ? " and schedule.decay_steps = " + std::to_string(config.decay_steps) : std::string()) +
           " do not fit in train.steps = " + std::to_string(config.steps) +
           ": lower them, or leave them out to have them follow from train.steps";
  });
}

void check_tokens(const RunConfig& config, Faults& faults) {
  // config_c46
  faults.require(config.tokens == 0 || config.steps == steps_of_tokens(config), "config_c46", [&] {
    return "train.tokens = " + std::to_string(config.tokens) + " are " +
           std::to_string(steps_of_tokens(config)) +
           " steps of this batch, and train.steps = " + std::to_string(config.steps) +
           ": leave one of the two out";
  });
}

void check_resume(const RunConfig& config, Faults& faults) {
  // config_c5
  faults.require((config.resume == Resume::path) != config.resume_path.empty(), "config_c5", [&] {
    return "resume_path is " + shown(config.resume_path) + "; it must be given exactly when resume is a path";
  });
}

/// Gathered weights are there for a block at a time.
void check_linear(const RunConfig& config, Faults& faults) {
  const bool gathered =
      config.data_parallel == DataParallel::shard || config.data_parallel == DataParallel::hybrid;
  // config_c11
  faults.require(config.linear_weights != TwinsMade::step || !gathered, "config_c11", [&] {
    return "compute.linear_weights = \"step\" keeps twins of all weights on each rank, and parallel.data = "
           "\"" +
           std::string(to_string(config.data_parallel)) +
           "\" holds a shard of them: leave it out, or set it to \"use\"";
  });
}

void check_split(const RunConfig& config, Faults& faults) {
  // config_c12
  faults.require(config.tensor_ranks == 1 || config.linear == quantise::Recipe::none, "config_c12", [&] {
    return "parallel.tensor = " + std::to_string(config.tensor_ranks) + " with compute.linear = \"" +
           to_string(config.linear) +
           "\": scales of tensors that are split over ranks are not agreed on yet; leave one of the two out";
  });
}

void check_capacity(const RunConfig& config, Faults& faults) {
  // config_c44
  faults.require(config.capacity == 0 || config.linear == quantise::Recipe::none, "config_c44", [&] {
    return "experts.capacity = " + shown(find_key("experts.capacity")->get(config)) +
           " with compute.linear = \"" + to_string(config.linear) +
           "\": what is dropped is of another precision than the rest, which MFU and HFU do not tell apart "
           "yet; leave one of the two out";
  });
  // config_c28
  faults.require(config.capacity == 0 || config.capacity >= 1, "config_c28", [&] {
    return "experts.capacity = " + shown(find_key("experts.capacity")->get(config)) +
           " is below 1: even loads would drop tokens; set it to 1 or above, or to 0 to drop none";
  });
}

/// At its default, or a value that switches off what is not there.
bool asks_for_nothing(const Key& key, const RunConfig& config) {
  static const RunConfig defaults;
  const Value value = key.get(config);
  return value == key.get(defaults) || value == key.neutral;
}

void check_unread(const RunConfig& config, Faults& faults) {
  for (const Key& key : keys()) {
    // config_c6
    faults.require(key.is_read(config) || asks_for_nothing(key, config), "config_c6", [&] {
      return key.name + " = " + shown(key.get(config)) + " has no effect here: it is read only when " +
             key.condition + "; leave it out";
    });
  }
}

/// Number of the decoder block, from 1, or nothing.
std::optional<std::int64_t> block_of(const std::string& layer, std::int64_t layers) {
  if (layer == "first") return 1;
  if (layer == "last") return layers;
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(layer.data(), layer.data() + layer.size(), number);
  if (error != std::errc() || end != layer.data() + layer.size() || number < 0 || number >= layers) return {};
  return number + 1;
}

}  // namespace

std::shared_ptr<const data::Mixture> mixture_of(const RunConfig& config) {
  if (config.mixture.empty()) return {};
  return std::make_shared<data::Mixture>(weights_of(config));
}

LinearPrecision linear_precision(const RunConfig& config, const ModelSpec& model) {
  LinearPrecision out{
      .recipe = config.linear,
      .unquantised = {},
      .weights = config.linear_weights == TwinsMade::step ? QuantiseWeights::step : QuantiseWeights::use};
  for (const std::string& layer : config.linear_bf16_layers) {
    const auto block = block_of(layer, model.layers);
    // config_c10
    require(block.has_value(), "config_c10", [&] {
      return "compute.linear_bf16_layers names " + quote(layer) + ": " + model.name + " has layers 0 to " +
             std::to_string(model.layers - 1) + ", or say \"first\" or \"last\"";
    });
    out.unquantised.push_back(*block);
  }
  std::sort(out.unquantised.begin(), out.unquantised.end());
  out.unquantised.erase(std::unique(out.unquantised.begin(), out.unquantised.end()), out.unquantised.end());
  out.experts = config.linear_experts;
  // config_c45
  require(
      !config.linear_experts || (config.linear == quantise::Recipe::fp8_tensor && model.experts),
      "config_c45", [&] {
        if (!model.experts)
          return "compute.linear_experts = \"on\" with " + model.name +
                 ", which has no experts: leave compute.linear_experts out";
        return "compute.linear_experts = \"on\" with compute.linear = " +
               shown(find_key("compute.linear")->get(config)) +
               ": routed experts are in FP8 with fp8_tensor alone; set compute.linear=fp8_tensor, or leave "
               "compute.linear_experts out";
      });
  return out;
}

void check(const RunConfig& config) {
  Faults faults;
  RunConfig scratch = config;
  for (const Key& key : keys()) faults.gather([&] { key.set(scratch, key.get(config)); });  // config_c1
  faults.refuse();  // the others compute with values in range
  check_mixture(config, faults);
  check_validation(config, faults);
  check_schedule(config, faults);
  check_tokens(config, faults);
  check_resume(config, faults);
  check_linear(config, faults);
  check_split(config, faults);
  check_capacity(config, faults);
  check_unread(config, faults);
  faults.refuse();
}

void check_reached(const RunConfig& config) {
  Faults faults;
  const std::string steps = "train.steps = " + std::to_string(config.steps);
  // config_c41
  faults.require(config.profile.last <= config.steps, "config_c41", [&] {
    return "profile.steps ends with step " + std::to_string(config.profile.last) + ", behind " + steps +
           ": name steps up to that, or raise train.steps";
  });
  std::int64_t left = config.steps;  // counted down, so that no sum of stages overflows
  for (const RampStage& stage : config.ramp) {
    // config_c42
    faults.require(stage.steps <= left, "config_c42", [&] {
      return "stage " + to_text(stage) + " of batch.ramp ends behind " + steps +
             ": shorten the stages, leave batch.ramp out, or raise train.steps";
    });
    left = std::max<std::int64_t>(left - stage.steps, 0);
    // config_c43 (a run whose batch was made smaller goes on with the stages that it had: changed_at)
    faults.require(stage.sequences <= config.sequences || config.resume != Resume::never, "config_c43", [&] {
      return "stage " + to_text(stage) +
             " of batch.ramp is above batch.sequences = " + std::to_string(config.sequences) +
             ", which the ramp grows to: lower the stage, or raise batch.sequences";
    });
  }
  faults.refuse();
}

void check(const RunConfig& config, const ModelSpec& model) {
  Faults faults;
  faults.gather([&] { require_trainable(model); });
  // config_c7
  faults.require(config.sequence_length <= model.context, "config_c7", [&] {
    return "batch.sequence_length = " + std::to_string(config.sequence_length) + " exceeds the context of " +
           model.name + ", " + std::to_string(model.context) + " tokens";
  });
  // config_c26
  faults.require(std::ranges::count(recomputes_of(model), config.recompute) > 0, "config_c26", [&] {
    return "memory.recompute = \"" + std::string(to_string(config.recompute)) +
           "\" makes q, k and v of latent attention again, which " + model.name +
           " does not have: leave it out, or set it to \"norms_swiglu\" or \"attention\"";
  });
  // config_c8
  faults.require(config.data_dtype != "uint16" || model.vocab <= 65536, "config_c8", [&] {
    return "data.dtype = \"uint16\" cannot hold the " + std::to_string(model.vocab) + " ids of " +
           model.name + "'s vocabulary: write the tokens as uint32";
  });
  // config_c9
  faults.require(config.end_of_document < model.vocab, "config_c9", [&] {
    return "data.end_of_document = " + std::to_string(config.end_of_document) +
           " is not in the vocabulary of " + model.name + ", " + std::to_string(model.vocab) + " entries";
  });
  for (const char* name :
       {"experts.balance", "experts.balance_over", "experts.router_z", "experts.capacity"}) {
    const Key& key = *find_key(name);
    // config_c16
    faults.require(model.experts || asks_for_nothing(key, config), "config_c16", [&] {
      return key.name + " = " + shown(key.get(config)) + " has no effect here: " + model.name +
             " has no experts; leave it out";
    });
  }
  const Key& rate = *find_key("experts.bias_rate");
  // config_c29
  faults.require((model.experts && model.experts->router_bias) || asks_for_nothing(rate, config),
                 "config_c29", [&] {
                   return rate.name + " = " + shown(rate.get(config)) + " has no effect here: " + model.name +
                          " has no router bias; leave it out";
                 });
  faults.gather([&] { linear_precision(config, model); });
  faults.refuse();
}

std::int64_t data_ranks(const RunConfig& config, std::int64_t ranks) {
  // config_c13
  require(ranks % config.tensor_ranks == 0, "config_c13", [&] {
    return "parallel.tensor = " + std::to_string(config.tensor_ranks) + " does not divide the " +
           ranks_text(ranks);
  });
  return ranks / config.tensor_ranks;
}

}  // namespace assay::spec
