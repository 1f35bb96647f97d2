#pragma once
// One trainer's lines. A reader is made for a log once a line of it was recognised as a step of that trainer.
#include <memory>
#include <string_view>
#include <vector>

#include "spec/audit/readers/line_source.hpp"
#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit {

class LineReader {
 public:
  virtual ~LineReader() = default;
  /// Takes what the line says into `builder`; a line that starts as one of the trainer's and cannot be read
  /// is reported to `builder.unread`; any other line is passed over.
  virtual void read(const Line& line, RecordBuilder& builder) = 0;
  /// After the last line.
  virtual void finish(RecordBuilder&) {}
};

/// A trainer that logs lines of text.
struct LineFormat {
  Format format;
  bool (*recognises)(std::string_view line);  ///< whether this is one of its step lines, wholly readable
  std::unique_ptr<LineReader> (*make)();
  std::string_view never_behind = {};  ///< ends of what stands before a line that is no step's
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
