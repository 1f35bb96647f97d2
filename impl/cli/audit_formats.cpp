#include <cmath>

#include "impl/cli/audit_print.hpp"
#include "spec/audit/headline.hpp"
#include "spec/text/json.hpp"
#include "spec/text/utf8.hpp"

namespace assay::impl::cli {
namespace {

using namespace spec::audit;  // NOLINT: this file speaks of nothing else
using spec::json_number;
using spec::json_string;

std::string json(const spec::Interval& interval) {
  return "[" + json_number(interval.low) + "," + json_number(interval.high) + "]";
}
std::string json(const std::optional<spec::Interval>& interval) {
  return interval ? json(*interval) : "null";
}
std::string json(const std::optional<double>& number) { return number ? json_number(*number) : "null"; }

template <class List, class Text>
std::string list(const List& items, Text text) {
  std::string out = "[";
  for (const auto& item : items) out += (out.size() > 1 ? "," : "") + text(item);
  return out + "]";
}

std::string json(const Result& r) {
  std::string out = "{\"id\":" + json_string(r.id) + ",\"verdict\":" + json_string(to_string(r.verdict));
  if (r.verdict == Verdict::cannot_be_judged) return out + ",\"missing\":" + json_string(r.note) + "}";
  out += ",\"judged\":" + std::to_string(r.judged) + ",\"contradicted\":" + std::to_string(r.contradicted) +
         ",\"printed\":" + (r.unprinted ? "null" : json_number(r.printed)) +
         ",\"recomputed\":" + json(r.recomputed) + ",\"off_by\":" + json_number(r.off_by) +
         ",\"lines\":" + list(r.lines, [](std::int64_t line) { return std::to_string(line); }) +
         ",\"note\":" + json_string(r.note) + ",\"causes\":" + list(r.causes, [](const Cause& cause) {
           return "{\"id\":" + json_string(cause.id) + ",\"text\":" + json_string(cause.text) + "}";
         });
  return out + "}";
}

std::string json(const Audit& audit, const Reading& reading, bool equal) {
  const Corrected& c = reading.corrected;
  return "{\"equally\":" + std::string(equal ? "true" : "false") + ",\"cost\":" + json_number(reading.cost) +
         ",\"interpretation\":" + json_string(reading.interpretation.note) + ",\"changes\":" +
         list(reading.changes,
              [](const Change& change) {
                return "{\"id\":" + json_string(change.id) + ",\"text\":" + json_string(change.text) +
                       ",\"alternatives\":" +
                       list(change.alternatives, [](const std::string& text) { return json_string(text); }) +
                       "}";
              }) +
         ",\"unexplained\":" +
         list(reading.unexplained, [](Relation relation) { return json_string(to_string(relation)); }) +
         ",\"but_for\":" +
         list(causes_of_their_own(audit, reading), [](const std::string& id) { return json_string(id); }) +
         ",\"corrected\":{\"tokens_per_second\":" + json(c.tokens_per_second) +
         ",\"per_gpu\":" + json(c.per_gpu) + ",\"mfu_exact\":" + json(c.mfu_exact) +
         ",\"mfu_palm_total\":" + json(c.mfu_palm_total) + ",\"missing\":" + json_string(c.missing) + "}}";
}

/// What the command line stated: null where the log says nothing of it.
std::string json(const GivenOption& stated) {
  return "{\"name\":" + json_string(stated.name) + ",\"option\":" + json_string(stated.option) + ",\"log\":" +
         (stated.log_number         ? json_number(stated.log_number->value)
          : stated.log_text.empty() ? "null"
                                    : json_string(stated.log_text)) +
         ",\"line\":" + (stated.log_number ? std::to_string(stated.log_number->line) : "null") + "}";
}

std::string json(const Audit& audit) {
  const RunRecord& r = *audit.record;
  return "{\"origin\":" + json_string(r.origin) + ",\"format\":" + json_string(r.format.name) +
         ",\"model\":" + json_string(audit.model) + ",\"gpu\":" + json_string(audit.gpu) +
         ",\"device\":" + json_string(r.device) + ",\"gpus\":" + json_number(audit.gpus) +
         ",\"steps\":" + std::to_string(r.steps_of_rank > 0 ? r.steps_of_rank : r.steps_seen) +
         ",\"steps_seen\":" + std::to_string(r.steps_seen) +
         ",\"steps_judged\":" + std::to_string(r.steps.size()) +
         ",\"steps_apart\":" + std::to_string(r.steps_apart) +
         ",\"steps_left_out\":" + std::to_string(r.steps_left_out) + ",\"ranks\":" + std::to_string(r.ranks) +
         ",\"lines\":" + std::to_string(r.lines) + ",\"unread_lines\":" + std::to_string(r.unread_lines) +
         ",\"truncated\":" + (r.truncated ? "true" : "false") + ",\"not_read\":" +
         list(r.foreign_lines,
              [](const ForeignLines& other) {
                return "{\"format\":" + json_string(other.format) +
                       ",\"count\":" + std::to_string(other.count) +
                       ",\"line\":" + std::to_string(other.line) + "}";
              }) +
         ",\"settings_behind\":" +
         (r.settings_behind ? "{\"prefix\":" + json_string(r.settings_behind->prefix) +
                                  ",\"count\":" + std::to_string(r.settings_behind->count) +
                                  ",\"line\":" + std::to_string(r.settings_behind->line) + "}"
                            : "null") +
         ",\"cut_lines\":{\"count\":" + std::to_string(r.cut_lines.count) +
         ",\"line\":" + std::to_string(r.cut_lines.line) +
         ",\"joined\":" + std::to_string(r.cut_lines.joined) +
         ",\"column\":" + std::to_string(r.cut_lines.column) + "}" +
         ",\"null_losses\":" + std::to_string(r.null_losses.count) +
         ",\"stated\":" + list(r.stated, [](const GivenOption& one) { return json(one); }) +
         ",\"mapped\":" + list(r.mapped, [](const GivenOption& one) { return json(one); }) +
         ",\"contradicts\":" + (audit.contradicts ? "true" : "false") +
         ",\"headline\":" + json_string(headline(audit)) + ",\n \"results\":" +
         list(audit.results, [](const Result& result) { return "\n  " + json(result); }) +
         ",\n \"readings\":" +
         list(audit.readings,
              [&](const Reading& reading) {
                return "\n  " + json(audit, reading, equally(audit.readings.front(), reading));
              }) +
         "}";
}

/// `text` for an attribute: well-formed UTF-8, no character that XML 1.0 forbids (below U+0020, and the two
/// that no encoding uses, U+FFFE and U+FFFF).
std::string xml(const std::string& text) {
  std::string out, allowed = spec::valid_utf8(text);
  for (const char* const forbidden : {"\xef\xbf\xbe", "\xef\xbf\xbf"})
    for (std::size_t at = 0; (at = allowed.find(forbidden, at)) != std::string::npos;)
      allowed.replace(at, 3, "\xef\xbf\xbd");
  for (const char c : allowed) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

/// A verdict as a test case; a failure's message begins with the invariant's name, for viewers that show
/// messages alone.
std::string test_case(const std::string& suite, const Result& r) {
  std::string out = "  <testcase classname=\"" + xml(suite) + "\" name=\"" + xml(r.id) + "\" time=\"0\"";
  if (r.verdict == Verdict::holds) return out + "/>\n";
  if (r.verdict == Verdict::cannot_be_judged)
    return out + "><skipped message=\"not judged, for want of " + xml(r.note) + "\"/></testcase>\n";
  std::string causes, lines;
  for (const Cause& cause : r.causes) causes += (causes.empty() ? "" : "; ") + cause.text;
  for (const std::int64_t line : r.lines)
    if (line > 0)
      lines += (!lines.empty() ? ", " : r.lines.size() > 1 ? "lines " : "line ") + std::to_string(line);
  return out + "><failure type=\"contradiction\" message=\"" + xml(r.id) + ": printed " +
         xml(shown(r.printed, r.unit)) + ", recomputed " + xml(shown(r.recomputed, r.unit)) +
         (causes.empty() ? "" : ": " + xml(causes)) + "\">" + xml(lines) + "</failure></testcase>\n";
}

struct Counts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  std::string attributes() const {
    return " tests=\"" + std::to_string(tests) + "\" failures=\"" + std::to_string(failures) +
           "\" errors=\"" + std::to_string(errors) + "\" skipped=\"" + std::to_string(skipped) +
           "\" time=\"0\"";
  }
};

/// What a viewer shows beside the cases: on which steps of a long log they rest.
std::string properties(const RunRecord& r) {
  if (r.steps_seen <= static_cast<std::int64_t>(r.steps.size())) return "";
  const auto property = [](const char* name, std::int64_t number) {
    return "<property name=\"" + std::string(name) + "\" value=\"" + std::to_string(number) + "\"/>";
  };
  return "  <properties>" + property("steps_seen", r.steps_seen) +
         property("steps_judged", static_cast<std::int64_t>(r.steps.size())) +
         property("steps_apart", r.steps_apart) + property("steps_left_out", r.steps_left_out) +
         "</properties>\n";
}

std::string test_suite(const std::string& name, const std::vector<Result>& results, Counts& all,
                       std::string cases = "") {
  Counts counts;
  for (const Result& r : results) {
    ++counts.tests;
    counts.failures += r.verdict == Verdict::contradicts;
    counts.skipped += r.verdict == Verdict::cannot_be_judged;
    cases += test_case(name, r);
  }
  all.tests += counts.tests, all.failures += counts.failures, all.skipped += counts.skipped;
  return " <testsuite name=\"" + xml(name) + "\"" + counts.attributes() + ">\n" + cases + " </testsuite>\n";
}

std::string unreadable_suite(const Unreadable& log, Counts& all) {
  Counts one;
  one.tests = one.errors = 1;
  all.tests += 1, all.errors += 1;
  return " <testsuite name=\"" + xml(log.origin) + "\"" + one.attributes() + ">\n  <testcase classname=\"" +
         xml(log.origin) + "\" name=\"readable\" time=\"0\"><error type=\"unreadable\" message=\"" +
         xml(log.why) + "\"></error></testcase>\n </testsuite>\n";
}

constexpr const char* xml_start =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay audit\"";

}  // namespace

void print_json(const Together& together, const std::vector<Unreadable>& unreadable, std::ostream& out) {
  bool contradicts = false;
  for (const Audit& audit : together.audits) contradicts |= audit.contradicts;
  for (const Result& r : together.results) contradicts |= r.verdict == Verdict::contradicts;
  out << "{\"contradicts\":" << (contradicts ? "true" : "false")
      << ",\"runs\":" << list(together.audits, [](const Audit& audit) { return json(audit); })
      << ",\n\"differences\":"
      << list(together.differences,
              [](const SpeedDifference& d) {
                return "{\"first\":" + std::to_string(d.first) + ",\"second\":" + std::to_string(d.second) +
                       ",\"printed\":" + json(d.printed) + ",\"printed_mfu\":" + json(d.printed_mfu) +
                       ",\"all\":" + json(d.all) + ",\"per_gpu\":" + json(d.per_gpu) +
                       ",\"mfu_exact\":" + json(d.mfu_exact) + ",\"verdict\":" + json_string(d.verdict) + "}";
              })
      << ",\"comparison\":" << list(together.results, [](const Result& r) { return json(r); })
      << ",\"unreadable\":"
      << list(unreadable,
              [](const Unreadable& log) {
                return "{\"origin\":" + json_string(log.origin) + ",\"why\":" + json_string(log.why) + "}";
              })
      << "}\n";
}

std::string junit(const Together& together, const std::vector<Unreadable>& unreadable) {
  Counts all;
  std::string suites;
  for (const Audit& audit : together.audits)
    suites += test_suite(audit.record->origin, audit.results, all, properties(*audit.record));
  if (!together.results.empty()) suites += test_suite("comparison", together.results, all);
  for (const Unreadable& log : unreadable) suites += unreadable_suite(log, all);
  return xml_start + all.attributes() + ">\n" + suites + "</testsuites>\n";
}

}  // namespace assay::impl::cli
