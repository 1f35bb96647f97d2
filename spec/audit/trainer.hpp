#pragma once
// What the trainers whose logs are read do, each fact with its source, stated once: rules ask for a property
// and never for a name. trainers.cpp has a row for each trainer.
#include <optional>
#include <string_view>
#include <vector>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// An exponential mean as a trainer forms it: mean = keep x mean + (1 - keep) x own.
struct RunningMean {
  double keep = 0;
  /// Divided by 1 - keep^steps, and its first step, which is printed alone, is left out of it.
  bool corrected = false;
  bool of_lines = false;  ///< it is formed on the lines that are printed, not on every step
};

/// A number that is printed as such a mean.
struct Smoothed {
  Field field = Field::mfu;
  RunningMean mean;
};

/// How trainers count the parameters of a model, where it is not simply all of them.
enum class Counted {
  all,
  padded_vocabulary,  ///< the vocabulary rounded up to a multiple of 128
  beside_positions  ///< without learned positions; biases may be switched off, and vocabularies padded to 64
};

/// A trainer whose log it is, by Format::name. Every property is false, none or empty of a trainer about
/// which nothing is known, but for `splits_models`: what that leaves open is not judged.
struct Trainer {
  std::string_view name;

  // Ranks.
  bool splits_models = true;  ///< tensors or layers of a model may lie on several ranks
  /// Settings without which a log does not say how far models are split over its GPUs: their number is then
  /// not the number of ranks that read different data.
  std::vector<Setting> axes = {};
  /// The mesh holds every rank of the launcher: its axes make the number of GPUs, each rank is on one, and
  /// each prints its lines unless the launcher filters them, without saying which it is.
  bool mesh_of_all_ranks = false;
  bool one_count_of_ranks = false;  ///< prints one number as the GPUs and as the data-parallel ranks

  // The batch.
  bool divides_accumulation = false;  ///< each rank runs the configured accumulation / ranks, always
  /// Prints as the tokens of a step micro x configured accumulation x T: it divides the passes by the ranks
  /// and multiplies by them again.
  bool batch_of_configured_passes = false;
  bool batch_of_whole_passes = false;   ///< a batch is a number of passes of all GPUs, or it does not start
  bool lines_print_set_batch = false;   ///< the tokens on its lines are the configured ones, not counted ones
  bool last_batches_are_small = false;  ///< the last step of a pass over the data has what is left of it
  /// Tokens since the start that grow alike are the tokens of a step, where nothing else says how many.
  bool growth_is_batch = false;
  std::string_view usual_slip = {};  ///< Change::id of the mistake that its source makes on several ranks

  // Numbers of its lines.
  /// Divides by this peak whatever the GPU, [flop/s]; 0: it does not.
  double constant_peak = 0;
  std::string_view constant_peak_in_words = {};  ///< whose it is, as an MFU above 1 is explained
  /// Where the blocks' products are of a narrower dtype than bf16, its MFU is the time that all products
  /// take, each at the peak of its own dtype, and head and attention are of bf16.
  bool peak_of_each_product = false;
  bool means_known = false;               ///< its source says which of its numbers are means, and of what
  std::optional<Smoothed> smoothed = {};  ///< the number that is a running mean
  bool means_since_line_before = false;   ///< other means are of the steps since the line before
  /// Its tokens/s are of the time since the line before, or since a validation: so between two lines all of
  /// the time but that of validations is in the rate.
  bool rate_since_line_before = false;
  bool timer_pauses = false;  ///< its timer stops for evaluation and saving

  bool own_gradient_norm = false;  ///< its own program's: -1 is not DeepSpeed's word for one that overflowed
  bool states_all_sizes = false;   ///< every size as it was: neither 0 nor -1 stands for "not set"

  // The model.
  Counted counted = Counted::all;
  /// The matrices, vectors and their entries that it prints are all those of a GPT-2.
  bool prints_tensors_of_gpt2 = false;
  bool counts_tensors_alone = false;  ///< and its log has no other count of parameters
  bool trains_gpt2_shapes = false;    ///< every model is a GPT-2 of the printed sizes
  bool prints_whole_shape = false;    ///< the header leaves nothing of a dense model's shape open
  bool counts_before_splitting =
      false;                        ///< the count of parameters is of the model before it is cut in stages
  bool hides_width_of_mlp = false;  ///< the MLP's inner width is not in its log: that of a preset holds
  bool vocabulary_of_tokenizer = false;  ///< some versions take it from there and not from the model's preset
  bool trains_several_mlps = false;      ///< gated or not, and experts: without a word of which, any of them
  /// Its FLOPs are 6 (N - tables) + 12 L D T of its own dense models, by numbers that it prints.
  bool flops_of_printed_count = false;
  bool states_own_vocabulary = false;  ///< the vocabulary is the model's own, never padded

  // The schedule.
  bool only_cosine = false;          ///< it has no other schedule of the learning rate
  bool prints_all_settings = false;  ///< what is not there is lost, and may have been anything
  /// Share of the run behind which a decay at its end begins, where no line says so; 0: none.
  double decay_begins = 0;
  bool numbering_known = false;  ///< the schedule's step is the one of the line

  // The log as a whole.
  bool logs_every_step = false;   ///< up to the last one
  bool saved_with_state = false;  ///< its log goes on from a saved state: a step twice is no restart
  /// Leaves losses that are no number out of the mean that it prints, which is 0.0 where none was one.
  bool leaves_out_nan_losses = false;
  bool summary_of_state = false;  ///< states planned passes, mean loss and speed of a run as a whole
  /// Its log is a whole record of the run: no option of the command line says what it lacks, which may be
  /// numbers that no other log has (may_stand_in).
  bool whole_record = false;
  /// Its log is a file of rows, each written once: no two handlers of messages print one twice.
  bool writes_rows = false;
  /// Several printers show one step, each with its own rounding, and one may leave out what another shows.
  bool several_printers = false;
  /// Lines may name no step: they stand at the multiples of one interval.
  bool lines_without_steps = false;
  /// Another program may have rounded its rates to whole units and written them with a decimal.
  bool rounded_by_others = false;
};

/// The row of the trainer of that name; of an unknown one a row without a name that takes nothing for
/// granted.
const Trainer& trainer_called(std::string_view name);
inline const Trainer& trainer_of(const RunRecord& record) { return trainer_called(record.format.name); }
const std::vector<Trainer>& trainers();  ///< all rows

}  // namespace assay::spec::audit
