// labels: unit property
// Every collective of a step on paper: its bytes against the closed formulas, and what runs while those of
// the data layouts are in flight.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "spec/batch/nearest_batch.hpp"
#include "spec/parallel/expert_ranks.hpp"
#include "spec/parallel/volume.hpp"
#include "spec/step/paper/run.hpp"
#include "tests/support/draw_model.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::collectives_test {
namespace {

using memory::Setting;
using paper::Group;

/// Bytes of a step, by the group of ranks that talks.
StepVolume on_paper(const paper::Trace& trace) {
  StepVolume out;
  const auto of = [&](const paper::CollectiveRecord& each) -> Volume& {
    switch (each.over) {
      case Group::tokens:
        return out.world;
      case Group::tensor:
      case Group::holders:
        return out.tensor;
      case Group::experts:
        return out.expert_group;
      case Group::state:
        return each.set == 0 ? out.shard : out.experts;
      case Group::replicas:
        return each.set == 0 ? out.replica : out.experts;
    }
    throw std::logic_error("no such group");
  };
  for (const paper::CollectiveRecord& each : trace.collectives) {
    of(each)[each.kind] += static_cast<std::int64_t>(each.calls) * each.bytes;
  }
  return out;
}

StepVolume by_formula(const Setting& s) {
  const Share share = share_of(s);
  const std::int64_t element = element_bytes(s.dtype), statistic = s.dtype == Dtype::bf16 ? 4 : element,
                     own_tokens = s.micro * s.sequence_length / s.tensor_ranks;
  StepVolume out = step_volume(share, {.accumulation = s.micro_batches,
                                       .gradient_bytes = s.rounded_sums ? element : statistic,
                                       .weight_bytes = element,
                                       .tied_embeddings = s.model.tied_embeddings,
                                       .linear = s.linear,
                                       .sources = s.sources,
                                       .balance_of_batch = s.auxiliary.of_batch});
  out.tensor = tensor_volume(share, {.tokens = s.micro * s.sequence_length,
                                     .accumulation = s.micro_batches,
                                     .recompute = s.recompute,
                                     .activation_bytes = element,
                                     .statistic_bytes = statistic,
                                     .gradient_bytes = statistic,
                                     .balance_of_batch = s.auxiliary.of_batch});
  if (s.expert_ranks > 1)
    out.expert_group =
        expert_volume(s.model, s.expert_ranks,
                      {.visits = most_visits(s.model, s.expert_ranks, own_tokens, s.micro_batches),
                       .accumulation = s.micro_batches,
                       .recompute = s.recompute,
                       .activation_bytes = element,
                       .statistic_bytes = statistic,
                       .linear = s.linear});
  return out;
}

Layout draw_layout() {
  const auto replicas = *rc::gen::inRange<std::int64_t>(1, 4), shard = *rc::gen::inRange<std::int64_t>(1, 5);
  const DataParallel data = *rc::gen::element(DataParallel::replicate, DataParallel::zero1,
                                              DataParallel::shard, DataParallel::hybrid);
  return layout_of(data, replicas * shard, shard);
}

/// A model of any kind over tensor ranks, expert ranks and data ranks.
Setting draw_setting() {
  const auto coin = [] { return *rc::gen::arbitrary<bool>(); };
  Setting s;
  s.tensor_ranks = *rc::gen::inRange<std::int64_t>(1, 5);
  s.layout = draw_layout();
  ModelSpec model = tests::draw_model();
  model.qk_norm_across_heads = false;
  model.heads = 2 * s.tensor_ranks, model.kv_heads = *rc::gen::elementOf(divisors(s.tensor_ranks));
  model.ffn *= s.tensor_ranks, model.vocab += s.tensor_ranks;
  model.layers = *rc::gen::inRange<std::int64_t>(1, 6);
  if (coin()) {
    model.experts = tests::draw_experts(model.layers);
    const std::int64_t among =
        (s.layout.shards_state() ? s.layout.shard_ranks : s.layout.ranks) * s.tensor_ranks;
    s.expert_ranks = *rc::gen::elementOf(divisors(among));
    model.experts->count *= s.expert_ranks;
  }
  s.dtype = *rc::gen::element(Dtype::bf16, Dtype::f32, Dtype::f64);
  s.rounded_sums = s.dtype == Dtype::bf16 && coin();
  s.recompute = *rc::gen::elementOf(all_recomputes);
  s.micro = *rc::gen::inRange<std::int64_t>(1, 4) * s.tensor_ranks;
  s.sequence_length = *rc::gen::inRange<std::int64_t>(1, 5);
  s.micro_batches = *rc::gen::inRange<std::int64_t>(1, 6);
  s.sources = *rc::gen::inRange<std::int64_t>(0, 3);
  s.auxiliary.of_batch = model.experts && coin();
  s.chunk_logits = *rc::gen::element<std::int64_t>(8, memory::most_logits);
  if (s.tensor_ranks == 1 && coin()) {
    model.width = model.head_dim = model.ffn = s.sequence_length = 16;
    if (model.experts) model.experts->width = 16;
    s.linear = {.recipe = quantise::Recipe::fp8_tensor,
                .weights = *rc::gen::element(QuantiseWeights::use, QuantiseWeights::step),
                .experts = model.experts && coin()};
    if (coin()) s.linear.unquantised = {1};
  }
  s.model = tensor_model(model, s.tensor_ranks), s.whole = model;
  return s;
}

RC_GTEST_PROP(CollectivesSpec, PaperMovesWhatTheFormulasSay, ()) {
  const Setting setting = draw_setting();
  const StepVolume paper = on_paper(paper::trace(setting)), formula = by_formula(setting);
  RC_ASSERT(paper.shard == formula.shard);
  RC_ASSERT(paper.replica == formula.replica);
  RC_ASSERT(paper.world == formula.world);
  RC_ASSERT(paper.tensor == formula.tensor);
  RC_ASSERT(paper.experts == formula.experts);
  RC_ASSERT(paper.expert_group == formula.expert_group);
}

/// Whoever holds the experts, the same GEMMs run on a rank with even loads.
RC_GTEST_PROP(CollectivesSpec, ExpertRanksExecuteWhatOneRankDoes, ()) {
  Setting setting = draw_setting();
  const auto executed = [&] { return paper::trace(setting).executed.executed(); };
  const Count several = executed();
  setting.expert_ranks = 1;
  RC_ASSERT(executed() == several);
}

const char* name_of(Group group) {
  constexpr const char* names[] = {"tokens", "tensor", "holders", "experts", "state", "replicas"};
  return names[static_cast<std::size_t>(group)];
}

/// A line for each collective of the layout: how many GEMMs and attentions run from its beginning until it is
/// waited for.
std::string lines(const Setting& setting) {
  const paper::Trace trace = paper::trace(setting);
  std::string text;
  for (const paper::CollectiveRecord& each : trace.collectives) {
    text += "  " + std::to_string(static_cast<std::int64_t>(each.calls)) + " x " +
            std::string(facts_of(each.kind).words) + " over " + name_of(each.over) + " of " +
            (each.op ? std::string(time::to_string(*each.op)) : "block " + std::to_string(each.block)) +
            ", " + each.bytes.to_string() + " B:";
    const auto gemms = std::count_if(
        trace.ops.begin() + static_cast<std::ptrdiff_t>(each.begun),
        trace.ops.begin() + static_cast<std::ptrdiff_t>(each.awaited),
        [](const paper::OpRecord& op) { return op.gemm || op.count.op == time::StepOp::attention; });
    text += " " + std::to_string(gemms) + "\n";
  }
  return text;
}

/// As it was reviewed: a gather that comes late, or a wait that comes early, changes no bytes, but a line
/// here. A difference is read before it is accepted, with ASSAY_REGENERATE=1.
TEST(CollectivesSpec, WhatRunsWhileThoseOfALayoutAreInFlight) {
  ModelSpec model;
  model.name = "small";
  model.vocab = 6, model.width = 4, model.layers = 4, model.heads = 2, model.kv_heads = 2, model.head_dim = 2;
  model.ffn = 4, model.context = 8;
  std::string text;
  for (const auto& [layout, name] : {std::pair{layout_of(DataParallel::replicate, 2), "replicate of 2"},
                                     {layout_of(DataParallel::zero1, 2), "zero1 of 2"},
                                     {layout_of(DataParallel::hybrid, 4, 2), "hybrid of 4 in shards of 2"}})
    for (const bool tied : {false, true}) {
      model.tied_embeddings = tied;
      text += std::string(name) + (tied ? ", tied" : "") + ", 3 micro-batches\n" +
              lines({.model = model, .micro = 1, .sequence_length = 4, .micro_batches = 3, .layout = layout});
    }
  const std::string path = tests::source_dir() + "/tests/spec/step/snapshots/overlap_of_layouts.txt";
  if (std::getenv("ASSAY_REGENERATE") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing";
  std::stringstream reviewed;
  reviewed << file.rdbuf();
  EXPECT_EQ(text, reviewed.str());
}

}  // namespace
}  // namespace assay::spec::collectives_test
