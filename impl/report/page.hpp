#pragma once
// The report: one HTML page that needs nothing else, for one run or several compared.
#include <string>
#include <vector>

#include "impl/report/waterfall.hpp"
#include "spec/record/run.hpp"

namespace assay::impl::report {

struct NamedRun {
  std::string name;  ///< shown as it is, escaped
  spec::record::Run run;
  std::vector<std::string> faults = {};  ///< what of its record does not go on from what stands before it
  std::vector<std::string> damage = {};  ///< lines of its record that are not as they were written
  std::optional<StepPicture> waterfall = {};  ///< of `assay bench step`, where it stands beside the record
};

/// The whole page; `first`: a section ahead of the charts. Domain: at least one run. Self-contained: no
/// script, no external resource; light or dark by the reader's preference; prints well.
std::string page(const std::vector<NamedRun>& runs, const std::string& first = "");

/// The style sheet of the page.
const char* style();

// The parts of the page, each in a <section> (or nothing when the runs have none of it).
std::string headline(
    const std::vector<NamedRun>& runs);                 ///< one run: figures in large type; several: a table
std::string charts(const std::vector<NamedRun>& runs);  ///< loss, rate, norm, throughput, memory, phases
std::string damage(const std::vector<NamedRun>& runs);
std::string warnings(const std::vector<NamedRun>& runs);
std::string samples(const std::vector<NamedRun>& runs);
std::string batch_arithmetic(const std::vector<NamedRun>& runs);
std::string machine(const std::vector<NamedRun>& runs);
std::string settings(const std::vector<NamedRun>& runs);
/// Settings that are not the same in all runs, but for their folders.
std::string differences(const std::vector<NamedRun>& runs);

}  // namespace assay::impl::report
