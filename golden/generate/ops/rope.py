"""rope: rotary embedding of halves and of interleaved pairs, plain, with the Llama 3 frequency scaling and with yarn.

The angles are evaluated by mpmath at 40 digits, the rotation and its gradient by PyTorch in float64. The inverse
frequencies are also those of transformers, which keeps them in float32: the two must agree to float32 rounding.
"""

import mpmath
import numpy as np
import torch
from transformers import LlamaConfig
from transformers.models.deepseek_v3.modeling_deepseek_v3 import apply_rotary_pos_emb_interleave
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, rotate_half

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves

mpmath.mp.dps = 40
FLOAT32_ROUNDING = 8 * 2.0**-24  # relative; a power, a division and the scaling's blend in float32


def yarn_inverse_frequencies(head_dim, theta, scaling):
    """mpmath list of E/2 frequencies [1/token], by arXiv:2309.00071 with the range rounded outwards to whole pairs."""
    def pair_of(turns):
        return head_dim * mpmath.log(scaling["original_context"] / (turns * 2 * mpmath.pi)) / (2 * mpmath.log(theta))

    low = max(mpmath.floor(pair_of(scaling["beta_fast"])), 0)
    high = min(mpmath.ceil(pair_of(scaling["beta_slow"])), head_dim - 1)
    high += mpmath.mpf("0.001") if low == high else 0
    result = []
    for pair in range(head_dim // 2):
        frequency = mpmath.mpf(theta) ** (-mpmath.mpf(2 * pair) / head_dim)
        slowed = min(max((pair - low) / (high - low), 0), 1)
        result.append(slowed * frequency / scaling["factor"] + (1 - slowed) * frequency)
    return result


def yarn_attention_factor(scaling):
    """mpmath factor of cosines and sines."""
    def grown(mscale):
        return 1 + mpmath.mpf(mscale) * mpmath.log(scaling["factor"]) / 10

    if "attention_factor" in scaling:
        return mpmath.mpf(scaling["attention_factor"])
    if "mscale" in scaling and "mscale_all_dim" in scaling:
        return grown(scaling["mscale"]) / grown(scaling["mscale_all_dim"])
    return grown(1)


def inverse_frequencies(head_dim, theta, scaling):
    """mpmath list of E/2 frequencies [1/token]; `scaling` None, the four numbers of Llama 3.1, or yarn's."""
    if scaling and "beta_fast" in scaling:
        return yarn_inverse_frequencies(head_dim, theta, scaling)
    result = []
    for pair in range(head_dim // 2):
        frequency = mpmath.mpf(theta) ** (-mpmath.mpf(2 * pair) / head_dim)
        if scaling:
            low, high = mpmath.mpf(scaling["low_freq_factor"]), mpmath.mpf(scaling["high_freq_factor"])
            turns = scaling["original_context"] * frequency / (2 * mpmath.pi)  # rotations
            keep = min(max((turns - low) / (high - low), 0), 1)
            frequency = keep * frequency + (1 - keep) * frequency / scaling["factor"]
        result.append(frequency)
    return result


def check_against_transformers(frequencies, head_dim, theta, scaling):
    rope, factor, context = {"rope_theta": theta, "rope_type": "default"}, 1, 131072
    if scaling:
        yarn = "beta_fast" in scaling
        factor = yarn_attention_factor(scaling) if yarn else 1
        context = int(scaling["factor"] * scaling["original_context"])
        rope |= {name: value for name, value in scaling.items() if name != "original_context"}
        rope |= {"rope_type": "yarn" if yarn else "llama3", "original_max_position_embeddings": scaling["original_context"]}
    config = LlamaConfig(max_position_embeddings=context, hidden_size=head_dim, num_attention_heads=1, head_dim=head_dim, rope_parameters=rope)
    stock = LlamaRotaryEmbedding(config)
    error = np.abs(stock.inv_freq.double().numpy() / np.array(frequencies, dtype=np.float64) - 1).max()
    if abs(stock.attention_scaling / float(factor) - 1) > 1e-14 or error > FLOAT32_ROUNDING:
        raise AssertionError(f"transformers' inverse frequencies differ by {error}, its factor is {stock.attention_scaling}")


def turned(x, cos, sin, interleaved):
    """x [B,T,H,E] by the angles' cosines and sines [B,T,E]; transformers moves interleaved pairs apart, which is undone."""
    if not interleaved:
        return x * cos.unsqueeze(2) + rotate_half(x) * sin.unsqueeze(2)
    apart, _ = apply_rotary_pos_emb_interleave(x, x, cos, sin, unsqueeze_dim=2)
    return apart.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2)


def cases():
    llama31 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_context": 8192}
    small = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_context": 64}
    deepseek = {"factor": 40.0, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "original_context": 4096}
    unequal = {"factor": 4.0, "beta_fast": 16.0, "beta_slow": 2.0, "mscale": 0.5, "mscale_all_dim": 0.7, "original_context": 512}
    qwen = {"factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "original_context": 32768}
    stated = {"factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.25, "original_context": 64}
    for case, seed, (batch, tokens, heads, head_dim), theta, scaling, positions in [
        ("plain", 141, (2, 5, 3, 6), 10000.0, None, None),
        ("positions_restart", 142, (1, 6, 2, 4), 10000.0, None, [[0, 1, 2, 0, 1, 0]]),
        ("llama3_scaling", 143, (1, 4, 2, 16), 500000.0, llama31, [[0, 1, 4095, 100000]]),
        ("llama3_small_context", 144, (1, 3, 1, 10), 10000.0, small, [[3, 17, 130]]),
        ("interleaved", 145, (2, 4, 3, 6), 10000.0, None, None),
        ("interleaved_yarn_deepseek", 146, (1, 3, 1, 64), 10000.0, deepseek, [[1, 4095, 100000]]),
        ("interleaved_yarn_unequal_mscales", 147, (1, 3, 2, 16), 10000.0, unequal, [[0, 7, 1000]]),
        ("yarn_qwen", 148, (1, 3, 1, 32), 1000000.0, qwen, [[2, 4096, 131071]]),
        ("yarn_stated_factor", 149, (1, 3, 2, 8), 10000.0, stated, [[0, 5, 300]]),
    ]:
        interleaved = case.startswith("interleaved")
        yarn = scaling is not None and "beta_fast" in scaling
        draw = Draw(seed)
        position_ids = np.array(positions) if positions else np.tile(np.arange(tokens), (batch, 1))
        frequencies = inverse_frequencies(head_dim, theta, scaling)
        check_against_transformers(frequencies, head_dim, theta, scaling)

        angles = [[[int(p) * f for f in frequencies] * 2 for p in row] for row in position_ids]
        factor = yarn_attention_factor(scaling) if yarn else mpmath.mpf(1)
        cos, sin = (
            torch.tensor([[[float(factor * function(a)) for a in token] for token in row] for row in angles], dtype=torch.float64)
            for function in (mpmath.cos, mpmath.sin))
        (x,) = leaves(draw.normal(batch, tokens, heads, head_dim))
        y = turned(x, cos, sin, interleaved)
        dy = draw.normal(*y.shape)
        (dx,) = gradients(y, dy, x)
        yield Golden(
            "rope", case, "torch_f64",
            "Su et al., RoFormer, arXiv:2104.09864, eq. (34), "
            + ("neighbours paired as in transformers' apply_rotary_pos_emb_interleave" if interleaved
               else "halves paired as in transformers' rotate_half")
            + ("; yarn: Peng et al., arXiv:2309.00071" if yarn
               else "; scaling as in Llama 3.1 (meta-llama/llama-models, apply_scaling)" if scaling else ""),
            tool_versions("mpmath", "torch", "transformers"),
            {"positions": position_ids, "inverse_frequency": np.array(frequencies, dtype=np.float64),
             "x": x, "y": y, "dy": dy, "dx": dx},
            scalars={"theta": theta} | (scaling or {}) | ({"interleaved": 1} if interleaved else {})
            | ({"cosine_factor": float(factor)} if yarn else {}), seed=seed,
            note="angles by mpmath at 40 digits; inverse frequencies agree with transformers to float32 rounding")
