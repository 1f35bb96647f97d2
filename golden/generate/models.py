"""models: whole decoder models of Hugging Face transformers in float64: logits, loss, every gradient, and training steps.

transformers evaluates RMSNorm, the rotary angles, the attention softmax, the scores of routers and their balance loss in
float32 whatever the model's dtype. For float64 truth those functions are replaced; everything else is transformers' own. Each case checks that the replaced
model differs from the stock one by float32 rounding only: more than 0 and less than 1e-5 of the largest logit.
"""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM
from transformers import MixtralConfig, MixtralForCausalLM, OlmoeConfig, OlmoeForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM
from safetensors.torch import load_file
from transformers.models.deepseek_v3 import modeling_deepseek_v3
from transformers.models.llama import modeling_llama
from transformers.models.mistral import modeling_mistral
from transformers.models.mixtral import modeling_mixtral
from transformers.models.olmoe import modeling_olmoe
from transformers.models.qwen2 import modeling_qwen2
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.qwen3_moe import modeling_qwen3_moe
from transformers.utils import logging

from .golden_file import Golden, tool_versions
from .inputs import Draw
from .ops.rope import inverse_frequencies, yarn_attention_factor

logging.disable_progress_bar()
IGNORE = -100
FAMILIES = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM),
            "qwen3": (Qwen3Config, Qwen3ForCausalLM), "mistral": (MistralConfig, MistralForCausalLM),
            "mixtral": (MixtralConfig, MixtralForCausalLM), "qwen3_moe": (Qwen3MoeConfig, Qwen3MoeForCausalLM),
            "olmoe": (OlmoeConfig, OlmoeForCausalLM),
            "deepseek_v3": (DeepseekV3Config, DeepseekV3ForCausalLM)}
EQUATIONS = {
    "llama": "Touvron et al., LLaMA, arXiv:2302.13971, and Llama 3, arXiv:2407.21783, as transformers' LlamaForCausalLM",
    "qwen2": "Qwen2 Technical Report, arXiv:2407.10671, as transformers' Qwen2ForCausalLM",
    "qwen3": "Qwen3 Technical Report, arXiv:2505.09388, as transformers' Qwen3ForCausalLM",
    "mistral": "Jiang et al., Mistral 7B, arXiv:2310.06825, as transformers' MistralForCausalLM",
    "mixtral": "Jiang et al., Mixtral of Experts, arXiv:2401.04088, as transformers' MixtralForCausalLM",
    "qwen3_moe": "Qwen3 Technical Report, arXiv:2505.09388, as transformers' Qwen3MoeForCausalLM",
    "olmoe": "Muennighoff et al., OLMoE, arXiv:2409.02060, as transformers' OlmoeForCausalLM",
    "deepseek_v3": "DeepSeek-V3 Technical Report, arXiv:2412.19437, section 2.1, as transformers' DeepseekV3ForCausalLM",
}
NOTE = "transformers with RMSNorm, rotary angles and attention softmax evaluated in float64 by override"


def rms_norm_f64(self, hidden_states):
    return F.rms_norm(hidden_states, self.weight.shape, self.weight, self.variance_epsilon)


@torch.no_grad()
def rotary_f64(self, x, position_ids):
    rope = self.config.rope_parameters
    scaling, factor = None, 1.0
    if rope["rope_type"] != "default":
        scaling = dict(rope, original_context=rope["original_max_position_embeddings"])
    if rope["rope_type"] == "yarn":
        factor = float(yarn_attention_factor(scaling))
    head_dim = getattr(self.config, "head_dim", None) or self.config.hidden_size // self.config.num_attention_heads
    frequencies = torch.tensor([float(f) for f in inverse_frequencies(head_dim, rope["rope_theta"], scaling)],
                               dtype=torch.float64)
    angles = position_ids[..., None].double() * torch.cat((frequencies, frequencies))
    return angles.cos() * factor, angles.sin() * factor


