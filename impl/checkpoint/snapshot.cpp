#include "impl/checkpoint/snapshot.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/parts.hpp"
#include "impl/checkpoint/slice_file.hpp"
#include "spec/checkpoint/slice_hash.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace {
constexpr std::int64_t copy_alignment = 64;  // of a slice in host memory [B]

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + copy_alignment - 1) / copy_alignment * copy_alignment;
}
std::int64_t bytes_in(const at::Tensor& values) { return static_cast<std::int64_t>(values.nbytes()); }
}  // namespace

void HostMemory::reserve(std::int64_t bytes, at::Device from) {
  if (bytes_.defined() && bytes_.numel() >= bytes) return;
  bytes_.reset();  // its memory first
  bytes_ = at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(from.is_cuda()));
  if (!from.is_cuda()) bytes_.zero_();  // a system hands memory out at the first touch
}

Snapshot::Snapshot(const ParameterBuffers& buffers, const Writer& writer) {
  for (const spec::Parameter& parameter : buffers.model.parameters)
    parameters_.push_back(
        {.name = parameter.name, .dtype = dtype_name(buffers, parameter), .shape = parameter.shape});
  for (const Part& part : parts)
    for (HeldSlice& held : own_slices(buffers, part.buffer, writer))
      pieces_.push_back({part.name, std::move(held)});
}

std::int64_t Snapshot::bytes() const {
  std::int64_t sum = 0;
  for (const Piece& piece : pieces_) sum += aligned(bytes_in(piece.held.values));
  return sum;
}

void Snapshot::copy_to(HostMemory& memory) {
  if (pieces_.empty()) return;
  const bool cuda = pieces_.front().held.values.is_cuda();
  memory.reserve(bytes(), pieces_.front().held.values.device());
  std::int64_t at = 0;
  for (Piece& piece : pieces_) {
    at::Tensor& values = piece.held.values;
    const at::Tensor copy =
        memory.bytes().narrow(0, at, bytes_in(values)).view(values.scalar_type()).view(values.sizes());
    copy.copy_(values, /*non_blocking=*/cuda);
    at += aligned(bytes_in(values));
    values = copy;
  }
  if (cuda) at::cuda::getCurrentCUDAStream().synchronize();
}

FileEntry Snapshot::write(const OutputFolder& folder, const std::string& name,
                          const std::function<void()>& piece_begins) const {
  FileEntry entry{.name = name, .bytes = 0, .hash = {}, .slices = {}};
  for (const Piece& piece : pieces_)
    entry.slices.push_back({.part = piece.part,
                            .parameter = parameters_[piece.held.number].name,
                            .slice = piece.held.slice,
                            .begin = 0,
                            .hash = {}});
  std::size_t next = 0;  // the slices are asked for in their order
  const std::string head = slice_header(entry.slices, [&](const std::string&) -> const ParameterEntry& {
    return parameters_[pieces_[next++].held.number];
  });
  DurableFile file(folder, name);
  file.write(std::as_bytes(std::span(head)));
  entry.hash = file.hash();
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    piece_begins();
    const Piece& piece = pieces_[i];
    const ParameterEntry& parameter = parameters_[piece.held.number];
    const at::Tensor values = piece.held.values.cpu().contiguous();
    const std::span bytes(static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes());
    // checkpoint_c5: a state that cannot be trained on is never the one to come back to.
    if (!spec::all_finite(bytes, parameter.dtype))
      throw UserError(ExitCode::non_finite,
                      "checkpoint_c5: " + parameter.name + " in " + piece.part +
                          " holds a NaN or an infinity; nothing was saved, older checkpoints are intact");
    SliceEntry& slice = entry.slices[i];
    slice.hash = spec::hash_text(spec::slice_hash(bytes, values.element_size(), slice.slice,
                                                  spec::whole_slice(parameter.shape).columns));
    file.write(bytes);
  }
  file.commit();
  entry.bytes = file.size();
  return entry;
}

}  // namespace assay::impl::checkpoint
