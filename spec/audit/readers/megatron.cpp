// Megatron-LM's console and those of its descendants (Megatron-DeepSpeed, GPT-NeoX, ROCm's and Ascend's
// forks): formats.md, "megatron".
#include <algorithm>
#include <cctype>
#include <cmath>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/time_stamp.hpp"

namespace assay::spec::audit {
namespace megatron {
namespace {

/// Behind "iteration" of a line like "iteration  10/ 100 | ... |"; data() is null on other lines.
std::string_view step_line(std::string_view text) {
  const std::size_t at = text.find("iteration");
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + 9);
  while (!rest.empty() && (rest[0] == ' ' || rest[0] == '=' || rest[0] == ':')) rest.remove_prefix(1);
  std::size_t length = 0;
  while (length < rest.size() && std::isdigit(static_cast<unsigned char>(rest[length]))) ++length;
  if (length == 0 || !trimmed(rest.substr(length)).starts_with('/')) return {};
  return rest.find('|') != std::string_view::npos &&
                 (rest.find("elapsed") != std::string_view::npos ||
                  rest.find("time_per_iteration") != std::string_view::npos)
             ? rest
             : std::string_view();
}

struct Known {
  std::string_view key;
  Field field;
  Kind kind = Kind::measured;
  double unit = 1;
};
/// In the order of Megatron's line, so that each is found where the last one ended.
constexpr Known known_fields[] = {
    {"consumed samples", Field::sequences_total, Kind::counted},
    {"elapsed time per iteration (ms)", Field::seconds, Kind::measured, 1e-3},
    {"throughput per GPU (TFLOP/s/GPU)", Field::flops_rate, Kind::measured, 1e12},
    {"learning rate", Field::learning_rate},
    {"lm loss", Field::loss},
    {"grad norm", Field::gradient_norm},
    {"number of skipped iterations", Field::skipped, Kind::counted},
    {"number of nan iterations", Field::not_finite, Kind::counted},
    {"consumed_samples", Field::sequences_total, Kind::counted},
    {"consumed tokens", Field::tokens_total, Kind::counted},
    {"consumed_tokens", Field::tokens_total, Kind::counted},
    {"elapsed_time_per_iteration_ms", Field::seconds, Kind::measured, 1e-3},
    {"time_per_iteration_ms", Field::seconds, Kind::measured, 1e-3},
    {"elapsed time per iteration (s)", Field::seconds},
    {"throughput (TFLOP/s/GPU)", Field::flops_rate, Kind::measured, 1e12},
    {"approx flops per GPU", Field::flops_rate, Kind::measured, 1e12},
    {"TFLOPs", Field::flops_rate, Kind::measured, 1e12},
    {"TFLOPS", Field::flops_rate, Kind::measured, 1e12},
    {"learning_rate", Field::learning_rate},
    {"lm_loss", Field::loss},
    {"loss", Field::loss},
    {"grad_norm", Field::gradient_norm},
    {"tokens_per_sec", Field::tokens_per_second},
    {"lr", Field::learning_rate},
    {"model_tflops_per_gpu", Field::flops_rate, Kind::measured, 1e12},
};

/// Reads the parts between bars. False when a known one cannot be read.
bool read_parts(std::string_view text, std::int64_t line, Step& step, std::optional<Printed>& batch,
                TakenNumbers* taken) {
  std::size_t expected = 0;
  while (!text.empty()) {
    std::size_t bar = 0, separator = text.size();
    for (; bar < text.size() && text[bar] != '|'; ++bar)
      if (separator == text.size() && (text[bar] == ':' || text[bar] == '=')) separator = bar;
    // Versions of 2020 put a blank where later ones put a colon: "lm loss 7.1E+00".
    if (separator > bar || separator == text.size()) {
      const std::string_view part = trimmed(text.substr(0, bar));
      const std::size_t blank = part.rfind(' ');
      if (blank != std::string_view::npos)
        separator = static_cast<std::size_t>(part.data() - text.data()) + blank;
    }
    const std::string_view key = trimmed(text.substr(0, std::min(bar, separator)));
    const std::string_view value =
        separator < bar ? trimmed(text.substr(separator + 1, bar - separator - 1)) : std::string_view();
    text.remove_prefix(std::min(bar + 1, text.size()));
    if (separator >= bar) continue;
    if (key == "global batch size" || key == "global_batch_size") {
      batch = prefixed_number(value, Kind::counted, 1, line);
      if (!batch) return false;
      continue;
    }
    for (std::size_t i = 0; i < std::size(known_fields); ++i) {
      const Known& known = known_fields[(expected + i) % std::size(known_fields)];
      if (known.key != key) continue;
      // "1234.5/1230.2": of this iteration, and the mean so far.
      step[known.field] = prefixed_number(value, known.kind, known.unit, line, taken, known.field);
      if (!step[known.field]) return false;
      expected = (expected + i + 1) % std::size(known_fields);
      break;
    }
  }
  return true;
}

bool read_numbers(std::string_view text, std::int64_t line, Step& step, std::optional<Printed>& batch,
                  TakenNumbers* taken = nullptr) {
  const std::size_t bar = text.find('|');
  Scan scan(text.substr(0, bar), line, taken);
  scan.take(step, Field::step, "", Kind::counted);
  scan.take(step, Field::planned_steps, "/", Kind::counted);
  return !scan.bad() && read_parts(text.substr(bar + 1), line, step, batch, taken) && step[Field::seconds];
}

/// nanotron prints the rate of all GPUs and one's, the first over their number: a whole one, where the three
/// digits of each leave but one.
std::optional<Printed> gpus_of(std::string_view text, const Step& step, std::int64_t line) {
  constexpr std::string_view key = "tokens_per_sec_per_gpu: ";
  const std::size_t at = text.find(key);
  const auto& all = step[Field::tokens_per_second];
  if (at == std::string_view::npos || !all || !(all->low > 0)) return std::nullopt;
  const std::string_view rest = text.substr(at + key.size());
  const auto one = prefixed_number(trimmed(rest.substr(0, rest.find('|'))), Kind::measured, 1, line);
  if (!one || !(one->low > 0)) return std::nullopt;
  const double least = std::ceil(all->low / one->high), most = std::floor(all->high / one->low);
  return least == most && least >= 1 ? std::optional(exactly(least, line)) : std::nullopt;
}

struct Argument {
  std::string_view name;
  Setting setting;
};
constexpr Argument arguments[] = {{"micro_batch_size", Setting::micro},
                                  {"global_batch_size", Setting::sequences},
                                  {"seq_length", Setting::sequence_length},
                                  {"num_layers", Setting::layers},
                                  {"hidden_size", Setting::width},
                                  {"ffn_hidden_size", Setting::ffn},
                                  {"num_attention_heads", Setting::heads},
                                  {"kv_channels", Setting::head_dim},
                                  {"padded_vocab_size", Setting::vocab},
                                  {"train_iters", Setting::max_steps},
                                  {"lr", Setting::learning_rate},
                                  {"min_lr", Setting::learning_rate_min},
                                  {"lr_warmup_iters", Setting::warmup_steps},
                                  {"lr_decay_iters", Setting::decay_steps},
                                  {"lr_wsd_decay_iters", Setting::wsd_decay_steps},
                                  {"data_parallel_size", Setting::data_parallel},
                                  {"tensor_model_parallel_size", Setting::tensor_parallel},
                                  {"pipeline_model_parallel_size", Setting::pipeline_parallel},
                                  {"context_parallel_size", Setting::context_parallel},
                                  {"expert_model_parallel_size", Setting::expert_parallel},
                                  {"world_size", Setting::gpus}};

class Megatron : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    if (read_known(line, builder)) return;
    if (const auto text = step_line(line.text); text.data()) return read_step(text, line, builder);
    if (line.text.find("memory (MB)") != std::string_view::npos &&
        line.text.find("max allocated:") != std::string_view::npos)
      // A number at the end of a line that is cut may be cut too.
      return line.complete ? read_memory(line.text, line.number, builder) : void();
    read_header(line.text, line.number, builder);
  }
  void finish(RecordBuilder& builder) override { emit(builder); }

