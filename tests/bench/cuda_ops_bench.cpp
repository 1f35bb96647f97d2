// Time of every op of the trainer on the GPU at the shapes of one micro-batch of llama-1.36b (24 x 2,048
// tokens):
//   cuda_ops_bench [repeats]
//   cuda_ops_bench tune SECONDS    finds and keeps the algorithms of its products instead
//   (impl/ops/cuda_gemm.hpp)
// One line per op and pass: milliseconds (median of the repeats, by events), calls per micro-batch, TFLOP/s
// or GB/s by the operations and bytes that the op must do, and the sum over a micro-batch.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "impl/ops/attention.hpp"
#include "impl/ops/cross_entropy.hpp"
#include "impl/ops/cuda_gemm.hpp"
#include "impl/ops/cuda_gemm_search.hpp"
#include "impl/ops/embedding.hpp"
#include "impl/ops/linear.hpp"
#include "impl/ops/rms_norm.hpp"
#include "impl/ops/rope.hpp"
#include "impl/ops/swiglu.hpp"
#include "spec/ops/rope.hpp"

namespace assay::impl {
namespace {

constexpr std::int64_t L = 18, D = 2304, H = 18, E = 128, F = 6144, V = 32000, B = 24, T = 2048, N = B * T,
                       chunk = 8192;

class Bench {
 public:
  explicit Bench(int repeats) : repeats_(repeats) {}

