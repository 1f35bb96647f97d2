// What each trainer does: a row for each. Sources: readers/formats.md names repositories and commits.
#include <algorithm>

#include "spec/audit/trainer.hpp"

namespace assay::spec::audit {
namespace {

/// Its own program: it prints of its record what it did. spec/record/record.md: an event a line, and of the
/// first one all that was planned.
Trainer assay_row() {
  return {.name = "assay",
          .splits_models = false,
          .own_gradient_norm = true,
          .states_all_sizes = true,
          .states_own_vocabulary = true,
          .only_cosine = true,
          .numbering_known = true,
          .logs_every_step = true,
          .whole_record = true,
          .writes_rows = true};
}

/// github.com/aaronzhfeng/llm_TII, enhanced_training_system/train.py at 8826d8c: the rate is made of one
/// rank's sequences, the peak of all GPUs'.
Trainer llm_tii_row() {
  return {.name = "llm_tii",
          .splits_models = false,
          .one_count_of_ranks = true,
          .divides_accumulation = true,
          .usual_slip = "rate_of_one_rank",
          .means_known = true,
          .only_cosine = true};
}

/// pytorch/torchtitan: parallel_dims.py, _validate (the mesh); metrics.py (rates since the line before);
/// utils.py, get_nparams_and_flops; train.py counts before it cuts a model into stages.
Trainer torchtitan_row() {
  return {.name = "torchtitan",
          .axes = {Setting::tensor_parallel, Setting::pipeline_parallel},
          .mesh_of_all_ranks = true,
          .means_known = true,
          .means_since_line_before = true,
          .rate_since_line_before = true,
          .own_gradient_norm = true,
          .prints_whole_shape = true,
          .counts_before_splitting = true,
          .hides_width_of_mlp = true,
          .vocabulary_of_tokenizer = true,
          .flops_of_printed_count = true};
}

/// Its axes stand on one line, with the data-parallel ranks.
Trainer kempnerforge_row() {
  return {.name = "kempnerforge",
          .axes = {Setting::data_parallel},
          .means_known = true,
          .prints_whole_shape = true};
}

/// NVIDIA/Megatron-LM: training.py stops the timer "interval-time" around evaluation and saving; arguments.py
/// prints every argument, and lines print the steps of the run.
Trainer megatron_row() {
  return {.name = "megatron",
          .axes = {Setting::tensor_parallel, Setting::pipeline_parallel},
          .means_known = true,
          .means_since_line_before = true,
          .timer_pauses = true,
          .prints_whole_shape = true,
          .trains_several_mlps = true,
          .prints_all_settings = true};
}

Trainer nanotron_row() {
  return {.name = "nanotron",
          .axes = {Setting::tensor_parallel, Setting::pipeline_parallel},
          .lines_print_set_batch = true,
          .means_known = true};
}

/// karpathy/nanoGPT: model.py, estimate_mfu (312e12, an A100's), get_num_params (without positions) and
/// configure_optimizers (its tensors); train.py, meta_vocab_size, the batch, and running_mfu (0.9, on lines
/// that are printed, the first as it is).
Trainer nanogpt_row() {
  return {.name = "nanogpt",
          .splits_models = false,
          .divides_accumulation = true,
          .batch_of_configured_passes = true,
          .constant_peak = 312e12,
          .constant_peak_in_words = "nanoGPT divides by the peak of an A100, whatever the GPU",
          .means_known = true,
          .smoothed = Smoothed{Field::mfu, {0.9, false, true}},
          .counted = Counted::beside_positions,
          .prints_tensors_of_gpt2 = true,
          .only_cosine = true};
}

/// karpathy/build-nanogpt, train_gpt2.py: configure_optimizers counts tensors; the whole model's parameters
/// are printed nowhere. Each line's time and tokens/s are those of its step.
Trainer build_nanogpt_row() {
  return {.name = "build_nanogpt",
          .splits_models = false,
          .means_known = true,
          .prints_tensors_of_gpt2 = true,
          .counts_tensors_alone = true};
}

/// karpathy/llm.c at 00247dc: train_gpt2.cu divides the batch by one pass of all ranks, each on a GPU of its
/// own, and refuses what leaves a rest; it smooths tokens/s from its second step on (ema_tokens_per_second,
/// 0.95, divided by 1 - 0.95^step). schedulers.h: a "wsd" decays over the last fifth.
Trainer llmc_row() {
  return {.name = "llmc",
          .splits_models = false,
          .batch_of_whole_passes = true,
          .means_known = true,
          .smoothed = Smoothed{Field::tokens_per_second, {0.95, true, false}},
          .counted = Counted::padded_vocabulary,
          .trains_gpt2_shapes = true,
          .decay_begins = 0.8};
}

Trainer llmq_row() {
  return {.name = "llmq",
          .splits_models = false,
          .peak_of_each_product = true,
          .means_known = true,
          .only_cosine = true};
}

/// huggingface/transformers, trainer.py: _inner_training_loop (steps of a pass, and what is left for its
/// last; logging_nan_inf_filter), _maybe_log_save_evaluate; trainer_callback.py: the log is part of the state
/// that is saved; PrinterCallback and ProgressCallback print the dictionary of a step without its number, a
/// line every logging_steps, and hiyouga/LLaMA-Factory, train/callbacks.py, LogCallback prints it once more.
Trainer hugging_face_row() {
  return {.name = "hugging_face",
          .last_batches_are_small = true,
          .saved_with_state = true,
          .leaves_out_nan_losses = true,
          .summary_of_state = true,
          .several_printers = true,
          .lines_without_steps = true};
}

/// Tables and documents whose columns the command line names: nothing is known of who wrote them. Python's
/// round(x, 0) and data frames leave "144990.0" of a rate.
Trainer mapped_row() {
  return {.name = "mapped", .growth_is_batch = true, .writes_rows = true, .rounded_by_others = true};
}

}  // namespace

const std::vector<Trainer>& trainers() {
  static const std::vector<Trainer> all = {assay_row(),        llm_tii_row(),       torchtitan_row(),
                                           kempnerforge_row(), megatron_row(),      nanotron_row(),
                                           nanogpt_row(),      build_nanogpt_row(), llmc_row(),
                                           llmq_row(),         hugging_face_row(),  mapped_row()};
  return all;
}

const Trainer& trainer_called(std::string_view name) {
  static const Trainer unknown;
  const auto found = std::find_if(trainers().begin(), trainers().end(),
                                  [&](const Trainer& one) { return one.name == name; });
  return found == trainers().end() ? unknown : *found;
}

}  // namespace assay::spec::audit