def eager_attention_f64(module, query, key, value, attention_mask, scaling, **_):
    key = modeling_llama.repeat_kv(key, module.num_key_value_groups)
    value = modeling_llama.repeat_kv(value, module.num_key_value_groups)
    weights = (query @ key.transpose(2, 3) * scaling + attention_mask).softmax(-1)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def top_k_router_f64(self, hidden_states):
    logits = F.linear(hidden_states.reshape(-1, self.hidden_dim), self.weight)
    weights, chosen = logits.softmax(-1).topk(self.top_k, dim=-1)
    if getattr(self, "norm_topk_prob", True):  # Mixtral has no other form
        weights = weights / weights.sum(-1, keepdim=True)
    return logits, weights, chosen


def balance_loss_f64(gate_logits, num_experts, top_k, _=None):
    """load_balancing_loss_func: rows of all layers are counted as one list."""
    p = torch.cat(gate_logits).softmax(-1)
    chosen = F.one_hot(p.topk(top_k, dim=-1)[1], num_experts).double()
    return num_experts * (chosen.mean(0).sum(0) * p.mean(0)).sum()


def grouped_router_f64(self, hidden_states):
    """DeepSeek-V3's: of the best groups the best experts by corrected scores, weighted by those without correction."""
    logits = F.linear(hidden_states.reshape(-1, self.hidden_dim), self.weight)
    scores = logits.sigmoid()
    groups = (scores + self.e_score_correction_bias).unflatten(-1, (self.num_group, -1))
    best = groups.topk(2, dim=-1)[0].sum(-1).topk(self.topk_group, dim=-1)[1]
    kept = torch.zeros(groups.shape[:-1]).scatter(1, best, 1).bool()
    chosen = groups.masked_fill(~kept.unsqueeze(-1), -torch.inf).flatten(-2).topk(self.top_k, dim=-1)[1]
    weights = scores.gather(1, chosen)
    if self.norm_topk_prob:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return logits, weights * self.routed_scaling_factor, chosen


class Float64:
    """Within `with Float64():` the functions are replaced in all families."""

    replacements = [
        (modeling_llama.LlamaRMSNorm, "forward", rms_norm_f64),
        (modeling_qwen2.Qwen2RMSNorm, "forward", rms_norm_f64),
        (modeling_qwen3.Qwen3RMSNorm, "forward", rms_norm_f64),
        (modeling_mistral.MistralRMSNorm, "forward", rms_norm_f64),
        (modeling_deepseek_v3.DeepseekV3RMSNorm, "forward", rms_norm_f64),
        (modeling_llama.LlamaRotaryEmbedding, "forward", rotary_f64),
        (modeling_qwen2.Qwen2RotaryEmbedding, "forward", rotary_f64),
        (modeling_qwen3.Qwen3RotaryEmbedding, "forward", rotary_f64),
        (modeling_mistral.MistralRotaryEmbedding, "forward", rotary_f64),
        (modeling_deepseek_v3.DeepseekV3RotaryEmbedding, "forward", rotary_f64),
        (modeling_llama, "eager_attention_forward", eager_attention_f64),
        (modeling_qwen2, "eager_attention_forward", eager_attention_f64),
        (modeling_qwen3, "eager_attention_forward", eager_attention_f64),
        (modeling_mistral, "eager_attention_forward", eager_attention_f64),
        (modeling_mixtral.MixtralRMSNorm, "forward", rms_norm_f64),
        (modeling_qwen3_moe.Qwen3MoeRMSNorm, "forward", rms_norm_f64),
        (modeling_olmoe.OlmoeRMSNorm, "forward", rms_norm_f64),
        (modeling_mixtral.MixtralRotaryEmbedding, "forward", rotary_f64),
        (modeling_qwen3_moe.Qwen3MoeRotaryEmbedding, "forward", rotary_f64),
        (modeling_olmoe.OlmoeRotaryEmbedding, "forward", rotary_f64),
        (modeling_mixtral, "eager_attention_forward", eager_attention_f64),
        (modeling_qwen3_moe, "eager_attention_forward", eager_attention_f64),
        (modeling_olmoe, "eager_attention_forward", eager_attention_f64),
        (modeling_mixtral.MixtralTopKRouter, "forward", top_k_router_f64),
        (modeling_deepseek_v3.DeepseekV3TopkRouter, "forward", grouped_router_f64),
        (modeling_qwen3_moe.Qwen3MoeTopKRouter, "forward", top_k_router_f64),
        (modeling_olmoe.OlmoeTopKRouter, "forward", top_k_router_f64),
        (modeling_mixtral, "load_balancing_loss_func", balance_loss_f64),
        (modeling_qwen3_moe, "load_balancing_loss_func", balance_loss_f64),
        (modeling_olmoe, "load_balancing_loss_func", balance_loss_f64),
        (modeling_deepseek_v3, "eager_attention_forward", eager_attention_f64),
    ]

    def __enter__(self):
        self.stock = [(owner, name, getattr(owner, name)) for owner, name, _ in self.replacements]
        for owner, name, function in self.replacements:
            setattr(owner, name, function)

    def __exit__(self, *_):
        for owner, name, function in self.stock:
            setattr(owner, name, function)


