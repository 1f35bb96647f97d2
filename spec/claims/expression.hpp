#pragma once
// Arithmetic written as text, over intervals: how a claim is recomputed (spec/claims/claims.md).
//
//   sum     = product { ("+" | "-") product }
//   product = unary { ("*" | "/") unary }
//   unary   = [ "-" ] ( number | name | name "(" [ argument { "," argument } ] ")" | "(" sum ")" )
//   argument = sum | "'" text "'"
//   number  = digits with "_" groups, a point, an exponent, and at the end k M G B T for 1e3 1e6 1e9 1e9
//   1e12
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "spec/interval.hpp"

namespace assay::spec::claims {

using Argument = std::variant<Interval, std::string>;
using Function = std::function<Interval(const std::vector<Argument>&)>;

/// What an expression may name: functions, and values (a name that no value has is an error).
struct Names {
  std::map<std::string, Function, std::less<>> functions;
  std::function<Interval(const std::string& name)> value;
};

/// Errors: SpecError expression_c1 (syntax; the position is shown), expression_c2 (unknown function), and
/// whatever the named functions and values throw. Depth of parentheses at most 64.
Interval evaluate(std::string_view expression, const Names& names);

}  // namespace assay::spec::claims
