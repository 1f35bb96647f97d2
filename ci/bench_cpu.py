#!/usr/bin/env python3
"""The demo's model on the CPU: Assay's trainer against eager PyTorch on the same two cores, in turn.

    ci/bench cpu [--rounds N] [--steps N] [--record] [--busy]

Both train the same run: the initial weights, batches and settings that tests/bench/export_run.cpp writes
(tests/bench/eager_pytorch.py reads them), so their losses agree, which is checked. Both print a line a step, and this
program takes the time of each line: a step's time does not depend on who measures it. Per program and round:

  first step   from the start of the process to the line of step 1
  tokens/s     over the steps after the first few, from line to line

Prints each round, the medians and their ratio. Exit code 0 when tokens/s is at least 1.2 times PyTorch's and the first
step comes within 2 s, 1 when not, 2 when it could not measure. A busy machine (load average above 0.5 before the start)
is refused; --busy measures anyway, for trying the program out: such figures are printed as such and never recorded.
--record writes docs/measurements/cpu.json and cpu.md. ASSAY_COMMIT names the commit in a copy without .git.
"""
import argparse
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEAST_RATIO = 1.2
LONGEST_FIRST_STEP = 2.0  # [s]
HIGHEST_LOAD = 0.5
WARM_UP = 5  # steps left out of tokens/s
STEP_LINE = re.compile(r"^step +(\d+)(?:/\d+)? +loss +([0-9.]+)")
# Losses of the first step: the same sum of 4,096 logarithms in another order, printed with 4 digits.
LOSS_TOLERANCE = 2e-4


class Unmeasured(Exception):
    """The measurement could not be made; the text says why."""


def two_cores():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise Unmeasured("two cores are needed, this process may use one")
    return cores[:2]


def timed(command, cores, environment):
    """Runs a program pinned to `cores`; seconds since its start and loss of each step line."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        ["taskset", "-c", ",".join(map(str, cores)), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )
    steps = []
    for line in process.stdout:
        now = time.perf_counter() - begin
        if match := STEP_LINE.match(line):
            steps.append((now, float(match.group(2))))
    errors = process.stderr.read()
    if process.wait() != 0:
        raise Unmeasured(f"{shlex.join(command)} ended with {process.returncode}:\n{errors[-2000:]}")
    return steps


def figures(steps, tokens_per_step):
    times = [at for at, _ in steps]
    return {
        "first_step_seconds": times[0],
        "tokens_per_second": tokens_per_step * (len(times) - WARM_UP) / (times[-1] - times[WARM_UP - 1]),
        "first_loss": steps[0][1],
        "last_loss": steps[-1][1],
    }


def check_same_model(ours, theirs):
    difference = abs(ours["first_loss"] - theirs["first_loss"])
    if difference > LOSS_TOLERANCE:
        raise Unmeasured(
            f"the first losses differ, {ours['first_loss']} and {theirs['first_loss']}: these are not the same model"
        )


def measure(arguments, cores, folder):
    programs = ROOT / "build/release/bin"
    # The demo with fewer steps, all of them before its decay.
    settings = [
        "compute.device=cpu",
        "compute.threads=2",
        f"train.steps={arguments.steps}",
        "schedule.warmup_steps=20",
        "schedule.decay_steps=0",
    ]
    export = [str(programs / "export_run"), f"{folder}/export", str(arguments.steps), *settings]
    subprocess.run(export, check=True)
    run = json.loads((folder / "export/run.json").read_text())
    tokens = run["sequences"] * run["sequence_length"]
    assay = [str(programs / "assay"), "train", *settings, "sample.sentences=0", f"run.directory={folder}/run"]
    eager = [sys.executable, str(ROOT / "tests/bench/eager_pytorch.py"), f"{folder}/export", "--threads=2"]
    rounds = []
    for number in range(arguments.rounds):
        ours = figures(timed(assay, cores, {}), tokens)
        theirs = figures(timed(eager, cores, {"OMP_NUM_THREADS": "2"}), tokens)
        check_same_model(ours, theirs)
        rounds.append({"assay": ours, "eager_pytorch": theirs})
        print(
            f"round {number + 1}/{arguments.rounds}"
            f"  assay {ours['tokens_per_second']:8,.0f} tokens/s, first step {ours['first_step_seconds']:.2f} s"
            f"  eager PyTorch {theirs['tokens_per_second']:8,.0f} tokens/s, first step"
            f" {theirs['first_step_seconds']:.2f} s"
            f"  ratio {ours['tokens_per_second'] / theirs['tokens_per_second']:.2f}",
            flush=True,
        )
    return rounds


def machine():
    info = Path("/proc/cpuinfo").read_text()
    name = re.search(r"^model name\s*: (.*)$", info, re.M)
    return name.group(1) if name else platform.machine()


def commit():
    """The commit that was measured; "-dirty" when files differ from it. A copy without .git takes ASSAY_COMMIT."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else os.environ.get("ASSAY_COMMIT", "unknown")


