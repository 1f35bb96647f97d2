#include "impl/step/captured_step.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "impl/metrics/op_times.hpp"

namespace assay::impl::run {

namespace {
/// Steps that run as they are before one is captured: libraries make their plans in the first, and the
/// allocator's blocks are those of every later step after it.
constexpr int steps_before_capture = 2;
/// After so many steps whose documents need other slots nothing is captured anew.
constexpr int most_reshaped = 8;

bool same_sizes(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || a.sizes() == b.sizes());
}

std::array<at::Tensor*, 6> tensors_of(TokenBatch& batch) {
  return {&batch.inputs,    &batch.targets,           &batch.sources,
          &batch.positions, &batch.documents.numbers, &batch.documents.offsets};
}

void copy_batch(TokenBatch& to, TokenBatch from) {
  const auto into = tensors_of(to), tensors = tensors_of(from);
  for (std::size_t i = 0; i < into.size(); ++i) {
    TORCH_CHECK(same_sizes(*into[i], *tensors[i]),
                "micro-batches have different shapes: captured steps serve one");
    if (tensors[i]->defined()) into[i]->copy_(*tensors[i], /*non_blocking=*/true);
  }
  to.documents.on_host = from.documents.on_host;
}

std::string first_line(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch ? torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}
}  // namespace

void CapturedStep::begin_with(std::unique_ptr<StepCapture> capture) {
  capture_ = std::move(capture);
  captured_ = refused_ = false;
  steps_before_ = 0;
}

void CapturedStep::forget() {
  if (!capture_) return;
  captured_ = false;
  activations_ = {};
  batch_ = {};
  capture_->forget();
}

void CapturedStep::prepare(std::int64_t number, const std::vector<TokenBatch>& micro_batches,
                           const Work& work) {
  if (!capture_) return;
  // Ops that are timed are called one by one.
  if (captured_ && metrics::ops_are_timed()) {
    notices_.push_back("step " + std::to_string(number) +
                       " is profiled: it runs op by op, as all steps do until the profile is done");
    forget();
  }
  const auto fit = [&](const Documents& documents) {
    return std::all_of(micro_batches.begin(), micro_batches.end(), [&](const TokenBatch& batch) {
      return same_sizes(batch.documents.offsets, documents.offsets);
    });
  };
  if (captured_ && !fit(batch_.documents)) return other_slots();
  if (captured_ || refused_ || metrics::ops_are_timed()) return;
  if (steps_before_++ < steps_before_capture || !capture_->ready()) return;
  if (!fit(micro_batches.at(0).documents)) return other_slots();
  try {
    capture(micro_batches.at(0), work);
    notices_.push_back("steps from " + std::to_string(number) +
                       " on are replayed: forward, backward, clip and update captured as " +
                       capture_->size());
  } catch (const std::exception& error) {
    refused_ = true;
    forget();
    notices_.push_back("steps are not captured, and run as before: " + first_line(error));
  }
}

/// A capture would read documents in other slots than this step's. The step runs uncaptured: its bits are
/// those that it has without a capture.
void CapturedStep::other_slots() {
  if (captured_) forget();
  if (++reshaped_ < most_reshaped) return;
  refused_ = true;
  notices_.push_back(
      "steps are not captured from here on: the documents of micro-batches need other numbers of "
      "slots again and again");
}

void CapturedStep::capture(const TokenBatch& first, const Work& work) {
  batch_ = first;
  for (at::Tensor* tensor : tensors_of(batch_))
    if (tensor->defined()) *tensor = tensor->clone();
  pairs_ = model_.visible_pairs(first);
  parameters_.begin_step(linear::GradientSum::continues);
  for (const StepPart part : {StepPart::forward, StepPart::backward, StepPart::clip, StepPart::update}) {
    const metrics::FlopCounter counter;  // what is captured has not run
    capture_->capture(part, [this, work, part] { work(part, batch_, activations_); });
    flops_[static_cast<std::size_t>(part)] = counter.measured();
  }
  captured_ = true;
}

void CapturedStep::replay_forward(const TokenBatch& batch, std::size_t micro_batch) {
  copy_batch(batch_, batch);
  in_batch_ = micro_batch;
  replay(StepPart::forward);
}

void CapturedStep::replay_backward(std::size_t micro_batch) {
  TORCH_CHECK(in_batch_ == micro_batch, "a captured backward follows its own forward");
  replay(StepPart::backward);
}

void CapturedStep::replay(StepPart part) {
  capture_->replay(part);
  metrics::report(flops_[static_cast<std::size_t>(part)].with_pairs(pairs_, model_.visible_pairs(batch_)));
}

}  // namespace assay::impl::run
