"""A Llama trained by PyTorch with torch.compile: the baseline of `ci/bench gpu`, on one GPU or, as torchrun starts it, several.

    compiled_pytorch.py [--layers N ...] [--steps N] [--attention cudnn|flash] [--weights fp32|bf16] [--compile model|blocks]
                        [--parallel ddp|fsdp|tensor [--asynchronous]]

What one would write without a training library: fused query-key-value and gate-up GEMMs, autocast to bf16 over fp32
weights, scaled_dot_product_attention with the named kernel, fused AdamW, clipping. With
--weights bf16 no fp32 copy of the weights, moments in bf16, no autocast. --parallel, where WORLD_SIZE is above 1: ddp, whose
gradients are reduced in the last micro-batch of a step, fsdp (fully_shard of each block, weights gathered in bf16, gradients
reduced in fp32 after the last pass), or tensor (linears by columns and rows, norms on a rank's rows, loss over parts of the
vocabulary, by torch.distributed.tensor.parallel; --asynchronous lets its collectives overlap GEMMs). Random tokens. Rank 0
prints one line of JSON: seconds of the median step after the first three, tokens/s of all GPUs and of one, exact MFU
(spec/flops/exact.md), peak memory.
"""
import argparse
import contextlib
import json
import os
import statistics
import time

import torch
import torch.distributed
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

SHAPE = dict(layers=18, width=2304, heads=18, kv_heads=18, head_dim=128, ffn=6144, vocab=32000,
             tokens=2048, micro=24, accumulation=4)


def turn(x, cosine, sine):
    """Rotary embedding of [B, heads, T, E]: entry i goes with entry i + E/2."""
    low, high = x.chunk(2, dim=-1)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), dim=-1)


