#pragma once
// What nanotron prints in lines that are else Megatron's: formats.md, "nanotron".
#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/audit/readers/nanotron_configuration.hpp"
#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit::nanotron {

class Run {
 public:
  /// Any line may be one of the configuration until a step comes; else one begins with this.
  bool in_configuration() const { return in_configuration_; }
  static constexpr std::string_view configuration_word = "Config(general=GeneralArgs(";
  /// A line of the printed configuration, "tokens=TokensArgs(sequence_length=2048,"; others are passed over.
  void read_header(std::string_view text, std::int64_t line, RecordBuilder& builder);
  /// Completes `step`, which `text` was read as: how its numbers are rounded, what its `batch` counts, and
  /// what the run's settings are by the first line.
  void read_step(std::string_view text, std::int64_t line, Step& step, std::optional<Printed> batch,
                 RecordBuilder& builder);
  /// The same of a line of the shape and the batch of the one that was read last. False where a first line is
  /// to be read; `step` is then as it was.
  bool read_alike(std::string_view text, std::int64_t line, Step& step) const;

 private:
  Field batch_field() const { return counts_tokens_ ? Field::tokens : Field::step_sequences; }
  void first_step(std::int64_t line, const Step& step, const std::optional<Printed>& batch,
                  RecordBuilder& builder);

  Configuration configuration_;
  bool in_configuration_ = false;
  bool steps_ = false;                 ///< since the configuration
  bool counts_tokens_ = false;         ///< the batch of the lines
  std::optional<Printed> batch_;       ///< of the first line
  std::optional<Printed> batch_here_;  ///< of the line that was read last, where it is one
};

}  // namespace assay::spec::audit::nanotron
