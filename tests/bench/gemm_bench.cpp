// What the GEMMs of a decoder block's linears reach on this GPU, in bf16 and in FP8, without their casts:
//   gemm_bench [8b | 1.36b | SHAPE] [seconds]
//   gemm_bench grouped [seconds]: the grouped GEMMs of experts, beside ATen's
// SHAPE: tokens x in x out, "16384x4096x6144". One line for each linear, pass and arithmetic: TFLOP/s of the
// library's first choice and of the fastest of 8 candidates, each after half of `seconds` (0.3) of its own
// load, twice, back to back.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/core/InferenceMode.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "impl/ops/gemm/cuda_gemm.hpp"
#include "impl/ops/grouped_linear/grouped_gemm.hpp"
#include "impl/ops/grouped_linear/grouped_linear.hpp"

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

struct Grouped {
  const char* name;
  std::int64_t rows, experts, width, inner;  ///< D and G
};
const std::vector<Grouped> grouped = {{"olmoe-1b-7b", 131072, 64, 2048, 1024},
                                      {"qwen3-30b-a3b", 131072, 128, 2048, 768},
                                      {"mixtral-8x7b", 32768, 8, 4096, 14336},
                                      {"deepseek-v3 ep", 32768, 8, 7168, 2048}};

/// Rows of experts, the same for each or growing linearly from the first to the last.
at::Tensor ends_of(const Grouped& g, bool skewed) {
  at::Tensor ends = at::empty({g.experts}, at::kInt);
  for (std::int64_t e = 1; e <= g.experts; ++e)
    ends.data_ptr<std::int32_t>()[e - 1] = static_cast<std::int32_t>(
        skewed ? g.rows * e * (e + 1) / (g.experts * (g.experts + 1)) : g.rows * e / g.experts);
  return ends.to(at::kCUDA);
}

double milliseconds(double seconds, const std::function<void()>& call) {
  at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
  double best = 0;
  for (int round = 0; round < 2; ++round) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds / 4);
    while (std::chrono::steady_clock::now() < until) {
      for (int i = 0; i < 5; ++i) call();
      at::cuda::getCurrentCUDAStream().synchronize();
    }
    int calls = 0;
    begin.record();
    for (; calls < 20; ++calls) call();
    end.record();
    end.synchronize();
    const double each = begin.elapsed_time(end) / calls;
    best = round == 0 ? each : std::min(best, each);
  }
  return best;
}

/// The GEMMs of forward and of the input's gradient in FP8, and what their casts take: of rows before each
/// GEMM, of weights after each update (both orientations) or before each GEMM (one).
void grouped_fp8_lines(const std::string& name, const at::Tensor& x, const at::Tensor& dy,
                       const at::Tensor& w, const at::Tensor& ends, double tera, double seconds) {
  using quantise::Orientation;
  using spec::quantise::Recipe, spec::quantise::Role;
  const auto of = [](Role role) { return spec::quantise::quantisation(Recipe::fp8_tensor, role); };
  const auto cast = [&](const at::Tensor& values, Role role, Orientation orientation) {
    return milliseconds(seconds, [&] { quantise::quantise(values, of(role), orientation); });
  };
  const quantise::Twins weights = quantise::quantise(w, of(Role::weight), Orientation::both);
  const auto x8 = quantise::quantise(x, of(Role::activation), Orientation::rows).rows,
             dy8 = quantise::quantise(dy, of(Role::gradient), Orientation::rows).rows;
  const double forward = milliseconds(
                   seconds, [&] { grouped_linear::forward(x8, weights.rows, ends, at::kBFloat16); }),
               gradient = milliseconds(seconds, [&] {
                 grouped_linear::backward_input(dy8, weights.columns, ends, at::kBFloat16);
               });
  std::printf(
      "%-30s fp8 forward %7.3f ms %5.0f TFLOP/s, cast of rows %6.3f ms; dgrad %7.3f ms %5.0f TFLOP/s, "
      "cast of rows %6.3f ms; weights: both %6.3f, one %6.3f and %6.3f ms\n",
      name.c_str(), forward, 1e3 * tera / forward, cast(x, Role::activation, Orientation::rows), gradient,
      1e3 * tera / gradient, cast(dy, Role::gradient, Orientation::rows),
      cast(w, Role::weight, Orientation::both), cast(w, Role::weight, Orientation::rows),
      cast(w, Role::weight, Orientation::columns));
  std::fflush(stdout);
}

