#include "spec/audit/readers/read_lines.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "spec/audit/readers/foreign_lines.hpp"
#include "spec/audit/readers/glued_lines.hpp"
#include "spec/audit/readers/line_prefix.hpp"
#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/log_shape.hpp"
#include "spec/audit/readers/settings_behind.hpp"
#include "spec/audit/readers/table.hpp"
#include "spec/audit/readers/unread_trainers.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

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

/// What a log is, of which no line is one of a trainer that is read: whose console it looks like, or its
/// first line.
std::string looks_of(const std::vector<Waiting::Kept>& lines) {
  for (const Waiting::Kept& kept : lines)
    if (const std::string_view trainer = unread_trainer(kept.text); !trainer.empty())
      return "; line " + std::to_string(kept.line.number) + " looks like " + std::string(trainer) +
             "'s console, which is not read: " +
             (trainer == "Assay" ? "audit the run's record, its run.jsonl; for CSV and JSON lines"
                                 : "write its numbers as CSV or JSON lines, and");
  for (const Waiting::Kept& kept : lines)
    if (const std::string_view what = unread_part(kept.text); !what.empty())
      return "; line " + std::to_string(kept.line.number) + " is of " + std::string(what) +
             "; for CSV and JSON lines";
  return (lines.empty() ? "" : "; it begins " + quote(lines[0].text)) + "; for CSV and JSON lines";
}

/// Hands the lines of a log to the reader of its trainer, without their prefix where they have one.
class Hands {
 public:
  /// `own`: the trainer's; nullptr: a table, of which every line is a row. `step_line`: the first, with its
  /// prefix.
  Hands(const std::string& origin, Format format, std::unique_ptr<LineReader> reader,
        const ReadOptions& options, const LineFormat* own = nullptr, std::string_view step_line = {})
      : reader_(std::move(reader)), builder_(origin, std::move(format), options), foreign_(own) {
    if (!own) return;
    prefix_ = LinePrefix(*own, step_line);
    beginning_ = StepBeginning(*own, step_line);
    behind_.emplace(*own);
    reader_->ask_others([this](std::string_view text) {
      others_at_ = foreign_.begins_in(text);
      return others_at_ != nowhere;
    });
  }

  /// A line before the first step line: a setting, if anything.
  void header(Line line) {
    take_blank(line);
    Line bare = line;
    if (prefix_.take(bare) ? says(bare) : says(line)) return;
    foreign_.look(line);
    if (behind_) behind_->look(line);
  }

  void line(Line line) {
    for (StepBeginning::Second second;
         (second = beginning_.second(line.text)).end_of_first != std::string_view::npos;) {
      Line part = line;
      part.text = line.text.substr(0, second.end_of_first);
      part.complete = false;  // the number at its end may be cut
      one(part);
      line.text.remove_prefix(second.begin);
      if (line.rank >= 0 && second.rank < 0) {  // whose step it is, is lost
        builder_.at(line.number, -1);
        builder_.unread(line.text);
        return;
      }
      line.rank = second.rank;
    }
    one(line);
  }

  std::vector<RunRecord> finish(const Lines& lines) {
    reader_->finish(builder_);
    std::vector<RunRecord> runs = builder_.finish(lines.count(), lines.truncated());
    runs.front().foreign_lines = foreign_.seen();
    CutLines& cut = runs.front().cut_lines = lines.cut();
    const CutLines& ends = builder_.cut_ends();
    if (cut.count == 0 || (ends.count > 0 && ends.line < cut.line)) cut.line = ends.line;
    cut.count += ends.count;
    if (behind_) runs.front().settings_behind = behind_->seen();
    return runs;
  }

 private:
  void one(const Line& line) {
    const std::int64_t steps = builder_.steps_seen();
    if (line.rank >= 0 || !prefix_.none())
      prefixed(line);
    else if (!says(line))
      unsaid(line);
    if (line.cut && builder_.steps_seen() == steps && beginning_.may_be_step(line.text)) builder_.hidden(1);
  }

  /// A line that says nothing to the reader.
  void unsaid(const Line& line) {
    if (is_elision(line.text)) builder_.left_out();
    foreign_.look(line);
  }

  /// Most steps are read as they stand, which is the quicker way; what says nothing so is read without its
  /// prefix.
  void prefixed(Line line) {
    take_blank(line);
    Line bare = line;
    if (prefix_.on_steps() && prefix_.take_off_step(bare) ? says(bare) : says(line)) return;
    bare = line;
    if (!reader_->held_no_word() && prefix_.take(bare) && says(bare)) return;
    unsaid(line);
  }

