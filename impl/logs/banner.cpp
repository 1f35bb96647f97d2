#include "impl/logs/banner.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "spec/batch/ramp.hpp"
#include "spec/count.hpp"
#include "spec/record/goodput.hpp"
#include "spec/record/run.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/ranks.hpp"
#include "spec/text/utf8.hpp"

namespace assay::impl::logs {
namespace {

using spec::grouped;
using namespace spec::record;

std::string plural(std::int64_t count, const std::string& noun) {
  const std::string ending = count == 1 ? "" : noun.ends_with("ch") ? "es" : "s";
  return grouped(count) + " " + noun + ending;
}

/// "  label       text", the label padded so that all texts start in one column.
std::string row(const std::string& label, const std::string& text) {
  return "  " + label + std::string(label.size() < 12 ? 12 - label.size() : 1, ' ') + text + "\n";
}

std::string setting(const RunStart& start, const std::string& name) {
  for (const auto& [key, value] : start.settings)
    if (key == name)
      if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "";
}

/// Where attention stops within a sequence; empty: nowhere.
std::string documents(const RunStart& start) {
  if (setting(start, "data.document_ends") == "on")
    return "attention stays within documents, which end where the files say so";
  for (const auto& [key, value] : start.settings)
    if (const auto* token = std::get_if<std::int64_t>(&value);
        token && key == "data.end_of_document" && *token >= 0)
      return "attention stays within documents, which end at token " + std::to_string(*token);
  return "";
}

/// "a.bin, b.bin and 97 more"
std::string files_of(const RunStart& start) {
  constexpr std::size_t most = 8;
  const std::vector<std::string>& files = start.data.files;
  std::string out;
  for (std::size_t i = 0; i < std::min(most, files.size()); ++i)
    out += (i ? ", " : "") + spec::printable(files[i]);
  return files.size() <= most ? out : out + " and " + std::to_string(files.size() - most) + " more";
}

std::string hardware(const RunStart& start) {
  std::string text = start.cpu + ", " + plural(start.cores, "core") + ", " + spec::bytes(start.memory_bytes);
  if (!start.gpus.empty())
    text = std::to_string(start.gpus.size()) + " x " + start.gpus[0].name + " (" +
           spec::bytes(start.gpus[0].memory_bytes) + "), host " + text;
  return text;
}

std::int64_t ranks_of(const RunStart& start) { return start.batch.ranks * start.tensor_ranks.value_or(1); }

std::string where(const RunStart& start) {
  std::set<std::string> hosts;
  for (const RankPlacement& place : start.ranks) hosts.insert(place.host);
  std::string text = spec::data_ranks_text(start.batch.ranks, start.tensor_ranks.value_or(1));
  if (ranks_of(start) == 1) return text;
  text += " on " + plural(static_cast<std::int64_t>(hosts.size()), "host");
  if (start.layout && start.layout->data != "replicate") text += ", " + start.layout->data;
  if (start.expert_ranks) text += ", experts over " + spec::ranks_text(*start.expert_ranks);
  return text;
}

/// `text` in a column of `width` characters: filled up or cut with three points; control characters as
/// spaces.
std::string column(const std::string& text, std::size_t width) {
  std::vector<std::string> characters;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = std::max<std::size_t>(spec::utf8_length(rest), 1);
    const bool control = static_cast<unsigned char>(rest[0]) < 0x20 || rest[0] == 0x7f;
    characters.push_back(control ? " " : std::string(rest.substr(0, length)));
    rest.remove_prefix(length);
  }
  if (characters.size() > width) {
    characters.resize(width - 3);
    characters.emplace_back("...");
    width = characters.size();
  }
  std::string out;
  for (const std::string& character : characters) out += character;
  return out + std::string(width - characters.size(), ' ');
}

/// Up to which rows of experts the plan of the memory holds, where routing decides them.
std::string loads(const spec::record::RunStart& start) {
  if (!start.planned_load || !start.most_load) return "";
  if (*start.planned_load >= *start.most_load) return ", whatever the routing";
  return ", with up to " + spec::fixed(*start.planned_load, 2) +
         " times the mean rows of experts (routing can bring " + spec::fixed(*start.most_load, 2) + ")";
}

std::string of_all(std::int64_t part, std::int64_t all) {
  std::string text = grouped(part) + " of " + grouped(all);
  if (all == 0) return text;
  return text + " (" + spec::percent(static_cast<double>(part) / static_cast<double>(all), 0) + ")";
}

}  // namespace

