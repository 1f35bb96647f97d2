#include "impl/logs/tensorboard/event_writer.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include "impl/machine/disk_call.hpp"
#include "impl/machine/disk_fault.hpp"
#include "impl/machine/output_folder.hpp"
#include "spec/error.hpp"
#include "spec/record/fields.hpp"
#include "spec/text/utf8.hpp"

namespace assay::impl::logs::tensorboard {
namespace {

using namespace spec::record;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

struct Collector {
  Curves curves;

  void add(const char* tag, double value, const char* unit) { curves.scalars.push_back({tag, value, unit}); }
  void add(const char* tag, const std::optional<double>& value, const char* unit, double scale = 1) {
    if (value) add(tag, scale * *value, unit);
  }

  void operator()(const Step& step) {
    curves.step = step.step;
    add("loss/training", step.loss, "cross-entropy, nats per token");
    if (step.z_loss != 0) add("loss/z_loss", step.z_loss, "nats per token");
    add("optimizer/learning_rate", step.learning_rate, "of the step");
    add("optimizer/gradient_norm", step.gradient_norm, "before clipping");
    add("optimizer/clip_coefficient", step.clip_coefficient, "factor of clipping, at most 1");
    add("speed/tokens_per_second", step.tokens_per_second, "tokens/s of all ranks");
    add("speed/mfu", step.mfu, "model FLOP utilisation, % of the dense peak", 100);
    add("speed/hfu", step.hfu, "hardware FLOP utilisation, % of the dense peak", 100);
    add("memory/resident", static_cast<double>(step.resident_bytes) / (1 << 20), "of rank 0's process, MiB");
    if (step.device_peak_bytes > 0)
      add("memory/device_peak", static_cast<double>(step.device_peak_bytes) / (1 << 20),
          "of rank 0's GPU, MiB");
    add("time/step", step.seconds, "s");
    fields(step.phases, [&](const char* name, double seconds) {
      add((std::string("time/") + name).c_str(), seconds, "s of a step");
    });
    if (step.sources)
      for (const spec::record::StepSource& source : *step.sources) {
        const std::string of = "sources/" + source.name;
        add((of + "/loss").c_str(), source.loss, "cross-entropy, nats per token");
        add((of + "/tokens").c_str(), static_cast<double>(source.tokens), "of the step");
        add((of + "/epochs").c_str(), source.epochs, "read so far");
      }
    add("router/balance_loss", step.balance_loss, "summed over sparse layers, without its coefficient");
    add("router/z_loss", step.router_z_loss, "nats^2, summed over sparse layers, without its coefficient");
    add("router/load_worst", step.load_balance_worst, "of the busiest expert over the mean, worst layer");
    add("router/load_mean", step.load_balance_mean, "of the busiest expert over the mean, mean over layers");
    add("router/entropy", step.router_entropy, "nats");
    add("router/dropped", step.dropped_choices, "% of all choices", 100);
  }
  void operator()(const Validation& validation) {
    curves.step = validation.step;
    add("loss/validation", validation.loss, "cross-entropy, nats per token");
    add("validation/perplexity", validation.perplexity, "e to the loss");
    add("validation/bits_per_byte", validation.bits_per_byte, "bits per byte of text");
    add("validation/seconds", validation.seconds, "s that it took");
  }
  void operator()(const SkippedStep& skipped) {
    curves.step = skipped.step;
    add("optimizer/skipped_steps", static_cast<double>(skipped.skipped), "of the run so far");
  }
  template <class Other>
  void operator()(const Other&) {}
};

/// In Markdown.
std::string settings_table(const RunStart& start) {
  std::string table = "| setting | value |\n|---|---|\n| model | " + start.model + " |\n";
  for (const auto& [name, value] : start.settings) {
    std::string text = spec::toml_literal(value);
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
    table += "| " + name + " | " + text + " |\n";
  }
  return spec::valid_utf8(table);
}

std::string host_name() {
  char name[256] = "host";
  if (gethostname(name, sizeof name - 1) != 0) return "host";
  std::string text(name);
  for (char& c : text)
    if (c == '/') c = '_';
  return text;
}

std::string refusal(const std::filesystem::path& file, int reason) {
  return file.string() + ": cannot write the curves for TensorBoard: " + cause_of(reason);
}

}  // namespace

Curves curves_of(const Event& event) {
  Collector collector;
  std::visit(collector, event);
  return std::move(collector.curves);
}

EventWriter::EventWriter(const std::filesystem::path& folder, std::function<double()> now)
    : now_(now ? std::move(now) : seconds_since_1970) {
  const DiskCall disk;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  // TensorBoard reads the files of a folder in the order of their names, so they begin with the time.
  std::string seconds = std::to_string(static_cast<std::int64_t>(now_()));
  seconds.insert(0, seconds.size() < 10 ? 10 - seconds.size() : 0, '0');
  const std::string name =
      "events.out.tfevents." + seconds + "." + host_name() + "." + std::to_string(getpid()) + ".";
  try {
    const OutputFolder output(folder);
    std::optional<int> descriptor;
    for (int number = 0; !descriptor; ++number)
      descriptor = output.create((file_ = name + std::to_string(number)).string());
    file_ = folder / file_;
    records_.emplace(*descriptor);
  } catch (const UserError& failed) {
    throw UserError(ExitCode::io, std::string(failed.what()) + "; or leave out log.tensorboard");
  }
}

std::optional<std::string> EventWriter::move_to(const std::filesystem::path& folder) {
  if (!records_ || leads_to(folder / file_.filename(), records_->descriptor())) return {};
  file_ = folder / file_.filename();
  int reason = EEXIST;
  try {
    if (const auto descriptor = OutputFolder(folder).create(file_.filename().string()))
      if ((reason = records_->move_to(*descriptor).reason) != 0) close(*descriptor);
  } catch (const FileError& failed) {
    reason = failed.reason();
  }
  if (reason == 0) return {};
  records_.reset();
  return refusal(file_, reason) + "; the run goes on without them";
}

std::string EventWriter::begin(std::int64_t steps_done) {
  const double now = now_();
  std::string bytes = framed(version_event(now)) + framed(start_event(now, steps_done + 1)) +
                      framed(text_event(now, steps_done, "settings", settings_table(*start_)));
  start_.reset();
  return bytes;
}

std::string EventWriter::message_of(const Event& event) {
  if (const auto* start = std::get_if<RunStart>(&event)) {
    start_ = *start;
    return "";
  }
  std::string bytes;
  if (const auto* resume = std::get_if<ResumeFrom>(&event); resume && start_) bytes += begin(resume->step);
  Curves curves = curves_of(event);
  if (curves.scalars.empty()) return bytes;
  if (start_) bytes += begin(0);
  for (Scalar& scalar : curves.scalars)
    if (!described_.insert(scalar.tag).second) scalar.description.clear();
  return bytes + framed(scalars_event(now_(), curves.step, curves.scalars));
}

std::optional<std::string> EventWriter::write(const Event& event) {
  if (!records_) return {};
  const std::string bytes = message_of(event);
  if (bytes.empty()) return {};
  const int reason = records_->append(bytes);
  if (reason == 0) return {};
  records_.reset();
  return refusal(file_, reason) + "; the run goes on without them";
}

}  // namespace assay::impl::logs::tensorboard
