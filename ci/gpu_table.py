#!/usr/bin/env python3
"""The table of GPU goals in docs/measurements/README.md, made from the kept measurements.

    ci/bench gpu-table                 write the table into docs/measurements/README.md
    ci/bench gpu-table --check         exit 1 where that page does not hold the table, or README.md quotes other figures
    ci/bench gpu-table --self-test     planted measurements: what is shown and judged of them
    ci/bench gpu-table --add LOG --commit C --command TEXT [--note TEXT] [--date YYYY-MM-DD]
                                       keep what a log of `ci/bench gpu` or `ci/gpu scaling` measured, then write the table

Measurements are lines of docs/measurements/gpu.jsonl: what step_bench, tests/bench/compiled_pytorch.py or
tests/cli/scaling_gpu_test.cpp printed, and beside it `call` (all of one call were measured on one machine, one after another), `part` (of ci/bench gpu), `command`,
`commit`, `date`, `note` and `machine` (GPU, driver, power limit, clock). A goal's row takes the last call that
measured it beside its baseline, on as many GPUs as are asked where such a call is kept; where a call measured it more than once, each
is shown and the lowest is judged.
"""
import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs/measurements/gpu.jsonl"
PAGE = ROOT / "docs/measurements/README.md"
FRONT = ROOT / "README.md"  # quotes the goals of QUOTED
QUOTED = ("P1", "P3")
TABLE_GPU = "H200"  # whose goals they are
BEGIN, END = "<!-- ci/bench gpu-table writes from here -->\n", "<!-- to here -->\n"


class Goal:
    """A row: `part` beside `baseline` [part of ci/bench gpu, or None], asked on `gpus` GPUs. Aims: `ratio` to the baseline, `mfu` exact,
    `first_step` [s], `memory` [byte] at most; `efficiency`: tokens/s of a GPU over those of a GPU alone, the slowest that was measured;
    `exposed`: share of a step waited for reductions, at most. `beyond`: what is aimed at further, likewise. `layout`: of several GPUs."""

    def __init__(self, name, what, part, baseline=None, layout=None, gpus=1, beyond=None, **aims):
        self.name, self.what, self.part, self.baseline = name, what, part, baseline
        self.layout, self.gpus, self.aims, self.beyond = layout, gpus, aims, beyond or {}


GOALS = [
    Goal("P1", "llama-1.36b, 2,048 tokens, 24 x 4, fp32 master weights", "p1", "baseline", ratio=1.15, mfu=0.60, beyond={"mfu": 0.64}),
    Goal("P2", "llama3-8b, 4,096 tokens, 4 x 2, bf16 states", "p2", "baseline-p2", ratio=1.08, beyond={"mfu": 0.64}),
    Goal("P5", "P1: start of the process to end of the first step", "p1", "baseline", first_step=5.0, beyond={"first_step": 3.0}),
    Goal("P6", "qwen3-1.8b, 2,048 tokens, 22 x 2, fp32 master weights (PyTorch: 8 x 4)", "p6", "baseline-p6", mfu=0.57, beyond={"mfu": 0.60}),
    Goal("P7", "P1: peak of memory", "p1", "baseline", memory=74e9, beyond={"memory": 68e9}),
    Goal("P3", "llama3-8b, 4,096 tokens, 4 x 2 on each, fp32 master weights, shard (PyTorch: FSDP2, 2 x 4)", "scaling-p3", "baseline-fsdp", layout="shard", gpus=4, ratio=1.12, mfu=0.57, beyond={"mfu": 0.615}),
    Goal("P5", "P3: start of the processes to end of the first step (GEMM algorithms are searched after it: `compute.deterministic=off`)", "scaling-p3", "baseline-fsdp", layout="shard", gpus=4, first_step=8.0, beyond={"first_step": 5.0}),
    Goal("P4", "llama-1.36b, 24 x 4 on each, replicate", "scaling", "baseline-ddp", layout="replicate", gpus=4, efficiency=0.985, beyond={"efficiency": 0.995}),
    Goal("P4", "the same, zero1", "scaling", "baseline-ddp", layout="zero1", gpus=4, efficiency=0.985, beyond={"efficiency": 0.995}),
    Goal("P4", "the same in one micro-batch, replicate", "scaling-1", "baseline-ddp-1", layout="replicate", gpus=4, exposed=0.03, beyond={"exposed": 0.01}),
]


