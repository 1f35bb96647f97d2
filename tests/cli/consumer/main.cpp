// A project that knows nothing of assay but its package: what a model is, needs, and takes.
#include <assay/flops.hpp>
#include <assay/hardware.hpp>
#include <assay/memory.hpp>
#include <assay/metrics.hpp>
#include <assay/model.hpp>
#include <assay/step.hpp>
#include <assay/version.hpp>
#include <iostream>

using namespace assay;

int main() {
  const spec::ModelSpec model = spec::find_model("llama3-8b");
  const spec::FlopBreakdown exact = spec::exact_flops(model, 4096);
  std::cout << "assay " << ASSAY_VERSION_MAJOR << "." << ASSAY_VERSION_MINOR << "." << ASSAY_VERSION_PATCH
            << "\n"
            << "parameters " << spec::parameter_count(model).to_string() << "\n"
            << "FLOPs per token " << exact.per_token().to_string() << "\n";

  const double peak = spec::named_gpu("h100-sxm").peak(spec::Precision::bf16)->dense;
  std::cout << "MFU " << spec::metrics::mfu(exact.per_token().to_double(), 70000, peak, 8) << "\n";

  const spec::memory::Setting setting{.model = model,
                                      .dtype = Dtype::bf16,
                                      .machine = spec::memory::Machine::cuda,
                                      .sequence_length = 4096,
                                      .layout = spec::layout_of(spec::DataParallel::shard, 8)};
  const spec::memory::Plan plan = spec::memory::plan(setting);
  Count held;
  for (const spec::memory::Item& item : plan.items) held += item.bytes;
  std::cout << "fits 80 GB: " << spec::memory::fit(setting, Count(80'000'000'000)).asked << "\n"
            << "items are the peak: " << (held == plan.peak) << "\n";

  const spec::ExecutedFlops ran = spec::paper::trace(setting).executed;
  const Count once = ran.executed(spec::ExecutedPass::forward) + ran.executed(spec::ExecutedPass::backward);
  std::cout << "forward and backward on paper run the formula's FLOPs: " << (once == exact.per_sequence())
            << "\n";
}
