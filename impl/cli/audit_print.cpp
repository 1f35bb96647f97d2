#include "impl/cli/audit_print.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "spec/audit/behind_options.hpp"
#include "spec/audit/headline.hpp"
#include "spec/audit/useful_options.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

using namespace spec::audit;  // NOLINT: this file speaks of nothing else

constexpr std::size_t widths[] = {24, 18, 22, 13};

/// Columns, not bytes: what is printed here holds no letters beyond ASCII but those of a log.
std::string cell(const std::string& text, std::size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 1, ' ');
}

std::string count(std::size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string printed(const Result& r) { return r.unprinted ? "-" : shown(r.printed, r.unit); }

std::string recomputed(const Result& r) {
  // Nothing was recomputed, or a learning rate of 0.
  const bool zero = r.recomputed.low == 0 && r.recomputed.high == 0;
  if (zero && r.verdict == Verdict::holds && r.printed != 0) return "-";
  return r.recomputed.high >= 1e290 && r.recomputed.low <= 0 ? "-" : shown(r.recomputed, r.unit);
}

std::string lines_of(const Result& r) {
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, r.lines.size()); ++i)
    if (r.lines[i] > 0) out += (out.empty() ? "" : ", ") + std::to_string(r.lines[i]);
  if (out.empty()) return out;
  return (r.lines.size() > 1 ? "lines " : "line ") + out + (r.lines.size() > 3 ? " ..." : "");
}

std::string why(const Result& r) {
  std::string out;
  for (const Cause& cause : r.causes) out += (out.empty() ? "" : "; or ") + cause.text;
  if (r.causes.size() > 1 && r.causes.size() <= 3 && out.find("; or ") != std::string::npos) {
    // Several changes of one reading hold together; several local causes exclude each other.
    out.clear();
    for (const Cause& cause : r.causes)
      out += (out.empty() ? "" : cause.id.rfind("line_", 0) == 0 ? "; or " : "; ") + cause.text;
  }
  if (out.empty()) out = r.note;
  return out;
}

void print_results(const Audit& audit, std::ostream& out) {
  const auto row = [&](const std::string& a, const std::string& b, const std::string& c, const std::string& d,
                       const std::string& e) {
    std::string line =
        "  " + cell(a, widths[0]) + cell(b, widths[1]) + cell(c, widths[2]) + cell(d, widths[3]) + e;
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out << line << "\n";
  };
  row("number", "printed", "recomputed", "verdict", "cause");
  for (const Result& r : audit.results)
    if (r.verdict == Verdict::contradicts) {
      const std::string lines = lines_of(r);
      row(r.id, printed(r), recomputed(r), "contradicts", why(r) + (lines.empty() ? "" : " (" + lines + ")"));
    }
  for (const Result& r : audit.results)
    if (r.verdict == Verdict::holds) row(r.id, printed(r), recomputed(r), "holds", r.note);
  const bool on_cpus = audit.record->gpu.empty() && audit.record->device == "cpu";
  std::vector<std::pair<std::string, std::size_t>>
      wanted;  // what is missing, and how many numbers wait for it
  std::size_t open = 0;
  for (const Result& r : audit.results)
    if (r.verdict == Verdict::cannot_be_judged) {
      ++open;
      if (!may_stand_in(*audit.record, r.note)) continue;
      if (on_cpus && r.note.find("GPU") != std::string::npos) continue;  // there is none to name
      const auto known =
          std::find_if(wanted.begin(), wanted.end(), [&](const auto& w) { return w.first == r.note; });
      if (known == wanted.end())
        wanted.emplace_back(r.note, 1);
      else
        ++known->second;
    }
  if (open == 0) return;
  std::string line = "  not judged: " + std::to_string(open);
  std::string useful;
  for (const auto& [option, judged, opens] : useful_options(*audit.record))
    useful += useful.empty() ? " (" + option + " would let " +
                                   (opens.empty() ? std::to_string(judged) : "its " + opens) + " be judged"
                             : ", then " + option + " " + std::to_string(judged) + " more";
  line += useful.empty() ? "" : useful + ")";
  // A few are of use to the reader: those that most numbers wait for.
  constexpr std::size_t few = 4;
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (std::size_t i = 0; i < std::min(few, wanted.size()); ++i)
    line += (i == 0 ? ", for want of " : "; ") + wanted[i].first;
  if (wanted.size() > few)
    line += "; and of " + std::to_string(wanted.size() - few) + " more (--json says what each one waits for)";
  out << line << "\n";
}

