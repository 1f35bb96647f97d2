"""Tries many mutants in one or several copies of the tree and sums up."""
import concurrent.futures
import fcntl
import os
import queue
import subprocess
import threading
import time

from . import mutants, trial
from .scratch import PRESET, BuildFailed, Scratch


def prepared(root, number):
    """A copy of the tree that no other ci/mutate uses as long as this one runs."""
    if not (root / ".toolchain" / "bin").is_dir():
        raise mutants.Misfit("no toolchain here; run ci/setup first")
    scratch = Scratch(root, number)
    scratch.folder.mkdir(parents=True, exist_ok=True)
    try:
        scratch.lock = open(scratch.folder / "build.lock", "w", encoding="ascii")
        fcntl.flock(scratch.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise mutants.Misfit(f"another ci/mutate works in {scratch.folder}; wait for it") from error
    scratch.copy_tree()
    return scratch


def build_unchanged(scratch, room, chosen):
    """Everything that the room's mutants need, from the sources as they are. impl_tests links assay_impl."""
    tests = {test for mutant in chosen if mutant.room == room for test in mutant.tests}
    scratch.prepare(PRESET[room], sorted({f"{test.split('/')[1]}_tests" for test in tests}))
    return sorted(tests)


def baseline(scratch, chosen, seconds):
    """A test that fails by itself would catch every mutant: all must pass on the unchanged sources. Gives their times."""
    times = {}
    for room in sorted({mutant.room for mutant in chosen}):
        begin = time.monotonic()
        try:
            tests = build_unchanged(scratch, room, chosen)
        except BuildFailed as failure:
            raise mutants.Misfit(f"the unchanged sources do not build: {trial.first_error(str(failure))}") from failure
        built = time.monotonic()
        passed, output = scratch.ctest(PRESET[room], trial.selection_of(tests), seconds)
        if not passed:
            raise mutants.Misfit(f"a test fails without any mutant: {trial.what_failed(output) or output[-400:]}")
        times |= trial.times_of(output)
        print(f"{room}: unchanged sources built in {built - begin:.0f} s, {len(tests)} test files pass "
              f"in {time.monotonic() - built:.0f} s", flush=True)
    return times


def by_file(chosen):
    groups = {}
    for mutant in chosen:
        groups.setdefault(mutant.file, []).append(mutant)
    return list(groups.values())


def work(scratch, groups, chosen, limits, results, lock):
    """Takes files until none is left; the mutants of one file follow each other, which saves building it unchanged."""
    while True:
        try:
            group = groups.get_nowait()
        except queue.Empty:
            return
        build_unchanged(scratch, group[0].room, chosen)
        for mutant in group:
            verdict = trial.attempt(scratch, mutant, limits)
            with lock:
                results[mutant] = verdict
                print(f"{verdict.outcome:8} {mutant.name:60} {verdict.seconds:5.1f} s  {verdict.how}", flush=True)


def summed(results, seconds):
    of = {outcome: [m for m, v in results.items() if v.outcome == outcome] for outcome in ("caught", "survived", "error")}
    for outcome in ("survived", "error"):
        for mutant in of[outcome]:
            print(f"{outcome}: {mutant.name}: {results[mutant].how}")
    for room in mutants.ROOMS:
        mine = [m for m in results if m.room == room]
        if mine:
            caught = sum(m in of["caught"] for m in mine)
            print(f"{room}: {caught} of {len(mine)} caught in {sum(results[m].seconds for m in mine):.0f} s")
    if of["error"]:
        print(f"{len(of['error'])} mutants could not be tried: mend them in ci/mutation/")
    print(f"in {seconds:.0f} s:")
    print(f"{len(results)} mutants, {len(of['caught'])} caught, {len(of['survived'])} survived")
    return 2 if of["error"] else 1 if of["survived"] else 0


def run(root, chosen, jobs, seconds, begin):
    os.nice(10)
    first = prepared(root, 0)
    limits = trial.Limits(baseline(first, chosen, seconds), seconds)
    groups, results, lock = queue.Queue(), {}, threading.Lock()
    for group in by_file(chosen):
        groups.put(group)
    copies = [first] + [prepared(root, number) for number in range(1, min(jobs, groups.qsize()))]
    with concurrent.futures.ThreadPoolExecutor(len(copies)) as pool:
        for done in [pool.submit(work, copy, groups, chosen, limits, results, lock) for copy in copies]:
            done.result()
    return summed(results, time.monotonic() - begin)


def compiles(scratch, mutant):
    """'' when the compiler takes the mutant, else its first error."""
    try:
        source = mutants.mutated(mutants.source_of(scratch.root, mutant), mutant)
    except mutants.Misfit as misfit:
        return str(misfit)
    command, folder = scratch.syntax_command(PRESET[mutant.room], mutant.file)
    words = [word for word in command if not word.endswith(".cpp")] + ["-x", "c++", "-"]
    if mutant.file.endswith(".hpp"):
        source = source.replace("#pragma once", "", 1)
    done = subprocess.run(words, cwd=folder, input=source, capture_output=True, text=True)
    return "" if done.returncode == 0 else trial.first_error(done.stderr)


def check(root, chosen, jobs, _, begin):
    os.nice(10)
    scratch = prepared(root, 0)
    for room in {mutant.room for mutant in chosen}:
        scratch.configure(PRESET[room])
        scratch.build(PRESET[room], ["assay_impl" if room == "step" else f"assay_{room}"])  # the precompiled headers too
    faults = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for mutant, said in zip(chosen, pool.map(lambda m: compiles(scratch, m), chosen)):
            if said:
                faults += 1
                print(f"error: {mutant.name}: {said}", flush=True)
    print(f"{len(chosen)} mutants, {faults} that do not fit or compile ({time.monotonic() - begin:.0f} s)")
    return 2 if faults else 0
