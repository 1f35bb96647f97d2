#include "spec/record/continuity.hpp"

#include <optional>

#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::record {
namespace {

/// Follows the events; `next_` is the only step that may come.
struct StepFollower {
  std::vector<std::string> found;

  void operator()(const RunStart& start) {
    if (last_) started_after_ = last_;
    model_before_ = model_;
    model_ = start.model;
    next_ = 1;
  }
  void operator()(const ResumeFrom& resume) {
    if (started_after_ && resume.step > *started_after_)
      found.push_back("the run was resumed after step " + grouped(resume.step) + ", but step " +
                      grouped(*started_after_) + " is the last that stands before it");
    started_after_.reset();
    next_ = resume.step + 1;
  }
  void operator()(const Step& step) { follow(step.step); }
  void operator()(const SkippedStep& skipped) { follow(skipped.step); }
  template <class Other>
  void operator()(const Other&) {}

 private:
  void follow(std::int64_t step) {
    if (started_after_) {
      found.push_back(
          "after step " + grouped(*started_after_) +
          (model_ == model_before_ ? std::string() : " of " + quote(model_before_)) +
          " a new run begins without a resume: two runs stand in one record, and of steps that both "
          "did the later ones are shown");
      started_after_.reset();
    }
    if (step != next_) found.push_back(broken(step));
    next_ = step + 1;
    last_ = step;
  }

  std::string broken(std::int64_t here) const {
    if (here > next_)
      return here == next_ + 1 ? "step " + grouped(next_) + " is missing"
                               : "steps " + grouped(next_) + " to " + grouped(here - 1) + " are missing";
    if (here == next_ - 1 && last_) return "step " + grouped(here) + " stands twice";
    return "step " + grouped(here) + " follows step " + grouped(next_ - 1) + " without a resume";
  }

  std::int64_t next_ = 1;
  std::optional<std::int64_t> last_;           ///< step that came last
  std::optional<std::int64_t> started_after_;  ///< a start came after this step, and nothing resumed yet
  std::string model_, model_before_;
};

}  // namespace

std::vector<std::string> discontinuities(const std::vector<Event>& events, std::size_t most) {
  StepFollower follower;
  for (const Event& event : events) std::visit(follower, event);
  std::vector<std::string>& found = follower.found;
  if (found.size() > most) {
    const auto more = static_cast<std::int64_t>(found.size() - most);
    found.resize(most);
    found.push_back("and " + grouped(more) + " more discontinuities");
  }
  return found;
}

}  // namespace assay::spec::record
