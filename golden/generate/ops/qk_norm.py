"""qk_norm: RMS norm over the head dimension of every query and key head, one gain for each, in float64."""

from torch.nn import functional as F

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def cases():
    for case, seed, (batch, tokens, heads, kv_heads, head_dim) in [
        ("gqa", 131, (2, 3, 4, 2, 6)),
        ("one_head", 132, (1, 2, 1, 1, 2)),
    ]:
        draw, eps = Draw(seed), 1e-6
        q, k = leaves(draw.normal(batch, tokens, heads, head_dim), draw.normal(batch, tokens, kv_heads, head_dim))
        q_gain, k_gain = leaves(draw.normal(head_dim, mean=1.0, scale=0.3), draw.normal(head_dim, mean=1.0, scale=0.3))
        tensors = {"q": q, "k": k, "q_gain": q_gain, "k_gain": k_gain}
        for name, x, gain in [("q", q, q_gain), ("k", k, k_gain)]:
            y = F.rms_norm(x, (head_dim,), gain, eps)
            dy = draw.normal(*y.shape)
            dx, dgain = gradients(y, dy, x, gain)
            tensors |= {f"{name}_out": y, f"d{name}_out": dy, f"d{name}": dx, f"d{name}_gain": dgain}
        yield Golden(
            "qk_norm", case, "torch_f64", "Qwen3 Technical Report, arXiv:2505.09388, section 2 (QK-Norm)",
            tool_versions("torch"), tensors, scalars={"eps": eps}, seed=seed)
