#pragma once
// The loss of a model on its validation set: forward alone, between two steps. [spec/data/validation_set.md]
#include <cstdint>
#include <functional>
#include <string>

#include "impl/data/validation_set.hpp"
#include "impl/model/model.hpp"
#include "impl/params/layouts/layout_groups.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// Hash of the token ids that are evaluated (spec/record/record.md, `set_hash`), of which each data-parallel
/// rank reads a part: every id is seen to be in the vocabulary. Collective. Errors: those of
/// ValidationSet::read, of several ranks AgreedError; AgreedError(bad_data) where no target is valid.
std::string scan_validation(const data::ValidationSet& set, std::int64_t tensor_ranks,
                            Communicator& communicator);

struct ValidationLoss {
  double sum = 0;                 ///< cross-entropy of all valid tokens [nat]
  std::int64_t valid_tokens = 0;  ///< over all ranks
};

/// The same on every rank. Nothing that a step reads is written. `round_done`: called after each forward
/// pass. Collective. Errors: those of ValidationSet::read, of several ranks AgreedError.
ValidationLoss validation_loss(
    Model& model, const data::ValidationSet& set, LayoutGroups& groups, at::Device device,
    const std::function<void()>& round_done = [] {});

/// As the record has it, but for what the run knows: step, hash, seconds, whether it is the lowest.
spec::record::Validation event_of(const ValidationLoss& loss, const data::ValidationSet& set);

}  // namespace assay::impl::run
