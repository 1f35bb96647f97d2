// What the GEMMs of a decoder block's linears reach on this GPU, in bf16 and in FP8, without their casts:
//   gemm_bench [8b | 1.36b | SHAPE] [seconds]
// SHAPE: tokens x in x out, "16384x4096x6144". One line for each linear, pass and arithmetic: TFLOP/s of the
// library's first choice and of the fastest of 8 candidates, each after half of `seconds` (0.3) of its own
// load, twice, back to back.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/core/InferenceMode.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "impl/ops/gemm/cuda_gemm.hpp"

namespace assay::impl {
namespace {

using spec::quantise::Scaling;

struct Linear {
  std::string name;
  std::int64_t tokens, in, out;
};

const std::vector<Linear> llama_8b = {{"8b qkv", 16384, 4096, 6144},
                                      {"8b o", 16384, 4096, 4096},
                                      {"8b gate+up", 16384, 4096, 28672},
                                      {"8b down", 16384, 14336, 4096}};
const std::vector<Linear> llama_1b = {{"1.36b qkv", 49152, 2304, 6912},
                                      {"1.36b o", 49152, 2304, 2304},
                                      {"1.36b gate+up", 49152, 2304, 12288},
                                      {"1.36b down", 49152, 6144, 2304}};

at::TensorOptions gpu(at::ScalarType type) { return at::TensorOptions(at::kCUDA).dtype(type); }

at::Tensor normal(std::int64_t rows, std::int64_t columns, at::ScalarType type) {
  return at::randn({rows, columns}, gpu(at::kBFloat16)).mul_(64).to(type);
}

/// Scales of ones for codes [rows, columns].
at::Tensor ones(Scaling scaling, std::int64_t rows, std::int64_t columns) {
  const auto blocks = [](std::int64_t extent, std::int64_t block) { return (extent + block - 1) / block; };
  switch (scaling) {
    case Scaling::tensor:
      return at::ones({1}, gpu(at::kFloat));
    case Scaling::row:
      return at::ones({rows}, gpu(at::kFloat));
    case Scaling::block_1x128:
      return at::ones({blocks(columns, 128), blocks(rows, 4) * 4}, gpu(at::kFloat));
    case Scaling::block_128x128:
      return at::ones({blocks(rows, 128), blocks(columns, 512) * 4}, gpu(at::kFloat));
    case Scaling::mx_1x32:
      return at::full({blocks(rows, 128) * 128, blocks(columns, 128) * 4}, 127, gpu(at::kByte));
  }
  return {};
}

/// How a recipe quantises the operands of a linear's GEMMs.
struct Arithmetic {
  const char* name;
  at::ScalarType gradient;  ///< codes of dy; those of x and the weight are E4M3
  Scaling token, weight;    ///< of x and dy; of the weight
  bool fast;
};

const std::vector<Arithmetic> recipes = {
    {"fp8 tensor", at::kFloat8_e5m2, Scaling::tensor, Scaling::tensor, false},
    {"fp8 tensor fast", at::kFloat8_e5m2, Scaling::tensor, Scaling::tensor, true},
    {"fp8 block", at::kFloat8_e4m3fn, Scaling::block_1x128, Scaling::block_128x128, false},
    {"fp8 row fast", at::kFloat8_e5m2, Scaling::row, Scaling::row, true},
    {"mxfp8", at::kFloat8_e4m3fn, Scaling::mx_1x32, Scaling::mx_1x32, false}};

class Bench {
 public:
  explicit Bench(double seconds) : seconds_(seconds) {}

  void linear(const Linear& l) const {
    {
      const at::Tensor x = normal(l.tokens, l.in, at::kBFloat16), w = normal(l.out, l.in, at::kBFloat16),
                       dy = normal(l.tokens, l.out, at::kBFloat16);
      passes(l, "bf16", {.left = {x}, .right = {w, true}}, {.left = {dy}, .right = {w}},
             {.left = {dy, true}, .right = {x}});
    }
    for (const Arithmetic& each : recipes) {
      const at::Tensor x = normal(l.tokens, l.in, at::kFloat8_e4m3fn),
                       w = normal(l.out, l.in, at::kFloat8_e4m3fn),
                       dy = normal(l.tokens, l.out, each.gradient),
                       x_t = x.view({l.in, l.tokens}),  // other numbers than the transpose's, as fast
          w_t = w.view({l.in, l.out}), dy_t = dy.view({l.out, l.tokens});
      const auto tokens = [&](const at::Tensor& codes) { return scaled(codes, each.token, false); };
      passes(l, each.name,
             {.left = tokens(x), .right = scaled(w, each.weight, true), .fast_accumulation = each.fast},
             {.left = tokens(dy), .right = scaled(w_t, each.weight, true), .fast_accumulation = each.fast},
             {.left = tokens(dy_t), .right = scaled(x_t, each.token, true), .fast_accumulation = each.fast});
    }
  }

