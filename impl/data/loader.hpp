#pragma once
// Reads micro-batches ahead of the trainer, on a thread of its own.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "impl/data/batch.hpp"
#include "impl/data/sample_source.hpp"
#include "spec/data/sample_order.hpp"

namespace assay::impl::data {

/// What one rank reads. Together with the source it fixes every batch: `start_step` is all that a resume
/// needs.
struct LoaderPlan {
  std::uint64_t seed = 0;        ///< of the sample order
  std::int64_t sequences = 0;    ///< samples of one optimizer step over all ranks, behind `ramp`
  spec::data::BatchSplit split;  ///< micro, ranks
  std::int64_t rank = 0;         ///< data-parallel rank
  std::int64_t start_step = 0;   ///< first step that next() gives
  std::int64_t prefetch = 2;     ///< steps read ahead at most; 0: read when next() asks
  std::optional<std::int64_t> end_of_document;  ///< see read_micro_batch
  double held_out = 0;                          ///< share of the samples of each source that is not read
  std::vector<spec::RampStage> ramp = {};       ///< steps with fewer samples before
  std::shared_ptr<const spec::data::Mixture> mixture = {};  ///< of the data's sources; null: one
};

/// The order of the samples of `source`. Errors: SpecError sample_order_c5.
spec::data::SampleOrder sample_order(const LoaderPlan& plan, const SampleSource& source);

/// The batches of one optimizer step for this rank.
struct StepBatches {
  std::int64_t step = 0;
  std::vector<MicroBatch> micro_batches;  ///< in the order in which they run
  std::uint64_t sample_hash = 0;          ///< spec::data::sample_hash of the step's samples of all ranks
  double wait_seconds = 0;                ///< that next() waited for it [s]
};

/// Steps start_step, start_step + 1, ... without end. One consumer; it may be destroyed at any time, which
/// waits for the micro-batch that is being read, no longer.
class Loader {
 public:
  /// `when_read`, if any, is called on the loader's thread with each step that was read, before next() gives
  /// it; what it throws is an error of that step. Errors: SpecError sample_order_c1.. (the plan does not
  /// fit), UserError usage (prefetch < 0).
  Loader(std::shared_ptr<const SampleSource> source, LoaderPlan plan,
         std::function<void(const StepBatches&)> when_read = {});

  /// The next step's batches; waits until they are read. Errors of the source arrive here, with the step that
  /// they concern: steps before it are given first, and every later call throws the same error again.
  StepBatches next();

 private:
  void run(const std::stop_token& stop);
  std::optional<StepBatches> read_step(std::int64_t step, const std::stop_token& stop) const;

  std::shared_ptr<const SampleSource> source_;
  LoaderPlan plan_;
  std::function<void(const StepBatches&)> when_read_;
  spec::data::SampleOrder order_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<StepBatches> ready_;
  bool asked_ = false;  ///< next() waits
  std::exception_ptr error_;
  std::jthread thread_;  ///< last, so that it stops before what it uses goes
};

}  // namespace assay::impl::data
