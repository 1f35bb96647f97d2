#pragma once
// What the judges of a summary's numbers share: the steps that it speaks of, and means of their numbers.
#include <vector>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

/// The steps that a summary speaks of: those before it, since the program's last start before it.
std::vector<const Step*> covered(const Evidence& e, const Printed& summary);

/// Values of one field, first step first. `shares`: without those that say "not measured".
std::vector<double> values_of(const std::vector<const Step*>& steps, Field field, bool shares);

/// Of the usable ones, what may stand behind each as it is printed, first step first.
std::vector<Interval> intervals_of(const std::vector<const Step*>& steps, Field field);

/// Of the values from that one on. Domain: there are some.
double mean(const std::vector<double>& values, std::size_t from);

/// By how much rounding may move the mean of these values: at most by the widest rounding among them.
double rounding(const std::vector<const Step*>& steps, Field field);

/// With room for the last bits of sums and quotients.
inline Interval about(Interval numbers) { return {numbers.low * (1 - 1e-9), numbers.high * (1 + 1e-9)}; }

/// Whether these are the run's steps, none missing from the first to the last planned one.
bool every_step_is_logged(const Evidence& e, const std::vector<const Step*>& steps);

}  // namespace assay::spec::audit
