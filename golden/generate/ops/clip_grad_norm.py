"""clip_grad_norm: torch.nn.utils.clip_grad_norm_ in float64, above, below and near the limit."""

import torch

from ..golden_file import Golden, tool_versions
from ..inputs import Draw


def cases():
    for case, seed, max_norm, scale in [
        ("clipped", 191, 1.0, 2.0),
        ("not_clipped", 192, 1.0, 0.02),
        ("small_norm", 193, 1e-6, 1e-3),  # the 1e-6 added to the norm is visible
    ]:
        draw = Draw(seed)
        gradients = [draw.normal(*shape, scale=scale, decimals=6) for shape in [(3, 5), (7,), (1,)]]
        parameters = [torch.nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient.clone()
        norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm, foreach=False)
        tensors = {f"gradient.{i}": gradient for i, gradient in enumerate(gradients)}
        tensors |= {f"clipped.{i}": parameter.grad for i, parameter in enumerate(parameters)}
        yield Golden(
            "clip_grad_norm", case, "torch_f64",
            "Pascanu, Mikolov, Bengio, arXiv:1211.5063, algorithm 1; factor min(1, max_norm / (norm + 1e-6)) as PyTorch",
            tool_versions("torch"), tensors, scalars={"max_norm": max_norm, "norm": norm.item()}, seed=seed)
