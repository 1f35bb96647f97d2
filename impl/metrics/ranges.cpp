#include "impl/metrics/ranges.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <utility>

namespace assay::impl::metrics {

/// Ended in the reverse order.
struct Range::Open {
  explicit Open(std::string text) : name(std::move(text)), function(at::RecordScope::USER_SCOPE) {
    if (function.isActive()) function.before(name.c_str());
    // NVTX of libtorch, which is there where its CUDA part is.
    const auto* const nvtx = torch::profiler::impl::cudaStubs();
    if (!nvtx->enabled()) return;
    nvtx->rangePush(name.c_str());
    pushed = nvtx;
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open() {
    if (pushed) pushed->rangePop();
  }

  const std::string name;
  at::RecordFunction function;
  const torch::profiler::impl::ProfilerStubs* pushed = nullptr;
};

void Range::open(const std::string& name) { open_ = new Open(name); }

void Range::close() {
  delete open_;
  open_ = nullptr;
}

}  // namespace assay::impl::metrics
