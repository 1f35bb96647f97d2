#pragma once
// Text sampled from a byte-level model, to be judged against the grammar it was trained on.
#include <cstdint>
#include <string>
#include <vector>

#include "impl/model/model.hpp"

namespace assay::impl::run {

/// `count` texts of `length` bytes each, sampled at temperature 1 from the model's own distribution, each
/// starting with one of `first` (given in turn). Randomness is Site::generation keyed by (seed, text,
/// position). Every position is computed from the whole text so far: `length` <= the model's context.
std::vector<std::string> sample_text(Model& model, std::uint64_t seed, std::int64_t count,
                                     std::int64_t length, const std::vector<std::string>& first,
                                     at::Device device);

}  // namespace assay::impl::run
