#pragma once
#include <string>

#include "spec/error.hpp"

namespace assay::tests {

/// Label of the constraint that `call` violates, "accepted" when it throws no SpecError.
template <class Call>
std::string label_of(Call&& call) {
  try {
    call();
  } catch (const SpecError& error) {
    return error.label();
  }
  return "accepted";
}

}  // namespace assay::tests
