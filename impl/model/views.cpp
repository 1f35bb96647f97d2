#include "impl/model/views.hpp"

#include <ATen/ATen.h>

#include <stdexcept>

namespace assay::impl {

at::Tensor view(const at::Tensor& flat, const spec::Parameter& parameter) {
  return flat.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
}

std::vector<at::Tensor> beside_gemms(const at::Tensor& flat, std::int64_t begin, std::int64_t end,
                                     const spec::Inventory& offsets, std::int64_t block, bool tied) {
  std::vector<at::Tensor> parts;
  const auto add_up_to = [&](std::int64_t stop) {
    if (begin < stop) parts.push_back(flat.narrow(0, begin, stop - begin));
  };
  for (const spec::Parameter& parameter : offsets.parameters) {
    const bool gemm = parameter.matrix() && (parameter.role != spec::Role::embedding || tied);
    if (parameter.block != block || !gemm) continue;
    add_up_to(parameter.offset);
    begin = parameter.offset + parameter.size;
  }
  add_up_to(end);
  return parts;
}

namespace {
/// The rows of a field that begins with parameter `first`.
at::Tensor rows_of(const at::Tensor& flat, const spec::Parameter& first, std::int64_t rows) {
  std::vector<std::int64_t> shape = first.shape;
  shape.front() = rows;
  return flat.narrow(0, first.offset, rows * (first.size / first.shape.front())).view(shape);
}
}  // namespace

const at::Tensor& WeightMatrix::values() const {
  if (codes_.defined())
    throw std::logic_error(
        "a weight that was gathered as FP8 codes is read in the compute type: acquire its "
        "block as Weights::values");
  return values_;
}

BlockWeights views(const at::Tensor& flat, const spec::Inventory& inventory, const at::Tensor& gains,
                   const spec::Inventory& gain_offsets, const spec::ModelSpec& model, std::int64_t block) {
  BlockWeights out;
  spec::step::fill_block(out, inventory, block, model.tied_embeddings,
                         [&](auto& field, const spec::Parameter& first, std::int64_t rows) {
                           field = first.role == spec::Role::norm ? view(gains, gain_offsets.at(first.name))
                                                                  : rows_of(flat, first, rows);
                         });
  return out;
}

BlockViews views(const at::Tensor& flat, const spec::Inventory& inventory, const spec::ModelSpec& model,
                 std::int64_t block) {
  BlockViews out;
  spec::step::fill_block(out, inventory, block, model.tied_embeddings,
                         [&](at::Tensor& field, const spec::Parameter& first, std::int64_t rows) {
                           field = rows_of(flat, first, rows);
                         });
  return out;
}

}  // namespace assay::impl
