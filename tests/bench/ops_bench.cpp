// Time of every op of the trainer at the shapes of one training step of the tiny model on the CPU:
//   ops_bench [threads] [repeats]
// One line per op and pass: milliseconds (best of the repeats), calls per step, GFLOP/s or GB/s by the counts
// of spec/.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "impl/ops/adamw/adamw.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "impl/ops/cross_entropy/cross_entropy.hpp"
#include "impl/ops/embedding/embedding.hpp"
#include "impl/ops/linear/linear.hpp"
#include "impl/ops/rms_norm/rms_norm.hpp"
#include "impl/ops/rope/rope.hpp"
#include "impl/ops/swiglu/swiglu.hpp"
#include "spec/ops/embedding/embedding.hpp"
#include "spec/ops/linear/linear.hpp"
#include "spec/ops/rms_norm/rms_norm.hpp"
#include "spec/ops/rope/rope.hpp"
#include "spec/ops/swiglu/swiglu.hpp"

namespace assay::impl {
namespace {

/// The tiny model: layers, width, heads, kv heads, head dimension, ffn, vocabulary, tokens, sequences.
constexpr std::int64_t L = 4, D = 128, H = 4, K = 2, E = 32, F = 384, V = 256, T = 128, B = 32, N = B * T;

class Bench {
 public:
  explicit Bench(int repeats) : repeats_(repeats) {}

  /// Runs `call` and prints its line; `bytes` or `flops` of one call, the other 0.
  void run(const char* name, std::int64_t calls, double bytes, double flops,
           const std::function<void()>& call) {
    double best = 1e30;
    for (int i = 0; i <= repeats_; ++i) {
      const auto start = std::chrono::steady_clock::now();
      call();
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (i > 0) best = std::min(best, taken.count());
    }
    std::printf("%-28s %8.3f ms x %lld", name, best * 1e3, static_cast<long long>(calls));
    if (bytes > 0) std::printf("  %7.1f GB/s", bytes / best * 1e-9);
    if (flops > 0) std::printf("  %7.1f GFLOP/s", flops / best * 1e-9);
    std::printf("\n");
    step_ += best * static_cast<double>(calls);
    if (flops > 0) gemms_ += best * static_cast<double>(calls);
  }
  void compare(const char* name, const std::function<void()>& call) {
    const double step = step_, gemms = gemms_;
    run(name, 0, 0, 0, call);
    step_ = step, gemms_ = gemms;
  }
  void total() const {
    std::printf("one step %.1f ms: GEMMs %.1f ms, the rest %.1f ms; %.0f tokens/s\n", step_ * 1e3,
                gemms_ * 1e3, (step_ - gemms_) * 1e3, static_cast<double>(N) / step_);
  }

