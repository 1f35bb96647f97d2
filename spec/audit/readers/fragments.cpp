#include "spec/audit/readers/fragments.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "spec/text/utf8.hpp"

namespace assay::spec::audit {
namespace {

constexpr std::string RunRecord::*text_members[] = {&RunRecord::model,    &RunRecord::gpu,
                                                    &RunRecord::device,   &RunRecord::dtype,
                                                    &RunRecord::schedule, &RunRecord::parallelism};
/// Quotes are short; whole logs are not compared with each other.
constexpr std::size_t longest_fragment = 1000;

bool same(const Printed& one, const Printed& other) {
  return (one.value == other.value && one.low == other.low) ||
         (std::isnan(one.value) && std::isnan(other.value));
}

/// Numbers that two steps both state and state alike; -1 when one differs.
int alike(const Step& one, const Step& other) {
  int count = 0;
  for (std::size_t i = 0; i < field_count; ++i) {
    if (!one.fields[i] || !other.fields[i]) continue;
    if (!same(*one.fields[i], *other.fields[i])) return -1;
    const auto field = static_cast<Field>(i);  // what every line of a run repeats tells no step
    count += field != Field::step_sequences && field != Field::planned_steps && field != Field::not_finite;
  }
  return count;
}

std::map<double, const Step*> by_number(const RunRecord& record) {
  std::map<double, const Step*> steps;
  for (const Step& step : record.steps)
    if (step[Field::step]) steps.emplace(step[Field::step]->value, &step);
  return steps;
}

bool one_run(const RunRecord& one, const RunRecord& other) {
  if (one.steps.size() > longest_fragment || other.steps.size() > longest_fragment || !agree(one, other))
    return false;
  const auto others = by_number(other);
  bool shared = false;
  for (const auto& [number, step] : by_number(one)) {
    const auto found = others.find(number);
    if (found == others.end()) continue;
    const int count = alike(*step, *found->second);
    if (count < 0) return false;
    shared = shared || count >= 3;
  }
  return shared;
}

void join(RunRecord& into, const RunRecord& from) {
  for (std::size_t i = 0; i < setting_count; ++i)
    if (!into.settings[i]) into.settings[i] = from.settings[i];
  for (std::string RunRecord::*name : text_members)
    if ((into.*name).empty()) into.*name = from.*name;
  const auto known = by_number(into);
  std::vector<Step> fresh;
  for (const Step& step : from.steps)
    if (step[Field::step] && !known.contains(step[Field::step]->value)) fresh.push_back(step);
  into.steps.insert(into.steps.end(), fresh.begin(), fresh.end());
  std::stable_sort(into.steps.begin(), into.steps.end(), [](const Step& a, const Step& b) {
    return a[Field::step] && b[Field::step] && a[Field::step]->value < b[Field::step]->value;
  });
  into.steps_seen = static_cast<std::int64_t>(into.steps.size());
  for (const auto lines : {&RunRecord::elisions, &RunRecord::pauses}) {
    (into.*lines).insert((into.*lines).end(), (from.*lines).begin(), (from.*lines).end());
    std::sort((into.*lines).begin(), (into.*lines).end());
  }
  into.hidden_steps.insert(into.hidden_steps.end(), from.hidden_steps.begin(), from.hidden_steps.end());
  std::sort(into.hidden_steps.begin(), into.hidden_steps.end());
  into.unread_lines += from.unread_lines;
  into.unread_quotes.insert(into.unread_quotes.end(), from.unread_quotes.begin(), from.unread_quotes.end());
  into.unread_quotes.resize(std::min<std::size_t>(into.unread_quotes.size(), 10));
}

}  // namespace

bool agree(const RunRecord& one, const RunRecord& other) {
  for (std::size_t i = 0; i < setting_count; ++i)
    if (one.settings[i] && other.settings[i] && !same(*one.settings[i], *other.settings[i])) return false;
  return std::all_of(std::begin(text_members), std::end(text_members), [&](std::string RunRecord::*name) {
    return (one.*name).empty() || (other.*name).empty() || one.*name == other.*name;
  });
}

std::vector<RunRecord> join_fragments(std::vector<RunRecord> records) {
  std::vector<RunRecord> joined;
  for (RunRecord& record : records) {
    const auto whole = std::find_if(joined.begin(), joined.end(),
                                    [&](const RunRecord& known) { return one_run(known, record); });
    if (whole == joined.end())
      joined.push_back(std::move(record));
    else
      join(*whole, record);
  }
  return joined;
}

std::string escaped(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t at = 0; at < text.size() && out.size() < 197;) {
    const std::size_t length = utf8_length(text.substr(at));
    const unsigned char byte = static_cast<unsigned char>(text[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      ++at;
    } else {
      out.append(text.substr(at, length));
      at += length;
    }
  }
  return out;
}

}  // namespace assay::spec::audit
