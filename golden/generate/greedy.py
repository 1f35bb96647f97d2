"""greedy: what transformers' generate goes on with from three prompts, greedily, with its cache, for each folder of golden/weights.

The models are those of weights.py in float64. The largest logit of every step leads by enough that rounding decides nothing.
"""

import torch

from .golden_file import Golden, tool_versions
from .inputs import Draw
from .models import EQUATIONS, NOTE, Float64
from .weights import CASES, drawn_model

PROMPTS = (1, 4, 9)  # tokens
NEW = 20  # tokens
LEAD = 1e-6  # of the largest logit before the second


def one_case(case):
    family, seed, _, _, _, sizes, _, _ = CASES[case]
    model, _ = drawn_model(case)
    draw = Draw(seed + 1000)
    tensors, least = {}, float("inf")
    model.generation_config.eos_token_id = model.generation_config.pad_token_id = None
    for number, length in enumerate(PROMPTS):
        ids = torch.as_tensor(draw.integers(0, sizes["V"], 1, length))
        with torch.no_grad(), Float64():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW, use_cache=True,
                                 output_logits=True, return_dict_in_generate=True)
        best = torch.cat(out.logits).topk(2, dim=-1)[0]
        least = min(least, float((best[:, 0] - best[:, 1]).min()))
        tensors |= {f"prompt_{number}": ids[0], f"new_{number}": out.sequences[0, length:]}
    if least < LEAD:
        raise ValueError(f"greedy/{case}: the largest logit leads by {least}: draw other prompts")
    return Golden("greedy", case, "transformers_f64", EQUATIONS[family] + ".generate", tool_versions("mpmath", "torch", "transformers"),
                  tensors, {"least_lead": float(f"{least:.3g}")}, seed=seed + 1000, folder="greedy", note=NOTE)


def cases():
    for case in CASES:
        yield one_case(case)
