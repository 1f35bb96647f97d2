#include <algorithm>
#include <cmath>

#include "impl/report/html.hpp"
#include "impl/report/page.hpp"
#include "spec/record/goodput.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/ranks.hpp"

namespace assay::impl::report {
namespace {

using namespace spec::record;
using spec::grouped;

std::string tile(const std::string& value, const std::string& meaning) {
  return "<div class=\"tile\"><b>" + escaped(value) + "</b><span>" + escaped(meaning) + "</span></div>\n";
}

double seconds_of(const Run& run) { return sums_of(run).seconds; }
std::int64_t tokens_of(const Run& run) { return sums_of(run).tokens; }

std::optional<double> gap(const Run& run) {
  const auto loss = mean_loss(run.steps, final_loss_steps);
  const auto& floor = run.start.data.floor;
  if (!loss || !floor || !(*floor < std::log(static_cast<double>(run.start.vocab)))) return std::nullopt;
  const double share = gap_closed(*loss, *floor, run.start.vocab);
  return share >= 0 ? std::optional(share) : std::nullopt;  // worse than a uniform guess is a warning
}

std::string counted(std::int64_t count, const std::string& one, const std::string& many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

std::string end_text(const Run& run) {
  if (!run.end) return "no end recorded: still running, or it crashed";
  std::string text;
  switch (run.end->reason) {
    case EndReason::done:
      text = "done";
      break;
    case EndReason::saved:
      text = "stopped and saved";
      break;
    case EndReason::non_finite:
      text = "stopped: a number was not finite";
      break;
    case EndReason::error:
      text = "stopped by an error";
      break;
  }
  return run.end->message ? text + ": " + *run.end->message : text;
}

std::string tokens_per_second(const Run& run) {
  const double seconds = seconds_of(run);
  if (!(seconds > 0)) return "–";
  return grouped(static_cast<std::int64_t>(std::llround(static_cast<double>(tokens_of(run)) / seconds)));
}

std::string goodput_text(const Run& run) {
  const auto of_run = goodput(run);
  if (!of_run || !(of_run->seconds > 0)) return "–";
  return grouped(static_cast<std::int64_t>(std::llround(of_run->tokens_per_second)));
}

std::string productive_text(const Run& run) {
  if (!run.end || !run.end->run_goodput || !(run.end->run_goodput->seconds > 0)) return "–";
  return spec::record::goodput_text(*run.end->run_goodput);
}

/// Where the time went.
std::string wall_time(const Run& run) {
  const auto of_run = goodput(run);
  if (!of_run || !(of_run->seconds > 0)) return "–";
  return spec::duration(of_run->seconds) + ": " + fractions(*of_run);
}

/// How the figures of a run with several starts are to be read; empty of one start.
std::string starts_text(const Run& run) {
  if (run.earlier_ends.empty()) return "";
  const bool ended = goodput(run).has_value();
  return "started " + grouped(static_cast<std::int64_t>(run.earlier_ends.size()) + 1) +
         " times: figures are of the whole run, and of a step that was done twice the later one counts; "
         "model, batch, "
         "machine, planned memory, settings and end are the last start's" +
         (ended ? "" : "; goodput is not known, as a start left no end or is of an earlier version");
}

/// Mean of the steps that have it.
std::string mean_share(const StepSums::Share& share) {
  return share.count ? spec::percent(share.sum / static_cast<double>(share.count)) : "–";
}
std::string mean_mfu(const Run& run) { return mean_share(sums_of(run).mfu); }
std::string mean_hfu(const Run& run) { return mean_share(sums_of(run).hfu); }

std::string most_memory(const Run& run) {
  return spec::bytes(sums_of(run).most_bytes) + (run.start.gpus.empty() ? " of the process" : "");
}

std::string planned_memory(const Run& run) {
  const auto planned = run.memory ? run.memory->planned_bytes : run.start.planned_memory_bytes;
  if (!planned) return "–";
  std::string text = spec::bytes(*planned) + (run.memory ? " at " + run.memory->moment : "");
  if (run.memory && run.start.planned_load)
    text += ", with up to " + spec::fixed(*run.start.planned_load, 2) + " times the mean rows of experts";
  if (run.memory && run.memory->measured_bytes)
    text += ", measured " + spec::bytes(*run.memory->measured_bytes);
  // What a new reader would compare it with is another thing.
  if (run.start.gpus.empty())
    text +=
        ", the tensors of a step; on a CPU they are not measured apart: the peak is of the whole process, "
        "with the program and its libraries, the data that is read, and what the allocator keeps";
  return text;
}

/// "3.1416 after step 250, 4.53 bits per byte; lowest 3.1402 after step 200", of the set that was validated
/// on last: losses of another one say nothing of it.
std::string validation_text(const Run& run) {
  if (run.validations.empty()) return "–";
  const Validation& last = run.validations.back();
  const auto at = [](const Validation& validation) {
    return spec::fixed(validation.loss, 4) + " after step " + grouped(validation.step);
  };
  std::string text = at(last) + ", perplexity " + spec::fixed(last.perplexity, 3);
  if (last.bits_per_byte) text += ", " + spec::fixed(*last.bits_per_byte, 4) + " bits per byte";
  const Validation *lowest = &last, *other = nullptr;
  for (const Validation& each : run.validations)
    if (each.set_hash != last.set_hash)
      other = &each;
    else if (each.loss < lowest->loss)
      lowest = &each;
  if (lowest->loss < last.loss) text += "; lowest " + at(*lowest);
  if (other) text += "; on another set, not to be compared, " + at(*other);
  return text;
}

std::string steps_text(const Run& run) {
  const std::int64_t done = run.steps.empty() ? 0 : run.steps.back().step;
  return grouped(done) + " of " + grouped(run.start.steps);
}

std::string or_dash(const std::optional<double>& value, int digits) {
  return value ? spec::fixed(*value, digits) : "–";
}

/// Of the last step; a dash without experts.
std::string last(const Run& run, std::optional<double> Step::*value, int digits) {
  return run.steps.empty() ? "–" : or_dash(run.steps.back().*value, digits);
}
bool routes(const Run& run) { return !run.steps.empty() && run.steps.back().balance_loss; }
bool drops(const Run& run) { return !run.steps.empty() && run.steps.back().dropped_choices; }

/// A table with one column per run; `cells(run)` gives the text, `number` whether it is aligned right.
class Table {
 public:
  explicit Table(const std::vector<NamedRun>& runs) : runs_(runs) {
    out_ =
        std::string("<div class=\"scroll\"><table") + (runs.size() > 1 ? " class=\"compared\"" : "") + ">\n";
    if (runs.size() > 1) {
      out_ += "<thead><tr><th></th>";
      for (const NamedRun& named : runs)
        out_ += "<th class=\"number\" scope=\"col\">" + escaped(named.name) + "</th>";
      out_ += "</tr></thead>\n";
    }
    out_ += "<tbody>\n";
  }
  template <class Cell>
  void row(const std::string& name, Cell cell) {
    out_ += "<tr><th scope=\"row\">" + escaped(name) + "</th>";
    const std::string kind = runs_.size() > 1 ? "<td class=\"number\">" : "<td>";
    for (const NamedRun& named : runs_) out_ += kind + escaped(cell(named.run)) + "</td>";
    out_ += "</tr>\n";
  }
  std::string end() { return out_ + "</tbody></table></div>\n"; }

 private:
  const std::vector<NamedRun>& runs_;
  std::string out_;
};

std::string heading(const NamedRun& named, const std::vector<NamedRun>& runs) {
  return runs.size() > 1 ? "<p><b>" + escaped(named.name) + "</b></p>\n" : "";
}

/// Cards in rows of about equal numbers, six in one at most: the style stretches those of the last row.
std::string cards(const std::vector<std::string>& all) {
  constexpr std::size_t most = 6;
  const std::size_t rows = (all.size() + most - 1) / most, row = rows ? (all.size() + rows - 1) / rows : 1;
  std::string out = "<section class=\"tiles\" style=\"--row:" + std::to_string(row) + "\">\n";
  for (const std::string& card : all) out += card;
  return out + "</section>\n";
}

std::string tiles(const Run& run) {
  std::vector<std::string> all;
  const auto add = [&](const std::string& value, const std::string& meaning) {
    all.push_back(tile(value, meaning));
  };
  const auto loss = mean_loss(run.steps, final_loss_steps);
  const auto averaged = std::min<std::int64_t>(final_loss_steps, static_cast<std::int64_t>(run.steps.size()));
  if (loss) add(spec::fixed(*loss, 4), "loss, mean of the last " + grouped(averaged) + " steps");
  if (!run.validations.empty())
    add(spec::fixed(run.validations.back().loss, 4),
        "validation loss after step " + grouped(run.validations.back().step));
  if (run.start.data.floor) add(spec::fixed(*run.start.data.floor, 4), "floor, the entropy of the data");
  if (const auto closed = gap(run)) add(spec::percent(*closed), "of the gap to the floor closed");
  add(tokens_per_second(run), "tokens/s");
  if (goodput_text(run) != "–") add(goodput_text(run), "tokens/s of wall-clock time (goodput)");
  if (mean_mfu(run) != "–") add(mean_mfu(run), "MFU, of the dense peak");
  if (mean_hfu(run) != "–") add(mean_hfu(run), "HFU, with all that ran");
  const bool done = run.end && run.end->reason == EndReason::done;
  add(spec::duration(seconds_of(run)), steps_text(run) + (done ? " steps, done" : " steps"));
  return cards(all);
}

std::string comparison(const std::vector<NamedRun>& runs) {
  Table table(runs);
  table.row("model", [](const Run& run) { return run.start.model; });
  table.row("parameters", [](const Run& run) { return grouped(run.start.parameters); });
  table.row("tokens per step", [](const Run& run) {
    return grouped(run.start.batch.tokens) +
           (spec::record::global_batch(run.start).ramp.empty() ? "" : ", after a ramp");
  });
  table.row("ranks", [](const Run& run) {
    const std::int64_t data = run.start.batch.ranks, tensor = run.start.tensor_ranks.value_or(1);
    return grouped(data * tensor) + (tensor > 1 ? ", " + spec::data_ranks_text(data, tensor) : "") +
           (run.start.expert_ranks ? ", experts over " + spec::ranks_text(*run.start.expert_ranks) : "");
  });
  table.row("steps", steps_text);
  table.row("tokens", [](const Run& run) { return grouped(tokens_of(run)); });
  table.row("time", [](const Run& run) { return spec::duration(seconds_of(run)); });
  table.row("final loss", [](const Run& run) { return or_dash(mean_loss(run.steps, final_loss_steps), 4); });
  if (std::any_of(runs.begin(), runs.end(),
                  [](const NamedRun& named) { return !named.run.validations.empty(); }))
    table.row("validation loss", validation_text);
  table.row("floor", [](const Run& run) { return or_dash(run.start.data.floor, 4); });
  table.row("gap closed", [](const Run& run) {
    const auto closed = gap(run);
    return closed ? spec::percent(*closed) : std::string("–");
  });
  table.row("tokens/s", tokens_per_second);
  table.row("goodput, tokens/s", goodput_text);
  table.row("wall-clock time", productive_text);
  if (std::any_of(runs.begin(), runs.end(), [](const NamedRun& named) { return !named.run.skipped.empty(); }))
    table.row("steps skipped, not finite",
              [](const Run& run) { return grouped(static_cast<std::int64_t>(run.skipped.size())); });
  table.row("MFU", mean_mfu);
  table.row("HFU", mean_hfu);
  if (std::any_of(runs.begin(), runs.end(), [](const NamedRun& named) { return routes(named.run); })) {
    table.row("balance loss, last step", [](const Run& run) { return last(run, &Step::balance_loss, 4); });
    table.row("router z-loss, last step", [](const Run& run) { return last(run, &Step::router_z_loss, 4); });
    table.row("load of the busiest expert over the mean, worst layer, last step",
              [](const Run& run) { return last(run, &Step::load_balance_worst, 2); });
    table.row("the same, mean over layers",
              [](const Run& run) { return last(run, &Step::load_balance_mean, 2); });
    table.row("router entropy [nats], last step",
              [](const Run& run) { return last(run, &Step::router_entropy, 3); });
    if (std::any_of(runs.begin(), runs.end(), [](const NamedRun& named) { return drops(named.run); }))
      table.row("share of choices dropped by the capacity, last step",
                [](const Run& run) { return last(run, &Step::dropped_choices, 4); });
  }
  table.row("peak memory", most_memory);
  table.row("end", end_text);
  return "<section>\n<h2>Results</h2>\n" + table.end() + "</section>\n";
}

}  // namespace

std::string headline(const std::vector<NamedRun>& runs) {
  std::string starts;
  for (const NamedRun& named : runs)
    if (const std::string text = starts_text(named.run); !text.empty())
      starts += "<p class=\"soft\">" + escaped((runs.size() > 1 ? named.name : "This run") + " was " + text) +
                ".</p>\n";
  if (runs.size() > 1) return differences(runs) + comparison(runs) + starts;
  const Run& run = runs[0].run;
  const bool done = run.end && run.end->reason == EndReason::done;
  return tiles(run) + starts +
         (done ? "" : "<p class=\"warning\" role=\"note\">" + escaped(end_text(run)) + "</p>\n");
}

std::string damage(const std::vector<NamedRun>& runs) {
  std::string out;
  for (const NamedRun& named : runs)
    for (const std::string& each : named.damage)
      out += "<p class=\"warning\" role=\"note\"><b>This record is damaged:</b> " +
             escaped((runs.size() > 1 ? named.name + ", " : "") + each) + " <code>record</code></p>\n";
  return out;
}

std::string warnings(const std::vector<NamedRun>& runs) {
  std::string out;
  for (const NamedRun& named : runs)
    for (const std::string& fault : named.faults)
      out += "<p class=\"warning\" role=\"note\"><b>This record is not that of one run:</b> " +
             escaped((runs.size() > 1 ? named.name + ", " : "") + fault) + " <code>record</code></p>\n";
  for (const NamedRun& named : runs)
    for (const Warning& warning : named.run.warnings)
      out += "<p class=\"warning\" role=\"note\">" +
             escaped((runs.size() > 1 ? named.name + ", " : "") +
                     (warning.step ? "step " + grouped(*warning.step) + ": " : "") + warning.text) +
             " <code>" + escaped(warning.code) + "</code></p>\n";
  return out.empty() ? "" : "<section>\n<h2>Warnings</h2>\n" + out + "</section>\n";
}

std::string samples(const std::vector<NamedRun>& runs) {
  std::string out;
  for (const NamedRun& named : runs) {
    if (!named.run.samples) continue;
    const Samples& all = *named.run.samples;
    out += heading(named, runs) + "<p>" + grouped(all.accepted) + " of " + grouped(all.judged) +
           " sampled sentences are accepted by the grammar";
    if (all.sums > 0) out += "; " + grouped(all.sums_right) + " of " + grouped(all.sums) + " sums are right";
    out +=
        ".</p>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">sampled text</th><th "
        "scope=\"col\">grammar"
        "</th><th scope=\"col\">sum</th></tr></thead><tbody>\n";
    for (const Sample& sample : all.samples) {
      const std::string sum = !sample.sum_right   ? ""
                              : *sample.sum_right ? "<span class=\"good\">right</span>"
                                                  : "<span class=\"bad\">wrong</span>";
      out += "<tr><td><code>" + escaped(sample.text) + "</code></td><td>" +
             (sample.accepted ? "<span class=\"good\">accepted</span>"
                              : "<span class=\"bad\">not accepted</span>") +
             "</td><td>" + sum + "</td></tr>\n";
    }
    out += "</tbody></table></div>\n";
  }
  return out.empty() ? "" : "<section>\n<h2>What the model writes</h2>\n" + out + "</section>\n";
}

std::string batch_arithmetic(const std::vector<NamedRun>& runs) {
  std::string out = "<section>\n<h2>Batch arithmetic</h2>\n";
  for (const NamedRun& named : runs) {
    const Batch& b = named.run.start.batch;
    const spec::GlobalBatch global = spec::record::global_batch(named.run.start);
    const std::int64_t steps = named.run.start.steps;
    const Count all = Count(spec::sequences_before(global, steps)) * b.sequence_length;
    std::string stages;
    for (const spec::RampStage& stage : global.ramp)
      stages += (stages.empty() ? "" : ", ") + counted(stage.steps, "step", "steps") + " of " +
                counted(stage.sequences, "sequence", "sequences");
    out += heading(named, runs) + "<p>" + counted(b.micro, "sequence", "sequences") + " per micro-batch × " +
           counted(b.accumulation, "micro-batch", "micro-batches") + " × " +
           spec::data_ranks_text(b.ranks, named.run.start.tensor_ranks.value_or(1)) + " = <b>" +
           grouped(b.sequences) + " sequences</b> per step; × " + grouped(b.sequence_length) +
           " tokens = <b>" + grouped(b.tokens) + " tokens</b> per step" +
           (stages.empty() ? "; × " : ", after a ramp of " + stages + "; in all ") + grouped(steps) +
           " steps = " + grouped(all) + " tokens.</p>\n<p>" + grouped(named.run.start.flops_per_token) +
           " FLOPs per token, forward and backward; " +
           spec::si((all * named.run.start.flops_per_token).to_double(), "FLOP") + " in all.</p>\n";
  }
  return out + "</section>\n";
}

std::string machine(const std::vector<NamedRun>& runs) {
  Table table(runs);
  table.row("started", [](const Run& run) { return run.start.time; });
  table.row("assay", [](const Run& run) {
    return run.start.version + (run.start.commit ? " (" + *run.start.commit + ")" : std::string());
  });
  table.row("host", [](const Run& run) { return run.start.host + ", " + run.start.os; });
  table.row("CPU", [](const Run& run) {
    return run.start.cpu + ", " + grouped(run.start.cores) + " cores, " + spec::bytes(run.start.memory_bytes);
  });
  table.row("GPUs", [](const Run& run) {
    return run.start.gpus.empty()
               ? std::string("none")
               : grouped(static_cast<std::int64_t>(run.start.gpus.size())) + " × " + run.start.gpus[0].name;
  });
  table.row("data", [](const Run& run) { return run.start.data.description; });
  if (std::any_of(runs.begin(), runs.end(),
                  [](const NamedRun& named) { return named.run.start.validation; })) {
    table.row("validation set", [](const Run& run) { return run.start.validation.value_or("–"); });
    table.row("hash of the set",
              [](const Run& run) { return run.validations.empty() ? "–" : run.validations.back().set_hash; });
    table.row("validation loss", validation_text);
  }
  table.row("peak memory", most_memory);
  table.row("memory planned", planned_memory);
  table.row("wall-clock time", wall_time);
  table.row("checkpoints",
            [](const Run& run) { return grouped(static_cast<std::int64_t>(run.checkpoints.size())); });
  return "<section>\n<h2>Machine and data</h2>\n" + table.end() + "</section>\n";
}

}  // namespace assay::impl::report
