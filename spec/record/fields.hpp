#pragma once
// The fields of every event, each named once: writing, reading and the documentation test visit this list.
#include <concepts>
#include <type_traits>

#include "spec/record/event.hpp"

namespace assay::spec::record {

/// T is E or const E.
template <class T, class E>
concept Is = std::same_as<std::remove_const_t<T>, E>;

// field(name, member) is called for each field in the order of the file.

void fields(Is<Gpu> auto& gpu, auto&& field) {
  field("name", gpu.name);
  field("uuid", gpu.uuid);
  field("memory_bytes", gpu.memory_bytes);
}

void fields(Is<RankPlacement> auto& placement, auto&& field) {
  field("rank", placement.rank);
  field("host", placement.host);
  field("device", placement.device);
  field("threads", placement.threads);
  field("gpu", placement.gpu);
  field("processors", placement.processors);
  field("memory_nodes", placement.memory_nodes);
  field("gpu_node", placement.gpu_node);
  field("gpu_processors", placement.gpu_processors);
}

void fields(Is<Batch> auto& batch, auto&& field) {
  field("sequences", batch.sequences);
  field("micro", batch.micro);
  field("accumulation", batch.accumulation);
  field("ranks", batch.ranks);
  field("sequence_length", batch.sequence_length);
  field("tokens", batch.tokens);
}

void fields(Is<RunLayout> auto& layout, auto&& field) {
  field("data", layout.data);
  field("shard_ranks", layout.shard_ranks);
  field("reduce", layout.reduce);
}

void fields(Is<ExpectedLoss> auto& expected, auto&& field) {
  field("mean", expected.mean);
  field("standard_deviation", expected.standard_deviation);
}

void fields(Is<Data> auto& data, auto&& field) {
  field("source", data.source);
  field("description", data.description);
  field("files", data.files);
  field("floor", data.floor);
}

void fields(Is<StepSource> auto& source, auto&& field) {
  field("name", source.name);
  field("tokens", source.tokens);
  field("valid_tokens", source.valid_tokens);
  field("loss", source.loss);
  field("epochs", source.epochs);
}

void fields(Is<Phases> auto& phases, auto&& field) {
  field("data_wait", phases.data_wait);
  field("forward", phases.forward);
  field("backward", phases.backward);
  field("reduce", phases.reduce);
  field("clip", phases.clip);
  field("update", phases.update);
  field("checkpoint", phases.checkpoint);
  field("other", phases.other);
}

void fields(Is<Sample> auto& sample, auto&& field) {
  field("text", sample.text);
  field("accepted", sample.accepted);
  field("sum_right", sample.sum_right);
}

void fields(Is<RunStart> auto& start, auto&& field) {
  field("schema", start.schema);
  field("time", start.time);
  field("version", start.version);
  field("commit", start.commit);
  field("host", start.host);
  field("os", start.os);
  field("cpu", start.cpu);
  field("cores", start.cores);
  field("memory_bytes", start.memory_bytes);
  field("gpus", start.gpus);
  field("ranks", start.ranks);
  field("model", start.model);
  field("model_definition", start.model_definition);
  field("vocab", start.vocab);
  field("parameters", start.parameters);
  field("flops_per_token", start.flops_per_token);
  field("peak_flops", start.peak_flops);
  field("executed_peak_flops", start.executed_peak_flops);
  field("batch", start.batch);
  field("layout", start.layout);
  field("steps", start.steps);
  field("expected_first_loss", start.expected_first_loss);
  field("planned_memory_bytes", start.planned_memory_bytes);
  field("planned_load", start.planned_load);
  field("most_load", start.most_load);
  field("attention", start.attention);
  field("tensor_ranks", start.tensor_ranks);
  field("expert_ranks", start.expert_ranks);
  field("linear", start.linear);
  field("deterministic", start.deterministic);
  field("data", start.data);
  field("validation", start.validation);
  field("settings", start.settings);
}

void fields(Is<Step> auto& step, auto&& field) {
  field("step", step.step);
  field("loss", step.loss);
  field("z_loss", step.z_loss);
  field("balance_loss", step.balance_loss);
  field("router_z_loss", step.router_z_loss);
  field("load_balance_worst", step.load_balance_worst);
  field("load_balance_mean", step.load_balance_mean);
  field("router_entropy", step.router_entropy);
  field("dropped_choices", step.dropped_choices);
  field("gradient_norm", step.gradient_norm);
  field("clip_coefficient", step.clip_coefficient);
  field("learning_rate", step.learning_rate);
  field("tokens", step.tokens);
  field("valid_tokens", step.valid_tokens);
  field("seconds", step.seconds);
  field("elapsed_seconds", step.elapsed_seconds);
  field("tokens_per_second", step.tokens_per_second);
  field("mfu", step.mfu);
  field("hfu", step.hfu);
  field("executed_flops", step.executed_flops);
  field("phases", step.phases);
  field("sources", step.sources);
  field("sample_hash", step.sample_hash);
  field("weights_hash", step.weights_hash);
  field("resident_bytes", step.resident_bytes);
  field("device_peak_bytes", step.device_peak_bytes);
}

void fields(Is<Warning> auto& warning, auto&& field) {
  field("step", warning.step);
  field("code", warning.code);
  field("text", warning.text);
}

void fields(Is<Checkpoint> auto& checkpoint, auto&& field) {
  field("step", checkpoint.step);
  field("path", checkpoint.path);
  field("bytes", checkpoint.bytes);
  field("seconds", checkpoint.seconds);
  field("asynchronous", checkpoint.asynchronous);
  field("copy_seconds", checkpoint.copy_seconds);
  field("write_seconds", checkpoint.write_seconds);
  field("delay_seconds", checkpoint.delay_seconds);
  field("host_bytes", checkpoint.host_bytes);
}

void fields(Is<ChangedSetting> auto& setting, auto&& field) {
  field("name", setting.name);
  field("before", setting.before);
  field("now", setting.now);
  field("asked", setting.asked);
}

void fields(Is<ResumeFrom> auto& resume, auto&& field) {
  field("step", resume.step);
  field("path", resume.path);
  field("changed", resume.changed);
}

void fields(Is<SkippedStep> auto& skipped, auto&& field) {
  field("step", skipped.step);
  field("reason", skipped.reason);
  field("loss", skipped.loss);
  field("gradient_norm", skipped.gradient_norm);
  field("learning_rate", skipped.learning_rate);
  field("tokens", skipped.tokens);
  field("seconds", skipped.seconds);
  field("sample_hash", skipped.sample_hash);
  field("skipped", skipped.skipped);
  field("allowed", skipped.allowed);
}

void fields(Is<WeightsFrom> auto& weights, auto&& field) {
  field("path", weights.path);
  field("content", weights.content);
  field("types", weights.types);
  field("parameters", weights.parameters);
  field("bytes", weights.bytes);
}

void fields(Is<PlannedTensors> auto& tensors, auto&& field) {
  field("name", tensors.name);
  field("purpose", tensors.purpose);
  field("count", tensors.count);
  field("bytes", tensors.bytes);
}

void fields(Is<Memory> auto& memory, auto&& field) {
  field("step", memory.step);
  field("device", memory.device);
  field("capacity_bytes", memory.capacity_bytes);
  field("planned_bytes", memory.planned_bytes);
  field("state_bytes", memory.state_bytes);
  field("moment", memory.moment);
  field("measured_bytes", memory.measured_bytes);
  field("load", memory.load);
  field("tensors", memory.tensors);
}

void fields(Is<Samples> auto& samples, auto&& field) {
  field("step", samples.step);
  field("samples", samples.samples);
  field("judged", samples.judged);
  field("accepted", samples.accepted);
  field("sums", samples.sums);
  field("sums_right", samples.sums_right);
}

void fields(Is<Validation> auto& validation, auto&& field) {
  field("step", validation.step);
  field("loss", validation.loss);
  field("perplexity", validation.perplexity);
  field("bits_per_byte", validation.bits_per_byte);
  field("sequences", validation.sequences);
  field("valid_tokens", validation.valid_tokens);
  field("set_hash", validation.set_hash);
  field("lowest", validation.lowest);
  field("seconds", validation.seconds);
}

void fields(Is<ProfiledPart> auto& part, auto&& field) {
  field("name", part.name);
  field("kind", part.kind);
  field("calls", part.calls);
  field("seconds", part.seconds);
}

void fields(Is<Profile> auto& profile, auto&& field) {
  field("first_step", profile.first_step);
  field("last_step", profile.last_step);
  field("path", profile.path);
  field("trace", profile.trace);
  field("seconds", profile.seconds);
  field("parts", profile.parts);
}

void fields(Is<Goodput> auto& goodput, auto&& field) {
  field("tokens_per_second", goodput.tokens_per_second);
  field("seconds", goodput.seconds);
  field("start_up", goodput.start_up);
  field("steps", goodput.steps);
  field("data_wait", goodput.data_wait);
  field("saves", goodput.saves);
  field("evaluation", goodput.evaluation);
  field("other", goodput.other);
}

void fields(Is<RunGoodput> auto& goodput, auto&& field) {
  field("starts", goodput.starts);
  field("unended", goodput.unended);
  field("seconds", goodput.seconds);
  field("productive", goodput.productive);
  field("data_wait", goodput.data_wait);
  field("start_up", goodput.start_up);
  field("saves", goodput.saves);
  field("evaluation", goodput.evaluation);
  field("skipped", goodput.skipped);
  field("redone", goodput.redone);
  field("other", goodput.other);
}

void fields(Is<RunEnd> auto& end, auto&& field) {
  field("reason", end.reason);
  field("exit_code", end.exit_code);
  field("message", end.message);
  field("steps", end.steps);
  field("tokens", end.tokens);
  field("seconds", end.seconds);
  field("tokens_per_second", end.tokens_per_second);
  field("final_loss", end.final_loss);
  field("final_steps", end.final_steps);
  field("floor", end.floor);
  field("gap_closed", end.gap_closed);
  field("goodput", end.goodput);
  field("run_goodput", end.run_goodput);
}

/// Names of EndReason in its order.
inline constexpr const char* kEndReasons[] = {"done", "saved", "non_finite", "error"};

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};

/// The settings are one JSON object, not a list.
using Settings = std::vector<std::pair<std::string, Value>>;

}  // namespace assay::spec::record
