// torchtitan's console: formats.md, "torchtitan".
#include <algorithm>
#include <cmath>
#include <string>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/time_stamp.hpp"

namespace assay::spec::audit {
namespace torchtitan {
namespace {

/// Behind "step:" of a training step line, not of a validation's; data() is null on other lines.
std::string_view step_line(std::string_view text) {
  const std::size_t at = text.find("step:");
  if (at == std::string_view::npos) return {};
  const std::string_view before = text.substr(0, at), rest = text.substr(at + 5);
  if (before.ends_with("validate ") || before.find("context: val") != std::string_view::npos) return {};
  if (rest.find("loss:") == std::string_view::npos || number_token(rest).empty()) return {};
  return text.substr(at);
}

/// Blanks for the tabs that stand in their place in logs that were pasted.
std::string with_blanks(std::string_view text) {
  std::string out(text);
  std::replace(out.begin(), out.end(), '\t', ' ');
  return out;
}

/// Ranks without the pipeline's last stage have no loss, and print -1.
void forget_no_loss(Step& step) {
  if (step[Field::loss] && step[Field::loss]->value == -1) step[Field::loss].reset();
}

/// Reads a step line. False when it cannot be read.
bool read_numbers(std::string_view text, std::int64_t line, Step& step, TakenNumbers* taken = nullptr) {
  Scan scan(text, line, taken);
  scan.take(step, Field::step, "step:", Kind::counted, 1, {}, true);
  scan.take(step, Field::loss, " loss:", Kind::measured, 1, {}, true);
  forget_no_loss(step);
  scan.take(step, Field::gradient_norm, "grad_norm:", Kind::measured);
  scan.take(step, Field::memory_reserved, "memory:", Kind::measured, 0x1p30, "GiB");
  if (scan.has("GiB(")) scan.take(step, Field::memory_share, "(", Kind::measured, 0.01, "%");
  scan.take(step, Field::tokens_per_second, scan.has("tps:") ? "tps:" : "wps:", Kind::measured);
  // Formats without a peak of their own (fp8) print "N/A".
  if (!scan.has("tflops: N/A")) scan.take(step, Field::flops_rate, "tflops:", Kind::measured, 1e12);
  if (!scan.has("mfu: N/A")) scan.take(step, Field::mfu, "mfu:", Kind::measured, 0.01, "%");
  return !scan.bad();
}

/// One of these stands in every line that says something.
const Words& known_words() {
  static const Words words({"step:", " capacity: ", "Peak FLOPS used for computing MFU: ",
                            " total parameters", "device mesh with ", "global batch size ",
                            "tokens per train step", "Building ", "Float8", "Training starts at step "});
  return words;
}

class Torchtitan : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    if (line.text.find('\t') == std::string_view::npos) return read_spaced(line, builder);
    const std::string spaced = with_blanks(line.text);
    Line same = line;
    same.text = spaced;
    read_spaced(same, builder);
  }

 private:
  void read_spaced(const Line& line, RecordBuilder& builder) {
    if (builder.may_defer())
      if (auto glance = shapes_.glance(line)) {
        if (const auto stamp = stamps_.of(line.text, line.number))
          glance->marks.stamp = stamp->value, glance->marked = true;
        if (builder.defer(line.text, *glance, again_)) return;
      }
    Step step;
    if (shapes_.read(line, step)) {
      forget_no_loss(step);
      step[Field::elapsed] = stamps_.of(line.text, line.number);
      constexpr std::uint32_t stamped = std::uint32_t{1} << static_cast<int>(Field::elapsed);
      return builder.step(step, shapes_.fields() | stamped);
    }
    if (!may_say(known_words(), line.text)) return;
    if (const auto text = step_line(line.text); text.data()) {
      step[Field::elapsed] = stamps_.of(line.text, line.number);
      TakenNumbers taken;
      if (!read_numbers(text, line.number, step, &taken) || !(line.complete || text.ends_with('%')))
        return builder.unread(line.text);
      shapes_.learn(line, taken);
      return builder.step(step);
    }
    read_header(line.text, line.number, builder);
  }

