// The ends of a record to which resumed runs append: each is of its own start's steps. Source:
// spec/record/record.md, "run_end". The first start's end is a summary like another trainer's.
#include <cmath>
#include <utility>

#include "spec/audit/groups.hpp"
#include "spec/record/run.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec::audit {
namespace {

/// What writer and reader may make of `value` in as many operations, the terms of which add up to `scale` at
/// most.
Interval rounded(double value, double scale, double operations) {
  const double rounding = 2 * gamma(static_cast<std::int64_t>(operations), unit_roundoff(Dtype::f64)) * scale;
  return {value - rounding, value + rounding};
}

class LaterEnds {
 public:
  void judge(const EndOfStart& end) {
    ++out_.judged;
    if (out_.verdict != Verdict::contradicts)
      out_.printed = end.said.tokens, out_.recomputed = exact_interval(end.of_lines.tokens);
    if (end.said.seconds > 0) {
      const double rate = end.said.tokens / end.said.seconds;
      hold(end, end.tokens_per_second, rounded(rate, rate, 1), "not its tokens over its seconds");
    }
    const double uniform = std::log(end.vocab);
    if (end.gap_closed && end.final_loss && end.floor && *end.floor < uniform) {
      const double gap = uniform - *end.floor;
      hold(end, *end.gap_closed,
           rounded((uniform - *end.final_loss) / gap, (uniform + *end.final_loss) / gap, 4),
           "the share of the gap is of another loss");
    }
    if (end.sums_unknown) return;
    hold(end, end.said.steps, exact_interval(end.of_lines.steps), "other steps than stand behind its start");
    hold(end, end.said.tokens, exact_interval(end.of_lines.tokens), "other tokens than its steps read");
    hold(end, end.said.seconds, rounded(end.of_lines.seconds, end.of_lines.seconds, end.of_lines.steps),
         "another time than its steps took");
    if (end.final_loss && end.loss_of_lines && std::isfinite(*end.loss_of_lines))
      hold(end, *end.final_loss, rounded(*end.loss_of_lines, *end.loss_of_lines, record::final_loss_steps),
           "not the mean loss of its last steps");
  }
  Result result() && { return std::move(out_); }

 private:
  void hold(const EndOfStart& end, double said, const Interval& expected, const char* why) {
    if (expected.low <= said && said <= expected.high) return;
    contradict(out_, said, expected, end.line);
    blame(out_, "later_end_other", why);
  }

  Result out_ = holding(0);
};

}  // namespace

Result judge_later_ends(const Evidence& e) {
  LaterEnds ends;
  for (const EndOfStart& end : e.record.later_ends) ends.judge(end);
  if (e.record.later_ends.empty()) return not_judged("the end of a later start");
  return std::move(ends).result();
}

}  // namespace assay::spec::audit
