#pragma once
// Every field of ModelSpec and of its parts, listed once. Readers, writers and rules walk these lists or
// cover them with one entry a field, so that a field added to a struct is nowhere ignored in silence:
//   1. The static_assert under a list fails until the new field stands in that list.
//   2. Each static_assert(covers(...)) of a table then fails until the table has an entry for it.
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "spec/model/model_spec.hpp"

namespace assay::spec {

/// One field of `Part`: its key in model files and errors, and whether a file must state it.
template <class Part, class T>
struct Field {
  const char* name;
  T Part::*member;
  bool (*required)(const Part&);

  constexpr Field(const char* name_, T Part::*member_, bool (*required_)(const Part&))
      : name(name_), member(member_), required(required_) {}
};

/// What a table says of one field.
template <class Part, class T, class Said>
struct FieldEntry {
  T Part::*member;
  Said said;
};
template <class Part, class T, class Said>
constexpr FieldEntry<Part, T, Said> of(T Part::*member, Said said) {
  return {member, said};
}

template <class Tuple, class Visit>
constexpr void for_each(const Tuple& tuple, Visit visit) {
  std::apply([&](const auto&... each) { (visit(each), ...); }, tuple);
}

template <class A, class B>
constexpr bool same_field(const A& a, const B& b) {
  if constexpr (std::is_same_v<decltype(a.member), decltype(b.member)>)
    return a.member == b.member;
  else
    return false;
}

/// How many of `tuple` (fields or entries) are about the field of `one`.
template <class One, class Tuple>
constexpr int times(const One& one, const Tuple& tuple) {
  int count = 0;
  for_each(tuple, [&](const auto& each) { count += same_field(one, each) ? 1 : 0; });
  return count;
}

/// Whether `entries` has exactly one entry for each of `fields`.
template <class Fields, class Entries>
constexpr bool covers(const Fields& fields, const Entries& entries) {
  bool once = std::tuple_size_v<Fields> == std::tuple_size_v<Entries>;
  for_each(fields, [&](const auto& field) { once = once && times(field, entries) == 1; });
  return once;
}

struct AnyValue {
  template <class T>
  operator T() const;
};
template <class Part, std::size_t... index>
constexpr bool takes(std::index_sequence<index...>) {
  return requires { Part{(static_cast<void>(index), AnyValue{})...}; };
}
/// Whether `Part` has as many fields as the list: it can be made of that many values, not of one more.
template <class Part, class Fields>
constexpr bool lists_every_field(const Fields& fields) {
  constexpr std::size_t size = std::tuple_size_v<Fields>;
  return covers(fields, fields) && takes<Part>(std::make_index_sequence<size>()) &&
         !takes<Part>(std::make_index_sequence<size + 1>());
}

template <class Part>
constexpr bool always(const Part&) {
  return true;
}
template <class Part>
constexpr bool never(const Part&) {
  return false;
}

constexpr bool turns_by_llama3(const RopeScaling& s) { return s.kind == RopeScalingKind::llama3; }
constexpr std::tuple scaling_fields = {
    Field("factor", &RopeScaling::factor, always<RopeScaling>),
    Field("low_freq_factor", &RopeScaling::low_freq_factor, turns_by_llama3),
    Field("high_freq_factor", &RopeScaling::high_freq_factor, turns_by_llama3),
    Field("original_context", &RopeScaling::original_context, always<RopeScaling>),
    Field("kind", &RopeScaling::kind, never<RopeScaling>),
    Field("beta_fast", &RopeScaling::beta_fast, never<RopeScaling>),
    Field("beta_slow", &RopeScaling::beta_slow, never<RopeScaling>),
    Field("mscale", &RopeScaling::mscale, never<RopeScaling>),
    Field("mscale_all_dim", &RopeScaling::mscale_all_dim, never<RopeScaling>),
    Field("attention_factor", &RopeScaling::attention_factor, never<RopeScaling>)};
static_assert(lists_every_field<RopeScaling>(scaling_fields), "enter the new field of RopeScaling above");

constexpr std::tuple experts_fields = {Field("count", &Experts::count, always<Experts>),
                                       Field("active", &Experts::active, always<Experts>),
                                       Field("width", &Experts::width, always<Experts>),
                                       Field("shared_width", &Experts::shared_width, never<Experts>),
                                       Field("first_dense", &Experts::first_dense, never<Experts>),
                                       Field("every", &Experts::every, never<Experts>),
                                       Field("router_bias", &Experts::router_bias, never<Experts>),
                                       Field("scoring", &Experts::scoring, never<Experts>),
                                       Field("renormalised", &Experts::renormalised, never<Experts>),
                                       Field("groups", &Experts::groups, never<Experts>),
                                       Field("active_groups", &Experts::active_groups, never<Experts>),
                                       Field("scaling_factor", &Experts::scaling_factor, never<Experts>)};
static_assert(lists_every_field<Experts>(experts_fields), "enter the new field of Experts above");

constexpr std::tuple latent_fields = {
    Field("query_rank", &LatentAttention::query_rank, always<LatentAttention>),
    Field("key_value_rank", &LatentAttention::key_value_rank, always<LatentAttention>),
    Field("rope_dim", &LatentAttention::rope_dim, always<LatentAttention>),
    Field("value_dim", &LatentAttention::value_dim, always<LatentAttention>),
    Field("interleaved", &LatentAttention::interleaved, never<LatentAttention>),
    Field("norm_eps", &LatentAttention::norm_eps, never<LatentAttention>)};
static_assert(lists_every_field<LatentAttention>(latent_fields),
              "enter the new field of LatentAttention above");

inline bool turns_positions(const ModelSpec& m) { return m.positions == Positions::rope; }
constexpr std::tuple model_fields = {
    Field("name", &ModelSpec::name, always<ModelSpec>),
    Field("family", &ModelSpec::family, always<ModelSpec>),
    Field("vocab", &ModelSpec::vocab, always<ModelSpec>),
    Field("width", &ModelSpec::width, always<ModelSpec>),
    Field("layers", &ModelSpec::layers, always<ModelSpec>),
    Field("heads", &ModelSpec::heads, always<ModelSpec>),
    Field("kv_heads", &ModelSpec::kv_heads, always<ModelSpec>),
    Field("head_dim", &ModelSpec::head_dim, always<ModelSpec>),
    Field("ffn", &ModelSpec::ffn, always<ModelSpec>),
    Field("context", &ModelSpec::context, always<ModelSpec>),
    Field("tied_embeddings", &ModelSpec::tied_embeddings, always<ModelSpec>),
    Field("qk_norm", &ModelSpec::qk_norm, always<ModelSpec>),
    Field("norm_eps", &ModelSpec::norm_eps, always<ModelSpec>),
    Field("rope_theta", &ModelSpec::rope_theta, turns_positions),
    Field("rope_scaling", &ModelSpec::rope_scaling, never<ModelSpec>),
    Field("init_std", &ModelSpec::init_std, never<ModelSpec>),
    Field("norm", &ModelSpec::norm, never<ModelSpec>),
    Field("mlp", &ModelSpec::mlp, never<ModelSpec>),
    Field("positions", &ModelSpec::positions, never<ModelSpec>),
    Field("qkv_bias", &ModelSpec::qkv_bias, never<ModelSpec>),
    Field("output_bias", &ModelSpec::output_bias, never<ModelSpec>),
    Field("mlp_bias", &ModelSpec::mlp_bias, never<ModelSpec>),
    Field("norm_bias", &ModelSpec::norm_bias, never<ModelSpec>),
    Field("experts", &ModelSpec::experts, never<ModelSpec>),
    Field("latent_attention", &ModelSpec::latent, never<ModelSpec>),
    Field("multi_token_layers", &ModelSpec::multi_token_layers, never<ModelSpec>),
    Field("window", &ModelSpec::window, never<ModelSpec>),
    Field("qk_norm_across_heads", &ModelSpec::qk_norm_across_heads, never<ModelSpec>)};
static_assert(lists_every_field<ModelSpec>(model_fields), "enter the new field of ModelSpec above");

/// The list of a part.
constexpr const auto& fields_of(const RopeScaling*) { return scaling_fields; }
constexpr const auto& fields_of(const Experts*) { return experts_fields; }
constexpr const auto& fields_of(const LatentAttention*) { return latent_fields; }
constexpr const auto& fields_of(const ModelSpec*) { return model_fields; }
template <class Part>
constexpr const auto& fields = fields_of(static_cast<const Part*>(nullptr));

}  // namespace assay::spec
