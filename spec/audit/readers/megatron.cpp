// Megatron-LM's console and those of its descendants (Megatron-DeepSpeed, GPT-NeoX, ROCm's and Ascend's
// forks): formats.md, "megatron".
#include <cmath>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/megatron_batch.hpp"
#include "spec/audit/readers/megatron_broken.hpp"
#include "spec/audit/readers/megatron_header.hpp"
#include "spec/audit/readers/megatron_lines.hpp"
#include "spec/audit/readers/megatron_unsaid.hpp"
#include "spec/audit/readers/nanotron.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/time_stamp.hpp"

namespace assay::spec::audit {
namespace megatron {
namespace {

/// One of these stands in every line that says something: first those of lines that are no header's.
const Words& known_words() {
  static const Words words = [] {
    std::vector<std::string_view> all = {"iteration", "memory (MB)", "[after training is done]", "] step="};
    all.insert(all.end(), std::begin(Header::words), std::end(Header::words));
    all.push_back(nanotron::Run::configuration_word);
    return Words(all);
  }();
  return words;
}
enum KnownWord : std::uint64_t {
  iteration = 1,
  memory = 2,
  training_is_done = 4,
  deepspeed_step = 8,
  of_header = 16
};

class Megatron : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    const bool behind_step = broken_.holds() || line.number == behind_known_;
    if (broken_.holds()) {
      const bool others = has_others(line.text);
      if (!others && broken_.join(line)) return builder.took();
      const std::int64_t takings = builder.takings();
      read_held(builder);
      builder.took_before(takings);
      builder.at(line.number, line.rank);
      if (others) return;
    }
    if (read_known(line, builder)) {
      behind_known_ = line.number + 1;
      return;
    }
    const std::uint64_t words = words_of(known_words(), line.text, nanotron_.in_configuration());
    const bool header = words >= of_header || nanotron_.in_configuration();
    if (words == 0 && !header) return read_torn(line, behind_step, builder);
    if (has_others(line.text)) return;
    if ((words & iteration) != 0 && begins_step(line.text)) {
      broken_.hold(line);  // it may go on
      return builder.took();
    }
    if ((words & memory) != 0 && line.text.find("max allocated:") != std::string_view::npos)
      // A number at the end of a line that is cut may be cut too.
      return line.complete ? read_memory(line.text, line.number, builder) : void();
    if (header && Header::starts(line.text)) {
      emit(builder);
      unsaid_ = Unsaid();
    }
    if (header && Header::ends_arguments(line.text)) batch_.begin();
    // What falls back behind it is another run's, whether or not its arguments are there.
    if ((words & training_is_done) != 0) {
      emit(builder);
      builder.begin_anew();
    }
    if ((words & deepspeed_step) != 0 && read_skipped(line.text, line.number)) return;
    if ((words & iteration) != 0 && stops_timer(line.text)) return builder.paused();
    if (!header) return read_torn(line, behind_step, builder);
    header_.read(line.text, line.number, builder);
    nanotron_.read_header(line.text, line.number, builder);
  }
  void finish(RecordBuilder& builder) override {
    if (broken_.holds()) read_held(builder);
    emit(builder);
  }

 private:
  void emit(RecordBuilder& builder) {
    if (open_) builder.step(step_);
    if (open_ && skips_untold_) builder.skips_shown_untold();
    if (open_ && skips_cut_off_) builder.skips_cut_off();
    open_ = false;
  }

  /// Of an evaluation or of saving: training.py stops the timer of iterations around both.
  static bool stops_timer(std::string_view text) {
    const auto at = behind(text, " at iteration ");
    return at.data() && (text.find("validation loss at ") != std::string_view::npos ||
                         text.find("saving checkpoint at ") != std::string_view::npos);
  }

