#pragma once
// The time of day that loggers put before a line.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spec/audit/printed.hpp"

namespace assay::spec::audit {

/// The last "2025-11-20 09:13:20", "2025-11-20 09:13:20,123", "2025-11-20 09:13:20.123456" or
/// "11/20/2025 09:13:20" (month, day, year: nanotron's) in `before`, as seconds since 1970 on the writer's
/// clock; where there is none, the last "11/20 09:13:20" (later nanotron's), as of 1972. A stamp cuts off
/// what lies behind its last digit: the interval reaches half a unit of that up, to which the audit adds
/// another (evidence.hpp, wide). Empty where there is none, or no such day.
std::optional<Printed> time_stamp(std::string_view before, std::int64_t line);

/// The stamps of a log's lines. Most stand where the last one stood, on its day and between the same words:
/// then only the time of day is read.
class LineStamps {
 public:
  /// `word`: the stamp is the last one before the first of these in a line.
  explicit LineStamps(std::string_view word) : word_(word) {}
  /// time_stamp of what stands before the word in `text`; of all of it where the word is not there.
  std::optional<Printed> of(std::string_view text, std::int64_t line);

 private:
  bool alike(std::string_view text) const;

  std::string_view word_;
  std::string before_;        ///< what stood before the word of the last line; empty: no stamp did
  std::size_t at_ = 0;        ///< where its stamp stood
  std::size_t fraction_ = 0;  ///< digits behind its point
  double midnight_ = 0;       ///< of its day [s since 1970]
};

}  // namespace assay::spec::audit
