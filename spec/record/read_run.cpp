#include "spec/record/read_run.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "spec/error.hpp"
#include "spec/record/continuity.hpp"
#include "spec/text/file.hpp"

namespace assay::spec::record {
namespace {

/// Which of the steps in a record count, by their place among its lines of steps: steps in a row are one
/// piece.
class StepsThatCount {
 public:
  void add(std::int64_t step) {
    drop_from(step);
    const std::int64_t place = places_++;
    if (!pieces_.empty() && pieces_.back().follows(step, place))
      ++pieces_.back().count;
    else
      pieces_.push_back({.step = step, .place = place, .count = 1});
  }
  void drop_from(std::int64_t step) {
    while (!pieces_.empty() && pieces_.back().step >= step) pieces_.pop_back();
    if (!pieces_.empty()) pieces_.back().count = std::min(pieces_.back().count, step - pieces_.back().step);
  }
  std::int64_t count() const {
    std::int64_t count = 0;
    for (const Piece& piece : pieces_) count += piece.count;
    return count;
  }
  /// Whether the step there counts. Asked in the order of places.
  bool counts(std::int64_t place) {
    while (asked_ < pieces_.size() && place >= pieces_[asked_].place + pieces_[asked_].count) ++asked_;
    return asked_ < pieces_.size() && place >= pieces_[asked_].place;
  }

 private:
  struct Piece {
    std::int64_t step = 0, place = 0, count = 0;
    bool follows(std::int64_t next_step, std::int64_t next_place) const {
      return next_step == step + count && next_place == place + count;
    }
  };
  std::vector<Piece> pieces_;
  std::int64_t places_ = 0;
  std::size_t asked_ = 0;
};

/// Whether a step stands near one that the run was resumed from.
class NearResumes {
 public:
  explicit NearResumes(const std::vector<ResumeFrom>& resumes) {
    for (const ResumeFrom& resume : resumes) steps_.push_back(resume.step);
    std::sort(steps_.begin(), steps_.end());
    // Enough to know how a loss scatters; fewer where there are many, for the text is kept.
    constexpr std::int64_t most = 256, least = 16, lines = 16'384;
    const std::int64_t each = lines / std::max<std::int64_t>(1, std::ssize(steps_));
    distance_ = std::clamp(each, least, most);
  }
  bool any() const { return !steps_.empty(); }
  bool holds(std::int64_t step) const {
    const auto next = std::lower_bound(steps_.begin(), steps_.end(), step - distance_);
    return next != steps_.end() && *next <= step + distance_;
  }

 private:
  std::vector<std::int64_t> steps_;
  std::int64_t distance_ = 0;
};

/// It is read twice, which a pipe is not.
FileStream opened(const std::string& path) try { return FileStream(path); } catch (const FileFault& fault) {
  throw UserError(
      fault.kind() == FileFault::Kind::not_regular ? ExitCode::bad_data : ExitCode::io,
      path + ": cannot open this record: " + fault.why() + "; give a run's folder or its run.jsonl");
}

/// The number of the step of a line, however it is written; nothing for other events.
std::optional<std::int64_t> step_of(const RecordLines& lines) try {
  if (const auto number = lines.ended() ? step_in(lines.text()) : std::nullopt) return number;
  const Event event = from_json(lines.text(), lines.where());
  const auto* step = std::get_if<Step>(&event);
  return step ? std::optional(step->step) : std::nullopt;
} catch (const UserError&) {
  return std::nullopt;  // the first reading has judged it
}

}  // namespace

ReadRun read_run(const std::string& file_or_folder, Tolerance& tolerance) {
  const std::string path = record_file(file_or_folder);
  Assembler assembler;
  Continuity continuity;
  StepsThatCount steps;
  const auto step = [&](std::int64_t number) {
    assembler.drop_from(number);
    steps.add(number);
    continuity.step(number);
  };
  FileStream first = opened(path);
  const auto event = [&](const Event& each) {
    if (const auto* done = std::get_if<Step>(&each)) return step(done->step);
    if (const auto* skipped = std::get_if<SkippedStep>(&each)) steps.drop_from(skipped->step);
    if (const auto* resume = std::get_if<ResumeFrom>(&each)) steps.drop_from(resume->step + 1);
    assembler.add(each);
    continuity.add(each);
  };
  for_each_event_and_step(first, path, event, step, tolerance);

  ReadRun out{.run = std::move(assembler.run), .discontinuities = continuity.found(), .around_resumes = {}};
  const NearResumes near(out.run.resumes);
  StepThinner thinner(steps.count());
  FileStream again = opened(path);
  std::int64_t place = 0, read = 0;
  for (RecordLines lines(again, path); read < steps.count() || near.any();) {
    if (!lines.next()) break;
    const auto number = step_of(lines);
    if (near.any() && (!number || near.holds(*number))) out.around_resumes.append(lines.text()) += '\n';
    if (!number || !steps.counts(place++)) continue;
    ++read;
    try {
      thinner.add(std::get<Step>(from_json(lines.text(), lines.where())));
    } catch (const UserError& error) {
      if (!lines.chain().begun()) throw;
      if (lines.as_written()) tolerance.damage.note(error.what());
    }
  }
  auto [kept, thinned] = std::move(thinner).result();
  out.run.steps = std::move(kept), out.run.thinned = std::move(thinned);
  return out;
}

}  // namespace assay::spec::record