@dataclasses.dataclass
class Model(Golden):
    """A golden file with the model's config.json beside it, as transformers writes it."""

    config_json: str = ""

    def write(self, root):
        path = super().write(root)
        path.with_suffix(".json").write_text(self.config_json)
        return path


def latent(Cq, Ckv, plain, turned, W):
    """Fields of a DeepSeek-V3 configuration for latent attention."""
    return dict(q_lora_rank=Cq, kv_lora_rank=Ckv, qk_nope_head_dim=plain, qk_rope_head_dim=turned, v_head_dim=W)


CORRECTION = ".e_score_correction_bias"  # of a router's scores: stored beside the parameters, moved by no gradient


def build(family, draw, V, D, L, H, K, F, tied, rope, E=None, act="silu", **more):
    """A model in float64 with drawn weights: large enough that every term counts, gains away from one, biases from zero."""
    config_class, model_class = FAMILIES[family]
    if family == "deepseek_v3":  # unless a case says otherwise every layer is dense; no multi-token block
        more = {"first_k_dense_replace": L, "num_nextn_predict_layers": 0} | more
    config = config_class(
        vocab_size=V, hidden_size=D, num_hidden_layers=L, num_attention_heads=H, num_key_value_heads=K,
        intermediate_size=F, hidden_act=act, tie_word_embeddings=tied, rope_parameters=rope, max_position_embeddings=128,
        rms_norm_eps=1e-6 if family.startswith("qwen") else 1e-5, bos_token_id=None, eos_token_id=None, pad_token_id=None,
        use_cache=False, attn_implementation="eager", **({"head_dim": E} if E else {}), **more)
    config._experts_implementation = "eager"
    model = model_class(config).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            gain = parameter.dim() == 1 and not name.endswith(".bias")
            parameter.copy_(draw.normal(*parameter.shape, mean=1.0 if gain else 0.0, scale=0.3, decimals=4))
        for name, buffer in model.named_buffers():
            if name.endswith(CORRECTION):
                buffer.copy_(draw.normal(*buffer.shape, scale=0.3, decimals=4))
    return model


def config_text(model):
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return (Path(folder) / "config.json").read_text()


def saved_tensors(model):
    """What a file of the model holds, under the names of its tensors: those of experts one by one."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(Path(folder) / "model.safetensors")


def named_parameters(model):
    """Parameters by the names of their files, corrections of routers among them."""
    return saved_tensors(model) if has_experts(model) else dict(model.named_parameters())


def named_gradients(model):
    """Gradients by the same names. Ends the model: the gradients stand in the parameters' place."""
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    if not has_experts(model):
        return gradients
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(gradients[name])
    return {name: gradient for name, gradient in saved_tensors(model).items() if not name.endswith(CORRECTION)}


def has_experts(model):
    """Whether a layer is sparse: experts are stored one by one and computed from stacks."""
    return any(".experts." in name for name, _ in model.named_parameters())


def balanced(model):
    """Whether the model has a balance loss of its experts."""
    return hasattr(model, "router_aux_loss_coef")


def balance_loss(model, outputs):
    """transformers' own, over all tokens: the model itself would take a 4-D mask for one of padding."""
    module = {"mixtral": modeling_mixtral, "qwen3_moe": modeling_qwen3_moe, "olmoe": modeling_olmoe}[model.config.model_type]
    return module.load_balancing_loss_func(outputs.router_logits, model.num_experts, model.num_experts_per_tok)


