#pragma once
// Which steps of a long log are kept, in constant memory.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// Reads the step that stands in `text`, once more.
using ReadAgain = std::function<void(std::string_view text, std::int64_t line, Step& step)>;

/// Steps of a run, thinned by the rules of RunRecord::steps.
class StepKeeper {
 public:
  /// ReadOptions::written_soon.
  void tell(void (*written_soon)(void*, std::size_t)) { written_soon_ = written_soon; }
  void add(const Step& step, std::uint32_t fields, bool contradicts);
  /// A step that stands in `text`: read by `again` if it is kept. Domain: `late()`.
  void add(std::string_view text, std::int64_t line, int rank, bool contradicts, const ReadAgain& again);
  /// The step that was added last is kept, if it is not one of the first.
  void keep_last();
  /// Steps that contradict and are not kept, for there are too many.
  std::int64_t left_out() const { return left_out_; }
  /// Whether the first steps, which are all kept, are there.
  bool late() const { return head_.size() >= quarter; }
  std::int64_t seen() const { return seen_; }
  /// Whether all steps so far are the first ones.
  bool all_first() const { return tail_.empty(); }
  const std::vector<Step>& first() const { return head_; }
  /// Puts `steps`, a part of them, in their place. Domain: `all_first()`.
  void replace_first(std::vector<Step> steps);
  std::vector<Step> finish();

 private:
  static constexpr std::size_t quarter = RunRecord::kept_steps / 4, most_contradicting = 1000;
  /// A step that may be passed on: only the fields that it has, side by side, for it is written a million
  /// times a second. A place of the tail keeps the memory of its text and numbers.
  struct Late {
    void keep(const Step& step, std::uint32_t fields_of_step, std::int64_t at, bool contradicts_itself);
    Step step() const;
    std::int64_t index, line;
    std::uint32_t fields;  // bit i: field i is there
    bool contradicts;
    int rank = -1;
    std::string text;  // of a step that is read once it is kept; else empty
    std::vector<Printed> numbers;
  };
  static_assert(field_count <= 32);
  Late& next_late();
  void pass_on(Late& late);
  template <class Place>
  void keep_contradicting(Place&& late);  // copied or moved
  Step step_of(const Late& late) const;

  std::vector<Step> head_;
  std::vector<Late> middle_, contradicting_;
  std::vector<Late> tail_;  // a ring once it is full
  std::size_t oldest_ = 0;
  std::int64_t seen_ = 0, stride_ = 1, passed_ = 0, left_out_ = 0;
  const ReadAgain* again_ = nullptr;
  void (*written_soon_)(void*, std::size_t) = nullptr;
};

}  // namespace assay::spec::audit
