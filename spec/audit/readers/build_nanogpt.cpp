// The console of build-nanogpt (train_gpt2.py): formats.md, "build_nanogpt".
#include <algorithm>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/train_gpt2_header.hpp"

namespace assay::spec::audit {
namespace build_nanogpt {
namespace {

/// From "step" on of "step     0 | loss: 10.95 | lr 8.3e-07 | norm: 27.1 | dt: 339.21ms | tok/sec: 1543.2";
/// data() is null on other lines. Of a line that is cut the rate may be lost.
std::string_view step_line(std::string_view text) {
  const auto [behind_word, behind_number] = behind_step(text);
  const std::string_view after = trimmed(behind_number);
  const bool cut =
      after.find("norm: ") != std::string_view::npos && after.find("dt: ") != std::string_view::npos;
  return after.starts_with("| loss: ") && (cut || after.find("tok/sec: ") != std::string_view::npos)
             ? text.substr(text.size() - behind_word.size() - step_word.size())
             : std::string_view();
}

bool read_numbers(std::string_view text, std::int64_t line, Step& step, TakenNumbers* taken = nullptr) {
  Scan scan(text, line, taken);
  scan.take(step, Field::step, "step ", Kind::counted, 1, {}, true);
  scan.take(step, Field::loss, "| loss: ", Kind::measured, 1, {}, true);
  scan.take(step, Field::learning_rate, "| lr ", Kind::measured);
  scan.take(step, Field::gradient_norm, "norm: ", Kind::measured);
  // Its first versions print whole milliseconds, or seconds.
  if (const std::string_view time = scan.behind_next("dt: "); time.data()) {
    const std::string_view unit =
        trimmed(time.substr(std::min(time.size(), time.find_first_not_of(" .0123456789"))));
    scan.take(step, Field::seconds, "dt: ", Kind::measured, unit.starts_with("ms") ? 1e-3 : 1,
              unit.starts_with("ms") ? "ms" : "s", true);
  }
  scan.take(step, Field::tokens_per_second, "tok/sec: ", Kind::measured);
  return !scan.bad();
}

/// One of these stands in every line that says something.
const Words& known_words() {
  static const Words words = [] {
    std::vector<std::string_view> all(std::begin(TrainGpt2Header::words), std::end(TrainGpt2Header::words));
    all.push_back(step_word);
    return Words(all);
  }();
  return words;
}

class BuildNanoGpt : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    Step step;
    if (shapes_.read(line, step)) return builder.step(step, shapes_.fields());
    if (!may_say(known_words(), line.text)) return;
    const auto text = step_line(line.text);
    if (!text.data()) return header_.read(line.text, line.number, builder), void();
    TakenNumbers taken;
    // The number at the end of a line that is cut may be cut too.
    if (!line.complete || !read_numbers(text, line.number, step, &taken)) return builder.unread(line.text);
    shapes_.learn(line, taken);
    builder.step(step);
  }

 private:
  TrainGpt2Header header_;
  LineShapes shapes_;
};

}  // namespace
}  // namespace build_nanogpt

LineFormat build_nanogpt_format() {
  Format format;
  format.name = "build_nanogpt";
  format.tokens_per_second = Scope::all;
  format.first_step_is_zero = true;
  return {format,
          [](std::string_view text) {
            const auto rest = build_nanogpt::step_line(text);
            Step step;
            return rest.data() && build_nanogpt::read_numbers(rest, 0, step);
          },
          [] { return std::unique_ptr<LineReader>(std::make_unique<build_nanogpt::BuildNanoGpt>()); },
          {step_word}};
}

}  // namespace assay::spec::audit
