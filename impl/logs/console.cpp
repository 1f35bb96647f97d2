#include "impl/logs/console.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "impl/logs/banner.hpp"
#include "impl/machine/disk_call.hpp"
#include "spec/text/labels.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::logs {
namespace {

using namespace spec::record;

constexpr std::size_t kEtaSteps = 20;
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kGreen = "\x1b[32m";
constexpr const char* kReset = "\x1b[0m";

std::string right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

/// As many of `digits` after the point as fit in `width`, else scientific; "nan" and "inf" as such.
std::string number(double value, int digits, std::size_t width) {
  for (int fraction = digits; fraction >= 0; --fraction) {
    const std::string text = spec::fixed(value, fraction);
    if (text.size() <= width) return right(text, width);
  }
  const std::string text = spec::scientific(value, 1);
  return right(text.size() <= width ? text : spec::scientific(value, 0), width);
}

}  // namespace

std::string step_line(const Step& step, std::int64_t steps) {
  const std::string all = std::to_string(steps);
  const double rate = std::isfinite(step.tokens_per_second) ? step.tokens_per_second : 0;
  std::string line = "step " + right(std::to_string(step.step), all.size()) + "/" + all;
  line += "  loss " + number(step.loss, 4, 7);
  line += "  norm " + number(step.gradient_norm, 3, 6);
  line += "  lr " + spec::scientific(step.learning_rate, 2);
  line += "  " + right(spec::grouped(static_cast<std::int64_t>(std::llround(rate))), 9) + " tok/s";
  line += "  MFU " + (step.mfu ? number(100 * *step.mfu, 1, 4) + "%" : std::string("    -"));
  if (step.hfu) line += "  HFU " + number(100 * *step.hfu, 1, 4) + "%";
  // Of routers: both losses without their coefficients, and the most loaded expert of the worst layer.
  if (step.balance_loss) line += "  balance " + number(*step.balance_loss, 3, 6);
  if (step.router_z_loss) line += "  router z " + number(*step.router_z_loss, 3, 6);
  if (step.load_balance_worst) line += "  load " + number(*step.load_balance_worst, 2, 5);
  if (step.router_entropy) line += "  entropy " + number(*step.router_entropy, 3, 5);
  if (step.dropped_choices) line += "  dropped " + number(100 * *step.dropped_choices, 1, 4) + "%";
  return line;
}

std::string validation_line(const Validation& validation, std::int64_t steps) {
  const std::string all = std::to_string(steps);
  std::string line = "validation " + right(std::to_string(validation.step), all.size()) + "/" + all;
  line += "  loss " + number(validation.loss, 4, 7);
  line += "  perplexity " + number(validation.perplexity, 3, 8);
  if (validation.bits_per_byte) line += "  bits/byte " + number(*validation.bits_per_byte, 4, 7);
  line += "  in " + spec::duration(validation.seconds);
  return line + (validation.lowest ? ", the lowest so far" : "");
}

std::string profile_table(const Profile& profile, std::size_t rows) {
  const auto row = [&](const std::string& name, const std::string& calls, double seconds) {
    return "  " + name + std::string(name.size() < 44 ? 44 - name.size() : 1, ' ') + right(calls, 8) + "  " +
           number(1e3 * seconds, 3, 10) + " ms  " +
           right(spec::percent(profile.seconds > 0 ? seconds / profile.seconds : 0), 7) + "\n";
  };
  const std::string steps =
      profile.first_step == profile.last_step
          ? "step " + std::to_string(profile.first_step)
          : "steps " + std::to_string(profile.first_step) + " to " + std::to_string(profile.last_step);
  std::string out = "profile of " + steps + ", a step by op\n";
  double rest = 0, calls = 0, sum = 0;
  std::size_t others = 0;
  for (std::size_t i = 0; i < profile.parts.size(); ++i) {
    const ProfiledPart& part = profile.parts[i];
    sum += part.seconds;
    if (i < rows)
      out += row(spec::printable(part.name), part.kind == "outside" ? "" : spec::fixed(part.calls, 0),
                 part.seconds);
    else
      ++others, rest += part.seconds, calls += part.calls;
  }
  if (others > 0) out += row(std::to_string(others) + " others", spec::fixed(calls, 0), rest);
  out += row("sum, the step", "", sum);
  if (profile.trace)
    out += "  trace: " + spec::printable(profile.path + "/" + *profile.trace) +
           "; open it in https://ui.perfetto.dev or chrome://tracing\n";
  return out;
}

Console::Console(std::ostream& data, std::ostream& messages, Terminal terminal, std::int64_t log_every)
    : data_(data),
      messages_(messages),
      terminal_(terminal),
      log_every_(std::max<std::int64_t>(log_every, 1)) {}

void Console::show(const Event& event) {
  const TerminalCall terminal;  // which takes no more where its reader stands still
  erase_bar();
  std::visit([this](const auto& each) { show_event(each); }, event);
  if (std::holds_alternative<Step>(event)) draw_bar(std::get<Step>(event).step);
}

void Console::show_event(const RunStart& start) {
  start_ = start;
  messages_ << banner(start, terminal_.unicode) << "\n" << std::flush;
}

