#pragma once
// What invariants and hypotheses rest on: a record, and what follows from it about model, GPU and batch.
// Derived once, so that every invariant stays a pure function of the record.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/audit/run_record.hpp"
#include "spec/audit/trainer.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/interval.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec::audit {

/// The numbers that may stand behind a printed one: its rounding, and that of a printer that cuts digits off.
Interval wide(const Printed& printed);

/// By how much rounding to three digits moves a number at most: half a unit of the third, of 100. Data sheets
/// and trainers print peaks so (989 for 989.4, 756 for 755.9). [share]
constexpr double off_by_three_digits = 0.005;

/// The peaks of one GPU that trainers write for `peak`: the data sheet's rounded to three digits, up or down,
/// and so half of its sparse one where the sheet's two differ by rounding alone (990 beside 1,979). Trainers'
/// tables hold 989, 989.4, 989.5 and 990 for an H100, 1,300 and 1,307.4 for an MI300X. [flop/s]
Interval as_written(const Peak& peak);
/// The same one by one, the data sheet's first; also half of a sparse one that is rounded so. [flop/s]
std::vector<double> peaks_as_written(const Peak& peak);

/// Printed, above zero, and of a size that products of several such numbers can be taken.
inline bool usable(const std::optional<Printed>& printed) {
  return printed && printed->low > 1e-60 && printed->high < 1e60;
}

/// The setting's number, where it is usable.
std::optional<double> number_in(const RunRecord& record, Setting setting);

/// Consecutive steps, numbers rising: a restart begins a new stretch.
struct Stretch {
  std::size_t begin = 0, end = 0;  ///< half-open range of Evidence::steps
};

/// Every number of the two lines is the same, the stamp too.
bool same_numbers(const Step& a, const Step& b);

/// Whether line `i` of `steps` does the step of the line before again, after a restart from an earlier step
/// between two logged ones: the log says so there, or other numbers stand beside the same step and the log
/// goes on. The same numbers twice, or every step twice, are copies.
bool done_again(const RunRecord& record, const std::vector<const Step*>& steps, std::size_t i);

struct Evidence {
  explicit Evidence(const RunRecord& record);

  const RunRecord& record;
  const Trainer& trainer;            ///< of the record: rules ask it, not Format::name
  std::vector<std::int64_t> pauses;  ///< lines of evaluations and of saving, RunRecord::pauses among them
  std::vector<const Step*> steps;    ///< of the first rank that printed
  double line_distance = 0;          ///< usual_distance of the steps: asked for every line
  std::vector<Stretch> stretches;    ///< all steps, split where the number falls back or a step is done again
  std::optional<ModelSpec> model;    ///< named, or put together from the settings
  /// How the model is known: "named", "defined" (the log holds it whole), "shape as printed", "parameters as
  /// printed", `whole_shape`, or `vocabulary_of_count`.
  std::string model_basis;
  GpuMatch gpu;                           ///< of the printed name
  Precision precision = Precision::bf16;  ///< bf16 where none is stated
  bool precision_known = true;            ///< false where one is stated that no data sheet has a peak of
  std::optional<double> dense_peak;       ///< of one GPU at `precision` [flop/s]
  std::optional<Interval> written_peak;   ///< that peak as trainers round it [flop/s]
  std::optional<double> gpus, ranks;      ///< devices; data-parallel ranks
  /// Ranks that there are at the least, by the highest number of those that print, where the trainer runs one
  /// on every GPU of its mesh; 0: not known.
  double ranks_printing = 0;
  bool axes_known = true;  ///< false where the log of a trainer that splits models does not say how far
  std::optional<Interval> sequence_length, micro, accumulation;
  bool accumulation_is_configured = false;  ///< the log states the configured number alone
  std::optional<Interval> tokens_per_step;  ///< as printed, or the product of what is printed
  std::string tokens_basis;                 ///< "as printed", "sequences x T", ...

  std::optional<Interval> of(Setting setting) const;
  /// FLOPs per token that step `step` rests on: printed there, or in the settings. [flop]
  std::optional<Interval> flops_per_token(const Step& step) const;
  /// Printed peak, of the step or of the settings. [flop/s]
  const Printed* printed_peak(const Step& step) const;
  const Printed* printed_peak() const;  ///< of the settings, or the first step that has one
  bool averaged(Field field) const;
  bool on_cpu() const { return record.device == "cpu"; }
  /// What is missing where a GPU's facts are needed.
  const char* no_gpu() const;
};

/// What a trainer's word for its dtype computes in: "bfloat16", "16-mixed", "fp8_hybrid",
/// "torch.float8_e4m3fn". Nothing for a word that none of them is ("int4").
std::optional<Precision> computing_precision(std::string_view word);

/// Whether a trainer's word for its schedule is one whose shape is known ("cosine_with_min_lr", "WSD";
/// rate_schedule.cpp).
bool schedule_known(const std::string& schedule);

/// Printed numbers that stand for "not measured": -1 and -100 % of trainers without a peak, and NaN.
bool not_measured(const Printed& share);

/// How a printed count of parameters fits a model.
enum class CountFit {
  exactly,
  padded,          ///< with the vocabulary rounded up to a multiple of 64 .. 1,024
  but_for_tables,  ///< but for a table of embeddings, or one gain per layer
  nearly,          ///< to a thousandth
  no
};
CountFit count_fits(const ModelSpec& model, const Printed& parameters);

/// Evidence::model_basis where the log prints a shape that leaves nothing open, and a count that no reading
/// of it explains.
constexpr std::string_view whole_shape = "whole shape, and another count";

/// Evidence::model_basis where the shape is printed but for the vocabulary that ran, which the count says: it
/// cannot be held to the shape as well.
constexpr std::string_view vocabulary_of_count = "shape as printed, and the vocabulary of its count";

/// Counts without the positions that a model learns, as trainers print them; empty where it learns none.
/// `of_nanogpt`: biases may be switched off, and the vocabulary rounded up to a multiple of 64 (model.py,
/// get_num_params; train.py, meta_vocab_size).
std::vector<double> counts_beside_positions(const ModelSpec& model, bool of_nanogpt);

// model_of.cpp
/// The model that the log defines or names, or the one put together from the settings, or the only built-in
/// model whose parameter count and shape are as printed. `basis` as Evidence::model_basis.
std::optional<ModelSpec> model_of(const RunRecord& record, std::string& basis);
/// The built-in model that the log calls its own as its trainer does ("llama3 8B"); nullptr where none is.
const ModelSpec* model_called(const RunRecord& record);

}  // namespace assay::spec::audit
