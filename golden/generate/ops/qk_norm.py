"""qk_norm: RMS norm over the head dimension of every query and key head, one gain for each, or over all heads, in float64."""

from torch.nn import functional as F

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def cases():
    qwen3 = "Qwen3 Technical Report, arXiv:2505.09388, section 2 (QK-Norm)"
    for case, seed, (batch, tokens, heads, kv_heads, head_dim), across_heads, source in [
        ("gqa", 131, (2, 3, 4, 2, 6), False, qwen3),
        ("one_head", 132, (1, 2, 1, 1, 2), False, qwen3),
        ("across_heads", 133, (2, 3, 4, 2, 6), True, "OLMoE, arXiv:2409.02060 (QK-Norm)"),
    ]:
        draw, eps = Draw(seed), 1e-6
        q, k = leaves(draw.normal(batch, tokens, heads, head_dim), draw.normal(batch, tokens, kv_heads, head_dim))
        lengths = (heads * head_dim, kv_heads * head_dim) if across_heads else (head_dim, head_dim)
        q_gain, k_gain = leaves(*(draw.normal(length, mean=1.0, scale=0.3) for length in lengths))
        tensors = {"q": q, "k": k, "q_gain": q_gain, "k_gain": k_gain}
        for name, x, gain in [("q", q, q_gain), ("k", k, k_gain)]:
            rows = x.reshape(batch, tokens, -1, gain.numel())
            y = F.rms_norm(rows, (gain.numel(),), gain, eps).reshape(x.shape)
            dy = draw.normal(*y.shape)
            dx, dgain = gradients(y, dy, x, gain)
            tensors |= {f"{name}_out": y, f"d{name}_out": dy, f"d{name}": dx, f"d{name}_gain": dgain}
        yield Golden(
            "qk_norm", case, "torch_f64", source,
            tool_versions("torch"), tensors, scalars={"eps": eps}, seed=seed)
