#pragma once
// What no header of a Megatron log says and its step lines make: formats.md, "megatron".
#include <optional>
#include <string_view>

#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit {

/// The one whole number from `low` to `high`, of `line`; empty where there are several, or none.
std::optional<Printed> only_whole(double low, double high, std::int64_t line);

namespace megatron {

/// Length of a sequence and number of GPUs, each where the lines leave one whole number, and all leave the
/// same: of lengths that grow, or where a run of other size follows, there is no one number.
class Unsaid {
 public:
  /// Of a step line of that batch, `text`.
  void read(std::string_view text, const Step& step, const std::optional<Printed>& batch,
            RecordBuilder& builder);

 private:
  /// Settles the setting, or forgets it where it was settled otherwise.
  void settle(Setting setting, const std::optional<Printed>& value, RecordBuilder& builder);

  std::optional<double> length_, gpus_;  ///< as settled
  bool lengths_differ_ = false, gpus_differ_ = false;
  bool lines_print_it_ = false;  ///< the length, as the one that was read last does
  std::optional<double> last_, planned_;
};

}  // namespace megatron
}  // namespace assay::spec::audit
