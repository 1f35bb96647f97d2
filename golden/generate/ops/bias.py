"""bias: y = x + b for every row of x, by PyTorch's broadcast sum and autograd in float64."""

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def cases():
    for case, seed, lead, outer in [("basic", 211, (2, 3), 7), ("one_row", 212, (1, 1), 4), ("one_output", 213, (3, 5), 1)]:
        draw = Draw(seed)
        x, bias = leaves(draw.normal(*lead, outer), draw.normal(outer, scale=0.5))
        y = x + bias
        dy = draw.normal(*y.shape)
        dx, dbias = gradients(y, dy, x, bias)
        yield Golden(
            "bias", case, "torch_f64", "y_no = x_no + b_o, as in torch.nn.functional.linear", tool_versions("torch"),
            {"x": x, "bias": bias, "y": y, "dy": dy, "dx": dx, "dbias": dbias}, seed=seed)