 private:
  static cuda::Operand scaled(const at::Tensor& codes, Scaling scaling, bool transposed) {
    return {codes, transposed, ones(scaling, codes.size(0), codes.size(1)), scaling};
  }

  void passes(const Linear& l, const char* arithmetic, const cuda::Gemm& forward, const cuda::Gemm& dgrad,
              const cuda::Gemm& wgrad) const {
    line(l, arithmetic, "forward", forward, at::empty({l.tokens, l.out}, gpu(at::kBFloat16)), false);
    line(l, arithmetic, "dgrad", dgrad, at::empty({l.tokens, l.in}, gpu(at::kBFloat16)), false);
    line(l, arithmetic, "wgrad += fp32", wgrad, at::zeros({l.out, l.in}, gpu(at::kFloat)), true);
    line(l, arithmetic, "wgrad += bf16", wgrad, at::zeros({l.out, l.in}, gpu(at::kBFloat16)), true);
  }

  void line(const Linear& l, const char* arithmetic, const char* pass, const cuda::Gemm& gemm,
            const at::Tensor& out, bool adds) const {
    std::printf("%-14s %-14s %-16s ", l.name.c_str(), pass, arithmetic);
    const at::Tensor added = adds ? out : at::Tensor();
    if (!cuda::has_algorithm(gemm, out, added)) {
      std::printf("none\n");
      std::fflush(stdout);
      return;
    }
    const cuda::CandidateTimes times = cuda::time_candidates(gemm, out, added, seconds_, 3);
    const double tera =
        2e-12 * static_cast<double>(l.tokens) * static_cast<double>(l.in) * static_cast<double>(l.out);
    const auto first = std::find_if(times.begin(), times.end(), [](auto& each) { return each.second == 0; });
    std::printf("%7.3f ms  first %6.0f  best %6.0f TFLOP/s (#%zu)\n", times.front().first,
                first == times.end() ? 0 : tera / (first->first * 1e-3), tera / (times.front().first * 1e-3),
                times.front().second + 1);
    std::fflush(stdout);
  }

  const double seconds_;
};

/// Load until the clock is that of a long run.
void settle() {
  const at::Tensor a = normal(8192, 8192, at::kBFloat16), b = normal(8192, 8192, at::kBFloat16);
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(3)) {
    for (int i = 0; i < 50; ++i) at::mm(a, b);
    at::cuda::getCurrentCUDAStream().synchronize();
  }
}

}  // namespace
}  // namespace assay::impl

int main(int count, char** arguments) {
  using namespace assay::impl;
  const c10::InferenceMode no_autograd;
  const std::string which = count > 1 ? arguments[1] : "";
  std::vector<Linear> linears;
  long long tokens = 0, in = 0, out = 0;
  if (std::sscanf(which.c_str(), "%lldx%lldx%lld", &tokens, &in, &out) == 3) {
    linears = {{which, tokens, in, out}};
  } else if (which.empty() || which == "8b" || which == "1.36b") {
    if (which != "1.36b") linears = llama_8b;
    if (which != "8b") linears.insert(linears.end(), llama_1b.begin(), llama_1b.end());
  } else {
    std::fprintf(stderr,
                 "gemm_bench: \"%s\" is neither 8b, 1.36b nor tokens x in x out, \"16384x4096x6144\"\n",
                 which.c_str());
    return 2;
  }
  if (at::cuda::device_count() == 0) {
    std::fprintf(stderr, "gemm_bench: there is no NVIDIA GPU here\n");
    return 2;
  }
  int version = 0;
  cudaRuntimeGetVersion(&version);
  std::printf("%s, CUDA %d.%d\n", at::cuda::getCurrentDeviceProperties()->name, version / 1000,
              version % 1000 / 10);
  settle();
  const Bench bench(count > 2 ? std::atof(arguments[2]) : 0.3);
  for (const Linear& each : linears) bench.linear(each);
}
