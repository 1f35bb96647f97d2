#pragma once
// The matrices of a decoder block, parameter by parameter, listed once: extents, which parameters one matrix
// is made of, the layers that have it and the precision that its GEMMs may have. Inventory, FP8 recipes and
// the step's fields (spec/step/parameters.hpp) read the list.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "spec/model/inventory.hpp"

namespace assay::spec {

/// Layers that have a matrix: all, those with an MLP, or those with experts.
enum class InLayers { all, dense, sparse };
/// What its GEMMs may read in place of the compute type: FP8 by the recipe of a block's linears, or where
/// routed experts have it too.
enum class InFp8 { never, linears, experts };
using ExtentOf = std::int64_t (*)(const ModelSpec&);
using Extents = std::array<std::int64_t, 2>;  ///< [out, in]

/// A parameter; of experts, of one. `begins` false: the next rows of the matrix before, behind which it
/// stands in the flat buffer.
struct MatrixRows {
  Role role;
  ExtentOf out, in;  ///< out is 0 where no layer of the model has it
  InFp8 fp8;
  InLayers layers = InLayers::all;
  bool begins = true;
  Extents extents(const ModelSpec& model) const { return {out(model), in(model)}; }
};

namespace matrix_rows {
using M = const ModelSpec&;
inline LatentAttention a(M m) { return m.latent.value_or(LatentAttention{}); }
inline Experts e(M m) { return m.experts.value_or(Experts{}); }
inline constexpr ExtentOf D = [](M m) { return m.width; }, F = [](M m) { return m.ffn; },
                          gate_F = [](M m) { return gated(m.mlp) ? m.ffn : 0; },
                          HE = [](M m) { return m.latent ? 0 : m.heads * m.head_dim; },
                          KE = [](M m) { return m.latent ? 0 : m.kv_heads * m.head_dim; },
                          HW = [](M m) { return m.heads * m.value_dim(); },
                          Cq = [](M m) { return a(m).query_rank; },
                          Cq_or_D = [](M m) { return Cq(m) > 0 ? Cq(m) : m.width; },
                          latent_HE = [](M m) { return m.latent ? m.heads * m.head_dim : 0; },
                          Ckv = [](M m) { return a(m).key_value_rank; },
                          Ckv_R = [](M m) { return a(m).key_value_rank + a(m).rope_dim; },
                          up =
                              [](M m) {
                                return m.latent ? m.heads * (m.head_dim - m.rope_dim() + m.value_dim()) : 0;
                              },
                          X = [](M m) { return e(m).count; }, G = [](M m) { return e(m).width; },
                          gate_G = [](M m) { return gated(m.mlp) ? e(m).width : 0; },
                          S = [](M m) { return e(m).shared_width; },
                          gate_S = [](M m) { return gated(m.mlp) ? e(m).shared_width : 0; };

inline constexpr MatrixRows list[] = {{Role::query, HE, D, InFp8::linears},
                                      {Role::key, KE, D, InFp8::linears, InLayers::all, false},
                                      {Role::value, KE, D, InFp8::linears, InLayers::all, false},
                                      {Role::query_down, Cq, D, InFp8::linears},
                                      {Role::query_up, latent_HE, Cq_or_D, InFp8::linears},
                                      {Role::key_value_down, Ckv_R, D, InFp8::linears},
                                      {Role::key_value_up, up, Ckv, InFp8::linears},
                                      {Role::attention_output, D, HW, InFp8::linears},
                                      {Role::gate, gate_F, D, InFp8::linears, InLayers::dense},
                                      {Role::up, F, D, InFp8::linears, InLayers::dense, false},
                                      {Role::down, D, F, InFp8::linears, InLayers::dense},
                                      {Role::router, X, D, InFp8::never, InLayers::sparse},
                                      {Role::expert_gate, gate_G, D, InFp8::experts, InLayers::sparse},
                                      {Role::expert_up, G, D, InFp8::experts, InLayers::sparse, false},
                                      {Role::expert_down, D, G, InFp8::experts, InLayers::sparse},
                                      {Role::shared_gate, gate_S, D, InFp8::never, InLayers::sparse},
                                      {Role::shared_up, S, D, InFp8::never, InLayers::sparse, false},
                                      {Role::shared_down, D, S, InFp8::never, InLayers::sparse}};

/// Those of a role; nullptr: it is no matrix of a block.
constexpr const MatrixRows* of(Role role) {
  const auto* found = std::ranges::find(list, role, &MatrixRows::role);
  return found == std::end(list) ? nullptr : found;
}
/// How many matrices have that precision.
constexpr std::size_t count(InFp8 fp8) {
  return static_cast<std::size_t>(
      std::ranges::count_if(list, [&](const MatrixRows& rows) { return rows.begins && rows.fp8 == fp8; }));
}
}  // namespace matrix_rows

/// Of the matrices of a layer, sparse or not, with that precision, in the order of the list.
std::vector<Extents> matrices_in(InFp8 fp8, const ModelSpec& model, bool sparse);

}  // namespace assay::spec
