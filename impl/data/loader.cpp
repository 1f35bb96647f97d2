#include "impl/data/loader.hpp"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <utility>

#include "spec/error.hpp"

namespace assay::impl::data {

spec::data::SampleOrder sample_order(const LoaderPlan& plan, const SampleSource& source) {
  return spec::data::order_of_sources(plan.seed, {plan.sequences, plan.ramp}, plan.held_out,
                                      source.samples_of_sources(), plan.mixture);
}

Loader::Loader(std::shared_ptr<const SampleSource> source, LoaderPlan plan,
               std::function<void(const StepBatches&)> when_read)
    : source_(std::move(source)),
      plan_(std::move(plan)),
      when_read_(std::move(when_read)),
      order_(sample_order(plan_, *source_)) {
  if (plan_.prefetch < 0)
    throw UserError(ExitCode::usage, "the loader reads " + std::to_string(plan_.prefetch) +
                                         " steps ahead; it must be 0 or more");
  // A plan that does not fit fails here, where the trainer starts, and not on the thread.
  spec::data::sample(order_, plan_.start_step, 0);
  spec::data::first_index(order_, plan_.split, plan_.rank, 0);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

StepBatches Loader::next() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  asked_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !ready_.empty() || error_; });
  asked_ = false;
  if (ready_.empty()) std::rethrow_exception(error_);
  StepBatches step = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  step.wait_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return step;
}

void Loader::run(const std::stop_token& stop) {
  sigset_t all;  // signals go to the trainer's thread, which knows what to do with them
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  try {
    for (std::int64_t step = plan_.start_step;; ++step) {
      {
        std::unique_lock lock(mutex_);
        const auto room = [&] {
          return static_cast<std::int64_t>(ready_.size()) < plan_.prefetch || (asked_ && ready_.empty());
        };
        if (!changed_.wait(lock, stop, room)) return;
      }
      std::optional<StepBatches> batches = read_step(step, stop);
      if (!batches) return;
      if (when_read_) when_read_(*batches);
      const std::scoped_lock lock(mutex_);
      ready_.push_back(std::move(*batches));
      changed_.notify_all();
    }
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

std::optional<StepBatches> Loader::read_step(std::int64_t step, const std::stop_token& stop) const {
  StepBatches batches{step, {}, spec::data::sample_hash(spec::data::step_samples(order_, step)), 0};
  const std::int64_t micro_batches = spec::data::accumulation(order_, plan_.split, step);
  for (std::int64_t m = 0; m < micro_batches; ++m) {
    if (stop.stop_requested()) return std::nullopt;
    const auto samples = spec::data::micro_batch_samples(order_, plan_.split, step, plan_.rank, m);
    batches.micro_batches.push_back(read_micro_batch(*source_, samples, plan_.end_of_document));
    if (!order_.mixture) continue;
    for (const std::int64_t sample : samples)
      batches.micro_batches.back().sources.push_back(
          static_cast<std::int64_t>(spec::data::source_of(order_, sample)));
  }
  return batches;
}

}  // namespace assay::impl::data
