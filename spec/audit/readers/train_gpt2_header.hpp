#pragma once
// What the train_gpt2.py of llm.c and of build-nanogpt print before their steps: formats.md, "llmc",
// "build_nanogpt".
#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit {

/// Both begin their step lines with this word and a number.
constexpr std::string_view step_word = "step ";

/// What stands in `text` behind the word, and behind its number; without data() where there are none.
struct BehindStep {
  std::string_view word, number;
};
BehindStep behind_step(std::string_view text);

class TrainGpt2Header {
 public:
  /// One of these stands in each of its lines.
  static constexpr std::string_view words[] = {
      "total desired batch size: ", "calculated gradient accumulation steps: ", "using device: ",
      "decayed parameter tensors: "};
  /// Takes what a line says; false where it is none of these.
  bool read(std::string_view text, std::int64_t line, RecordBuilder& builder);

 private:
  std::optional<Printed> decayed_, not_decayed_;  ///< parameters, until both are there
};

}  // namespace assay::spec::audit
