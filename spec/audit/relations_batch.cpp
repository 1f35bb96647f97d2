// What a step holds: ranks, sequences and tokens of a step, and what is counted since the start.
#include <algorithm>
#include <cmath>
#include <vector>

#include "spec/audit/batch_of_run.hpp"
#include "spec/audit/relations.hpp"

namespace assay::spec::audit {
namespace {

/// A step has one pass at the least: where nothing says how many there are, sequences that one of all ranks
/// does not leave contradict. Of trainers that split models, ranks count where the log says them.
void compare_one_pass(const Evidence& e, Comparison& to, const char* missing) {
  to.missing = missing;
  if (!e.micro || !e.ranks || (e.trainer.splits_models && !usable(e.record[Setting::data_parallel]))) return;
  const Interval least = *e.micro * exact_interval(*e.ranks);
  if (wide(*e.record[Setting::sequences]).high < least.low)
    add_sample(to, *e.record[Setting::sequences], least);
}

/// Of a smaller batch a trainer that divides it by one pass of all ranks, each on a GPU of its own, would
/// make no pass.
void compare_one_pass_of_tokens(const Evidence& e, Comparison& to) {
  to.missing = "sequences per step";
  if (!e.trainer.batch_of_whole_passes || !e.micro || !e.gpus || !e.sequence_length) return;
  const Interval least = *e.micro * exact_interval(*e.gpus) * *e.sequence_length;
  if (wide(*e.record[Setting::tokens_per_step]).high < least.low)
    add_sample(to, *e.record[Setting::tokens_per_step], least);
}

/// nanoGPT's train.py of before May 2023 makes so many times the configured passes where a rank runs alone.
constexpr double passes_alone = 8;

/// The tokens of one rank's passes, where a line of the log says how many it makes beside the configured
/// ones. Passes that the command line states are of a train.py that divides the configured ones by the ranks.
/// A multiple or a part of these may be a number of ranks by which a changed train.py multiplies or divides.
void compare_passes_made(const Evidence& e, Comparison& to) {
  const auto configured = e.of(Setting::accumulation_configured);
  const auto& made = e.record[Setting::accumulation];
  if (!e.trainer.batch_of_configured_passes || !configured || !usable(made) || made->line <= 0 || !e.micro ||
      !e.sequence_length)
    return;
  const double pass = e.micro->middle() * e.sequence_length->middle(), stated = configured->middle();
  const double times = stated * passes_alone == made->value ? passes_alone : 1;
  const bool by_ranks = std::fmod(made->value, stated) == 0 || std::fmod(stated, made->value) == 0;
  if (by_ranks && made->value != stated * times) return;
  add_sample(to, exactly(made->value * pass, made->line), *configured * exact_interval(times * pass));
}

void compare_batch(const Evidence& e, Comparisons& out) {
  const RunRecord& r = e.record;
  Comparison& ranks = at(out, Relation::ranks);
  const auto& data_parallel = r[Setting::data_parallel];
  if (!usable(r[Setting::gpus]))
    ranks.missing = "number of GPUs";
  else if (!usable(data_parallel))
    ranks.missing = "data-parallel ranks";
  else if (!e.axes_known)
    ranks.missing = "tensor- and pipeline-parallel ranks";
  else {
    Interval product = wide(*data_parallel);
    for (const Setting axis :
         {Setting::tensor_parallel, Setting::pipeline_parallel, Setting::context_parallel})
      if (const auto extent = e.of(axis)) product = product * *extent;
    add_sample(ranks, *r[Setting::gpus], product);
    if (e.ranks_printing > r[Setting::gpus]->value)
      add_sample(ranks, *r[Setting::gpus], exact_interval(e.ranks_printing));
  }

  Comparison& sequences = at(out, Relation::sequences);
  const auto& printed_sequences = r[Setting::sequences];
  // A configured number that the trainer still divides is not the number of passes.
  const bool passes = e.accumulation && !e.accumulation_is_configured;
  if (!usable(printed_sequences))
    sequences.missing = "sequences per step";
  else if (!e.micro || !passes || !e.ranks)
    compare_one_pass(e, sequences, !e.micro ? "micro-batch" : !passes ? "accumulation" : "number of GPUs");
  else
    add_sample(sequences, *printed_sequences, *e.micro * *e.accumulation * exact_interval(*e.ranks));

  Comparison& tokens = at(out, Relation::tokens_per_step);
  const auto& printed_tokens = r[Setting::tokens_per_step];
  if (!usable(printed_tokens))
    tokens.missing = "tokens per step", compare_passes_made(e, tokens);
  else if (!e.sequence_length)
    tokens.missing = "sequence length";
  else if (usable(printed_sequences))
    add_sample(tokens, *printed_tokens, wide(*printed_sequences) * *e.sequence_length);
  else if (e.micro && passes && e.ranks)
    add_sample(tokens, *printed_tokens,
               *e.micro * *e.accumulation * exact_interval(*e.ranks) * *e.sequence_length);
  else if (e.trainer.batch_of_configured_passes && e.micro && e.accumulation_is_configured)
    add_sample(tokens, *printed_tokens, *e.micro * *e.accumulation * *e.sequence_length);
  else
    compare_one_pass_of_tokens(e, tokens);
}

void compare_step_sequences(const Evidence& e, Comparisons& out) {
  Comparison& to = at(out, Relation::step_sequences);
  auto stated = e.accumulation_is_configured ? e.of(Setting::sequences) : stated_batch(e);
  // A number that was taken from a line is nothing to hold the lines against.
  const auto& setting = e.record[Setting::sequences];
  for (const Step* step : e.steps)
    if (stated && setting && step->line > 0 && step->line == setting->line) stated.reset();
  to.missing = stated ? "sequences on the step lines" : "sequences per step";
  // Passes that a later start states are not those of the steps before it.
  const auto& passes = e.record[Setting::accumulation];
  const std::int64_t from = !setting && passes ? passes->line : 0;
  for (std::size_t i = 0; stated && i < e.steps.size(); ++i)
    if (const auto& of_line = (*e.steps[i])[Field::step_sequences];
        usable(of_line) && e.steps[i]->line > from)
      add_sample(to, *of_line, *stated, static_cast<std::int64_t>(i));
}

/// Ends of passes over the data between two lines, at the most, by their epochs, where they make small
/// batches; 0: none.
double ends_of_passes(const Evidence& e, const Step& from, const Step& to) {
  const auto &before = from[Field::epoch], &after = to[Field::epoch];
  if (!e.trainer.last_batches_are_small || !before || !after) return 0;
  const double ends = std::floor(wide(*after).high) - std::ceil(wide(*before).low) + 1;
  return std::isfinite(ends) ? std::max(0.0, ends) : 0;
}

/// What a counter was examined for, and did not say.
struct Unsaid {
  bool any = false, coarse = false, none = false;
};

/// What a counter gains between two steps, `to` the one with that index, and what it must.
void add_gain(Field field, const Step& from, const Step& to, Interval expected, std::size_t index,
              Comparison& out, Unsaid& unsaid) {
  const Interval gained = wide(*to[field]) - wide(*from[field]);
  // A count that is printed no finer than it grows agrees with any growth: it speaks only against one
  // that it would show.
  if (gained.low <= 0 && gained.high >= expected.low)
    unsaid.coarse = true;
  else if (gained.high > 0)
    add_sample(
        out,
        {to[field]->value - from[field]->value, std::max(gained.low, 1e-300), gained.high, to[field]->line},
        expected, static_cast<std::int64_t>(index));
  else if (to[field]->value == 0)
    unsaid.none = true;
}

/// What a counter gains between the first step of a stretch and each later one.
void compare_totals(const Evidence& e, Field field, std::optional<Interval> per_step, const char* missing,
                    Comparison& out) {
  Unsaid unsaid;
  for (const Stretch& stretch : e.stretches) {
    const Step* first = nullptr;
    for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
      const Step& s = *e.steps[i];
      if (!s[field] || !s[Field::step]) continue;
      unsaid.any = true;
      if (!first) {
        first = &s;
        continue;
      }
      const double steps = s[Field::step]->value - (*first)[Field::step]->value;
      if (steps <= 0 || !per_step) continue;
      // Of each pass over the data the last batch may be a short one, or be left over for the next step.
      const double ends = ends_of_passes(e, *first, s);
      add_gain(field, *first, s,
               {std::max(1.0, (steps - ends) * per_step->low), (steps + ends) * per_step->high}, i, out,
               unsaid);
    }
  }
  out.missing = unsaid.coarse                  ? "digits of what is counted since the start"
                : unsaid.none                  ? "a count since the start that is not 0"
                : unsaid.any                   ? missing
                : field == Field::tokens_total ? "tokens since the start"
                                               : "sequences since the start";
}

/// Two lines one behind the other, each of which prints its batch and the sequences since the start.
struct BatchesOfTwo {
  std::size_t index;  ///< of the later one
  double steps;       ///< between them
  Interval before, own;
};

/// All of them; `grow`: no batch is smaller than one before it.
std::vector<BatchesOfTwo> batches_of_two(const Evidence& e, bool& grow) {
  std::vector<BatchesOfTwo> out;
  grow = true;
  for (const Stretch& stretch : e.stretches)
    for (std::size_t i = stretch.begin + 1; i < stretch.end; ++i) {
      const Step &from = *e.steps[i - 1], &to = *e.steps[i];
      const auto there = [](const Step& s) {
        return usable(s[Field::step_sequences]) && s[Field::sequences_total] && s[Field::step];
      };
      if (!there(from) || !there(to)) continue;
      const double steps = to[Field::step]->value - from[Field::step]->value;
      const Interval before = wide(*from[Field::step_sequences]), own = wide(*to[Field::step_sequences]);
      grow = grow && own.high >= before.low;
      if (steps > 0) out.push_back({i, steps, before, own});
    }
  return out;
}

/// Of a batch that changes: the sequences since the start grow by that of each line, or of the line before
/// where a trainer sets the next one before it prints. Those of steps that no line shows lie between the
/// batches around them, where it only grows.
void compare_changing_batches(const Evidence& e, Comparison& out) {
  bool grow = false;
  const std::vector<BatchesOfTwo> pairs = batches_of_two(e, grow);
  const auto gained = [&](const BatchesOfTwo& two) {
    return wide(*(*e.steps[two.index])[Field::sequences_total]) -
           wide(*(*e.steps[two.index - 1])[Field::sequences_total]);
  };
  std::int64_t of_own = 0, of_before = 0;
  for (const BatchesOfTwo& two : pairs) {
    if (two.steps != 1 || two.own.meets(two.before)) continue;
    of_own += gained(two).meets(two.own);
    of_before += gained(two).meets(two.before);
  }
  Unsaid unsaid;
  for (const BatchesOfTwo& two : pairs) {
    if (two.steps > 1 && !grow) continue;
    const Interval between = {std::min(two.before.low, two.own.low), std::max(two.before.high, two.own.high)},
                   of_step = of_before > of_own ? two.before : two.own;
    add_gain(Field::sequences_total, *e.steps[two.index - 1], *e.steps[two.index],
             two.steps > 1 ? between * exact_interval(two.steps) : of_step, two.index, out, unsaid);
  }
}

}  // namespace

void compare_batches(const Evidence& e, Comparisons& out) {
  compare_batch(e, out);
  compare_step_sequences(e, out);
  std::optional<Interval> sequences = e.of(Setting::sequences);
  if (!sequences && e.tokens_per_step && e.sequence_length)
    sequences = *e.tokens_per_step / *e.sequence_length;
  compare_totals(e, Field::tokens_total, e.tokens_per_step, "tokens per step",
                 at(out, Relation::tokens_total));
  compare_totals(e, Field::sequences_total, sequences, "sequences per step",
                 at(out, Relation::sequences_total));
  if (!sequences) compare_changing_batches(e, at(out, Relation::sequences_total));
}

}  // namespace assay::spec::audit
