#include "spec/audit/readers/read_document.hpp"

#include "spec/audit/readers/json_document.hpp"
#include "spec/audit/readers/json_scan.hpp"
#include "spec/audit/readers/log_shape.hpp"
#include "spec/audit/readers/odd_characters.hpp"
#include "spec/error.hpp"

namespace assay::spec::audit {
namespace {

[[noreturn]] void bad_document(const std::string& origin, const std::string& message) {
  throw UserError(ExitCode::bad_data, origin + ": " + message);
}

/// Passes over a fence that the next line is; at the end of the text one may lack its line break.
bool pass_fence(BlockBytes& bytes) {
  std::string line;
  constexpr std::size_t longest = 64;
  if (bytes.peek() != '`') return false;
  for (int byte = bytes.peek(); byte >= 0 && byte != '\n' && line.size() < longest; byte = bytes.peek()) {
    line += static_cast<char>(byte);
    bytes.next();
  }
  return is_fence(line);
}

/// Values and elements of the document, each with its line; known elements are read at one go.
class Lined : public JsonValues {
 public:
  Lined(JsonDocument& document, BlockBytes& bytes) : document_(document), bytes_(bytes) {}
  void value(std::string_view path, JsonKind kind, std::string_view token) override {
    document_.at_line(bytes_.line());
    document_.value(path, kind, token);
  }
  void begin_list(std::string_view path) override { document_.begin_list(path); }
  void begin_element(std::string_view path) override {
    document_.at_line(bytes_.line());
    document_.begin_element(path);
    begin_ = bytes_.rest().data() - 1;  // the brace
    refills_ = bytes_.refills();
  }
  void end_element(std::string_view path) override {
    const bool whole = begin_ && refills_ == bytes_.refills();
    document_.end_element(path, whole ? std::string_view(begin_, bytes_.rest().data()) : std::string_view());
    begin_ = nullptr;
  }
  bool known_element(std::string_view path, std::string_view rest) override {
    document_.at_line(bytes_.line());
    const auto [size, line_breaks] = document_.known_element(path, rest);
    bytes_.skip(size, line_breaks);
    return size > 0;
  }

 private:
  JsonDocument& document_;
  BlockBytes& bytes_;
  const char* begin_ = nullptr;  // of the element whose bytes are at hand
  std::int64_t refills_ = 0;
};

}  // namespace

std::vector<RunRecord> read_document(Blocks& blocks, const ReadOptions& options, const Mapping& mapping) {
  RecordBuilder builder(blocks.origin(), Format(), options);
  JsonDocument document(builder, mapping);
  BlockBytes bytes(blocks);
  Lined lined(document, bytes);
  JsonPaths paths(lined);
  JsonScan scan(bytes, paths);
  scan.blanks();
  const bool fenced = pass_fence(bytes);
  const bool whole = scan.value();
  const std::string where = "line " + std::to_string(bytes.line());
  if (!whole) {
    const std::string odd = odd_name(bytes.rest());
    bad_document(blocks.origin(),
                 std::string("is no whole JSON document: at ") + where + ", " + scan.fault() +
                     (odd.empty() ? "; was the writer stopped before it was done? Give the complete file"
                                  : ": " + odd +
                                        " stands there, which JSON does not know; give the file as it was "
                                        "written, not what a page or an editor made of it"));
  }
  scan.blanks();
  if (fenced && pass_fence(bytes)) scan.blanks();
  if (bytes.peek() >= 0)
    bad_document(blocks.origin(), "holds more than one JSON document: the next begins at " + where +
                                      "; give one per file, or one per line");
  document.check_mapping();
  if (!document.recognised() && document.has_history())
    bad_document(blocks.origin(),
                 "is Hugging Face's state before anything was logged: its \"log_history\" is empty; give the "
                 "trainer_state.json of a later checkpoint, or log more often (logging_steps)");
  if (!document.recognised())
    bad_document(
        blocks.origin(),
        "is a JSON document of no known trainer (it has no list \"training_iterations\", \"log_history\" or "
        "{\"log\": ...}); say what its keys mean, like --map step=iter,loss=train_loss");
  return builder.finish(bytes.line(), false);
}

}  // namespace assay::spec::audit