 private:
  void emit(RecordBuilder& builder) {
    if (open_) builder.step(step_);
    open_ = false;
  }

  void open(const Step& step, const Line& line, RecordBuilder& builder) {
    builder.took();
    step_ = step;
    step_.line = line.number;
    // "[2025-11-15 12:34:56.789]": later versions to a millisecond or less, most to a second.
    step_[Field::elapsed] = time_stamp(line.text.substr(0, line.text.find("iteration")), line.number);
    // Printed of the iterations since the last line.
    if (auto& skipped = step_[Field::skipped])
      skipped = exactly(skipped_ += std::isfinite(skipped->value) ? skipped->value : 0, line.number);
    if (line.rank >= 0) step_[Field::rank] = exactly(line.rank, line.number);
    if (batch_here_) step_[Field::step_sequences] = exactly(batch_here_->value, line.number);
    open_ = true;
  }

  /// A line like one before it, of a run whose plan and batch are known.
  bool read_known(const Line& line, RecordBuilder& builder) {
    Step step;
    if (!shapes_.read(line, step) || !of_same_batch(line.text)) return false;
    emit(builder);
    if (!builder.current(Setting::max_steps)) return false;
    if (!step[Field::tokens_per_second] && !builder.current(Setting::sequences)) return false;
    open(step, line, builder);
    return true;
  }

