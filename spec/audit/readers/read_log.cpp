#include "spec/audit/readers/read_log.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "spec/audit/readers/doubled_lines.hpp"
#include "spec/audit/readers/foreign_lines.hpp"
#include "spec/audit/readers/json_document.hpp"
#include "spec/audit/readers/json_scan.hpp"
#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/mapping.hpp"
#include "spec/audit/readers/stated_settings.hpp"
#include "spec/audit/readers/table.hpp"
#include "spec/audit/readers/unread_trainers.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

[[noreturn]] void bad_data(const std::string& origin, const std::string& message) {
  throw UserError(ExitCode::bad_data, origin + ": " + message);
}

/// Refuses what is no text, by its first block.
void check_text(std::string_view start, const std::string& origin) {
  const auto is = [&](std::string_view magic) { return start.starts_with(magic); };
  if (is("\x1f\x8b") || is("\x28\xb5\x2f\xfd") || is("BZh") ||
      is("\xfd"
         "7zXZ") ||
      is("PK\x03\x04"))
    bad_data(origin, "is compressed; unpack it and audit the log inside");
  if (is("\xff\xfe") || is("\xfe\xff"))
    bad_data(origin, "is UTF-16; convert it with `iconv -f UTF-16 -t UTF-8` and audit the result");
  const std::string_view sample = start.substr(0, 65536);
  const auto odd = std::count_if(sample.begin(), sample.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\x1b' && c != '\b' && c != '\f' &&
           c != '\a';
  });
  if (10 * odd > static_cast<std::ptrdiff_t>(sample.size()))
    bad_data(origin, "is not text (" + std::to_string(odd) + " control bytes in its first " +
                         std::to_string(sample.size()) + "); give the log that the trainer printed");
}

struct NoEvents {
  void begin_object() {}
  void end_object() {}
  void begin_array() {}
  void end_array() {}
  void key(std::string_view) {}
  void text(std::string_view) {}
  void number(std::string_view) {}
  void word(std::string_view) {}
};

bool whole_json(std::string_view text) {
  NoEvents events;
  MemoryBytes bytes(text);
  JsonScan scan(bytes, events);
  return scan.value() && (scan.blanks(), bytes.peek() < 0);
}

/// A line of our own record, as we or another writer of JSON put it.
bool names_event(std::string_view text) {
  return text.starts_with("{\"event\":") || text.starts_with("{\"event\" :") ||
         text.starts_with("{ \"event\"");
}

/// Whether some member is a list of objects.
bool holds_objects(std::string_view text) {
  for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1))
    if (const std::size_t behind = text.find_first_not_of(" \t\r", at + 1);
        behind != std::string_view::npos && text[behind] == '{')
      return true;
  return false;
}

/// Whether a line of a document ends where more must follow.
bool opens(std::string_view line) {
  const std::size_t last = line.find_last_not_of(" \t\r");
  return last != std::string_view::npos &&
         std::string_view("[{,:").find(line[last]) != std::string_view::npos;
}

enum class LogShape { text, document, json_lines };

/// What a log is, by its first block.
LogShape shape_of(std::string_view start) {
  const auto skip_blanks = [](std::string_view text) {
    const std::size_t at = text.find_first_not_of(" \t\r\n");
    return at == std::string_view::npos ? std::string_view() : text.substr(at);
  };
  start = skip_blanks(start);
  if (start.empty()) return LogShape::text;
  const std::string_view inside = skip_blanks(start.substr(1));
  // "[rank0]: ..." and "{'loss': ..." are no JSON.
  if (start[0] == '[') return inside.empty() || inside[0] == '{' ? LogShape::document : LogShape::text;
  if (start[0] != '{' || (!inside.empty() && inside[0] != '"' && inside[0] != '}')) return LogShape::text;
  const std::size_t end = start.find('\n');
  if (end == std::string_view::npos) return names_event(start) ? LogShape::json_lines : LogShape::document;
  const auto line_of = [](std::string_view text) { return text.substr(0, text.find('\n')); };
  const std::string_view first = line_of(start), next = skip_blanks(start.substr(end));
  if (names_event(next)) return LogShape::json_lines;
  // A document may stand in one line too ("log_history": [{...}]).
  if (whole_json(first) && next.empty())
    return names_event(first) || !holds_objects(first) ? LogShape::json_lines : LogShape::document;
  if (next.empty() || next[0] != '{') return LogShape::document;
  if (whole_json(first)) return LogShape::json_lines;
  // The first line may be damaged. In a document whose elements have a line each, a comma ends the second one
  // or the list closes behind it.
  const std::string_view third = skip_blanks(next.substr(line_of(next).size()));
  const bool lines = whole_json(line_of(next)) && (third.empty() ? !opens(first) : third[0] == '{');
  return lines ? LogShape::json_lines : LogShape::document;
}

