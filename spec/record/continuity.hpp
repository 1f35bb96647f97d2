#pragma once
// Whether the steps of a record follow one another as one run writes them (spec/record/record.md).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/record/event.hpp"

namespace assay::spec::record {

/// Follows the events of a record.
class Continuity {
 public:
  void add(const Event& event);
  /// A step, or one that was skipped.
  void step(std::int64_t number);

  /// What is not continuous: a start after steps that resumes nothing, as in two runs put together; a step
  /// that is missing, doubled or goes back without a resume; a resume from a step that was not done. One
  /// sentence each in the order of the record, at most five, and one that counts the rest.
  std::vector<std::string> found() const;

 private:
  void find(std::string sentence);
  std::string broken(std::int64_t here) const;

  std::vector<std::string> first_;  ///< of what was found
  std::int64_t count_ = 0;
  std::int64_t next_ = 1;                      ///< the only step that may come
  std::optional<std::int64_t> last_;           ///< step that came last
  std::optional<std::int64_t> started_after_;  ///< a start came after this step, and nothing resumed yet
  std::string model_, model_before_;
};

/// The same of all of them. Domain: as `assemble`.
std::vector<std::string> discontinuities(const std::vector<Event>& events);

}  // namespace assay::spec::record
