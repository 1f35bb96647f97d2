"""Loads models of which a config.json and the shapes of all tensors are given: `configs_in_transformers.py FILE`.

FILE holds a JSON list of {"config": text of a config.json, "tensors": {name: shape}}. For each, random tensors of these shapes are
saved, and loaded by AutoModelForCausalLM.from_pretrained, which must take every one of them and miss none; then a forward pass runs.
Prints what failed; exit code 1 where something did.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()


def fault(case):
    generator = torch.Generator().manual_seed(1)
    tensors = {name: torch.rand(shape, generator=generator) for name, shape in case["tensors"].items()}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(case["config"])
        save_file(tensors, Path(folder) / "model.safetensors", {"format": "pt"})
        try:
            model, info = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", output_loading_info=True)
            left = {kind: sorted(keys) for kind, keys in info.items() if keys}
            if left:
                return str(left)
            model.config._experts_implementation = "eager"
            length = min(model.config.max_position_embeddings, 6)
            with torch.no_grad():
                logits = model(input_ids=torch.zeros((1, length), dtype=torch.int64)).logits
        except Exception as error:  # whatever transformers says of the file
            return f"{type(error).__name__}: {error}"
    return "" if logits.shape == (1, length, model.config.vocab_size) and logits.isfinite().all() else f"logits {logits}"


def main(path):
    failed = [(text, case["config"]) for case in json.loads(Path(path).read_text()) if (text := fault(case))]
    for text, config in failed:
        print(f"{text}\nof {config}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1])
