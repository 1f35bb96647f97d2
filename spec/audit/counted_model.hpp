#pragma once
// What a printed count of parameters says of a model whose shape is printed beside it.
#include <cstdint>
#include <optional>
#include <vector>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

/// Read once: an audit may ask for every model.
const std::vector<ModelSpec>& known_models();

/// A shape leaves open (unless printed) whether the head is tied, queries and keys are normed, and how many
/// key/value heads there are: the printed count decides. Without one the plainest stands, if its heads are
/// printed.
std::optional<ModelSpec> as_counted(const ModelSpec& model, bool kv_heads_known, bool head_dim_known,
                                    std::optional<bool> tied_known, std::optional<bool> qk_norm_known,
                                    std::optional<Norm> norm, const std::optional<Printed>& parameters,
                                    bool whole);

/// The vocabulary with which the model has that count: some versions of torchtitan take it from the
/// tokenizer, so that the one in the configuration may not be the one that ran. None makes most counts.
std::optional<std::int64_t> vocabulary_of(const ModelSpec& model, const Printed& parameters);

/// Whether one other dimension makes the count as well: heads of keys and values of their own, or a few
/// layers more or less. A vocabulary that is no known model's is then the stranger explanation.
bool of_other_dimension(const ModelSpec& model, const Printed& parameters, std::int64_t vocab);

}  // namespace assay::spec::audit
