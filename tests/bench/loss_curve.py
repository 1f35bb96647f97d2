#!/usr/bin/env python3
"""The loss of `assay train` beside PyTorch's over the same steps: `ci/bench gpu loss-curve`.

    loss_curve.py PROGRAMS [--model NAME] [--steps N] [--sequences N] [--micro N] [--length T] [--device cuda|cpu]
                  [--learning-rate R] [--warmup N] [--dtype bf16|f32] [--rounded-sums] [--plant KEY=VALUE] [KEY=VALUE...]

Both start from the same initial weights and read the same batches: tests/bench/export_run.cpp writes them, PROGRAMS is the
folder with it and assay-train. The text is the sources of Python's standard library and, after them, of installed packages,
with a byte-level BPE vocabulary of the model's size trained on it (package tokenizers); a model of 256 tokens gets its bytes.
Its sequences come in drawn order: in that of the files the loss would jump from one to the next.
Assay trains in bf16 with fp32 master weights, PyTorch with autocast to bf16 over fp32 weights, eager; with --dtype f32 both
in fp32 throughout. The learning rate rises slowly and stays small: training carries roundings on, and at twice the rate
they alone move PyTorch's own loss by more than a per cent within 100 steps (docs/measurements/h200.md). On a GPU PyTorch runs
a second time with another attention kernel: the difference of these two is what roundings alone do. --rounded-sums: and once
with the sums that run from block to block in bf16, as Assay has them. One line every ten steps, then the largest differences of
any step relative to PyTorch's loss; exit 1 when Assay's is more than 0.5 %, or when the loss did not fall by a fifth, as curves
that stand still agree by themselves. KEY=VALUE are further settings of both; --plant KEY=VALUE of Assay alone: a fault that the
comparison has to detect.

--beside "KEY=VALUE KEY=VALUE...", any number of times: instead of PyTorch, `assay train` again with those settings, from the same
weights and batches, such as `--beside compute.linear=fp8_tensor`. Losses are smoothed over 20 steps; exit 1 when one of these
curves is more than 0.25 % from the first after the warm-up (DeepSeek-V3's figure for FP8, arXiv:2412.19437), and more than
what the first differs from itself with another attention kernel (`compute.attention=flash`, run where a GPU computes).
"""
import argparse
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from array import array

HERE = pathlib.Path(__file__).resolve().parent
ALLOWED, LEAST_FALL = 0.005, 0.2
BESIDE, WINDOW = 0.0025, 20
THEIRS = re.compile(r"^step (\d+)  loss ([\d.]+)")


def texts(limit):
    """Sources of the standard library, then of installed packages, up to `limit` characters."""
    found, size = [], 0
    for scheme in ("stdlib", "purelib"):
        for path in sorted(pathlib.Path(sysconfig.get_path(scheme)).rglob("*.py")):
            if size >= limit:
                return found
            if scheme == "stdlib" and ("site-packages" in path.parts or "dist-packages" in path.parts):
                continue
            found.append(path.read_text(encoding="utf-8", errors="replace"))
            size += len(found[-1])
    return found


def byte_pairs(sources, vocabulary):
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(sources, vocab_size=vocabulary, min_frequency=1, show_progress=False)
    return [i for encoding in tokenizer.encode_batch(sources) for i in encoding.ids]


