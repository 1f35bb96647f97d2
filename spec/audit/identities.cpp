#include "spec/audit/identities.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <numeric>
#include <variant>

#include "spec/audit/groups.hpp"
#include "spec/error.hpp"
#include "spec/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "spec/record/run.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec::audit {
namespace {

constexpr IdentityRow identity_rows[] = {
    {{"perplexity", "perplexity of a validation = e to its loss", "No more than rounding is forgiven.",
      Unit::none},
     "a validation"},
    {{"bits_per_byte", "bits per byte of a validation = its loss / ln 2, where a token is a byte",
      "Of the built-in grammar, whose tokens are bytes; for other data the record does not say how many "
      "bytes its tokens are.",
      Unit::none},
     "a validation on the grammar"},
    {{"clip_coefficient", "clip coefficient = min(1, optimizer.clip / (gradient norm + 1e-6)), or 1 without",
      "spec/ops/clip_grad_norm/clip_grad_norm.md. No more than rounding is forgiven.", Unit::none},
     "clipping of our own record"},
    {{"executed_flops", "executed FLOPs of a step = those of the other steps with as many tokens",
      "Every step of a start runs the same GEMMs and attention, but where documents lie otherwise or experts "
      "drop choices: then this is not judged. The line that differs is wrong, or the one before it.",
      Unit::flops},
     "steps that count executed FLOPs"},
    {{"hfu_of_executed", "HFU = executed FLOPs / step time / peak of what runs",
      "The peak is `executed_peak_flops`, or `peak_flops` without. No more than rounding is forgiven.",
      Unit::share},
     "executed FLOPs and HFU"},
    {{"elapsed", "time since the start grows by at least the step's time, and those of validations between",
      "The clock of the whole start runs while a step is timed, so it cannot grow by less. A thousandth and "
      "a millisecond are forgiven, chosen: a GPU times its steps by a clock of its own. The line that is "
      "told is wrong, or the one before it.",
      Unit::seconds},
     "time since the start of our own record"},
    {{"source_tokens", "tokens of the sources of a mixture add up to the step's, those that count, too",
      "Whole numbers: any difference contradicts.", Unit::tokens},
     "sources of a mixture"},
    {{"source_losses", "losses of the sources, weighted by the tokens that count, are the step's loss",
      "The trainer adds the losses of tokens in two orders: what rounding to single precision makes of "
      "logits of up to 100 is forgiven, chosen. Not judged on GPUs, of whose sums no record was held to it "
      "yet.",
      Unit::nats},
     "sources of a mixture"},
    {{"source_epochs", "epochs of a source grow by its tokens over its size",
      "Its size is what the first steps say, a whole number of sequences. Not judged behind a skipped step, "
      "a resume or a lost line, until the next one.",
      Unit::none},
     "epochs of the sources of a mixture"},
    {{"ends", "the end of a start = what its own steps come to",
      "Steps, tokens, seconds, tokens/s, those of goodput, final loss and share of the gap closed, since "
      "that start. No more than rounding is forgiven; an end behind a line that could not be read, or behind "
      "a lost rank, is held to itself alone. The first start's end is held to its steps by the invariants of "
      "a summary, but where the batch grows or steps were skipped.",
      Unit::none},
     "the end of a start"},
    {{"goodput", "parts of a start's time add up to it, and are no less than its lines say",
      "Waiting for data is the sum of the steps'; steps, saves, evaluation and start-up enclose what the "
      "lines say of them, and may be longer by what no line times.",
      Unit::seconds},
     "goodput"},
    {{"run_goodput", "time of all starts = the sum of theirs",
      "spec/record/record.md says how: a start that left no end counts with the time of its steps. Not "
      "judged behind a line that could not be read.",
      Unit::seconds},
     "goodput of all starts"},
    {{"chain", "lines of a record that are not as they were written, by the hash at the end of each: none",
      "spec/record/record.md, \"Chain\": each line ends in a hash of itself and of the line before it. Where "
      "the hash is wrong, the line was changed after it was written, or lines before it were changed, taken "
      "out or put in. Where the beginning of a record is missing, its first line is named. A last line that "
      "was cut off does not count.",
      Unit::none},
     "hashes of lines of our own record"},
};
static_assert(std::size(identity_rows) == static_cast<std::size_t>(Identity::count_));

constexpr double without_end = 1e300;  // as in other invariants

/// What writer and reader may make of `value` in as many operations, the terms of which add up to `scale` at
/// most.
Interval rounding_of(double value, double scale, double operations) {
  const double rounding = 2 * gamma(operations, unit_roundoff(Dtype::f64)) * scale;
  return {value - rounding, value + rounding};
}
Interval rounding_of(double value, double operations) {
  return rounding_of(value, std::abs(value), operations);
}
Interval no_less_than(double value, double scale, double operations) {
  return {rounding_of(value, scale, operations).low, without_end};
}

/// What a record's clocks may be apart over so many steps, of a GPU that times its phases itself and of the
/// moments at which a phase of the run ends and the next is noted: a thousandth and a millisecond a step,
/// chosen.
double between_clocks(double seconds, double steps) { return 1e-3 * (seconds + steps); }

const Value* stated_in(const record::RunStart& start, std::string_view name) {
  for (const auto& [key, value] : start.settings)
    if (key == name) return &value;
  return nullptr;
}

std::optional<double> number_in_settings(const record::RunStart& start, std::string_view name) {
  const Value* value = stated_in(start, name);
  if (value && std::holds_alternative<double>(*value)) return std::get<double>(*value);
  if (value && std::holds_alternative<std::int64_t>(*value))
    return static_cast<double>(std::get<std::int64_t>(*value));
  return std::nullopt;
}

}  // namespace

