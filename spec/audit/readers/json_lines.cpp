#include "spec/audit/readers/json_lines.hpp"

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "spec/audit/readers/json_path.hpp"
#include "spec/audit/readers/json_scan.hpp"
#include "spec/audit/readers/log_shape.hpp"
#include "spec/audit/readers/null_losses.hpp"
#include "spec/audit/readers/row_kind.hpp"
#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit {
namespace {

class JsonLines : public LineReader {
 public:
  explicit JsonLines(const Mapping& mapping) : mapping_(mapping) {}

  void read(const Line& line, RecordBuilder& builder) override {
    if (builder.may_defer())
      if (const auto glance = shapes_.glance(line); glance && builder.defer(line.text, *glance, again_))
        return;
    if (trimmed(line.text).empty() || others_.glance(line)) return;
    values_.begin(line.number);
    if (shapes_.read(line, values_.step)) return builder.step(values_.step, shapes_.fields());
    const bool was_known = values_.rate_since_start;
    bool whole = scan_line(line);
    // The key that names the writer may stand behind those that he alone means.
    if (values_.rate_since_start != was_known) values_.begin(line.number), whole = scan_line(line);
    if (whole)
      for (std::size_t i = 0; i < field_count; ++i) filled_[i] = filled_[i] || values_.step.fields[i];
    if (!whole && is_elision(line.text))
      builder.left_out();
    else if (!whole || values_.unreadable)
      builder.unread(line.text);
    else if (values_.of_validation)
      builder.paused();
    else if (!values_.known && !mapping_.shares_are_open())
      others_.learn(line, values_.taken);
    else if (values_.known) {
      const bool null = is_null(values_.step[Field::loss]);
      if (null && !null_rows_.is_step(values_.step, builder.last_number())) values_.step[Field::loss].reset();
      if (!mapping_.says_something(values_.step) && values_.plain && !mapping_.shares_are_open())
        others_.learn(line, values_.taken);
      if (!mapping_.says_something(values_.step) || values_.is_no_step()) return;
      if (values_.plain) shapes_.learn(line, values_.taken);
      if (values_.rewards) builder.of_rewards();
      builder.format().rate_since_start = values_.rate_since_start;
      if (is_null(values_.step[Field::loss]))
        builder.null_loss();
      else if (values_.step[Field::loss])
        null_rows_.saw(values_.step);
      builder.step(values_.step);
    }
  }

  void finish(RecordBuilder& builder) override {
    const auto& [key, word] = values_.validation_said;
    if (builder.steps_seen() == 0 && !key.empty()) refuse_validations_alone(key, word);
    mapping_.require_keys(filled_, values_.keys);
  }

 private:
  /// Whether the line is one whole value.
  bool scan_line(const Line& line) {
    paths_.begin();
    MemoryBytes bytes(line.text);
    JsonScan scan(bytes, paths_);
    return !line.overlong && scan.value() && (scan.blanks(), bytes.peek() < 0);
  }

  struct Values : JsonValues {
    Mapping& mapping;
    std::size_t next = 0;
    Step step;
    TakenNumbers taken;
    std::vector<std::string> keys;
    bool rewards = false;
    bool known = false, unreadable = false, plain = true;  // plain: each number is one field's
    bool of_validation = false;                            // by the row's own word,
    std::pair<std::string, std::string> validation_said;   // and the last key and word that said so
    bool counted = false, with_loss = false;               // keys of LLaMA-Factory's, whatever is mapped
    bool any_with_loss = false;                            // in any line so far
    bool rate_since_start = false;                         // likewise: Format::rate_since_start
    explicit Values(Mapping& m) : mapping(m) {}
    void begin(std::int64_t line) {
      next = 0;
      step = Step();
      step.line = line;
      known = unreadable = counted = with_loss = of_validation = false;
      taken.clear();
      plain = true;
    }
    /// LLaMA-Factory writes how far it is with evaluations and at its end too, without a loss, and with the
    /// number of the step before. Its steps have the key "loss": where the command line maps other keys, and
    /// no line has that one, the lines are another writer's.
    bool is_no_step() const {
      return counted && !with_loss && !step[Field::loss] && (any_with_loss || !mapping.stated());
    }
    void value(std::string_view path, JsonKind kind, std::string_view token) override {
      counted = counted || path == "current_steps";
      if (counted) rate_since_start = mapping.know_llama_factory();
      with_loss = with_loss || path == "loss";
      any_with_loss = any_with_loss || with_loss;
      if (kind == JsonKind::word) return word(path, token);
      note_key(keys, path);
      if (kind == JsonKind::text && is_of_validation(path, token))
        of_validation = true, validation_said = {std::string(path), std::string(token)};
      rewards = rewards || of_rewards(path);
      if (mapping.shares_are_open()) mapping.settle_shares(path, token);
      const std::span<const Mapping::Meaning> meanings = mapping.meanings(path, next);
      const Mapping::Taken how = Mapping::take(step, meanings, token, step.line);
      known = known || how == Mapping::Taken::read;
      unreadable = unreadable || how == Mapping::Taken::unreadable;
      if (meanings.empty()) return;
      plain = plain && meanings.size() == 1 && kind == JsonKind::number;
      taken.add(token.data(), meanings[0].field, meanings[0].kind, meanings[0].unit);
    }
    void word(std::string_view path, std::string_view token) {
      if (token != "null") return;
      const std::span<const Mapping::Meaning> meanings = mapping.meanings(path, next);
      if (meanings.empty() || meanings[0].field != Field::loss) return;
      note_key(keys, path);
      step[Field::loss] = null_loss(step.line);
      known = true, plain = false;
    }
  };
  Mapping mapping_;
  void read_again(std::string_view text, std::int64_t line, Step& step) {
    Values values(mapping_);
    values.begin(line);
    JsonPaths paths(values);
    MemoryBytes bytes(text);
    JsonScan(bytes, paths).value();
    step = values.step;
  }

  ReadAgain again_ = [this](std::string_view text, std::int64_t line, Step& step) {
    if (shapes_.read(text, line, step) == 0) read_again(text, line, step);
  };
  LineShapes shapes_{Notation::json}, others_{Notation::json};  // of steps; of rows that say nothing
  NullLossRows null_rows_;
  Values values_{mapping_};
  JsonPaths paths_{values_};
  std::array<bool, field_count> filled_{};
};

}  // namespace

std::unique_ptr<LineReader> make_json_lines(const Mapping& mapping) {
  return std::make_unique<JsonLines>(mapping);
}

}  // namespace assay::spec::audit
