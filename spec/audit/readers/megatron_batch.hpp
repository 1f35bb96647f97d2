#pragma once
// The batch that Megatron-LM's step lines print, beside the one that its arguments state: formats.md,
// "megatron".
#include <optional>
#include <string>
#include <string_view>

#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit::megatron {

class BatchOfLines {
 public:
  /// All arguments of a start were there.
  void begin() {
    last_.reset();
    is_setting_ = false;
  }
  /// The batch of a line that was read in full: the setting where nothing states one. `no_ramp`: the
  /// arguments let it not grow.
  void take(const std::optional<Printed>& batch, bool no_ramp, RecordBuilder& builder);
  /// What that line calls its batch, and how large it is.
  void remember(std::string_view text);
  /// Whether a line of the shape of one before it has the batch of the one that was read in full last: shapes
  /// look past numbers that no field takes.
  bool same(std::string_view text) const;
  /// Whether the lines have had several, so that no one number is that of a step.
  bool grows() const { return grows_; }
  /// The batch of a line of that shape; empty where its number cannot be read.
  std::optional<Printed> of(std::string_view text, std::int64_t line) const;
  /// The batch of the line that was taken last.
  const std::optional<Printed>& here() const { return here_; }

 private:
  std::string text_;  ///< "global batch size:   128 "
  std::size_t at_ = 0;
  bool grows_ = false;
  std::optional<double> last_;  ///< since the arguments
  std::optional<Printed> here_;
  bool is_setting_ = false;  ///< the setting is the first line's
};

/// Whether the line calls its batch so.
bool is_batch(std::string_view key);

}  // namespace assay::spec::audit::megatron
