#pragma once
// The configuration that nanotron prints before its steps, a key a line: formats.md, "nanotron".
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit::nanotron {

class Configuration {
 public:
  /// A line of it, "tokens=TokensArgs(sequence_length=2048,". States the axes and the batch as they come, the
  /// model's shape behind its last line, and the schedule behind its last.
  void read(std::string_view text, std::int64_t line, RecordBuilder& builder);

 private:
  void read_model(std::string_view text, std::int64_t line, RecordBuilder& builder);
  void read_schedule(std::string_view text, std::int64_t line, RecordBuilder& builder);
  void state_model(std::int64_t line, RecordBuilder& builder);
  void state_schedule(std::int64_t line, RecordBuilder& builder);

  /// Blocks whose FLOPs are known: attention and an MLP of three matrices.
  struct Model {
    bool llama = false, qwen = false, dense = false;  ///< what kind of configuration; no experts
    std::optional<Printed> width, layers, heads, kv_heads, ffn, vocab;
  };
  /// An argument that was printed: None is one. Of a line that is lost nothing is assumed.
  struct Argument {
    bool printed = false;
    std::optional<double> value;
  };
  struct Schedule {
    Argument warmup, decay, start;  ///< steps
    std::string warmup_style, decay_style;
    std::optional<Printed> lowest;
  };
  std::optional<Printed> train_steps_;
  Model model_;
  Schedule schedule_;
};

}  // namespace assay::spec::audit::nanotron