  /// "[Rank 0] step=2, skipped=1, lr=[1.5e-07], mom=[(0.9, 0.95)]": DeepSpeed's, of all steps since the
  /// start.
  bool read_skipped(std::string_view text, std::int64_t line) {
    const auto step = behind(text, "] step="), skipped = behind(step, ", skipped=");
    if (!step.data() || !skipped.data()) return false;
    const auto number = parse_printed(number_token(step), Kind::counted, 1, line);
    skipped_told_ = parse_printed(number_token(skipped), Kind::counted, 1, line);
    told_step_ = number ? number->value : -1;
    return true;
  }

  /// A line counts those since the line before; DeepSpeed's count goes before it.
  void count_skipped(std::int64_t line) {
    auto& skipped = step_[Field::skipped];
    const auto& number = step_[Field::step];
    const double counted = skipped_ + (skipped && std::isfinite(skipped->value) ? skipped->value : 0);
    if (skipped_told_ && number && number->value == told_step_) {
      skips_untold_ = skips_untold_ || skipped_told_->value > counted;
      skipped = skipped_told_;
      skipped_ = skipped->value;
    } else if (skips_untold_ || header_.skips_untold()) {
      skipped.reset();
    } else if (skipped) {
      skipped = exactly(skipped_ = counted, line);
    }
  }

  void open(const Step& step, const Line& line, RecordBuilder& builder) {
    builder.took();
    step_ = step;
    step_.line = line.number;
    // "[2025-11-15 12:34:56.789]": later versions to a millisecond or less, most to a second.
    step_[Field::elapsed] = time_stamp(line.text.substr(0, line.text.find("iteration")), line.number);
    // Printed of the iterations since the last line.
    if (const auto& number = step_[Field::step]; number && !(number->value > first_))
      first_ = number->value, skipped_ = 0, skips_untold_ = false;  // another run's
    count_skipped(line.number);
    if (line.rank >= 0) step_[Field::rank] = exactly(line.rank, line.number);
    if (batch_.here()) step_[Field::step_sequences] = exactly(batch_.here()->value, line.number);
    open_ = true;
  }

  /// A line like one before it, of a run whose plan and batch are known, or whose batch grows.
  bool read_known(const Line& line, RecordBuilder& builder) {
    Step step;
    if (!shapes_.read(line, step)) return false;
    const bool same = batch_.same(line.text);
    if (step[Field::gpu_tokens_per_second]) {  // nanotron's alone
      if (!same) return false;
      emit(builder);
      if (!builder.current(Setting::max_steps) || !nanotron_.read_alike(line.text, line.number, step))
        return false;
      open(step, line, builder);
      return true;
    }
    const auto batch = same ? batch_.here() : batch_.of(line.text, line.number);
    if (!same && !batch) return false;
    emit(builder);
    const bool settled = builder.current(Setting::sequences) || batch_.grows();
    const bool device_known = !step[Field::memory_share] || builder.current(Setting::gpu_memory);
    if (!builder.current(Setting::max_steps) || !settled || !device_known) return false;
    if (!same || !builder.current(Setting::sequences)) batch_.take(batch, header_.no_ramp(), builder);
    if (!same) batch_.remember(line.text);
    open(step, line, builder);
    unsaid_.read(line.text, step, batch_.here(), builder);
    return true;
  }

  /// What is left of a step line and goes on with none: its numbers are lost. One part may be named so by
  /// chance, but not right behind a step.
  static void read_torn(const Line& line, bool behind_step, RecordBuilder& builder) {
    if (parts_of_step(line.text) >= (behind_step ? 1 : 2)) builder.unread(line.text);
  }

  void read_held(RecordBuilder& builder) {
    const bool broken = broken_.joined();
    const Line line = broken_.take();
    builder.at(line.number, line.rank);
    if (broken && read_known(line, builder)) return;
    if (const auto text = step_line(line.text); text.data())
      read_step(text, line, builder);
    else
      builder.unread(line.text);  // its time is lost
  }

