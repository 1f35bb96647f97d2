#include "spec/audit/invariants.hpp"

#include "spec/audit/identities.hpp"

namespace assay::spec::audit {

const std::vector<Invariant>& invariants() {
  static const std::vector<Invariant> listed = {
      {"ranks", "GPUs = data-parallel x tensor x pipeline x context ranks",
       "The parallel axes multiply to the number of devices; experts are spread inside the data-parallel "
       "axis.",
       Unit::none},
      {"sequences", "sequences per step = micro-batch x accumulation x data-parallel ranks",
       "Each rank runs `accumulation` passes of `micro` sequences between two updates. Not judged where the "
       "log "
       "states only a configured accumulation that the trainer may still divide, or none: there one pass of "
       "all ranks is the least that a step has.",
       Unit::none},
      {"tokens_per_step", "tokens per step = sequences per step x sequence length",
       "Exact integers: any difference contradicts.", Unit::tokens},
      {"step_tokens", "tokens of each step = tokens per step",
       "The number that a step line prints against the setting.", Unit::tokens},
      {"step_sequences", "sequences of each step = sequences per step",
       "The batch that a step line prints against the configured one. Where the lines, and what they count "
       "since the start, say another, that one was performed. Not judged where the settings let the batch "
       "grow.",
       Unit::none},
      {"settings_agree", "a setting that two lines of a header say is one number",
       "Of llm.c's tables and its line of the batch, KempnerForge's mesh, configuration and start: one of "
       "two "
       "that differ is another run's. -1 and 0 are words for \"not set\", and a header that is printed again "
       "before any step takes the place of the one before.",
       Unit::none},
      {"rate_time", "tokens/s x step time = tokens of the step",
       "The recomputed rate is tokens / step time. An unlabelled rate may be all GPUs' or one rank's; "
       "running means "
       "are held only to the range of the steps that they can run over.",
       Unit::tokens_per_second},
      {"sequences_rate", "sequences/s x step time = sequences of the step",
       "Both of the same line, and of the batch that the line prints, or else the configured one.",
       Unit::none},
      {"gpu_rate", "tokens/s of one GPU x GPUs = tokens/s of all",
       "Where a line prints both. The number of GPUs is stated, or the one that the first line's two make.",
       Unit::tokens_per_second},
      {"flops_rate", "achieved FLOP/s = FLOPs/token x tokens/s",
       "Both may be one GPU's where the log does not say.", Unit::flops_per_second},
      {"flops_rate_of_batch", "achieved FLOP/s = FLOPs/token x tokens per step / step time",
       "Used where no tokens/s is printed. FLOPs/token by the trainer's convention when it prints none.",
       Unit::flops_per_second},
      {"mfu", "MFU = FLOPs/token x tokens/s / peak",
       "Tokens/s of all GPUs over the peak of all GPUs, or of one over one; never one over all. The printed "
       "peak is "
       "used, whatever it is; whether it is the right one is the invariant `peak`.",
       Unit::share},
      {"mfu_of_flops_rate", "MFU = achieved FLOP/s / peak", "As `mfu`, from the printed FLOP/s.",
       Unit::share},
      {"mfu_of_batch", "MFU = FLOPs/token x tokens per step / step time / peak",
       "Used where no rate is printed.", Unit::share},
      {"mfu_possible", "0 <= MFU <= 100 %, 0 <= HFU <= 100 %",
       "Of whatever peak the trainer divides by. -1 and -100 % are read as \"not measured\". Also the speed "
       "that printed tokens/s, tokens and time, "
       "or "
       "FLOP/s make, at the least (`exact`, unlabelled numbers those of all GPUs), against the dense peak, "
       "whether an MFU is printed or not.",
       Unit::share},
      {"hfu", "HFU >= MFU, or as much less as attention leaves out between documents",
       "What was executed is at least what the model needs. MFU counts the causal pairs of a whole sequence; "
       "where "
       "attention stops at the ends of documents, pairs of different documents are not executed, and HFU may "
       "be below "
       "MFU: at the least the model with documents of one token. Where the log says that a sequence is one "
       "document, HFU "
       "below MFU contradicts; where it does not say, and no model gives the bound, nothing below is judged "
       "wrong.",
       Unit::share},
      {"peak", "peak = dense peak of the GPU at its dtype x GPUs",
       "Peaks of spec/hardware, rounded as trainers round them (989 to 990 for 989.4), or within 0.5 %. A "
       "sparse peak "
       "contradicts: no "
       "training uses 2:4 sparsity by default. bf16 is assumed where no dtype is printed.",
       Unit::flops_per_second},
      {"expected_rate", "expected tokens/s at 50 % MFU = half the peak / FLOPs per token",
       "Of the printed numbers.", Unit::tokens_per_second},
      {"flops_per_token", "FLOPs/token as a named convention counts them",
       "The trainer's own convention where it is known, else any of spec/flops (`assay flops`).",
       Unit::flops},
      {"parameters", "parameters = those of the model's shape",
       "Of a named model, or of the printed shape; what a shape leaves open (tied head, query norm, "
       "key/value heads) is "
       "settled by the printed count.",
       Unit::none},
      {"parameters_nonembedding", "parameters without embedding < parameters, by the embedding's size",
       "With or without the head's table, or without the table of positions.", Unit::none},
      {"ffn_flops_per_layer", "FLOPs of a layer's MLP = 2 x T x the entries of its matrices",
       "Forward, over one sequence, of a dense model: what llm_TII prints beside the MFU, made of the inner "
       "width that ran.",
       Unit::flops},
      {"parameter_tensors", "decayed + non-decayed parameters = those of the model",
       "What nanoGPT counts for its optimizer, beside its count without positions: the two groups together "
       "are "
       "the model that has that count, with its positions. Judged where there are as many tensors as its "
       "layers have. Where the entries are GPT-2's to the last one, blocks are alike: beside the tables and "
       "the last norm, the tensors are a multiple of the layers, however a fork cuts them. build-nanogpt "
       "counts no other parameters: its matrices have whole rows of the width that its vectors make.",
       Unit::none},
      {"device_memory", "memory of the GPU as its data sheet says",
       "A driver may keep up to a tenth for itself, and reports no more than is mounted, which may be more "
       "than "
       "the sheet says; GB is 10^9, the sheets' GB are 2^30.",
       Unit::bytes},
      {"memory", "allocated <= peak; allocated, peak, reserved <= memory of the GPU",
       "Held to the smaller of what the log prints and the data sheet.", Unit::bytes},
      {"memory_share", "share of the memory in use = GB in use / memory of the GPU",
       "The reserved memory where it is printed, else the peak's or the allocated. Of the memory of the GPU "
       "as "
       "printed.",
       Unit::share},
      {"first_loss", "first loss = log V + what initial weights add",
       "Only of a log that begins at its first step. As the trainer expected it (5 standard deviations), "
       "else "
       "what weights drawn with 0.02, or one over the root of the width, and a batch of which half may be "
       "one "
       "token (blanks of code) make, to 5 deviations: with V = 50,257, D = 768 and a tied head log V - 4.8 "
       "to "
       "+ 3.0. Where no width is stated, that of the widest known model and a quarter more. A loss below is "
       "judged only where the log says that its weights are new: fine-tuning begins "
       "there.",
       Unit::nats},
      {"loss_finite", "loss and gradient norm are finite",
       "After a NaN no step trains a model. A step that the trainer says it left out for such a loss does no "
       "harm where losses go on; a log that ends in such steps, or whose summary's loss is no number, "
       "contradicts.",
       Unit::nats},
      {"values_possible",
       "times, rates, counts and memory are finite and not below 0, gradient norms not below 0",
       "NaN is told as \"not measured\" and not judged; a time may be rounded to 0. A gradient norm of -1 is "
       "what DeepSpeed returns for one that overflowed, told and not judged but of trainers that compute it "
       "themselves; any other below 0 is none. Of our own record also what its documentation rules out (a "
       "clip_coefficient above 1). A count since the start "
       "that "
       "leaves the counts of the lines around it contradicts, and so does a time or rate of 0 beside others "
       "of "
       "its line, where the usual one is ten times what may be printed as 0; where most are 0, one that the "
       "others of its line make as far from it.",
       Unit::none},
      {"loss_possible", "0 <= loss <= 1,000 nats, not nothing at once, and not below the entropy of its data",
       "A loss below 0.0001 is told: examples known by heart, a loss that is no cross-entropy, or targets in "
       "the input. One that is nothing from one line to the next, and to the end, contradicts, where it fell "
       "by "
       "a nat and by ten times the usual distance of neighbouring lines; so does nothing on the first line "
       "of "
       "new weights. A diverged model is worse than "
       "log V, but its logits bound its loss: behind a final norm, with a head of its first size, they "
       "differ by 0.04 D. Beyond 1,000 nats the number is taken for no mean over tokens. The floor is "
       "known where the record states it; the mean of the last 20 steps may lie below by chance only.",
       Unit::nats},
      {"learning_rate", "learning rate = the schedule at that step",
       "Any of the usual ways of numbering: steps from 0 or 1, warm-up divided by w or w + 1, last step at "
       "the end or "
       "before. Where the schedule is not stated in full: no more than its highest rate. Where it is not "
       "stated "
       "at all: one line's rate is not ten times those around it, nor a hundredth of them.",
       Unit::none},
      {"steps", "step numbers rise by the logging interval: none missing, doubled or out of order",
       "The first and last interval may be shorter. A longer distance that stays to the end, three times at "
       "least, is another interval. A number that falls back and goes on from there is a "
       "restart; so is a step that stands twice with other numbers. Where no distance is that of most lines, "
       "somebody chose them, and none is taken for lost. Two lines and more that stand a second "
       "time as they are, stamps too, or three without stamps whose times are the same, are copies. Behind a "
       "line that says that others were "
       "left out (\"...\", \"[snip]\") no step is lost. Behind a stamp that falls back by more than two days "
       "the "
       "steps are another run's.",
       Unit::steps},
      {"planned_steps", "steps of the run, behind each step's number = those that are configured",
       "As in `iteration 500/ 1000`. No step's number is beyond them. Not judged where no setting states "
       "them. A run that says that it ended as planned did as many; so did one of Hugging Face's whose epoch "
       "is the last planned one and whose steps/s times its time are as many steps as were done.",
       Unit::steps},
      {"epochs", "epochs begun <= epochs planned",
       "Hugging Face's state: the epoch of a step, to its last digit, that of the state, and "
       "`num_train_epochs`, which is rounded up. The state's goes on from the last line's as the lines' do, "
       "up "
       "to four times as fast, and a step more for each pass that ends.",
       Unit::none},
      {"rate_steady", "no step is far faster than the others",
       "Steps may stall; more than three times the best tenth contradicts, or as much more as three times "
       "the spread of the steps reaches beyond it, ten times at most. Times are held for the batch that "
       "their "
       "line prints, where all do. A step that a second clock (the times of its parts, stamps of "
       "lines) shows to be that fast was, and so were five and more in a row that are alike, up to ten times "
       "the best tenth. The first step is left out.",
       Unit::tokens_per_second},
      {"work_steady", "FLOP/s / rate, MFU / rate, MFU / FLOP/s and rate x time are the same on every line",
       "Where no setting says what they are: a line that leaves what the others share, alone among its "
       "neighbours, contradicts, and the number is named that all its failing quotients rest on. FLOP/s and "
       "MFU are held to the time where no rate is printed, times to the batch that their line prints. Where "
       "more lines leave it (another batch, another length), MFU / FLOP/s alone is judged: it is one part in "
       "the peak, and one log has one. Not judged of trainers whose means are not known.",
       Unit::none},
      {"resume", "after a restart tokens, learning rate and loss go on from where they were",
       "Against the last step before the restart that is not later. Of the loss, five lines against the same "
       "steps before, or the last ones: the median may rise by five times the usual distance of neighbouring "
       "lines. Not judged of fewer than three lines, or eight such distances. Where the program goes on with "
       "the next step: five lines against the last five, by how far lines lie from between their neighbours, "
       "and three times the most that five lines rose before; not where the learning rate doubles there. It "
       "contradicts only a third of the way back to the loss of new weights, or of the run's beginning: "
       "other data "
       "raise it too, which is told.",
       Unit::none},
      {"tokens_total", "tokens since the start grow by tokens per step",
       "Between restarts, from the first line on.", Unit::tokens},
      {"sequences_total", "sequences since the start grow by sequences per step",
       "Between restarts. Of a batch that changes: from line to line, by the batch that they print; of steps "
       "between two lines by one between theirs, where it only grows.",
       Unit::none},
      {"wall_clock", "step times add up to the clock",
       "The median of up to nine windows, so that rare pauses do not count: a hundredth of a second more, "
       "25 % less than the clock. Steps that are not logged lie no further outside the logged ones, as "
       "printed, than these lie apart, and below them also what logging may add: a tenth, or 5 ms. Of fewer "
       "than 8 lines, within the root of 2 of theirs. So do steps since the line before, unless the log says "
       "that its lines are as far apart: lines may be left out (of four to seven a tenth further). Lines of "
       "evaluation and saving (Megatron's), "
       "and a clock that runs like the steps in one of twenty windows of some length, explain what it shows "
       "more. What the clock shows more in every stretch than means over the steps since the line before, "
       "from a twentieth on, is told, and no contradiction: evaluation and saving may lie between all lines, "
       "and Megatron's timer, among others', stands still in them.",
       Unit::seconds},
      {"rate_wall_clock", "tokens / clock = tokens/s",
       "Where no step time is printed; as `wall_clock`. A rate that may be a mean since the start, whose "
       "first steps are slow, may say the root of 2 more; where not every step is logged, the clock may show "
       "four times as much. What it shows more in every stretch than a rate of all the time since the line "
       "before (torchtitan's), from a twentieth on, is told, and no contradiction: a program may pause "
       "between all lines. Of a log with lines of validations, whose time torchtitan's rates leave out, the "
       "clock may show any time more. Where nearly every line's rate is a whole multiple of the tokens since "
       "the start over the time since the start, to half a hundredth, it is held to that mean, with no "
       "pause. "
       "Where the number of GPUs is not known, only a rate that is too high for all of them contradicts.",
       Unit::seconds},
      {"line_clock", "the steps since the line before take as long as the stamps of the two lines show",
       "By the step time, or the rate, of each line: of a single step, or a mean over the steps since the "
       "line "
       "before. Pauses make a window longer, so a line contradicts that is a quarter longer than its stamps "
       "allow, or a quarter shorter and as fast as no other line. More of them at once are a clock of "
       "another "
       "kind, and are not judged.",
       Unit::seconds},
      {"average_seconds", "average step time = mean of the steps",
       "With or without the first ones; where not all are logged, as for "
       "`wall_clock`, and up to 5 % slower for pauses.",
       Unit::seconds},
      {"average_mfu", "average MFU = mean of the steps", "As `average_seconds`.", Unit::share},
      {"average_rate", "average tokens/s = total tokens / total time, or the mean of the steps",
       "As `average_seconds`.", Unit::tokens_per_second},
      {"average_loss", "mean loss of a summary = mean of the logged losses, each for its steps",
       "Hugging Face's `train_loss`: at most as if each loss held since the line before; less is what a "
       "resumed "
       "run prints.",
       Unit::none},
      {"average_steps_rate", "steps/s of a summary = steps / total time",
       "The last step of the log, or the planned number; where that is not stated, steps behind the last "
       "line "
       "may be there, up to the next one; steps before a resume may be left out.",
       Unit::none},
      {"average_sequences_rate", "sequences/s of a summary = steps x sequences per step / total time",
       "As `average_steps_rate`; with the printed steps/s where there are no step numbers.", Unit::none},
      {"total_tokens", "total tokens = steps x tokens per step",
       "Steps numbered from 0 or 1, or since a resume.", Unit::tokens},
      {"total_seconds", "total time >= sum of the step times",
       "Steps that are not logged as for `wall_clock`.", Unit::seconds},
      {"total_flops", "total FLOPs = 6 x tokens x parameters without embeddings",
       "As Hugging Face's Trainer counts `total_flos`: no attention, every token of the inputs, padding too. "
       "At "
       "least the tokens printed; at most the steps' whole sequences and a tenth for adapters.",
       Unit::flops},
      {"average_speed", "FLOPs of a run / total time <= dense peak x GPUs",
       "What Hugging Face's tokens, rate of tokens and `total_flos` make at the least: no attention, "
       "adapters "
       "alone trained. After a resume, which the mean loss shows, they are of another time.",
       Unit::share},
      {"final", "final loss and step are those of the last steps",
       "A final loss may be a mean of the last ones: of as many as the log says, where it does. Our own "
       "record "
       "ends with its last step.",
       Unit::none},
      {"gap_closed", "share of the gap closed = (log V - final loss) / (log V - floor)",
       "What our own record's last event makes of its final loss.", Unit::none},
      {"valid_tokens", "tokens whose loss counts <= tokens of the step",
       "Padding and masked tokens do not count; none counts twice.", Unit::tokens},
      {"vocabulary", "vocabulary = that of the model that is named or defined",
       "Of our own record alone: other trainers round theirs up.", Unit::none},
      {"phases", "times of a step's parts add up to its time",
       "Of our own record, whose step is timed part by part; no more than rounding is forgiven.",
       Unit::seconds},
      {"memory_plan", "planned memory = the sum of its tensors <= the device's; measured = planned",
       "Of our own record, which plans a step's memory and refuses what does not fit: the plan is that of "
       "the "
       "start, and what was measured is not less than the state that it names, nor than the step before it "
       "says, nor 2 % "
       "off the plan without the warning that the program then writes.",
       Unit::bytes},
      {"scaling", "per GPU, a run on more GPUs is not twice as fast as one on fewer",
       "Only between runs of the same model, GPU, micro-batch and sequence length; by the corrected numbers. "
       "1.9 times contradicts: the least mistake of counting is twice, and ratios are told apart by 5 %. "
       "From "
       "1.1 on it is told: settings that logs do not show (compilation, recompute) differ so. Needs two "
       "logs.",
       Unit::none},
  };
  static const std::vector<Invariant> all = [] {
    std::vector<Invariant> out = listed;
    for (const IdentityRow& row : identities())
      out.insert(out.end() - 1, row.invariant);  // `scaling` is last
    return out;
  }();
  return all;
}

}  // namespace assay::spec::audit
