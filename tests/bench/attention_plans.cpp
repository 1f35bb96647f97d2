// Time of attention's backward on this GPU by every plan that cuDNN has for it, beside ATen's call:
//   attention_plans
// at the shapes of a micro-batch of llama-1.36b and llama3-8b, in any order and in a fixed one. With the turn
// back of q and k behind it, as a step has it. Median of 10 after 20 to warm up.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/core/InferenceMode.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>

#include "impl/ops/attention/attention.hpp"
#include "impl/ops/attention/attention_cudnn.hpp"
#include "impl/ops/rope/rope.hpp"
#include "spec/ops/rope/rope.hpp"

namespace assay::impl {
namespace {

struct Shape {
  const char* model;
  std::int64_t B, T, H, K, E;
};

double median_milliseconds(const std::function<void()>& call) {
  for (int i = 0; i < 20; ++i) call();
  std::vector<double> times;
  for (int i = 0; i < 10; ++i) {
    at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
    begin.record();
    call();
    end.record();
    end.synchronize();
    times.push_back(begin.elapsed_time(end));
  }
  std::nth_element(times.begin(), times.begin() + 5, times.end());
  return times[5];
}

void print(const char* what, const std::string& name, double workspace_bytes, double alone, double turned,
           double flops) {
  std::printf("  %-8s %-60s workspace %9.3f MB  %8.4f ms  %6.1f TFLOP/s  with rope %8.4f ms\n", what,
              name.c_str(), workspace_bytes / 1e6, alone, flops / alone * 1e-9, turned);
  std::fflush(stdout);
}

struct Case {
  Shape s;
  at::Tensor qkv, dy;
  attention::Forward out;
  rope::Table table;
  double flops;  ///< executed: five GEMMs over visible pairs

  explicit Case(const Shape& shape)
      : s(shape),
        qkv(at::randn({s.B, s.T, s.H + 2 * s.K, s.E}, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16))),
        dy(at::randn({s.B, s.T, s.H, s.E}, qkv.options())),
        out(attention::forward(qkv, s.H, s.K, {})),
        table(rope::table(spec::rope::inverse_frequencies(s.E, 10000, {}), s.T, at::kBFloat16, at::kCUDA)),
        flops(10.0 * static_cast<double>(s.B * s.H * s.E) * static_cast<double>(s.T) *
              static_cast<double>(s.T + 1) / 2) {}

  void plans(bool fixed_order) const {
    const auto all = attention::cudnn::plans({qkv, s.H, s.K}, fixed_order);
    for (std::size_t n = 0; n < all.size(); ++n) try {
        const auto backward = [&] {
          return attention::cudnn::backward(dy, {qkv, s.H, s.K}, out.y, out.lse, fixed_order, n).joined;
        };
        const double alone = median_milliseconds([&] { backward(); });
        const double turned =
            median_milliseconds([&] { rope::rotate(backward(), s.H + s.K, table, {}, /*inverse=*/true); });
        print(fixed_order ? "fixed" : "any", std::to_string(n) + " " + all[n].name,
              static_cast<double>(all[n].workspace_bytes), alone, turned, flops);
      } catch (const c10::Error& error) {
        std::printf("  %zu %s: %s\n", n, all[n].name.c_str(), error.what_without_backtrace());
      }
    if (all.empty()) std::printf("  cuDNN has no plan\n");
  }

  /// What a step did before: three gradients, joined and turned in one pass.
  void three_gradients() const {
    const auto head = [&](const at::Tensor& of, std::int64_t from, std::int64_t count) {
      return of.narrow(2, from, count).transpose(1, 2);
    };
    const at::Tensor none;
    const auto backward = [&] {
      return at::_scaled_dot_product_cudnn_attention_backward(
          dy.transpose(1, 2), head(qkv, 0, s.H), head(qkv, s.H, s.K), head(qkv, s.H + s.K, s.K),
          out.y.transpose(1, 2), out.lse.unsqueeze(-1), out.seed, out.offset, none, none, none, s.T, s.T, 0.0,
          true, 1 / std::sqrt(static_cast<double>(s.E)));
    };
    const double alone = median_milliseconds([&] { backward(); });
    const double turned = median_milliseconds([&] {
      const auto [dq, dk, dv] = backward();
      rope::joined_backward(dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2), table, {});
    });
    print("ATen", "three gradients, joined and turned in one pass", 0, alone, turned, flops);
  }
};

void bench(const Shape& s) {
  std::printf("%s [%lld, %lld, %lld + 2 x %lld, %lld]\n", s.model, static_cast<long long>(s.B),
              static_cast<long long>(s.T), static_cast<long long>(s.H), static_cast<long long>(s.K),
              static_cast<long long>(s.E));
  const Case here(s);
  if (here.out.backend != attention::Backend::cudnn) std::printf("  forward was not cuDNN's\n");
  here.three_gradients();
  here.plans(/*fixed_order=*/false);
  here.plans(/*fixed_order=*/true);
  here.three_gradients();
}

}  // namespace
}  // namespace assay::impl

int main() {
  using assay::impl::Shape;
  const c10::InferenceMode no_autograd;
  try {
    std::printf("%s\n", at::cuda::getCurrentDeviceProperties()->name);
    assay::impl::bench(Shape{"llama-1.36b", 24, 2048, 18, 18, 128});
    assay::impl::bench(Shape{"llama3-8b", 4, 4096, 32, 8, 128});
  } catch (const std::exception& error) {
    std::cerr << "attention_plans: " << error.what() << "\n";
    return 1;
  }
}
