// KempnerForge's console: formats.md, "kempnerforge".
#include <cctype>
#include <cmath>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit {
namespace kempnerforge {
namespace {

constexpr std::string_view step_start = "[step ";

/// "125k": the prefix belongs to the number, and to its rounding.
void take_rate(Scan& scan, Step& step) {
  constexpr std::string_view key = "tok/s=";
  const std::string_view number = scan.behind_next(key);
  if (!number.data() || !scan.after(key, Kind::measured)) return;
  const std::string_view rest = scan.rest();
  const double unit =
      prefix_unit(rest.substr(0, rest.empty() || !std::isalpha(static_cast<unsigned char>(rest[0])) ? 0 : 1));
  if (unit == 0) return scan.spoil();
  scan.take_at(step, Field::tokens_per_second, number, Kind::measured, unit);
}

bool read_numbers(std::string_view text, std::int64_t line, Step& step, TakenNumbers* taken = nullptr) {
  Scan scan(text, line, taken);
  scan.take(step, Field::step, step_start, Kind::counted, 1, "]", true);
  scan.take(step, Field::loss, "loss=", Kind::measured, 1, {}, true);
  scan.take(step, Field::learning_rate, "lr=", Kind::measured);
  scan.take(step, Field::gradient_norm, "grad_norm=", Kind::measured);
  take_rate(scan, step);
  scan.take(step, Field::mfu, "mfu=", Kind::measured, 0.01, "%");
  scan.take(step, Field::memory_peak, "mem=", Kind::measured, 0x1p30);
  scan.take(step, Field::seconds, "step_time=", Kind::measured, 1, "s");
  return !scan.bad();
}

bool starts_as_step(std::string_view text) {
  const std::size_t at = text.find(step_start);
  return at != std::string_view::npos && text.find("] loss=", at) != std::string_view::npos;
}

/// One of these stands in every line that says something.
const Words& known_words() {
  static const Words words({step_start, "DeviceMesh: ", "Training config: ", " parameters",
                            "Detected GPU: ", "Starting training: ", "Training complete: "});
  return words;
}

class KempnerForge : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    if (builder.may_defer() && memory_known_)
      if (const auto glance = shapes_.glance(line); glance && builder.defer(line.text, *glance, again_))
        return;
    Step step;
    if (memory_known_ && shapes_.read(line, step)) return builder.step(step, shapes_.fields());
    if (!may_say(known_words(), line.text)) return;
    if (!starts_as_step(line.text)) return read_header(line.text, line.number, builder);
    TakenNumbers taken;
    if (read_numbers(line.text, line.number, step, &taken) && (line.complete || line.text.ends_with('s'))) {
      if (!memory_known_) read_memory(line.text, line.number, builder);
      shapes_.learn(line, taken);
      builder.step(step);
    } else {
      builder.unread(line.text);
    }
  }

 private:
  /// "mem=37.2/140GB", in units of 2^30.
  void read_memory(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    const auto memory = behind(text, "mem=");
    const std::size_t slash = memory.find('/');
    if (!memory.data() || slash == std::string_view::npos) return;
    builder.setting(Setting::gpu_memory,
                    parse_printed(number_token(memory.substr(slash + 1)), Kind::measured, 0x1p30, line));
    memory_known_ = true;
  }

  static void read_config(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    constexpr std::pair<std::string_view, Setting> known[] = {
        {"dim", Setting::width},           {"n_layers", Setting::layers},
        {"n_heads", Setting::heads},       {"n_kv_heads", Setting::kv_heads},
        {"vocab_size", Setting::vocab},    {"ffn_hidden_dim", Setting::ffn},
        {"batch_size", Setting::micro},    {"seq_len", Setting::sequence_length},
        {"max_steps", Setting::max_steps}, {"grad_accum_steps", Setting::accumulation},
        {"lr", Setting::learning_rate},    {"warmup_steps", Setting::warmup_steps}};
    for (const auto& [name, setting] : known)
      if (const auto value = argument(text, name); value.data())
        builder.setting(setting, parse_printed(value, Kind::counted, 1, line));
    if (const auto tied = behind(text, "tie_embeddings=");
        tied.starts_with("True") || tied.starts_with("False"))
      builder.tied_embeddings(tied.starts_with("True"));
    read_blocks(text, line, builder);
    const auto ratio = parse_printed(argument(text, "min_lr_ratio"), Kind::counted);
    const auto& highest = builder.current(Setting::learning_rate);
    if (ratio && highest) builder.setting(Setting::learning_rate_min, product(*ratio, *highest, line));
    if (const auto decay = behind(text, "decay_steps="); decay.data())
      builder.setting(Setting::decay_steps, decay.starts_with("None")
                                                ? builder.current(Setting::max_steps)
                                                : parse_printed(number_token(decay), Kind::counted, 1, line));
    if (const auto schedule = behind(text, "SchedulerType."); schedule.data())
      builder.name(&RunRecord::schedule, schedule.substr(0, schedule.find(':')));
    if (const auto dtype = behind(text, "mixed_precision='"); dtype.data())
      builder.name(&RunRecord::dtype, dtype.substr(0, dtype.find('\'')));
  }

