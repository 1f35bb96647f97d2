"""adamw: 20 steps of torch.optim.AdamW in float64; the gradients and learning rates of every step are given."""

import torch

from ..golden_file import Golden, tool_versions
from ..inputs import Draw

STEPS = 20
SHAPES = {"matrix": (3, 5), "gain": (7,), "one": (1,)}


def trajectory(parameters, gradients, learning_rates, decays, betas, eps):
    """Parameters after each step, stacked [S, ...], and the final moments, per name."""
    weights = {name: torch.nn.Parameter(value.clone()) for name, value in parameters.items()}
    groups = [{"params": [weight], "weight_decay": decays[name]} for name, weight in weights.items()]
    optimizer = torch.optim.AdamW(groups, betas=betas, eps=eps, foreach=False)
    after = {name: [] for name in weights}
    for step, rate in enumerate(learning_rates):
        for group in optimizer.param_groups:
            group["lr"] = rate
        for name, weight in weights.items():
            weight.grad = gradients[name][step].clone()
        optimizer.step()
        for name, weight in weights.items():
            after[name].append(weight.detach().clone())
    state = {name: optimizer.state[weight] for name, weight in weights.items()}
    return {name: torch.stack(steps) for name, steps in after.items()}, state


def cases():
    for case, seed, decay, gradient_scale in [
        ("trajectory", 181, 0.1, 1.0),
        ("tiny_gradients", 182, 0.01, 1e-7),  # eps matters: sqrt(v) is of its size
    ]:
        draw, betas, eps = Draw(seed), (0.9, 0.95), 1e-8
        parameters = {name: draw.normal(*shape) for name, shape in SHAPES.items()}
        gradients = {
            name: draw.normal(STEPS, *shape, scale=gradient_scale, decimals=9 if gradient_scale < 1 else 3)
            for name, shape in SHAPES.items()}
        gradients["one"][4:8] = 0.0  # a parameter whose gradient vanishes for some steps still moves
        rates = [1e-2 * min(1.0, (step + 1) / 4) * (1 - step / (2 * STEPS)) for step in range(STEPS)]
        decays = {"matrix": decay, "gain": 0.0, "one": decay}
        after, state = trajectory(parameters, gradients, rates, decays, betas, eps)
        tensors = {"learning_rates": torch.tensor(rates, dtype=torch.float64)}
        for name in SHAPES:
            tensors |= {
                f"{name}.initial": parameters[name], f"{name}.gradients": gradients[name], f"{name}.after": after[name],
                f"{name}.exp_avg": state[name]["exp_avg"], f"{name}.exp_avg_sq": state[name]["exp_avg_sq"]}
        yield Golden(
            "adamw", case, "torch_f64",
            "Loshchilov, Hutter, Decoupled Weight Decay Regularization, arXiv:1711.05101, algorithm 2; torch.optim.AdamW",
            tool_versions("torch"), tensors,
            scalars={"beta1": betas[0], "beta2": betas[1], "eps": eps, "steps": STEPS}
            | {f"{name}.weight_decay": decays[name] for name in SHAPES},
            texts={"parameters": " ".join(SHAPES)}, seed=seed,
            note="<name>.after is [steps, ...], the parameter after each step; moments are those after the last step")