  static void read_header(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    if (text.find("validate step:") != std::string_view::npos) {
      builder.validated();
    } else if (const auto rest = behind(text, " capacity: "); rest.data()) {
      const std::size_t with = rest.find(" with ");
      if (with != std::string_view::npos) {
        // Versions of 2024 put the device's index behind its name: "NVIDIA H100 (0)".
        const std::string_view name = rest.substr(0, with);
        const std::size_t index = name.ends_with(')') ? name.rfind(" (") : std::string_view::npos;
        builder.name(&RunRecord::gpu, name.substr(0, index));
        builder.setting(Setting::gpu_memory,
                        parse_printed(number_token(rest.substr(with + 6)), Kind::measured, 0x1p30, line));
      }
    } else if (const auto peak = behind(text, "Peak FLOPS used for computing MFU: "); peak.data()) {
      builder.setting(Setting::peak_flops, parse_printed(number_token(peak), Kind::measured, 1, line));
    } else if (text.find(" total parameters") != std::string_view::npos) {
      const auto model = behind(text, "Model ");
      const std::size_t size = model.find(" size: ");
      if (model.data() && size != std::string_view::npos) {
        builder.name(&RunRecord::model, trimmed(model.substr(0, size)));
        builder.setting(Setting::parameters,
                        parse_printed(number_token(model.substr(size + 7)), Kind::counted, 1, line));
      }
    } else if (text.find("device mesh with ") != std::string_view::npos) {
      read_mesh(text, line, builder);
    } else if (text.find("global batch size ") != std::string_view::npos ||
               text.find("tokens per train step") != std::string_view::npos) {
      read_batch(text, line, builder);
    } else if (text.find("Building ") != std::string_view::npos &&
               text.find("dim=") != std::string_view::npos) {
      read_model(text, line, builder);
    } else if (text.find("Float8") != std::string_view::npos &&
               text.find("active") != std::string_view::npos) {
      builder.name(&RunRecord::dtype, "fp8");
    }
    if (const auto start = behind(text, "Training starts at step "); start.data()) {
      const auto step = parse_printed(number_token(start), Kind::counted, 1, line);
      if (step && step->value > 1 && step->value < 1e15)
        builder.restart(static_cast<std::int64_t>(step->value) - 1);
      else if (step && step->value == 1)
        builder.begin_anew();
      // Its other numbers were given by "Trainer is initialized" already.
    }
  }

  static void read_model(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    constexpr std::pair<std::string_view, Setting> known[] = {
        {"dim", Setting::width},           {"n_layers", Setting::layers},   {"n_heads", Setting::heads},
        {"n_kv_heads", Setting::kv_heads}, {"head_dim", Setting::head_dim}, {"hidden_dim", Setting::ffn},
        {"vocab_size", Setting::vocab}};
    for (const auto& [name, setting] : known)
      if (const auto value = argument(text, name); value.data())
        builder.setting(setting, parse_printed(value, Kind::counted, 1, line));
    if (text.find("Building llama3 ") != std::string_view::npos ||
        text.find("Building llama2 ") != std::string_view::npos)
      read_llama(text, line, builder);
  }

  /// Llama's arguments leave nothing of a dense block open (models/llama3/model.py, FeedForward): three
  /// matrices, int(ffn_dim_multiplier int(2/3 4 dim)) wide, rounded up to a multiple of `multiple_of`; as
  /// many key/value heads as query heads where none are given; a head of its own.
  static void read_llama(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    const auto &width = builder.current(Setting::width), &heads = builder.current(Setting::heads);
    const auto multiple = parse_printed(argument(text, "multiple_of"), Kind::counted, 1, line);
    const std::string_view stretch = argument(text, "ffn_dim_multiplier");
    const auto stretched = parse_printed(stretch, Kind::counted);
    const bool plain = text.ends_with(')') && text.find("moe") == std::string_view::npos &&
                       text.find("experts") == std::string_view::npos &&
                       text.find("hidden_dim=") == std::string_view::npos &&
                       text.find("tying=True") == std::string_view::npos;
    if (text.find("tying=True") != std::string_view::npos) builder.tied_embeddings(true);
    if (!plain || !width || !heads || !multiple || !(multiple->value >= 1) ||
        !(stretched || stretch.starts_with("None")))
      return;
    double entries = std::floor(8 * width->value / 3);
    if (stretched) entries = std::floor(stretched->value * entries);
    entries = multiple->value * std::ceil(entries / multiple->value);
    if (!(entries >= 1 && entries <= 1e7)) return;
    builder.setting(Setting::ffn, exactly(entries, line));
    if (argument(text, "n_kv_heads").starts_with("None")) builder.setting(Setting::kv_heads, heads);
    builder.tied_embeddings(false);
    builder.mlp(BlockMlp{Mlp::swiglu, std::nullopt});
  }

