// Console log of llm_TII (enhanced_training_system/train.py): formats.md, "llm_tii". Keys are looked for, not
// separators: the box characters between them arrive as UTF-8, as mojibake, or as bars.
#include "spec/audit/readers/line_reader.hpp"

#include <cctype>
#include <initializer_list>

#include "spec/audit/readers/llm_tii_header.hpp"
#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit {
namespace {

/// One of these stands in every line that says something.
const Words& known_words() {
  static const Words words = [] {
    std::vector<std::string_view> all = llm_tii::header_words();
    all.insert(all.end(), {"Iter ", "Achieved: ", "FLOPs/token: ", "Memory: ", "Gradients: norm="});
    return Words(all);
  }();
  return words;
}

class LlmTii : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    const std::string_view text = line.text;
    if (text.find(':') == std::string_view::npos) return;  // a rule between quotes
    if (Step known; shapes_.read(line, known) && take_known(known, line, builder)) return builder.took();
    if (!may_say(known_words(), text)) return;
    if (const auto step = step_key(text); step.data()) {
      read_step(step, line, builder);
    } else if (text.find("MFU: ") != std::string_view::npos &&
               text.find("Achieved: ") != std::string_view::npos) {
      read_mfu(line, builder);
    } else if (text.find("Tokens/s: ") != std::string_view::npos &&
               text.find("FLOPs/token: ") != std::string_view::npos) {
      read_rate(line, builder);
    } else if (text.find("Memory: ") != std::string_view::npos &&
               text.find(" alloc") != std::string_view::npos) {
      read_memory(line, builder);
    } else if (open_ && text.find("Gradients: norm=") != std::string_view::npos) {
      Scan scan(text, line.number);
      scan.take(step_, Field::gradient_norm, "norm=", Kind::measured);
      if (scan.bad()) builder.unread(text);
    } else {
      return read_header(text, line.number, builder);
    }
    builder.took();
  }

  void finish(RecordBuilder& builder) override { emit(builder); }

  /// The text behind "Iter " of a step line; without data() on other lines.
  static std::string_view step_key(std::string_view text) {
    std::size_t at = 0;
    while ((at = text.find("Iter ", at)) != std::string_view::npos) {
      std::string_view rest = text.substr(at + 5);
      while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
      std::size_t length = 0;
      while (length < rest.size() && std::isdigit(static_cast<unsigned char>(rest[length]))) ++length;
      const std::string_view after = rest.substr(length);
      if (length > 0 && (after.starts_with(": loss ") || after.find("Loss:") != std::string_view::npos))
        return rest;
      at += 5;
    }
    return {};
  }

 private:
  static constexpr std::initializer_list<Field> rate_fields = {Field::tokens_per_second,
                                                               Field::flops_per_token},
                                                memory_fields = {Field::memory_allocated, Field::memory_peak,
                                                                 Field::memory_reserved};

  void emit(RecordBuilder& builder) {
    if (open_) builder.step(step_);
    open_ = false;
  }
  Step& begin(const Line& line, RecordBuilder& builder) {
    emit(builder);
    step_ = Step();
    step_.line = line.number;
    if (line.rank >= 0) step_[Field::rank] = exactly(line.rank, line.number);
    open_ = true;
    return step_;
  }

  void read_step(std::string_view text, const Line& line, RecordBuilder& builder) {
    Step step;
    TakenNumbers taken;
    Scan scan(text, line.number, &taken);
    scan.take(step, Field::step, "", Kind::counted);
    const bool warming = scan.has(": loss ");
    scan.take(step, Field::loss, warming ? "loss " : "Loss:", Kind::measured, 1, {}, true);
    scan.take(step, Field::seconds, warming ? "time " : "Time:", Kind::measured, 1e-3, "ms", true);
    scan.take(step, Field::learning_rate, "LR:", Kind::measured);
    if (scan.bad() || (!line.complete && !warming)) {
      emit(builder);
      builder.unread(line.text);
      return;
    }
    shapes_.learn(line, taken);
    take(step, line, builder);
  }

  /// A line like one before it; false where it says more than its numbers.
  bool take_known(const Step& known, const Line& line, RecordBuilder& builder) {
    if (known[Field::step]) return take(known, line, builder), true;
    if (known[Field::mfu]) return take_mfu(known, line, builder), true;
    if (known[Field::memory_peak]) return put(known, memory_fields), true;
    if (!builder.current(Setting::parameters)) return false;
    return put(known, rate_fields), true;
  }

  /// Into the open step, if there is one.
  void put(const Step& step, std::initializer_list<Field> fields) {
    if (!open_) return;
    for (const Field field : fields) step_[field] = step[field];
  }

  void take_mfu(const Step& step, const Line& line, RecordBuilder& builder) {
    if (!open_ || step_[Field::mfu]) begin(line, builder);  // a quote without its first line
    put(step, {Field::mfu, Field::flops_rate, Field::peak_flops});
  }

  void take(const Step& step, const Line& line, RecordBuilder& builder) {
    Step& next = begin(line, builder);
    next.fields = step.fields;
    if (line.rank >= 0) next[Field::rank] = exactly(line.rank, line.number);
  }

  void read_mfu(const Line& line, RecordBuilder& builder) {
    Step step;
    TakenNumbers taken;
    Scan scan(line.text, line.number, &taken);
    scan.take(step, Field::mfu, "MFU: ", Kind::measured, 0.01, "%", true);
    scan.take(step, Field::flops_rate, "Achieved: ", Kind::measured, 1e12, "TF");
    scan.take(step, Field::peak_flops, "Peak: ", Kind::measured, 1e12, "TF");
    if (scan.bad()) return builder.unread(line.text);
    shapes_.learn(line, taken);
    take_mfu(step, line, builder);
  }

  void read_rate(const Line& line, RecordBuilder& builder) {
    if (!open_) return;
    Step step;
    TakenNumbers taken;
    Scan scan(line.text, line.number, &taken);
    scan.take(step, Field::tokens_per_second, "Tokens/s: ", Kind::measured);
    scan.take(step, Field::flops_per_token, "FLOPs/token: ", Kind::measured, 1e9, "GF");
    if (scan.bad()) return builder.unread(line.text);
    shapes_.learn(line, taken);
    put(step, rate_fields);
    if (scan.has("6N+12LHQT")) builder.format().convention = "palm_total";
    if (!builder.current(Setting::parameters))
      builder.summary(Setting::parameters, scan.after("N=", Kind::measured, 1e9, "B"));
  }

  void read_memory(const Line& line, RecordBuilder& builder) {
    if (!open_) return;
    Step step;
    TakenNumbers taken;
    Scan scan(line.text, line.number, &taken);
    scan.take(step, Field::memory_allocated, "Memory: ", Kind::measured, 1e9, "GB alloc");
    // Box characters stand between the parts: the next number is looked for behind the next blank.
    const auto part = [&](std::string_view suffix, Field field) -> std::optional<Printed> {
      const std::size_t end = line.text.find(suffix);
      if (end == std::string_view::npos) return std::nullopt;
      const std::size_t blank = line.text.substr(0, end).rfind(' '),
                        from = blank == std::string_view::npos ? 0 : blank + 1;
      taken.add(line.text.data() + from, field, Kind::measured, 1e9);
      return parse_printed(line.text.substr(from, end - from), Kind::measured, 1e9, line.number);
    };
    step[Field::memory_peak] = part(" GB peak", Field::memory_peak);
    step[Field::memory_reserved] = part(" GB reserved", Field::memory_reserved);
    if (scan.bad() || !step[Field::memory_peak] || !step[Field::memory_reserved])
      return builder.unread(line.text);
    shapes_.learn(line, taken);
    put(step, memory_fields);
  }

  /// Settings end the step that is open.
  void read_header(std::string_view text, std::int64_t number, RecordBuilder& builder) {
    if (llm_tii::begins_a_header(text)) emit(builder);
    llm_tii::read_header(text, number, builder);
  }

  Step step_;
  bool open_ = false;
  LineShapes shapes_;
};

bool recognises(std::string_view text) {
  const std::string_view step = LlmTii::step_key(text);
  if (step.data() == nullptr)
    return text.find("MFU: ") != std::string_view::npos &&
           text.find("Achieved: ") != std::string_view::npos && text.find(" TF") != std::string_view::npos;
  return step.find("ms") != std::string_view::npos;
}

}  // namespace

LineFormat llm_tii_format() {
  Format format;
  format.name = "llm_tii";
  format.first_step_is_zero = true;
  return {format,
          recognises,
          [] { return std::unique_ptr<LineReader>(std::make_unique<LlmTii>()); },
          {"Iter ", "Achieved: "}};
}

}  // namespace assay::spec::audit