  /// The MLP of a block: of three matrices where it is gated (silu), else of two (model/mlp.py), and without
  /// ffn_hidden_dim as wide as int(4 dim (2/3) ffn_dim_multiplier), rounded up to a multiple of 256
  /// (config/model.py). Nothing is said of blocks that have experts, other norms, or see images. Versions
  /// that know experts say how many in every configuration: one that is whole and names none is of dense
  /// blocks.
  static void read_blocks(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    const auto activation = behind(text, "Activation.");
    const bool names_none = text.find("experts") == std::string_view::npos &&
                            text.find("moe_") == std::string_view::npos && text.ends_with(')');
    if ((argument(text, "num_experts") != "0" && !names_none) ||
        text.find("NormType.rmsnorm") == std::string_view::npos ||
        text.find("VLMConfig(") != std::string_view::npos || !activation.data())
      return;
    builder.mlp(BlockMlp{activation.starts_with("silu") ? Mlp::swiglu : Mlp::gelu, std::nullopt});
    const auto& width = builder.current(Setting::width);
    const auto multiplier = parse_printed(argument(text, "ffn_dim_multiplier"), Kind::counted);
    if (argument(text, "ffn_hidden_dim") != "None" || !width || !multiplier) return;
    const double entries = std::floor(4 * width->value * (2.0 / 3.0) * multiplier->value);
    if (entries >= 1 && entries <= 1e7)
      builder.setting(Setting::ffn, exactly(256 * std::ceil(entries / 256), line));
  }

  /// "dims=['dp_shard', 'tp'], sizes=[2, 4], world_size=8"
  static void read_mesh(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    double data = 1;
    std::string_view names = behind(text, "dims=["), sizes = behind(text, "sizes=[");
    while (names.data() && sizes.data()) {
      const std::size_t open = names.find('\''), close = names.find('\'', open + 1);
      const std::string_view token = number_token(sizes);
      if (close == std::string_view::npos || token.empty()) break;
      const std::string_view name = names.substr(open + 1, close - open - 1);
      const auto size = parse_printed(token, Kind::counted, 1, line);
      if (name.starts_with("dp") && size) data *= size->value;
      if (name == "tp") builder.setting(Setting::tensor_parallel, size);
      if (name == "pp") builder.setting(Setting::pipeline_parallel, size);
      if (name == "ep") builder.setting(Setting::expert_parallel, size);
      names = names.substr(close + 1);
      sizes = sizes.substr(static_cast<std::size_t>(token.data() - sizes.data()) + token.size());
      if (!sizes.starts_with(',')) break;
      sizes.remove_prefix(1);
    }
    builder.setting(Setting::data_parallel, exactly(data, line));
    builder.setting(Setting::gpus, parse_printed(argument(text, "world_size"), Kind::counted, 1, line));
  }

  static void read_header(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    if (text.find("DeviceMesh: ") != std::string_view::npos) {
      read_mesh(text, line, builder);
    } else if (text.find("Training config: ") != std::string_view::npos) {
      read_config(text, line, builder);
    } else if (const auto model = behind(text, "Model: "); model.data() && text.ends_with(" parameters")) {
      builder.setting(Setting::parameters, parse_printed(number_token(model), Kind::counted, 1, line));
    } else if (const auto gpu = behind(text, "Detected GPU: "); gpu.data()) {
      const std::size_t arrow = gpu.find(" \xe2\x86\x92 ");
      builder.name(&RunRecord::gpu, gpu.substr(0, arrow));
      if (arrow != std::string_view::npos)
        builder.setting(Setting::peak_flops,
                        parse_printed(followed_number(gpu.substr(arrow + 5)), Kind::measured, 1e12, line));
    } else if (text.find("Starting training: ") != std::string_view::npos) {
      builder.setting_again(Setting::max_steps,
                            parse_printed(argument(text, "max_steps"), Kind::counted, 1, line));
      builder.setting_again(Setting::micro,
                            parse_printed(argument(text, "batch_size"), Kind::counted, 1, line));
      builder.setting_again(Setting::accumulation,
                            parse_printed(argument(text, "grad_accum"), Kind::counted, 1, line));
      builder.setting_again(Setting::gpus,
                            parse_printed(argument(text, "world_size"), Kind::counted, 1, line));
      const auto step = parse_printed(argument(text, "step"), Kind::counted, 1, line);
      if (step && step->value > 0 && step->value < 1e15)
        builder.restart(static_cast<std::int64_t>(step->value));
      else if (step && step->value == 0)
        builder.begin_anew();
    } else if (const auto done = behind(text, "Training complete: "); done.data()) {
      Scan scan(done, line);
      builder.summary(Setting::final_step, scan.after("", Kind::counted));
      builder.summary(Setting::total_tokens, scan.after("steps, ", Kind::counted, 1, "tokens"));
    }
  }

  bool memory_known_ = false;
  LineShapes shapes_;
  ReadAgain again_ = [](std::string_view text, std::int64_t line, Step& step) {
    read_numbers(text, line, step);
  };
};

}  // namespace
}  // namespace kempnerforge

LineFormat kempnerforge_format() {
  Format format;
  format.name = "kempnerforge";
  format.tokens_per_second = Scope::all;
  format.convention = "kempnerforge";
  return {format,
          [](std::string_view text) {
            Step step;
            return kempnerforge::starts_as_step(text) && kempnerforge::read_numbers(text, 0, step);
          },
          [] { return std::unique_ptr<LineReader>(std::make_unique<kempnerforge::KempnerForge>()); },
          {kempnerforge::step_start}};
}

}  // namespace assay::spec::audit
