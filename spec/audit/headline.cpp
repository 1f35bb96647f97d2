#include "spec/audit/headline.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace assay::spec::audit {

std::string utilisation_left_open(const Audit& audit) {
  constexpr std::array<std::string_view, 6> of_counted_flops = {
      "flops_rate", "flops_rate_of_batch", "mfu", "mfu_of_batch", "average_mfu", "flops_per_token"};
  for (const Result& r : audit.results)
    if (r.verdict != Verdict::cannot_be_judged &&
        std::find(of_counted_flops.begin(), of_counted_flops.end(), r.id) != of_counted_flops.end())
      return "";
  const auto printed = [&](Field field) {
    const auto& steps = audit.record->steps;
    return std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step[field].has_value(); });
  };
  const bool mfu = printed(Field::mfu), rate = printed(Field::flops_rate);
  return mfu ? rate ? "MFU and FLOP/s" : "MFU" : rate ? "FLOP/s" : "";
}

std::string headline(const Audit& audit) {
  if (audit.contradicts) return "CONTRADICTS";
  const bool judged = std::any_of(audit.results.begin(), audit.results.end(),
                                  [](const Result& r) { return r.verdict != Verdict::cannot_be_judged; });
  if (!judged) return "cannot be judged";
  const std::string open = utilisation_left_open(audit);
  return open.empty() ? "consistent" : "consistent but for its " + open + ", which could not be judged";
}

}  // namespace assay::spec::audit