std::string described(const Audit& audit, const Reading& reading) {
  std::string out;
  std::set<std::string> unknown;  // texts: several relations may be off by one factor
  for (const Change& change : reading.changes) {
    if (change.id == "unknown" && !unknown.insert(change.text).second) continue;
    out += (out.empty() ? "" : "; ") + change.text;
    if (change.id == "unknown") {
      std::string ids;
      for (const Relation relation : reading.unexplained)
        if (change.factors[relation] == 0)
          ids += (ids.empty() ? " (" : ", ") + std::string(to_string(relation));
      out += ids.empty() ? "" : ids + ")";
    }
    for (std::size_t i = 0;
         i < std::min<std::size_t>(change.id == "peak_other_gpu" ? 12 : 2, change.alternatives.size()); ++i)
      out += (i == 0 ? " [no number here tells: " : "; or: ") + change.alternatives[i];
    if (!change.alternatives.empty()) out += "]";
  }
  if (out.empty()) {
    out = "as it stands";
    std::string ids;
    for (const std::string& id : causes_of_their_own(audit, reading)) ids += (ids.empty() ? "" : ", ") + id;
    if (!ids.empty()) out += ", but for " + ids + " (the cause stands in the row)";
  }
  return out + (reading.interpretation.note.empty() ? "" : " (" + reading.interpretation.note + ")");
}

std::string one(const std::optional<spec::Interval>& number, Unit unit) {
  return number ? shown(number->middle(), unit) : "-";
}

/// The speed that a reading makes of the log. One that changes nothing corrects nothing, so it is called
/// plain speed, and not printed at all where the log gives no number of it.
void print_speed(const Reading& reading, bool cpu, std::ostream& out) {
  const Corrected& c = reading.corrected;
  const bool corrects = !reading.changes.empty();
  std::string line;
  const auto add = [&](const char* before, const std::optional<spec::Interval>& number, Unit unit,
                       const char* of) {
    if (number) line += (line.empty() ? "" : before) + shown(number->middle(), unit) + of;
  };
  add("", c.tokens_per_second, Unit::tokens_per_second, cpu ? " on all ranks" : " on all GPUs");
  add(", ", c.per_gpu, Unit::tokens_per_second, cpu ? " per rank" : " per GPU");
  add("; MFU ", c.mfu_exact, Unit::share, " exact");
  add(c.mfu_exact ? ", " : "; MFU ", c.mfu_palm_total, Unit::share, " palm_total");
  if (c.mfu_exact || c.mfu_palm_total) line += ", dense peak";
  if (line.empty() && !corrects) return;
  if (!c.missing.empty()) line += line.empty() ? c.missing : " (" + c.missing + ")";
  out << "    " << (corrects ? "corrected: " : "speed: ") << line << "\n";
}

