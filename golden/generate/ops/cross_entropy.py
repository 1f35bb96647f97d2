"""cross_entropy: negative log likelihood with an ignore index, a z-loss term and a given normaliser, in float64."""

import torch
from torch.nn import functional as F

from ..golden_file import Golden, tool_versions
from ..inputs import Draw

IGNORE = -100


def cases():
    for case, seed, (rows, vocab), ignored, z_loss, normaliser in [
        ("mean", 171, (6, 5), [], 0.0, None),
        ("ignored", 172, (7, 9), [0, 3, 6], 0.0, None),
        ("z_loss", 173, (5, 11), [2], 1e-2, None),
        ("global_normaliser", 174, (6, 7), [1, 2], 1e-3, 29.0),  # this is one part of a batch of 29 valid tokens
        ("all_ignored", 175, (3, 4), [0, 1, 2], 1e-3, 8.0),
    ]:
        draw = Draw(seed)
        logits = draw.normal(rows, vocab, scale=3.0).requires_grad_(True)
        targets = draw.integers(0, vocab, rows)
        targets[ignored] = IGNORE
        valid = targets != IGNORE
        count = int(valid.sum())
        divisor = float(normaliser or count)

        logsumexp = logits.logsumexp(-1)
        nll_sum = F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum")
        z_sum = z_loss * logsumexp[valid].square().sum()
        loss = (nll_sum + z_sum) / divisor
        if normaliser is None and z_loss == 0:
            torch.testing.assert_close(loss, F.cross_entropy(logits, targets, ignore_index=IGNORE), rtol=1e-14, atol=0)
        (dlogits,) = torch.autograd.grad(loss, logits)
        yield Golden(
            "cross_entropy", case, "torch_f64",
            "loss = sum over valid n of (logsumexp_n - logits_n[target_n] + z * logsumexp_n^2) / normaliser; "
            "z-loss: Chowdhery et al., PaLM, arXiv:2204.02311, section 5",
            tool_versions("torch"),
            {"logits": logits, "targets": targets, "logsumexp": logsumexp, "dlogits": dlogits},
            scalars={"z_loss": z_loss, "normaliser": divisor, "valid": count, "ignore_index": IGNORE,
                     "loss": loss.item(), "nll_sum": nll_sum.item(), "z_sum": z_sum.item()},
            seed=seed)