# A line of tests/cli/scaling_gpu_test.cpp.
SCALING = re.compile(r"^heads (\d+) GPUs parallel\.data=(\w+)( batch\.sequences=24)?( --strong)?: ([\d.]+) tokens/s each, "
                     r"[\d.]+ %, MFU ([\d.]+) %, exposed ([\d.]+) %$")


def scaling_line(found):
    """(part, figures) of a line of the test: the same sequences on each GPU, in 4 micro-batches or 1, or the same step."""
    ranks, layout, one, strong, per_gpu, mfu, waited = found.groups()
    return ("scaling-strong" if strong else "scaling-1" if one else "scaling",
            {"model": "llama-1.36b", "gpu": "", "ranks": int(ranks), "layout": layout, "tokens_per_second_per_rank": float(per_gpu),
             "mfu_exact": float(mfu) / 100, "exposed": float(waited) / 100})


def lines_of(log):
    """(part, figures) of every measurement in a log, and the machine's line."""
    part, machine, out = None, None, []
    for line in log.splitlines():
        if found := SCALING.match(line):
            if machine is None:
                raise ValueError("no line of the GPU's name, driver and memory before the figures")
            out.append(scaling_line(found))
            out[-1][1]["gpu"] = machine.split(",")[0]
            continue
        if line.startswith("== "):
            part = line[3:].split()[0]
        elif line.startswith("NVIDIA ") and machine is None:
            machine = line.strip()
        elif line.startswith(('{"model"', '{"stack"')):
            figures = json.loads(line)
            if "tokens_per_second" in figures:
                if part is None:
                    raise ValueError("figures before the first line `== PART`: not a log of ci/bench gpu")
                out.append((part, figures))
    if not out:
        raise ValueError("holds no figures of step_bench or compiled_pytorch.py")
    return machine, out


def require_commit(text):
    """`text` begins with a commit of this repository, where there is one; what was changed in it may follow."""
    known = subprocess.run(["git", "cat-file", "-e", text.split()[0] + "^{commit}"], cwd=ROOT, capture_output=True, check=False)
    if (ROOT / ".git").exists() and known.returncode:
        raise ValueError(f"--commit {text}: {text.split()[0]} is no commit of this repository")


def add(arguments):
    require_commit(arguments.commit)
    machine, measured = lines_of(Path(arguments.add).read_text())
    kept = read()
    call = max((m["call"] for m in kept), default=0) + 1
    with KEPT.open("a") as file:
        for part, figures in measured:
            about = {"call": call, "date": arguments.date, "commit": arguments.commit, "command": arguments.command,
                     "note": arguments.note, "machine": machine, "part": part}
            file.write(json.dumps({**about, **figures}) + "\n")
    print(f"{len(measured)} measurements of call {call} added to {KEPT.relative_to(ROOT)}")


def read():
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


def first_step(m):
    return m["seconds_to_first_step"] if "stack" in m else m["seconds_since_process_start"]["first step done"]


def rate(m):
    return m["tokens_per_second_per_rank"]


def listed(measured, form, unit=""):
    """Every value, in the order of the call; equal ones once where all are equal."""
    values = [form(m) for m in measured]
    return " and ".join(values if len(set(values)) > 1 else values[:1]) + unit


def percent(share, digits=1):
    return f"{100 * share:.{digits}f}"