std::string banner(const RunStart& start, bool unicode) {
  const Batch& batch = start.batch;
  const spec::GlobalBatch global = spec::record::global_batch(start);
  const Count run_tokens = Count(spec::sequences_before(global, start.steps)) * batch.sequence_length;
  const std::string dtype = setting(start, "compute.dtype");
  std::string out = "assay " + start.version + ": training " + spec::printable(start.model) + "\n\n";
  out +=
      row("model", grouped(start.parameters) + " parameters, vocabulary of " + plural(start.vocab, "token"));
  out +=
      row("compute", grouped(start.flops_per_token) + " FLOPs per token, forward and backward (exact count)" +
                         (dtype.empty() ? "" : ", in " + dtype));
  out += row("batch", plural(batch.sequences, "sequence") + " x " + plural(batch.sequence_length, "token") +
                          " = " + grouped(batch.tokens) + " tokens per step");
  out += row("", "made of " + plural(batch.micro, "sequence") + " per micro-batch x " +
                     plural(batch.accumulation, "micro-batch") + " x " + where(start));
  if (!global.ramp.empty()) {
    std::string stages;
    for (const spec::RampStage& stage : global.ramp)
      stages += (stages.empty() ? "" : ", then ") + plural(stage.sequences, "sequence") + " for " +
                plural(stage.steps, "step");
    out += row("", "after a ramp: " + stages);
  }
  out += row("run", plural(start.steps, "step") + ", " + grouped(run_tokens) + " tokens, " +
                        spec::si((run_tokens * start.flops_per_token).to_double(), "FLOP"));
  out += row("data", spec::printable(start.data.description));
  if (!start.data.files.empty()) out += row("", files_of(start));
  if (const std::string ends = documents(start); !ends.empty()) out += row("", ends);
  if (start.data.floor)
    out += row("", "its entropy is " + spec::fixed(*start.data.floor, 4) +
                       " nats per token: the floor of any model's expected loss");
  if (start.validation) out += row("validation", spec::printable(*start.validation));
  out += row("hardware", hardware(start));
  if (start.planned_memory_bytes)
    out += row("memory", spec::bytes(*start.planned_memory_bytes) + " at the fullest moment of a step" +
                             (ranks_of(start) > 1 ? ", on each rank" : "") + loads(start));
  if (start.linear) out += row("linears", *start.linear);
  if (start.attention && start.deterministic)
    out += row("attention",
               *start.attention + (*start.deterministic ? "; the run gives the same bits when it is repeated"
                                                        : "; the run's last bits are its own"));
  if (start.expected_first_loss)
    out += row("first loss",
               "expected " + spec::fixed(start.expected_first_loss->mean, 4) + (unicode ? " ± " : " +- ") +
                   spec::fixed(start.expected_first_loss->standard_deviation, 4) + " nats per token");
  else if (const std::string weights = setting(start, "model.weights"); !weights.empty() && weights != "none")
    out += row("first loss", "that of trained weights: below log V = " +
                                 spec::fixed(std::log(static_cast<double>(start.vocab)), 4) +
                                 " nats per token, where a uniform guess lies");
  else
    out += row("first loss", "not expected: a step of " +
                                 grouped(spec::sequences_of(global, 0) * batch.sequence_length) +
                                 " tokens is too long to read before this is printed");
  const std::string folder = setting(start, "run.directory");
  if (!folder.empty()) out += row("record", spec::printable(folder) + "/run.jsonl");
  return out;
}