  /// "parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=1, ep=1", or "['dp_shard', 'tp'], [4, 2]".
  static void read_mesh(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    double data = 1, tensor = 1, pipeline = 1, context = 1;
    bool any = false, whole = true;
    const auto take = [&](std::string_view name, std::string_view token) {
      const auto size = parse_printed(token, Kind::counted, 1, line);
      any = true;
      whole = whole && size && size->value >= 1;
      if (!whole) return;
      if (name.starts_with("dp"))
        data *= size->value;
      else if (name == "tp")
        tensor = size->value;
      else if (name == "pp")
        pipeline = size->value;
      else if (name == "cp")
        context = size->value;
    };
    if (text.find("parallelism:") != std::string_view::npos) {
      for (const std::string_view name : {"pp", "dp_replicate", "dp_shard", "cp", "tp"})
        if (const auto value = argument(text, name); value.data()) take(name, value);
      if (const auto value = argument(text, "ep"); value.data())
        builder.setting(Setting::expert_parallel, parse_printed(value, Kind::counted, 1, line));
    } else {
      const std::string_view mesh = behind(text, "device mesh with ");  // "[titan]" may stand before it
      std::string_view names = behind(mesh, "["), sizes = behind(mesh, "], [");
      while (names.data() && sizes.data()) {
        const std::size_t open = names.find('\''), close = names.find('\'', open + 1);
        const std::string_view token = number_token(sizes);
        whole = whole && close != std::string_view::npos && !token.empty() && open < names.find(']');
        if (!whole) break;
        take(names.substr(open + 1, close - open - 1), token);
        names = names.substr(close + 1);
        sizes = sizes.substr(static_cast<std::size_t>(token.data() - sizes.data()) + token.size());
        whole = sizes.starts_with(']') ? names.find('\'') > names.find(']') : sizes.starts_with(',');
        if (!whole || sizes.starts_with(']')) break;
        sizes.remove_prefix(1);
      }
    }
    // A line that is cut, or in other signs, says nothing of the GPUs.
    if (!any || !whole) return;
    builder.setting(Setting::data_parallel, exactly(data, line));
    builder.setting(Setting::tensor_parallel, exactly(tensor, line));
    builder.setting(Setting::pipeline_parallel, exactly(pipeline, line));
    builder.setting(Setting::context_parallel, exactly(context, line));
    builder.setting(Setting::gpus, exactly(data * tensor * pipeline * context, line));
  }

  static void read_batch(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    constexpr std::pair<std::string_view, Setting> known[] = {
        {"local batch size ", Setting::micro},
        {"global batch size ", Setting::sequences},
        {"gradient accumulation steps ", Setting::accumulation},
        {"gradient_accumulation_steps: ", Setting::accumulation},
        {"sequence length ", Setting::sequence_length},
        {"total steps ", Setting::max_steps},
        {"(warmup ", Setting::warmup_steps},
        {"per DP rank, ", Setting::tokens_per_step}};
    for (const auto& [key, setting] : known) {
      const auto rest = behind(text, key);
      // More follows each number of its sentence.
      const std::string_view token = key.ends_with(' ') ? followed_number(rest) : number_token(rest);
      if (rest.data()) builder.setting(setting, parse_printed(token, Kind::counted, 1, line));
    }
  }

  LineShapes shapes_;
  LineStamps stamps_{"step:"};
  ReadAgain again_ = [](std::string_view text, std::int64_t line, Step& step) {
    const std::string_view numbers = step_line(text);
    step[Field::elapsed] = time_stamp(text.substr(0, text.size() - numbers.size()), line);
    read_numbers(numbers, line, step);
  };
};

}  // namespace
}  // namespace torchtitan

LineFormat torchtitan_format() {
  Format format;
  format.name = "torchtitan";
  format.tokens_per_second = Scope::gpu;
  format.flops_rate = Scope::gpu;
  format.convention = "torchtitan";
  format.averaged = {Field::tokens_per_second, Field::flops_rate, Field::mfu};
  return {
      format,
      [](std::string_view text) {
        const std::string spaced = torchtitan::with_blanks(text);
        const auto rest = torchtitan::step_line(spaced);
        Step step;
        return rest.data() && torchtitan::read_numbers(rest, 0, step) &&
               (step[Field::tokens_per_second] || step[Field::memory_reserved] || step[Field::gradient_norm]);
      },
      [] { return std::unique_ptr<LineReader>(std::make_unique<torchtitan::Torchtitan>()); },
      {"step:"},
      "validate "};
}

}  // namespace assay::spec::audit
