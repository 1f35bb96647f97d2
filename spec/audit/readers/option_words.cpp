#include "spec/audit/readers/option_words.hpp"

#include <algorithm>
#include <iterator>

#include "spec/audit/readers/scan.hpp"
#include "spec/error.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

constexpr KnownUnit units[] = {
    {"s", 1, Measures::time},          {"ms", 1e-3, Measures::time},       {"us", 1e-6, Measures::time},
    {"ns", 1e-9, Measures::time},      {"min", 60, Measures::time},        {"h", 3600, Measures::time},
    {"%", 0.01, Measures::share},      {"k", 1e3, Measures::factor},       {"M", 1e6, Measures::factor},
    {"G", 1e9, Measures::factor},      {"T", 1e12, Measures::factor},      {"P", 1e15, Measures::factor},
    {"B", 1, Measures::bytes},         {"kB", 1e3, Measures::bytes},       {"MB", 1e6, Measures::bytes},
    {"GB", 1e9, Measures::bytes},      {"TB", 1e12, Measures::bytes},      {"KiB", 0x1p10, Measures::bytes},
    {"MiB", 0x1p20, Measures::bytes},  {"GiB", 0x1p30, Measures::bytes},   {"TiB", 0x1p40, Measures::bytes},
    {"TFLOPS", 1e12, Measures::flops}, {"TFLOP/s", 1e12, Measures::flops}, {"GFLOPs", 1e9, Measures::flops}};

}  // namespace

void refuse_option(const std::string& option, const std::string& message) {
  throw UserError(ExitCode::usage, option + ": " + message);
}

const KnownUnit* unit_named(std::string_view name) {
  const auto* const known =
      std::find_if(std::begin(units), std::end(units), [&](const KnownUnit& u) { return u.name == name; });
  return known == std::end(units) ? nullptr : known;
}

std::vector<std::string> unit_names(const std::vector<Measures>& kinds) {
  std::vector<std::string> out;
  for (const KnownUnit& unit : units)
    if (std::find(kinds.begin(), kinds.end(), unit.measures) != kinds.end()) out.emplace_back(unit.name);
  return out;
}

std::vector<std::pair<std::string, std::string>> option_pairs(const std::string& option,
                                                              const std::string& text) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    const std::string_view part = trimmed(std::string_view(text).substr(from, to - from));
    from = to + 1;
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size())
      refuse_option(option,
                    quote(part) + " is not NAME=VALUE; write it like " +
                        (option == "--map" ? "step=iter,seconds=time_ms:ms" : "gpus=8,gpu=NVIDIA B200"));
    const std::string name(trimmed(part.substr(0, equals))), value(trimmed(part.substr(equals + 1)));
    for (const auto& [other, before] : out)
      if (other == name)
        refuse_option(option, name + " is given twice, as " + quote(before) + " and " + quote(value) +
                                  "; give it once");
    out.emplace_back(name, value);
  }
  return out;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  if (const auto guess = nearest(word, known)) return "; did you mean " + quote(*guess) + "?";
  std::string out = "; known are ";
  for (std::size_t i = 0; i < known.size(); ++i) out += (i ? ", " : "") + known[i];
  return out;
}

}  // namespace assay::spec::audit
