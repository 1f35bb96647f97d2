#include "impl/params/block_codes.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

namespace assay::impl {

namespace {

const quantise::Quantisation of_weights =
    spec::quantise::quantisation(spec::quantise::Recipe::fp8_tensor, spec::quantise::Role::weight);

/// A flat part of a matrix as the kernels read it best: rows as long as a tile is wide, where they fit.
at::Tensor as_rows(const at::Tensor& part) {
  constexpr std::int64_t tile = 128;
  return part.view({-1, std::gcd(part.numel(), tile)});
}

}  // namespace

BlockCodes::BlockCodes(const ParameterBuffers& buffers, const spec::LinearPrecision& linear,
                       Communicator& shard)
    : buffers_(buffers),
      shard_(shard),
      codes_(spec::gathered_codes(buffers.inventory, linear, buffers.gains.values.defined())),
      vectors_(whole_vectors(buffers, buffers.weights, codes_.vectors, buffers.weights.scalar_type())) {
  if (codes_.linears == 0) return;
  const auto fp32 = buffers.weights.options().dtype(at::kFloat);
  amax_ = at::zeros({codes_.linears}, fp32);
  scales_ = at::zeros({codes_.linears, 4}, fp32);
}

void BlockCodes::lay_out(std::int64_t number, const at::Tensor& slot) {
  if (!of(number)) return;
  const auto range = buffers_.inventory.block_range(number),
             mine = buffers_.partition.owned(number, buffers_.shard_rank);
  const at::Tensor shard = owned(buffers_, buffers_.weights, number);
  std::int64_t place = 0;  // of the next linear
  for (const auto& [before, block] : blocks_) place += static_cast<std::int64_t>(block.linears.size());
  Block& block = blocks_[number];
  block.all = slot.view(at::kFloat8_e4m3fn).narrow(0, 0, range.end - range.begin);
  block.own = block.all.narrow(0, mine.begin - range.begin, mine.end - mine.begin);
  const auto lay_out_linear = [&](const spec::Parameter& first, std::int64_t rows) {
    const std::int64_t columns = first.size / first.shape.front(), end = first.offset + rows * columns;
    const at::Tensor scale = scales_[place].narrow(0, 0, 1), amax = amax_.narrow(0, place, 1);
    ++place;
    const std::int64_t own_begin = std::clamp(first.offset, mine.begin, mine.end) - mine.begin,
                       own_size = std::clamp(end, mine.begin, mine.end) - mine.begin - own_begin;
    block.linears.push_back({.own = as_rows(shard.narrow(0, own_begin, own_size)),
                             .amax = amax,
                             .own_codes = {as_rows(block.own.narrow(0, own_begin, own_size)), scale}});
    const at::Tensor whole = block.all.narrow(0, first.offset - range.begin, rows * columns);
    return quantise::Quantised{whole.view({rows, columns}), scale};
  };
  spec::step::fill_block(block.weights, buffers_.inventory, number, /*tied_embeddings=*/false,
                         [&](auto& field, const spec::Parameter& first, std::int64_t rows) {
                           if constexpr (std::is_same_v<decltype(field), WeightMatrix&>) {
                             field = lay_out_linear(first, rows);
                           } else {
                             const bool gain =
                                 first.role == spec::Role::norm && buffers_.gains.values.defined();
                             const WholeVectors& vectors = gain ? buffers_.gains : vectors_;
                             field = vectors.values.narrow(0, vectors.offsets.at(first.name).offset, rows);
                           }
                         });
}

void BlockCodes::weights_changed() {
  if (blocks_.empty()) return;
  amax_.zero_();
  for (const auto& [number, block] : blocks_)
    for (const Linear& linear : block.linears)
      if (linear.own.numel() > 0) quantise::raise_amax(linear.own, linear.amax);
  shard_.all_reduce_max(amax_);
  gather(vectors_, shard_);
}

Communicator::Ticket BlockCodes::begin_gather(std::int64_t number) {
  const Block& block = blocks_.at(number);
  for (const Linear& linear : block.linears)
    quantise::quantise_part(linear.own, of_weights, linear.amax, linear.own_codes);
  return shard_.begin_all_gather(block.own, block.all);
}

}  // namespace assay::impl