std::string samples_text(const Samples& samples, bool unicode) {
  const std::string yes = unicode ? "✓" : "yes", no = unicode ? "✗" : "no";
  std::size_t width = 12;
  for (const Sample& sample : samples.samples)
    width = std::max(width, std::min<std::size_t>(sample.text.size(), 64));
  std::string out =
      samples.samples.empty() ? "" : "\n  " + column("sampled text", width) + "  grammar  sum\n";
  for (const Sample& sample : samples.samples) {
    std::string line =
        "  " + column(spec::valid_utf8(sample.text), width) + "  " + column(sample.accepted ? yes : no, 7);
    if (sample.sum_right) line += std::string("  ") + (*sample.sum_right ? "right" : "wrong");
    while (line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  out += "\n" + row("sentences", of_all(samples.accepted, samples.judged) + " accepted by the grammar");
  if (samples.sums > 0) out += row("sums", of_all(samples.sums_right, samples.sums) + " right");
  return out;
}

std::string summary(const RunStart& start, const RunEnd& end, const std::optional<ResumeFrom>& resumed,
                    const std::optional<Validation>& validated, std::int64_t skipped) {
  const std::string totals =
      plural(end.steps, "step") +
      (resumed ? " since the resume after step " + grouped(resumed->step) : std::string()) + ", " +
      plural(end.tokens, "token") + " in " + spec::duration(end.seconds) + ", " +
      grouped(static_cast<std::int64_t>(std::llround(end.tokens_per_second))) + " tokens/s";
  std::string out = "\n";
  switch (end.reason) {
    case EndReason::done:
      out += "done: ";
      break;
    case EndReason::saved:
      out += "stopped and saved: ";
      break;
    case EndReason::non_finite:
      out += "stopped, a number is not finite: ";
      break;
    case EndReason::error:
      out += "stopped by an error: ";
      break;
  }
  out += totals + "\n\n";
  if (end.message)
    out += row(end.reason == EndReason::done ? "note" : "reason", spec::printable(*end.message));
  if (end.final_loss)
    out += row("loss", spec::fixed(*end.final_loss, 4) + " nats per token" +
                           (end.final_steps ? ", mean of the last " + plural(*end.final_steps, "step") : ""));
  if (validated)
    out += row(
        "validation",
        spec::fixed(validated->loss, 4) + " nats per token after step " + grouped(validated->step) +
            (validated->bits_per_byte ? ", " + spec::fixed(*validated->bits_per_byte, 4) + " bits per byte"
                                      : ""));
  if (end.floor) out += row("floor", spec::fixed(*end.floor, 4) + " nats per token, the entropy of the data");
  if (end.gap_closed && *end.gap_closed >= 0)
    out +=
        row("gap closed", spec::percent(*end.gap_closed) + " of the way from log V = " +
                              spec::fixed(std::log(static_cast<double>(start.vocab)), 4) + " to the floor");
  if (skipped > 0) out += row("skipped", plural(skipped, "step") + " that were not finite");
  if (end.run_goodput && end.run_goodput->seconds > 0)
    out += row("goodput", goodput_text(*end.run_goodput));
  else if (end.goodput && end.goodput->seconds > 0)
    out +=
        row("goodput", grouped(static_cast<std::int64_t>(std::llround(end.goodput->tokens_per_second))) +
                           " tokens/s over " + spec::duration(end.goodput->seconds) +
                           (resumed ? " since this start of the trainer: " : " since the trainer began: ") +
                           fractions(*end.goodput));
  // Written right behind these lines, which stand last on the screen.
  const std::string folder = setting(start, "run.directory");
  if (!folder.empty() && (end.reason == EndReason::done || end.reason == EndReason::saved))
    out += row("report", spec::printable(folder) + "/report.html");
  // The folder by name: it may be one with a number behind, which the same command would not choose again.
  if (end.reason == EndReason::saved) out += row("continue", "assay resume " + spec::shell_word(folder));
  return out;
}

}  // namespace assay::impl::logs