def figures(goal, ours, alone):
    """Text of a goal's figures, of one call."""
    if "first_step" in goal.aims:
        return listed(ours, lambda m: f"{first_step(m):.1f}", " s")
    if "memory" in goal.aims:
        planned = listed([m for m in ours if "planned_device_bytes" in m], lambda m: f"{m['planned_device_bytes'] / 1e9:.1f}")
        return listed(ours, lambda m: f"{m['peak_device_bytes'] / 1e9:.1f}", " GB") + (f", planned {planned}" if planned else "")
    text = listed(ours, lambda m: f"{rate(m):,.0f}", " tokens/s") + (" a GPU" if ours[0]["ranks"] > 1 else "") + ", " + \
        listed(ours, lambda m: percent(m["mfu_exact"]), " %")
    if "stack" in ours[0]:  # PyTorch's lines know neither a GPU alone nor what is waited for
        return text
    if "efficiency" in goal.aims:
        which = "the slowest GPU" if len(alone) >= ours[0]["ranks"] else "a GPU"
        text += f"; {percent(min(map(rate, ours)) / min(map(rate, alone)))} % of {which} alone"
    if "exposed" in goal.aims:
        text += "; " + listed(ours, lambda m: percent(exposed(m), 2), " % exposed")
    return text


def exposed(m):
    return m["exposed"] if "exposed" in m else m["phase_seconds"]["reduce"] / m["median_step_seconds"]


def judged(aims, ours, theirs, alone):
    """(aim's text, reached) of every aim."""
    slowest, out = min(map(rate, ours)), []
    for aim, value in aims.items():
        if aim == "ratio":
            got = slowest / max(map(rate, theirs))
            out.append((f"{value:.2f} x PyTorch ({got:.3f})", got >= value))
        elif aim == "mfu":
            out.append((f"{100 * value:g} % exact", min(m["mfu_exact"] for m in ours) >= value))
        elif aim == "first_step":
            out.append((f"{value:.0f} s", max(map(first_step, ours)) <= value))
        elif aim == "memory":
            out.append((f"{value / 1e9:.0f} GB", max(m["peak_device_bytes"] for m in ours) <= value))
        elif aim == "efficiency":
            out.append((f"{percent(value)} %", slowest / min(map(rate, alone)) >= value))
        elif aim == "exposed":
            out.append((f"{percent(value, 0)} % exposed", max(map(exposed, ours)) <= value))
        else:
            raise ValueError(f"unknown aim {aim}")
    return out


def of_goal(goal, here):
    """(Assay's, PyTorch's, one GPU's) measurements of a call for a goal: of the most GPUs that were measured; a GPU alone under
    the goal's own layout, where it ran under each."""
    of_part = [m for m in here if m["part"] == goal.part]
    ours = [m for m in of_part if (m["ranks"] == 1 if goal.layout is None else m["ranks"] > 1 and m["layout"] == goal.layout)]
    ranks = max((m["ranks"] for m in ours), default=0)
    alone = [m for m in of_part if m["ranks"] == 1]
    return ([m for m in ours if m["ranks"] == ranks], [m for m in here if m["part"] == goal.baseline and m["ranks"] == ranks],
            [m for m in alone if m["layout"] == goal.layout] or alone)


def chosen(goal, kept):
    """of_goal() of the call on most GPUs, up to those asked for; of one in which each of them ran alone, before one in which a single one
    did, as a step waits for the slowest; of the last of these. None where no call measured it."""
    found = []
    for call in {m["call"] for m in kept if TABLE_GPU in m["gpu"]}:
        ours, theirs, alone = of_goal(goal, [m for m in kept if m["call"] == call])
        timed = "first_step" not in goal.aims or all("seconds_since_process_start" in m for m in ours)  # not every call's is kept
        if ours and timed and (theirs or not goal.baseline) and (alone or "efficiency" not in goal.aims):
            ranks = ours[0]["ranks"]
            found.append(((min(ranks, goal.gpus), "efficiency" not in goal.aims or len(alone) >= ranks, call), ours, theirs, alone))
    return max(found, key=lambda one: one[0])[1:] if found else None