  void read_step(std::string_view text, const Line& line, RecordBuilder& builder) {
    emit(builder);
    Step step;
    Beside beside;
    TakenNumbers taken;
    const std::string_view before =
        line.text.substr(0, static_cast<std::size_t>(text.data() - line.text.data()));
    if (!read_before(before, line.number, step, &taken) ||
        !read_numbers(text, line.number, step, beside, &taken) ||
        (!line.complete && !trimmed(text).ends_with('|')) || (beside.open_end && ends_in_bar_))
      return builder.unread(line.text);
    const bool bar = trimmed(text).ends_with('|'), whole = bar || !ends_in_bar_;  // else of no line behind it
    ends_in_bar_ = ends_in_bar_ || bar;
    const std::optional<Printed>& batch = beside.batch;
    if (!builder.current(Setting::max_steps)) builder.summary(Setting::max_steps, step[Field::planned_steps]);
    if (beside.of_all_gpus) {
      nanotron_.read_step(text, line.number, step, batch, builder);
      if (step[Field::gpu_tokens_per_second]) {
        batch_.remember(line.text);
        if (whole) shapes_.learn(line, taken);
      }
      return open(step, line, builder);
    }
    batch_.take(batch, header_.no_ramp(), builder);
    if (beside.device_memory && !builder.current(Setting::gpu_memory))
      builder.summary(Setting::gpu_memory, beside.device_memory);
    unsaid_.read(line.text, step, batch, builder);
    batch_.remember(line.text);
    skips_cut_off_ = skips_cut_off_ || !step[Field::skipped];
    if (beside.open_end)
      builder.cut_end();
    else if (whole)
      shapes_.learn(line, taken);
    open(step, line, builder);
  }

  /// "[Rank 0] (after 10 iterations) memory (MB) | allocated: ... |": of the iteration before; several ranks
  /// print it, the first one counts.
  void read_memory(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    builder.took();
    if (!open_ || step_[Field::memory_peak]) return;
    if (text.find("max reserved:") == std::string_view::npos || text.ends_with('.'))
      return builder.cut_end();  // its last number
    Step step;
    Scan scan(text, line);
    scan.take(step, Field::memory_allocated, "| allocated:", Kind::measured, 0x1p20);
    scan.take(step, Field::memory_peak, "max allocated:", Kind::measured, 0x1p20);
    scan.take(step, Field::memory_reserved, "max reserved:", Kind::measured, 0x1p20);
    if (scan.bad()) return builder.unread(text);
    for (const Field field : {Field::memory_allocated, Field::memory_peak, Field::memory_reserved})
      step_[field] = step[field];
  }

  BrokenLine broken_;
  Header header_;
  Unsaid unsaid_;
  nanotron::Run nanotron_;
  Step step_;
  bool open_ = false;
  std::int64_t behind_known_ = 0;        ///< number of the line behind one that was read like one before it
  double first_ = HUGE_VAL;              ///< number of the run's first line
  double skipped_ = 0;                   ///< iterations so far whose update was left out
  bool skips_cut_off_ = false;           ///< lines end before their count
  bool skips_untold_ = false;            ///< the lines do not count all of them
  std::optional<Printed> skipped_told_;  ///< by DeepSpeed, last
  double told_step_ = -1;
  LineShapes shapes_;
  BatchOfLines batch_;
  bool ends_in_bar_ = false;  ///< the lines do: a number without one behind it is cut
};

}  // namespace
}  // namespace megatron

LineFormat megatron_format() {
  Format format;
  format.name = "megatron";
  format.tokens_per_second = format.flops_rate = Scope::gpu;
  format.convention = "megatron";
  format.averaged = {Field::seconds, Field::tokens_per_second, Field::flops_rate, Field::loss};
  return {format,
          [](std::string_view text) {
            const auto rest = megatron::step_line(text);
            const auto readable = [](std::string_view numbers) {
              Step step;
              megatron::Beside beside;
              return megatron::read_numbers(numbers, 0, step, beside);
            };
            // What stands behind its last bar may go on in the next line.
            return (rest.data() && (readable(rest) || readable(rest.substr(0, rest.rfind('|'))))) ||
                   megatron::begins_broken(text);
          },
          [] { return std::unique_ptr<LineReader>(std::make_unique<megatron::Megatron>()); },
          {"iteration"}};
}

}  // namespace assay::spec::audit
