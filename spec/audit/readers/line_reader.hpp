#pragma once
// One trainer's lines. A reader is made for a log once a line of it was recognised as a step of that trainer.
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/audit/readers/line_source.hpp"
#include "spec/audit/readers/record_builder.hpp"
#include "spec/audit/readers/words.hpp"

namespace assay::spec::audit {

class LineReader {
 public:
  virtual ~LineReader() = default;
  /// Takes what the line says into `builder`; a line that starts as one of the trainer's and cannot be read
  /// is reported to `builder.unread`; any other line is passed over.
  virtual void read(const Line& line, RecordBuilder& builder) = 0;
  /// After the last line.
  virtual void finish(RecordBuilder&) {}
  /// Whether the line that was read last holds none of the words that this trainer's lines have: neither it
  /// nor an end of it says anything.
  bool held_no_word() const { return held_no_word_; }
  /// Who knows where in a line a step of another trainer begins: a line that is none of those known is taken
  /// apart there, and not read as it stands.
  using Others = std::function<bool(std::string_view text)>;
  void ask_others(Others others) { others_ = std::move(others); }

 protected:
  /// The words that the line has of those of which each line has one that says something; `else_it_may`: it
  /// may say something without.
  std::uint64_t words_of(const Words& words, std::string_view text, bool else_it_may = false) {
    const std::uint64_t found = words.in(text);
    held_no_word_ = found == 0 && !else_it_may;
    return found;
  }
  /// Whether it has one, or may do without, and is no other trainer's.
  bool may_say(const Words& words, std::string_view text, bool else_it_may = false) {
    return (words_of(words, text, else_it_may) != 0 || else_it_may) && !has_others(text);
  }
  bool has_others(std::string_view text) const { return others_ && others_(text); }

 private:
  Others others_;
  bool held_no_word_ = false;
};

/// A trainer that logs lines of text.
struct LineFormat {
  Format format;
  bool (*recognises)(std::string_view line);  ///< whether this is one of its step lines, wholly readable
  std::unique_ptr<LineReader> (*make)();
  std::vector<std::string_view> of_steps;  ///< one of these stands in every step line
  std::string_view never_behind = {};      ///< ends of what stands before a line that is no step's
  /// How each step begins, up to its number, where `recognises` takes lines that are no steps; empty: as the
  /// first line that it takes.
  std::string_view step_begins = {};
};

LineFormat assay_format();  ///< run.jsonl
LineFormat llm_tii_format();
LineFormat torchtitan_format();
LineFormat kempnerforge_format();
LineFormat megatron_format();
LineFormat nanogpt_format();
LineFormat llmc_format();
LineFormat build_nanogpt_format();
LineFormat llmq_format();
LineFormat hugging_face_format();  ///< printed dictionaries

/// All of them. Their step lines do not overlap.
const std::vector<LineFormat>& line_formats();

}  // namespace assay::spec::audit
