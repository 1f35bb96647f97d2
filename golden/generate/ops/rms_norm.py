"""rms_norm: torch.nn.functional.rms_norm and autograd in float64."""

import torch
from torch.nn import functional as F

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def cases():
    for case, seed, shape, eps, scale in [
        ("basic", 121, (2, 3, 5), 1e-5, 1.0),
        ("one_entry", 122, (4, 1), 0.1, 1.0),  # dx is of the size of eps
        ("eps_dominates", 123, (2, 7), 0.5, 0.1),  # eps is larger than the mean square, so its place matters
        ("large_values", 124, (3, 9), 1e-6, 300.0),
    ]:
        draw = Draw(seed)
        x, gain = leaves(draw.normal(*shape, scale=scale), draw.normal(shape[-1], mean=1.0, scale=0.3))
        y = F.rms_norm(x, (shape[-1],), gain, eps)
        dy = draw.normal(*shape)
        dx, dgain = gradients(y, dy, x, gain)
        rstd = torch.rsqrt(x.square().mean(-1) + eps).flatten()
        yield Golden(
            "rms_norm", case, "torch_f64",
            "Zhang, Sennrich, Root Mean Square Layer Normalization, NeurIPS 2019, eq. (4), with eps",
            tool_versions("torch"),
            {"x": x, "gain": gain, "y": y, "rstd": rstd, "dy": dy, "dx": dx, "dgain": dgain},
            scalars={"eps": eps}, seed=seed)