def logits_of(model, ids, documents):
    """Logits [B,T,V]; of a model with experts also its balance loss."""
    if not balanced(model):
        return outputs_of(model, ids, documents).logits
    outputs = outputs_of(model.model, ids, documents, output_router_logits=True)
    return model.lm_head(outputs.last_hidden_state), balance_loss(model, outputs)


def outputs_of(model, ids, documents, **more):
    """Packed documents go in as a 4-D mask with positions that restart; else transformers' own mask."""
    if documents is None:
        return model(input_ids=ids, **more)
    tokens = ids.shape[1]
    allowed = (documents[:, None, :, None] == documents[:, None, None, :]) & torch.ones(tokens, tokens).tril().bool()
    if window := getattr(model.config, "sliding_window", None):
        allowed = allowed & ~torch.ones(tokens, tokens).tril(-window).bool()
    mask = torch.zeros(allowed.shape, dtype=torch.float64).masked_fill(~allowed, torch.finfo(torch.float64).min)
    return model(input_ids=ids, attention_mask=mask, position_ids=positions_of(documents), **more)


def positions_of(documents):
    """Position of each token within its document."""
    positions = torch.zeros_like(documents)
    for t in range(1, documents.shape[1]):
        positions[:, t] = (positions[:, t - 1] + 1) * (documents[:, t] == documents[:, t - 1])
    return positions


def mean_loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORE)


def check_against_stock(model, ids, documents):
    with torch.no_grad():
        stock = logits_of(model, ids, documents)
        with Float64():
            truth = logits_of(model, ids, documents)
    if balanced(model):
        (stock, stock_loss), (truth, loss) = stock, truth
        if not abs(stock_loss - loss) < 1e-5 * loss:
            raise AssertionError(f"float64 balance loss {loss} differs from stock transformers' {stock_loss}")
    difference = ((stock - truth).abs().max() / truth.abs().max()).item()
    if not 0 < difference < 1e-5:
        raise AssertionError(f"float64 override differs from stock transformers by {difference}")


PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
SCALED = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "beta_fast": 16.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 32}
YARN_MSCALES = dict(YARN, mscale=0.7, mscale_all_dim=1.3)  # unequal: the attention factor is not 1
#            family, seed, sizes, tied, rope, (B, T), documents, share of ignored targets
CASES = {
    "llama_tied_one_layer": ("llama", 301, dict(V=13, D=9, L=1, H=3, K=3, E=4, F=11), True, PLAIN, (2, 5), None, 0.0),
    "llama_gqa2": ("llama", 302, dict(V=19, D=12, L=3, H=4, K=2, E=6, F=17), False, PLAIN, (2, 7), None, 0.3),
    "llama_gqa4_scaled_rope": ("llama", 303, dict(V=17, D=16, L=2, H=4, K=1, E=8, F=21), False, SCALED, (1, 41), None, 0.2),
    "llama_packed": (
        "llama", 304, dict(V=11, D=10, L=2, H=2, K=1, E=4, F=7), True, PLAIN, (2, 8),
        [[0, 0, 0, 1, 1, 1, 1, 2], [0, 1, 1, 2, 2, 2, 2, 2]], 0.2),
    "geglu_gqa2": (
        "llama", 313, dict(V=16, D=12, L=2, H=4, K=2, E=4, F=13, act="gelu_pytorch_tanh"), False, PLAIN, (2, 7), None, 0.2),
    "geglu_packed_tied": (
        "qwen3", 314, dict(V=13, D=8, L=3, H=2, K=1, E=6, F=9, act="gelu_pytorch_tanh"), True, PLAIN, (2, 6),
        [[0, 0, 0, 1, 1, 2], [0, 1, 1, 1, 1, 1]], 0.2),
    "qwen2_one_layer": ("qwen2", 308, dict(V=12, D=10, L=1, H=2, K=2, E=4, F=9), False, PLAIN, (3, 4), None, 0.3),
    "qwen2_tied_gqa3": ("qwen2", 309, dict(V=21, D=13, L=3, H=3, K=1, E=6, F=14), True, PLAIN, (2, 6), None, 0.2),
    "qwen2_packed_gqa2": (
        "qwen2", 310, dict(V=15, D=9, L=2, H=4, K=2, E=4, F=8), False, PLAIN, (2, 8),
        [[0, 0, 0, 1, 1, 1, 1, 2], [0, 0, 1, 1, 1, 1, 2, 2]], 0.2),
    "qwen3_one_layer": ("qwen3", 305, dict(V=11, D=7, L=1, H=2, K=2, E=4, F=9), False, PLAIN, (3, 4), None, 0.3),
    "qwen3_tied_gqa4": ("qwen3", 306, dict(V=23, D=15, L=3, H=4, K=1, E=6, F=13), True, PLAIN, (2, 6), None, 0.2),
    "qwen3_packed_gqa2": (
        "qwen3", 307, dict(V=14, D=11, L=2, H=4, K=2, E=2, F=8), False, PLAIN, (2, 7),
        [[0, 0, 1, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0, 1]], 0.2),
    "mistral_window": (
        "mistral", 308, dict(V=17, D=12, L=3, H=4, K=2, E=6, F=13, sliding_window=4), False, PLAIN, (2, 11), None, 0.2),
    "mistral_window_packed": (
        "mistral", 309, dict(V=13, D=10, L=2, H=2, K=1, E=4, F=9, sliding_window=3), True, PLAIN, (2, 9),
        [[0, 0, 0, 0, 0, 0, 1, 1, 2], [0, 1, 1, 1, 1, 1, 1, 1, 1]], 0.2),
    "mixtral_gqa2": (
        "mixtral", 331, dict(V=17, D=12, L=2, H=4, K=2, E=6, F=10, num_local_experts=5, num_experts_per_tok=2,
                             router_aux_loss_coef=0.2), False, PLAIN, (2, 7), None, 0.2),
    "mixtral_packed_window": (
        "mixtral", 332, dict(V=13, D=8, L=3, H=2, K=1, E=4, F=7, sliding_window=3, num_local_experts=4, num_experts_per_tok=1,
                             router_aux_loss_coef=0.3), True, PLAIN, (2, 9),
        [[0, 0, 0, 0, 0, 0, 1, 1, 2], [0, 1, 1, 1, 1, 1, 1, 1, 1]], 0.2),
    "qwen3_moe_one_layer": (
        "qwen3_moe", 333, dict(V=11, D=7, L=1, H=2, K=2, E=4, F=9, moe_intermediate_size=5, num_experts=6, num_experts_per_tok=3,
                               norm_topk_prob=True, router_aux_loss_coef=0.1), False, PLAIN, (3, 4), None, 0.3),
    "qwen3_moe_every_second": (
        "qwen3_moe", 334, dict(V=14, D=10, L=4, H=4, K=1, E=4, F=9, moe_intermediate_size=6, num_experts=4, num_experts_per_tok=2,
                               norm_topk_prob=True, decoder_sparse_step=2, router_aux_loss_coef=0.1), True, PLAIN, (2, 6), None, 0.2),
    "qwen3_moe_dense_first_packed": (
        "qwen3_moe", 335, dict(V=12, D=9, L=3, H=2, K=1, E=6, F=8, moe_intermediate_size=4, num_experts=5, num_experts_per_tok=3,
                               norm_topk_prob=False, mlp_only_layers=[0], router_aux_loss_coef=0.2), False, PLAIN, (2, 8),
        [[0, 0, 0, 1, 1, 1, 1, 2], [0, 0, 1, 1, 1, 1, 2, 2]], 0.2),
    "olmoe_gqa2": (
        "olmoe", 336, dict(V=15, D=16, L=2, H=4, K=2, E=None, F=6, num_experts=6, num_experts_per_tok=3, router_aux_loss_coef=0.1),
        False, PLAIN, (2, 6), None, 0.2),
    "olmoe_packed_renormalised": (
        "olmoe", 337, dict(V=13, D=12, L=3, H=2, K=2, E=None, F=5, num_experts=4, num_experts_per_tok=2, norm_topk_prob=True,
                           router_aux_loss_coef=0.2), False, PLAIN, (2, 8),
        [[0, 0, 0, 1, 1, 1, 1, 2], [0, 1, 1, 2, 2, 2, 2, 2]], 0.2),
    "deepseek_v3_dense": (
        "deepseek_v3", 315, dict(V=17, D=10, L=3, H=3, K=3, F=13, **latent(Cq=5, Ckv=7, plain=3, turned=4, W=6)),
        False, PLAIN, (2, 7), None, 0.2),
    "deepseek_v3_dense_direct_queries": (
        "deepseek_v3", 316, dict(V=13, D=9, L=2, H=2, K=2, F=11, **latent(Cq=None, Ckv=4, plain=2, turned=6, W=3)),
        True, PLAIN, (2, 6), None, 0.2),
    "deepseek_v3_dense_halves": (
        "deepseek_v3", 317, dict(V=11, D=8, L=1, H=2, K=2, F=9, rope_interleave=False,
                                 **latent(Cq=3, Ckv=5, plain=1, turned=4, W=4)),
        False, PLAIN, (1, 9), None, 0.2),
    "deepseek_v3_dense_yarn": (
        "deepseek_v3", 318, dict(V=15, D=11, L=2, H=2, K=2, F=10, **latent(Cq=6, Ckv=5, plain=4, turned=8, W=5)),
        False, YARN, (1, 41), None, 0.2),
    "deepseek_v3_dense_yarn_packed": (
        "deepseek_v3", 319, dict(V=14, D=10, L=2, H=3, K=3, F=12, **latent(Cq=None, Ckv=6, plain=3, turned=8, W=2)),
        False, YARN_MSCALES, (2, 8), [[0, 0, 0, 0, 0, 1, 1, 2], [0, 1, 1, 1, 1, 1, 2, 2]], 0.2),
    "deepseek_v3_dense_packed": (
        "deepseek_v3", 320, dict(V=12, D=7, L=2, H=2, K=2, F=8, **latent(Cq=4, Ckv=3, plain=2, turned=2, W=4)),
        True, PLAIN, (2, 8), [[0, 0, 0, 1, 1, 1, 1, 2], [0, 0, 1, 1, 1, 1, 2, 2]], 0.2),
    "deepseek_v3_sparse": (
        "deepseek_v3", 322, dict(V=17, D=10, L=3, H=3, K=3, F=13, first_k_dense_replace=1, moe_intermediate_size=4,
                                 n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2, n_group=4, topk_group=2,
                                 **latent(Cq=5, Ckv=7, plain=3, turned=8, W=6)),
        False, YARN_MSCALES, (2, 7), None, 0.2),
    "deepseek_v3_sparse_packed": (
        "deepseek_v3", 323, dict(V=13, D=9, L=2, H=2, K=2, F=11, first_k_dense_replace=0, moe_intermediate_size=5,
                                 n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1, n_group=2, topk_group=1,
                                 norm_topk_prob=False, routed_scaling_factor=1.5,
                                 **latent(Cq=None, Ckv=4, plain=2, turned=6, W=3)),
        True, PLAIN, (2, 8), [[0, 0, 0, 1, 1, 1, 1, 2], [0, 0, 1, 1, 1, 1, 2, 2]], 0.2),
    "deepseek_v3_sparse_one_group": (
        "deepseek_v3", 324, dict(V=11, D=8, L=2, H=2, K=2, F=9, first_k_dense_replace=1, moe_intermediate_size=6,
                                 n_routed_experts=5, num_experts_per_tok=4, n_shared_experts=1, n_group=1, topk_group=1,
                                 routed_scaling_factor=1.0, **latent(Cq=3, Ckv=5, plain=1, turned=4, W=4)),
        False, PLAIN, (1, 9), None, 0.2),
    "qwen3_yarn": ("qwen3", 321, dict(V=16, D=12, L=2, H=4, K=2, E=8, F=14), False, YARN, (1, 41), None, 0.2),
}