class Block(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = a.heads, a.kv_heads, a.head_dim
        self.attention_norm, self.mlp_norm = nn.RMSNorm(a.width, eps=1e-6), nn.RMSNorm(a.width, eps=1e-6)
        self.qkv = nn.Linear(a.width, (a.heads + 2 * a.kv_heads) * a.head_dim, bias=False)
        self.out = nn.Linear(a.heads * a.head_dim, a.width, bias=False)
        self.gate_up, self.down = nn.Linear(a.width, 2 * a.ffn, bias=False), nn.Linear(a.ffn, a.width, bias=False)

    def forward(self, x, cosine, sine):
        every = self.qkv(self.attention_norm(x))
        B, T, _ = every.shape  # of all rows, where x has a tensor rank's
        every = every.view(B, T, -1, self.head_dim).transpose(1, 2)
        q, k, v = every.split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        q, k = turn(q, cosine, sine), turn(k, cosine, sine)
        if self.heads != self.kv_heads:  # PyTorch's cuDNN attention takes no groups
            k, v = (part.repeat_interleave(self.heads // self.kv_heads, dim=1) for part in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, -1))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embedding = nn.Embedding(a.vocab, a.width)
        self.blocks = nn.ModuleList(Block(a) for _ in range(a.layers))
        self.norm, self.head = nn.RMSNorm(a.width, eps=1e-6), nn.Linear(a.width, a.vocab, bias=False)
        angles = torch.outer(torch.arange(a.tokens), 10000.0 ** (-torch.arange(0, a.head_dim, 2) / a.head_dim))
        self.register_buffer("cosine", angles.cos().bfloat16())
        self.register_buffer("sine", angles.sin().bfloat16())
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, targets):
        x = self.embedding(ids).bfloat16()
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())


def split(model, ranks, asynchronous):
    """Linears by columns or rows over the ranks, rows of activations beside them."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module)

    mesh = init_device_mesh("cuda", (ranks,))
    rows = Shard(1)
    norm = SequenceParallel(use_local_output=True)
    for block in model.blocks:
        parallelize_module(block, mesh, {
            "attention_norm": norm, "qkv": ColwiseParallel(input_layouts=rows), "out": RowwiseParallel(output_layouts=rows),
            "mlp_norm": norm, "gate_up": ColwiseParallel(input_layouts=rows), "down": RowwiseParallel(output_layouts=rows)})
        block.heads, block.kv_heads = block.heads // ranks, block.kv_heads // ranks
    parallelize_module(model, mesh, {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=rows), "norm": norm,
        "head": ColwiseParallel(input_layouts=rows, output_layouts=Shard(-1), use_local_output=False)})
    if asynchronous:
        from torch.distributed._symmetric_memory import enable_symm_mem_for_group

        torch._inductor.config._micro_pipeline_tp = True
        enable_symm_mem_for_group(mesh.get_group().group_name)


def shard(model):
    """Weights, gradients and optimizer state in shards of the ranks, block by block."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mp_policy=precision)
    fully_shard([model.norm, model.head], mp_policy=precision)
    fully_shard(model, mp_policy=precision)


def main():
    parser = argparse.ArgumentParser()
    for name, value in SHAPE.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--attention", choices=["cudnn", "flash"], default="cudnn")
    parser.add_argument("--weights", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--compile", choices=["model", "blocks"], default="model")
    parser.add_argument("--parallel", choices=["ddp", "fsdp", "tensor"], default="ddp")
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--peak", type=float, default=989.4e12, help="dense bf16 [flop/s]; the default is an H200's")
    a = parser.parse_args()
    started = time.time()
    torch.manual_seed(0)
    ranks, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    if ranks > 1:
        torch.distributed.init_process_group("nccl")
    with torch.device("cuda"):
        model = Llama(a)
    if a.weights == "bf16":
        model = model.bfloat16()
    if a.compile == "blocks":
        for block in model.blocks:
            block.compile()
    wrapped, sharded, tensor = model, ranks > 1 and a.parallel == "fsdp", ranks > 1 and a.parallel == "tensor"
    if sharded:
        shard(model)
    elif tensor:
        split(model, ranks, a.asynchronous)
    elif ranks > 1:
        wrapped = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    compiled = torch.compile(wrapped) if a.compile == "model" else wrapped
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = torch.randint(0, a.vocab, (a.accumulation, a.micro, a.tokens + 1), device="cuda")
    kernel = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[a.attention]

    def step():
        for number, batch in enumerate(tokens):
            last = number + 1 == a.accumulation
            if sharded:
                model.set_requires_gradient_sync(last)
            elif ranks > 1 and not tensor:
                wrapped.require_backward_grad_sync = last
            with contextlib.ExitStack() as within:
                within.enter_context(sdpa_kernel(kernel))
                within.enter_context(torch.autocast("cuda", torch.bfloat16, enabled=a.weights == "fp32" and not sharded))
                if tensor:
                    within.enter_context(torch.distributed.tensor.parallel.loss_parallel())
                loss = compiled(batch[:, :-1], batch[:, 1:]) / a.accumulation
                if tensor:  # its backward belongs to loss_parallel, too
                    loss.backward()
            if not tensor:
                loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    seconds = []
    for index in range(a.steps):
        begin = time.time()
        step()
        torch.cuda.synchronize()
        seconds.append(time.time() - begin)
        if index == 0:
            first = time.time() - started
        if rank == 0:
            print(f"step {index + 1}: {seconds[-1]:.4f} s", flush=True)
    median = statistics.median(seconds[3:] or seconds)
    per_layer = a.width * (2 * a.heads + 2 * a.kv_heads) * a.head_dim + 3 * a.width * a.ffn
    flops = 6 * (a.layers * per_layer + a.vocab * a.width) + 6 * a.layers * a.heads * a.head_dim * (a.tokens + 1)
    rate = a.accumulation * a.micro * a.tokens / median / (ranks if tensor else 1)  # tensor ranks share a batch
    layout = f" {a.parallel}" if ranks > 1 else ""
    if rank == 0:
        print(json.dumps(dict(stack=f"torch {torch.__version__} torch.compile {a.compile} {a.weights} weights {a.attention}{layout}",
                              gpu=torch.cuda.get_device_name(), ranks=ranks, median_step_seconds=median,
                              tokens_per_second=rate * ranks, tokens_per_second_per_rank=rate, mfu_exact=rate * flops / a.peak,
                              peak_device_bytes=torch.cuda.max_memory_allocated(), seconds_to_first_step=first)), flush=True)
    if ranks > 1:
        torch.distributed.destroy_process_group()


main()
