// llm.c's console (train_gpt2.cu): formats.md, "llmc".
#include <cctype>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/setting_names.hpp"
#include "spec/audit/readers/train_gpt2_header.hpp"

namespace assay::spec::audit {
namespace llmc {
namespace {

/// "step    1/19560 | loss ..." (older: "| train loss ..."); data() is null on other lines.
std::string_view step_line(std::string_view text) {
  const auto [behind_word, after] = behind_step(text);
  return after.starts_with('/') && after.find("| ") != std::string_view::npos &&
                 after.find("loss ") != std::string_view::npos
             ? behind_word
             : std::string_view();
}

/// The part of a line between two bars that ends in `suffix`, without it; `from` is where it is looked for
/// first, and moves behind it.
std::string_view part_before(std::string_view text, std::string_view suffix, std::size_t& from) {
  std::size_t end = text.find(suffix, from);
  if (end == std::string_view::npos && from > 0) end = text.find(suffix);
  if (end == std::string_view::npos) return {};
  from = end + suffix.size();
  std::size_t begin = end;
  while (begin > 0 && text[begin - 1] != '|') --begin;
  std::string_view part = trimmed(text.substr(begin, end - begin));
  if (part.starts_with('(')) part.remove_prefix(1);  // train_gpt2.py: "(45.12 ms | 90778 tok/s)"
  return part;
}

/// -100: no peak is known for this GPU.
void forget_unmeasured(Step& step) {
  if (step[Field::mfu] && step[Field::mfu]->value == -1) step[Field::mfu].reset();
}

bool read_numbers(std::string_view text, std::int64_t line, Step& step, TakenNumbers* taken = nullptr) {
  Scan scan(text, line, taken);
  scan.take(step, Field::step, "", Kind::counted, 1, "/");
  scan.take(step, Field::planned_steps, "/", Kind::counted);
  scan.take(step, Field::loss, "loss ", Kind::measured, 1, {}, true);
  scan.take(step, Field::gradient_norm, "norm ", Kind::measured);
  scan.take(step, Field::learning_rate, "lr ", Kind::measured);
  std::size_t from = text.size() - scan.rest().size();
  const auto ending = [&](Field field, std::string_view suffix, double unit) {
    const std::string_view part = part_before(text, suffix, from);
    if (part.data() == nullptr) return;
    const auto number = parse_printed(part, Kind::measured, unit, line);
    if (!number) scan.spoil();
    step[field] = number;
    if (taken) taken->add(part.data(), field, Kind::measured, unit);
  };
  ending(Field::seconds, " ms ", 1e-3);
  if (text.find("MFU", from) != std::string_view::npos) ending(Field::mfu, "% ", 0.01);
  ending(Field::tokens_per_second, " tok/s", 1);
  forget_unmeasured(step);
  return !scan.bad() && step[Field::seconds];
}

constexpr SettingName rows[] = {{"micro batch size B", Setting::micro},
                                {"batch size B", Setting::micro},
                                {"sequence length T", Setting::sequence_length},
                                {"total batch size", Setting::tokens_per_step},
                                {"learning rate (LR)", Setting::learning_rate, Kind::measured},
                                {"warmup iterations", Setting::warmup_steps},
                                {"peak TFlops", Setting::peak_flops, Kind::measured, 1e12},
                                {"vocab_size V", Setting::vocab},
                                {"num_layers L", Setting::layers},
                                {"num_heads NH", Setting::heads},
                                {"channels C", Setting::width},
                                {"num_parameters", Setting::parameters},
                                {"train_num_batches", Setting::max_steps},
                                {"num_processes", Setting::gpus}};

/// One of these stands in every line that says something and is no row of a table.
const Words& known_words() {
  static const Words words = [] {
    std::vector<std::string_view> all = {"setting grad_accum_steps=", "total average iteration time: ",
                                         "batch_size B=", "num_parameters: ", "device memory usage: "};
    all.insert(all.end(), std::begin(TrainGpt2Header::words), std::end(TrainGpt2Header::words));
    return Words(all);
  }();
  return words;
}

class LlmC : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    if (!in_use_ && builder.may_defer() && builder.current(Setting::max_steps))
      if (const auto glance = shapes_.glance(line); glance && builder.defer(line.text, *glance, again_))
        return;
    Step step;
    if (builder.current(Setting::max_steps) && shapes_.read(line, step)) {
      forget_unmeasured(step);
      take_memory(step);
      return builder.step(step, shapes_.fields());
    }
    if (!may_say(known_words(), line.text, line.text.find('|') != std::string_view::npos)) return;
    const auto text = step_line(line.text);
    if (!text.data()) return read_header(line.text, line.number, builder);
    TakenNumbers taken;
    if (read_numbers(text, line.number, step, &taken) &&
        (line.complete || text.ends_with("tok/s") || text.ends_with("tok/s)"))) {
      if (!builder.current(Setting::max_steps))
        builder.summary(Setting::max_steps, step[Field::planned_steps]);
      shapes_.learn(line, taken);
      take_memory(step);
      builder.step(step);
    } else {
      builder.unread(line.text);
    }
  }

