"""linear: y = x W^T with W [out, in], by torch.nn.functional.linear and autograd in float64."""

from torch.nn import functional as F

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def cases():
    for case, seed, lead, inner, outer in [
        ("basic", 101, (2, 3), 5, 7),
        ("one_row", 102, (1, 1), 9, 4),
        ("one_output", 103, (3, 5), 6, 1),
    ]:
        draw = Draw(seed)
        x, weight = leaves(draw.normal(*lead, inner), draw.normal(outer, inner, scale=0.5))
        y = F.linear(x, weight)
        dy = draw.normal(*y.shape)
        dx, dweight = gradients(y, dy, x, weight)
        yield Golden(
            "linear", case, "torch_f64", "y_o = sum_i x_i W_oi; torch.nn.functional.linear", tool_versions("torch"),
            {"x": x, "weight": weight, "y": y, "dy": dy, "dx": dx, "dweight": dweight}, seed=seed)