std::vector<RunRecord> read_document(Blocks& blocks, const ReadOptions& options, const Mapping& mapping) {
  RecordBuilder builder(blocks.origin(), Format(), options);
  JsonDocument document(builder, mapping);
  struct Lined : JsonValues {
    JsonDocument& document;
    BlockBytes& bytes;
    Lined(JsonDocument& d, BlockBytes& b) : document(d), bytes(b) {}
    void value(std::string_view path, JsonKind kind, std::string_view token) override {
      document.at_line(bytes.line());
      document.value(path, kind, token);
    }
    void begin_element(std::string_view path) override {
      document.at_line(bytes.line());
      document.begin_element(path);
      begin = bytes.rest().data() - 1;  // the brace
      refills = bytes.refills();
    }
    void end_element(std::string_view path) override {
      const bool whole = begin && refills == bytes.refills();
      document.end_element(path, whole ? std::string_view(begin, bytes.rest().data()) : std::string_view());
      begin = nullptr;
    }
    bool known_element(std::string_view path, std::string_view rest) override {
      document.at_line(bytes.line());
      const auto [size, line_breaks] = document.known_element(path, rest);
      bytes.skip(size, line_breaks);
      return size > 0;
    }
    const char* begin = nullptr;  // of the element whose bytes are at hand
    std::int64_t refills = 0;
  };
  BlockBytes bytes(blocks);
  Lined lined(document, bytes);
  JsonPaths paths(lined);
  JsonScan scan(bytes, paths);
  const bool whole = scan.value();
  const std::string where = "line " + std::to_string(bytes.line());
  if (!whole)
    bad_data(blocks.origin(), std::string("is no whole JSON document: at ") + where + ", " + scan.fault() +
                                  "; was the writer stopped before it was done? Give the complete file");
  scan.blanks();
  if (bytes.peek() >= 0)
    bad_data(blocks.origin(), "holds more than one JSON document: the next begins at " + where +
                                  "; give one per file, or one per line");
  document.check_mapping();
  if (!document.recognised())
    bad_data(
        blocks.origin(),
        "is a JSON document of no known trainer (it has no list \"training_iterations\", \"log_history\" or "
        "{\"log\": ...}); say what its keys mean, like --map step=iter,loss=train_loss");
  return builder.finish(bytes.line(), false);
}

/// Lines before the first step line, kept until the trainer is known.
struct Waiting {
  struct Kept {
    std::string text;
    Line line;
  };
  std::vector<Kept> lines;
  std::size_t bytes = 0;
  static constexpr std::size_t most_bytes = 8 << 20;

  void keep(const Line& line) {
    bytes += line.text.size() + sizeof(Kept);
    if (bytes < most_bytes) lines.push_back({std::string(line.text), line});
  }
};

void hand(const Line& line, LineReader& reader, RecordBuilder& builder, ForeignLook& foreign) {
  builder.at(line.number, line.rank);
  const std::int64_t before = builder.takings();
  reader.read(line, builder);
  if (builder.takings() == before) foreign.look(line);
}

/// What a log is, of which no line is one of a trainer that is read: whose console it looks like, or its
/// first line.
std::string looks_of(const std::vector<Waiting::Kept>& lines) {
  for (const Waiting::Kept& kept : lines)
    if (const std::string_view trainer = unread_trainer(kept.text); !trainer.empty())
      return "; line " + std::to_string(kept.line.number) + " looks like " + std::string(trainer) +
             "'s console, which is not read: write its numbers as CSV or JSON lines, and";
  return (lines.empty() ? "" : "; it begins " + quote(lines[0].text)) + "; for CSV and JSON lines";
}

std::vector<RunRecord> read_lines(Blocks& blocks, const ReadOptions& options, const Mapping& mapping,
                                  LogShape shape) {
  Lines lines(blocks);
  Waiting waiting;
  std::unique_ptr<LineReader> reader;
  std::unique_ptr<RecordBuilder> builder;
  ForeignLook foreign(nullptr);
  const auto start = [&](Format format, std::unique_ptr<LineReader> made, const LineFormat* own = nullptr) {
    foreign = ForeignLook(own);
    builder = std::make_unique<RecordBuilder>(blocks.origin(), std::move(format), options);
    reader = std::move(made);
    for (Waiting::Kept& kept : waiting.lines) {
      kept.line.text = kept.text;
      hand(kept.line, *reader, *builder, foreign);
    }
    waiting = Waiting();
  };
  if (mapping.stated()) start(mapped_format(), make_table(mapping, shape == LogShape::json_lines));
  Line line;
  while (lines.next(line)) {
    if (!reader) {
      for (const LineFormat& known : line_formats()) {
        if (!known.recognises(line.text)) continue;
        start(known.format, known.make(), &known);
        break;
      }
      if (!reader) {
        waiting.keep(line);
        continue;
      }
    }
    hand(line, *reader, *builder, foreign);
  }
  if (!reader && table_explains_itself(waiting.lines.empty() ? "" : waiting.lines[0].text, mapping,
                                       shape == LogShape::json_lines))
    start(mapped_format(), make_table(mapping, shape == LogShape::json_lines));
  if (!reader) {
    bad_data(blocks.origin(), "no step line of a known trainer in " + std::to_string(lines.count()) +
                                  (lines.count() == 1 ? " line" : " lines") + looks_of(waiting.lines) +
                                  " say what the columns mean, like --map step=iter,loss=train_loss");
  }
  reader->finish(*builder);
  std::vector<RunRecord> runs = builder->finish(lines.count(), lines.truncated());
  runs.front().foreign_lines = foreign.seen();
  return runs;
}

}  // namespace

