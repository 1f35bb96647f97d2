"""quantise: PyTorch's float8_e4m3fn and float8_e5m2: the value of every code, and casts of values in range.

PyTorch's casts do not saturate, and read float64 by way of float32: every value here is a float32 within the finite range.
"""

import numpy as np
import torch

from ..golden_file import Golden, tool_versions
from ..inputs import Draw

FORMATS = {
    "e4m3": (torch.float8_e4m3fn, "Micikevicius et al., arXiv:2209.05433, table 1: E4M3; torch.float8_e4m3fn"),
    "e5m2": (torch.float8_e5m2, "Micikevicius et al., arXiv:2209.05433, table 1: E5M2; torch.float8_e5m2"),
}


def drawn(draw, finite):
    """Ties between neighbours, and values of every magnitude from a quarter of the least one to the largest; both signs."""
    ties = (finite[1:] + finite[:-1]) / 2
    low, high = np.log2(finite[1]) - 2, np.log2(finite[-1])
    anywhere = np.exp2(draw.generator.uniform(low, high, size=150)).astype(np.float32).astype(np.float64)
    subnormal = draw.generator.uniform(0, 9 * finite[1], size=50).astype(np.float32).astype(np.float64)
    x = np.concatenate([ties, anywhere, subnormal])
    return x * draw.generator.choice([-1.0, 1.0], size=x.size)


def cases():
    for seed, (case, (dtype, source)) in enumerate(FORMATS.items(), 141):
        values = torch.arange(256).to(torch.uint8).view(dtype).double().numpy()
        kinds = np.where(np.isnan(values), 2, np.where(np.isinf(values), np.sign(values), 0)).astype(np.int64)
        finite = values[:128][kinds[:128] == 0]
        draw = Draw(seed)
        x = drawn(draw, finite)
        codes = torch.from_numpy(x).float().to(dtype).view(torch.uint8).long()
        yield Golden("quantise", case, "torch_float8", source, tool_versions("torch"),
                     {"values": np.where(kinds == 0, values, 0.0), "kinds": kinds, "x": x, "codes": codes}, seed=seed,
                     note="kinds of codes: 0 finite, 1 infinity, -1 minus infinity, 2 NaN; values of those that are not finite stand as 0")
