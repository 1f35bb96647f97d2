#pragma once
// What the optimizer keeps of every parameter beside its master weights. Buffers, plan, checkpoint, its size
// on disk and what survivors save iterate over it.
#include <span>

namespace assay::spec {

/// What an update reads together: one entry, so that shards may end anywhere, or a whole matrix.
enum class Granularity { element, matrix };

/// `slots`: names of its state, each with an entry for every learned entry, of the master weights' type.
struct Optimizer {
  std::span<const char* const> slots;
  Granularity granularity;
};

namespace adamw {
inline constexpr const char* slots[] = {"moment1", "moment2"};
}
/// Of every run.
inline constexpr Optimizer optimizer = {adamw::slots, Granularity::element};

}  // namespace assay::spec
