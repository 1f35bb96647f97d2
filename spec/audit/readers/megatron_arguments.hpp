#pragma once
// What Megatron-LM's arguments say together, several lines of them: the blocks' MLP and the schedule.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit::megatron {

/// training.py, num_floating_point_operations: gated or not, experts that a token visits, which layers have
/// them, how wide they are.
class MlpArguments {
 public:
  /// Whether the argument says something of it.
  bool read(std::string_view name, std::string_view value);
  /// The MLP of `layers` blocks, of inner width `ffn` where dense; nothing where the lines that say it are
  /// lost, or where it is none that a ModelSpec can describe.
  std::optional<BlockMlp> stated(std::int64_t layers, std::int64_t ffn) const;

 private:
  bool read_layers(std::string_view value);

  std::optional<Mlp> mlp_;
  bool other_ = false;  ///< blocks of another kind: latent attention, state spaces ...
  bool dense_ = false, experts_named_ = false;
  std::optional<std::int64_t> experts_, active_;
  // Versions of 2024 print them, earlier ones do not: all three, or none.
  int later_ = 0;
  std::optional<std::int64_t> expert_width_, shared_width_;
  std::int64_t period_ = 1;    ///< of sparse layers; 0: by `pattern_`
  std::vector<bool> pattern_;  ///< which layers are sparse
};

/// training.py, get_optimizer_param_scheduler: by iterations, or by samples where the run is as long as
/// `train_samples`; a share of the decay stands before a stated warm-up.
class ScheduleArguments {
 public:
  void read(std::string_view name, std::string_view value, std::int64_t line, RecordBuilder& builder);
  /// At the end of the arguments: what only all of them say.
  void end(RecordBuilder& builder) const;

 private:
  std::optional<Printed> train_samples_, decay_samples_, warmup_samples_, warmup_steps_, fraction_;
  std::optional<Printed> train_steps_;
  bool decay_said_ = false, decay_steps_said_ = false;  ///< or that there is none
  bool planned_by_samples_ = false;                     ///< by another line than that of the samples
  bool planned_by_steps_ =
      false;                    ///< likewise: else a warm-up of 0 iterations need not be the one that rules
  bool fraction_said_ = false;  ///< likewise
};

}  // namespace assay::spec::audit::megatron
