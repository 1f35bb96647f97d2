// labels: unit
// Peaks, what is there at a peak, and op lists of the recipes' models, as they were reviewed: plan and
// trainer share the step's template, so a tensor that is freed too late changes both alike and no comparison
// of the two sees it. A difference here is read before it is accepted, with ASSAY_REGENERATE=1.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "spec/plan/plan.hpp"
#include "spec/step/paper/run.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::step_snapshot_test {
namespace {

using memory::Setting;

std::string extents(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += (text.empty() ? "[" : ", ") + std::to_string(extent);
  return text + "]";
}

std::string layouts(Setting setting) {
  std::string text;
  for (const auto& [data, name] : {std::pair{DataParallel::replicate, "replicate"},
                                   {DataParallel::zero1, "zero1"},
                                   {DataParallel::shard, "shard"}}) {
    setting.layout = layout_of(data, 4, 4);
    const memory::Plan plan = memory::plan(setting);
    text += std::string("  ") + name + " on 4: state " + plan.state.to_string() + ", peak " +
            plan.peak.to_string() + " in " + plan.moment + "\n";
  }
  return text;
}

std::string items(const memory::Plan& plan) {
  std::string text;
  for (const memory::Item& item : plan.items)
    text += "    " + item.name + " " + std::to_string(item.count) + " x " + extents(item.shape) + " x " +
            std::to_string(item.element_bytes) + " B, " + to_string(item.purpose) + "\n";
  return text;
}

std::string ops(const Setting& setting) {
  std::string text;
  for (const time::StepOpCount& op : paper::step_ops(setting))
    text += "    " + std::to_string(static_cast<std::int64_t>(op.calls)) + " x " + name_of(op.op, op.pass) +
            ": " + op.flops.matmul.to_string() + " + " + op.flops.vector.to_string() + " FLOP, " +
            op.bytes.to_string() + " B\n";
  return text;
}

std::string page(Setting setting) {
  std::string text = setting.model.name + ", " + std::to_string(setting.micro) + " x " +
                     std::to_string(setting.sequence_length) + " tokens, " +
                     std::to_string(setting.micro_batches) + " micro-batches\n";
  for (const Recompute recompute : recomputes_of(setting.model)) {
    setting.recompute = recompute;
    const memory::Plan plan = memory::plan(setting);
    text += "\n" + std::string(to_string(recompute)) + "\n" + layouts(setting) + "  one rank: state " +
            plan.state.to_string() + ", peak " + plan.peak.to_string() + " in " + plan.moment + "\n" +
            items(plan) + "  ops\n" + ops(setting);
  }
  return text;
}

void compare(const Setting& setting) {
  const std::string text = page(setting),
                    path = tests::source_dir() + "/tests/spec/step/snapshots/" + setting.model.name + ".txt";
  if (std::getenv("ASSAY_REGENERATE") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::istringstream now(text);
  std::ifstream then(path);
  ASSERT_TRUE(then) << path << " is missing";
  std::string ours, theirs;
  for (int line = 1;; ++line) {
    const bool more = static_cast<bool>(std::getline(now, ours)),
               reviewed = static_cast<bool>(std::getline(then, theirs));
    ASSERT_EQ(more, reviewed) << path << ":" << line << ": one ends before the other";
    if (!more) break;
    ASSERT_EQ(ours, theirs) << path << ":" << line;
  }
}

TEST(StepSnapshotSpec, TheDemoOnACpu) {
  compare({.model = find_model("tiny-llama"), .micro = 8, .sequence_length = 128, .micro_batches = 2});
}

Setting on_gpu(const char* model, Dtype states, std::int64_t micro, std::int64_t tokens,
               std::int64_t micro_batches) {
  return {.model = find_model(model),
          .dtype = Dtype::bf16,
          .states = states,
          .machine = memory::Machine::cuda,
          .micro = micro,
          .sequence_length = tokens,
          .micro_batches = micro_batches,
          .staged_steps = 4};
}

TEST(StepSnapshotSpec, LlamaWithMasterWeights) { compare(on_gpu("llama-1.36b", Dtype::f32, 24, 2048, 4)); }
TEST(StepSnapshotSpec, LlamaWithStatesInBf16) { compare(on_gpu("llama3-8b", Dtype::bf16, 4, 4096, 2)); }
/// The recipe of one H200, with the losses of routers that it has by default.
TEST(StepSnapshotSpec, OlmoeWithStatesInBf16) {
  Setting setting = on_gpu("olmoe-1b-7b", Dtype::bf16, 4, 4096, 4);
  setting.auxiliary = {.probabilities = true};
  compare(setting);
}
/// Dense layers of DeepSeek-V3.
TEST(StepSnapshotSpec, LatentAttention) {
  Setting setting = on_gpu("deepseek-v3", Dtype::bf16, 2, 4096, 2);
  setting.model.name = "deepseek-v3-dense";
  setting.model.multi_token_layers = 0, setting.model.experts.reset(), setting.model.layers = 3;
  compare(setting);
}
TEST(StepSnapshotSpec, QwenWithAPaddedHead) { compare(on_gpu("qwen3-1.8b", Dtype::f32, 22, 2048, 2)); }

}  // namespace
}  // namespace assay::spec::step_snapshot_test
