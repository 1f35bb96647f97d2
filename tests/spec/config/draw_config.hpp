#pragma once
// Random settings that satisfy check(config), for round-trip properties.
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "spec/config/run_config.hpp"

namespace assay::tests {

/// A text without NUL and as valid UTF-8: quotes, backslashes, control characters, letters beyond ASCII.
inline std::string draw_text(bool empty_allowed) {
  static const std::vector<std::string> pieces = {"a",    "Z",    "9", " ",  "\"", "\\", "\t", "\n",
                                                  "\x01", "\x7f", "#", "=",  ",",  "[",  "]",  "'",
                                                  "/",    ".",    "ü", "金", "<",  "&"};
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces));
  std::string text = empty_allowed ? "" : "x";
  for (const std::string& part : parts) text += part;
  return text;
}

/// A double of any magnitude in (0, high): exponents are drawn, not values, so that tiny ones occur.
inline double draw_positive(double high) {
  const int exponent = *rc::gen::inRange(-300, 300);
  const double mantissa = 1 + *rc::gen::inRange(0, 1 << 30) * 0x1p-30;
  const double value = std::ldexp(mantissa, exponent);
  return value < high ? value : high * 0.5 / mantissa;
}

inline spec::RunConfig draw_config() {
  using rc::gen::inRange;
  spec::RunConfig config;
  config.model = draw_text(false);
  if (*rc::gen::arbitrary<bool>()) config.weights = draw_text(false);
  config.init_std = !config.weights.empty() || *rc::gen::arbitrary<bool>()
                        ? 0.0
                        : draw_positive(std::numeric_limits<double>::max());
  config.micro = *inRange<std::int64_t>(0, 50);
  config.sequences = std::max<std::int64_t>(config.micro, 1) * *inRange<std::int64_t>(1, 50);
  config.sequence_length = *inRange<std::int64_t>(1, 1'000'000'000);
  if (*rc::gen::arbitrary<bool>()) {
    config.data_paths.resize(*inRange<std::size_t>(1, 4));
    for (std::string& path : config.data_paths) path = draw_text(false);
    if (*rc::gen::arbitrary<bool>()) {
      const auto files = static_cast<std::int64_t>(config.data_paths.size());
      config.mixture = {{.name = "web-1", .weight = *inRange<std::int64_t>(1, 500'000), .files = files}};
      if (files > 1) {
        config.mixture[0].files = files - 1;
        config.mixture.push_back({.name = "code", .weight = *inRange<std::int64_t>(1, 500'000), .files = 1});
      }
    }
    config.data_dtype = *rc::gen::element<std::string>("", "uint16", "uint32");
    config.end_of_document = *inRange<std::int64_t>(-1, 70000);
    if (*rc::gen::arbitrary<bool>()) config.end_of_document = -1, config.document_ends = true;
  } else {
    config.grammar_samples = *inRange<std::int64_t>(1, 1'000'000'000'000);
    config.sample_sentences = *inRange<std::int64_t>(0, 1'000'000);
  }
  if (!config.data_paths.empty() && *rc::gen::arbitrary<bool>())
    config.eval_paths = {draw_text(false)};
  else if (*rc::gen::arbitrary<bool>())
    config.eval_share = draw_positive(1);
  if (spec::validates(config)) {
    config.eval_sequences = *inRange<std::int64_t>(0, 1000);
    config.eval_every = *inRange<std::int64_t>(0, 1000);
    config.eval_at_end = config.eval_every == 0 || *rc::gen::arbitrary<bool>();
    config.keep_best = *rc::gen::arbitrary<bool>();
  }
  config.prefetch = *inRange<std::int64_t>(0, 100);
  config.steps = *inRange<std::int64_t>(1, 1'000'000);
  config.ramp.resize(*inRange<std::size_t>(0, std::min<std::int64_t>(config.steps, 3) + 1));
  for (spec::RampStage& stage : config.ramp)
    stage = {*inRange<std::int64_t>(1, config.sequences + 1),
             *inRange<std::int64_t>(1, config.steps / std::ssize(config.ramp) + 1)};
  if (*rc::gen::arbitrary<bool>())
    config.tokens =
        config.sequence_length * spec::sequences_before(spec::global_batch(config), config.steps - 1) + 1;
  config.on_non_finite = *rc::gen::element(spec::OnNonFinite::stop, spec::OnNonFinite::skip);
  if (config.on_non_finite == spec::OnNonFinite::skip) config.max_skipped = *inRange<std::int64_t>(1, 1000);
  config.learning_rate = draw_positive(1e300);
  config.beta1 = draw_positive(1);
  config.beta2 = draw_positive(1);
  config.adam_eps = draw_positive(1e300);
  config.weight_decay = *rc::gen::arbitrary<bool>() ? 0.0 : draw_positive(1e300);
  config.clip = *rc::gen::arbitrary<bool>() ? 0.0 : draw_positive(1e300);
  config.z_loss = *rc::gen::arbitrary<bool>() ? 0.0 : draw_positive(1e300);
  config.balance = *rc::gen::arbitrary<bool>() ? 0.0 : draw_positive(1e300);
  config.router_z = *rc::gen::arbitrary<bool>() ? 0.0 : draw_positive(1e300);
  config.balance_over =
      *rc::gen::element(spec::load_balancing::Form::sequence, spec::load_balancing::Form::running);
  config.bias_rate = *rc::gen::arbitrary<bool>() ? 0.0 : draw_positive(1e300);
  config.capacity = *rc::gen::arbitrary<bool>() ? 0.0 : 1 + draw_positive(1e300);
  config.schedule =
      *rc::gen::element(spec::ScheduleKind::constant, spec::ScheduleKind::cosine, spec::ScheduleKind::wsd);
  config.warmup_steps = *inRange<std::int64_t>(0, config.steps + 1);
  if (config.schedule == spec::ScheduleKind::wsd) {
    config.decay_shape = *rc::gen::element(spec::DecayShape::linear, spec::DecayShape::one_minus_sqrt);
    config.decay_steps = *inRange<std::int64_t>(0, config.steps - config.warmup_steps + 1);
  }
  if (config.schedule != spec::ScheduleKind::constant) config.final_lr_ratio = draw_positive(1);
  config.dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16);
  config.dtype_of_machine = *rc::gen::arbitrary<bool>();
  if (config.dtype_of_machine) config.dtype = Dtype::f32;
  if (config.dtype_of_machine || config.dtype == Dtype::bf16)
    config.states = *rc::gen::element(Dtype::f32, Dtype::bf16);
  config.linear = *rc::gen::element(spec::quantise::Recipe::none, spec::quantise::Recipe::fp8_tensor,
                                    spec::quantise::Recipe::fp8_block, spec::quantise::Recipe::mxfp8);
  if (config.linear != spec::quantise::Recipe::none) {
    config.capacity = 0;
    config.linear_bf16_layers.resize(*inRange<std::size_t>(0, 3));
    for (std::string& layer : config.linear_bf16_layers) layer = draw_text(false);
    config.linear_weights =
        *rc::gen::element(spec::TwinsMade::automatic, spec::TwinsMade::step, spec::TwinsMade::use);
  }
  config.device = *rc::gen::element(spec::Device::cpu, spec::Device::cuda, spec::Device::automatic);
  config.attention = *rc::gen::element(spec::AttentionBackend::automatic, spec::AttentionBackend::cudnn,
                                       spec::AttentionBackend::flash, spec::AttentionBackend::math);
  config.deterministic =
      *rc::gen::element(spec::Determinism::automatic, spec::Determinism::off, spec::Determinism::on);
  config.cuda_graph = *rc::gen::arbitrary<bool>();
  config.threads = *inRange<std::int64_t>(0, 4096);
  config.seed = *inRange<std::uint64_t>(0, std::uint64_t(1) << 63);
  config.data_parallel = *rc::gen::element(spec::DataParallel::replicate, spec::DataParallel::zero1,
                                           spec::DataParallel::shard, spec::DataParallel::hybrid);
  if (config.data_parallel == spec::DataParallel::hybrid)
    config.shard_ranks = *inRange<std::int64_t>(0, 1 << 20);
  if (config.data_parallel == spec::DataParallel::hybrid || config.data_parallel == spec::DataParallel::shard)
    if (config.linear_weights == spec::TwinsMade::step) config.linear_weights = spec::TwinsMade::use;
  if (config.linear == spec::quantise::Recipe::none) config.tensor_ranks = *inRange<std::int64_t>(1, 1 << 20);
  if (config.capacity == 0) config.expert_ranks = *inRange<std::int64_t>(1, 1 << 20);
  if (config.dtype_of_machine || config.dtype == Dtype::bf16)
    config.reduce = *rc::gen::element(Dtype::f32, Dtype::bf16);
  config.check_replicas_every = *inRange<std::int64_t>(0, 1000);
  config.stall_seconds = *inRange<std::int64_t>(30, 100000);
  config.directory = draw_text(false);
  config.checkpoint_every = *inRange<std::int64_t>(0, 1000);
  config.checkpoint_minutes = *rc::gen::arbitrary<bool>() ? 0.0 : draw_positive(1e300);
  config.checkpoint_at_end = *rc::gen::arbitrary<bool>();
  config.checkpoint_keep = *inRange<std::int64_t>(1, 1000);
  config.checkpoint_asynchronous = *rc::gen::arbitrary<bool>();
  config.resume = *rc::gen::element(spec::Resume::never, spec::Resume::automatic, spec::Resume::path);
  if (config.resume == spec::Resume::path) config.resume_path = draw_text(false);
  config.log_every = *inRange<std::int64_t>(1, 1000);
  return config;
}

}  // namespace assay::tests
