// nanoGPT's console: formats.md, "nanogpt".
#include <algorithm>
#include <cctype>
#include <cmath>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/setting_names.hpp"

namespace assay::spec::audit {
namespace nanogpt {
namespace {

/// From the number on of "iter 10: loss 5.1, ...", or of one that is right-aligned; data() is null on other
/// lines.
std::string_view step_line(std::string_view text) {
  std::size_t at = 0;
  while ((at = text.find("iter ", at)) != std::string_view::npos) {
    std::string_view rest = text.substr(at + 5);
    rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" \t")));
    std::size_t length = 0;
    while (length < rest.size() && std::isdigit(static_cast<unsigned char>(rest[length]))) ++length;
    if (length > 0 && rest.substr(length).starts_with(": loss ")) return rest;
    at += 5;
  }
  return {};
}

/// -100: not measured in the first iterations.
void forget_unmeasured(Step& step) {
  if (step[Field::mfu] && step[Field::mfu]->value == -1) step[Field::mfu].reset();
}

bool read_numbers(std::string_view text, std::int64_t line, Step& step, TakenNumbers* taken = nullptr) {
  Scan scan(text, line, taken);
  scan.take(step, Field::step, "", Kind::counted);
  scan.take(step, Field::loss, ": loss ", Kind::measured, 1, {}, true);
  scan.take(step, Field::seconds, "time ", Kind::measured, 1e-3, "ms", true);
  scan.take(step, Field::mfu, "mfu ", Kind::measured, 0.01, "%");
  forget_unmeasured(step);
  return !scan.bad();
}

/// gradient_accumulation_steps is of all ranks together; train.py divides it by their number.
constexpr SettingName known_settings[] = {{"batch_size", Setting::micro},
                                          {"block_size", Setting::sequence_length},
                                          {"gradient_accumulation_steps", Setting::accumulation_configured},
                                          {"n_layer", Setting::layers},
                                          {"n_head", Setting::heads},
                                          {"n_embd", Setting::width},
                                          {"learning_rate", Setting::learning_rate},
                                          {"min_lr", Setting::learning_rate_min},
                                          {"warmup_iters", Setting::warmup_steps},
                                          {"lr_decay_iters", Setting::decay_steps},
                                          {"max_iters", Setting::max_steps}};

/// One of these stands in every line that says something.
const Words& known_words() {
  static const Words words({"iter ", "tokens per iteration",
                            "number of parameters: ", "decayed parameter tensors: ", "vocab_size",
                            "Initializing a new model from scratch", " = "});
  return words;
}

