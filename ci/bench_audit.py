#!/usr/bin/env python3
"""How long `assay audit` takes over a log of 10 MB, in every format that it reads, and over one of 1 GB, and `assay flops`.
Beside the formats: a log half of which is text (`megatron_text`), and one whose batch grows (`megatron_ramp`).

    ci/bench audit [--rounds N] [--gigabyte FORMAT] [--record] [--busy]

The logs are long simulated runs, every number of them true (tests/bench/long_logs.cpp). Each audit is a process of its
own, from its start to its end: reading, judging, printing. The best of the rounds counts, for what else the machine does
only ever adds. The verdict must be "consistent" (exit code 0). Peak memory is the largest resident set.

Exit code 0 when every audit of 10 MB and every `assay flops` take 50 ms or less and 1 GB is read at 200 MB/s or more, 1 when not, 2 when it
could not measure. A load average above 0.5 before the start is refused; --busy measures anyway and is never recorded.
--record writes docs/measurements/audit-speed.md, and keeps the sections below its table. ASSAY_COMMIT names the commit in a copy without .git.
"""
import argparse
import datetime
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "build/spec/bin"
LONGEST = 0.050  # [s]
LEAST_RATE = 200.0  # [MB/s]
HIGHEST_LOAD = 0.5
SMALL, LARGE = 10_000_000, 1_000_000_000  # [B]


class Unmeasured(Exception):
    """The measurement could not be made; the text says why."""


def write_logs(folder, size, formats=()):
    written = subprocess.run([PROGRAMS / "long_logs", folder, str(size), *formats], check=False)
    if written.returncode:
        raise Unmeasured("long_logs failed")
    return sorted(Path(folder).glob("*.log"))


def audit(log):
    """Wall clock [s], CPU time [s] and peak memory [B] of one audit."""
    return timed("audit", str(log), *log.with_suffix(".arguments").read_text().split("\n")[:-1])


def timed(*words):
    """Wall clock [s], CPU time [s] and peak memory [B] of one call of assay."""
    command = [str(PROGRAMS / "assay"), *words]
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    begin = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=nowhere)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - begin
    if os.waitstatus_to_exitcode(status) != 0:
        raise Unmeasured(f"{' '.join(command)}: exit code {os.waitstatus_to_exitcode(status)}, not 0")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measured(log, rounds):
    audit(log)  # into the page cache
    walls, cpus, peaks = zip(*(audit(log) for _ in range(rounds)))
    size = log.stat().st_size
    return {
        "format": log.stem,
        "size": size,
        "best": min(walls),
        "median": statistics.median(walls),
        "cpu": min(cpus),
        "rate": size / min(walls) / 1e6,
        "peak": max(peaks),
    }


def row(one):
    return (
        f"| {one['format']} | {one['size'] / 1e6:.1f} | {one['best'] * 1e3:.1f} | {one['median'] * 1e3:.1f} | "
        f"{one['cpu'] * 1e3:.1f} | {one['rate']:,.0f} | {one['peak'] / 1e6:.1f} |"
    )


# A model without and with experts, and what a budget of tokens takes.
FLOPS = [["llama3-8b"], ["deepseek-v3", "--seq", "4096"],
         ["llama3-8b", "--hardware", "H100-SXM", "--gpus", "8", "--tokens-per-second", "80000", "--tokens", "82B"]]


def flops_row(words, rounds):
    walls = [timed("flops", *words)[0] for _ in range(rounds)]
    return min(walls), f"| `assay flops {' '.join(words)}` | {min(walls) * 1e3:.1f} | {statistics.median(walls) * 1e3:.1f} |"


HEAD = "| format | log [MB] | best [ms] | median [ms] | CPU [ms] | MB/s | peak memory [MB] |\n|---|---|---|---|---|---|---|"


FLOPS_HEAD = "| command | best [ms] | median [ms] |\n|---|---|---|"


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit():
    if os.environ.get("ASSAY_COMMIT"):
        return os.environ["ASSAY_COMMIT"][:12]
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return asked.stdout.strip()[:12] or "unknown"


def page(arguments, small, large, flops):
    command = f"ci/bench audit --rounds {arguments.rounds} --gigabyte {arguments.gigabyte} --record"
    lines = [
        "# The time of an audit",
        "",
        f"Written by `{command}` on {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}.",
        f"Commit {commit()}; {processor()}, one core; load before {os.getloadavg()[0]:.2f}; {platform.system()}",
        f"{platform.machine()}, {' '.join(platform.libc_ver())}. The program of `cmake --preset spec`; logs in the page cache.",
        "",
        f"Whole processes, start to end, best and median of {arguments.rounds}. Wanted: 10 MB in 50 ms or less;",
        "1 GB at 200 MB/s or more in constant memory.",
        "",
        HEAD,
        *map(row, small),
        *map(row, large),
        "",
        FLOPS_HEAD,
        *(line for _, line in flops),
        "",
        "The logs are long simulated runs (`tests/bench/long_logs.cpp`), consistent in every number. Their lines are steps;",
        "of `megatron_text` half the bytes are lines that hold none, and the batch of `megatron_ramp` grows.",
    ]
    return "\n".join(lines) + "\n"


def kept(page_before):
    """What people wrote below the table of an earlier page: its sections."""
    at = page_before.find("\n## ")
    return page_before[at:] if at >= 0 else ""


def record(path, text):
    path.write_text(text + (kept(path.read_text()) if path.is_file() else ""))


def main():
    parser = argparse.ArgumentParser(prog="ci/bench audit")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--gigabyte", metavar="FORMAT", help="time 1 GB of that format too")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--busy", action="store_true")
    arguments = parser.parse_args()
    if os.getloadavg()[0] > HIGHEST_LOAD and not arguments.busy:
        raise Unmeasured(f"load average {os.getloadavg()[0]:.2f}: something else runs; wait, or --busy to try it out")
    if arguments.record and (arguments.busy or not arguments.gigabyte):
        raise Unmeasured("--record wants --gigabyte FORMAT and an idle machine")
    small, large = [], []
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for log in write_logs(folder, SMALL):
            small.append(measured(log, arguments.rounds))
            print(row(small[-1]), flush=True)
    if arguments.gigabyte:
        with tempfile.TemporaryDirectory() as folder:
            for log in write_logs(folder, LARGE, [arguments.gigabyte]):
                large.append(measured(log, 3))
                print(row(large[-1]), flush=True)
    flops = [flops_row(words, arguments.rounds) for words in FLOPS]
    print("\n".join([FLOPS_HEAD, *(line for _, line in flops)]), flush=True)
    if arguments.record:
        record(ROOT / "docs/measurements/audit-speed.md", page(arguments, small, large, flops))
    slow = [one["format"] for one in small if one["best"] > LONGEST]
    slow += [f"{one['format']}, 1 GB" for one in large if one["rate"] < LEAST_RATE]
    slow += [line for best, line in flops if best > LONGEST]
    if slow:
        print(f"too slow: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unmeasured as why:
        print(f"ci/bench audit: {why}", file=sys.stderr)
        sys.exit(2)
