#include "spec/audit/useful_options.hpp"

#include <algorithm>
#include <array>

#include "spec/audit/invariants.hpp"

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
constexpr std::array<Option, 6> options = {
    {of<Setting::gpus, 8>("--gpus N"),
     {"--gpu X", [](const RunRecord& r) { return r.gpu.empty() && r.device.empty(); },
      [](RunRecord& r) { r.gpu = "H100 SXM"; }},
     {"--model M",
      [](const RunRecord& r) { return r.model.empty() && !r.definition && r.model_file.empty(); },
      [](RunRecord& r) { r.model = "llama3-8b"; }},
     of<Setting::sequence_length, 2048>("--seq T"),
     of<Setting::sequences, 64>("--set sequences=N"),
     of<Setting::max_steps, 1'000'000'000>("--set max_steps=N")}};

/// As many steps as an invariant needs.
constexpr std::size_t tried_steps = 16;

std::int64_t judged(const RunRecord& record) {
  const std::vector<Result> results = judge(record);
  return std::count_if(results.begin(), results.end(),
                       [](const Result& r) { return r.verdict != Verdict::cannot_be_judged; });
}

}  // namespace

bool of_own_record(const std::string& missing) {
  constexpr std::array<std::string_view, 5> own = {
      "share of the gap that is closed", "tokens whose loss counts", "times of a step's parts",
      "a model that the record names or defines", "FLOPs of a layer's MLP"};
  return std::find(own.begin(), own.end(), missing) != own.end();
}

std::vector<UsefulOption> useful_options(const RunRecord& record) {
  RunRecord stated;
  static_cast<RunFacts&>(stated) = record;  // the many steps of a long log are not copied first
  const auto tried = static_cast<std::ptrdiff_t>(std::min(tried_steps, record.steps.size()));
  stated.steps.assign(record.steps.begin(), record.steps.begin() + tried);
  stated.steps_seen = static_cast<std::int64_t>(stated.steps.size());
  std::vector<UsefulOption> out;
  std::int64_t before = judged(stated);
  while (out.size() < 3) {
    const Option *best = nullptr, *beside = nullptr;
    std::int64_t most = before;
    const auto attempt = [&](const Option& one, const Option* two) {
      RunRecord with = stated;
      one.state(with);
      if (two) two->state(with);
      if (const std::int64_t now = judged(with); now > most) most = now, best = &one, beside = two;
    };
    for (const Option& option : options)
      if (option.missing(stated)) attempt(option, nullptr);
    // Where none helps alone, two may.
    for (std::size_t i = 0; !best && i < options.size(); ++i)
      for (std::size_t k = i + 1; k < options.size(); ++k)
        if (options[i].missing(stated) && options[k].missing(stated)) attempt(options[i], &options[k]);
    if (!best) break;
    best->state(stated);
    if (beside) beside->state(stated);
    out.push_back(
        {std::string(best->text) + (beside ? " with " + std::string(beside->text) : ""), most - before});
    before = most;
  }
  return out;
}

}  // namespace assay::spec::audit
