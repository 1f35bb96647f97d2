#include "spec/memory/attention.hpp"

#include <algorithm>

#include "spec/memory/document_slots.hpp"
#include "spec/ops/attention.hpp"

namespace assay::spec::memory {

namespace {

constexpr std::int64_t bf16_bytes = 2, f32_bytes = 4;

/// `count` tensors of scores [B, H, T, T] at a time: attention by plain GEMMs.
std::vector<Scratch> squares(const Setting& s, std::int64_t B, std::int64_t T, std::size_t count) {
  const std::int64_t bytes = s.dtype == Dtype::bf16 ? f32_bytes : element_bytes(s.dtype);
  return std::vector<Scratch>(count, {"scores", {B, s.model.heads, T, T}, bytes});
}

std::int64_t up_to_multiple(std::int64_t number, std::int64_t of) { return (number + of - 1) / of * of; }

/// Where query heads share keys, dk and dv are made for every query head first.
void add_gradients_of_heads(const Setting& s, std::int64_t B, std::int64_t T, std::vector<Scratch>& out) {
  const ModelSpec& m = s.model;
  if (m.heads == m.kv_heads) return;
  for (const char* name : {"dk_of_heads", "dv_of_heads"})
    out.push_back({name, {B, T, m.heads, m.head_dim}, bf16_bytes});
}

/// Of heads whose values are not as wide as their keys, FlashAttention takes none and cuDNN these: up to 128
/// entries, and the pair that DeepSeek-V3 has.
bool cudnn_takes_widths(const ModelSpec& m) {
  const std::int64_t E = m.head_dim, W = m.value_dim();
  return E == W || std::max(E, W) <= 128 || (E == 192 && W == 128);
}

/// Thread blocks add to an fp32 dq in any order. In a fixed order the gradient of all scores takes its place.
/// Either needs one number per row as well.
std::vector<Scratch> cudnn_backward(const Setting& s, std::int64_t B, std::int64_t T) {
  const ModelSpec& m = s.model;
  std::vector<Scratch> out;
  if (s.fixed_order)
    out.push_back({"d_scores", {B, m.heads, T, T}, bf16_bytes});
  else
    out.push_back({"attention_sums", {B * T, m.heads, m.head_dim}, f32_bytes});
  out.push_back({"attention_rows", {m.heads, B * T}, f32_bytes});
  add_gradients_of_heads(s, B, T, out);
  return out;
}

/// dq is summed in a padded buffer: rows up to a multiple of 128, or 128 more for each document; head_dim up
/// to a multiple of 32, or of 64 beyond 128. In a fixed order each head has as many thread blocks as fill the
/// GPU, each with sums of its own.
std::vector<Scratch> flash_backward(const Setting& s, std::int64_t B, std::int64_t T) {
  const ModelSpec& m = s.model;
  const std::int64_t sequences = s.documents ? document_slots(B, T, 0) : B,
                     rows = s.documents ? B * T + 128 * sequences : B * up_to_multiple(T, 128),
                     head_dim = up_to_multiple(m.head_dim, m.head_dim <= 128 ? 32 : 64),
                     blocks = sequences * m.heads, sums = s.fixed_order ? (s.sms + blocks - 1) / blocks : 1;
  std::vector<Scratch> out = {{"attention_sums", {sums, rows, m.heads, head_dim}, f32_bytes},
                              {"attention_rows", {m.heads, rows}, f32_bytes}};
  if (s.documents && B > 1) out.push_back({"lse_by_head", {m.heads, B * T}, f32_bytes});
  add_gradients_of_heads(s, B, T, out);
  return out;
}

}  // namespace

/// FlashAttention has heads of at most 256 entries. It alone takes documents, and a window that leaves
/// something out.
AttentionKernel attention_kernel(const Setting& s) {
  const ModelSpec& m = s.model;
  const bool flash_alone = s.documents || attention::window_within(s.model.window, s.sequence_length) > 0;
  if (s.machine == Machine::cpu) return s.plain_attention ? AttentionKernel::math : AttentionKernel::loops;
  if (s.dtype != Dtype::bf16 || s.plain_attention || m.head_dim % 8 != 0 || m.value_dim() % 8 != 0 ||
      (flash_alone && (m.head_dim > 256 || m.value_dim() != m.head_dim)) || !cudnn_takes_widths(m))
    return AttentionKernel::math;
  return flash_alone || s.flash_attention ? AttentionKernel::flash : AttentionKernel::cudnn;
}

/// The loops' columns fill a register of 32 bytes twice.
spec::AttentionKernel executed_kernel(const Setting& s) {
  using Kind = spec::AttentionKernel::Kind;
  switch (attention_kernel(s)) {
    case AttentionKernel::loops:
      return {
          .kind = Kind::tiles, .tile_rows = loop_tile_rows, .column_block = s.dtype == Dtype::f64 ? 8 : 16};
    case AttentionKernel::math:
      return {.kind = Kind::square};
    case AttentionKernel::cudnn:
    case AttentionKernel::flash:
      return {};
  }
  return {};
}

std::string to_string(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::loops:
      return "loops";
    case AttentionKernel::math:
      return "math";
    case AttentionKernel::cudnn:
      return "cudnn";
    case AttentionKernel::flash:
      return "flash";
  }
  return "";
}

std::vector<Scratch> attention_forward_scratch(const Setting& s, std::int64_t B, std::int64_t T) {
  return attention_kernel(s) == AttentionKernel::math ? squares(s, B, T, 3) : std::vector<Scratch>{};
}

std::vector<Scratch> attention_backward_scratch(const Setting& s, std::int64_t B, std::int64_t T) {
  switch (attention_kernel(s)) {
    case AttentionKernel::loops:
      return {};
    case AttentionKernel::math:
      return squares(s, B, T, 4);
    case AttentionKernel::cudnn:
      return cudnn_backward(s, B, T);
    case AttentionKernel::flash:
      return flash_backward(s, B, T);
  }
  return {};
}

}  // namespace assay::spec::memory