def draw_targets(draw, vocab, shape, ignored):
    targets = draw.integers(0, vocab, *shape)
    targets[torch.from_numpy(draw.generator.random(shape) < ignored)] = IGNORE
    if (targets == IGNORE).all():
        raise AssertionError("no target counts")
    return targets


def one_pass(case):
    family, seed, sizes, tied, rope, shape, document_rows, ignored = CASES[case]
    draw = Draw(seed)
    model = build(family, draw, tied=tied, rope=rope, **sizes)
    ids, targets = draw.integers(0, sizes["V"], *shape), draw_targets(draw, sizes["V"], shape, ignored)
    documents = torch.tensor(document_rows) if document_rows else None
    check_against_stock(model, ids, documents)
    scalars = {}
    with Float64():
        logits = logits_of(model, ids, documents)
        if balanced(model):
            logits, balance = logits
            scalars = {"balance_loss": balance.item(), "balance_coefficient": model.router_aux_loss_coef}
        loss = mean_loss(logits, targets)
        (loss + model.router_aux_loss_coef * balance if scalars else loss).backward()
    config_json = config_text(model)
    numbers = torch.zeros(shape, dtype=torch.int64) if documents is None else documents
    tensors = {"ids": ids, "targets": targets, "documents": numbers, "positions": positions_of(numbers), "logits": logits}
    tensors |= {f"parameters/{name}": parameter for name, parameter in named_parameters(model).items()}
    tensors |= {f"gradients/{name}": gradient for name, gradient in named_gradients(model).items()}
    equation = EQUATIONS[family]
    if "act" in sizes:
        equation += "; the MLP: Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202, eq. (5)"
    return Model(
        "model", case, "transformers_f64", equation, tool_versions("mpmath", "torch", "transformers"), tensors,
        scalars={"loss": loss.item(), "valid": int((targets != IGNORE).sum())} | scalars, seed=seed, folder="models", note=NOTE,
        config_json=config_json)


