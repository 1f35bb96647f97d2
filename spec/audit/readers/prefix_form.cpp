#include "spec/audit/readers/prefix_form.hpp"

namespace assay::spec::audit {
namespace {

/// In a form: where the level of a message stands.
constexpr char level_mark = '\x01';
/// At its end: where a blank may follow that is not the line's own.
constexpr char blank_mark = '\x02';

/// Bytes before the last stamp of a day and its time in `text`, which may be the trainer's own.
std::size_t before_stamp(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 0;) {
    std::size_t behind = at;
    if (pass_form(text, behind, "0000-00-00 00:00:00")) return at > 0 && text[at - 1] == '[' ? at - 1 : at;
  }
  return 0;
}

std::string form_of(std::string_view before) {
  std::string form;
  const bool blank_behind = before.ends_with(' ');
  while (!before.empty() && before.front() == ' ') before.remove_prefix(1);
  while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
  for (std::size_t at = 0; at < before.size();) {
    const bool word_begins = at == 0 || !alphabetic(before[at - 1]);
    if (const std::size_t level = word_begins ? level_word(before.substr(at)) : 0; level > 0) {
      form += level_mark;
      at += level;
    } else {
      const char kept = numeral(before[at]) ? '0' : before[at];
      const bool run = kept == '0' || kept == ' ';
      if (!run || form.empty() || form.back() != kept) form += kept;
      ++at;
    }
  }
  return form.empty() || !blank_behind ? form : form + blank_mark;
}

/// Bytes of that form at the start of `text`; 0 where it is not there.
std::size_t length_of(std::string_view form, std::string_view text) {
  std::size_t at = 0;
  const auto run = [&](auto&& belongs) {
    const std::size_t from = at;
    while (at < text.size() && belongs(text[at])) ++at;
    return at > from;
  };
  const auto blank = [](char c) { return c == ' '; };
  if (form.empty()) return 0;
  run(blank);
  for (const char c : form) {
    if (c == blank_mark) {
      at += at < text.size() && text[at] == ' ';
      continue;
    }
    if (c == '0' || c == ' ') {
      if (c == '0' ? !run(numeral) : !run(blank)) return 0;
      continue;
    }
    const std::size_t size = c == level_mark                     ? level_word(text.substr(at))
                             : at < text.size() && text[at] == c ? 1
                                                                 : 0;
    if (size == 0) return 0;
    at += size;
  }
  return at;
}

}  // namespace

bool pass_form(std::string_view text, std::size_t& at, std::string_view form) {
  if (text.size() - at < form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const char c = text[at + i];
    const bool fits = form[i] == '0'   ? numeral(c)
                      : form[i] == 'A' ? alphabetic(c)
                      : form[i] == '_' ? numeral(c) || c == ' '
                                       : c == form[i];
    if (!fits) return false;
  }
  at += form.size();
  return true;
}

std::size_t level_word(std::string_view text) {
  for (const std::string_view level :
       {"DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "stdout", "stderr"})
    if (text.starts_with(level) && (text.size() == level.size() || !alphabetic(text[level.size()])))
      return level.size();
  return 0;
}

PrefixForm::PrefixForm(std::string_view before)
    : form_(form_of(before)), without_stamp_(form_of(before.substr(0, before_stamp(before)))) {}

std::size_t PrefixForm::length(std::string_view text) const {
  const std::size_t whole = length_of(form_, text);
  return whole > 0 ? whole : length_of(without_stamp_, text);
}

}  // namespace assay::spec::audit
