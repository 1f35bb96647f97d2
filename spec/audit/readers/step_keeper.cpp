#include "spec/audit/readers/step_keeper.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace assay::spec::audit {

void StepKeeper::Late::keep(const Step& step, std::uint32_t fields_of_step, std::int64_t at,
                            bool contradicts_itself) {
  index = at;
  line = step.line;
  contradicts = contradicts_itself;
  fields = 0;
  text.clear();
  numbers.resize(static_cast<std::size_t>(std::popcount(fields_of_step)));
  Printed* next = numbers.data();
  for (std::uint32_t left = fields_of_step; left != 0; left &= left - 1) {
    const auto& number = step.fields[static_cast<std::size_t>(std::countr_zero(left))];
    if (!number) continue;
    fields |= left & (0 - left);
    *next++ = *number;
  }
}

Step StepKeeper::Late::step() const {
  Step out;
  out.line = line;
  const Printed* next = numbers.data();
  for (std::size_t i = 0; i < field_count; ++i)
    if (fields >> i & 1) out.fields[i] = *next++;
  return out;
}

/// The place of a step in the tail; the oldest one there is passed on.
StepKeeper::Late& StepKeeper::next_late() {
  if (tail_.size() < quarter) {
    if (tail_.empty()) tail_.reserve(quarter);
    return tail_.emplace_back();
  }
  Late& oldest = tail_[oldest_];
  pass_on(oldest);
  oldest_ = (oldest_ + 1) % quarter;
  return oldest;
}

void StepKeeper::add(std::string_view text, std::int64_t line, int rank, bool contradicts,
                     const ReadAgain& again) {
  again_ = &again;
  Late& late = next_late();
  late.index = seen_++;
  late.line = line;
  late.rank = rank;
  late.contradicts = contradicts;
  late.text.assign(text);
}

/// What stands there as text is read now.
Step StepKeeper::step_of(const Late& late) const {
  if (late.text.empty()) return late.step();
  Step step;
  (*again_)(late.text, late.line, step);
  step.line = late.line;
  if (late.rank >= 0 && !step[Field::rank]) step[Field::rank] = exactly(late.rank, late.line);
  return step;
}

void StepKeeper::add(const Step& step, std::uint32_t fields, bool contradicts) {
  const std::int64_t index = seen_++;
  // A long log: room for all that will ever be kept. Pages are taken only when they are written.
  if (index == 1024) {
    head_.reserve(RunRecord::kept_steps + most_contradicting + 1);
    if (written_soon_) written_soon_(head_.data(), head_.capacity() * sizeof(Step));
  }
  if (head_.size() < quarter) {
    head_.push_back(step);
    return;
  }
  next_late().keep(step, fields, index, contradicts);
}

/// A step that left the tail: kept when it falls on the stride; when the middle is full, the stride doubles.
void StepKeeper::pass_on(Late& late) {
  const bool on_stride = (passed_++ & (stride_ - 1)) == 0;  // a power of two
  if (on_stride) {
    if (middle_.empty()) middle_.reserve(2 * quarter + 1);
    middle_.push_back(late);
    if (middle_.size() > 2 * quarter) {
      for (std::size_t i = 1; i < middle_.size(); ++i) {
        if (i % 2 == 0)
          middle_[i / 2] = std::move(middle_[i]);
        else if (middle_[i].contradicts)
          keep_contradicting(std::move(middle_[i]));
      }
      middle_.resize(quarter + 1);
      stride_ *= 2;
    }
  } else if (late.contradicts) {
    keep_contradicting(late);
  }
}

template <class Place>
void StepKeeper::keep_contradicting(Place&& late) {
  if (contradicting_.size() < most_contradicting)
    contradicting_.push_back(std::forward<Place>(late));
  else
    ++left_out_;
}

void StepKeeper::keep_last() {
  if (tail_.empty()) return;
  (tail_.size() < quarter ? tail_.back() : tail_[(oldest_ + quarter - 1) % quarter]).contradicts = true;
}

void StepKeeper::replace_first(std::vector<Step> steps) {
  seen_ = static_cast<std::int64_t>(steps.size());
  head_ = std::move(steps);
}

std::vector<Step> StepKeeper::finish() {
  std::vector<Step> steps = std::move(head_);
  // Both are in the order of the log.
  const auto before = [](const Late& a, const Late& b) { return a.index < b.index; };
  std::sort(contradicting_.begin(), contradicting_.end(), before);
  auto extra = contradicting_.begin();
  for (const Late& late : middle_) {
    for (; extra != contradicting_.end() && before(*extra, late); ++extra) steps.push_back(step_of(*extra));
    steps.push_back(step_of(late));
  }
  for (; extra != contradicting_.end(); ++extra) steps.push_back(step_of(*extra));
  for (std::size_t i = 0; i < tail_.size(); ++i)
    steps.push_back(step_of(tail_[(oldest_ + i) % tail_.size()]));
  return steps;
}

}  // namespace assay::spec::audit