void Console::show_event(const Step& step) {
  const bool first = step_ == 0;
  step_ = step.step;
  recent_seconds_.push_back(step.seconds);
  if (recent_seconds_.size() > kEtaSteps) recent_seconds_.pop_front();
  if (!first && step.step != start_.steps && step.step % log_every_ != 0) return;
  std::string line = step_line(step, start_.steps);
  if (!terminal_.messages_is_terminal) line += times(step);  // there is no bar to say it
  if (terminal_.data_is_terminal && terminal_.colour) {
    // "loss " and seven columns are bold: the number that people look for.
    const std::size_t at = line.find("  loss ") + 7;
    line.insert(at + 7, kReset);
    line.insert(at, kBold);
  }
  data_ << line << "\n" << std::flush;
}

void Console::show_event(const Warning& warning) {
  std::string label = "warning";
  if (warning.step) label += " at step " + std::to_string(*warning.step);
  if (terminal_.messages_is_terminal && terminal_.colour) label = kYellow + label + kReset;
  message(label + ": " + spec::printable(spec::without_labels(warning.text)) + " [" +
          spec::printable(warning.code) + "]");
}

void Console::show_event(const Checkpoint& checkpoint) {
  saved_ = checkpoint.step;
  message("checkpoint of step " + std::to_string(checkpoint.step) + ": " + spec::printable(checkpoint.path) +
          ", " + spec::bytes(checkpoint.bytes) + " in " + spec::duration(checkpoint.seconds) +
          (checkpoint.asynchronous.value_or(false) && checkpoint.delay_seconds
               ? " beside the steps, which waited " + spec::duration(*checkpoint.delay_seconds)
               : std::string()));
}

void Console::show_event(const ResumeFrom& resume) {
  resumed_ = resume;
  std::string text =
      "resuming after step " + std::to_string(resume.step) + " from " + spec::printable(resume.path);
  if (resume.changed)
    for (const ChangedSetting& setting : *resume.changed)
      text += "\n  " + spec::printable(setting.name) + " is " + spec::printable(spec::shown(setting.now)) +
              ", was " + spec::printable(spec::shown(setting.before));
  message(text);
}

void Console::show_event(const WeightsFrom& weights) {
  message("weights from " + spec::printable(weights.path) + ": " + spec::grouped(weights.parameters) +
          " parameters, " + spec::printable(weights.types) + ", " + spec::bytes(weights.bytes) +
          ", content " + spec::printable(weights.content));
}

/// The banner has shown the plan: only a measurement is news.
void Console::show_event(const Memory& memory) {
  if (!memory.measured_bytes) return;
  message(
      "memory of " + memory.device + " at step " + std::to_string(memory.step) + ": planned " +
      spec::bytes(memory.planned_bytes) + (memory.load ? " at most" : "") + ", measured " +
      spec::bytes(*memory.measured_bytes) +
      (memory.load ? " with up to " + spec::fixed(*memory.load, 2) + " times the mean rows of experts" : ""));
}

void Console::show_event(const Samples& samples) {
  data_ << samples_text(samples, terminal_.unicode) << std::flush;
}

void Console::show_event(const Validation& validation) {
  validated_ = validation;
  data_ << validation_line(validation, start_.steps) << "\n" << std::flush;
}

void Console::show_event(const SkippedStep& skipped) {
  step_ = skipped.step;
  std::string label = "step " + std::to_string(skipped.step) + " skipped";
  if (terminal_.messages_is_terminal && terminal_.colour) label = kYellow + label + kReset;
  message(label + ", it is not finite: " + spec::printable(skipped.reason) +
          "; weights and optimizer are as before it (" + spec::grouped(skipped.skipped) + " of " +
          spec::grouped(skipped.allowed) + " steps that may be skipped)");
  skipped_ = skipped.skipped;
}

void Console::show_event(const Profile& profile) { data_ << profile_table(profile) << std::flush; }

void Console::show_event(const RunEnd& end) {
  data_ << summary(start_, end, resumed_, validated_, skipped_) << std::flush;
}

void Console::message(const std::string& text) { messages_ << text << "\n" << std::flush; }

void Console::erase_bar() {
  if (!bar_drawn_) return;
  messages_ << "\r\x1b[K" << std::flush;
  bar_drawn_ = false;
}

double Console::seconds_left(std::int64_t step) const {
  const double sum = std::accumulate(recent_seconds_.begin(), recent_seconds_.end(), 0.0);
  return sum / static_cast<double>(recent_seconds_.size()) * static_cast<double>(start_.steps - step);
}

std::string Console::times(const Step& step) const {
  if (!step.elapsed_seconds) return "";
  std::string text = "  elapsed " + spec::duration(*step.elapsed_seconds);
  if (step.step < start_.steps) text += "  ETA " + spec::duration(seconds_left(step.step));
  return text;
}

void Console::draw_bar(std::int64_t step) {
  if (!terminal_.messages_is_terminal || start_.steps <= 0 || step >= start_.steps) return;
  const double share = static_cast<double>(step) / static_cast<double>(start_.steps);
  const std::string tail = " " + right(spec::percent(share, 0), 5) + "  ETA " +
                           spec::duration(seconds_left(step)) +
                           (saved_ ? "  saved " + spec::grouped(*saved_) : std::string());
  // One column stays free, or some terminals wrap.
  const int room = std::clamp(terminal_.width - 1 - static_cast<int>(tail.size()), 0, 48);
  const int full = static_cast<int>(share * room);
  std::string done, left;
  for (int i = 0; i < full; ++i) done += terminal_.unicode ? "━" : "=";
  for (int i = full; i < room; ++i) left += terminal_.unicode ? "─" : "-";
  if (terminal_.colour && !done.empty()) done = kGreen + done + kReset;
  messages_ << done << left << tail << std::flush;
  bar_drawn_ = true;
}

}  // namespace assay::impl::logs
