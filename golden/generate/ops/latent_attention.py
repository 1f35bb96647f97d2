"""latent_attention: transformers' DeepseekV3Attention in float64 up to its output projection, gradients by autograd.

The RMS norms, the rotary angles and the softmax, which transformers evaluates in float32, are those of `models.Float64`.
"""

import torch
from transformers import DeepseekV3Config
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention, DeepseekV3RotaryEmbedding

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves
from ..models import Float64, positions_of

PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 0.7,
        "mscale_all_dim": 1.3, "original_max_position_embeddings": 64}


def attended(attention, x, angles, allowed):
    """What reaches the output projection [B,T,H,W]."""
    inputs = []
    hook = attention.o_proj.register_forward_pre_hook(lambda module, arguments: inputs.append(arguments[0]))
    mask = torch.zeros(allowed.shape, dtype=torch.float64).masked_fill(~allowed, torch.finfo(torch.float64).min)
    attention(x, position_embeddings=angles, attention_mask=mask)
    hook.remove()
    return inputs[0].unflatten(-1, (attention.num_heads, attention.v_head_dim))


def cases():
    for case, seed, (batch, tokens, width, heads), (Cq, Ckv, plain, turned, values), rope, interleaved, documents in [
        ("compressed_queries", 161, (2, 5, 7, 3), (4, 5, 3, 4, 2), PLAIN, True, None),
        ("direct_queries", 162, (1, 6, 5, 2), (None, 3, 2, 6, 5), PLAIN, True, None),
        ("halves", 163, (1, 4, 6, 2), (3, 4, 1, 4, 3), PLAIN, False, None),
        ("yarn_documents", 164, (2, 6, 6, 2), (5, 4, 3, 8, 4), YARN, True, [[0, 0, 0, 1, 1, 2], [0, 1, 1, 1, 1, 1]]),
    ]:
        draw = Draw(seed)
        config = DeepseekV3Config(
            hidden_size=width, num_attention_heads=heads, num_key_value_heads=heads, q_lora_rank=Cq, kv_lora_rank=Ckv,
            qk_nope_head_dim=plain, qk_rope_head_dim=turned, v_head_dim=values, rope_parameters=dict(rope),
            rope_interleave=interleaved, max_position_embeddings=64, attn_implementation="eager")
        attention = DeepseekV3Attention(config, 0).double()
        weights = {name.removesuffix(".weight"): parameter for name, parameter in attention.named_parameters()
                   if not name.startswith("o_proj")}
        with torch.no_grad():
            for parameter in weights.values():
                gain = parameter.dim() == 1
                parameter.copy_(draw.normal(*parameter.shape, mean=1.0 if gain else 0.0, scale=0.3 if gain else 0.6))
        (x,) = leaves(draw.normal(batch, tokens, width))
        document_ids = torch.tensor(documents) if documents else torch.zeros(batch, tokens, dtype=torch.int64)
        positions = positions_of(document_ids)
        allowed = torch.ones(tokens, tokens).tril().bool() & (document_ids.unsqueeze(2) == document_ids.unsqueeze(1))
        with Float64():
            angles = DeepseekV3RotaryEmbedding(config)(x, positions)
            y = attended(attention, x, angles, allowed.unsqueeze(1))
            dy = draw.normal(*y.shape)
            dx, *dweights = gradients(y, dy, x, *weights.values())
        tensors = {"x": x, "documents": document_ids, "positions": positions, **weights, "y": y, "dy": dy, "dx": dx}
        tensors |= {f"d{name}": gradient for name, gradient in zip(weights, dweights)}
        yield Golden(
            "latent_attention", case, "transformers_f64",
            "DeepSeek-V2, arXiv:2405.04434, section 2.1, as transformers' DeepseekV3Attention"
            + ("; yarn: Peng et al., arXiv:2309.00071" if rope is YARN else ""),
            tool_versions("mpmath", "torch", "transformers"), tensors,
            scalars={"heads": heads, "query_rank": Cq or 0, "key_value_rank": Ckv, "head_dim": plain + turned,
                     "rope_dim": turned, "value_dim": values, "interleaved": int(interleaved), "eps": 1e-6,
                     "theta": rope["rope_theta"]}
            | ({name: rope[name] for name in ("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")}
               | {"original_context": rope["original_max_position_embeddings"]} if rope is YARN else {}),
            seed=seed,
            note="y is the output projection's input; documents as in attention; RMSNorm, rotary angles and softmax in "
            "float64 by override")
