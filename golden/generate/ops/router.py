"""router: scores, choice and weights of experts, by torch.topk and autograd in float64.

Softmax as Mixtral and OLMoE; sigmoid with correction bias and groups as DeepSeek-V3's Gate (inference/model.py of its
repository), whose experts outside the best groups are masked by -inf.
"""

import torch

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves

#        case, seed, (N, D, X, A), renormalised, groups, active groups, scaling factor, source
CASES = [
    ("softmax", 401, (5, 4, 6, 3), False, 1, 1, 1.0, "Muennighoff et al., OLMoE, arXiv:2409.02060, section 2"),
    ("softmax_renormalised", 402, (5, 3, 8, 2), True, 1, 1, 1.0, "Jiang et al., Mixtral, arXiv:2401.04088, section 2.1"),
    ("sigmoid_groups", 403, (7, 4, 12, 3), True, 4, 2, 2.5, "DeepSeek-V3, arXiv:2412.19437, eq. (13) to (16)"),
]


def choice(values, groups, active_groups, active):
    rows, experts = values.shape
    if groups > 1:
        grouped = values.view(rows, groups, -1)
        best = grouped.topk(2, dim=-1)[0].sum(-1).topk(active_groups, dim=-1)[1]
        outside = torch.ones(rows, groups, dtype=torch.bool).scatter_(1, best, False)
        values = grouped.masked_fill(outside.unsqueeze(-1), float("-inf")).view(rows, experts)
    return values.topk(active, dim=-1)[1]


def cases():
    for case, seed, (N, D, X, A), renormalised, groups, active_groups, factor, source in CASES:
        draw = Draw(seed)
        x, weight = leaves(draw.normal(N, D), draw.normal(X, D))
        bias = draw.normal(X, scale=0.3)
        logits = x @ weight.T
        biased = case.startswith("sigmoid")
        scores = logits.sigmoid() if biased else logits.softmax(-1)
        chosen = choice(scores.detach() + bias if biased else scores.detach(), groups, active_groups, A)
        weights = scores.gather(1, chosen)
        if renormalised:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        weights = weights * factor
        p = scores / scores.sum(-1, keepdim=True)
        dweights, dp, dlogits = draw.normal(N, A), draw.normal(N, X), draw.normal(N, X)
        objective = (weights * dweights).sum() + (p * dp).sum() + (logits * dlogits).sum()
        dx, dweight = gradients(objective, torch.ones_like(objective), x, weight)
        tensors = {"x": x, "weight": weight} | ({"bias": bias} if biased else {}) | {
            "logits": logits, "chosen": chosen, "weights": weights, "p": p, "dweights": dweights, "dp": dp,
            "dlogits": dlogits, "dx": dx, "dweight": dweight}
        yield Golden(
            "router", case, "torch_f64", source, tool_versions("torch"), tensors, seed=seed,
            scalars={"renormalised": int(renormalised), "groups": groups, "active_groups": active_groups,
                     "scaling_factor": factor})