 private:
  void read_header(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    if (header_.read(text, line, builder)) return;
    if (const auto steps = behind(text, "setting grad_accum_steps="); steps.data()) {
      builder.setting(Setting::accumulation, parse_printed(number_token(steps), Kind::counted, 1, line));
    } else if (const auto mean = behind(text, "total average iteration time: "); mean.data()) {
      builder.summary(Setting::average_seconds,
                      parse_printed(number_token(mean), Kind::measured, 1e-3, line));
    } else if (text.starts_with("batch_size B=")) {
      constexpr SettingName known[] = {{"B", Setting::micro},
                                       {"T", Setting::sequence_length},
                                       {"num_processes", Setting::gpus},
                                       {"total_batch_size", Setting::tokens_per_step}};
      for (const SettingName& one : known)
        builder.setting_again(one.setting, parse_printed(argument(text, one.name), one.kind, one.unit, line));
    } else if (const auto count = behind(text, "num_parameters: "); count.data()) {
      builder.setting(Setting::parameters, parse_printed(number_token(count), Kind::counted, 1, line));
    } else if (const auto memory = behind(text, "device memory usage: "); memory.data()) {
      // "62003 MiB / 81251 MiB": of the device in use, and its whole; divided as integers (train_gpt2.cu).
      const auto mebibytes = [&](std::string_view rest) -> std::optional<Printed> {
        const auto number = parse_printed(number_token(rest), Kind::counted, 0x1p20, line);
        if (!number) return std::nullopt;
        return Printed{number->value, number->value, number->value + 0x1p20, line};
      };
      builder.setting(Setting::gpu_memory, mebibytes(behind(memory, "MiB / ")));
      in_use_ = mebibytes(memory);
    } else if (text.starts_with("| ")) {
      read_row(text.substr(2), line, builder);
    }
  }

  /// "random" of earlier versions; of later ones what was to be loaded: a description of a model that is made
  /// new ("d12", "gpt2:d48", "gpt3:c768"), not a file (train_gpt2.cu, gpt_build_from_descriptor).
  static bool of_new_weights(std::string_view value) {
    if (value == "random") return true;
    if (value.starts_with("gpt2:d") || value.starts_with("gpt3:c"))
      value.remove_prefix(6);
    else if (value.starts_with('d'))
      value.remove_prefix(1);
    else
      return false;
    return !value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos;
  }

  /// "| sequence length T     | 1024      |"
  static void read_row(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    const std::size_t bar = text.find('|');
    if (bar == std::string_view::npos) return;
    const std::string_view name = trimmed(text.substr(0, bar));
    std::string_view value = text.substr(bar + 1);
    value = trimmed(value.substr(0, value.rfind('|')));
    if (name == "device") return builder.name(&RunRecord::gpu, value);
    if (name == "weight init method" && of_new_weights(value))
      return builder.name(&RunRecord::weights, "new");
    if (name == "LR scheduler") return builder.name(&RunRecord::schedule, value);
    if (name == "precision")
      return builder.name(&RunRecord::dtype, value == "BF16"   ? "bf16"
                                             : value == "FP16" ? "fp16"
                                             : value == "TF32" ? "tf32"
                                                               : "fp32");
    if (name == "final LR fraction") {
      const auto share = parse_printed(value, Kind::measured);
      const auto& highest = builder.current(Setting::learning_rate);
      if (share && highest) builder.setting(Setting::learning_rate_min, product(*share, *highest, line));
      return;
    }
    if (const SettingName* row = setting_named(rows, name)) {
      const auto number = parse_printed(value, row->kind, row->unit, line);
      if (number && number->value != -row->unit) builder.setting(row->setting, number);  // -1: not set
    }
  }

  /// What the header says to be in use stands at the first step behind it.
  void take_memory(Step& step) {
    if (in_use_) step[Field::memory_reserved] = in_use_;
    in_use_.reset();
  }

  TrainGpt2Header header_;
  std::optional<Printed> in_use_;
  LineShapes shapes_;
  ReadAgain again_ = [](std::string_view text, std::int64_t line, Step& step) {
    read_numbers(step_line(text), line, step);
  };
};

}  // namespace
}  // namespace llmc

LineFormat llmc_format() {
  Format format;
  format.name = "llmc";
  format.tokens_per_second = Scope::all;
  format.convention = "llmc";
  format.averaged = {Field::tokens_per_second};
  return {format,
          [](std::string_view text) {
            const auto rest = llmc::step_line(text);
            Step step;
            return rest.data() && llmc::read_numbers(rest, 0, step);
          },
          [] { return std::unique_ptr<LineReader>(std::make_unique<llmc::LlmC>()); },
          {step_word}};
}

}  // namespace assay::spec::audit