  /// Whether the line says something to the reader.
  bool says(const Line& line) {
    builder_.at(line.number, line.rank);
    const std::int64_t before = builder_.takings();
    others_at_ = nowhere;
    reader_->read(line, builder_);
    if (others_at_ == nowhere) return builder_.takings() != before;
    take_apart(line);
    return true;
  }
  /// A line in which another trainer's step stands, behind an own one or none. The number at the end of the
  /// own one may be cut, or go on in what stands before the other's words.
  void take_apart(Line line) {
    Line rest = line;
    rest.text.remove_prefix(others_at_);
    line.text.remove_suffix(rest.text.size());
    line.complete = false;
    if (!says(line) && !line.text.empty() && beginning_.may_be_step(line.text)) builder_.unread(line.text);
    foreign_.look(rest);
  }
  /// The blank behind a prefix that names the rank ("[rank0]: ").
  static void take_blank(Line& line) {
    if (line.rank >= 0 && line.text.size() > 1 && line.text[0] == ' ' && line.text[1] != ' ')
      line.text.remove_prefix(1);
  }

  std::unique_ptr<LineReader> reader_;
  RecordBuilder builder_;
  ForeignLook foreign_;
  static constexpr std::size_t nowhere = std::string_view::npos;
  std::size_t others_at_ = nowhere;  ///< where another trainer's step begins in the line that is read
  LinePrefix prefix_;
  StepBeginning beginning_;
  std::optional<SettingsBehind> behind_;
};

/// Where the first word of the trainer's steps stands.
std::size_t first_word(const LineFormat& format, std::string_view text) {
  std::size_t first = std::string_view::npos;
  for (const std::string_view word : format.of_steps) first = std::min(first, text.find(word));
  return first;
}

/// The trainer one of whose step lines this is, as it stands or behind a prefix, the first of two that left
/// theirs in one line; nullptr: none.
const LineFormat* trainer_of(std::string_view text) {
  const LineFormat* found = nullptr;
  for (const LineFormat& known : line_formats())
    if (known.recognises(text) && (!found || first_word(known, text) < first_word(*found, text)))
      found = &known;
  if (found) return found;
  if (!may_have_prefix(text)) return nullptr;
  for (const LineFormat& known : line_formats())
    if (!LinePrefix(known, text).none()) return &known;
  return nullptr;
}

}  // namespace

std::vector<RunRecord> read_lines(Blocks& blocks, const ReadOptions& options, const Mapping& mapping,
                                  LogShape shape) {
  const std::string_view first = blocks.rest().substr(0, blocks.rest().find('\n'));
  const bool rows =
      shape != LogShape::json_lines && (mapping.stated() || table_explains_itself(first, mapping, false));
  Lines lines(blocks, rows);
  Waiting waiting;
  std::unique_ptr<Hands> hands;
  const auto tell = [&](std::unique_ptr<Hands> made) {
    hands = std::move(made);
    for (Waiting::Kept& kept : waiting.lines) {
      kept.line.text = kept.text;
      hands->header(kept.line);
    }
    waiting = Waiting();
  };
  const auto as_table = [&] {
    tell(std::make_unique<Hands>(blocks.origin(), mapped_format(),
                                 make_table(mapping, shape == LogShape::json_lines), options));
  };
  if (mapping.stated()) as_table();
  Line line;
  while (lines.next(line)) {
    if (line.text.starts_with('`') && is_fence(line.text)) continue;
    if (!hands) {
      const LineFormat* const trainer = trainer_of(line.text);
      if (!trainer) {
        waiting.keep(line);
        continue;
      }
      tell(std::make_unique<Hands>(blocks.origin(), trainer->format, trainer->make(), options, trainer,
                                   line.text));
    }
    hands->line(line);
  }
  if (!hands && table_explains_itself(waiting.lines.empty() ? "" : waiting.lines[0].text, mapping,
                                      shape == LogShape::json_lines))
    as_table();
  if (!hands)
    throw UserError(ExitCode::bad_data,
                    blocks.origin() + ": no step line of a known trainer in " +
                        std::to_string(lines.count()) + (lines.count() == 1 ? " line" : " lines") +
                        looks_of(waiting.lines) +
                        " say what the columns mean, like --map step=iter,loss=train_loss");
  return hands->finish(lines);
}

const std::vector<LineFormat>& line_formats() {
  static const std::vector<LineFormat> all = {
      assay_format(),    llm_tii_format(),     torchtitan_format(), kempnerforge_format(),
      megatron_format(), nanogpt_format(),     llmc_format(),       build_nanogpt_format(),
      llmq_format(),     hugging_face_format()};
  return all;
}

}  // namespace assay::spec::audit
