#pragma once
// The step lines of Megatron-LM's console and of its descendants': formats.md, "megatron".
#include <optional>
#include <string_view>

#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit::megatron {

/// Behind "iteration" of a line like "iteration  10/ 100 | ... |"; data() is null on other lines.
std::string_view step_line(std::string_view text);

/// Whether `text` begins as a step line does, which may be broken before its time is there:
/// "iteration  10/ 100 | consumed samples: 640 | elapsed".
bool begins_broken(std::string_view text);

/// Whether it is a step line, or begins as one that is broken.
bool begins_step(std::string_view text);

/// What a step line says besides the numbers of a step.
struct Beside {
  std::optional<Printed> batch;          ///< in whatever its trainer counts it
  std::optional<Printed> device_memory;  ///< of one GPU [B]
  bool of_all_gpus = false;              ///< its tokens/s are: nanotron's line
  /// No bar follows its last number, which may be cut. Of Megatron-LM's line, which ends in one, it is not
  /// taken.
  bool open_end = false;
};

/// Reads what `step_line` gave into `step` and `beside`. False where a known number cannot be read, or no
/// time is there.
bool read_numbers(std::string_view text, std::int64_t line, Step& step, Beside& beside,
                  TakenNumbers* taken = nullptr);

/// Whether a number of a step line is called so: "lm loss".
bool is_name(std::string_view key);

/// GPT-NeoX's "samples/sec: 8.571 |", which stands before the step's number; `text` is what stands there.
/// False where it is there and cannot be read.
bool read_before(std::string_view text, std::int64_t line, Step& step, TakenNumbers* taken = nullptr);

}  // namespace assay::spec::audit::megatron
