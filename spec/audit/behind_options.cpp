#include "spec/audit/behind_options.hpp"

#include <algorithm>
#include <utility>

namespace assay::spec::audit {
namespace {

/// As if the option had not been given.
RunRecord without_option(const RunRecord& record, const GivenOption& option) {
  constexpr std::pair<std::string_view, std::string RunRecord::*> texts[] = {
      {"model", &RunRecord::model},       {"gpu", &RunRecord::gpu},
      {"device", &RunRecord::device},     {"dtype", &RunRecord::dtype},
      {"schedule", &RunRecord::schedule}, {"parallelism", &RunRecord::parallelism}};
  RunRecord out = record;
  if (const auto setting = setting_named(option.name)) out[*setting] = option.log_number;
  for (const auto& [name, text] : texts)
    if (name == option.name) out.*text = option.log_text;
  std::erase_if(out.stated, [&](const GivenOption& one) { return one.name == option.name; });
  return out;
}

const Result* same_invariant(const std::vector<Result>& results, const std::string& id) {
  const auto found =
      std::find_if(results.begin(), results.end(), [&](const Result& r) { return r.id == id; });
  return found == results.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> options_behind(const RunRecord& record, const std::vector<Result>& results) {
  std::vector<std::string> out;
  const bool any = std::any_of(results.begin(), results.end(),
                               [](const Result& r) { return r.verdict == Verdict::contradicts; });
  if (!any || record.stated.empty()) return out;
  const std::vector<Result> as_stated = judge(record);
  for (const GivenOption& option : record.stated) {
    const std::vector<Result> without = judge(without_option(record, option));
    const bool rests = std::any_of(results.begin(), results.end(), [&](const Result& result) {
      if (result.verdict != Verdict::contradicts) return false;
      const Result *with = same_invariant(as_stated, result.id), *bare = same_invariant(without, result.id);
      return with && bare &&
             (with->verdict != bare->verdict || with->printed != bare->printed ||
              !(with->recomputed == bare->recomputed) || with->contradicted != bare->contradicted);
    });
    if (rests) out.push_back(option.option);
  }
  return out;
}

}  // namespace assay::spec::audit
