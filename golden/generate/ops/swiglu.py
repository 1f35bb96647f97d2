"""swiglu: y = silu(gate) * up or gelu(gate) * up, by torch.nn.functional and autograd in float64."""

import torch
from torch.nn import functional as F

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def gelu(gate):
    return F.gelu(gate, approximate="tanh")


def cases():
    for case, seed, shape, scale, activation, equation in [
        ("basic", 161, (6, 5), 1.0, F.silu, "eq. (6)"), ("saturated", 162, (3, 7), 30.0, F.silu, "eq. (6)"),
        ("gelu_tanh", 163, (6, 5), 1.0, gelu, "eq. (5), with GELU by tanh"),
        ("gelu_tanh_saturated", 164, (3, 7), 4.0, gelu, "eq. (5), with GELU by tanh"),
    ]:
        draw = Draw(seed)
        gate, up = leaves(draw.normal(*shape, scale=scale), draw.normal(*shape))
        y = activation(gate) * up
        dy = draw.normal(*shape)
        dgate, dup = gradients(y, dy, gate, up)
        yield Golden(
            "swiglu", case, "torch_f64", "Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202, " + equation,
            tool_versions("torch"), {"gate": gate, "up": up, "y": y, "dy": dy, "dgate": dgate, "dup": dup}, seed=seed)
