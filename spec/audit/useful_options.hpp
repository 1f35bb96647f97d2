#pragma once
// What a log leaves open, and which options of the command line would let most of it be judged.
#include <cstdint>
#include <string>
#include <vector>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

struct UsefulOption {
  std::string option;       ///< "--gpus N", "--gpus N with --seq T" where neither helps alone
  std::int64_t judged = 0;  ///< invariants that could be judged with it and the ones before, and not without
  std::string opens;        ///< utilisation_left_open that is judged with it: "FLOP/s"; empty: none
};

/// At most three, the most useful first: those that let the log's MFU or FLOP/s be judged where they are left
/// open, then those that let most be judged; none of what the log or the command line says already, and none
/// of a log that is a whole record (Trainer::whole_record). Found by trying: each is stated in turn, and
/// counted. Of the first steps alone.
std::vector<UsefulOption> useful_options(const RunRecord& record);

/// Whether that input may stand in a log of the record's trainer: whole records alone hold "tokens whose loss
/// counts", and a log that lacks them need not read that.
bool may_stand_in(const RunRecord& record, const std::string& missing);

}  // namespace assay::spec::audit
