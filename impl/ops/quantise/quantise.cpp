#include "impl/ops/quantise/quantise.hpp"

#include <ATen/ATen.h>

#include "impl/ops/quantise/scale_layout.hpp"
#include "impl/ops/tensor_check.hpp"

namespace assay::impl::quantise {

namespace {
void check(const at::Tensor& x) {
  TORCH_CHECK(x.dim() == 2, "quantise: x is ", describe(x), "; give a matrix [R, C]");
  check_contiguous("quantise", {x});
}

/// Layout of the scales of a matrix [rows, columns].
ScaleLayout layout_of(Scaling scaling, std::int64_t rows, std::int64_t columns) {
  const auto blocks = spec::quantise::blocks(scaling, rows, columns);
  return {.scaling = scaling, .rows = blocks.rows, .columns = blocks.columns};
}

at::Tensor scales_of(Scaling scaling, std::int64_t rows, std::int64_t columns, at::Device device) {
  const ScaleLayout layout = layout_of(scaling, rows, columns);
  const auto options = at::TensorOptions(device).dtype(scaling == Scaling::mx_1x32 ? at::kByte : at::kFloat);
  std::vector<std::int64_t> shape = {layout.size()};
  if (scaling == Scaling::block_1x128) shape = {layout.columns, -1};
  if (scaling == Scaling::block_128x128) shape = {layout.rows, -1};
  if (shape.size() == 2) shape[1] = shape[0] ? layout.size() / shape[0] : 0;
  const bool padded = layout.size() != layout.rows * layout.columns;
  return padded ? at::zeros(shape, options) : at::empty(shape, options);
}
void write(const at::Tensor& x, const Quantisation& quantisation, const at::Tensor& amax,
           const Twins& twins) {
  return x.is_cpu() ? cpu::write(x, quantisation, amax, twins) : cuda::write(x, quantisation, amax, twins);
}
at::Tensor given_or_found(const at::Tensor& x, const Quantisation& quantisation, const at::Tensor& amax) {
  return quantisation.scaling == Scaling::tensor && !amax.defined() ? quantise::amax(x) : amax;
}
}  // namespace

Quantised unwritten(std::int64_t rows, std::int64_t columns, const Quantisation& quantisation,
                    at::Device device) {
  const auto type = quantisation.format == Format::e4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
  return {.codes = at::empty({rows, columns}, at::TensorOptions(device).dtype(type)),
          .scales = scales_of(quantisation.scaling, rows, columns, device),
          .scaling = quantisation.scaling};
}

Twins unwritten_twins(std::int64_t R, std::int64_t C, const Quantisation& quantisation,
                      Orientation orientation, at::Device device) {
  Twins twins;
  if (orientation != Orientation::columns) twins.rows = unwritten(R, C, quantisation, device);
  if (orientation != Orientation::rows) twins.columns = unwritten(C, R, quantisation, device);
  if (quantisation.scaling == Scaling::tensor && orientation == Orientation::both)
    twins.columns.scales = twins.rows.scales;
  return twins;
}

at::Tensor amax(const at::Tensor& x) {
  at::Tensor most = at::zeros({1}, x.options().dtype(at::kFloat));
  raise_amax(x, most);
  return most;
}

void raise_amax(const at::Tensor& x, const at::Tensor& amax) {
  check(x);
  x.is_cpu() ? cpu::raise_amax(x, amax) : cuda::raise_amax(x, amax);
}

Twins quantise(const at::Tensor& x, const Quantisation& quantisation, Orientation orientation,
               const at::Tensor& amax) {
  check(x);
  const at::Tensor most = given_or_found(x, quantisation, amax);
  const Twins twins = unwritten_twins(x.size(0), x.size(1), quantisation, orientation, x.device());
  write(x, quantisation, most, twins);
  return twins;
}

void quantise_into(const at::Tensor& x, const Quantisation& quantisation, Twins& into,
                   const at::Tensor& amax) {
  check(x);
  if (!into.rows.defined())
    into = unwritten_twins(x.size(0), x.size(1), quantisation, Orientation::both, x.device());
  write(x, quantisation, given_or_found(x, quantisation, amax), into);
}

void quantise_part(const at::Tensor& x, const Quantisation& quantisation, const at::Tensor& amax,
                   const Quantised& rows) {
  check(x);
  TORCH_CHECK(quantisation.scaling == Scaling::tensor, "quantise: parts of a matrix share one scale alone");
  write(x, quantisation, amax, {rows, {}});
}

Quantised transposed(const Quantised& x) {
  TORCH_CHECK(x.scaling == Scaling::tensor, "quantise: codes are transposed where one scale is both ways'");
  Quantised out = x;
  out.codes = at::empty({x.columns(), x.rows()}, x.codes.options());
  x.codes.is_cpu() ? cpu::transpose(x.codes, out.codes) : cuda::transpose(x.codes, out.codes);
  return out;
}

at::Tensor scale_matrix(const Quantised& x) {
  const ScaleLayout layout = layout_of(x.scaling, x.rows(), x.columns());
  at::Tensor scales = x.scales.cpu();
  if (x.scaling == Scaling::mx_1x32) {  // a byte b is 2^(b - 127), 255 is NaN
    const at::Tensor exponents = scales.to(at::kDouble) - 127;
    scales = at::where(scales == 255, std::numeric_limits<double>::quiet_NaN(), exponents.exp2());
  }
  scales = scales.to(at::kDouble).flatten();
  at::Tensor matrix = at::empty({layout.rows, layout.columns}, at::kDouble);
  auto* out = matrix.data_ptr<double>();
  const auto* in = scales.const_data_ptr<double>();
  for (std::int64_t row = 0; row < layout.rows; ++row)
    for (std::int64_t column = 0; column < layout.columns; ++column) *out++ = in[layout.at(row, column)];
  return matrix;
}

at::Tensor dequantise(const Quantised& x, at::ScalarType type) {
  if (x.codes.is_cpu()) return cpu::dequantise(x, type);
  const auto blocks = spec::quantise::blocks(x.scaling, x.rows(), x.columns());
  const at::Tensor scales = scale_matrix(x)
                                .repeat_interleave(blocks.block_rows, 0)
                                .narrow(0, 0, x.rows())
                                .repeat_interleave(blocks.block_columns, 1)
                                .narrow(1, 0, x.columns());
  return (x.codes.to(at::kFloat).to(at::kDouble) * scales.to(x.codes.device())).to(type);
}

}  // namespace assay::impl::quantise
