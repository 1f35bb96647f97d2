#include "spec/audit/headline.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace assay::spec::audit {

std::string utilisation_left_open(const RunRecord& record, const std::vector<Result>& results) {
  const auto left_open = [&](Field field, std::initializer_list<std::string_view> judges) {
    const auto& steps = record.steps;
    return std::any_of(steps.begin(), steps.end(),
                       [&](const Step& step) { return step[field].has_value(); }) &&
           std::none_of(results.begin(), results.end(), [&](const Result& r) {
             return r.verdict != Verdict::cannot_be_judged &&
                    std::find(judges.begin(), judges.end(), r.id) != judges.end();
           });
  };
  const bool rate = left_open(Field::flops_rate, {"flops_rate", "flops_rate_of_batch"});
  // Made of a rate that was judged, an MFU is.
  const bool mfu = left_open(Field::mfu, {"mfu", "mfu_of_batch"}) &&
                   (rate || left_open(Field::mfu, {"mfu_of_flops_rate"}));
  return mfu ? rate ? "MFU and FLOP/s" : "MFU" : rate ? "FLOP/s" : "";
}

std::string rates_not_numbers(const Audit& audit) {
  std::string out;
  for (const auto& [field, name] :
       {std::pair(Field::tokens_per_second, "tokens/s"), {Field::seconds, "step time"}}) {
    bool any = false, number = false;
    for (const Step& step : audit.record->steps)
      if (const auto& printed = step[field]) any = true, number |= !std::isnan(printed->value);
    if (any && !number) out += (out.empty() ? "" : " and ") + std::string(name);
  }
  return out;
}

std::vector<std::string> causes_of_their_own(const Audit& audit, const Reading& reading) {
  std::vector<std::string> out;
  for (const Result& result : audit.results)
    if (reading.changes.empty() && result.verdict == Verdict::contradicts) out.push_back(result.id);
  return out;
}

std::string headline(const Audit& audit) {
  if (audit.contradicts) return "CONTRADICTS";
  const bool judged = std::any_of(audit.results.begin(), audit.results.end(),
                                  [](const Result& r) { return r.verdict != Verdict::cannot_be_judged; });
  if (!judged) return "cannot be judged";
  const std::string open = utilisation_left_open(*audit.record, audit.results);
  const std::string nans = rates_not_numbers(audit);
  std::string out = "consistent";
  if (!nans.empty())
    out += " but for its " + nans + ", NaN on every line" + (open.empty() ? "" : ", and its " + open) +
           ", which could not be judged";
  else if (!open.empty())
    out += " but for its " + open + ", which could not be judged";
  for (const Result& result : audit.results)
    if (result.clock_longer > 0)
      return out + (out == "consistent" ? ", but" : "; and") + " its clock shows at least " +
             shown(result.clock_longer, Unit::share) + " more time than its steps";
  return out;
}

}  // namespace assay::spec::audit
