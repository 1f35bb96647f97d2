// What a program asserts of a record in its own tests.
#include <algorithm>
#include <optional>

#include "spec/audit/evidence.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

bool judges_something(const std::vector<Result>& results) {
  return std::any_of(results.begin(), results.end(),
                     [](const Result& r) { return r.verdict != Verdict::cannot_be_judged; });
}

/// A model or GPU that the caller named and that is not known: what rests on it would silently not be judged.
/// A log's own names are its trainer's.
std::string unknown_names(const RunRecord& record) {
  const bool built = record.lines == 0;  // by a program, not read
  const Evidence evidence(record);
  std::string out;
  const auto name = [&](const char* what, const std::string& given, const std::optional<std::string>& like,
                        const std::string& instead) {
    out += std::string("no ") + what + " is known by the name " + quote(given.substr(0, 80)) +
           (like ? " (did you mean " + quote(*like) + "?)" : "") +
           ", and nothing that rests on it is judged: " + instead + ", or leave it empty\n";
  };
  const bool open = !evidence.model && !record.definition;
  if (open && !record.model.empty() && (built || record.stated_for("model")))
    name("model", record.model, nearest(record.model.substr(0, 80), model_names()),
         "give one of model_names(), a definition, or layers, width, heads, ffn and vocab");
  const GpuMatch& gpu = evidence.gpu;
  if (!gpu.gpu && gpu.candidates.empty() && !record.gpu.empty() && !evidence.on_cpu() &&
      (built || record.stated_for("gpu")))
    name("GPU", record.gpu, gpu.nearest.empty() ? std::nullopt : std::optional(gpu.nearest.front()),
         "give the name that its driver prints");
  return out;
}

}  // namespace

bool consistent(const RunRecord& record) {
  const std::vector<Result> results = judge(record);
  return judges_something(results) && unknown_names(record).empty() &&
         std::none_of(results.begin(), results.end(),
                      [](const Result& r) { return r.verdict == Verdict::contradicts; });
}

std::string contradictions(const RunRecord& record) {
  std::string out;
  for (const Result& r : judge(record)) {
    if (r.verdict != Verdict::contradicts) continue;
    out += r.id + ": printed " + (r.unprinted ? "-" : shown(r.printed, r.unit)) + ", recomputed " +
           shown(r.recomputed, r.unit);
    if (!r.lines.empty() && r.lines.front() > 0) out += ", line " + std::to_string(r.lines.front());
    if (!r.note.empty()) out += " (" + r.note + ")";
    out += "\n";
  }
  return out;
}

std::string objections(const RunRecord& record) {
  const std::string unknown = unknown_names(record);
  if (judges_something(judge(record))) return unknown + contradictions(record);
  return unknown + "nothing can be judged: the record holds " + std::to_string(record.steps.size()) +
         " steps, and no two numbers of one relation; was it filled?\n";
}

}  // namespace assay::spec::audit