def row(goal, kept):
    if found := chosen(goal, kept):
        ours, theirs, alone = found
        on_fewer = f" on {ours[0]['ranks']}" if goal.gpus > ours[0]["ranks"] else ""
        verdict = "; ".join(f"{text}: {'reached' if reached else '**not reached**'}{on_fewer}"
                            for text, reached in judged(goal.aims, ours, theirs, alone))
        verdict += "".join(f"; beyond it {text}: {'reached' if reached else 'not reached'}{on_fewer}"
                           for text, reached in judged(goal.beyond, ours, theirs, alone))
        if on_fewer:
            verdict += f"; asked on {goal.gpus} GPUs: **not measured**"
        one = ours[0]
        note = f", {one['note']}" if one["note"] else ""
        return (f"| {goal.name} | {goal.what} | {one['ranks']} x {one['gpu'].removeprefix('NVIDIA ')} | {figures(goal, ours, alone)} | "
                f"{figures(goal, theirs, alone) if theirs else ''} | {verdict} | {one['date']}, {one['commit']}{note}: `{one['command']}` |")
    return f"| {goal.name} | {goal.what} | | not measured | | | |"


def table():
    kept = read()
    rows = [row(goal, kept) for goal in GOALS]
    return ("| goal | what | GPUs | Assay | PyTorch in the same call | asked, and the aim beyond | measured |\n|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n")


def quotes(goals, kept):
    """What README.md says of the goals of QUOTED that are held against PyTorch: the ratio and the exact MFU that are judged."""
    out = []
    for goal in goals:
        if goal.name in QUOTED and "ratio" in goal.aims and (found := chosen(goal, kept)):
            ours, theirs, _ = found
            out.append(f"{min(map(rate, ours)) / max(map(rate, theirs)):.3f} x PyTorch")
            out.append(f"{percent(min(m['mfu_exact'] for m in ours))} % exact MFU")
    return out


def page():
    text = PAGE.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"{PAGE.relative_to(ROOT)}: one line {BEGIN.strip()} and one {END.strip()} are needed")
    before, rest = text.split(BEGIN)
    return text, before + BEGIN + table() + END + rest.split(END)[1]