def summary(rounds, arguments, cores, load):
    def median(program, figure):
        return statistics.median(one[program][figure] for one in rounds)

    versions = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    ratio = median("assay", "tokens_per_second") / median("eager_pytorch", "tokens_per_second")
    first = median("assay", "first_step_seconds")
    return {
        "command": f"ci/bench cpu --rounds {arguments.rounds} --steps {arguments.steps}",
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "cpu": machine(),
        "cores": cores,
        "load_before": load,
        "busy": load > HIGHEST_LOAD,
        "torch": versions.stdout.strip(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}",
        "model": "tiny-llama, fp32, 32 sequences x 128 tokens",
        "assay_tokens_per_second": median("assay", "tokens_per_second"),
        "eager_pytorch_tokens_per_second": median("eager_pytorch", "tokens_per_second"),
        "ratio": ratio,
        "least_ratio": LEAST_RATIO,
        "first_step_seconds": first,
        "longest_first_step_seconds": LONGEST_FIRST_STEP,
        "passed": ratio >= LEAST_RATIO and first <= LONGEST_FIRST_STEP,
        "rounds": rounds,
    }


def page(result):
    lines = [
        "# The trainer on two CPU cores",
        "",
        f"Written by `{result['command']} --record` on {result['time']}; figures: [cpu.json](cpu.json).",
        f"Commit {result['commit']}; {result['cpu']}, cores {result['cores']}; load before {result['load_before']:.2f};",
        f"{result['system']}; PyTorch {result['torch']}, Python {result['python']}. {result['model']}.",
        "",
        "| | Assay | eager PyTorch | ratio | wanted |",
        "|---|---|---|---|---|",
    ]
    for number, one in enumerate(result["rounds"], 1):
        ours, theirs = (one[name]["tokens_per_second"] for name in ("assay", "eager_pytorch"))
        lines.append(f"| tokens/s, round {number} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} | |")
    ours, theirs = result["assay_tokens_per_second"], result["eager_pytorch_tokens_per_second"]
    lines.append(f"| tokens/s, median | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} | >= {LEAST_RATIO} |")
    first = statistics.median(one["eager_pytorch"]["first_step_seconds"] for one in result["rounds"])
    lines.append(
        f"| process start to first step, median [s] | {result['first_step_seconds']:.2f} | {first:.2f} | |"
        f" <= {LONGEST_FIRST_STEP:.0f} |"
    )
    lines += [
        "",
        "Both train the same run from the same weights on the same batches, pinned to the same cores, in turn; the first",
        "losses agree. The baseline is `tests/bench/eager_pytorch.py`.",
    ]
    return "\n".join(lines) + "\n"


def record(result):
    if result["busy"]:
        raise Unmeasured("measured on a busy machine: not recorded")
    folder = ROOT / "docs/measurements"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / "cpu.md").write_text(page(result))
    print(f"recorded: {folder.relative_to(ROOT)}/cpu.md and cpu.json")


def parsed():
    parser = argparse.ArgumentParser(prog="ci/bench cpu", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="of both programs in turn (3)")
    parser.add_argument("--steps", type=int, default=60, help="of each run (60)")
    parser.add_argument("--record", action="store_true", help="write docs/measurements/cpu.md and cpu.json")
    parser.add_argument("--busy", action="store_true", help="measure although the machine is busy")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.steps < 20:
        parser.error("--rounds must be at least 1 and --steps at least 20")
    return arguments


def main():
    arguments = parsed()
    load = os.getloadavg()[0]
    if load > HIGHEST_LOAD and not arguments.busy:
        raise Unmeasured(
            f"the machine is busy, load average {load:.2f} (at most {HIGHEST_LOAD}): wait, or try with --busy"
        )
    if load > HIGHEST_LOAD:
        print(f"BUSY MACHINE, load average {load:.2f}: these figures are not results", flush=True)
    cores = two_cores()
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as name:
        rounds = measure(arguments, cores, Path(name))
    result = summary(rounds, arguments, cores, load)
    print(
        f"median  assay {result['assay_tokens_per_second']:,.0f} tokens/s, eager PyTorch"
        f" {result['eager_pytorch_tokens_per_second']:,.0f}, ratio {result['ratio']:.2f} (at least {LEAST_RATIO})"
        f"; first step {result['first_step_seconds']:.2f} s (at most {LONGEST_FIRST_STEP:.0f})"
        f"  {'passed' if result['passed'] else 'FAILED'}  [{result['cpu']}, load before {load:.2f}]"
    )
    if arguments.record:
        record(result)
    return 0 if result["passed"] else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Unmeasured, OSError, subprocess.CalledProcessError) as error:
        print(f"ci/bench: {error}", file=sys.stderr)
        sys.exit(2)
