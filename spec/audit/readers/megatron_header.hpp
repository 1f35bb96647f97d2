#pragma once
// What Megatron-LM and its descendants print before their steps: formats.md, "megatron".
#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/audit/readers/megatron_arguments.hpp"
#include "spec/audit/readers/megatron_counted.hpp"
#include "spec/audit/readers/megatron_rank.hpp"
#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit::megatron {

class Header {
 public:
  /// One of these stands in each of its lines.
  static constexpr std::string_view words[] = {
      "end of arguments",
      "using world size: ",
      " ..",
      "batches to constant ",
      "dummy tokens (new size: ",
      "Total number of parameters in billions: ",
      "parameters on (tensor, pipeline) model parallel rank (0, 0): ",
      "successfully loaded checkpoint"};
  /// Whether a program says by this line that it has started.
  static bool starts(std::string_view text);
  /// Whether the arguments end here: they are whole, if their first lines are there.
  static bool ends_arguments(std::string_view text);
  /// Takes what a line says; any other line is passed over.
  void read(std::string_view text, std::int64_t line, RecordBuilder& builder);
  /// Whether all arguments were read, and none lets the batch grow.
  bool no_ramp() const { return no_ramp_; }
  /// Whether DeepSpeed's pipeline engine makes the steps: what the lines count as skipped is then always 0
  /// (Megatron-DeepSpeed, training.py, train_step).
  bool skips_untold() const { return pipeline_engine_; }

 private:
  void read_argument(std::string_view name, std::string_view rest, std::int64_t line, RecordBuilder& builder);

  /// The blocks, as far as they are stated until now.
  std::optional<BlockMlp> state_mlp(RecordBuilder& builder) const;
  /// Whether what a rank counts of its parameters is the whole model's, of blocks with no table of positions
  /// and no parameters that the arguments leave open.
  bool rank_holds_all(const RecordBuilder& builder) const;
  /// Whether no argument leaves open which parameters there are.
  bool parameters_known(const RecordBuilder& builder) const;

  bool ramp_stated_ = false, no_ramp_ = false;       ///< by the arguments; by all of them, to their end
  bool deepspeed_ = true, pipeline_engine_ = false;  ///< the first where the line is lost
  bool rotary_ = false, has_decoder_ = false;  ///< positions by rotation alone; an encoder and a decoder
  MlpArguments mlp_;
  CountedArguments counted_;
  RankArguments rank_;
  ScheduleArguments schedule_;
  std::optional<bool> grouped_;  ///< as stated; where the line is lost, heads may share keys or not
};

}  // namespace assay::spec::audit::megatron
