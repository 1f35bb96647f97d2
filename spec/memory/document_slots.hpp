#pragma once
// How many documents a micro-batch has slots for, where attention takes them one behind the other.
// (spec/plan/plan.md, docs/decisions/0014-documents-in-fused-attention.md)
#include <cstdint>

namespace assay::spec::memory {

/// Slots for the `documents` documents of B sequences of T tokens: max(64, B + ceil(B T / 256)), doubled
/// until every document has one, at most B T. Nearly all micro-batches of a run then have the same number of
/// slots, and steps keep one shape. It depends on its arguments alone, so a resumed run has the same shapes.
/// B, T >= 0, documents in [0, B T].
std::int64_t document_slots(std::int64_t B, std::int64_t T, std::int64_t documents);

}  // namespace assay::spec::memory
