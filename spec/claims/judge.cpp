#include <cctype>
#include <cmath>
#include <limits>

#include "spec/audit/printed.hpp"
#include "spec/claims/claim.hpp"
#include "spec/text/amount.hpp"

namespace assay::spec::claims {
namespace {

constexpr std::string_view verdict_names[] = {"holds", "holds under a reading", "contradicts",
                                              "not checkable"};

[[noreturn]] void unreadable(const Claim& claim) {
  throw SpecError("claim_c2", claim.id + ": \"" + claim.printed + "\" is not a number as claims print them");
}

/// Splits the magnitude letter off: "6.3M" -> "6.3", 1e6.
double take_magnitude(std::string_view& text) {
  const auto factor = text.empty() ? std::nullopt : magnitude(text.back());
  if (factor) text.remove_suffix(1);
  return factor.value_or(1);
}

/// Half a unit of the last digit that is not zero; 0.5 for zero itself.
double half_of_last_nonzero_digit(std::string_view text) {
  const std::size_t point = text.find('.');
  int exponent = 0;  // power of ten of the last digit
  std::string digits;
  for (const char c : text)
    if (c >= '0' && c <= '9') digits += c;
  if (point != std::string_view::npos) exponent = -static_cast<int>(text.size() - point - 1);
  while (digits.size() > 1 && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  return 0.5 * std::pow(10.0, exponent);
}

Interval plain(const Claim& claim, std::string_view text, double outer_magnitude, bool about) {
  double factor = take_magnitude(text);
  if (factor == 1) factor = outer_magnitude;
  const bool counted = claim.counted && factor == 1 && !about;
  const auto printed =
      audit::parse_printed(text, counted ? audit::Kind::counted : audit::Kind::measured, factor * claim.unit);
  if (!printed || !std::isfinite(printed->value)) unreadable(claim);
  if (!about && claim.rounded_to == 0) return {printed->low, printed->high};
  const double half = (about ? half_of_last_nonzero_digit(text) * factor : claim.rounded_to / 2) * claim.unit;
  return {printed->value - half, printed->value + half};
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Doubles carry every step of a recomputation to 2^-52; 1e-9 is far above that and far below any printed
/// digit.
bool agree(Interval printed, Interval computed) {
  const double spare = 1e-9 * std::max(std::abs(computed.low), std::abs(computed.high));
  return printed.meets({computed.low - spare, computed.high + spare});
}

/// Whether an expression names anything: a letter that does not continue a number ("2k", "1e9").
bool rests_on_something(std::string_view expression) {
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    const bool starts = std::isalpha(static_cast<unsigned char>(expression[i])) &&
                        (i == 0 || (!is_word(expression[i - 1]) && expression[i - 1] != '.'));
    if (starts) return true;
  }
  return false;
}

Interval recompute(const Claim& claim, const std::string& expression, const Document& document) {
  if (!rests_on_something(expression))
    throw SpecError("claim_c3",
                    claim.id + ": \"" + expression + "\" holds numbers alone and rests on nothing");
  Names names = claim_names();
  names.value = [&](const std::string& name) {
    for (const Claim& other : document.claims)
      if (other.id == name && name != claim.id) return printed_interval(other);
    for (const Input& input : document.inputs)
      if (input.id == name) return exact_interval(input.value);
    throw SpecError("claim_c4", claim.id + " rests on \"" + name +
                                    "\", which no other claim and no input of " + document.key +
                                    " is called");
  };
  return evaluate(expression, names);
}

/// The claim that a repeat or twin refers to.
const Claim& first_of(const Claim& claim, const std::string& id, const Document& document, bool may_be_twin) {
  for (const Claim& other : document.claims)
    if (other.id == id && id != claim.id && other.repeats.empty() && (other.twin.empty() || may_be_twin))
      return other;
  // claim_c6
  throw SpecError("claim_c6", claim.id + " refers to \"" + id + "\", which is no other claim of " +
                                  document.key + " that stands for itself");
}

}  // namespace

std::string_view to_string(Verdict verdict) { return verdict_names[static_cast<std::size_t>(verdict)]; }

Verdict verdict_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(verdict_names); ++i)
    if (verdict_names[i] == name) return static_cast<Verdict>(i);
  throw SpecError("claim_c1", "no verdict \"" + std::string(name) +
                                  "\"; there are: holds, holds under a reading, contradicts, not checkable");
}

Interval printed_interval(const Claim& claim) {
  std::string_view text = claim.printed;
  if (take(text, ">")) return {plain(claim, text, 1, false).low, std::numeric_limits<double>::max()};
  if (take(text, "<") || take(text, "up to ")) return {0, plain(claim, text, 1, false).high};
  const bool about = take(text, "~");
  const std::size_t dash = text.find('-', 1);
  if (dash == std::string_view::npos || text[dash - 1] == 'e') return plain(claim, text, 1, about);
  std::string_view second = text.substr(dash + 1), digits = second;
  const double outer = take_magnitude(digits);
  const Interval range = {plain(claim, text.substr(0, dash), outer, about).low,
                          plain(claim, second, 1, about).high};
  if (range.low > range.high) unreadable(claim);
  return range;
}

Judgement judge(const Claim& claim, const Document& document) {
  Judgement result;
  result.printed = printed_interval(claim);
  if (!claim.twin.empty()) first_of(claim, claim.twin, document, false);
  if (!claim.missing.empty()) return result;
  if (!claim.repeats.empty()) {
    const Claim& first = first_of(claim, claim.repeats, document, true);
    result.expected = printed_interval(first);
    result.verdict =
        agree(result.printed, *result.expected) ? judge(first, document).verdict : Verdict::contradicts;
    return result;
  }
  result.expected = recompute(claim, claim.expect, document);
  if (result.expected->middle() != 0) result.ratio = result.printed.middle() / result.expected->middle();
  if (agree(result.printed, *result.expected)) {
    result.verdict = Verdict::holds;
    return result;
  }
  result.verdict = Verdict::contradicts;
  if (claim.under.empty()) return result;
  result.under_reading = recompute(claim, claim.under, document);
  if (agree(result.printed, *result.under_reading)) result.verdict = Verdict::holds_under_reading;
  return result;
}

}  // namespace assay::spec::claims