std::span<const IdentityRow> identities() { return identity_rows; }

void Identities::hold(Identity identity, double printed, const Interval& expected, std::string_view why) {
  // What is not finite is judged by other invariants.
  if (!std::isfinite(expected.low) || !std::isfinite(expected.high)) return;
  held_->resize(static_cast<std::size_t>(Identity::count_));
  HeldIdentity& held = (*held_)[static_cast<std::size_t>(identity)];
  ++held.judged;
  const bool right = expected.holds(printed);
  if (held.contradicted == 0) held.printed = printed, held.recomputed = expected;
  if (right) return;
  if (held.contradicted++ == 0) held.why = why;
  constexpr std::size_t most = 8;
  if (held.lines.size() < most && (held.lines.empty() || held.lines.back() != line_))
    held.lines.push_back(line_);
}

void Identities::hold_sum(Identity identity, double printed, std::initializer_list<double> terms,
                          const char* why) {
  double sum = 0, scale = 0;
  for (const double term : terms) sum += term, scale += std::abs(term);
  hold(identity, printed, rounding_of(sum, scale, 2 * static_cast<double>(terms.size())), why);
}

void Identities::linked(bool right, std::int64_t line, std::vector<HeldIdentity>& held) {
  held_ = &held, line_ = line;
  hold(Identity::chain, right ? 0 : 1, exact_interval(0),
       "the line is not as it was written, or lines before it are not: a file was changed, or is damaged");
}

void Identities::see(const record::Event& event, std::int64_t line, std::vector<HeldIdentity>& held) {
  held_ = &held, line_ = line;
  const auto* start = std::get_if<record::RunStart>(&event);
  const auto* run_end = std::get_if<record::RunEnd>(&event);
  const auto* skipped = std::get_if<record::SkippedStep>(&event);
  const auto* one = std::get_if<record::Step>(&event);
  if (starts_ == 0 && !start) return;  // a piece of a record: nothing is known of its steps
  if (start)
    before_end_.reset();
  else if ((one || skipped || run_end) && before_end_)
    take_back_end(held);
  if (run_end) before_end_ = held;
  all_starts_.add(event);
  if (start) begin(*start);
  if (const auto* validated = std::get_if<record::Validation>(&event)) validation(*validated);
  if (const auto* resume = std::get_if<record::ResumeFrom>(&event)) {
    last_step_ = resume->step;
    resumed_ = true;
    // The starts before it stand in another record, or in a part of this one that is not here.
    goodput_known_ = goodput_known_ && starts_ > 1;
  }
  if (one) step(*one);
  if (skipped) {
    sums_.skipped += skipped->seconds, between_ += skipped->seconds;
    sources_.clear();
    last_step_ = skipped->step;
  }
  if (run_end) end(*run_end);
}

/// What the last end said counts no more. Its line and those since then are what they are.
void Identities::take_back_end(std::vector<HeldIdentity>& held) {
  before_end_->resize(held.size());
  constexpr auto chain = static_cast<std::size_t>(Identity::chain);
  if (!held.empty()) (*before_end_)[chain] = held[chain];
  held = *std::exchange(before_end_, std::nullopt);
}