def self_test():
    """Plants measurements; raises AssertionError where they are shown or judged otherwise than said here."""
    def one(part, rank_rate, mfu, ranks=1, layout="replicate", call=1, gpu="NVIDIA H200", **more):
        return {"call": call, "date": "D", "commit": "C", "command": "X", "note": "", "machine": "", "part": part, "gpu": gpu,
                "ranks": ranks, "layout": layout, "tokens_per_second_per_rank": rank_rate, "mfu_exact": mfu, **more}
    ratio = Goal("P", "w", "p1", "baseline", ratio=1.15, mfu=0.60)
    kept = [one("p1", 115, 0.61), one("baseline", 100, 0.5)]
    assert "1.15 x PyTorch (1.150): reached; 60 % exact: reached" in row(ratio, kept), row(ratio, kept)
    assert "(1.140): **not reached**" in row(ratio, [*kept, one("p1", 114, 0.61)]), "the lowest of several is judged"
    assert "115 and 115 and 114 tokens/s, 61.0 and 59.0 and 61.0 %" in row(
        ratio, [*kept, one("p1", 115, 0.59), one("p1", 114, 0.61)]), "pairs stay together"
    assert "**not reached**" in row(ratio, [one("p1", 115, 0.599), *kept[1:]])
    assert "not measured" in row(ratio, kept[:1]), "a baseline of the same call is needed"
    assert "not measured" in row(ratio, [kept[0], one("baseline", 100, 0.5, call=2)])
    assert "(1.150)" in row(ratio, [*kept, one("p1", 300, 0.61, call=2, gpu="NVIDIA B200"),
                                    one("baseline", 100, 0.5, call=2, gpu="NVIDIA B200")]), "of these GPUs alone"
    share = Goal("Q", "w", "scaling", layout="zero1", gpus=4, efficiency=0.985)
    kept = [one("scaling", 100, 0.6), one("scaling", 110, 0.6, layout="zero1"), one("scaling", 99, 0.6, 2, "zero1"),
            one("scaling", 105, 0.6, 4, "zero1")]
    assert "4 x H200 | 105" in row(share, kept) and "95.5 % of a GPU alone" in row(share, kept), row(share, kept)
    assert "98.5 %: reached |" in row(share, [*kept[:1], one("scaling", 99, 0.6, 4, "zero1")]), "the only GPU alone"
    assert "4 x H200 | 105" in row(share, [*kept, one("scaling", 99, 0.6, 2, "zero1", call=2), one("scaling", 100, 0.6, call=2)]), "asked on 4"
    every = [one("scaling", 100 + g, 0.6, call=1) for g in range(4)] + [one("scaling", 99, 0.6, 4, "zero1", call=1)]
    later = [one("scaling", 101, 0.6, call=2), one("scaling", 99, 0.6, 4, "zero1", call=2)]
    assert "99.0 % of the slowest GPU alone" in row(share, [*every, *later]), "the slowest of four, not the only one that ran alone"
    assert "98.0 % of a GPU alone" in row(share, [*every[1:], *later]), "else the last call"
    assert "98.5 %: **not reached** on 2; asked on 4 GPUs: **not measured**" in row(share, kept[:3])
    beside = Goal("R", "w", "scaling-1", "baseline-ddp-1", layout="replicate", exposed=0.03)
    assert "| 8 tokens/s a GPU, 40.0 % |" in row(beside, [one("scaling-1", 9, 0.5, 2, exposed=0.01), one("baseline-ddp-1", 8, 0.4, 2, stack="t")])
    further = Goal("P", "w", "p1", mfu=0.5, beyond={"mfu": 0.615})
    assert "50 % exact: reached; beyond it 61.5 % exact: not reached |" in row(further, [one("p1", 9, 0.61)])
    assert "beyond it 61.5 % exact: reached |" in row(further, [one("p1", 9, 0.615)])
    kept = [one("p1", 115, 0.61), one("p1", 114, 0.6), one("baseline", 100, 0.5)]
    assert quotes([Goal("P1", "w", "p1", "baseline", ratio=1.15)], kept) == ["1.140 x PyTorch", "60.0 % exact MFU"], "the lowest is quoted"
    assert quotes([Goal("P1", "w", "p1", "baseline", ratio=1.15)], kept[:2]) == [], "nothing is quoted that was not measured"
    waits = Goal("R", "w", "scaling-1", layout="replicate", exposed=0.03)
    assert "3 % exposed: **not reached**" in row(waits, [one("scaling-1", 9, 0.5, 2, exposed=0.031)])
    for text in ("", "{\"model\": 1}", "heads 1 GPUs parallel.data=shard: 1 tokens/s each, 100 %, MFU 5 %, exposed 0 %",
                 '{"model": "m", "tokens_per_second": 1}'):
        try:
            lines_of(text)
        except ValueError:
            continue
        raise AssertionError(f"taken for a log: {text!r}")
    print("gpu_table: self-test: planted measurements are shown and judged as they should")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--add", metavar="LOG")
    parser.add_argument("--commit")
    parser.add_argument("--command")
    parser.add_argument("--note", default="")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    arguments = parser.parse_args()
    if arguments.self_test:
        self_test()
        return
    if arguments.add:
        if not (arguments.commit and arguments.command):
            parser.error("--add needs --commit and --command: what was measured, and how")
        try:
            add(arguments)
        except (OSError, ValueError, KeyError) as error:
            sys.exit(f"{arguments.add}: {error}")
    before, after = page()
    if arguments.check:
        if before != after:
            sys.exit(f"{PAGE.relative_to(ROOT)} does not hold what docs/measurements/gpu.jsonl says: run `ci/bench gpu-table`")
        if missing := [quote for quote in quotes(GOALS, read()) if quote not in FRONT.read_text()]:
            sys.exit(f"README.md does not say {', '.join(map(repr, missing))}, which docs/measurements/gpu.jsonl gives: mend its quotes")
        return
    PAGE.write_text(after)


if __name__ == "__main__":
    main()
