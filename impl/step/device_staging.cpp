#include "impl/step/device_staging.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstring>

namespace assay::impl::run {

namespace {

/// int32, undefined when the list is empty.
at::Tensor list_of(const std::vector<std::int32_t>& values) {
  return values.empty() ? at::Tensor() : at::tensor(values, at::kInt);
}

TokenBatch batch_of(const data::MicroBatch& batch, at::Tensor inputs, at::Tensor targets, at::Tensor sources,
                    const at::Tensor& positions, const at::Tensor& documents, at::Tensor offsets) {
  const auto grid = [&](const at::Tensor& list) {
    return list.defined() ? list.view({batch.B, batch.T}) : list;
  };
  return {.B = batch.B,
          .T = batch.T,
          .inputs = std::move(inputs),
          .targets = std::move(targets),
          .sources = std::move(sources),
          .positions = grid(positions),
          .documents = {grid(documents), std::move(offsets), batch.document_offsets}};
}

TokenBatch on_cpu(const data::MicroBatch& batch) {
  return batch_of(batch, at::tensor(batch.inputs, at::kLong), at::tensor(batch.targets, at::kLong),
                  batch.sources.empty() ? at::Tensor() : at::tensor(batch.sources, at::kLong),
                  list_of(batch.positions), list_of(batch.documents), list_of(batch.document_offsets));
}

/// Walks the lists of a micro-batch in the order in which they lie in a slot: `visit(list, byte_offset)`. Ids
/// come first, and the next micro-batch begins at a whole word, so that each list is aligned to its element.
template <class Visit>
void each_list(const data::MicroBatch& batch, std::size_t& offset, const Visit& visit) {
  const auto pass = [&](const auto& list) {
    visit(list, offset);
    offset += list.size() * sizeof list[0];
  };
  pass(batch.inputs);
  pass(batch.targets);
  pass(batch.sources);
  pass(batch.positions);
  pass(batch.documents);
  pass(batch.document_offsets);
  constexpr std::size_t word = sizeof(std::int64_t);
  offset = (offset + word - 1) / word * word;
}

std::int64_t words_of(const data::StepBatches& batches) {
  std::size_t bytes = 0;
  for (const data::MicroBatch& batch : batches.micro_batches)
    each_list(batch, bytes, [](const auto&, std::size_t) {});
  return static_cast<std::int64_t>(bytes / sizeof(std::int64_t));
}

}  // namespace

DeviceStaging::DeviceStaging(at::Device device, std::int64_t prefetch) : device_(device) {
  if (!device_.is_cuda()) return;
  // One slot that the trainer works on, one that is being filled, the rest wait in the loader's queue.
  slots_.resize(static_cast<std::size_t>(prefetch) + 2);
  stream_ = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_.index());
}

void DeviceStaging::stage(const data::StepBatches& batches) {
  if (!device_.is_cuda()) return;
  const c10::cuda::CUDAStreamGuard in_own_stream(*stream_);
  Slot& slot = slot_of(batches.step);
  const std::int64_t words = words_of(batches);
  slot.copied.synchronize();  // of the step before on this slot: long done
  slot.used.block(*stream_);
  if (!slot.host.defined() || slot.host.numel() < words) {
    slot.host = at::empty({words}, at::TensorOptions().dtype(at::kLong).pinned_memory(true));
    slot.device = at::empty({words}, at::TensorOptions().dtype(at::kLong).device(device_));
  }
  auto* host = reinterpret_cast<char*>(slot.host.data_ptr<std::int64_t>());
  std::size_t offset = 0;
  for (const data::MicroBatch& batch : batches.micro_batches)
    each_list(batch, offset, [&](const auto& list, std::size_t at) {
      if (!list.empty()) std::memcpy(host + at, list.data(), list.size() * sizeof list[0]);
    });
  slot.device.narrow(0, 0, words).copy_(slot.host.narrow(0, 0, words), /*non_blocking=*/true);
  slot.copied.record(*stream_);
}

std::vector<TokenBatch> DeviceStaging::take(const data::StepBatches& batches) {
  std::vector<TokenBatch> out;
  if (!device_.is_cuda()) {
    for (const data::MicroBatch& batch : batches.micro_batches) out.push_back(on_cpu(batch));
    return out;
  }
  const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(device_.index());
  if (taken_) slot_of(*taken_).used.record(current);
  taken_ = batches.step;
  const Slot& slot = slot_of(batches.step);
  slot_of(batches.step).copied.block(current);
  std::size_t offset = 0;
  for (const data::MicroBatch& batch : batches.micro_batches) {
    std::vector<at::Tensor> lists;
    each_list(batch, offset, [&](const auto& list, std::size_t at) {
      if (list.empty()) return lists.emplace_back(), void();
      const bool ids = sizeof list[0] == sizeof(std::int64_t);
      const at::Tensor all = ids ? slot.device : slot.device.view(at::kInt);
      lists.push_back(all.narrow(0, static_cast<std::int64_t>(at / sizeof list[0]),
                                 static_cast<std::int64_t>(list.size())));
    });
    out.push_back(batch_of(batch, lists[0], lists[1], lists[2], lists[3], lists[4], lists[5]));
  }
  return out;
}

}  // namespace assay::impl::run
