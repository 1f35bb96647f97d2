#pragma once
// A step whose parts were captured once and are replayed: when that begins, what it is held up by, and what a
// replay trains on and counts.
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "impl/metrics/executed_flops.hpp"
#include "impl/model/model.hpp"
#include "impl/params/layouts/parameter_layout.hpp"
#include "impl/step/step_graph.hpp"

namespace assay::impl::run {

class CapturedStep {
 public:
  /// The device's work of a part of the step on a micro-batch. Of what changes from step to step it reads
  /// the batch, and tensors that stay in place.
  using Work = std::function<void(StepPart, const TokenBatch&, Activations&)>;

  CapturedStep(Model& model, ParameterLayout& parameters) : model_(model), parameters_(parameters) {}

  /// From here on steps are captured, after the first ones.
  void begin_with(std::unique_ptr<StepCapture> capture);
  /// Runs `step` where its work can be captured; nothing is captured where nobody asked for it.
  void on_its_stream(const std::function<void()>& step) { capture_ ? capture_->on_its_stream(step) : step(); }
  /// Before each step, `number` from 1: captures `work` where it is time to, drops what was captured where it
  /// does not serve these micro-batches.
  void prepare(std::int64_t number, const std::vector<TokenBatch>& micro_batches, const Work& work);
  /// Whether the parts of this step are replayed.
  bool replays() const { return captured_; }
  void replay_forward(const TokenBatch& batch, std::size_t micro_batch);
  /// Follows the forward of the same micro-batch.
  void replay_backward(std::size_t micro_batch);
  void replay(StepPart part);
  /// Drops what is captured, and its memory.
  void forget();
  /// What became of capture since the last call, one line each.
  std::vector<std::string> new_notices() { return std::exchange(notices_, {}); }

 private:
  void capture(const TokenBatch& first, const Work& work);
  void other_slots();

  Model& model_;
  ParameterLayout& parameters_;
  std::unique_ptr<StepCapture> capture_;  ///< null: nothing is captured
  bool captured_ = false, refused_ = false;
  int steps_before_ = 0;  ///< that ran since the capture came
  int reshaped_ = 0;  ///< steps whose documents needed other slots than those captured, or than each other
  TokenBatch batch_;  ///< what captured work reads; a replay begins with a copy into it
  std::size_t in_batch_ = 0;  ///< micro-batch that was copied there last
  Activations activations_;
  std::array<metrics::MeasuredFlops, step_parts> flops_;
  std::int64_t pairs_ = 0;  ///< visible ones of the batch that flops_ were counted with
  std::vector<std::string> notices_;
};

}  // namespace assay::impl::run
