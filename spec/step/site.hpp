#pragma once
// Where in the step an op runs. A site names what belongs to the place and not to the op: the FLOP component
// that its GEMMs count for, its row in the op list, and the names and purposes of the tensors that it makes.
// So the step's template (spec/step/decoder.hpp) holds no strings and no counters.
#include "spec/flops/exact.hpp"
#include "spec/memory/ledger.hpp"
#include "spec/time/step_ops.hpp"

namespace assay::spec::step {

using memory::Purpose;
using time::StepOp;

struct Site {
  StepOp op;
  FlopComponent component;
  const char* value = "";                           ///< name of forward's result
  Purpose purpose = Purpose::activations;           ///< of that result
  const char* statistic = "";                       ///< rstd or lse beside it, where the op makes one
  const char* gradient = "";                        ///< name of the input's gradient
  Purpose gradient_purpose = Purpose::temporaries;  ///< of that gradient
  bool latent = false;  ///< a norm of compressed values, which has an eps of its own
};

namespace site {

inline constexpr Site embedding{.op = StepOp::embedding, .component = FlopComponent::embedding, .value = "x"};

// A decoder block.
inline constexpr Site norm_attention{
    .op = StepOp::rms_norm, .component = FlopComponent::qkv, .value = "normed", .statistic = "rstd"};
inline constexpr Site qkv{
    .op = StepOp::qkv, .component = FlopComponent::qkv, .value = "qkv", .gradient = "d_normed"};
/// The same where qk_norm follows and keeps its input.
inline constexpr Site qkv_raw{
    .op = StepOp::qkv, .component = FlopComponent::qkv, .value = "qkv_raw", .gradient = "d_normed"};
inline constexpr Site qkv_bias{.op = StepOp::bias, .component = FlopComponent::qkv};
inline constexpr Site qk_norm_rope{
    .op = StepOp::qk_norm_rope, .component = FlopComponent::qkv, .value = "qkv", .statistic = "qk_rstd"};
inline constexpr Site rope{.op = StepOp::rope, .component = FlopComponent::qkv};

// Latent attention. Queries that are not compressed count as qkv, as in spec/flops/exact.
inline constexpr Site query{.op = StepOp::qkv,
                            .component = FlopComponent::qkv,
                            .value = "query",
                            .purpose = Purpose::temporaries,
                            .gradient = "d_normed_query"};
inline constexpr Site query_down{.op = StepOp::latent_projections,
                                 .component = FlopComponent::latent_projections,
                                 .value = "query_down",
                                 .gradient = "d_normed_query"};
inline constexpr Site query_norm{.op = StepOp::rms_norm,
                                 .component = FlopComponent::latent_projections,
                                 .value = "query_normed",
                                 .statistic = "query_rstd",
                                 .gradient = "d_query_down",
                                 .latent = true};
inline constexpr Site query_up{.op = StepOp::latent_projections,
                               .component = FlopComponent::latent_projections,
                               .value = "query",
                               .purpose = Purpose::temporaries,
                               .gradient = "d_query_normed"};
inline constexpr Site key_value_down{.op = StepOp::latent_projections,
                                     .component = FlopComponent::latent_projections,
                                     .value = "key_value_and_shared_key",
                                     .purpose = Purpose::temporaries,
                                     .gradient = "d_normed"};
inline constexpr Site latent_split{
    .op = StepOp::latent_split, .component = FlopComponent::latent_projections, .value = "key_value_down"};
inline constexpr Site key_value_norm{.op = StepOp::rms_norm,
                                     .component = FlopComponent::latent_projections,
                                     .value = "key_value_normed",
                                     .statistic = "key_value_rstd",
                                     .gradient = "d_key_value_down",
                                     .latent = true};
inline constexpr Site key_value_up{.op = StepOp::latent_projections,
                                   .component = FlopComponent::latent_projections,
                                   .value = "key_value",
                                   .purpose = Purpose::temporaries,
                                   .gradient = "d_key_value_normed"};
inline constexpr Site latent_expand{
    .op = StepOp::latent_expand, .component = FlopComponent::latent_projections, .value = "qkv"};

inline constexpr Site attention{.op = StepOp::attention,
                                .component = FlopComponent::attention_scores,
                                .value = "attention_y",
                                .statistic = "attention_lse",
                                .gradient = "dqkv"};
inline constexpr Site attention_output{.op = StepOp::attention_output,
                                       .component = FlopComponent::attention_output,
                                       .value = "x_mid",
                                       .gradient = "dy"};
inline constexpr Site norm_mlp{.op = StepOp::rms_norm,
                               .component = FlopComponent::gate_up,
                               .value = "normed_mid",
                               .statistic = "rstd_mid"};
inline constexpr Site gate_up{.op = StepOp::gate_up,
                              .component = FlopComponent::gate_up,
                              .value = "gate_up",
                              .gradient = "d_normed_mid"};
inline constexpr Site gate{.op = StepOp::swiglu, .component = FlopComponent::down, .value = "gated"};
inline constexpr Site down{
    .op = StepOp::down, .component = FlopComponent::down, .value = "x", .gradient = "d_gated"};

// A mixture of experts in place of the MLP.
inline constexpr Site router{.op = StepOp::router,
                             .component = FlopComponent::router,
                             .value = "router_scores",
                             .gradient = "d_normed_mid"};
inline constexpr Site router_losses{.op = StepOp::router, .component = FlopComponent::router};
inline constexpr Site permute{.op = StepOp::permute,
                              .component = FlopComponent::routed_experts,
                              .value = "permuted",
                              .purpose = Purpose::temporaries};
/// Between expert ranks: tokens to the ranks that hold their experts, the way back, and the gradients of
/// the weights of their choices, which go back as well.
inline constexpr Site dispatch{.op = StepOp::permute,
                               .component = FlopComponent::routed_experts,
                               .value = "dispatched",
                               .purpose = Purpose::temporaries};
inline constexpr Site return_rows{.op = StepOp::permute,
                                  .component = FlopComponent::routed_experts,
                                  .value = "returned",
                                  .purpose = Purpose::temporaries};
inline constexpr Site return_weights{.op = StepOp::permute,
                                     .component = FlopComponent::routed_experts,
                                     .purpose = Purpose::temporaries,
                                     .statistic = "d_routing_weights"};
inline constexpr Site experts_gate_up{.op = StepOp::experts,
                                      .component = FlopComponent::routed_experts,
                                      .value = "experts_gate_up",
                                      .gradient = "d_expert_rows"};
inline constexpr Site experts_gate{
    .op = StepOp::swiglu, .component = FlopComponent::routed_experts, .value = "experts_gated"};
inline constexpr Site experts_down{.op = StepOp::experts,
                                   .component = FlopComponent::routed_experts,
                                   .value = "expert_rows",
                                   .purpose = Purpose::temporaries,
                                   .gradient = "d_experts_gated"};
inline constexpr Site combine{
    .op = StepOp::permute, .component = FlopComponent::routed_experts, .value = "x"};
inline constexpr Site combine_gradient{.op = StepOp::permute,
                                       .component = FlopComponent::routed_experts,
                                       .value = "d_normed_mid",
                                       .purpose = Purpose::temporaries};
inline constexpr Site shared_gate_up{.op = StepOp::shared_experts,
                                     .component = FlopComponent::shared_experts,
                                     .value = "shared_gate_up",
                                     .gradient = "d_normed_shared"};
inline constexpr Site shared_gate{
    .op = StepOp::swiglu, .component = FlopComponent::shared_experts, .value = "shared_gated"};
inline constexpr Site shared_down{.op = StepOp::shared_experts,
                                  .component = FlopComponent::shared_experts,
                                  .value = "x_shared",
                                  .purpose = Purpose::temporaries,
                                  .gradient = "d_shared_gated"};

// The end of the model. The head works on all tokens at once, or on chunks of them.
inline constexpr Site norm_final{.op = StepOp::rms_norm,
                                 .component = FlopComponent::head,
                                 .value = "normed_final",
                                 .purpose = Purpose::head,
                                 .statistic = "rstd_final",
                                 .gradient = "dx"};
inline constexpr Site head{.op = StepOp::head,
                           .component = FlopComponent::head,
                           .value = "logits",
                           .purpose = Purpose::head,
                           .gradient = "d_normed_final",
                           .gradient_purpose = Purpose::activations};
inline constexpr Site head_chunk{.op = StepOp::head,
                                 .component = FlopComponent::head,
                                 .value = "logits",
                                 .purpose = Purpose::head,
                                 .gradient = "d_normed_chunk",
                                 .gradient_purpose = Purpose::head};
inline constexpr Site cross_entropy{.op = StepOp::cross_entropy,
                                    .component = FlopComponent::head,
                                    .purpose = Purpose::head,
                                    .statistic = "logits_lse"};

}  // namespace site
}  // namespace assay::spec::step