 private:
  int repeats_;
  double step_ = 0, gemms_ = 0;
};

void gemms(Bench& bench) {
  struct Gemm {
    const char* name;
    std::int64_t in, out, calls;
  };
  for (const Gemm& p : {Gemm{"qkv", D, (H + 2 * K) * E, L}, Gemm{"attention output", H * E, D, L},
                        Gemm{"gate|up", D, 2 * F, L}, Gemm{"down", F, D, L}, Gemm{"head", D, V, 1}}) {
    const at::Tensor x = at::randn({N, p.in}), weight = at::randn({p.out, p.in}), dy = at::randn({N, p.out});
    const at::Tensor dweight = at::zeros({p.out, p.in});
    const double flops = spec::linear::forward_flops({.N = N, .in = p.in, .out = p.out}).matmul.to_double();
    const auto line = [&](const char* pass, const std::function<void()>& call) {
      bench.run((std::string("linear ") + p.name + " " + pass).c_str(), p.calls, 0, flops, call);
    };
    line("y", [&] { linear::forward(x, weight); });
    line("dx", [&] { linear::backward_input(dy, weight); });
    line("dw", [&] { linear::backward_weight(dy, x, dweight); });
  }
}

void rows(Bench& bench) {
  const at::Tensor x = at::randn({N, D}), gain = at::randn({D}), dx = at::zeros_like(x),
                   dgain = at::zeros({D});
  const spec::rms_norm::Shape norm{.N = N, .D = D};
  const auto normed = rms_norm::forward(x, gain, 1e-5);
  bench.run("rms_norm y", 2 * L + 1, spec::rms_norm::forward_bytes(norm, 4, 4).to_double(), 0,
            [&] { rms_norm::forward(x, gain, 1e-5); });
  bench.run("rms_norm dx", 2 * L + 1, spec::rms_norm::backward_bytes(norm, 4, 4).to_double(), 0,
            [&] { rms_norm::backward(x, x, gain, normed.rstd, dx, dx, dgain); });

  const at::Tensor gate_up = at::randn({N, 2 * F}), dy = at::randn({N, F});
  const spec::swiglu::Shape gated{.N = N, .F = F};
  bench.run("swiglu y", L, spec::swiglu::forward_bytes(gated, 4).to_double(), 0,
            [&] { swiglu::forward(gate_up, swiglu::Activation::silu); });
  bench.run("swiglu dx", L, spec::swiglu::backward_bytes(gated, 4).to_double(), 0,
            [&] { swiglu::backward(dy, gate_up, swiglu::Activation::silu); });

  const at::Tensor qkv = at::randn({B, T, H + 2 * K, E});
  const auto table = rope::table(std::vector<double>(E / 2, 0.1), T, at::kFloat, at::kCPU);
  bench.run("rope (y and dx)", 2 * L,
            spec::rope::forward_bytes({.B = B, .T = T, .H = H + K, .E = E}, 4, 4).to_double(), 0,
            [&] { rope::rotate(qkv, H + K, table, {}, false); });
}

void attend(Bench& bench) {
  const at::Tensor qkv = at::randn({B, T, H + 2 * K, E}), dy = at::randn({B, T, H, E});
  const double pairs = static_cast<double>(B * H * E) * T * (T + 1) / 2;
  const auto out = attention::forward(qkv, H, K, {});
  bench.run("attention y", L, 0, 4 * pairs, [&] { attention::forward(qkv, H, K, {}); });
  bench.run("attention dqkv", L, 0, 8 * pairs, [&] { attention::backward(dy, qkv, out, H, K, {}); });

  const auto heads = [&](std::int64_t first, std::int64_t count) {
    return qkv.narrow(2, first, count).transpose(1, 2).repeat_interleave(H / count, 1);
  };
  const at::Tensor q = heads(0, H), k = heads(H, K), v = heads(H + K, K), upstream = dy.transpose(1, 2);
  const auto flash = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, true);
  bench.compare("  libtorch's, k and v repeated: y",
                [&] { at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, true); });
  bench.compare("  libtorch's: dq, dk, dv", [&] {
    at::_scaled_dot_product_flash_attention_for_cpu_backward(upstream, q, k, v, std::get<0>(flash),
                                                             std::get<1>(flash), 0.0, true);
  });
}

void ends(Bench& bench) {
  const at::Tensor logits = at::randn({N, V}), ids = at::randint(0, V, {N}), table = at::randn({V, D});
  const at::Tensor dy = at::randn({N, D}), dtable = at::zeros({V, D});
  const auto loss = cross_entropy::forward(logits, ids, N, 0);
  const double logit_bytes = 4.0 * N * V;
  bench.run("cross_entropy loss", 1, logit_bytes, 0, [&] { cross_entropy::forward(logits, ids, N, 0); });
  bench.run("cross_entropy dlogits", 1, 2 * logit_bytes, 0,
            [&] { cross_entropy::backward(logits, ids, loss.lse, N, 0); });
  const spec::embedding::Shape shape{.N = N, .V = V, .D = D};
  bench.run("embedding y", 1, spec::embedding::forward_bytes(shape, 4, 8).to_double(), 0,
            [&] { embedding::forward(table, ids); });
  bench.run("embedding dtable", 1, spec::embedding::backward_bytes(shape, 4, 8, 4).to_double(), 0,
            [&] { embedding::backward(dy, ids, dtable); });

  const std::int64_t size = L * (D * (H + 2 * K) * E + H * E * D + 3 * D * F + 2 * D) + 2 * V * D + D;
  const at::Tensor weight = at::randn({size}), gradient = at::randn({size}), m = at::zeros({size}),
                   v = at::zeros({size});
  bench.run("clip_grad_norm sum", 1, 4.0 * static_cast<double>(size), 0,
            [&] { clip_grad_norm::sum_of_squares(gradient); });
  bench.run("adamw", 1, 28.0 * static_cast<double>(size), 0, [&] {
    adamw::update(weight, weight, gradient, m, v, {1e-3, 0.9, 0.95, 1e-8, 0.1, 7, 1});
  });
}

}  // namespace
}  // namespace assay::impl

int main(int argc, char** argv) {
  at::set_num_threads(argc > 1 ? std::atoi(argv[1]) : 2);
  assay::impl::Bench bench(argc > 2 ? std::atoi(argv[2]) : 20);
  assay::impl::gemms(bench);
  assay::impl::rows(bench);
  assay::impl::attend(bench);
  assay::impl::ends(bench);
  bench.total();
}
