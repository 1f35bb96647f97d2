#pragma once
// For how many documents a micro-batch has places where attention takes them one behind the other.
// (spec/memory/plan.md, docs/decisions/0014-documents-in-fused-attention.md)
#include <cstdint>

namespace assay::spec::memory {

/// Places of B sequences of T tokens that hold `documents` documents in all: enough for one more a sequence
/// than one every 256 tokens, at least 64, doubled until they are enough, never more than tokens. So nearly
/// all micro-batches of a run have as many, and steps of one shape; a function of its arguments alone, so
/// that a run which is resumed has them again. B, T >= 0, documents in [0, B T].
std::int64_t document_places(std::int64_t B, std::int64_t T, std::int64_t documents);

}  // namespace assay::spec::memory
