// Whether the numbers of every line stand in the same relation to one another, where no setting says in
// which.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "spec/audit/groups.hpp"
#include "spec/audit/line_clock.hpp"
#include "spec/audit/other_gpus.hpp"
#include "spec/audit/running_mean.hpp"

namespace assay::spec::audit {
namespace {

/// Two numbers of a line whose quotient (with a time: product) is the same on every line of a run, and the
/// relation that says what it is where the settings are known.
struct Pair {
  Relation relation;
  Field printed, made;
};
constexpr std::array<Pair, 6> pairs = {
    {{Relation::flops_rate, Field::flops_rate, Field::tokens_per_second},  // FLOPs of a token
     {Relation::mfu, Field::mfu, Field::tokens_per_second},                // over the peak
     {Relation::mfu_of_flops_rate, Field::mfu, Field::flops_rate},         // 1 / peak
     {Relation::rate_time, Field::tokens_per_second, Field::seconds},      // tokens of a step
     {Relation::flops_rate_of_batch, Field::flops_rate, Field::seconds},   // FLOPs of a step
     {Relation::mfu_of_batch, Field::mfu, Field::seconds}}};

/// Trainers whose sources say which of their numbers are means: of another one, two that go apart on a line
/// may be a mean and a single step's.
bool known(const Evidence& e) { return e.trainer.means_known; }

/// The two are of the same steps, or the source says how the first is formed of the second's.
bool comparable(const Evidence& e, const Pair& pair) {
  return e.averaged(pair.printed) == e.averaged(pair.made) || running_mean(e, pair.printed).has_value();
}

/// A time is held to a rate where there is one of the same steps, else to FLOP/s, else to MFU.
bool stands_for_time(const Evidence& e, const Step& step, const Pair& pair) {
  if (pair.made != Field::seconds) return true;
  for (const Field nearer : {Field::tokens_per_second, Field::flops_rate}) {
    if (nearer == pair.printed) return true;
    if (usable(step[nearer]) && e.averaged(nearer) == e.averaged(Field::seconds)) return false;
  }
  return true;
}

/// The batch that every line prints beside its time, if one is.
std::optional<Field> batch_on_lines(const Evidence& e) {
  for (const Field batch : {Field::tokens, Field::step_sequences})
    if (std::all_of(e.steps.begin(), e.steps.end(),
                    [&](const Step* s) { return !usable((*s)[Field::seconds]) || usable((*s)[batch]); }))
      return batch;
  return std::nullopt;
}

Comparison compare_pair(const Evidence& e, const Pair& pair, std::optional<Field> batch) {
  Comparison out;
  Means means(e, pair.printed, e.averaged(pair.printed) != e.averaged(pair.made), out);
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    const Step& step = *e.steps[i];
    const auto &printed = step[pair.printed], &made = step[pair.made];
    if (!usable(printed) || !usable(made) || !stands_for_time(e, step, pair)) continue;
    if (pair.printed == Field::mfu && not_measured(*printed)) continue;
    if (pair.made != Field::seconds) {
      means.add(i, *printed, wide(*made), made->value);
      continue;
    }
    const auto work = batch && usable(step[*batch]) ? wide(*step[*batch]) : exact_interval(1);
    means.add(i, *printed, work / wide(*made), work.middle() / made->value);
  }
  means.finish();
  return out;
}

/// What a pair says of the lines of one stretch.
struct Said {
  const Pair* pair;
  bool elsewhere = false;  ///< the relation with the settings judges them; here they clear numbers of a line
  Interval shared{1, 1};   ///< the ratio that most share
  std::map<std::size_t, Interval> ratios;  ///< by step
  std::vector<std::size_t> wrong;          ///< steps that leave it, alone among their neighbours
  std::vector<std::size_t> changed;        ///< steps that leave it where nothing may change it; `ratios` then
                                           ///< says nothing of single numbers
  Interval then{1, 1};                     ///< what most of these share
  std::size_t lines = 0, alike = 0, alike_then = 0;  ///< of the stretch; that share the one, and the other
  bool other_gpus =
      false;  ///< the change lasts, and the rate changes with it: the peak may be that of others
};

std::optional<Said> judge_pair(const Evidence& e, const Pair& pair, bool with_batch,
                               const std::vector<const Sample*>& samples) {
  if (samples.size() < 3) return std::nullopt;
  Said out{};
  out.pair = &pair;
  std::vector<Interval> ratios;
  ratios.reserve(samples.size());
  for (const Sample* sample : samples) ratios.push_back(sample->ratio);
  const Shared shared = shared_factor(ratios);
  out.shared = shared.factor;
  // As many as a relation may leave out and still hold as a whole. More: the work itself changes, which the
  // peak behind MFU / FLOP/s does not feel.
  const std::size_t n = samples.size(), allowed = n < 8 ? 1 : std::max<std::size_t>(2, n / 20);
  const bool of_peak = pair.relation == Relation::mfu_of_flops_rate;
  const auto leaves = [&](std::size_t i) { return !ratios[i].meets(out.shared); };
  const bool many = n - shared.ratios > allowed;
  if (many && !of_peak) return std::nullopt;
  if (of_peak && shared.ratios < n) {
    std::vector<Interval> others;
    for (std::size_t i = 0; i < n; ++i)
      if (leaves(i)) {
        others.push_back(ratios[i]);
        out.changed.push_back(static_cast<std::size_t>(samples[i]->step));
      }
    const Shared then = shared_factor(others);
    out.then = then.factor, out.alike = shared.ratios, out.alike_then = then.ratios;
    out.lines = n;
    out.other_gpus = changes_with_rate(e, samples, shared, then);
    if (many || out.other_gpus) return out;
    out.changed.clear();
  }
  for (std::size_t i = 0; i < n; ++i) {
    out.ratios[static_cast<std::size_t>(samples[i]->step)] = ratios[i];
    if (!leaves(i)) continue;
    // The first and last lines of a few may be another run's, and batches at either end other ones; so may
    // several in a row.
    const bool first = i == 0, last = i + 1 == n, timed = pair.made == Field::seconds;
    if ((first || last) && (n < 8 || (timed && !with_batch))) continue;
    if (!of_peak && ((!first && leaves(i - 1)) || (!last && leaves(i + 1)))) continue;
    out.wrong.push_back(static_cast<std::size_t>(samples[i]->step));
  }
  return out;
}

/// Every pair in every stretch. A relation whose samples leave more than a twentieth open clears nothing.
std::vector<Said> said_by_pairs(const Evidence& e, const Comparisons& comparisons) {
  std::vector<Said> out;
  if (!known(e)) return out;
  const auto batch = batch_on_lines(e);
  for (const Pair& pair : pairs) {
    if (!comparable(e, pair)) continue;
    const Comparison& relation = at(comparisons, pair.relation);
    const bool elsewhere = !relation.samples.empty();
    const Comparison own = elsewhere ? Comparison() : compare_pair(e, pair, batch);
    for (const Stretch& stretch : e.stretches) {
      std::vector<const Sample*> samples;
      for (const Sample& sample : elsewhere ? relation.samples : own.samples)
        if (sample.step >= static_cast<std::int64_t>(stretch.begin) &&
            sample.step < static_cast<std::int64_t>(stretch.end) &&
            (!elsewhere || sample.ratio.high < 1.05 * sample.ratio.low))
          samples.push_back(&sample);
      if (auto said = judge_pair(e, pair, batch.has_value(), samples)) {
        said->elsewhere = elsewhere;
        out.push_back(std::move(*said));
      }
    }
  }
  return out;
}

/// Numbers of a line that a quotient which holds there rests on, and, of those that fail, which all share.
std::vector<Field> suspects(const std::vector<Said>& all, std::size_t step) {
  std::vector<Field> out;
  for (const Field field : {Field::mfu, Field::tokens_per_second, Field::seconds, Field::flops_rate}) {
    bool fails = false, spared = false, missed = false;
    for (const Said& said : all) {
      const auto ratio = said.ratios.find(step);
      if (ratio == said.ratios.end()) continue;
      const bool rests = said.pair->printed == field || said.pair->made == field,
                 holds = ratio->second.meets(said.shared);
      fails |= rests && !holds;
      spared |= rests && holds;
      missed |= !rests && !holds;
    }
    if (fails && !spared && !missed) out.push_back(field);
  }
  return out;
}

bool may_be_of_other_gpus(const std::vector<Said>& all, std::size_t step) {
  return std::any_of(all.begin(), all.end(), [&](const Said& said) {
    return said.other_gpus && std::count(said.changed.begin(), said.changed.end(), step) > 0;
  });
}

/// The peak that a quotient MFU / FLOP/s is one part in.
std::string peak_of(const Interval& quotient) { return shown(1 / quotient.middle(), Unit::flops_per_second); }

/// MFU over FLOP/s that changes for more than single lines: another peak, which one log has not, unless it
/// went on on other GPUs.
void tell_change_of_peak(const Evidence& e, const Said& said, Result& out) {
  const auto on = [](std::size_t some) { return " on " + std::to_string(some); };
  const std::string peaks = "MFU is made with " + peak_of(said.shared) + on(said.alike) + " of " +
                            std::to_string(said.lines) + " lines, with " + peak_of(said.then) +
                            on(said.alike_then);
  if (said.other_gpus) {
    out.note += "; " + peaks + ", where the rate changes too: it may be of other GPUs";
    return;
  }
  for (const std::size_t step : said.changed)
    contradict(out, said.then.middle() / said.shared.middle(), exact_interval(1), e.steps[step]->line);
  blame(out, "peak_changes", "one log has one peak: " + peaks);
}

}  // namespace

