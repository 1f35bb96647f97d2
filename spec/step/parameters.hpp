#pragma once
// The parameters of a block as the step uses them, and which parameters of the inventory each field is made
// of. Adding a parameter to the step is one field here and one line of its table.
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "spec/model/block_matrices.hpp"
#include "spec/model/inventory.hpp"

namespace assay::spec::step {

/// Matrix: what a GEMM reads or where it leaves a weight's gradient. Vector: gains of norms and biases.
/// A field is undefined where the model has no such parameter.
template <class Matrix, class Vector>
struct DecoderParameters {
  Vector norm_attention;  ///< [D]
  Matrix qkv;             ///< [(H + 2K) E, D]
  Vector qkv_bias;        ///< [(H + 2K) E]
  Vector q_norm, k_norm;  ///< of qk_norm: [E] both, or across heads [H E] and [K E]
  // Of latent attention, in place of those for q, k and v.
  Matrix query_down;      ///< [Cq, D]; undefined where queries are not compressed
  Vector query_norm;      ///< [Cq]; likewise
  Matrix query_up;        ///< [H E, Cq], or [H E, D]
  Matrix key_value_down;  ///< [Ckv + R, D]
  Vector key_value_norm;  ///< [Ckv]
  Matrix key_value_up;    ///< [H (E - R + W), Ckv]
  Matrix output;          ///< [D, H E], of latent attention [D, H W]
  Vector norm_mlp;        ///< [D]
  Matrix gate_up;         ///< [2F, D]
  Matrix down;            ///< [D, F]
  // Of a block with a mixture of experts, in place of gate_up and down.
  Matrix router;           ///< [X, D]
  Vector router_bias;      ///< [X] moved by no gradient (spec/ops/load_balancing/load_balancing.md)
  Matrix experts_gate_up;  ///< [X 2G, D]: of each routed expert its gate and its up
  Matrix experts_down;     ///< [X D, G]
  Matrix shared_gate_up;   ///< [2S, D]
  Matrix shared_down;      ///< [D, S]
};

/// Of any block: 0 fills `embedding`, 1..L fill `decoder`, L+1 fills `norm` and `head`.
template <class Matrix, class Vector>
struct BlockParameters {
  Matrix embedding;  ///< [V, D]
  DecoderParameters<Matrix, Vector> decoder;
  Vector norm;  ///< [D] final norm
  Matrix head;  ///< [V, D]; the embedding where the model ties them
};

/// A parameter of a block: by its name in the inventory, of a decoder block without "model.layers.l.", or by
/// its role where names depend on the family and on the number of experts.
struct Which {
  const char* name = nullptr;
  Role role = Role::norm;
  constexpr Which(const char* of) : name(of) {}
  constexpr Which(Role of) : role(of) {}
};

/// A field and the parameters that it is made of: `first` to `last`, adjacent in the flat buffer, stacked
/// along their rows.
template <class Member>
struct Field {
  Member member;
  Which first, last = first;
};
template <class Member>
Field(Member, Which) -> Field<Member>;
template <class Member>
Field(Member, Which, Which) -> Field<Member>;

template <class P>
constexpr auto decoder_fields() {
  return std::tuple{Field{&P::norm_attention, "input_layernorm.weight"},
                    Field{&P::qkv, Role::query, Role::value},
                    Field{&P::qkv_bias, "self_attn.q_proj.bias", "self_attn.v_proj.bias"},
                    Field{&P::q_norm, "self_attn.q_norm.weight"},
                    Field{&P::k_norm, "self_attn.k_norm.weight"},
                    Field{&P::query_down, Role::query_down},
                    Field{&P::query_norm, "self_attn.q_a_layernorm.weight"},
                    Field{&P::query_up, Role::query_up},
                    Field{&P::key_value_down, Role::key_value_down},
                    Field{&P::key_value_norm, "self_attn.kv_a_layernorm.weight"},
                    Field{&P::key_value_up, Role::key_value_up},
                    Field{&P::output, Role::attention_output},
                    Field{&P::norm_mlp, "post_attention_layernorm.weight"},
                    Field{&P::gate_up, Role::gate, Role::up},
                    Field{&P::down, Role::down},
                    Field{&P::router, Role::router},
                    Field{&P::router_bias, Role::router_bias},
                    Field{&P::experts_gate_up, Role::expert_gate, Role::expert_up},
                    Field{&P::experts_down, Role::expert_down},
                    Field{&P::shared_gate_up, Role::shared_gate, Role::shared_up},
                    Field{&P::shared_down, Role::shared_down}};
}

/// The matrices that FP8 recipes quantise, in the order of `block_linears` and `expert_linears`
/// (spec/ops/linear/linear_precision.hpp).
template <class P>
constexpr auto linear_fields() {
  std::array<decltype(&P::qkv), matrix_rows::count(InFp8::linears) + matrix_rows::count(InFp8::experts)>
      out{};
  std::size_t count = 0;
  const auto take = [&](const auto& field) {
    if constexpr (std::is_same_v<decltype(field.member), decltype(&P::qkv)>)
      if (const MatrixRows* rows = matrix_rows::of(field.first.role); rows && rows->fp8 != InFp8::never)
        out.at(count++) = field.member;
  };
  std::apply([&](const auto&... field) { (take(field), ...); }, decoder_fields<P>());
  return out;
}
inline constexpr std::size_t first_linear_of_experts = matrix_rows::count(InFp8::linears);

/// The parameters from `first` to `last`, which stand beside each other in the flat buffer.
struct FieldRange {
  const Parameter* first = nullptr;  ///< nullptr: the model has none of that name
  std::int64_t rows = 0;             ///< of all of them
};
/// From the first parameter of block `block` that is `first` to the last that is `last`.
/// Errors: SpecError inventory_c1 where there is a `first` and no `last` behind it.
FieldRange field_range(const Inventory& inventory, std::int64_t block, const Which& first, const Which& last);

/// Calls fill(field, first parameter, rows) for each field of `out` that block `block` has.
template <class Matrix, class Vector, class Fill>
void fill_block(BlockParameters<Matrix, Vector>& out, const Inventory& inventory, std::int64_t block,
                bool tied_embeddings, const Fill& fill) {
  const auto range = [&](auto& field, const Which& first, const Which& last) {
    if (const FieldRange of = field_range(inventory, block, first, last); of.first)
      fill(field, *of.first, of.rows);
  };
  if (block == 0) return range(out.embedding, "embed_tokens.weight", "embed_tokens.weight");
  if (block + 1 == inventory.blocks) {
    range(out.norm, "norm.weight", "norm.weight");
    if (!tied_embeddings) return range(out.head, "lm_head.weight", "lm_head.weight");
    if (const FieldRange of = field_range(inventory, 0, "embed_tokens.weight", "embed_tokens.weight");
        of.first)
      fill(out.head, *of.first, of.rows);
    return;
  }
  std::apply([&](const auto&... field) { (range(out.decoder.*field.member, field.first, field.last), ...); },
             decoder_fields<DecoderParameters<Matrix, Vector>>());
}

/// Gives `into` the fields of `from` that it lacks.
template <class Matrix, class Vector>
void complete(BlockParameters<Matrix, Vector>& into, const BlockParameters<Matrix, Vector>& from) {
  const auto fill = [](auto& field, const auto& other) {
    if (!field.defined()) field = other;
  };
  fill(into.embedding, from.embedding);
  fill(into.norm, from.norm);
  fill(into.head, from.head);
  std::apply([&](const auto&... each) { (fill(into.decoder.*each.member, from.decoder.*each.member), ...); },
             decoder_fields<DecoderParameters<Matrix, Vector>>());
}

/// The same block with other types of fields: matrix(field) and vector(field) make them.
template <class Matrix, class Vector, class OfMatrix, class OfVector>
auto convert(const BlockParameters<Matrix, Vector>& from, const OfMatrix& matrix, const OfVector& vector) {
  using ToMatrix = decltype(matrix(from.head));
  using ToVector = decltype(vector(from.norm));
  static_assert(!std::is_same_v<ToMatrix, ToVector>, "which of the two a field is says its type");
  BlockParameters<ToMatrix, ToVector> to{.embedding = matrix(from.embedding),
                                         .decoder = {},
                                         .norm = vector(from.norm),
                                         .head = matrix(from.head)};
  const auto set = [&](auto& field, const auto& source) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, ToMatrix>)
      field = matrix(source);
    else
      field = vector(source);
  };
  constexpr auto sources = decoder_fields<DecoderParameters<Matrix, Vector>>();
  constexpr auto targets = decoder_fields<DecoderParameters<ToMatrix, ToVector>>();
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (set(to.decoder.*std::get<i>(targets).member, from.decoder.*std::get<i>(sources).member), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(sources)>>());
  return to;
}

}  // namespace assay::spec::step
