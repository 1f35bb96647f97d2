"""attention: causal softmax attention within documents and windows, grouped query heads, by PyTorch float64 and autograd.

torch.nn.functional.scaled_dot_product_attention (math kernel) gives the values; a second evaluation by explicit softmax
must agree before anything is written.
"""

import math

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def attend(q, k, v, allowed):
    """out [B,T,H,E]; the key head of query head h is h // (H / K)."""
    q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed.unsqueeze(1), enable_gqa=True).transpose(1, 2)


def scores(q, k, allowed):
    """Scaled, masked scores [B,H,T,S]."""
    repeated = k.repeat_interleave(q.shape[2] // k.shape[2], dim=2)
    raw = torch.einsum("bthe,bshe->bhts", q, repeated) / math.sqrt(q.shape[-1])
    return raw.masked_fill(~allowed.unsqueeze(1), -math.inf)


def cases():
    for case, seed, (batch, tokens, heads, kv_heads, head_dim), documents, window in [
        ("one_document", 151, (2, 5, 2, 2, 4), None, None),
        ("gqa_documents", 152, (2, 6, 4, 2, 4), [[0, 0, 0, 1, 1, 2], [0, 1, 1, 1, 1, 1]], None),
        ("mqa_odd", 153, (1, 7, 3, 1, 5), [[0, 0, 1, 1, 1, 1, 2]], None),
        ("one_token", 154, (1, 1, 2, 1, 3), None, None),
        ("window", 155, (2, 7, 4, 2, 4), None, 3),
        ("window_documents", 156, (2, 7, 2, 1, 4), [[0, 0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1, 2]], 2),
    ]:
        draw = Draw(seed)
        document_ids = torch.tensor(documents) if documents else torch.zeros(batch, tokens, dtype=torch.int64)
        q, k, v = leaves(
            draw.normal(batch, tokens, heads, head_dim), draw.normal(batch, tokens, kv_heads, head_dim),
            draw.normal(batch, tokens, kv_heads, head_dim))
        causal = torch.ones(tokens, tokens, dtype=torch.bool).tril()
        if window:  # the last `window` tokens: transformers' sliding_window_overlay is s > t - window
            causal = causal & ~torch.ones(tokens, tokens, dtype=torch.bool).tril(-window)
        allowed = causal & (document_ids.unsqueeze(2) == document_ids.unsqueeze(1))
        out = attend(q, k, v, allowed)

        masked = scores(q, k, allowed)
        by_hand = torch.einsum("bhts,bshe->bthe", masked.softmax(-1), v.repeat_interleave(heads // kv_heads, dim=2))
        torch.testing.assert_close(by_hand, out, rtol=1e-13, atol=1e-14)

        dout = draw.normal(*out.shape)
        dq, dk, dv = gradients(out, dout, q, k, v)
        yield Golden(
            "attention", case, "torch_f64",
            "Vaswani et al., Attention Is All You Need, arXiv:1706.03762, eq. (1); Ainslie et al., GQA, arXiv:2305.13245",
            tool_versions("torch"),
            {"q": q, "k": k, "v": v, "documents": document_ids, "out": out,
             "logsumexp": masked.logsumexp(-1), "dout": dout, "dq": dq, "dk": dk, "dv": dv},
            scalars={"window": window} if window else {}, seed=seed,
            note="token t sees s when documents[t] == documents[s] and s <= t" + (" and t - s < window" if window else "")
            + "; logsumexp is [B,H,T]")
