#pragma once
// Logs that are one JSON document.
#include "spec/audit/readers/json_path.hpp"
#include "spec/audit/readers/line_shape.hpp"
#include "spec/audit/readers/mapping.hpp"
#include "spec/audit/readers/null_losses.hpp"
#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit {

/// Values of a document into `builder`; which trainer wrote it shows in the paths: llm_TII's
/// "training_iterations[]", Hugging Face's "log_history[]", llm.q's list of {"log": ...}; or any list of
/// objects when a mapping says what their keys mean.
class JsonDocument {
 public:
  JsonDocument(RecordBuilder& builder, const Mapping& mapping) : builder_(builder), mapping_(mapping) {}

  void value(std::string_view path, JsonKind kind, std::string_view token);
  void begin_list(std::string_view path) { has_history_ = has_history_ || path == "log_history[]"; }
  void begin_element(std::string_view path);
  /// `text` is the element's, or empty where it is not at hand.
  void end_element(std::string_view path, std::string_view text);
  struct Known {
    std::size_t size = 0;
    std::int64_t line_breaks = 0;
  };
  /// Takes the step that `rest` starts with if it is one before it with other numbers; size 0 when not.
  Known known_element(std::string_view path, std::string_view rest);
  /// Line of the document that the next values stand in.
  void at_line(std::int64_t line) { builder_.at(line, -1); }
  /// Whether anything was recognised.
  bool recognised() const { return !trainer_.empty(); }
  /// Whether it has a list "log_history", be it empty.
  bool has_history() const { return has_history_; }
  /// At the end of the document. Errors: UserError(usage) where a mapped key holds no number.
  void check_mapping() const { mapping_.require_keys(filled_, keys_); }

 private:
  void claim(std::string_view trainer);
  void widen(Step& step) const;
  void take_null(std::string_view token);
  void mapped_word(std::string_view key, std::string_view token);
  void llm_tii_setting(std::string_view path, JsonKind kind, std::string_view token);
  void llm_tii_step(std::string_view member, JsonKind kind, std::string_view token);
  void hugging_face(std::string_view path, JsonKind kind, std::string_view token);
  void llmq(std::string_view member, JsonKind kind, std::string_view token);
  void llmq_option(JsonKind kind, std::string_view token);

  RecordBuilder& builder_;
  const Mapping& mapping_;
  std::string_view trainer_;  // a literal
  Step step_;
  TakenNumbers taken_;      // of the element
  bool learnable_ = false;  // the element says nothing but numbers of its step
  bool summary_ = false;    // the element has the time of the run
  LineShapes shapes_{Notation::json};
  NullLossRows null_rows_;
  std::string list_;                                                    // whose elements are known
  enum class Entry { other, option, gpu, step } entry_ = Entry::other;  // of llm.q
  std::string option_, final_fraction_;
  std::int64_t gpus_ = 0;
  bool has_history_ = false;
  std::size_t next_column_ = 0;             // of a mapping
  std::array<bool, field_count> filled_{};  // by it
  std::vector<std::string> keys_;           // of the elements that it was asked for
};

}  // namespace assay::spec::audit
