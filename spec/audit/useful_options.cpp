#include "spec/audit/useful_options.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "spec/audit/evidence.hpp"
#include "spec/audit/headline.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/trainer.hpp"

namespace assay::spec::audit {
namespace {

/// An option, and what it is tried with: any value lets the same invariants be judged.
struct Option {
  const char* text;
  bool (*missing)(const RunRecord&);
  void (*state)(RunRecord&);
};
template <Setting setting, std::int64_t number>
constexpr Option of(const char* text) {
  return {text, [](const RunRecord& r) { return !r[setting].has_value(); },
          [](RunRecord& r) { r[setting] = exactly(static_cast<double>(number)); }};
}

/// Dimensions that the user stated would replace the tried model's, and need not go with its others.
void state_any_model(RunRecord& r) {
  r.model = "llama3-8b";
  std::erase_if(r.stated, [](const GivenOption& one) {
    for (const Setting dimension : {Setting::layers, Setting::width, Setting::heads, Setting::kv_heads,
                                    Setting::head_dim, Setting::ffn, Setting::vocab})
      if (one.name == to_string(dimension)) return true;
    return false;
  });
}

constexpr std::array<Option, 6> options = {
    {of<Setting::gpus, 8>("--gpus N"),
     {"--gpu X", [](const RunRecord& r) { return r.gpu.empty() && r.device.empty(); },
      [](RunRecord& r) { r.gpu = "H100 SXM"; }},
     {"--model M",
      [](const RunRecord& r) {
        return r.model.empty() && !r.definition && r.model_file.empty() && !Evidence(r).model;
      },
      state_any_model},
     of<Setting::sequence_length, 2048>("--seq T"),
     of<Setting::sequences, 64>("--set sequences=N"),
     of<Setting::max_steps, 1'000'000'000>("--set max_steps=N")}};

/// As many steps as an invariant needs.
constexpr std::size_t tried_steps = 16;

/// What can be judged of a record.
struct Judged {
  std::set<std::string> ids;  ///< of invariants
  std::string open;           ///< utilisation_left_open
};
Judged judged(const RunRecord& record) {
  Judged out;
  const std::vector<Result> results = judge(record);
  for (const Result& r : results)
    if (r.verdict != Verdict::cannot_be_judged) out.ids.insert(r.id);
  out.open = utilisation_left_open(record, results);
  return out;
}

/// How many of `now` are not in `before`: one may be judged in the place of another.
std::int64_t more(const Judged& now, const Judged& before) {
  return std::count_if(now.ids.begin(), now.ids.end(),
                       [&](const std::string& id) { return !before.ids.contains(id); });
}

}  // namespace

bool may_stand_in(const RunRecord& record, const std::string& missing) {
  constexpr std::array<std::string_view, 5> of_records = {
      "share of the gap that is closed", "tokens whose loss counts", "times of a step's parts",
      "a model that the record names or defines", "FLOPs of a layer's MLP"};
  return trainer_of(record).whole_record ||
         std::find(of_records.begin(), of_records.end(), missing) == of_records.end();
}

std::vector<UsefulOption> useful_options(const RunRecord& record) {
  if (trainer_of(record).whole_record) return {};
  RunRecord stated;
  static_cast<RunFacts&>(stated) = record;  // the many steps of a long log are not copied first
  const auto tried = static_cast<std::ptrdiff_t>(std::min(tried_steps, record.steps.size()));
  stated.steps.assign(record.steps.begin(), record.steps.begin() + tried);
  stated.steps_seen = static_cast<std::int64_t>(stated.steps.size());
  std::vector<UsefulOption> out;
  Judged before = judged(stated);
  while (out.size() < 3) {
    const Option *best = nullptr, *beside = nullptr;
    std::int64_t most = 0;
    bool closes = false;  // the best: what the log prints of its speed in FLOPs is judged with it
    Judged after;
    const auto attempt = [&](const Option& one, const Option* two, bool must_close) {
      RunRecord with = stated;
      one.state(with);
      if (two) two->state(with);
      Judged now = judged(with);
      const std::int64_t gain = more(now, before);
      const bool closed = now.open.size() < before.open.size();
      if (gain == 0 || (must_close && !closed) || closed < closes || (closed == closes && gain <= most))
        return;
      most = gain, closes = closed, best = &one, beside = two, after = std::move(now);
    };
    std::vector<const Option*> missing;
    for (const Option& option : options)
      if (option.missing(stated)) missing.push_back(&option);
    for (const Option* option : missing) attempt(*option, nullptr, false);
    // Where none helps alone, or none lets the FLOP/s be judged, two may.
    const bool alone = best;
    if (!alone || (!before.open.empty() && !closes))
      for (std::size_t i = 0; i < missing.size(); ++i)
        for (std::size_t k = i + 1; k < missing.size(); ++k) attempt(*missing[i], missing[k], alone);
    if (!best) break;
    best->state(stated);
    if (beside) beside->state(stated);
    out.push_back({std::string(best->text) + (beside ? " with " + std::string(beside->text) : ""), most,
                   closes ? before.open : ""});
    before = std::move(after);
  }
  return out;
}

}  // namespace assay::spec::audit
