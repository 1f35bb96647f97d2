#include "spec/audit/readers/megatron_arguments.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit::megatron {
namespace {

/// Arguments of blocks that the count of a plain block is not of, where they are set.
constexpr std::string_view of_other_blocks[] = {"multi_latent_attention",
                                                "squared_relu",
                                                "geglu",
                                                "quick_geglu",
                                                "glu_activation",
                                                "is_hybrid_model",
                                                "hybrid_override_pattern",
                                                "hybrid_layer_pattern",
                                                "heterogeneous_layers_config_path",
                                                "mtp_num_layers",
                                                "moe_latent_size",
                                                "attention_output_gate",
                                                "experimental_attention_variant",
                                                "linear_attention_freq"};

bool set(std::string_view value) {
  return value != "None" && value != "False" && value != "0" && value != "[]" && !value.empty();
}

std::optional<std::int64_t> count(std::string_view value) {
  const auto printed = parse_printed(value, Kind::counted, 1, 0);
  if (!printed || !(printed->value >= 0) || printed->value > 1e9) return std::nullopt;
  return static_cast<std::int64_t>(printed->value);
}

}  // namespace

bool MlpArguments::read(std::string_view name, std::string_view value) {
  if (std::find(std::begin(of_other_blocks), std::end(of_other_blocks), name) != std::end(of_other_blocks)) {
    other_ = other_ || set(value);
  } else if (name == "swiglu") {
    mlp_.reset();
    if (value == "True") mlp_ = Mlp::swiglu;
    if (value == "False") mlp_ = Mlp::gelu;
  } else if (name == "num_experts") {
    // Megatron-DeepSpeed: a list, of one entry where every layer is dense.
    dense_ = value == "None" || value == "[1]";
    experts_ = count(value);
  } else if (name == "moe_router_topk") {
    active_ = count(value);
  } else if (name == "moe_ffn_hidden_size") {
    ++later_, expert_width_ = count(value), other_ = other_ || (set(value) && !expert_width_);
  } else if (name == "moe_shared_expert_intermediate_size") {
    ++later_, shared_width_ = count(value), other_ = other_ || (set(value) && !shared_width_);
  } else if (name == "moe_layer_freq") {
    ++later_, other_ = !read_layers(value) || other_;
  } else {
    // Of a version that knows experts: the line that says how many, or that there are none, has to be there.
    experts_named_ = experts_named_ || name.starts_with("moe_");
    return false;
  }
  return true;
}

/// "2": every second layer, the first one sparse. "[0, 1, 1]": of each.
bool MlpArguments::read_layers(std::string_view value) {
  pattern_.clear();
  period_ = 0;
  if (const auto period = count(value)) {
    period_ = *period;
    return period_ > 0;
  }
  if (!value.starts_with('[') || !value.ends_with(']')) return false;
  for (const char c : value.substr(1, value.size() - 2)) {
    if (c == '0' || c == '1')
      pattern_.push_back(c == '1');
    else if (c != ',' && c != ' ')
      return false;
  }
  return true;
}

std::optional<BlockMlp> MlpArguments::stated(std::int64_t layers, std::int64_t ffn) const {
  if (!mlp_ || other_) return std::nullopt;
  BlockMlp out{*mlp_, std::nullopt};
  const bool knows_experts = experts_named_ || active_ || later_ > 0;
  if (dense_ || (!experts_ && !knows_experts)) return out;
  if (!experts_ || !active_ || (later_ != 0 && later_ != 3)) return std::nullopt;
  Experts experts;
  experts.count = *experts_;
  experts.active = *active_;
  experts.width = expert_width_.value_or(ffn);
  experts.shared_width = shared_width_.value_or(0);
  if (period_ > 0) {
    // Only how many are sparse counts.
    if (layers % period_ != 0) return std::nullopt;
    experts.every = period_;
  } else {
    const auto first = std::find(pattern_.begin(), pattern_.end(), true);
    if (std::ssize(pattern_) != layers || std::find(first, pattern_.end(), false) != pattern_.end())
      return std::nullopt;
    experts.first_dense = first - pattern_.begin();
  }
  out.experts = experts;
  return out;
}

void ScheduleArguments::read(std::string_view name, std::string_view value, std::int64_t line,
                             RecordBuilder& builder) {
  const auto number = [&] { return parse_printed(value, Kind::counted, 1, line); };
  if (name == "train_iters") planned_by_samples_ = value == "None", train_steps_ = number();
  if (name == "train_samples") {
    builder.setting(Setting::train_samples, train_samples_ = number());
    planned_by_steps_ = value == "None";
  }
  if (name == "lr_decay_iters") decay_steps_said_ = true, planned_by_steps_ = planned_by_steps_ || number();
  if (const auto start = number(); start && name == "lr_warmup_init")
    builder.setting(Setting::learning_rate_start, exactly(start->value, line));
  if (name == "lr_wsd_decay_samples") builder.setting(Setting::wsd_decay_samples, number());
  if (name == "lr_decay_samples") decay_samples_ = number(), decay_said_ = true;
  if (name == "lr_warmup_samples") warmup_samples_ = number();
  if (name == "lr_warmup_iters") {
    warmup_steps_ = number();
    if (warmup_steps_ && warmup_steps_->value > 0) builder.setting(Setting::warmup_steps, warmup_steps_);
  }
  if (name == "lr_warmup_fraction") fraction_ = number(), fraction_said_ = true;
}

void ScheduleArguments::end(RecordBuilder& builder) const {
  const bool by_samples = train_samples_.has_value();
  // By samples, but the line that says so is lost.
  if (!by_samples &&
      (planned_by_samples_ || decay_samples_ || (warmup_samples_ && warmup_samples_->value > 0)))
    return;
  if (!by_samples && decay_steps_said_ && !builder.current(Setting::decay_steps))
    builder.setting(Setting::decay_steps, train_steps_);
  if (by_samples && decay_said_)
    builder.setting(Setting::decay_samples, decay_samples_ ? decay_samples_ : train_samples_);
  const auto& decay = builder.current(by_samples ? Setting::decay_samples : Setting::decay_steps);
  const Setting warmup = by_samples ? Setting::warmup_samples : Setting::warmup_steps;
  const auto& counted = by_samples ? warmup_samples_ : warmup_steps_;
  if (fraction_ && decay)
    builder.setting(warmup, exactly(fraction_->value * decay->value, fraction_->line));
  else if (counted && !fraction_ &&
           (counted->value > 0 || (fraction_said_ && (by_samples || planned_by_steps_ || train_steps_))))
    builder.setting(warmup, counted);
}

}  // namespace assay::spec::audit::megatron