void Identities::begin(const record::RunStart& start) {
  // One that begins anew may be another run, whose record was appended to this one.
  goodput_known_ = goodput_known_ && (starts_ <= 1 || resumed_);
  ++starts_;
  resumed_ = false;
  clip_ = number_in_settings(start, "optimizer.clip");
  peak_ = start.executed_peak_flops ? start.executed_peak_flops : start.peak_flops;
  vocab_ = static_cast<double>(start.vocab);
  sequence_length_ = std::max<std::int64_t>(1, start.batch.sequence_length);
  tokens_are_bytes_ = start.data.source == "grammar";
  const Value* ends = stated_in(start, "data.document_ends");
  const auto* word = ends ? std::get_if<std::string>(ends) : nullptr;
  products_differ_ = number_in_settings(start, "data.end_of_document").value_or(-1) >= 0 ||
                     (word && *word != "off") ||
                     number_in_settings(start, "experts.capacity").value_or(0) > 0;
  on_gpu_ = !start.gpus.empty();
  ramps_ = !record::global_batch(start).ramp.empty();
  all_steps_ = true;
  sums_ = {}, losses_.clear();
  last_step_ = 0, elapsed_ = 0, between_ = 0;
  counted_.reset();
  sources_.clear();
}

void Identities::validation(const record::Validation& validation) {
  const double e_to_loss = std::exp(validation.loss);
  // Two libraries' exp differ by their last digit.
  hold(Identity::perplexity, validation.perplexity, rounding_of(e_to_loss, 4), "not e to the loss beside it");
  if (validation.bits_per_byte && tokens_are_bytes_)
    hold(Identity::bits_per_byte, *validation.bits_per_byte,
         rounding_of(validation.loss / std::numbers::ln2, 2), "not the loss beside it over ln 2");
  between_ += validation.seconds;
  sums_.validations += validation.seconds;
}

void Identities::step(const record::Step& step) {
  // A record that begins in the middle, or out of which lines were cut, has steps that nobody saw.
  if (step.step != last_step_ + 1) all_steps_ = goodput_known_ = false;
  if (clip_ && std::isfinite(step.gradient_norm) && std::isfinite(*clip_) && *clip_ >= 0)
    hold(Identity::clip_coefficient, step.clip_coefficient,
         *clip_ > 0 && step.gradient_norm >= 0
             ? rounding_of(clip_grad_norm::coefficient(step.gradient_norm, *clip_), 2)
             : exact_interval(1),
         "not what optimizer.clip makes of the gradient norm beside it");
  executed(step);
  clock(step);
  if (step.sources) mixture(step);
  last_step_ = step.step;
  ++sums_.steps;
  sums_.tokens += step.tokens;
  sums_.seconds += step.seconds;
  sums_.data_wait += step.phases.data_wait;
  sums_.saves += step.phases.checkpoint;
  losses_.push_back(step.loss);
  if (std::ssize(losses_) > record::final_loss_steps) losses_.erase(losses_.begin());
}

void Identities::executed(const record::Step& step) {
  if (!step.executed_flops) return;
  if (step.hfu && peak_ && step.seconds > 0)
    hold(Identity::hfu_of_executed, *step.hfu, rounding_of(*step.executed_flops / step.seconds / *peak_, 2),
         "not the executed FLOPs over time and peak");
  if (products_differ_) return;
  if (!counted_ || counted_->tokens != step.tokens) {
    counted_ = step, counted_confirmed_ = false;
    return;
  }
  const bool alike = *step.executed_flops == *counted_->executed_flops;
  hold(Identity::executed_flops, *step.executed_flops, exact_interval(*counted_->executed_flops),
       "other products than in the step before of as many tokens, or that one is wrong");
  if (alike)
    counted_confirmed_ = true;
  else if (!counted_confirmed_)  // of two that differ either may be wrong
    counted_ = step;
}

void Identities::clock(const record::Step& step) {
  // Clocks are read between the lines, too, each time adding what has passed since: a few tens of times at
  // the most between two steps.
  constexpr double readings = 64;
  between_ += step.seconds;
  if (!step.elapsed_seconds) return;
  const double least = elapsed_ + between_ - between_clocks(between_, 1);
  hold(Identity::elapsed, *step.elapsed_seconds, no_less_than(least, elapsed_ + between_, readings),
       "less than the time since the start at the step before, and what passed since; this line is wrong, or "
       "that one");
  if (!sums_.first_began) sums_.first_began = *step.elapsed_seconds - (step.seconds - step.phases.checkpoint);
  elapsed_ = *step.elapsed_seconds, between_ = 0;
}

