#pragma once
// What the changes with a free number share: a contradiction that is left, and who may explain it. Each
// function adds what fits to `b`, or nothing.
#include <optional>
#include <string>
#include <vector>

#include "spec/audit/change_builder.hpp"

namespace assay::spec::audit::solving {

/// What stays of a contradiction, and what the log says of the run.
struct Left {
  const Evidence& e;
  const Interpretation& reading;
  const Comparisons& comparisons;
  const Factors& factors;
  Relation relation;
  Interval residual;
};

std::string written(double n);
/// "1 GPU", "3 GPUs".
std::string counted(double n, const char* what);
/// The one whole number n >= 1, other than `of`, with n / of in the residual; 0: none, or too many to tell.
double whole(const Left& left, double of);
/// Whether the residual holds x, to 1e-9 of it.
bool held(const Interval& residual, double x);
/// 0 where it is not known or a range.
double one_number(const std::optional<Interval>& count);
/// Every relation that feels a step of `x` times the stated tokens, and of `sequences` times the sequences.
std::vector<ChangeBuilder::Effect> of_batch(const ChangeBuilder& b, double x, double sequences);
bool is_of_batch(Relation relation);

/// Another batch than the stated one: changes_of_batch.cpp.
void add_performed(ChangeBuilder& b, const Left& left);
void add_performed_by_clock(ChangeBuilder& b, const Left& left);
void add_stated_batch(ChangeBuilder& b, const Left& left);
void add_batch_of_lines(ChangeBuilder& b, const Left& left);
void add_unconfirmed_batch(ChangeBuilder& b, const Left& left);
void add_batch_of_count(ChangeBuilder& b, const Left& left);
/// Another number of GPUs, another length: changes_of_ranks.cpp, changes_of_length.cpp.
void add_gpus(ChangeBuilder& b, const Left& left);
void add_ranks(ChangeBuilder& b, const Left& left);
void add_length(ChangeBuilder& b, const Left& left);
/// Times and clocks: changes_of_time.cpp.
void add_time(ChangeBuilder& b, const Left& left);
/// Rates that are shares or multiples of what they are called: changes_of_rate.cpp.
bool is_share(double x);  ///< of a batch, with padding or without; neither nearly 1 nor half or twice
void add_padding(ChangeBuilder& b, const Left& left);
void add_multiples(ChangeBuilder& b, const Left& left);
/// A printed peak that no GPU has, beside an MFU that is made of another: changes_of_peak.cpp.
void add_printed_peak(ChangeBuilder& b, const Left& left);

}  // namespace assay::spec::audit::solving