void clear_by_quotients(const Evidence& e, const Comparisons& comparisons, std::size_t step,
                        std::vector<Field>& fields) {
  const std::vector<Field> left = suspects(said_by_pairs(e, comparisons), step);
  if (std::any_of(fields.begin(), fields.end(),
                  [&](Field field) { return std::count(left.begin(), left.end(), field) > 0; }))
    std::erase_if(fields, [&](Field field) { return std::count(left.begin(), left.end(), field) == 0; });
}

Result judge_work_steady(const Evidence& e, const Comparisons& comparisons) {
  if (!known(e)) return not_judged("a trainer whose numbers are known to be means or not");
  const std::vector<Said> all = said_by_pairs(e, comparisons);
  Result out = holding(0);
  std::map<std::size_t, const Said*> wrong;  // by step
  for (const Said& said : all) {
    if (said.elsewhere) continue;
    out.judged += static_cast<std::int64_t>(said.ratios.size() + said.changed.size());
    for (const std::size_t step : said.wrong)
      if (!may_be_of_other_gpus(all, step)) wrong.emplace(step, &said);
  }
  if (out.judged == 0)
    return not_judged(
        all.empty() ? "three lines of two such numbers"
                    : "numbers of which no setting speaks: the relations with the settings stand for it");
  out.printed = static_cast<double>(out.judged);
  out.recomputed = exact_interval(out.printed);
  out.note = "quotients of two numbers of a line, each the same on every line";
  for (const Said& said : all)
    if (!said.elsewhere && !said.changed.empty()) tell_change_of_peak(e, said, out);
  std::map<Field, int> votes;
  for (const auto& [step, said] : wrong) {
    const double share = said->ratios.at(step).middle() / said->shared.middle();
    contradict(out, share, exact_interval(1), e.steps[step]->line);
    if (out.contradicted == 1) out.off_by = share;
    std::vector<Field> fields = suspects(all, step);
    clear_by_stamps(e, step, share, fields);
    for (const Field field : fields) ++votes[field];
  }
  if (out.verdict == Verdict::holds) return out;
  out.note = "the quotient of two numbers of the line, over that of the other lines";
  int most = 0;
  for (const auto& [field, count] : votes) most = std::max(most, count);
  for (const auto& [field, count] : votes)
    if (count == most) blame_line(out, field);
  if (out.causes.empty()) blame(out, "line_unknown", lines_alone(out) + ", by more than one number");
  return out;
}

}  // namespace assay::spec::audit