  /// `bytes` or `flops` of one call, the other 0.
  void run(const char* name, std::int64_t calls, double bytes, double flops,
           const std::function<void()>& call) {
    call();
    std::vector<float> times;
    for (int i = 0; i < repeats_; ++i) {
      at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
      begin.record();
      call();
      end.record();
      end.synchronize();
      times.push_back(begin.elapsed_time(end));
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    std::printf("%-26s %8.3f ms x %3lld = %7.2f ms", name, median, static_cast<long long>(calls),
                median * static_cast<double>(calls));
    if (bytes > 0) std::printf("  %7.0f GB/s", bytes / median * 1e-6);
    if (flops > 0) std::printf("  %7.1f TFLOP/s", flops / median * 1e-9);
    std::printf("\n");
    std::fflush(stdout);
    (flops > 0 ? products_ : passes_) += median * static_cast<double>(calls);
  }
  void sum() const {
    std::printf(
        "products and attention %.1f ms, passes over memory %.1f ms, together %.1f ms a micro-batch\n",
        products_, passes_, products_ + passes_);
  }

 private:
  int repeats_;
  double products_ = 0, passes_ = 0;
};

double tuned_seconds = 0;  ///< of each candidate; 0: time the ops instead

at::Tensor normal(at::IntArrayRef shape, at::ScalarType type = at::kBFloat16) {
  return at::randn(shape, at::TensorOptions(at::kCUDA).dtype(at::kFloat)).mul_(0.5).to(type);
}

/// Forward and both gradients of x W^T with `rows` tokens.
void product(Bench& bench, const char* name, std::int64_t calls, std::int64_t rows, std::int64_t in,
             std::int64_t out, bool residual) {
  const at::Tensor x = normal({rows, in}), weight = normal({out, in}), dy = normal({rows, out}),
                   base = residual ? normal({rows, out}) : at::Tensor();
  at::Tensor dweight = at::zeros({out, in}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  const std::string title = name;
  if (tuned_seconds > 0) {
    at::Tensor y = normal({rows, out}), dx = normal({rows, in});
    for (const std::string& line :
         {cuda::tune({.left = x, .right = weight, .right_transposed = true}, y, base, tuned_seconds),
          cuda::tune({.left = dy, .right = weight}, dx, {}, tuned_seconds),
          cuda::tune({.left = dy, .right = x, .left_transposed = true}, dweight, dweight, tuned_seconds)})
      std::printf("%s: %s\n", name, line.c_str());
    std::fflush(stdout);
    return;
  }
  bench.run((title + " forward").c_str(), calls, 0, flops,
            [&] { residual ? linear::forward_residual(base, x, weight) : linear::forward(x, weight); });
  bench.run((title + " input").c_str(), calls, 0, flops, [&] { linear::backward_input(dy, weight); });
  bench.run((title + " weight").c_str(), calls, 0, flops, [&] { linear::backward_weight(dy, x, dweight); });
}

void products(Bench& bench) {
  product(bench, "qkv", L, N, D, 3 * D, false);
  product(bench, "attention output", L, N, D, D, true);
  product(bench, "gate+up", L, N, D, 2 * F, false);
  product(bench, "down", L, N, F, D, true);
  product(bench, "head", N / chunk, chunk, D, V, false);
}

void attention_and_rope(Bench& bench) {
  at::Tensor qkv = normal({B, T, 3 * H, E});
  const at::Tensor dy = normal({B, T, H, E});
  const auto out = attention::forward(qkv, H, H, {});
  const double pairs = static_cast<double>(B) * H * T * (T + 1) / 2 * E;
  bench.run("attention forward", L, 0, 4 * pairs, [&] { attention::forward(qkv, H, H, {}); });
  bench.run("attention backward", L, 0, 8 * pairs, [&] { attention::backward(dy, qkv, out, H, H, {}); });
  for (const std::string& line : attention::new_choices()) std::printf("  %s\n", line.c_str());
  const auto table =
      rope::table(spec::rope::inverse_frequencies(E, 10000, {}), T, at::kBFloat16, at::Device(at::kCUDA, 0));
  const double bytes = 2.0 * 2 * N * 2 * D;
  bench.run("rope, both ways", 2 * L, bytes, 0, [&] { rope::rotate(qkv, 2 * H, table, {}, false); });
}

void elementwise(Bench& bench) {
  const at::Tensor x = normal({N, D}), gain = normal({D}), dy = normal({N, D});
  const double row = 2.0 * N * D;
  at::Tensor dx = at::zeros_like(x), dgain = at::zeros({D}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  const auto norm = rms_norm::forward(x, gain, 1e-6);
  bench.run("rms_norm forward", 2 * L + 1, 2 * row, 0, [&] { rms_norm::forward(x, gain, 1e-6); });
  bench.run("rms_norm backward", 2 * L + 1, 4 * row, 0,
            [&] { rms_norm::backward(dy, x, gain, norm.rstd, dx, dgain); });
  const at::Tensor gate_up = normal({N, 2 * F}), d_swiglu = normal({N, F});
  const double wide = 2.0 * N * F;
  bench.run("swiglu forward", L, 3 * wide, 0, [&] { swiglu::forward(gate_up); });
  bench.run("swiglu backward", L, 5 * wide, 0, [&] { swiglu::backward(d_swiglu, gate_up); });
}

void ends(Bench& bench) {
  const auto long_ids = at::TensorOptions(at::kCUDA).dtype(at::kLong);
  const at::Tensor ids = at::randint(V, {N}, long_ids), targets = at::randint(V, {chunk}, long_ids),
                   dy = normal({N, D}), table = normal({V, D});
  at::Tensor dtable = at::zeros({V, D}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  bench.run("embedding forward", 1, 2.0 * 2 * N * D, 0, [&] { embedding::forward(table, ids); });
  bench.run("embedding backward", 1, 2.0 * N * D, 0, [&] { embedding::backward(dy, ids, dtable); });
  at::Tensor logits = normal({chunk, V});
  const auto loss = cross_entropy::forward(logits, targets, chunk, 0);
  const double bytes = 2.0 * chunk * V;
  bench.run("cross_entropy forward", N / chunk, bytes, 0,
            [&] { cross_entropy::forward(logits, targets, chunk, 0); });
  bench.run("cross_entropy backward", N / chunk, 2 * bytes, 0,
            [&] { cross_entropy::backward(logits, targets, loss.lse, chunk, 0); });
}

}  // namespace
}  // namespace assay::impl

int main(int argc, char** argv) {
  using namespace assay::impl;
  const c10::InferenceMode no_autograd;
  if (argc > 2 && std::string(argv[1]) == "tune") tuned_seconds = std::atof(argv[2]);
  Bench bench(argc > 1 ? std::atoi(argv[1]) : 10);
  products(bench);
  if (tuned_seconds > 0) return 0;
  attention_and_rope(bench);
  elementwise(bench);
  ends(bench);
  bench.sum();
  for (const std::string& line : cuda::new_searches()) std::printf("  %s\n", line.c_str());
  return 0;
}
