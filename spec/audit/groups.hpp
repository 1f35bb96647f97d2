#pragma once
// The invariants that are not products (spec/audit/relations.hpp), by group: one file each.
#include "spec/audit/evidence.hpp"
#include "spec/audit/interpretation.hpp"
#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {

using Judge = Result (*)(const Evidence& evidence);

// utilisation.cpp
Result judge_mfu_possible(const Evidence& e);
Result judge_hfu(const Evidence& e);
// speed.cpp
/// Adds to `out`, the verdict on printed MFUs, the speed that other printed numbers make.
void judge_speed(const Evidence& e, Result& out);
// values.cpp
Result judge_values(const Evidence& e);
// lone_numbers.cpp
/// Marks in `out` counts since the start that leave the lines around them, and times and rates of 0 beside
/// others of their line that are not; gives the first one's cause, without an id where there is none.
Cause judge_lone_numbers(const Evidence& e, Result& out);
// all_zeros.cpp
/// Marks in `out` times and rates of 0 of a log that prints few others, where other numbers of their line say
/// that they are not; gives the first one's cause unless there is one.
void judge_all_zeros(const Evidence& e, Result& out, Cause& cause);
// lone_numbers.cpp
/// A learning rate far from those of the lines around it, of a run whose schedule is not stated; nothing
/// where there is none.
std::optional<Result> judge_lone_rate(const Evidence& e);
// memory.cpp
Result judge_memory(const Evidence& e);
Result judge_memory_share(const Evidence& e);
// parameter_tensors.cpp
Result judge_parameter_tensors(const Evidence& e);
/// Parameters of the first rank of a model that is cut over ranks; nothing where the log has no such count.
std::optional<Result> judge_first_rank(const RunRecord& record);
// loss.cpp
Result judge_first_loss(const Evidence& e);
/// Of the vocabulary, as printed or the model's. [tokens]
std::optional<double> vocabulary_size(const Evidence& e);
// loss_finite.cpp
Result judge_loss_finite(const Evidence& e);
// loss_possible.cpp
Result judge_loss_possible(const Evidence& e);
// learning_rate.cpp
Result judge_learning_rate(const Evidence& e);
// steps.cpp
Result judge_steps(const Evidence& e);
Result judge_planned_steps(const Evidence& e);
// settings_agree.cpp
Result judge_settings_agree(const Evidence& e);
// resumed.cpp
Result judge_resume(const Evidence& e);
// loss_resumed.cpp
/// Whether the losses after the restart that begins `stretch` (not the first) lie above those before by more
/// than the log's own scatter; then `out` contradicts.
bool judge_loss_resumed(const Evidence& e, std::size_t stretch, Result& out);
// rate_steady.cpp
Result judge_rate_steady(const Evidence& e);
// summaries.cpp
Result judge_average_seconds(const Evidence& e);
Result judge_average_mfu(const Evidence& e);
Result judge_average_rate(const Evidence& e);
// summary_rates.cpp
Result judge_steps_rate(const Evidence& e);
Result judge_sequences_rate(const Evidence& e);
// totals.cpp
Result judge_total_tokens(const Evidence& e);
Result judge_total_seconds(const Evidence& e);
Result judge_total_flops(const Evidence& e);
Result judge_final(const Evidence& e);
// summaries_hugging_face.cpp
Result judge_steps_of_state(const Evidence& e);
Result judge_epochs(const Evidence& e);
Result judge_average_loss(const Evidence& e);
/// Whether time and tokens begin together: a mean loss shows a resume, after which time begins anew.
bool of_one_start(const Evidence& e);
Result judge_average_speed(const Evidence& e);
// tokens_seen.cpp
Result judge_tokens_rate_of_state(const Evidence& e);
/// Tokens/s of all GPUs over the whole run, evaluations and all, by the tokens that its last line has seen;
/// nothing where a number of the summary contradicts.
std::optional<Interval> tokens_rate_of_run(const Evidence& e);
// own_record.cpp
Result judge_gap_closed(const Evidence& e);
Result judge_valid_tokens(const Evidence& e);
Result judge_vocabulary(const Evidence& e);
Result judge_phases(const Evidence& e);
// memory_plan.cpp
Result judge_memory_plan(const Evidence& e);

// line_clock.cpp
Result judge_line_clock(const Evidence& e);
// work_steady.cpp
Result judge_work_steady(const Evidence& e, const Comparisons& comparisons);
/// Leaves out of `fields`, numbers of that line one of which is wrong, those that other quotients of the line
/// clear. Never all.
void clear_by_quotients(const Evidence& e, const Comparisons& comparisons, std::size_t step,
                        std::vector<Field>& fields);

/// The first line of the stretch whose zeros of that number are held: never its first, and behind the zeros
/// that it begins with, where they are no more than half: trainers print some before they measured.
/// lone_numbers.cpp
std::size_t first_measured(const Evidence& e, const Stretch& stretch, Field field);

/// A result that holds so far; `id` and unit are set by the caller.
Result holding(std::int64_t judged);
Result not_judged(std::string missing);
/// Marks one place as contradicting; the first one's numbers are kept.
void contradict(Result& result, double printed, Interval recomputed, std::int64_t line);
/// Every invariant, of evidence at hand.
std::vector<Result> judge(const Evidence& evidence, const Comparisons& comparisons);
/// The product relations once more, under that interpretation.
void rejudge(std::vector<Result>& results, const Comparisons& comparisons,
             const Interpretation& interpretation);
// blame.cpp
/// "this line alone", "these lines alone": of the places that contradict.
std::string lines_alone(const Result& result);
/// Blames that number of a line alone: "line_mfu".
void blame_line(Result& result, Field field);
/// Blames step time or rate of a part of the log, which its stamps deny by `off_by`.
void blame_part(Result& result, Field field);
/// Adds a cause unless it is named already.
void blame(Result& result, std::string id, std::string text);

}  // namespace assay::spec::audit
