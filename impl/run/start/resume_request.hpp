#pragma once
// What a run is asked to do: its settings, and which of them may differ from the run that it goes on from.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spec/config/run_config.hpp"

namespace assay::impl::run {

struct Request {
  // A run's settings alone ask for no change.
  Request(spec::RunConfig settings = {}, std::vector<std::string> names = {})  // NOLINT(*-explicit-*)
      : config(std::move(settings)), changes(std::move(names)) {}

  /// Whether that name was asked to be another setting than before.
  bool asks(const std::string& name) const { return std::ranges::find(changes, name) != changes.end(); }

  spec::RunConfig config;
  std::vector<std::string> changes;  ///< names of settings that were asked to be others than before
  bool goes_on = false;  ///< the other settings are those of the run that goes on: nobody typed them
};

/// `assay resume RUN --change ... --into FOLDER`.
struct ResumeWords {
  std::string run;                   ///< a run folder, or one of its checkpoints
  std::vector<std::string> changes;  ///< key=value
  std::string into;                  ///< a new run folder; empty: the run goes on where it is
};

/// The settings with which it goes on: those of its newest whole checkpoint, and the changes. Errors:
/// UserError(bad_data) where no checkpoint is whole, UserError(usage) for a change that is no setting's, or
/// one of those that other words say, or where `into` holds a run.
Request resume_request(const ResumeWords& words);

/// How many ranks the last start of a run had, by its record; nothing where no record says. `hosts` > 1: a
/// launcher has to start them.
struct RanksBefore {
  std::int64_t ranks = 1, hosts = 1;
};
std::optional<RanksBefore> ranks_before(const std::string& run);

}  // namespace assay::impl::run
