#include "impl/ops/gemm/fp8_gemm.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublasLt.h>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/gemm/cuda_gemm.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"

namespace assay::impl::fp8 {

using spec::quantise::Role;
using spec::quantise::Scaling;

namespace {

cuda::Gemm gemm_of(const Quantised& a, const Quantised& b, const at::Tensor& bias, bool fast_accumulation) {
  return {.left = {.matrix = a.codes, .scales = a.scales, .scaling = a.scaling},
          .right = {.matrix = b.codes, .transposed = true, .scales = b.scales, .scaling = b.scaling},
          .bias = bias,
          .fast_accumulation = fast_accumulation};
}

void check(const Quantised& a, const Quantised& b, const at::Tensor& out, const at::Tensor& added,
           const at::Tensor& bias) {
  check_contiguous("fp8_gemm", {a.codes, a.scales, b.codes, b.scales, out, added, bias});
  TORCH_CHECK(
      a.columns() == b.columns() && out.dim() == 2 && out.size(0) == a.rows() && out.size(1) == b.rows(),
      "fp8_gemm: ", describe(a.codes), " times the transpose of ", describe(b.codes), " into ",
      describe(out));
  TORCH_CHECK(!added.defined() || (added.sizes() == out.sizes() && added.scalar_type() == out.scalar_type()),
              "fp8_gemm: ", describe(added), " added to ", describe(out));
  TORCH_CHECK(!bias.defined() ||
                  (!added.defined() && bias.numel() == b.rows() && bias.scalar_type() == out.scalar_type()),
              "fp8_gemm: bias ", describe(bias), " of ", describe(out), ", added ", describe(added));
}

std::string version_text(std::size_t cublaslt) {
  return "cuBLASLt " + std::to_string(cublaslt / 10000) + "." + std::to_string(cublaslt / 100 % 100);
}

Machine machine_of(const at::Device& device) {
  const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(device.index());
  return {.gpu = properties.name,
          .major = properties.major,
          .minor = properties.minor,
          .cublaslt = cublasLtGetVersion()};
}

/// Whether the library has an algorithm for forward and both gradients of a linear of 256 x 256 on 256
/// tokens.
bool computes(Recipe recipe, const at::Device& device) {
  constexpr std::int64_t extent = 256;
  const auto matrix = [&](Role role) {
    return quantise::unwritten(extent, extent, spec::quantise::quantisation(recipe, role), device);
  };
  const Quantised x = matrix(Role::activation), weight = matrix(Role::weight), dy = matrix(Role::gradient);
  const auto has = [&](const Quantised& a, const Quantised& b, at::ScalarType type, bool adds) {
    const at::Tensor out = at::empty({extent, extent}, at::TensorOptions(device).dtype(type));
    return cuda::has_algorithm(gemm_of(a, b, {}, false), out, adds ? out : at::Tensor());
  };
  return has(x, weight, at::kBFloat16, false) && has(dy, weight, at::kBFloat16, false) &&
         has(dy, x, at::kFloat, true);
}

UserError refused(const Quantised& a, const Quantised& b, const at::Tensor& out) {
  std::string why = refusal(recipe_of(a, b), out.device());
  if (why.empty())
    why = version_text(cublasLtGetVersion()) + " has no GEMM of " + describe(a.codes) + ", scaled by " +
          to_string(a.scaling) + ", and the transpose of " + describe(b.codes) + ", scaled by " +
          to_string(b.scaling) + ", into " + describe(out) +
          "; extents are multiples of 16, or choose compute.linear=bf16";
  return {ExitCode::usage, why};
}

}  // namespace

void gemm(const Quantised& a, const Quantised& b, at::Tensor out, const at::Tensor& added, double beta,
          const at::Tensor& bias, bool fast_accumulation) {
  check(a, b, out, added, bias);
  if (out.numel() == 0) return;
  const metrics::Fp8Scope counted;
  const bool bf16 = out.scalar_type() == at::kBFloat16;
  if (out.is_cuda() && (bf16 || out.scalar_type() == at::kFloat)) {
    if (cuda::multiply(gemm_of(a, b, bias, fast_accumulation), out, added, beta)) return;
    if (bias.defined())  // as a residual, which is added before the one rounding
      return gemm(a, b, out, bias.expand_as(out).contiguous(), 1, {}, fast_accumulation);
    throw refused(a, b, out);
  }
  const at::ScalarType type = bf16 ? at::kFloat : out.scalar_type();
  const at::Tensor left = quantise::dequantise(a, type), right = quantise::dequantise(b, type).t();
  const at::Tensor& base = bias.defined() ? bias : added;
  out.copy_(base.defined() ? at::addmm(base.to(type), left, right, added.defined() ? beta : 1)
                           : at::mm(left, right));
}

Recipe recipe_of(const Quantised& a, const Quantised& b) {
  const auto is_block = [](Scaling scaling) {
    return scaling == Scaling::block_1x128 || scaling == Scaling::block_128x128;
  };
  if (is_block(a.scaling) && is_block(b.scaling)) return Recipe::fp8_block;
  if (a.scaling != b.scaling) return Recipe::none;
  if (a.scaling == Scaling::tensor) return Recipe::fp8_tensor;
  return a.scaling == Scaling::mx_1x32 ? Recipe::mxfp8 : Recipe::none;
}

std::string refusal(Recipe recipe, const at::Device& device) {
  if (!device.is_cuda()) return {};
  return refusal(recipe, machine_of(device), [&](Recipe each) { return computes(each, device); });
}

std::string refusal(Recipe recipe, const Machine& machine, const std::function<bool(Recipe)>& computes) {
  if (recipe == Recipe::none || computes(recipe)) return {};
  const char* needed = recipe == Recipe::fp8_tensor  ? "8.9 or later"
                       : recipe == Recipe::fp8_block ? "9.0 and cuBLASLt 12.9 or later"
                                                     : "10.0 or later and cuBLASLt 12.8 or later";
  Recipe nearest = Recipe::none;
  for (const Recipe other : {Recipe::fp8_tensor, Recipe::fp8_block, Recipe::mxfp8})
    if (computes(other)) nearest = other;
  return std::string("compute.linear=") + to_string(recipe) + " needs a GPU of compute capability " + needed +
         "; here are " + machine.gpu + " of " + std::to_string(machine.major) + "." +
         std::to_string(machine.minor) + " and " + version_text(machine.cublaslt) +
         "; nearest: compute.linear=" + to_string(nearest);
}

}  // namespace assay::impl::fp8
