"""Trains an exported run in eager PyTorch: the baseline of `ci/bench cpu`, and a second opinion on losses.

    eager_pytorch.py FOLDER [--steps N] [--threads N] [--dtype float32|float64] [--device cuda] [--autocast] [--micro N]
                  [--attention flash|efficient|cudnn] [--residual bfloat16]

FOLDER is what tests/bench/export_run.cpp wrote: the same initial weights, batches and settings as `assay train`.
Written as one would write it in PyTorch for speed without a compiler: fused query-key-value and gate-up GEMMs,
scaled_dot_product_attention, fused AdamW. --autocast: GEMMs in bf16 over fp32 weights. --micro: sequences of one
pass, their gradients summed; else those of the run. --attention: the kernel, else PyTorch's choice. --residual: the
type of the sums that run from block to block, else that of the weights. One line a step: step, loss, gradient norm.
"""
import argparse
import json
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
           "cudnn": SDPBackend.CUDNN_ATTENTION}
DTYPES = {"F32": torch.float32, "F64": torch.float64}


def read_safetensors(path):
    """The tensors of a safetensors file: 8 bytes of header length, JSON header, data."""
    data = memoryview(bytearray(path.read_bytes()))
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(bytes(data[8 : 8 + length])).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = DTYPES[entry["dtype"]]
        tensors[name] = torch.frombuffer(data[begin:end], dtype=dtype).reshape(entry["shape"])
    return tensors


def rotate(x, cos, sin):
    """Rotary embedding of [B, heads, T, E]: entry i is paired with entry i + E/2."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.sizes = [m["heads"], m["kv_heads"], m["kv_heads"]]
        self.head_dim = m["head_dim"]
        self.qkv = nn.Linear(m["width"], sum(self.sizes) * self.head_dim, bias=False)
        self.out = nn.Linear(m["heads"] * self.head_dim, m["width"], bias=False)

    def forward(self, x, cos, sin):
        B, T, _ = x.shape
        heads = self.qkv(x).view(B, T, -1, self.head_dim).transpose(1, 2)
        q, k, v = heads.split(self.sizes, dim=1)
        y = F.scaled_dot_product_attention(
            rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True, enable_gqa=True
        )
        return self.out(y.transpose(1, 2).reshape(B, T, -1))


class Block(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.attention_norm = nn.RMSNorm(m["width"], eps=m["norm_eps"])
        self.attention = Attention(m)
        self.mlp_norm = nn.RMSNorm(m["width"], eps=m["norm_eps"])
        self.gate_up = nn.Linear(m["width"], 2 * m["ffn"], bias=False)
        self.down = nn.Linear(m["ffn"], m["width"], bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.attention_norm(x), cos, sin)
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, m, T, residual=None):
        super().__init__()
        self.residual = residual
        if m["qk_norm"] or m["tied_embeddings"]:
            raise SystemExit("this baseline knows Llama with an untied head only")
        self.embedding = nn.Embedding(m["vocab"], m["width"])
        self.blocks = nn.ModuleList(Block(m) for _ in range(m["layers"]))
        self.norm = nn.RMSNorm(m["width"], eps=m["norm_eps"])
        self.head = nn.Linear(m["width"], m["vocab"], bias=False)
        exponents = torch.arange(0, m["head_dim"], 2, dtype=torch.float64) / m["head_dim"]
        angles = torch.outer(torch.arange(T, dtype=torch.float64), m["rope_theta"] ** -exponents)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, ids):
        x = self.embedding(ids[:, :-1]).to(self.residual)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), ids[:, 1:].flatten())

    def load(self, tensors):
        """Weights under their Hugging Face names; every one must be used."""
        state = {
            "embedding.weight": tensors.pop("model.embed_tokens.weight"),
            "norm.weight": tensors.pop("model.norm.weight"),
            "head.weight": tensors.pop("lm_head.weight"),
        }
        for i in range(len(self.blocks)):
            there, here = f"model.layers.{i}.", f"blocks.{i}."
            take = lambda name: tensors.pop(f"{there}{name}.weight")  # noqa: E731
            state[here + "attention_norm.weight"] = take("input_layernorm")
            qkv = [take(f"self_attn.{part}_proj") for part in "qkv"]
            state[here + "attention.qkv.weight"] = torch.cat(qkv)
            state[here + "attention.out.weight"] = take("self_attn.o_proj")
            state[here + "mlp_norm.weight"] = take("post_attention_layernorm")
            gate_up = [take(f"mlp.{part}_proj") for part in ("gate", "up")]
            state[here + "gate_up.weight"] = torch.cat(gate_up)
            state[here + "down.weight"] = take("mlp.down_proj")
        if tensors:
            raise SystemExit(f"weights that this model does not have: {sorted(tensors)}")
        self.load_state_dict(state)


def optimizer_of(model, adamw):
    """Matrices decay, gains do not."""
    groups = [
        {"params": [p for p in model.parameters() if p.ndim == 2], "weight_decay": adamw["weight_decay"]},
        {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=tuple(adamw["betas"]), eps=adamw["eps"], fused=True)


def batches(folder, run):
    tokens = torch.frombuffer(bytearray((folder / "tokens.i32").read_bytes()), dtype=torch.int32)
    return tokens.view(run["steps"], run["sequences"], run["sequence_length"] + 1).long()


def accumulate(model, ids, arguments):
    """Adds the gradient of the mean loss over all sequences, micro-batch by micro-batch; the loss."""
    micro_batches = ids.split(arguments.micro or len(ids))
    total = 0
    for part in micro_batches:
        kernels = [KERNELS[arguments.attention]] if arguments.attention else [b for b in SDPBackend.__members__.values() if b is not SDPBackend.ERROR]
        with sdpa_kernel(kernels), torch.autocast(arguments.device, torch.bfloat16, enabled=arguments.autocast):
            loss = model(part) * (len(part) / len(ids))
        loss.backward()
        total += loss.detach()
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--micro", type=int)
    parser.add_argument("--attention", choices=sorted(KERNELS))
    parser.add_argument("--residual", choices=["bfloat16"])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    run = json.loads((arguments.folder / "run.json").read_text())
    arguments.micro = arguments.micro or run["micro"]
    model = Llama(run["model"], run["sequence_length"], arguments.residual and getattr(torch, arguments.residual))
    model.load(read_safetensors(arguments.folder / "weights.safetensors"))
    model.to(arguments.device, getattr(torch, arguments.dtype))
    optimizer = optimizer_of(model, run["adamw"])
    for step, ids in enumerate(batches(arguments.folder, run)[: arguments.steps]):
        for group in optimizer.param_groups:
            group["lr"] = run["learning_rates"][step]
        loss = accumulate(model, ids.to(arguments.device), arguments)
        limit = run["clip"] if run["clip"] > 0 else float("inf")
        norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step + 1}  loss {loss.item():.7f}  norm {norm.item():.5f}", flush=True)


if __name__ == "__main__":
    main()
