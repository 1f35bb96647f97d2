#include "spec/step/paper/run.hpp"

#include <algorithm>

#include "spec/error.hpp"
#include "spec/memory/document_slots.hpp"
#include "spec/memory/state.hpp"
#include "spec/model/trainable.hpp"
#include "spec/parallel/gathered_codes.hpp"
#include "spec/parallel/volume.hpp"
#include "spec/schedule/actions.hpp"

namespace assay::spec::paper {

namespace {

using memory::Ledger;
using memory::Machine;
using memory::Setting;
using Activations = step::Activations<PaperOps>;

/// impl/ops/init/init.cpp: drawn in fp64 on the CPU, in place on a GPU.
void initialise(const Setting& s, const Share& share, Ledger& ledger) {
  if (s.machine == Machine::cuda) return;
  ledger.enter("initial weights");
  std::int64_t largest = 0;
  for (const ParameterSet& set : share.sets)
    for (const Parameter& parameter : set.partition.inventory.parameters)
      if (parameter.matrix()) largest = std::max(largest, parameter.size);
  ledger.make("initial_values", Purpose::temporaries, {largest}, 8);
}

/// Inputs of `steps` steps of `micro_batches` of B sequences, whose names begin with `of`.
std::vector<memory::Tensor> inputs_of(const Setting& s, Ledger& ledger, std::int64_t steps,
                                      std::int64_t micro_batches, std::int64_t B, const std::string& of) {
  const std::int64_t N = B * s.sequence_length;
  std::vector<memory::Tensor> inputs;
  const auto hold = [&](const char* name, std::int64_t entries, std::int64_t bytes) {
    inputs.push_back(ledger.make(of + name, Purpose::inputs, {steps, micro_batches, entries}, bytes));
  };
  hold("inputs", N, 8);
  hold("targets", N, 8);
  if (s.documents) {
    hold("positions", N, 4);
    hold("documents", N, 4);
    hold("document_offsets", memory::document_slots(B, s.sequence_length, 0) + 1, 4);
  }
  return inputs;
}

/// Inputs of all micro-batches are there for the whole step.
std::vector<memory::Tensor> hold_inputs(const Setting& s, Ledger& ledger) {
  ledger.enter("inputs");
  return inputs_of(s, ledger, s.staged_steps, s.micro_batches, s.micro, "");
}

/// A micro-batch ends with the tensors with which it began, and all but the first are alike: of many, two are
/// walked.
void micro_batches(const Setting& s, PaperOps& ops) {
  const auto walked = std::min<std::int64_t>(s.micro_batches, 2);
  std::vector<Activations> saved(static_cast<std::size_t>(walked));
  for (const Action& action : step_actions(walked, Layout{})) {
    if (action.micro_batch < 0) continue;
    const bool first = action.micro_batch == 0;
    Activations& activations = saved[static_cast<std::size_t>(action.micro_batch)];
    if (action.kind == ActionKind::forward) {
      ops.begin_forward(first ? 1 : s.micro_batches - 1, first);
      step::forward(ops, s.recompute, activations);
      ops.end_forward();
    } else if (action.kind == ActionKind::backward) {
      ops.begin_backward(/*last=*/action.micro_batch + 1 == walked);
      step::backward(ops, std::move(activations));
    }
  }
  ops.end_step();
}

/// impl/run/validation.cpp: a forward pass that keeps nothing, between two steps. `in_steps`: bytes of the
/// captured steps' tensors, which are no other work's.
void validate(const Setting& s, Ledger& ledger, PaperOps& ops, const Count& in_steps) {
  if (s.validation_batch == 0) return;
  ops.size_batch(s.validation_batch, s.sequence_length);
  ops.within("validation");
  ops.untrained();
  ops.moment("inputs");
  memory::Tensor captured;
  if (s.captured) captured = ledger.make("captured_steps", Purpose::temporaries, {in_steps.to_int64()}, 1);
  // On a GPU those of the next are copied ahead.
  const auto inputs =
      inputs_of(s, ledger, std::min<std::int64_t>(s.staged_steps, 2), 1, s.validation_batch, "validation_");
  step::token_losses(ops);
}

/// impl/generate/generate.cpp at its last token: a forward pass over one token of each text, with the keys
/// and values of all before it (impl/model/key_value_cache.hpp), and logits of the tokens.
void sample(const Setting& s, Ledger& ledger, PaperOps& ops) {
  if (s.sampled == 0 || s.sequence_length < 2) return;
  // Tensor ranks hold equal parts of the tokens: copies of the first texts fill the batch up.
  std::int64_t texts = s.sampled;
  while (texts % s.tensor_ranks != 0) ++texts;
  ops.size_batch(texts, 1);
  ops.within("sampling");
  ops.unquantised();
  ops.untrained();
  const memory::Tensor ids = ledger.make("inputs", Purpose::inputs, {texts}, 8);
  const ModelSpec& m = s.model;
  const std::int64_t tokens = std::min(s.sequence_length, memory::most_sampled_tokens);
  const std::int64_t kept = m.layers * texts * m.kv_heads * tokens * (m.head_dim + m.value_dim()),
                     exact = s.dtype == Dtype::f64 ? 8 : 4;
  const memory::Tensor cache = ledger.make("keys_and_values", Purpose::temporaries, {kept}, exact);
  // Scores, their mask and their softmax, which are there in turn with what else a block makes.
  const memory::Tensor scores =
      ledger.make("scores", Purpose::temporaries, {3 * texts * m.heads * tokens}, exact);
  const Tensor logits = step::logits(ops);
  ledger.make("logits_f64", Purpose::temporaries, {texts * m.vocab}, 8);
}

void check(const Setting& s) {
  require_trainable(s.model);
  // memory_c1
  require(
      s.micro >= 1 && s.sequence_length >= 1 && s.micro_batches >= 1 && s.staged_steps >= 1 && s.sampled >= 0,
      "memory_c1", [&] {
        return "micro=" + std::to_string(s.micro) + " sequence_length=" + std::to_string(s.sequence_length) +
               " micro_batches=" + std::to_string(s.micro_batches) +
               " staged_steps=" + std::to_string(s.staged_steps) + " sampled=" + std::to_string(s.sampled);
      });
}

/// What a rank quantises of its own shard, where decoder blocks are gathered as codes: behind the update
/// every block's amax, and each block once more for every gather. Counted under the update, which brings it
/// about.
std::vector<time::StepOpCount> shard_ops(const Setting& s, const Share& share) {
  if (!s.layout.shards_weights()) return {};
  const Partition& parts = share.sets.front().partition;
  const std::vector<std::int64_t> gathers =
      block_gathers(parts.inventory.blocks, s.micro_batches, s.model.tied_embeddings);
  const std::int64_t element = element_bytes(s.dtype);
  std::vector<time::StepOpCount> ops;
  for (const std::int64_t block : gathered_codes(parts.inventory, s.linear, false).blocks) {
    const auto b = static_cast<std::size_t>(block);
    const Count shard = parts.blocks[b].shard_size;
    ops.push_back({time::StepOp::quantise, time::StepPass::update, 1, {}, shard * element});
    ops.push_back({time::StepOp::quantise,
                   time::StepPass::update,
                   static_cast<double>(gathers[b]),
                   {Count(0), shard},
                   shard * (element + 1)});
  }
  return ops;
}

}  // namespace

void walk(const Setting& setting, const Share& share, Ledger& ledger) {
  check(setting);
  const std::vector<memory::Tensor> state = hold_state(setting, share, ledger);
  initialise(setting, share, ledger);
  const std::vector<memory::Tensor> twins = hold_twins(setting, ledger);
  PaperOps ops(setting, share, ledger);
  {
    const std::vector<memory::Tensor> inputs = hold_inputs(setting, ledger);
    const Count between_steps = ledger.now();
    ledger.mark();
    micro_batches(setting, ops);
    validate(setting, ledger, ops, ledger.most() - between_steps);
  }
  sample(setting, ledger, ops);
}

std::vector<memory::Item> kept_activations(const Setting& setting) {
  check(setting);
  const Share share = share_of(setting);
  Ledger ledger;
  PaperOps ops(setting, share, ledger);
  Activations saved;
  step::forward(ops, setting.recompute, saved);
  ops.end_forward();
  return ledger.there();
}

Trace trace(const Setting& setting, const Share& share,
            const std::vector<std::vector<std::int64_t>>& lengths) {
  check(setting);
  Ledger ledger;
  Trace out;
  PaperOps ops(setting, share, ledger, &out, lengths);
  micro_batches(setting, ops);
  return out;
}

std::vector<std::size_t> calls_of(const Trace& trace) {
  std::vector<std::size_t> calls;
  for (std::size_t begin = 0, end = 0; begin < trace.memory.size(); begin = end) {
    const std::int64_t times = trace.memory[begin].times;
    for (end = begin + 1; end < trace.memory.size() && times > 1 && trace.memory[end].times == times;) ++end;
    for (std::int64_t time = 0; time < times; ++time)
      for (std::size_t call = begin; call < end; ++call) calls.push_back(call);
  }
  return calls;
}

std::vector<time::StepOpCount> step_ops(const Setting& setting, const Share& share) {
  std::vector<time::StepOpCount> ops;
  const auto add = [&](const time::StepOpCount& one) {
    const auto alike = std::find_if(ops.begin(), ops.end(), [&](const time::StepOpCount& each) {
      return each.op == one.op && each.pass == one.pass && each.bytes == one.bytes &&
             each.flops.matmul == one.flops.matmul && each.flops.vector == one.flops.vector;
    });
    if (alike == ops.end())
      ops.push_back(one);
    else
      alike->calls += one.calls;
  };
  for (const OpRecord& record : trace(setting, share).ops) add(record.count);
  for (const time::StepOpCount& one : shard_ops(setting, share)) add(one);
  const auto optimizer = time::optimizer_ops(share, setting.dtype, setting.states);
  ops.insert(ops.end(), optimizer.begin(), optimizer.end());
  return ops;
}

}  // namespace assay::spec::paper
