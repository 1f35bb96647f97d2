"""flops: what PyTorch's FlopCounterMode counts in one training step of Hugging Face transformers' models.

The counter sees every matrix product that ATen runs and counts a multiply-add as 2. Attention is the eager one, which
multiplies every query with every key, so it counts all T * T pairs. One sequence: forward, loss, backward.
"""

import json
import logging as python_logging

import numpy as np
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode
from transformers.utils import logging

from .golden_file import Golden, tool_versions

logging.set_verbosity_error()
python_logging.getLogger("transformers").setLevel(python_logging.ERROR)
TOKENS = 12
SMALL = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=False)
EXPERTS = dict(moe_intermediate_size=20, num_experts_per_tok=2)
CASES = {
    "llama": ("Llama", SMALL),
    "llama_tied": ("Llama", SMALL | dict(tie_word_embeddings=True, num_key_value_heads=1)),
    "qwen2_bias": ("Qwen2", SMALL),
    "qwen3_wide_heads": ("Qwen3", SMALL | dict(head_dim=16)),
    "gpt2": ("GPT2", dict(vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=64, n_inner=112)),
    "mixtral": ("Mixtral", SMALL | dict(num_local_experts=6, num_experts_per_tok=3)),
    "qwen3_moe": ("Qwen3Moe", SMALL | EXPERTS | dict(head_dim=16, num_experts=8)),
    "deepseek_v3": ("DeepseekV3", SMALL | EXPERTS | dict(
        num_hidden_layers=3, num_key_value_heads=4, n_routed_experts=8, n_shared_experts=1, first_k_dense_replace=1,
        n_group=2, topk_group=1, q_lora_rank=24, kv_lora_rank=16, qk_rope_head_dim=4, qk_nope_head_dim=12,
        v_head_dim=10)),
}
# Innermost modules by what the spec calls the component; first match counts.
COMPONENTS = [
    ("shared_experts", ".shared_experts."), ("routed_experts", ".experts."), ("router", ".mlp.gate."),
    ("qkv", "self_attn.q_proj"), ("qkv", "self_attn.k_proj"), ("qkv", "self_attn.v_proj"), ("qkv", ".c_attn"),
    ("latent_projections", "_a_proj"), ("latent_projections", "_b_proj"),
    ("attention_output", "attn.o_proj"), ("attention_output", "attn.c_proj"),
    ("gate_up", ".gate_proj"), ("gate_up", ".up_proj"), ("gate_up", ".c_fc"),
    ("down", ".down_proj"), ("down", "mlp.c_proj"), ("head", "lm_head"),
]


def counts_of(counter):
    """Module to FLOPs by op, without the module types' names."""
    return {module: {str(op).removeprefix("aten."): n for op, n in ops.items()}
            for module, ops in counter.get_flop_counts().items()}


def by_component(modules):
    """Forward FLOPs by component; every module's products lie in an innermost module or, as bmm, in its attention."""
    found = {}
    for module, ops in modules.items():
        if any(other.startswith(module + ".") for other in modules) or module == "Global":
            if module.endswith("attn"):
                found["attention"] = found.get("attention", 0) + ops["bmm"]
            continue
        component = next((name for name, part in COMPONENTS if part in module + "."), None)
        if component is None:
            raise AssertionError(f"{module} is no component")
        found[component] = found.get(component, 0) + sum(ops.values())
    if sum(found.values()) != sum(modules["Global"].values()):
        raise AssertionError(f"components {found} do not sum to {modules['Global']}")
    return found


def config_text(config):
    fields = config.to_dict()
    del fields["transformers_version"]  # tool_versions states it
    return json.dumps(fields, sort_keys=True)


def step(case):
    family, sizes = CASES[case]
    torch.manual_seed(1)
    config = getattr(transformers, f"{family}Config")(
        **sizes, use_cache=False, attn_implementation="eager", bos_token_id=None, eos_token_id=None)
    config._experts_implementation = "eager"
    head = "LMHeadModel" if family == "GPT2" else "ForCausalLM"
    model = getattr(transformers, family + head)(config).eval()
    ids = torch.arange(TOKENS)[None] * 7 % config.vocab_size
    with FlopCounterMode(display=False) as forward:
        loss = model(input_ids=ids, labels=ids).loss
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    tensors = {f"forward/{name}": np.array([count]) for name, count in sorted(by_component(counts_of(forward)).items())}
    tensors |= {"forward": np.array([forward.get_total_flops()]), "backward": np.array([backward.get_total_flops()])}
    return Golden(
        "flops", case, "torch_flop_counter", "torch.utils.flop_counter.FlopCounterMode over transformers' own model",
        tool_versions("torch", "transformers"), tensors, scalars={"tokens": TOKENS, "parameters": parameters},
        folder="flops",
        texts={"config": config_text(config)},
        note="FLOPs of one sequence; attention over all pairs")


def cases():
    for case in CASES:
        yield step(case)