  /// Shapes look past numbers that no field takes, and the batch may change from line to line.
  bool of_same_batch(std::string_view text) const {
    constexpr std::size_t drift = 16;  // by numbers before it that grow or shrink
    const std::size_t from = batch_at_ > drift ? batch_at_ - drift : 0;
    if (batch_text_.empty()) return text.find("global batch size:") == std::string_view::npos;
    return text.find(batch_text_, from) != std::string_view::npos;
  }

  void remember_batch(std::string_view text) {
    batch_at_ = text.find("global batch size:");
    const bool there = batch_at_ != std::string_view::npos;
    batch_text_ = there ? text.substr(batch_at_, text.find('|', batch_at_) - batch_at_) : std::string_view();
  }

  void read_step(std::string_view text, const Line& line, RecordBuilder& builder) {
    emit(builder);
    Step step;
    std::optional<Printed> batch;
    TakenNumbers taken;
    if (!read_numbers(text, line.number, step, batch, &taken) ||
        (!line.complete && !trimmed(text).ends_with('|')))
      return builder.unread(line.text);
    if (!builder.current(Setting::max_steps)) builder.summary(Setting::max_steps, step[Field::planned_steps]);
    // nanotron prints three digits and a prefix; its versions count sequences or tokens as the batch.
    if (step[Field::tokens_per_second]) {
      builder.format().name = builder.format().convention = "nanotron";
      builder.format().tokens_per_second = Scope::all;
      builder.format().averaged.clear();
      if (!builder.current(Setting::gpus)) builder.summary(Setting::gpus, gpus_of(text, step, line.number));
    } else if (const auto& stated = builder.current(Setting::sequences); !stated && !ramps_up_) {
      builder.summary(Setting::sequences, batch);
      batch_is_of_lines_ = batch.has_value();
    } else if (batch && stated && batch->value != stated->value) {
      // A batch that a whole header states and no ramp leads to is wrong on one side or the other; else the
      // batch ramps up, and no one number is that of a step.
      const bool steady = !batch_of_lines_ || *batch_of_lines_ == batch->value;
      if (!no_ramp_ || batch_is_of_lines_ || !steady) {
        ramps_up_ = true;
        builder.forget(Setting::sequences);
      }
    }
    if (batch) batch_of_lines_ = batch->value;
    batch_here_ = step[Field::tokens_per_second] ? std::nullopt : batch;
    remember_batch(line.text);
    shapes_.learn(line, taken);
    open(step, line, builder);
  }

  /// "[Rank 0] (after 10 iterations) memory (MB) | allocated: ... |": of the iteration before; several ranks
  /// print it, the first one counts.
  void read_memory(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    builder.took();
    if (!open_ || step_[Field::memory_peak]) return;
    Step step;
    Scan scan(text, line);
    scan.take(step, Field::memory_allocated, "| allocated:", Kind::measured, 0x1p20);
    scan.take(step, Field::memory_peak, "max allocated:", Kind::measured, 0x1p20);
    scan.take(step, Field::memory_reserved, "max reserved:", Kind::measured, 0x1p20);
    if (scan.bad()) return builder.unread(text);
    for (const Field field : {Field::memory_allocated, Field::memory_peak, Field::memory_reserved})
      step_[field] = step[field];
  }

