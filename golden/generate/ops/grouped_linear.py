"""grouped_linear: the rows of every expert times its weight, by torch.split, matmul and autograd in float64."""

import torch

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def cases():
    for case, seed, counts, (inner, out) in [("basic", 421, (3, 1, 2), (4, 5)), ("empty_groups", 422, (0, 4, 0, 0, 2), (3, 2))]:
        draw = Draw(seed)
        rows = sum(counts)
        x, weights = leaves(draw.normal(rows, inner), draw.normal(len(counts), out, inner))
        y = torch.cat([part @ weight.T for part, weight in zip(x.split(counts), weights)])
        dy = draw.normal(rows, out)
        dx, dweights = gradients(y, dy, x, weights)
        offsets = torch.tensor((0, *counts)).cumsum(0)
        yield Golden(
            "grouped_linear", case, "torch_f64", "Gale et al., MegaBlocks, arXiv:2211.15841, section 2", tool_versions("torch"),
            {"x": x, "weights": weights, "offsets": offsets, "y": y, "dy": dy, "dx": dx, "dweights": dweights}, seed=seed)
