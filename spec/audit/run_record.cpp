#include "spec/audit/run_record.hpp"

#include <algorithm>
#include <iterator>

namespace assay::spec::audit {
namespace {

constexpr std::string_view setting_names[] = {"sequence_length",
                                              "micro",
                                              "accumulation",
                                              "accumulation_configured",
                                              "sequences",
                                              "tokens_per_step",
                                              "gpus",
                                              "data_parallel",
                                              "tensor_parallel",
                                              "pipeline_parallel",
                                              "context_parallel",
                                              "expert_parallel",
                                              "parameters",
                                              "parameters_nonembedding",
                                              "layers",
                                              "width",
                                              "heads",
                                              "kv_heads",
                                              "head_dim",
                                              "ffn",
                                              "vocab",
                                              "flops_per_token",
                                              "ffn_flops_per_layer",
                                              "peak_flops",
                                              "gpu_memory",
                                              "learning_rate",
                                              "learning_rate_min",
                                              "learning_rate_start",
                                              "warmup_steps",
                                              "decay_steps",
                                              "wsd_decay_steps",
                                              "train_samples",
                                              "warmup_samples",
                                              "decay_samples",
                                              "wsd_decay_samples",
                                              "max_steps",
                                              "expected_tokens_per_second_half_mfu",
                                              "total_seconds",
                                              "total_tokens",
                                              "average_seconds",
                                              "average_mfu",
                                              "average_tokens_per_second",
                                              "average_steps_per_second",
                                              "average_sequences_per_second",
                                              "average_loss",
                                              "final_loss",
                                              "final_step",
                                              "loss_floor",
                                              "expected_first_loss",
                                              "expected_first_loss_deviation",
                                              "total_flops",
                                              "end_of_document",
                                              "final_loss_steps",
                                              "gap_closed",
                                              "planned_epochs",
                                              "completed_steps"};
constexpr std::string_view field_names[] = {"step",
                                            "rank",
                                            "loss",
                                            "gradient_norm",
                                            "learning_rate",
                                            "seconds",
                                            "elapsed",
                                            "tokens_per_second",
                                            "tokens",
                                            "tokens_total",
                                            "sequences_total",
                                            "mfu",
                                            "hfu",
                                            "flops_rate",
                                            "memory_allocated",
                                            "memory_peak",
                                            "memory_reserved",
                                            "flops_per_token",
                                            "peak_flops",
                                            "skipped",
                                            "step_sequences",
                                            "planned_steps",
                                            "memory_share",
                                            "not_finite",
                                            "valid_tokens",
                                            "phases",
                                            "epoch",
                                            "sequences_per_second",
                                            "step_length",
                                            "gpu_tokens_per_second",
                                            "hardware_flops_rate"};
static_assert(std::size(setting_names) == setting_count && std::size(field_names) == field_count);

template <typename Enum, std::size_t n>
std::optional<Enum> named(const std::string_view (&names)[n], std::string_view name) {
  for (std::size_t i = 0; i < n; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Setting setting) { return setting_names[static_cast<std::size_t>(setting)]; }
std::string_view to_string(Field field) { return field_names[static_cast<std::size_t>(field)]; }
std::optional<Setting> setting_named(std::string_view name) { return named<Setting>(setting_names, name); }
std::optional<Field> field_named(std::string_view name) { return named<Field>(field_names, name); }

namespace {

const GivenOption* named_in(const std::vector<GivenOption>& list, std::string_view name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const GivenOption& one) { return one.name == name; });
  return found == list.end() ? nullptr : &*found;
}

/// Notes the option. A new entry; nullptr where one of that name is there, which then keeps what the log
/// said.
GivenOption* note(std::vector<GivenOption>& list, std::string_view name, const std::string& option) {
  for (GivenOption& known : list)
    if (known.name == name) {
      known.option = option;
      return nullptr;
    }
  return &list.emplace_back(GivenOption{std::string(name), option, {}, {}});
}

}  // namespace

const GivenOption* RunRecord::stated_for(std::string_view name) const { return named_in(stated, name); }
const GivenOption* RunRecord::mapped_for(Field field) const { return named_in(mapped, to_string(field)); }

void RunRecord::state(Setting setting, const Printed& value, const std::string& option) {
  auto& number = (*this)[setting];
  if (GivenOption* const fresh = note(stated, to_string(setting), option)) fresh->log_number = number;
  number = value;
}

void RunRecord::state(std::string_view name, std::string RunRecord::*which, const std::string& value,
                      const std::string& option) {
  if (GivenOption* const fresh = note(stated, name, option)) fresh->log_text = this->*which;
  this->*which = value;
}

}  // namespace assay::spec::audit