void print_readings(const Audit& audit, std::ostream& out) {
  const bool structural = std::any_of(audit.readings.begin(), audit.readings.end(),
                                      [](const Reading& r) { return !r.changes.empty(); });
  const Reading& best = audit.readings.front();
  std::vector<const Reading*> equal = {&best};
  // Of a log without a contradiction whose rate nobody says, several may stand, too.
  for (std::size_t i = 1; i < audit.readings.size() && equal.size() < 3; ++i) {
    const bool as_it_stands = best.changes.empty() && audit.readings[i].changes.empty();
    if ((as_it_stands || (structural && audit.contradicts)) && equally(best, audit.readings[i]))
      equal.push_back(&audit.readings[i]);
  }
  if (equal.size() > 1)
    out << "  " << equal.size()
        << (audit.contradicts ? " readings explain this log about equally:\n"
                              : " readings agree with this log equally well:\n");
  else
    out << "  reading:\n";
  for (const Reading* reading : equal) {
    out << "  - " << described(audit, *reading)
        << (equal.size() > 1 && !audit.contradicts && reading->interpretation.note.empty()
                ? " (tokens/s is all GPUs')"
                : "")
        << "\n";
    print_speed(*reading, audit.record->device == "cpu", out);
  }
  if (equal.size() > 1 || !audit.contradicts || best.changes.empty()) return;
  // Another way to say the same speed is no news.
  for (const Reading& other : audit.readings) {
    const auto &a = best.corrected.per_gpu, &b = other.corrected.per_gpu;
    if (!a || !b || std::abs(a->middle() / b->middle() - 1) < 0.01 || other.cost > best.cost + 3) continue;
    if (other.corrected.impossible) continue;
    out << "    less likely: " << described(audit, other) << ": MFU "
        << one(other.corrected.mfu_exact, Unit::share) << " exact\n";
    return;
  }
}

/// "8 x NVIDIA B200", "2 ranks on the CPU".
std::string devices_of(const Audit& audit) {
  if (audit.record->device == "cpu")
    return audit.gpus > 1 ? shown(audit.gpus, Unit::none) + " ranks on the CPU" : "on the CPU";
  // A name of which no facts are known is quoted as it stands.
  const std::string& printed = audit.record->gpu;
  const std::string known = audit.gpu.empty() && !printed.empty() ? spec::quote(printed) : audit.gpu;
  const std::string gpu = known.empty() ? "GPU" : known;
  return audit.gpus > 0 ? shown(audit.gpus, Unit::none) + " x " + gpu : known;
}

/// Of a GPU whose name means none that is known: which ones are near.
void print_unknown_gpu(const Audit& audit, std::ostream& out) {
  const std::string& printed = audit.record->gpu;
  if (!audit.gpu.empty() || printed.empty() || audit.record->device == "cpu") return;
  std::string near;
  for (const std::string& name : spec::find_gpu(printed).nearest)
    near += (near.empty() ? "; nearest: " : ", ") + spec::quote(name);
  out << "  GPU " << spec::quote(printed) << " is not known, so it has no peak and no MFU" << near << "\n";
}

void print_null_losses(const NullLosses& null, std::ostream& out) {
  if (null.count == 0) return;
  out << "  the loss of " << count(static_cast<std::size_t>(null.count), "step") << " is null, first in line "
      << null.line;
  if (null.at_end == 0)
    out << ": taken for not printed\n";
  else
    out << ": the last " << (null.at_end > 1 ? std::to_string(null.at_end) + " are" : "is")
        << " taken for no number, which JSON cannot write\n";
}

/// Of a log too long to be judged step by step: which steps are.
void print_sample(const RunRecord& r, std::ostream& out) {
  if (r.steps_seen <= static_cast<std::int64_t>(r.steps.size())) return;
  out << "  judged are " << shown(static_cast<double>(r.steps.size()), Unit::steps) << " of "
      << shown(static_cast<double>(r.steps_seen), Unit::steps)
      << " steps: the first and last, evenly spaced ones, and those whose numbers stand apart from the first "
         "lines' ("
      << shown(static_cast<double>(r.steps_apart), Unit::steps) << ")";
  if (r.steps_left_out > 0)
    out << "; " << shown(static_cast<double>(r.steps_left_out), Unit::steps)
        << " lines of these are too many, and are not judged";
  out << "\n";
}

void print_cut_lines(const spec::audit::CutLines& cut, std::ostream& out) {
  const std::string column = cut.column > 0 ? " at column " + std::to_string(cut.column) : "";
  if (cut.joined > 0)
    out << "  " << count(static_cast<std::size_t>(cut.joined), "line")
        << " are rests of lines that were wrapped" << column << ", and are read with them\n";
  if (cut.count > 0)
    out << "  " << count(static_cast<std::size_t>(cut.count), "line") << " could not be read to the end: cut"
        << column << ", the first is line " << cut.line << "; the number that is cut is not judged\n";
}