def training(case="llama_training", seed=311, steps=5):
    """Whole training steps: mean loss, backward, clip, AdamW with decay on matrices only."""
    draw, betas, eps, decay, max_norm = Draw(seed), (0.9, 0.95), 1e-8, 0.1, 2.5  # some steps clip, some do not
    model = build("llama", draw, V=13, D=8, L=2, H=2, K=1, E=4, F=11, tied=False, rope=PLAIN)
    ids, targets = draw.integers(0, 13, steps, 2, 6), draw_targets(draw, 13, (steps, 2, 6), 0.2)
    check_against_stock(model, ids[0], None)
    rates = [0.004, 0.008, 0.01, 0.0075, 0.005]
    named = dict(model.named_parameters())
    groups = [{"params": [p for p in named.values() if p.dim() == 2], "weight_decay": decay},
              {"params": [p for p in named.values() if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=betas, eps=eps, foreach=False)
    tensors = {"ids": ids, "targets": targets, "learning_rates": np.array(rates)}
    tensors |= {f"initial/{name}": parameter.detach().clone() for name, parameter in named.items()}
    losses, norms, after = [], [], {name: [] for name in named}
    with Float64():
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = rates[step]
            optimizer.zero_grad()
            loss = mean_loss(logits_of(model, ids[step], None), targets[step])
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(list(named.values()), max_norm, foreach=False).item())
            optimizer.step()
            losses.append(loss.item())
            for name, parameter in named.items():
                after[name].append(parameter.detach().clone())
    tensors |= {"losses": np.array(losses), "gradient_norms": np.array(norms)}
    tensors |= {f"after/{name}": torch.stack(values) for name, values in after.items()}
    return Model(
        "training", case, "transformers_f64", EQUATIONS["llama"] + "; torch.optim.AdamW, torch.nn.utils.clip_grad_norm_",
        tool_versions("mpmath", "torch", "transformers"), tensors,
        scalars={"steps": steps, "beta1": betas[0], "beta2": betas[1], "eps": eps, "weight_decay": decay,
                 "max_norm": max_norm},
        seed=seed, folder="models", config_json=config_text(model),
        note=NOTE + "; gradient_norms before clipping; after/<name> is [steps, ...]; only matrices decay")


def cases():
    for case in CASES:
        yield one_pass(case)
    yield training()
