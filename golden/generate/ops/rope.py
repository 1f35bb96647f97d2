"""rope: rotate-half rotary embedding, plain and with the Llama 3 frequency scaling.

The angles are evaluated by mpmath at 40 digits, the rotation and its gradient by PyTorch in float64. The inverse
frequencies are also those of transformers, which keeps them in float32: the two must agree to float32 rounding.
"""

import mpmath
import numpy as np
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, rotate_half

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves

mpmath.mp.dps = 40
FLOAT32_ROUNDING = 8 * 2.0**-24  # relative; a power, a division and the scaling's blend in float32


def inverse_frequencies(head_dim, theta, scaling):
    """mpmath list of E/2 frequencies [1/token]; `scaling` None or the four numbers of Llama 3.1."""
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
    rope = {"rope_theta": theta, "rope_type": "default"}
    if scaling:
        rope = {
            "rope_theta": theta, "rope_type": "llama3", "factor": scaling["factor"],
            "low_freq_factor": scaling["low_freq_factor"], "high_freq_factor": scaling["high_freq_factor"],
            "original_max_position_embeddings": scaling["original_context"],
        }
    config = LlamaConfig(max_position_embeddings=131072, hidden_size=head_dim, num_attention_heads=1, head_dim=head_dim, rope_parameters=rope)
    stock = LlamaRotaryEmbedding(config)
    error = np.abs(stock.inv_freq.double().numpy() / np.array(frequencies, dtype=np.float64) - 1).max()
    if stock.attention_scaling != 1.0 or error > FLOAT32_ROUNDING:
        raise AssertionError(f"transformers' inverse frequencies differ by {error}")


def cases():
    llama31 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_context": 8192}
    small = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_context": 64}
    for case, seed, (batch, tokens, heads, head_dim), theta, scaling, positions in [
        ("plain", 141, (2, 5, 3, 6), 10000.0, None, None),
        ("positions_restart", 142, (1, 6, 2, 4), 10000.0, None, [[0, 1, 2, 0, 1, 0]]),
        ("llama3_scaling", 143, (1, 4, 2, 16), 500000.0, llama31, [[0, 1, 4095, 100000]]),
        ("llama3_small_context", 144, (1, 3, 1, 10), 10000.0, small, [[3, 17, 130]]),
    ]:
        draw = Draw(seed)
        position_ids = np.array(positions) if positions else np.tile(np.arange(tokens), (batch, 1))
        frequencies = inverse_frequencies(head_dim, theta, scaling)
        check_against_transformers(frequencies, head_dim, theta, scaling)

        angles = [[[int(p) * f for f in frequencies] * 2 for p in row] for row in position_ids]
        cos, sin = (
            torch.tensor([[[float(function(a)) for a in token] for token in row] for row in angles], dtype=torch.float64)
            for function in (mpmath.cos, mpmath.sin))
        (x,) = leaves(draw.normal(batch, tokens, heads, head_dim))
        y = x * cos.unsqueeze(2) + rotate_half(x) * sin.unsqueeze(2)
        dy = draw.normal(*y.shape)
        (dx,) = gradients(y, dy, x)
        yield Golden(
            "rope", case, "torch_f64",
            "Su et al., RoFormer, arXiv:2104.09864, eq. (34), halves paired as in transformers' rotate_half"
            + ("; scaling as in Llama 3.1 (meta-llama/llama-models, apply_scaling)" if scaling else ""),
            tool_versions("mpmath", "torch", "transformers"),
            {"positions": position_ids, "inverse_frequency": np.array(frequencies, dtype=np.float64),
             "x": x, "y": y, "dy": dy, "dx": dx},
            scalars={"theta": theta} | (scaling or {}), seed=seed,
            note="angles by mpmath at 40 digits; inverse frequencies agree with transformers to float32 rounding")