void Identities::mixture(const record::Step& step) {
  constexpr double largest_logit = 100, roundings = 4;
  std::int64_t tokens = 0, valid = 0;
  double loss = 0;
  for (const record::StepSource& source : *step.sources) {
    tokens += source.tokens, valid += source.valid_tokens;
    if (source.loss) loss += *source.loss * static_cast<double>(source.valid_tokens);
    epochs(source, step.step);
  }
  hold(Identity::source_tokens, static_cast<double>(step.tokens), exact_interval(static_cast<double>(tokens)),
       "the sources have other tokens");
  hold(Identity::source_tokens, static_cast<double>(step.valid_tokens),
       exact_interval(static_cast<double>(valid)), "of the sources other tokens count");
  if (valid <= 0 || !std::isfinite(loss) || on_gpu_) return;
  const double mean = loss / static_cast<double>(valid);
  const double rounding = gamma(roundings, unit_roundoff(Dtype::f32)) * (std::abs(mean) + largest_logit);
  hold(Identity::source_losses, step.loss, {mean - rounding, mean + rounding},
       "not the mean of the sources' losses");
}

/// The source was read tokens / size times in this step.
void Identities::epochs(const record::StepSource& source, std::int64_t step) {
  Source& known = sources_[source.name];
  if (step == 1)
    known.epochs = 0;
  else if (step != last_step_ + 1)
    known.epochs.reset();
  const std::optional<double> before = std::exchange(known.epochs, source.epochs);
  if (!before) return;
  const double tokens = static_cast<double>(source.tokens), grown = source.epochs - *before;
  if (known.size || source.tokens == 0) {
    const double expected = *before + (known.size ? tokens / *known.size : 0);
    const bool right = rounding_of(expected, 4).holds(source.epochs);
    hold(Identity::source_epochs, source.epochs, rounding_of(expected, 4),
         "not its tokens over the size that other steps give the source");
    if (right)
      known.confirmed = true;
    else if (!known.confirmed)
      known.size.reset();
    return;
  }
  // Its size is a whole number of sequences, where the digits of so many epochs tell it.
  constexpr double told = 0.25;
  const double length = static_cast<double>(sequence_length_), size = tokens / grown;
  const double open = rounding_of(0, source.epochs, 4).high / grown * size;
  if (!(grown > 0) || open > told * length) return;
  const double whole = length * std::round(size / length);
  hold(Identity::source_epochs, source.epochs, rounding_of(*before + tokens / whole, 4),
       "its tokens are of a source of no whole number of sequences");
  if (rounding_of(*before + tokens / whole, 4).holds(source.epochs))
    known.size = whole, known.confirmed = false;
}

void Identities::end_of_steps(const record::RunEnd& end, bool sums_known) {
  if (sums_known) {
    const auto counted = static_cast<double>(sums_.steps);
    hold(Identity::ends, static_cast<double>(end.steps), exact_interval(counted),
         "other steps than stand behind its start");
    hold(Identity::ends, static_cast<double>(end.tokens), exact_interval(static_cast<double>(sums_.tokens)),
         "other tokens than its steps read");
    hold(Identity::ends, end.seconds, rounding_of(sums_.seconds, counted),
         "another time than its steps took");
    const std::int64_t last = end.final_steps.value_or(0);
    if (end.final_loss && last >= 1 && last <= std::ssize(losses_))
      hold(Identity::ends, *end.final_loss,
           rounding_of(std::accumulate(losses_.end() - last, losses_.end(), 0.0) / static_cast<double>(last),
                       record::final_loss_steps),
           "not the mean loss of its last steps");
  }
  if (end.seconds > 0)
    hold(Identity::ends, end.tokens_per_second, rounding_of(static_cast<double>(end.tokens) / end.seconds, 1),
         "tokens_per_second is not its tokens over its seconds");
  const double uniform = std::log(vocab_);
  if (end.gap_closed && end.final_loss && end.floor && *end.floor < uniform) {
    const double gap = uniform - *end.floor;
    hold(Identity::ends, *end.gap_closed,
         rounding_of((uniform - *end.final_loss) / gap, (uniform + *end.final_loss) / gap, 4),
         "the share of the gap is of another loss");
  }
}

