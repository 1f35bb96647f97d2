"""permute: rows in the order of their experts and the weighted sum back, by a stable argsort, indexing and autograd in float64."""

import torch

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def cases():
    for case, seed, (N, A, X, D), capacity in [("dropless", 431, (7, 2, 5, 3), None), ("capacity", 432, (8, 3, 4, 2), 5)]:
        draw = Draw(seed)
        chosen = torch.stack([torch.from_numpy(draw.generator.permutation(X)[:A]) for _ in range(N)])
        order = chosen.flatten().argsort(stable=True)
        experts = chosen.flatten()[order]
        place = torch.arange(N * A) - torch.searchsorted(experts, experts)  # within the expert
        order = order[place < (capacity or N * A)]
        tokens, counts = order // A, torch.bincount(chosen.flatten()[order], minlength=X)
        x, weights = leaves(draw.normal(N, D), draw.normal(N, A))
        y = x[tokens]
        dy = draw.normal(len(order), D)
        (dx,) = gradients(y, dy, x)
        (z,) = leaves(draw.normal(len(order), D))
        back = torch.zeros(N, D, dtype=torch.float64).index_add(0, tokens, z * weights.flatten()[order, None])
        dback = draw.normal(N, D)
        dz, dweights = gradients(back, dback, z, weights)
        yield Golden(
            "permute", case, "torch_f64", "Shazeer et al., arXiv:1701.06538, eq. (1); Fedus et al., arXiv:2101.03961, eq. (3)",
            tool_versions("torch"),
            {"chosen": chosen, "offsets": torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0))), "tokens": tokens,
             "slots": order % A, "x": x, "weights": weights, "y": y, "dy": dy, "dx": dx, "z": z, "back": back,
             "dback": dback, "dz": dz, "dweights": dweights},
            seed=seed, scalars={"capacity": capacity or 0})
