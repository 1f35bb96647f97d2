// labels: unit
// Which ops run while each collective of a step is in flight, as it was reviewed. No result changes where an
// overlap is lost; here a line does. The trainer runs the same template, so its begins, waits and GEMMs come
// in this order. A difference here is read before it is accepted, with ASSAY_REGENERATE=1.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "spec/parallel/placement.hpp"
#include "spec/step/paper/run.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::overlap_test {
namespace {

using memory::Setting;

/// Ops that multiply matrices, which take long enough to hide a collective.
std::vector<std::string> gemms_beside(const paper::Trace& trace, const paper::CollectiveRecord& collective) {
  std::vector<std::string> names;
  for (std::size_t i = collective.begun; i < collective.awaited; ++i) {
    const time::StepOpCount& op = trace.ops[i].count;
    if (op.flops.matmul > Count(0)) names.push_back(time::name_of(op.op, op.pass));
  }
  return names;
}

std::string lines(const Setting& setting) {
  const paper::Trace trace = paper::trace(setting);
  std::string text;
  for (const paper::CollectiveRecord& each : trace.collectives) {
    // Those of layouts and of a step's end: collectives_test.cpp.
    if (!each.op || each.op == time::StepOp::clip_grad_norm || each.over == paper::Group::tokens) continue;
    text += std::string("  ") + std::string(facts_of(each.kind).words) + " of " +
            std::string(time::to_string(*each.op)) + ":";
    const std::vector<std::string> names = gemms_beside(trace, each);
    for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? " " : ", ") + names[i];
    text += names.empty() ? " nothing\n" : "\n";
  }
  return text;
}

/// Two layers: the upper one's gradient leaves for the lower one.
ModelSpec small() {
  ModelSpec model;
  model.name = "small";
  model.vocab = 6, model.width = 4, model.layers = 2, model.heads = 2, model.kv_heads = 2, model.head_dim = 2;
  model.ffn = 4, model.context = 8;
  return model;
}

ModelSpec sparse(std::int64_t shared_width) {
  ModelSpec model = small();
  model.family = Family::qwen3_moe;
  model.experts = Experts{.count = 4, .active = 2, .width = 3, .shared_width = shared_width};
  return model;
}

std::string page(std::string title, Setting setting) {
  std::string text;
  for (const Recompute recompute : recomputes_of(setting.model)) {
    setting.recompute = recompute;
    text += title + ", recompute " + std::string(to_string(recompute)) + "\n" + lines(setting);
  }
  return text;
}

TEST(OverlapSpec, WhatRunsWhileEachCollectiveIsInFlight) {
  const Setting tensor{.model = tensor_model(small(), 2),
                       .micro = 1,
                       .sequence_length = 4,
                       .tensor_ranks = 2,
                       .whole = small()};
  Setting expert{.model = sparse(5),
                 .micro = 1,
                 .sequence_length = 4,
                 .layout = layout_of(DataParallel::replicate, 2),
                 .expert_ranks = 2};
  std::string text = page("2 tensor ranks", tensor) + page("2 expert ranks, shared experts", expert);
  expert.model = sparse(0);
  text += page("2 expert ranks", expert);
  const std::string path = tests::source_dir() + "/tests/spec/step/snapshots/overlap.txt";
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
}  // namespace assay::spec::overlap_test
