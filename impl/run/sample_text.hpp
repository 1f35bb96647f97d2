#pragma once
// Text sampled from a byte-level model, to be judged against the grammar it was trained on.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "impl/model/model.hpp"

namespace assay::impl::run {

/// `count` sentences sampled at temperature 1 from the model's own distribution, as if after a newline, with
/// the newline that ends them. One that has none after `length` - 1 bytes is cut there. Randomness is
/// Site::generation keyed by (seed, sentence, position). Every byte is computed from the whole sentence so
/// far: `length` <= the model's context. `agreed`: of the bytes that this rank drew for all open sentences,
/// those that the ranks which compute together go on with; their logits may differ in the last bits.
std::vector<std::string> sample_sentences(
    Model& model, std::uint64_t seed, std::int64_t count, std::int64_t length, at::Device device,
    const std::function<std::string(const std::string&)>& agreed = [](const std::string& drawn) {
      return drawn;
    });

}  // namespace assay::impl::run
