#pragma once
// What a run shows while it goes: banner, step lines, progress bar, warnings, summary. It is fed the same
// events as the record, so everything printed is in the record.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <ostream>
#include <string>

#include "impl/logs/terminal.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::logs {

/// The step line, one width for all steps of a run: "step  12/250  loss  3.1416  norm  1.234  lr 3.00e-03
/// ...". MFU is "-" where the peak is unknown. No line break.
std::string step_line(const spec::record::Step& step, std::int64_t steps);

/// "validation 100/250  loss  3.1416  perplexity    23.14  bits/byte  4.5325", with ", the lowest so far"
/// where it is that. No line break.
std::string validation_line(const spec::record::Validation& validation, std::int64_t steps);

/// Where the time of profiled steps went: a row each of the `rows` parts that took longest, those that are
/// left over in one, and their sum, which is the step.
std::string profile_table(const spec::record::Profile& profile, std::size_t rows = 16);

/// Step lines, validations, samples and the summary are data and go to `data` (stdout); banner, bar and
/// messages to `messages` (stderr). The bar is drawn only when `messages` is a terminal, colours only where
/// allowed; where there is no bar, step lines end in elapsed time and ETA.
class Console {
 public:
  /// `log_every`: steps between step lines; the first and the last are always shown.
  Console(std::ostream& data, std::ostream& messages, Terminal terminal, std::int64_t log_every);

  /// Domain: a RunStart before anything else.
  void show(const spec::record::Event& event);
  /// The run goes on in another folder, that of `start`; prints nothing.
  void folder_is(const spec::record::RunStart& start) { start_ = start; }

 private:
  void show_event(const spec::record::RunStart& start);
  void show_event(const spec::record::Step& step);
  void show_event(const spec::record::Warning& warning);
  void show_event(const spec::record::Checkpoint& checkpoint);
  void show_event(const spec::record::ResumeFrom& resume);
  void show_event(const spec::record::WeightsFrom& weights);
  void show_event(const spec::record::Memory& memory);
  void show_event(const spec::record::Samples& samples);
  void show_event(const spec::record::Validation& validation);
  void show_event(const spec::record::SkippedStep& skipped);
  void show_event(const spec::record::Profile& profile);
  void show_event(const spec::record::RunEnd& end);

  void erase_bar();
  void draw_bar(std::int64_t step);
  void message(const std::string& text);
  double seconds_left(std::int64_t step) const;
  std::string times(const spec::record::Step& step) const;

  std::ostream& data_;
  std::ostream& messages_;
  Terminal terminal_;
  std::int64_t log_every_;
  spec::record::RunStart start_;
  std::optional<spec::record::ResumeFrom> resumed_;
  std::optional<spec::record::Validation> validated_;  ///< last
  std::optional<std::int64_t> saved_;                  ///< step of the last checkpoint
  std::int64_t skipped_ = 0;                           ///< steps, as the last one that was skipped says
  std::int64_t step_ = 0;                              ///< last shown
  std::deque<double> recent_seconds_;                  ///< of the last steps, for the ETA
  bool bar_drawn_ = false;
};

}  // namespace assay::impl::logs
