#pragma once
// What a run keeps of every parameter between steps, and how its optimizer updates it. Buffers, plan,
// checkpoint, its size on disk and what survivors save iterate over the parts.
#include <array>
#include <span>

namespace assay::spec {

/// What an update reads together: one entry, so that shards may end anywhere, or a whole matrix.
enum class Granularity { element, matrix };

namespace adamw {
/// The master weights, and slots of their type with an entry for every learned one.
inline constexpr std::array parts = {"master", "moment1", "moment2"};
inline constexpr Granularity granularity = Granularity::element;
}  // namespace adamw

}  // namespace assay::spec
