#include "spec/memory/attention.hpp"

#include <algorithm>

#include "spec/memory/document_slots.hpp"
#include "spec/ops/attention/attention.hpp"

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

attention::Case attention_case(const Setting& s) {
  const ModelSpec& m = s.model;
  const bool documents = s.documents && s.sequence_length > 1;
  return {.dtype = s.dtype,
          .gpu = s.machine == Machine::cuda,
          .B = s.micro,
          .T = s.sequence_length,
          .H = m.heads,
          .K = m.kv_heads,
          .E = m.head_dim,
          .W = m.value_dim() == m.head_dim ? 0 : m.value_dim(),
          .documents = documents,
          .offsets = documents,
          .window = attention::window_within(m.window, s.sequence_length),
          .asked = s.attention,
          .fixed_order = s.fixed_order};
}

AttentionBackend attention_backend(const Setting& setting) {
  return attention::choose(attention_case(setting)).backend;
}

/// The loops' columns fill a register of 32 bytes twice.
spec::AttentionKernel executed_kernel(const Setting& s) {
  using Kind = spec::AttentionKernel::Kind;
  const AttentionBackend backend = attention_backend(s);
  if (backend == AttentionBackend::loops)
    return {.kind = Kind::tiles, .tile_rows = loop_tile_rows, .column_block = s.dtype == Dtype::f64 ? 8 : 16};
  if (backend == AttentionBackend::math) return {.kind = Kind::square};
  return {};
}

std::vector<Scratch> attention_forward_scratch(const Setting& s, std::int64_t B, std::int64_t T) {
  return attention_backend(s) == AttentionBackend::math ? squares(s, B, T, 3) : std::vector<Scratch>{};
}

std::vector<Scratch> attention_backward_scratch(const Setting& s, std::int64_t B, std::int64_t T) {
  const AttentionBackend backend = attention_backend(s);
  if (backend == AttentionBackend::math) return squares(s, B, T, 4);
  if (backend == AttentionBackend::cudnn) return cudnn_backward(s, B, T);
  if (backend == AttentionBackend::flash) return flash_backward(s, B, T);
  return {};
}

}  // namespace assay::spec::memory
