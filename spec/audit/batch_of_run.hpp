#pragma once
// How many sequences a step of Hugging Face's Trainer has on average, as its summary counts them. By
// `max_steps` they are the batch, every step. By epochs they are all samples of the data times the passes,
// over the steps that these are planned to take: the last batch of a pass may be short, or left out or added
// to another one's steps where the pass is no whole number of them, and the mean is no whole number. Source:
// huggingface/transformers trainer.py, num_train_samples and num_update_steps_per_epoch.
#include <optional>
#include <string>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

/// The sequences of one step, as stated or made of micro-batch, passes and ranks. [sequences]
std::optional<Interval> stated_batch(const Evidence& e);

/// The mean over the steps of a summary, where all but the last step of a pass over the data have `batch`.
/// Trainers other than Hugging Face's: `batch`. [sequences]
Interval mean_of_batches(const Evidence& e, Interval batch);

/// Which means of sequences per step a run may have.
struct BatchOfRun {
  std::optional<Interval> mean;  ///< where the batch is stated [sequences]
  double passes = 0;             ///< else whole multiples of it, above 0; 0: whatever mean
  std::string not_so;            ///< what is said of a mean that is not allowed
  bool allows(Interval sequences) const;
};
BatchOfRun batch_of_run(const Evidence& e);

}  // namespace assay::spec::audit
