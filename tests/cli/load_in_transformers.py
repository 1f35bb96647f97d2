"""Loads exported folders in Hugging Face transformers: `load_in_transformers.py TOKENS LENGTH FOLDER LOSS [FOLDER LOSS ...]`.

Exit code 1 where a key is missing, unexpected or of another shape, or where the mean loss over all samples of LENGTH tokens
of the file TOKENS (uint16), computed in float64, is not LOSS to 1e-12.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch
from torch.nn import functional as F
from transformers import AutoModelForCausalLM

from golden.generate.models import Float64


def fault(folder, ids, length, wanted):
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", attn_implementation="eager", output_loading_info=True)
    left = {kind: keys for kind, keys in info.items() if keys}
    if left:
        return str(left)
    if model.dtype != torch.float64:
        return f"loaded as {model.dtype}"
    model.config._experts_implementation = "eager"
    samples = (len(ids) - 1) // length
    inputs, targets = (ids[begin : begin + samples * length].view(samples, length) for begin in (0, 1))
    with torch.no_grad(), Float64():
        loss = F.cross_entropy(model(input_ids=inputs).logits.flatten(0, 1), targets.flatten()).item()
    return "" if abs(loss - wanted) <= 1e-12 * wanted else f"transformers' loss is {loss!r}, ours {wanted!r}"


def main(tokens, length, *folders):
    ids = torch.from_numpy(np.fromfile(tokens, dtype="<u2").astype(np.int64))
    faults = [(folder, fault(folder, ids, int(length), float(loss))) for folder, loss in zip(folders[::2], folders[1::2], strict=True)]
    sys.exit("\n".join(f"{folder}: {text}" for folder, text in faults if text) or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