void Identities::end(const record::RunEnd& end) {
  // The rank that writes the end behind a lost one may have counted other steps than stand in the record.
  const bool peer_lost = end.exit_code == static_cast<std::int64_t>(ExitCode::peer_lost);
  // The end of a first start whose steps are all alike is held as another trainer's summary is.
  if (starts_ > 1 || ramps_ || sums_.skipped > 0) end_of_steps(end, all_steps_ && !peer_lost);
  if (end.goodput && end.goodput->seconds > 0)
    hold(Identity::ends, end.goodput->tokens_per_second,
         rounding_of(static_cast<double>(end.tokens) / end.goodput->seconds, 1),
         "goodput.tokens_per_second is not its tokens over goodput.seconds");
  if (end.goodput) goodput(end, *end.goodput);
  if (!end.run_goodput || !goodput_known_ || (starts_ > 1 && !resumed_)) return;
  const record::RunGoodput &said = *end.run_goodput, sum = all_starts_.sum();
  hold_sum(Identity::run_goodput, said.seconds,
           {said.productive, said.data_wait, said.start_up, said.saves, said.evaluation, said.skipped,
            said.redone, said.other},
           "its parts add up to another time");
  hold(Identity::run_goodput, static_cast<double>(said.starts),
       exact_interval(static_cast<double>(sum.starts)), "other starts than the record has");
  hold(Identity::run_goodput, static_cast<double>(said.unended),
       exact_interval(static_cast<double>(sum.unended)), "other starts than the record has left no end");
  if (peer_lost) return;
  const std::pair<const char*, double record::RunGoodput::*> parts[] = {
      {"productive", &record::RunGoodput::productive}, {"data_wait", &record::RunGoodput::data_wait},
      {"start_up", &record::RunGoodput::start_up},     {"saves", &record::RunGoodput::saves},
      {"evaluation", &record::RunGoodput::evaluation}, {"skipped", &record::RunGoodput::skipped},
      {"redone", &record::RunGoodput::redone},         {"other", &record::RunGoodput::other}};
  for (const auto& [name, part] : parts)
    hold(Identity::run_goodput, said.*part, rounding_of(sum.*part, sum.seconds, 2),
         std::string(name) + " is not the sum of the starts'");
}

void Identities::goodput(const record::RunEnd& end, const record::Goodput& said) {
  hold_sum(Identity::goodput, said.seconds,
           {said.start_up, said.steps, said.data_wait, said.saves, said.evaluation, said.other},
           "its parts add up to another time");
  const double forgiven = between_clocks(said.seconds, static_cast<double>(1 + sums_.steps));
  const auto encloses = [&](double part, double least, const char* why) {
    // As many readings of clocks as in `clock`, of each step.
    hold(Identity::goodput, part,
         no_less_than(least - forgiven, said.seconds, 64 * (1 + static_cast<double>(sums_.steps))), why);
  };
  const bool peer_lost = end.exit_code == static_cast<std::int64_t>(ExitCode::peer_lost);
  if (peer_lost) return;
  encloses(said.seconds, elapsed_, "less than had passed at its last step");
  encloses(said.evaluation, sums_.validations, "less evaluation than its validations took");
  encloses(said.saves, sums_.saves, "less saving than its steps waited for");
  if (all_steps_) {
    hold(Identity::goodput, said.data_wait, rounding_of(sums_.data_wait, static_cast<double>(sums_.steps)),
         "another wait for data than its steps'");
    if (sums_.first_began)
      encloses(*sums_.first_began, said.start_up, "a longer start-up than until its first step");
  }
  encloses(said.steps, sums_.seconds - sums_.data_wait - sums_.saves, "less than its steps took");
  // What skipped steps waited for is part of their time, and stands in no line.
  encloses(said.steps + said.data_wait + said.saves, sums_.seconds + sums_.skipped,
           "less than its steps, those that were skipped and saves took");
}

Result judge_identity(const RunRecord& record, Identity identity) {
  const auto i = static_cast<std::size_t>(identity);
  if (record.identities.size() <= i || record.identities[i].judged == 0)
    return not_judged(identity_rows[i].missing);
  const HeldIdentity& held = record.identities[i];
  Result out = holding(held.judged);
  out.printed = held.printed, out.recomputed = held.recomputed;
  if (held.contradicted == 0) return out;
  contradict(out, held.printed, held.recomputed, 0);
  out.contradicted = held.contradicted;
  out.lines = held.lines;
  blame(out, "does_not_follow", held.why);
  return out;
}

}  // namespace assay::spec::audit
