#pragma once
// The faults of faults.hpp, drawn into many logs, and what the audit says of each: the numbers of
// docs/measurements/audit-confusion.md. They are measured once in a program, when they are first asked for.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/audit/faults.hpp"

namespace assay::tests::confusion {

constexpr int draws_of_a_fault = 40;
constexpr std::uint64_t truthful_seeds = 300, first_seed = 5000;
/// Of a fault in a format that it is not scored in: as many draws, of as many runs at the most.
constexpr int draws_elsewhere = 12;
constexpr std::uint64_t seeds_elsewhere = 60;

/// What the audit says of the draws of one fault.
struct Row {
  int draws = 0, detected = 0, right = 0, told = 0;
  std::map<std::string, int> named;
  std::map<std::string, int> twins;         ///< not drawn: the numbers are those of another fault too
  std::map<std::string, int> contradicted;  ///< draws in which, by invariant
};

/// A fault in a format other than those that it is scored in.
struct Elsewhere {
  const Fault* fault;
  LogFormat format;
  Row row;
};

/// The faults in the formats that they are scored in.
const std::vector<std::pair<const Fault*, Row>>& scored();
/// Each in every other format in which it changes the text.
const std::vector<Elsewhere>& elsewhere();

/// The text of docs/measurements/audit-confusion.md.
std::string page(const std::vector<std::pair<const Fault*, Row>>& rows);

}  // namespace assay::tests::confusion
