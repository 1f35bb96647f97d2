"""weights: folders of weights as transformers writes them, of tiny models of every family, and the logits of each.

A model is built as in models.py, its drawn weights rounded to the type of the files, and saved by save_pretrained: in one file
or several, experts one by one or in the stacks that transformers v5 computes with. Logits are those of the rounded weights
in float64. config.json is transformers' own.
"""

import copy
import dataclasses
import tempfile
from pathlib import Path

import torch

from .golden_file import Golden, tool_versions
from .inputs import Draw
from .models import CORRECTION, EQUATIONS, NOTE, PLAIN, SCALED, YARN_MSCALES, Float64, balanced, build, check_against_stock, latent, logits_of

MOE = dict(num_experts_per_tok=2)
#         family, seed, type of the files, most bytes of one, stacks, sizes, tied, rope
CASES = {
    # Every matrix is square: only the logits tell a transposed one.
    "llama_square": ("llama", 601, torch.bfloat16, None, False, dict(V=8, D=8, L=2, H=2, K=2, E=4, F=8), False, PLAIN),
    "llama_f32_sharded": ("llama", 602, torch.float32, "3KB", False, dict(V=15, D=12, L=2, H=4, K=2, E=4, F=10), False, SCALED),
    "llama_f16_tied": ("llama", 603, torch.float16, None, False, dict(V=13, D=10, L=2, H=2, K=1, E=6, F=7), True, PLAIN),
    "mistral": ("mistral", 604, torch.bfloat16, None, False, dict(V=11, D=8, L=2, H=4, K=2, E=4, F=9, sliding_window=3), False, PLAIN),
    "qwen2": ("qwen2", 605, torch.bfloat16, None, False, dict(V=12, D=9, L=2, H=4, K=2, E=4, F=8), True, PLAIN),
    "qwen3": ("qwen3", 606, torch.bfloat16, None, False, dict(V=14, D=11, L=2, H=4, K=2, E=2, F=8), True, PLAIN),
    "mixtral": ("mixtral", 607, torch.bfloat16, None, False, dict(V=11, D=6, L=2, H=2, K=1, E=4, F=5, num_local_experts=3, **MOE),
                False, PLAIN),
    "mixtral_stacks": ("mixtral", 608, torch.bfloat16, None, True,
                       dict(V=11, D=6, L=2, H=2, K=1, E=4, F=5, num_local_experts=3, **MOE), False, PLAIN),
    "qwen3_moe": ("qwen3_moe", 609, torch.bfloat16, "2KB", False,
                  dict(V=12, D=7, L=2, H=2, K=1, E=4, F=8, moe_intermediate_size=4, num_experts=4, norm_topk_prob=True, **MOE),
                  False, PLAIN),
    "qwen3_moe_stacks": ("qwen3_moe", 610, torch.float32, None, True,
                         dict(V=12, D=7, L=2, H=2, K=1, E=4, F=8, moe_intermediate_size=4, num_experts=4, norm_topk_prob=False,
                              mlp_only_layers=[0], **MOE), False, PLAIN),
    "olmoe": ("olmoe", 611, torch.bfloat16, None, False, dict(V=13, D=8, L=2, H=2, K=2, F=5, num_experts=3, **MOE), False, PLAIN),
    "olmoe_stacks": ("olmoe", 612, torch.float16, None, True, dict(V=13, D=8, L=2, H=2, K=2, F=5, num_experts=3, **MOE), False, PLAIN),
    "deepseek_v3": ("deepseek_v3", 613, torch.bfloat16, None, False,
                    dict(V=12, D=8, L=2, H=2, K=2, F=9, first_k_dense_replace=1, moe_intermediate_size=4, n_routed_experts=4,
                         num_experts_per_tok=2, n_shared_experts=2, n_group=2, topk_group=1,
                         **latent(Cq=5, Ckv=6, plain=3, turned=8, W=4)), False, YARN_MSCALES),
    "deepseek_v3_stacks": ("deepseek_v3", 614, torch.float32, None, True,
                           dict(V=12, D=8, L=1, H=2, K=2, F=9, first_k_dense_replace=0, moe_intermediate_size=4,
                                n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, n_group=2, topk_group=2,
                                **latent(Cq=None, Ckv=6, plain=3, turned=2, W=4)), False, PLAIN),
}


@dataclasses.dataclass
class Folder(Golden):
    """A golden file of logits, and the folder of the same name that transformers wrote."""

    files: dict = dataclasses.field(default_factory=dict)

    def write(self, root):
        path = super().write(root)
        folder = path.with_suffix("")
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return path


def saved_files(model, most_bytes, stacks):
    """What save_pretrained writes, but for generation_config.json, of which nothing depends."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, save_original_format=not stacks, **({"max_shard_size": most_bytes} if most_bytes else {}))
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.name != "generation_config.json"}


def drawn_model(case):
    """The model, in float64 with the values that its files hold, and what draws go on from."""
    family, seed, dtype, _, _, sizes, tied, rope = CASES[case]
    draw = Draw(seed)
    model = build(family, draw, tied=tied, rope=rope, **sizes)
    with torch.no_grad():  # exactly what the files hold
        for tensor in [*model.parameters(), *(b for name, b in model.named_buffers() if name.endswith(CORRECTION))]:
            tensor.copy_(tensor.to(dtype))
    return model, draw


def one_folder(case):
    family, seed, dtype, most_bytes, stacks, sizes, _, _ = CASES[case]
    model, draw = drawn_model(case)
    files = saved_files(copy.deepcopy(model).to(dtype), most_bytes, stacks)
    ids = draw.integers(0, sizes["V"], 2, 6)
    check_against_stock(model, ids, None)
    with torch.no_grad(), Float64():
        logits = logits_of(model, ids, None)
    return Folder(
        "weights", case, "transformers_f64", EQUATIONS[family] + ".save_pretrained", tool_versions("mpmath", "torch", "transformers"),
        {"ids": ids, "logits": logits[0] if balanced(model) else logits}, seed=seed, folder="weights", note=NOTE, files=files)


def cases():
    for case in CASES:
        yield one_folder(case)
