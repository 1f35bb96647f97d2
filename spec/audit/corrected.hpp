#pragma once
// The speed and utilisation of a log as a reading makes them.
#include <optional>
#include <string>

#include "spec/audit/hypotheses.hpp"

namespace assay::spec::audit {

/// Rate and time of the median step, as printed.
struct Typical {
  std::optional<double> rate, seconds;
  double width = 0;  ///< half of what the rate's rounding leaves open, as a share
  /// Of all GPUs, over the whole run, where no line prints a rate or a time.
  std::optional<Interval> of_run;

  explicit Typical(const Evidence& e);
};

/// What the speed can rest on: what the reading leaves unexplained holds for nothing.
struct Grounds {
  bool rate = true, time = true;
  std::string missing;  ///< why not

  Grounds(const Comparisons& c, const Reading& reading);
};

/// No MFU is given that passes the peak; `missing` says what keeps a number from being given.
Corrected corrected(const Evidence& e, const Typical& typical, const Grounds& grounds,
                    const Reading& reading);

}  // namespace assay::spec::audit
