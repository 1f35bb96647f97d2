#pragma once
// One call of a function in a claim's expression: its arguments, checked.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "spec/claims/expression.hpp"
#include "spec/count.hpp"
#include "spec/error.hpp"
#include "spec/interval.hpp"

namespace assay::spec::claims {

/// With the errors that a writer of claims needs: SpecError claim_c5.
class Call {
 public:
  Call(std::string function, const std::vector<Argument>& list, std::size_t wanted)
      : function_(std::move(function)), list_(list) {
    if (list.size() != wanted)
      throw SpecError("claim_c5", function_ + " takes " + std::to_string(wanted) + " arguments, not " +
                                      std::to_string(list.size()));
  }
  const std::string& text(std::size_t i) const {
    if (const auto* text = std::get_if<std::string>(&list_[i])) return *text;
    refuse(i, "must be text in quotes");
  }
  std::int64_t whole(std::size_t i) const {
    const auto* value = std::get_if<Interval>(&list_[i]);
    if (value == nullptr || value->low != value->high || value->low != std::floor(value->low))
      refuse(i, "must be a whole number");
    return static_cast<std::int64_t>(value->low);
  }
  Interval interval(std::size_t i) const {
    if (const auto* value = std::get_if<Interval>(&list_[i])) return *value;
    refuse(i, "must be a number");
  }
  [[noreturn]] void refuse(std::size_t i, const std::string& why) const {
    throw SpecError("claim_c5", "argument " + std::to_string(i + 1) + " of " + function_ + " " + why);
  }

 private:
  std::string function_;
  const std::vector<Argument>& list_;
};

/// A count as a number without doubt.
inline Interval exactly(const Count& count) { return exact_interval(count.to_double()); }

struct NamedFunction {
  const char* name;
  std::size_t arguments;
  Interval (*body)(const Call&);
};

const std::vector<NamedFunction>& fact_functions();  ///< of models and hardware
const std::vector<NamedFunction>& run_functions();   ///< of batches, layouts, rates and times

}  // namespace assay::spec::claims
