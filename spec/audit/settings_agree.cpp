// Whether the lines of a header that say one setting agree.
#include "spec/audit/groups.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {

Result judge_settings_agree(const Evidence& e) {
  const auto& record = e.record;
  if (record.settings_said_again == 0 && record.said_twice.empty())
    return not_judged("a setting that two lines of a header say");
  Result out = holding(record.settings_said_again);
  out.printed = static_cast<double>(record.settings_said_again);
  out.note = "so many settings are said twice, each alike";
  for (const SaidTwice& said : record.said_twice) {
    // What the command line states takes the place of both.
    if (record.stated_for(said.setting)) continue;
    contradict(out, said.then.value, {said.first.low, said.first.high}, said.then.line);
    const auto number = [](const Printed& one) {
      return shown(one.value, Unit::none) + " in line " + std::to_string(one.line);
    };
    const std::string text =
        std::string(to_string(said.setting)) + " is " + number(said.first) + " and " + number(said.then);
    if (out.causes.empty()) out.note = text;
    blame(out, "setting_said_otherwise",
          text + ": one of the two is another run's; the audit goes by the later one (state it with --set)");
  }
  if (out.verdict != Verdict::contradicts) out.recomputed = exact_interval(out.printed);
  return out;
}

}  // namespace assay::spec::audit
