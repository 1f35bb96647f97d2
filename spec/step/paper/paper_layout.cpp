#include "spec/step/paper/paper_layout.hpp"

#include <algorithm>
#include <utility>

#include "spec/parallel/volume.hpp"
#include "spec/step/paper/rules.hpp"

namespace assay::spec::paper {

namespace {
constexpr std::size_t embedding_slot = 2, head_slot = 3;
}

PaperLayout::PaperLayout(const memory::Setting& s, const Share& share, std::size_t number, Trace& trace)
    : set_(share.sets[number]),
      number_(number),
      trace_(trace),
      tied_(s.model.tied_embeddings),
      gains_apart_(s.dtype == Dtype::bf16),
      weight_(element_bytes(s.dtype)),
      wire_(s.dtype == Dtype::bf16 && !s.rounded_sums ? f32_bytes : weight_),
      codes_(layout().shards_weights() ? gathered_codes(set_.partition.inventory, s.linear, gains_apart_)
                                       : GatheredCodes{}) {}

PaperLayout::Number PaperLayout::begin(Group over, Collective kind, std::int64_t block, const Count& bytes,
                                       std::int64_t times) {
  if (bytes == Count(0) || times == 0) return {};
  trace_.collectives.push_back({.over = over,
                                .kind = kind,
                                .set = number_,
                                .block = block,
                                .bytes = bytes,
                                .calls = static_cast<double>(times),
                                .begun = trace_.ops.size(),
                                .awaited = trace_.ops.size()});
  return trace_.collectives.size() - 1;
}

void PaperLayout::wait(Number& number) {
  if (number) trace_.collectives[*number].awaited = trace_.ops.size();
  number = {};
}

PaperLayout::Slot& PaperLayout::slot_of(std::int64_t block) {
  if (block == 0) return slots_[embedding_slot];
  if (is_head(block)) return slots_[tied_ ? head_slot : embedding_slot];
  return slots_[static_cast<std::size_t>(block % 2)];
}

void PaperLayout::gather(std::int64_t block, std::int64_t times) {
  Slot& slot = slot_of(block);
  if (slot.holds == block) return;
  wait(slot.gather);
  slot.holds = block;
  const std::int64_t bytes = codes_.of(block) ? 1 : weight_;
  slot.gather = begin(Group::state, Collective::all_gather, block,
                      Count(set_.partition.block_size(block)) * bytes, times);
}

void PaperLayout::wait_for(std::int64_t block) {
  gather(block, times_);
  wait(slot_of(block).gather);
}

void PaperLayout::acquire(std::int64_t block) {
  if (!layout().shards_weights()) return;
  wait_for(block);
  if (tied_ && is_head(block)) wait_for(0);
  if (!backward_) {
    if (!is_head(block)) gather(block + 1, times_);
  } else if (block > 1) {
    gather(block - 1, times_);
  } else if (block == 1) {
    gather(0, last_ ? times_ - 1 : times_);  // of the next micro-batch; the last one has none
  }
}

void PaperLayout::accumulate(std::int64_t block) {
  Slot& slot = slot_of(block);
  if (slot.accumulates == block) return;
  finish(slot);
  slot.accumulates = block;
}

void PaperLayout::gradients(std::int64_t block) {
  if (!layout().shards_weights()) return;
  accumulate(block);
  if (tied_ && is_head(block)) accumulate(0);
}

/// Shards are summed over the replicas once they are complete.
void PaperLayout::finish(Slot& slot) {
  if (!slot.reduction) return;
  const CollectiveRecord of = trace_.collectives[*slot.reduction];
  wait(slot.reduction);
  if (slot.completes && set_.replicas.size > 1)
    sums_.push_back(begin(Group::replicas, Collective::all_reduce, of.block,
                          of.bytes.divided_exactly_by(set_.state.size), 1));
}

void PaperLayout::gradients_ready(std::int64_t block) {
  const Count bytes = Count(set_.partition.block_size(block)) * wire_;
  if (layout().shards_weights()) {
    accumulate(block);
    Slot& slot = slot_of(block);
    slot.reduction = begin(Group::state, Collective::reduce_scatter, block, bytes, times_);
    slot.accumulates = -1;
    slot.completes = last_;
  } else if (last_ && layout().shards_state()) {
    sums_.push_back(begin(Group::state, Collective::reduce_scatter, block, bytes, 1));
  } else if (last_ && set_.replicas.size > 1) {
    sums_.push_back(begin(Group::replicas, Collective::all_reduce, block, bytes, 1));
  }
}

void PaperLayout::end_backward() {
  for (Slot& slot : slots_) finish(slot);
  for (Number& sum : sums_) wait(sum);
}

void PaperLayout::sum_squares() {
  if (layout().shards_state()) behind_update(Collective::all_reduce, f64_bytes);
}

void PaperLayout::behind_update(Collective kind, const Count& bytes) {
  begin(Group::state, kind, 0, bytes, 1);
}

void PaperLayout::end_update() {
  if (!layout().shards_state()) return;
  const Inventory& all = set_.partition.inventory;
  if (gains_apart_) behind_update(Collective::all_reduce, Count(norm_gains(all).flat_size) * f32_bytes);
  behind_update(Collective::all_reduce, Count(codes_.linears) * f32_bytes);
  behind_update(Collective::all_reduce, Count(codes_.vectors.flat_size) * weight_);
  if (layout().shards_weights()) return;
  for (std::int64_t block = 0; block < all.blocks; ++block)
    begin(Group::state, Collective::all_gather, block, Count(set_.partition.block_size(block)) * weight_, 1);
}

// What all sets have in common, behind each micro-batch and at the end of a step (impl/step/executor.cpp).

void PaperOps::begin_forward(std::int64_t times, bool first) {
  times_ = times, first_micro_batch_ = first;
  for (PaperLayout& layout : layouts_) layout.begin_forward(times);
}

void PaperOps::end_forward() {
  kept_row_losses_ = {};
  if (!auxiliary_.of_batch) return;
  const std::int64_t loads = shared_loads(share_.sets.front().partition.inventory);
  if (loads > 0) sum_over_tokens(time::StepOp::router, loads, loads);
}

void PaperOps::begin_backward(bool last) {
  for (PaperLayout& layout : layouts_) layout.begin_backward(last);
}

/// fp64 numbers: those of a rank's own rows over the tensor ranks, then those of its sequences.
void PaperOps::sum_over_tokens(time::StepOp op, std::int64_t of_rows, std::int64_t of_sequences) {
  if (tensor_ranks() > 1 && of_rows > 0)
    record(op, Group::tensor, Collective::all_reduce, Count(of_rows) * f64_bytes);
  if (share_.groups.tokens.size > 1)
    record(op, Group::tokens, Collective::all_reduce, Count(of_sequences) * f64_bytes);
}

/// A block's go together, with an entry that pads them; memory is that of the rank with the most.
void PaperOps::sum_shared_gradients() {
  const ParameterSet& set = share_.sets.front();
  const std::int64_t t = tensor_ranks(), holders = share_.groups.holders.size;
  const auto sum = [&](const std::vector<std::int64_t>& entries, std::size_t block, Group over,
                       std::int64_t ranks) {
    record(time::StepOp::clip_grad_norm, over, Collective::all_gather,
           Count(entries[block] + 1) * ranks * statistic_);
  };
  std::int64_t most = 0;
  for (std::int64_t shard = 0; shard < set.state.size; ++shard) {
    const SharedEntries shared = shared_entries(set, shard, t);
    const bool some = holders > 1 && holders < t;
    for (std::size_t block = 0; block < shared.of_all.size(); ++block) {
      most = std::max({most, (shared.of_all[block] + 1) * (1 + t),
                       some ? (shared.of_some[block] + 1) * (1 + holders) : 0});
      if (shard != set.state.number) continue;
      sum(shared.of_all, block, Group::tensor, t);
      if (some) sum(shared.of_some, block, Group::holders, holders);
    }
  }
  ledger_.enter("sums over tensor ranks");
  temporary("shared_gradients", {most}, statistic_);
}

void PaperOps::end_step() {
  using time::StepOp;
  if (trace_) trace_->memory.back().most = ledger_.most();
  times_ = chunk_times_ = 1;
  for (PaperLayout& layout : layouts_) layout.end_backward();
  if (tensor_ranks() > 1) sum_shared_gradients();
  const std::int64_t losses = reduced_losses(share_.sets.front().partition.inventory);
  sum_over_tokens(StepOp::cross_entropy, losses - losses_of_tokens, losses + s_.sources);
  for (PaperLayout& layout : layouts_) layout.sum_squares();
  for (const auto& [over, ranks] :
       {std::pair{Group::experts, expert_ranks()}, {Group::tensor, tensor_ranks()}})
    if (ranks > 1) record(StepOp::clip_grad_norm, over, Collective::all_gather, Count(ranks) * f64_bytes);
  for (PaperLayout& layout : layouts_) layout.end_update();
}

}  // namespace assay::spec::paper