class NanoGpt : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    if (builder.may_defer())
      if (const auto glance = shapes_.glance(line); glance && builder.defer(line.text, *glance, again_))
        return;
    Step step;
    if (shapes_.read(line, step)) {
      forget_unmeasured(step);
      return builder.step(step, shapes_.fields());
    }
    if (!may_say(known_words(), line.text)) return;
    if (const auto text = step_line(line.text); text.data()) {
      const bool ended = line.complete || text.ends_with("ms") || text.ends_with('%');
      TakenNumbers taken;
      if (!read_numbers(text, line.number, step, &taken) || !ended) return builder.unread(line.text);
      shapes_.learn(line, taken);
      return builder.step(step);
    }
    read_header(line.text, line.number, builder);
  }

 private:
  /// train.py of before May 2023 prints the tokens of one rank's passes, after it made eight times as many of
  /// them where there is one rank: the passes are what it says, for one rank and for several.
  static void read_passes(std::string_view tokens, std::int64_t line, RecordBuilder& builder) {
    const auto number = parse_printed(number_token(tokens), Kind::counted, 1, line);
    const auto &micro = builder.current(Setting::micro), &length = builder.current(Setting::sequence_length);
    if (!number || !micro || !length || !(micro->value > 0) || !(length->value > 0)) return;
    const double passes = number->value / (micro->value * length->value);
    if (passes >= 1 && passes == std::floor(passes))
      builder.setting(Setting::accumulation, exactly(passes, line));
  }

  static void read_header(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    if (const auto tokens = behind(text, "tokens per iteration will be: "); tokens.data()) {
      builder.setting(Setting::tokens_per_step, parse_printed(number_token(tokens), Kind::counted, 1, line));
    } else if (const auto of_rank = behind(text, "total number of tokens per iteration: "); of_rank.data()) {
      read_passes(of_rank, line, builder);
    } else if (const auto count = behind(text, "number of parameters: "); count.data()) {
      const std::string_view token = number_token(count);
      const std::string_view unit = count.substr(token.size());
      builder.setting(Setting::parameters,
                      parse_printed(token, Kind::measured, unit.starts_with("B") ? 1e9 : 1e6, line));
    } else if (text.starts_with("num ") &&
               text.find("decayed parameter tensors: ") != std::string_view::npos) {
      read_tensors(text, line, builder);
    } else if (const auto vocab = behind(text, "vocab_size of GPT-2 to "); vocab.data()) {
      builder.setting(Setting::vocab, parse_printed(followed_number(vocab), Kind::counted, 1, line));
    } else if (const auto found = behind(text, "found vocab_size = "); found.data()) {
      builder.setting(Setting::vocab, parse_printed(followed_number(found), Kind::counted, 1, line));
    } else if (const auto forced = behind(text, "forcing vocab_size="); forced.data()) {
      // A checkpoint's own: the vocabulary is the model's whatever was said before; passes may be shorter
      // than its positions where the configuration says so.
      builder.setting(Setting::vocab, parse_printed(number_token(forced), Kind::counted, 1, line));
      if (const auto length = behind(forced, "block_size=");
          length.data() && !builder.current(Setting::sequence_length))
        builder.setting(Setting::sequence_length,
                        parse_printed(number_token(length), Kind::counted, 1, line));
    } else if (text == "Initializing a new model from scratch") {
      builder.name(&RunRecord::weights, "new");
      builder.begin_anew();
    } else {
      const auto overriding = behind(text, "Overriding: ");
      read_assignment(overriding.data() ? overriding : text, line, builder);
    }
  }

  /// "num decayed parameter tensors: 50, with 124,354,560 parameters", and those that do not decay.
  static void read_tensors(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    const auto number = parse_printed(number_token(behind(text, "tensors: ")), Kind::counted, 1, line),
               entries = parse_printed(number_token(behind(text, ", with ")), Kind::counted, 1, line);
    if (!number || !entries || !text.ends_with(" parameters")) return;
    auto& tensors = builder.tensors();
    if (!tensors) tensors.emplace().line = line;
    const bool decayed = text.starts_with("num decayed ");
    (decayed ? tensors->matrices : tensors->vectors) = number->value;
    (decayed ? tensors->matrix_entries : tensors->vector_entries) = entries->value;
  }

  /// "batch_size = 12 # comment", "gradient_accumulation_steps = 5 * 8".
  static void read_assignment(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    const std::size_t equals = text.find(" = ");
    if (equals == std::string_view::npos || equals > 40) return;
    const std::string_view name = text.substr(0, equals);
    std::string_view value = text.substr(equals + 3);
    if (name == "dtype") {
      builder.name(&RunRecord::dtype, value.find("bfloat16") != std::string_view::npos  ? "bf16"
                                      : value.find("float16") != std::string_view::npos ? "fp16"
                                                                                        : "");
      return;
    }
    if (const SettingName* known = setting_named(known_settings, name)) {
      const std::string_view token = number_token(value);
      auto number = parse_printed(token, Kind::counted, 1, line);
      if (!token.empty())
        value = value.substr(static_cast<std::size_t>(token.data() - value.data()) + token.size());
      if (number && trimmed(value).starts_with("*")) {
        const auto factor = parse_printed(number_token(trimmed(value).substr(1)), Kind::counted, 1, line);
        number = factor ? parse_printed(token, Kind::counted, factor->value, line) : std::nullopt;
      }
      // Given in a program: exactly this number.
      if (number) builder.setting(known->setting, exactly(number->value, line));
    }
  }

  LineShapes shapes_;
  ReadAgain again_ = [this](std::string_view text, std::int64_t line, Step& step) {
    if (shapes_.read(text, line, step) == 0) read_numbers(step_line(text), line, step);
    forget_unmeasured(step);
  };
};

}  // namespace
}  // namespace nanogpt

LineFormat nanogpt_format() {
  Format format;
  format.name = "nanogpt";
  format.convention = "nanogpt_legacy_v1";
  format.first_step_is_zero = true;
  format.averaged = {Field::mfu};
  return {format,
          [](std::string_view text) {
            const auto rest = nanogpt::step_line(text);
            Step step;
            return rest.data() && nanogpt::read_numbers(rest, 0, step);
          },
          [] { return std::unique_ptr<LineReader>(std::make_unique<nanogpt::NanoGpt>()); },
          {"iter "}};
}

}  // namespace assay::spec::audit
