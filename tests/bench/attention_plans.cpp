// Time of attention's backward on this GPU by every plan that cuDNN has for it, beside ATen's call:
//   attention_plans
// at the shapes of a micro-batch of llama-1.36b and llama3-8b, in any order and in a fixed one. With the turn
// back of q and k behind it, as a step has it. Then both passes over packed documents by each library that
// takes them, with an end at one token in 500 and without any. Median of 10 after 20 to warm up.
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
#include <vector>

#include "impl/data/document_offsets.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/attention/attention_cudnn.hpp"
#include "impl/ops/rope/rope.hpp"
#include "spec/ops/rope.hpp"

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
    const auto all = attention::cudnn::plans(qkv, s.H, s.K, fixed_order);
    for (std::size_t n = 0; n < all.size(); ++n) try {
        const auto backward = [&] {
          return attention::cudnn::backward(dy, qkv, out.y, out.lse, s.H, s.K, fixed_order, {}, n);
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

/// `rarity`: one token in so many ends a document, drawn anew at each place; 0: none does.
Documents documents(const Shape& s, std::uint64_t rarity) {
  std::vector<std::int32_t> numbers;
  std::uint64_t state = 1;
  for (std::int64_t n = 0; n < s.B * s.T; ++n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const bool ends = rarity > 0 && (state >> 33) % rarity == 0;
    numbers.push_back(n % s.T == 0 ? 0 : numbers.back() + (ends ? 1 : 0));
  }
  const std::vector<std::int32_t> offsets = data::document_offsets(numbers, s.T);
  const auto there = [](const std::vector<std::int32_t>& list) {
    return at::tensor(list, at::kInt).to(at::kCUDA);
  };
  return {there(numbers).view({s.B, s.T}), there(offsets), offsets};
}

void bench_documents(const Shape& s) {
  const Case here(s);
  for (const std::uint64_t rarity : {500, 0}) {
    const Documents packed = documents(s, rarity);
    const double pairs = static_cast<double>(attention::Mask(packed).visible_pairs()),
                 flops = 2.0 * static_cast<double>(s.H * s.E) * pairs;
    std::printf("%s, %s, %lld slots\n", s.model,
                rarity > 0 ? "documents of 500 tokens" : "one document a sequence",
                static_cast<long long>(packed.offsets.size(0) - 1));
    for (const auto backend : {spec::AttentionBackend::flash, spec::AttentionBackend::cudnn}) try {
        const attention::Forced by(backend, at::Device(at::kCUDA, 0));
        const auto out = attention::forward(here.qkv, s.H, s.K, packed);
        const double forward = median_milliseconds([&] { attention::forward(here.qkv, s.H, s.K, packed); });
        const double backward = median_milliseconds([&] {
          attention::backward_through_rope(here.dy, here.qkv, out, s.H, s.K, packed, here.table, {});
        });
        std::printf("  %-6s forward %8.4f ms  %6.1f TFLOP/s  backward with rope %8.4f ms  %6.1f TFLOP/s\n",
                    name(out.backend).c_str(), forward, 2 * flops / forward * 1e-9, backward,
                    5 * flops / backward * 1e-9);
      } catch (const std::exception& error) {
        std::printf("  %s\n", error.what());
      }
  }
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
    assay::impl::bench_documents(Shape{"llama-1.36b", 24, 2048, 18, 18, 128});
    assay::impl::bench_documents(Shape{"llama3-8b", 4, 4096, 32, 8, 128});
  } catch (const std::exception& error) {
    std::cerr << "attention_plans: " << error.what() << "\n";
    return 1;
  }
}
