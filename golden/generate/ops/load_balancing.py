"""load_balancing: balance loss by groups of rows and the router's z-loss, by torch and autograd in float64."""

import torch
from torch.nn import functional as F

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves

#        case, seed, (N, X, A), groups of rows, normalizer
CASES = [("one_group", 411, (6, 5, 2), 1, 6.0), ("two_groups_of_a_part", 412, (8, 4, 3), 2, 20.0)]


def cases():
    for case, seed, (N, X, A), groups, normalizer in CASES:
        draw = Draw(seed)
        (logits,) = leaves(draw.normal(N, X))
        p = logits.softmax(-1)
        chosen = p.detach().topk(A, dim=-1)[1]
        f = F.one_hot(chosen, X).double().sum(1).view(groups, -1, X).sum(1) / (A * N / groups)
        balance = X / normalizer * (p.view(groups, -1, X) * f[:, None]).sum()
        z = torch.logsumexp(logits, -1).square().sum() / normalizer
        one = torch.ones_like(balance)
        (dp,) = torch.autograd.grad(balance, p, one, retain_graph=True)
        (dlogits,) = gradients(z, one, logits)
        yield Golden(
            "load_balancing", case, "torch_f64",
            "Fedus et al., Switch Transformers, arXiv:2101.03961, eq. (4) to (6); Zoph et al., ST-MoE, arXiv:2202.08906, eq. (5)",
            tool_versions("torch"),
            {"logits": logits, "chosen": chosen, "p": p, "f": f, "dp": dp, "dlogits": dlogits}, seed=seed,
            scalars={"normalizer": normalizer, "balance": balance.item(), "router_z": z.item()})
