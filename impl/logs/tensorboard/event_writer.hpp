#pragma once
// Event files of a run, for TensorBoard: what the record has of steps and validations, as curves.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "impl/logs/appended_file.hpp"
#include "impl/logs/tensorboard/event_file.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::logs::tensorboard {

/// The numbers of an event that are drawn as curves, with their units; none of other events.
struct Curves {
  std::int64_t step = 0;
  std::vector<Scalar> scalars;
};
Curves curves_of(const spec::record::Event& event);

/// Writes FOLDER/events.out.tfevents.SECONDS.HOST.PROCESS.0, a new file each start of the program;
/// TensorBoard reads all files of a folder as one run.
class EventWriter {
 public:
  /// `now`: seconds since 1970 UTC. Errors: UserError(io).
  explicit EventWriter(const std::filesystem::path& folder, std::function<double()> now = {});

  /// A start says which steps are the run's, and its settings; steps and validations are curves; nothing of
  /// other events. Why it gave up, once: from then on it writes nothing, for no run dies of its curves.
  [[nodiscard]] std::optional<std::string> write(const spec::record::Event& event);

  const std::filesystem::path& path() const { return file_; }

  /// Goes on in another folder, with what it wrote so far. Why it gave up, as `write`.
  [[nodiscard]] std::optional<std::string> move_to(const std::filesystem::path& folder);

 private:
  /// Of what comes first: steps of earlier files that were not kept are dropped, and settings are shown.
  std::string begin(std::int64_t steps_done);
  std::string message_of(const spec::record::Event& event);

  std::function<double()> now_;
  std::filesystem::path file_;
  std::optional<AppendedFile> records_;          ///< nothing once it gave up
  std::optional<spec::record::RunStart> start_;  ///< until it was written
  std::set<std::string> described_;              ///< tags
};

}  // namespace assay::impl::logs::tensorboard
