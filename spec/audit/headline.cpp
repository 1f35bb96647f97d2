#include "spec/audit/headline.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace assay::spec::audit {

std::string utilisation_left_open(const Audit& audit) {
  const auto left_open = [&](Field field, std::initializer_list<std::string_view> judges) {
    const auto& steps = audit.record->steps;
    return std::any_of(steps.begin(), steps.end(),
                       [&](const Step& step) { return step[field].has_value(); }) &&
           std::none_of(audit.results.begin(), audit.results.end(), [&](const Result& r) {
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

std::string headline(const Audit& audit) {
  if (audit.contradicts) return "CONTRADICTS";
  const bool judged = std::any_of(audit.results.begin(), audit.results.end(),
                                  [](const Result& r) { return r.verdict != Verdict::cannot_be_judged; });
  if (!judged) return "cannot be judged";
  const std::string open = utilisation_left_open(audit);
  std::string out =
      open.empty() ? "consistent" : "consistent but for its " + open + ", which could not be judged";
  for (const Result& result : audit.results)
    if (result.clock_longer > 0)
      return out + (open.empty() ? ", but" : "; and") + " its clock shows " +
             shown(result.clock_longer, Unit::share) + " more time than its steps";
  return out;
}

}  // namespace assay::spec::audit