void grouped_line(const Grouped& g, double seconds) {
  using grouped_linear::cuda::Part;
  for (const bool skewed : {false, true}) {
    const at::Tensor ends = ends_of(g, skewed);
    for (const bool down : {false, true}) {
      const std::int64_t in = down ? g.inner : g.width, out = down ? g.width : 2 * g.inner;
      const at::Tensor x = normal(g.rows, in, at::kBFloat16), dy = normal(g.rows, out, at::kBFloat16),
                       w = normal(g.experts * out, in, at::kBFloat16), y = at::empty_like(dy),
                       dx = at::empty_like(x), dw = at::zeros({g.experts * out, in}, gpu(at::kFloat)),
                       w3 = w.view({g.experts, out, in});
      const double tera =
          2e-12 * static_cast<double>(g.rows) * static_cast<double>(in) * static_cast<double>(out);
      const auto line = [&](const char* pass, const std::function<bool()>& ours,
                            const std::function<void()>& theirs) {
        const double aten = milliseconds(seconds, theirs);
        const bool has = ours();
        const double own = has ? milliseconds(seconds, [&] { ours(); }) : 0;
        std::printf("%-15s %-7s %-8s %-10s own %7.3f ms %5.0f TFLOP/s   ATen %7.3f ms %5.0f TFLOP/s\n",
                    g.name, skewed ? "skewed" : "even", down ? "down" : "gate+up", pass, own,
                    has ? 1e3 * tera / own : 0, aten, 1e3 * tera / aten);
        std::fflush(stdout);
      };
      using grouped_linear::cuda::multiply;
      line(
          "forward", [&] { return multiply(Part::forward, x, w, ends, y); },
          [&] { at::_grouped_mm(x, w3.transpose(1, 2), ends); });
      line(
          "dgrad", [&] { return multiply(Part::input_gradient, dy, w, ends, dx); },
          [&] { at::_grouped_mm(dy, w3, ends); });
      line(
          "wgrad +=", [&] { return multiply(Part::weight_gradient, dy, x, ends, dw, true); },
          [&] { dw.view_as(w3).add_(at::_grouped_mm(dy.t(), x, ends)); });
      grouped_fp8_lines(std::string(g.name) + (skewed ? " skewed" : " even") + (down ? " down" : " gate+up"),
                        x, dy, w, ends, tera, seconds);
    }
  }
}

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
  const bool of_experts = which == "grouped";
  long long tokens = 0, in = 0, out = 0;
  if (std::sscanf(which.c_str(), "%lldx%lldx%lld", &tokens, &in, &out) == 3) {
    linears = {{which, tokens, in, out}};
  } else if (of_experts) {
  } else if (which.empty() || which == "8b" || which == "1.36b") {
    if (which != "1.36b") linears = llama_8b;
    if (which != "8b") linears.insert(linears.end(), llama_1b.begin(), llama_1b.end());
  } else {
    std::fprintf(
        stderr,
        "gemm_bench: \"%s\" is neither 8b, 1.36b, grouped nor tokens x in x out, \"16384x4096x6144\"\n",
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
  const double seconds = count > 2 ? std::atof(arguments[2]) : 0.3;
  const Bench bench(seconds);
  for (const Grouped& each : grouped)
    if (of_experts) grouped_line(each, seconds);
  for (const Linear& each : linears) bench.linear(each);
}
