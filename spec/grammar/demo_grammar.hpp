#pragma once
// The grammar of the demo's text: short sentences about a few animals and people, and sums in words.
#include <span>
#include <string>
#include <string_view>

#include "spec/grammar/grammar.hpp"

namespace assay::spec::grammar {

/// Sentences such as "the quick fox follows a bird today." and "four plus five is nine.", one a line,
/// lower-case ASCII. Verbs agree with their subject in number, objects fit their verb, sums are right.
/// Tables: demo_grammar.cpp.
const Grammar& demo();

/// "zero" .. "eighteen": the numbers that sums of two digits can need, by value.
std::span<const std::string_view> number_words();

}  // namespace assay::spec::grammar