void print_run(const Audit& audit, std::ostream& out) {
  std::size_t wrong = 0, judged = 0;
  for (const Result& r : audit.results) {
    wrong += r.verdict == Verdict::contradicts;
    judged += r.verdict != Verdict::cannot_be_judged;
  }
  const RunRecord& r = *audit.record;
  const std::string devices = devices_of(audit);
  out << r.origin << ": " << spec::audit::headline(audit) << ", "
      << (wrong ? std::to_string(wrong) + " of " : "") << count(judged, "judged number");
  out << " (" << (r.format.name.empty() ? "unknown trainer" : r.format.name) << ", "
      << count(static_cast<std::size_t>(r.steps_of_rank > 0 ? r.steps_of_rank : r.steps_seen), "step")
      << (r.ranks > 1 ? " of each of " + std::to_string(r.ranks) + " ranks" : "")
      << (audit.model.empty() ? "" : ", " + audit.model) << (devices.empty() ? "" : ", " + devices) << ")\n";
  if (r.unread_lines > 0) {
    out << "  " << count(static_cast<std::size_t>(r.unread_lines), "line") << " could not be read";
    if (!r.unread_quotes.empty())
      out << ", the first is line " << r.unread_quotes.front().line << ": "
          << spec::quote(r.unread_quotes.front().text);
    out << "\n";
  }
  print_cut_lines(r.cut_lines, out);
  print_sample(r, out);
  for (const ForeignLines& other : r.foreign_lines)
    out << "  " << count(static_cast<std::size_t>(other.count), "line") << " from line " << other.line
        << " on look like step lines of " << other.format
        << ", and are not judged: a file is read as one trainer's; give them in a file of their own\n";
  if (r.settings_behind)
    out << "  " << count(static_cast<std::size_t>(r.settings_behind->count), "line") << " from line "
        << r.settings_behind->line << " on say settings behind " << spec::quote(r.settings_behind->prefix)
        << ", which is no known prefix, and are not read: cut it off every line and audit the result\n";
  print_unknown_gpu(audit, out);
  print_null_losses(r.null_losses, out);
  if (r.truncated) out << "  the log has no end: its last line, or the document, may be cut\n";
  print_results(audit, out);
  print_readings(audit, out);
}

}  // namespace

void print_screen(const Together& together, std::ostream& out) {
  for (const Audit& audit : together.audits) {
    if (&audit != &together.audits.front()) out << "\n";
    print_run(audit, out);
  }
  if (together.differences.empty()) return;
  out << "\ncompared with " << together.audits.front().record->origin << "\n";
  for (const SpeedDifference& d : together.differences) {
    const auto times = [](const std::optional<double>& x) {
      return x ? spec::fixed(*x, 3) + "x" : std::string("-");
    };
    out << "  " << together.audits[d.second].record->origin << ": printed tokens/s " << times(d.printed)
        << ", MFU " << times(d.printed_mfu) << "; corrected tokens/s " << times(d.all) << ", " << d.each
        << " " << times(d.per_gpu) << ". " << d.verdict << "\n";
  }
  for (const std::string& line : together.settled) out << "  " << line << "\n";
  for (const Result& r : together.results)
    if (r.verdict == Verdict::contradicts)
      out << "  scaling contradicts: per GPU " << spec::fixed(r.printed, 2) << "x with more GPUs; " << why(r)
          << "\n";
    else if (r.verdict == Verdict::holds && !r.note.empty())
      out << "  scaling holds: " << r.note << "\n";
}

void print_given(const Together& together, std::ostream& out) {
  std::vector<std::string> behind;
  for (const Audit& one : together.audits)
    for (std::string& option : options_behind(*one.record, one.results))
      if (std::find(behind.begin(), behind.end(), option) == behind.end())
        behind.push_back(std::move(option));
  std::string said;
  for (const std::string& option : behind) said += (said.empty() ? "" : ", ") + option;
  if (!said.empty())
    out << "the command line says " << said
        << ", not the log: a number that contradicts may be the option's; without it the log is judged "
           "by its own words\n";
}

}  // namespace assay::impl::cli
