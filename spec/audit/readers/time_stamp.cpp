#include "spec/audit/readers/time_stamp.hpp"

#include <chrono>

#include "spec/audit/digits.hpp"

namespace assay::spec::audit {
namespace {

constexpr std::string_view stamp_form = "dddd-dd-dd dd:dd:dd";
constexpr std::size_t most_behind_point = 6;

bool stamp_digit(char c) { return c >= '0' && c <= '9'; }

bool of_stamp_form(std::string_view text) {
  for (std::size_t i = 0; i < stamp_form.size(); ++i)
    if (stamp_form[i] == 'd' ? !stamp_digit(text[i]) : text[i] != stamp_form[i]) return false;
  return true;
}

std::optional<Printed> stamp_at(std::string_view text, std::int64_t line) {
  const auto number = [&](std::size_t from, std::size_t digits) {
    int out = 0;
    for (std::size_t i = from; i < from + digits; ++i) out = 10 * out + (text[i] - '0');
    return out;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  if (!day.ok()) return std::nullopt;
  std::size_t behind_point = 0;
  if (text.size() > stamp_form.size() && (text[stamp_form.size()] == ',' || text[stamp_form.size()] == '.'))
    while (behind_point < most_behind_point && stamp_form.size() + 1 + behind_point < text.size() &&
           stamp_digit(text[stamp_form.size() + 1 + behind_point]))
      ++behind_point;
  const double days = static_cast<double>(std::chrono::sys_days(day).time_since_epoch().count());
  const double whole = 86400 * days + 3600 * number(11, 2) + 60 * number(14, 2) + number(17, 2);
  const double unit = inverse_powers_of_ten[behind_point],
               fraction = behind_point == 0 ? 0 : number(stamp_form.size() + 1, behind_point) * unit;
  return Printed{whole + fraction, whole + fraction, whole + fraction + 0.5 * unit, line};
}

}  // namespace

std::optional<Printed> time_stamp(std::string_view before, std::int64_t line) {
  if (before.size() < stamp_form.size()) return std::nullopt;
  // The trainer's own stamp stands behind those that were put before its lines.
  for (std::size_t at = before.size() - stamp_form.size() + 1; at-- > 0;)
    if (before[at + 4] == '-' && of_stamp_form(before.substr(at, stamp_form.size())))
      return stamp_at(before.substr(at), line);
  return std::nullopt;
}

}  // namespace assay::spec::audit
