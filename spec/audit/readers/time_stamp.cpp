#include "spec/audit/readers/time_stamp.hpp"

#include <chrono>
#include <cstring>
#include <utility>

#include "spec/audit/digits.hpp"

namespace assay::spec::audit {
namespace {

/// Of year, month, day; and as in the United States, of month, day, year.
constexpr std::string_view stamp_form = "dddd-dd-dd dd:dd:dd", form_with_year_last = "dd/dd/dddd dd:dd:dd";
static_assert(stamp_form.size() == form_with_year_last.size());
constexpr std::size_t most_behind_point = 6;

bool stamp_digit(char c) { return c >= '0' && c <= '9'; }

bool of_form(std::string_view text, std::string_view form) {
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == 'd' ? !stamp_digit(text[i]) : text[i] != form[i]) return false;
  return true;
}

std::size_t digits_behind_point(std::string_view text) {
  std::size_t count = 0;
  if (text.size() > stamp_form.size() && (text[stamp_form.size()] == ',' || text[stamp_form.size()] == '.'))
    while (count < most_behind_point && stamp_form.size() + 1 + count < text.size() &&
           stamp_digit(text[stamp_form.size() + 1 + count]))
      ++count;
  return count;
}

int number_at(std::string_view text, std::size_t from, std::size_t digits) {
  int out = 0;
  for (std::size_t i = from; i < from + digits; ++i) out = 10 * out + (text[i] - '0');
  return out;
}

/// The beginning of the day of a stamp [s since 1970]. Where the first number can be no month, it is the day.
std::optional<double> midnight_of(std::string_view stamp) {
  const bool year_last = stamp[2] == '/';
  int year = number_at(stamp, year_last ? 6 : 0, 4), month = number_at(stamp, year_last ? 0 : 5, 2),
      of_month = number_at(stamp, year_last ? 3 : 8, 2);
  if (year_last && month > 12) std::swap(month, of_month);
  const std::chrono::year_month_day day{std::chrono::year(year),
                                        std::chrono::month(static_cast<unsigned>(month)),
                                        std::chrono::day(static_cast<unsigned>(of_month))};
  if (!day.ok()) return std::nullopt;
  return 86400 * static_cast<double>(std::chrono::sys_days(day).time_since_epoch().count());
}

Printed of_day(double midnight, std::string_view stamp, std::size_t behind_point, std::int64_t line) {
  const double whole =
      midnight + 3600 * number_at(stamp, 11, 2) + 60 * number_at(stamp, 14, 2) + number_at(stamp, 17, 2);
  const double unit = inverse_powers_of_ten[behind_point],
               fraction =
                   behind_point == 0 ? 0 : number_at(stamp, stamp_form.size() + 1, behind_point) * unit;
  return Printed{whole + fraction, whole + fraction, whole + fraction + 0.5 * unit, line};
}

/// Where the last stamp begins; npos: there is none. The trainer's own stands behind those that were put
/// before its lines.
std::size_t last_stamp(std::string_view before) {
  if (before.size() < stamp_form.size()) return std::string_view::npos;
  for (std::size_t at = before.size() - stamp_form.size() + 1; at-- > 0;)
    if ((before[at + 4] == '-' && of_form(before.substr(at, stamp_form.size()), stamp_form)) ||
        (before[at + 2] == '/' && of_form(before.substr(at, stamp_form.size()), form_with_year_last)))
      return at;
  return std::string_view::npos;
}

/// The last "12/21 01:39:51" with a year put before it, or empty. Of 1972, which has a 29th of February and
/// no log: a run that goes on behind New Year falls back by a year, which is not taken for another run's
/// date.
std::string stamp_without_year(std::string_view before) {
  constexpr std::string_view form = "dd/dd dd:dd:dd", some_year = "1972-";
  for (std::size_t at = before.size() < form.size() ? 0 : before.size() - form.size() + 1; at-- > 0;)
    if (before[at + 2] == '/' && (at == 0 || before[at - 1] == ' ' || before[at - 1] == '[') &&
        of_form(before.substr(at, form.size()), form))
      return std::string(some_year).append(before.substr(at, 2)).append("-").append(before.substr(at + 3));
  return "";
}

}  // namespace

std::optional<Printed> time_stamp(std::string_view before, std::int64_t line) {
  const std::size_t at = last_stamp(before);
  if (at == std::string_view::npos) {
    const std::string dated = stamp_without_year(before);
    const auto midnight = dated.empty() ? std::nullopt : midnight_of(dated);
    if (!midnight) return std::nullopt;
    return of_day(*midnight, dated, digits_behind_point(dated), line);
  }
  const std::string_view stamp = before.substr(at);
  const auto midnight = midnight_of(stamp);
  if (!midnight) return std::nullopt;
  return of_day(*midnight, stamp, digits_behind_point(stamp), line);
}

/// Whether all but the digits of the time of day is as in the line before, and digits are there: then no
/// other stamp is, and no other word.
bool LineStamps::alike(std::string_view text) const {
  constexpr std::size_t of_day = 11;
  const std::size_t size = before_.size(), end = at_ + stamp_form.size() + (fraction_ > 0) + fraction_;
  if (size == 0 || text.size() < size + word_.size()) return false;
  const char *const now = text.data(), *const last = before_.data();
  if (std::memcmp(now, last, at_ + of_day) != 0 || std::memcmp(now + end, last + end, size - end) != 0 ||
      std::memcmp(now + size, word_.data(), word_.size()) != 0)
    return false;
  for (std::size_t i = at_ + of_day; i < end; ++i)
    if (stamp_digit(last[i]) ? !stamp_digit(now[i]) : now[i] != last[i]) return false;
  return true;
}

std::optional<Printed> LineStamps::of(std::string_view text, std::int64_t line) {
  if (alike(text)) return of_day(midnight_, text.substr(at_, before_.size() - at_), fraction_, line);
  const std::size_t word = text.find(word_);
  const std::string_view before = text.substr(0, word);
  const std::size_t at = last_stamp(before);
  before_.clear();
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view stamp = before.substr(at);
  const auto midnight = midnight_of(stamp);
  if (!midnight) return std::nullopt;
  if (word != std::string_view::npos) before_ = before;
  at_ = at, fraction_ = digits_behind_point(stamp), midnight_ = *midnight;
  return of_day(midnight_, stamp, fraction_, line);
}

}  // namespace assay::spec::audit
