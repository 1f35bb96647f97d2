#include "spec/audit/copied_lines.hpp"

#include <algorithm>
#include <array>

#include "spec/audit/groups.hpp"

namespace assay::spec::audit {
namespace {

/// What no two runs of one step show alike to the last digit, line for line.
constexpr std::array measured = {Field::seconds, Field::tokens_per_second, Field::mfu, Field::flops_rate,
                                 Field::sequences_per_second};

bool are_measured(const Step& a, const Step& b) {
  return std::any_of(measured.begin(), measured.end(),
                     [&](Field field) { return a[field] && b[field] && a[field]->value != b[field]->value; });
}

}  // namespace

Copies copies_at(const Evidence& e, std::size_t i) {
  constexpr std::size_t fewest_stamped = 2, fewest_measured = 3;  // chosen
  const auto& number = (*e.steps[i])[Field::step];
  if (!number) return {};
  const auto same_step = [&](const Step* step) {
    return (*step)[Field::step] && (*step)[Field::step]->value == number->value;
  };
  std::size_t first = i;
  do {
    if (first-- == 0) return {};
  } while (!same_step(e.steps[first]));
  Copies out{first, 0};
  bool stamped = true, differ = false;
  for (; i + out.lines < e.steps.size() && first + out.lines < i; ++out.lines) {
    const Step &one = *e.steps[first + out.lines], &other = *e.steps[i + out.lines];
    if (!same_numbers(one, other)) break;
    stamped = stamped && one[Field::elapsed];
    differ = differ || (out.lines > 0 && are_measured(one, *e.steps[first]));
  }
  // Where the log says itself that the program began again, stamps alone tell.
  const auto& said = e.record.restarts;
  const bool again = std::any_of(said.begin(), said.end(), [&](const Restart& restart) {
    return restart.line > e.steps[i - 1]->line && restart.line <= e.steps[i]->line;
  });
  const bool told = stamped ? out.lines >= fewest_stamped : out.lines >= fewest_measured && differ && !again;
  return told ? out : Copies{};
}

std::string told_as_copies(const Evidence& e, std::size_t i, const Copies& copies) {
  const auto line = [&](std::size_t k) { return std::to_string(e.steps[k]->line); };
  const std::size_t last = copies.lines - 1;
  return "lines " + line(i) + " to " + line(i + last) + " are copies of lines " + line(copies.first) +
         " to " + line(copies.first + last);
}

void blame_copies(Result& result, const std::string& told) {
  blame(result, "steps_copied", told + ", their times too: no restart, which does its steps at another time");
}

}  // namespace assay::spec::audit
