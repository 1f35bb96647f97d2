#pragma once
// How far losses of neighbouring lines lie from one another by chance: what a fall or a rise is measured by.
#include <cstddef>
#include <optional>
#include <vector>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

/// How losses go from line to line. [nats]
struct LossCourse {
  double trend = 0;    ///< the median of the differences to the line before
  double scatter = 0;  ///< the median distance of the differences from it, with what rounding may add: 0.95
                       ///< standard deviations of a normal loss
};

/// Of lines `begin` to `end` (half-open); those without a finite loss are passed over. Nothing for fewer than
/// `fewest` differences.
std::optional<LossCourse> loss_course(const Evidence& evidence, std::size_t begin, std::size_t end,
                                      std::size_t fewest);

/// The median; 0 of none. [nats]
double middle_loss(std::vector<double> numbers);

}  // namespace assay::spec::audit