const std::vector<LineFormat>& line_formats() {
  static const std::vector<LineFormat> all = {
      assay_format(),   llm_tii_format(), torchtitan_format(), kempnerforge_format(), megatron_format(),
      nanogpt_format(), llmc_format(),    llmq_format(),       hugging_face_format()};
  return all;
}

namespace {

/// Dictionaries on the console name no step. Where the run's steps are known and one interval of logging
/// alone gives as many lines, they stand at its multiples.
void number_steps(RunRecord& run) {
  const auto& planned = run[Setting::max_steps];
  const auto lines = static_cast<std::int64_t>(run.steps.size());
  if (run.format.name != "hugging_face" || !planned || lines == 0 || run.steps_seen != lines) return;
  if (!(planned->value >= static_cast<double>(lines) && planned->value < 1e12)) return;
  if (std::any_of(run.steps.begin(), run.steps.end(),
                  [](const Step& s) { return s[Field::step].has_value(); }))
    return;
  const auto steps = static_cast<std::int64_t>(planned->value), every = steps / lines;
  // Another interval would give as many lines where every - 1 does.
  if (steps / every != lines || (every > 1 && steps / (every - 1) == lines)) return;
  for (std::int64_t i = 0; i < lines; ++i)
    run.steps[static_cast<std::size_t>(i)][Field::step] =
        exactly(static_cast<double>((i + 1) * every), run.steps[static_cast<std::size_t>(i)].line);
}

}  // namespace

std::vector<RunRecord> read_logs(std::istream& in, const std::string& origin, const ReadOptions& options) {
  const Mapping mapping(options.map);
  check_settings(options.set);
  Blocks blocks(in, origin);
  if (!blocks.more() || blocks.rest().find_first_not_of(" \t\r\n") == std::string_view::npos)
    bad_data(origin, "is empty; give the log that the trainer printed");
  check_text(blocks.rest(), origin);
  const LogShape shape = shape_of(blocks.rest());
  std::vector<RunRecord> runs = shape == LogShape::document ? read_document(blocks, options, mapping)
                                                            : read_lines(blocks, options, mapping, shape);
  for (RunRecord& run : runs) {
    run.mapped = mapping.given();
    apply_settings(run, options.set);
    merge_doubled_lines(run);
    number_steps(run);
    if (run.ranks == 1) run.steps_of_rank = run.steps_seen;
  }
  return runs;
}

std::vector<RunRecord> read_logs(const std::string& path, const ReadOptions& options) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const auto usage = [&](const std::string& message) -> std::vector<RunRecord> {
    throw UserError(ExitCode::usage, path + ": " + message);
  };
  if (!std::filesystem::exists(status))
    return usage("no such file; give a log, or a folder with a run.jsonl");
  if (std::filesystem::is_directory(status)) {
    const std::string inside = (std::filesystem::path(path) / "run.jsonl").string();
    if (!std::filesystem::exists(inside, error))
      return usage("is a folder without a run.jsonl; give the log itself");
    return read_logs(inside, options);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(ExitCode::io, path + ": cannot be opened for reading; check its permissions");
  return read_logs(file, path, options);
}

namespace {

RunRecord the_only(std::vector<RunRecord> runs, const std::string& origin) {
  if (runs.size() > 1)
    throw UserError(ExitCode::usage, origin + ": holds " + std::to_string(runs.size()) +
                                         " runs; give a file with one, or have all of them compared");
  return std::move(runs.front());
}

}  // namespace

RunRecord read_log(const std::string& path, const ReadOptions& options) {
  return the_only(read_logs(path, options), path);
}

RunRecord read_log(std::istream& in, const std::string& origin, const ReadOptions& options) {
  return the_only(read_logs(in, origin, options), origin);
}

}  // namespace assay::spec::audit
