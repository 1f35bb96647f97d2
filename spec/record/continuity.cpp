#include "spec/record/continuity.hpp"

#include <utility>

#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::record {

void Continuity::add(const Event& event) {
  if (const auto* start = std::get_if<RunStart>(&event)) {
    if (last_) started_after_ = last_;
    model_before_ = std::exchange(model_, start->model);
    next_ = 1;
  }
  if (const auto* resume = std::get_if<ResumeFrom>(&event)) {
    if (started_after_ && resume->step > *started_after_)
      find("the run was resumed after step " + grouped(resume->step) + ", but step " +
           grouped(*started_after_) + " is the last that stands before it");
    started_after_.reset();
    next_ = resume->step + 1;
  }
  if (const auto* one = std::get_if<Step>(&event)) step(one->step);
  if (const auto* skipped = std::get_if<SkippedStep>(&event)) step(skipped->step);
}

void Continuity::step(std::int64_t number) {
  if (started_after_) {
    find("after step " + grouped(*started_after_) +
         (model_ == model_before_ ? std::string() : " of " + quote(model_before_)) +
         " a new run begins without a resume: two runs stand in one record, and of steps that both "
         "did the later ones are shown");
    started_after_.reset();
  }
  if (number != next_) find(broken(number));
  next_ = number + 1;
  last_ = number;
}

void Continuity::find(std::string sentence) {
  constexpr std::size_t most = 5;
  if (first_.size() < most) first_.push_back(std::move(sentence));
  ++count_;
}

std::string Continuity::broken(std::int64_t here) const {
  if (here > next_)
    return here == next_ + 1 ? "step " + grouped(next_) + " is missing"
                             : "steps " + grouped(next_) + " to " + grouped(here - 1) + " are missing";
  if (here == next_ - 1 && last_) return "step " + grouped(here) + " stands twice";
  return "step " + grouped(here) + " follows step " + grouped(next_ - 1) + " without a resume";
}

std::vector<std::string> Continuity::found() const {
  std::vector<std::string> all = first_;
  if (const auto more = count_ - static_cast<std::int64_t>(first_.size()); more > 0)
    all.push_back("and " + grouped(more) + " more discontinuities");
  return all;
}

std::vector<std::string> discontinuities(const std::vector<Event>& events) {
  Continuity continuity;
  for (const Event& event : events) continuity.add(event);
  return continuity.found();
}

}  // namespace assay::spec::record