def write_tokens(path, vocabulary, count, length):
    sources = texts(9 * count // 2)
    ids = [b for text in sources for b in text.encode()] if vocabulary == 256 else byte_pairs(sources, vocabulary)
    if len(ids) < count:
        sys.exit(f"loss_curve: the sources here give {len(ids)} tokens, {count} are needed: fewer steps")
    starts = list(range(0, len(ids) - length, length))
    random.Random(0).shuffle(starts)
    with open(path, "wb") as out:
        for start in starts:
            array("H", ids[start : start + length]).tofile(out)
        array("H", ids[:1]).tofile(out)
    print(f"{len(ids)} tokens of {len(set(ids))} kinds from {len(sources)} sources", flush=True)


def ours(programs, settings, folder):
    run = pathlib.Path(tempfile.mkdtemp(dir=folder))
    command = [programs / "assay-train", *settings, f"run.directory={run}"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"loss_curve: assay-train ended with {done.returncode}\n{done.stderr[-2000:]}")
    events = map(json.loads, (run / "run.jsonl").read_text().splitlines())
    curve = {e["step"]: e["loss"] for e in events if e["event"] == "step"}
    shutil.rmtree(run)  # its checkpoint is as large as the model's state, and several runs follow one another
    return curve


def theirs(folder, device, micro, *more):
    command = [sys.executable, HERE / "eager_pytorch.py", folder, "--device", device, "--micro", micro, *more]
    output = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout
    return {int(m[1]): float(m[2]) for m in map(THEIRS.match, output.splitlines()) if m}


def difference(curve, torch, step):
    return abs(curve[step] - torch[step]) / torch[step]


def report(name, curve, torch, steps):
    for step in [1, *range(10, steps + 1, 10)]:
        print(f"step {step:4}  PyTorch {torch[step]:.5f}  {name} {curve[step]:.5f}  {difference(curve, torch, step):.3%}")
    worst = max((difference(curve, torch, step), step) for step in range(1, steps + 1))
    mean = sum(curve[step] / torch[step] - 1 for step in range(1, steps + 1)) / steps
    print(f"{name}: largest difference {worst[0]:.3%} at step {worst[1]}, on average {mean:+.3%}", flush=True)


def within(assay, torch, steps):
    fall = 1 - torch[steps] / torch[1]
    print(f"{ALLOWED:.1%} allowed for Assay; the loss fell by {fall:.0%}", flush=True)
    return all(difference(assay, torch, step) <= ALLOWED for step in range(1, steps + 1)) and fall >= LEAST_FALL


def smoothed(curve, steps):
    """The mean of the WINDOW steps that end at each step, of as many as there are before."""
    return {step: sum(curve[s] for s in range(max(1, step - WINDOW + 1), step + 1)) / min(step, WINDOW)
            for step in range(1, steps + 1)}


def beside(programs, settings, folder, steps, warmup, others, other_kernel):
    """Assay with further settings beside Assay as it is."""
    base = smoothed(ours(programs, settings, folder), steps)
    print("as it is: " + "  ".join(f"{step}: {base[step]:.4f}" for step in [1, *range(20, steps + 1, 20)]), flush=True)
    fall = 1 - base[steps] / base[1]
    print(f"the loss fell by {fall:.0%}", flush=True)

    def largest(more):
        curve = smoothed(ours(programs, [*settings, *more], folder), steps)
        worst = max((difference(curve, base, step), step) for step in range(warmup + 1, steps + 1))
        mean = sum(curve[s] / base[s] - 1 for s in range(warmup + 1, steps + 1)) / (steps - warmup)
        print(f"{' '.join(more)}: at most {worst[0]:.4%} off, at step {worst[1]}, on average {mean:+.4%}, at the end "
              f"{curve[steps] / base[steps] - 1:+.4%}", flush=True)
        return worst[0]

    off = [largest(more.split()) for more in others]
    itself = largest(["compute.attention=flash"]) if other_kernel else 0
    return fall >= LEAST_FALL and max(off) <= max(BESIDE, itself)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", default=[])
    parser.add_argument("--model", default="llama-1.36b")
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--micro", type=int, default=8)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--learning-rate", type=float, default=1.5e-5, help="that is reached, and kept")
    parser.add_argument("--warmup", type=int, help="steps of rising learning rate, by default all")
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "f32"])
    parser.add_argument("--rounded-sums", action="store_true")
    parser.add_argument("--beside", action="append", default=[], metavar="KEY=VALUE KEY=VALUE...")
    parser.add_argument("--plant", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    a = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_tokens(folder / "tokens.bin", a.vocabulary, a.steps * a.sequences * a.length + a.length, a.length)
        settings = [f"model.name={a.model}", f"batch.sequences={a.sequences}", f"batch.micro={a.micro}",
                    f"batch.sequence_length={a.length}", f"train.steps={a.steps}", "schedule.kind=constant",
                    f"schedule.warmup_steps={a.steps if a.warmup is None else a.warmup}",
                    f"optimizer.learning_rate={a.learning_rate}", f"compute.dtype={a.dtype}", f"compute.device={a.device}",
                    f"data.paths={folder}/tokens.bin", "data.dtype=uint16", *a.settings]
        if a.beside:
            warmup = a.steps if a.warmup is None else a.warmup
            return 0 if beside(a.programs.resolve(), settings, folder, a.steps, warmup, a.beside, a.device == "cuda") else 1
        subprocess.run([a.programs / "export_run", folder / "export", str(a.steps), *settings], check=True)
        run = [folder / "export", a.device, a.micro, *(["--autocast"] if a.dtype == "bf16" else [])]
        torch, assay = theirs(*run), ours(a.programs.resolve(), [*settings, *a.plant], folder)
        report("Assay", assay, torch, a.steps)
        status = 0 if within(assay, torch, a.steps) else 1
        if a.device == "cuda" and not a.plant:
            report("PyTorch with another kernel", theirs(*run, "--attention", "efficient"), torch, a.steps)
        if a.rounded_sums:
            report("PyTorch with rounded sums", theirs(*run, "--residual", "bfloat16"), torch, a.steps)
        return status


if __name__ == "__main__":
    sys.exit(main())