  void read_header(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    const auto number = [&](std::string_view rest) {
      return parse_printed(number_token(rest), Kind::counted, 1, line);
    };
    if (const std::size_t dots = text.find(" .."); dots != std::string_view::npos) {
      read_argument(trimmed(text.substr(0, dots)), text.substr(dots), line, builder);
    } else if (text.find("end of arguments") != std::string_view::npos) {
      emit(builder);
      no_ramp_ = !ramp_stated_;
      batch_of_lines_.reset();
      batch_is_of_lines_ = false;
      if (grouped_ == false) builder.setting(Setting::kv_heads, builder.current(Setting::heads));
      if (!builder.current(Setting::decay_steps))
        builder.setting(Setting::decay_steps, builder.current(Setting::max_steps));
    } else if (const auto world = behind(text, "using world size: "); world.data()) {
      emit(builder);
      builder.setting(Setting::gpus, number(world));
      constexpr std::pair<std::string_view, Setting> sizes[] = {
          {"data-parallel size: ", Setting::data_parallel},
          {"data-parallel-size: ", Setting::data_parallel},
          {"tensor-model-parallel size: ", Setting::tensor_parallel},
          {"tensor-model-parallel-size: ", Setting::tensor_parallel},
          {"pipeline-model-parallel size: ", Setting::pipeline_parallel},
          {"pipeline-model-parallel-size: ", Setting::pipeline_parallel},
          {"context-parallel size: ", Setting::context_parallel}};
      for (const auto& [key, setting] : sizes)
        if (const auto rest = behind(world, key); rest.data()) builder.setting(setting, number(rest));
    } else if (const auto micro = behind(text, "batches to constant "); micro.data()) {
      builder.setting(Setting::accumulation, number(micro));
    } else if (const auto vocab = behind(text, "dummy tokens (new size: "); vocab.data()) {
      builder.setting(Setting::vocab, number(vocab));
    } else if (const auto total = behind(text, "Total number of parameters in billions: "); total.data()) {
      builder.setting(Setting::parameters, parse_printed(number_token(total), Kind::measured, 1e9, line));
    } else if (const auto loaded = behind(text, "successfully loaded checkpoint"); loaded.data()) {
      const auto iteration = number(behind(loaded, "at iteration "));
      if (iteration && iteration->value > 0 && iteration->value < 1e15)
        builder.restart(static_cast<std::int64_t>(iteration->value));
    }
  }

  void read_argument(std::string_view name, std::string_view rest, std::int64_t line,
                     RecordBuilder& builder) {
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '.')) rest.remove_prefix(1);
    const std::string_view value = trimmed(rest);
    if (name == "rampup_batch_size") ramp_stated_ = value != "None";
    if (name == "group_query_attention") grouped_ = value == "True";
    if (name == "num_query_groups" && grouped_ == true)
      builder.setting(Setting::kv_heads, parse_printed(value, Kind::counted, 1, line));
    if (name == "lr_decay_style") builder.name(&RunRecord::schedule, value);
    if (name == "bf16" && value == "True") builder.name(&RunRecord::dtype, "bf16");
    if (name == "fp16" && value == "True") builder.name(&RunRecord::dtype, "fp16");
    if (name == "fp8" && value != "None" && value != "False") builder.name(&RunRecord::dtype, "fp8");
    for (const Argument& known : arguments)
      if (known.name == name && value != "None")
        builder.setting(known.setting, parse_printed(value, Kind::counted, 1, line));
  }

  Step step_;
  bool open_ = false;
  double skipped_ = 0;  ///< iterations so far whose update was left out
  LineShapes shapes_;
  std::string batch_text_;  ///< "global batch size:   128 " of the last line that was read in full
  std::size_t batch_at_ = 0;
  bool ramps_up_ = false;
  bool ramp_stated_ = false, no_ramp_ = false;  ///< by the arguments; by all of them, to their end
  std::optional<double> batch_of_lines_;        ///< since the arguments
  std::optional<Printed> batch_here_;           ///< of the line that was read in full last
  bool batch_is_of_lines_ = false;              ///< the setting is the first line's
  std::optional<bool> grouped_;  ///< as stated; where the line is lost, heads may share keys or not
};

}  // namespace
}  // namespace megatron

LineFormat megatron_format() {
  Format format;
  format.name = "megatron";
  format.flops_rate = Scope::gpu;
  format.convention = "megatron";
  format.averaged = {Field::seconds, Field::flops_rate, Field::loss};
  return {format,
          [](std::string_view text) {
            const auto rest = megatron::step_line(text);
            Step step;
            std::optional<Printed> batch;
            return rest.data() && megatron::read_numbers(rest, 0, step, batch);
          },
          [] { return std::unique_ptr<LineReader>(std::make_unique<megatron::Megatron>()); }};
}

}  // namespace assay::spec::audit
