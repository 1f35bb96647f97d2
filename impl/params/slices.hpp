#pragma once
// The slice table: where a rank's buffers hold which rectangles of which parameters of the model
// (spec/parallel/slice.md). Checkpoints are written and read, and weights are imported, by it alone.
#include <vector>

#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "spec/parallel/slice.hpp"

namespace assay::impl {

/// One of master, moment1, moment2, weights.
using Buffer = at::Tensor ParameterBuffers::*;

/// A rectangle of a parameter of the model, and the place where a buffer holds it.
struct HeldSlice {
  std::size_t number = 0;  ///< of the parameter in ParameterBuffers::model
  spec::Slice slice;
  at::Tensor values;  ///< [slice.rows, slice.columns], a view of the buffer
};

/// Everything of the model that this rank holds in a buffer of any set, in master the routers' biases (whose
/// type may be another) among it, by the parameter's number.
std::vector<HeldSlice> held_slices(const ParameterBuffers& buffers, Buffer buffer);

/// Which of the ranks that hold the same this is, of those that write.
struct Copies {
  std::int64_t number = 0, count = 1;
};
struct Writer {
  std::vector<Copies> sets = {{}};  ///< of the rank's parameters
  bool biases = true;               ///< writes the routers' biases
};
/// Of all ranks. Not collective.
Writer writer_of(LayoutGroups& groups);
/// Of the ranks of which `writes` is true; of the others nothing. Collective. Errors: UserError(io) on every
/// rank, where something is held by no rank that writes.
Writer writer_of(LayoutGroups& groups, bool writes);

/// Of what this rank holds in one of master, moment1 and moment2, what it writes. Over all ranks that write,
/// each element of each parameter is in exactly one slice. Routers' biases, which have no moments, are in
/// master alone.
std::vector<HeldSlice> own_slices(const ParameterBuffers& buffers, Buffer buffer, const Writer& writer);

/// Where what is read of a parameter goes on this rank.
struct Destination {
  std::vector<spec::Slice> read;  ///< all that this rank holds of it, each element once
  std::vector<HeldSlice> into;    ///< of the buffer, and beside master the working weights
  /// Copies `values`, [rows, columns] of rectangle `slice` of the parameter on any device, to all places that
  /// hold some of it.
  void put(const spec::Slice& slice, const at::Tensor& values) const;
};
/// By the parameter's number; empty where this rank holds nothing of it.
std::vector<Destination> destinations(const ParameterBuffers& buffers, Buffer buffer);

}  // namespace assay::impl
