"""swiglu: y = silu(gate) * up, by torch.nn.functional.silu and autograd in float64."""

import torch
from torch.nn import functional as F

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def cases():
    for case, seed, shape, scale in [("basic", 161, (6, 5), 1.0), ("saturated", 162, (3, 7), 30.0)]:
        draw = Draw(seed)
        gate, up = leaves(draw.normal(*shape, scale=scale), draw.normal(*shape))
        y = F.silu(gate) * up
        dy = draw.normal(*shape)
        dgate, dup = gradients(y, dy, gate, up)
        yield Golden(
            "swiglu", case, "torch_f64", "Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202, eq. (6)",
            tool_versions("torch"), {"gate": gate, "up": up, "y": y, "dy": dy, "dgate": dgate, "dup": dup}, seed=seed)
