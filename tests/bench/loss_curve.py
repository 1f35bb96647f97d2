#!/usr/bin/env python3
"""The loss of `assay train` beside PyTorch's over the same steps: `ci/bench gpu loss-curve`.

    loss_curve.py PROGRAMS [--model NAME] [--steps N] [--sequences N] [--micro N] [--length T] [--device cuda|cpu]
                  [--learning-rate R]

Both start from the same initial weights and read the same batches: tests/bench/export_run.cpp writes them, PROGRAMS is the
folder with it and assay-train. The text is that of Python's own standard library, sources in the order of their paths, with
a byte-level BPE vocabulary of the model's size trained on it (package tokenizers); a model of 256 tokens gets its bytes.
Assay trains in bf16 with fp32 master weights, PyTorch with autocast to bf16 over fp32 weights, eager. On a GPU PyTorch
runs twice, the second time with another attention kernel: training carries roundings on, and the difference of these two is
what roundings alone do. One line every ten steps, then the largest differences of any step relative to PyTorch's loss; exit 1
when Assay's is more than 0.5 %, or when the loss did not fall by a fifth, as curves that stand still agree by themselves.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
from array import array

HERE = pathlib.Path(__file__).resolve().parent
ALLOWED, LEAST_FALL = 0.005, 0.2
THEIRS = re.compile(r"^step (\d+)  loss ([\d.]+)")


def texts(limit):
    """Sources of the standard library up to `limit` characters."""
    found, size = [], 0
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if size >= limit or "site-packages" in path.parts or "dist-packages" in path.parts:
            continue
        found.append(path.read_text(encoding="utf-8", errors="replace"))
        size += len(found[-1])
    return found


def byte_pairs(sources, vocabulary):
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(sources, vocab_size=vocabulary, min_frequency=1, show_progress=False)
    return [i for encoding in tokenizer.encode_batch(sources) for i in encoding.ids]


def write_tokens(path, vocabulary, count):
    sources = texts(12 * count)
    ids = [b for text in sources for b in text.encode()] if vocabulary == 256 else byte_pairs(sources, vocabulary)
    if len(ids) < count:
        sys.exit(f"loss_curve: the standard library gives {len(ids)} tokens, {count} are needed: fewer steps")
    with open(path, "wb") as out:
        array("H", ids).tofile(out)
    print(f"{len(ids)} tokens of {len(set(ids))} kinds from {len(sources)} sources", flush=True)


def ours(programs, settings, folder):
    command = [programs / "assay-train", *settings, f"run.directory={folder}/run"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    events = map(json.loads, (folder / "run/run.jsonl").read_text().splitlines())
    return {e["step"]: e["loss"] for e in events if e["event"] == "step"}


def theirs(folder, device, micro, *more):
    command = [sys.executable, HERE / "eager_pytorch.py", folder, "--device", device, "--autocast", "--micro", micro, *more]
    output = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout
    return {int(m[1]): float(m[2]) for m in map(THEIRS.match, output.splitlines()) if m}


def compare(assay, torch, again, steps):
    def difference(other, step):
        return abs(other[step] - torch[step]) / torch[step]

    for step in [1, *range(10, steps + 1, 10)]:
        print(f"step {step:4}  PyTorch {torch[step]:.5f}  Assay {assay[step]:.5f}  {difference(assay, step):.3%}"
              + (f"  PyTorch again {again[step]:.5f}  {difference(again, step):.3%}" if again else ""), flush=True)
    fall = 1 - torch[steps] / torch[1]
    worst = max((difference(assay, step), step) for step in range(1, steps + 1))
    print(f"largest difference {worst[0]:.3%} at step {worst[1]}, {ALLOWED:.1%} allowed; the loss fell by {fall:.0%}")
    if again:
        own = max((difference(again, step), step) for step in range(1, steps + 1))
        print(f"PyTorch with another attention kernel: {own[0]:.3%} at step {own[1]}")
    return worst[0] <= ALLOWED and fall >= LEAST_FALL


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--model", default="llama-1.36b")
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--sequences", type=int, default=8)
    parser.add_argument("--micro", type=int, default=4)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_tokens(folder / "tokens.bin", a.vocabulary, a.steps * a.sequences * a.length + 1)
        settings = [f"model.name={a.model}", f"batch.sequences={a.sequences}", f"batch.micro={a.micro}",
                    f"batch.sequence_length={a.length}", f"train.steps={a.steps}", "schedule.warmup_steps=10",
                    f"optimizer.learning_rate={a.learning_rate}", "compute.dtype=bf16", f"compute.device={a.device}",
                    f"data.paths={folder}/tokens.bin", "data.dtype=uint16"]
        subprocess.run([a.programs / "export_run", folder / "export", str(a.steps), *settings], check=True)
        torch = theirs(folder / "export", a.device, a.micro)
        again = theirs(folder / "export", a.device, a.micro, "--attention", "efficient") if a.device == "cuda" else None
        assay = ours(a.programs.resolve(), settings, folder)
        return 0 if compare(assay, torch, again, a.steps) else 1


if __name__ == "__main__":
    sys.exit(main())
