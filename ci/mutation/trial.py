"""Builds one mutant, runs the tests that must detect it, and says how it ended."""
import dataclasses
import re
import time

from . import mutants
from .scratch import PRESET, BuildFailed, write_if_other

NOT_EVERYDAY = "^(gpu|multigpu|scaling|perf|slow|fuzz)$"  # fuzz: of a program that no mutant builds
FAILED_ENTRY = re.compile(r"^\s*\d+ - (\S+) \(([^)]*)\)", re.M)
PASSED_ENTRY = re.compile(r"Test +#\d+: (\S+) \.+ +Passed +([\d.]+) sec")
COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
FAILED_CASE = re.compile(r"^\s*\[  FAILED  \] ([\w./]+)", re.M)
NOT_RUN = ("Not Run", "BAD_COMMAND")  # CTest's words for a test whose program is not there or does not start


@dataclasses.dataclass
class Verdict:
    outcome: str  # caught, survived, error
    how: str
    seconds: float = 0


def entry_of(test):
    """CTest's name of a test file."""
    return test.removeprefix("tests/").removesuffix("_test.cpp")


def times_of(output):
    return {name: float(seconds) for name, seconds in PASSED_ENTRY.findall(output)}


@dataclasses.dataclass
class Limits:
    """How long a test may run until it counts as hung."""
    times: dict  # of CTest entries without any mutant [s]
    most: float

    def of(self, tests):
        names = tuple(entry_of(test) for test in tests)
        slowest = max((t for name, t in self.times.items() if name.startswith(names)), default=self.most)
        return min(self.most, max(20, 10 * slowest))


def programs_of(room, tests):
    """What to build for a mutant. impl/ is a shared library: its test program, built before, stays as it is. The
    step's templates are compiled into tests, too. Tests of the command line run the programs."""
    if room == "impl":
        return ["assay_impl"] + (["assay", "assay-train", "run_ranks"] if any(t.startswith("tests/cli/") for t in tests) else [])
    return sorted({f"{test.split('/')[1]}_tests" for test in tests})


def selection_of(tests):
    """CTest's filter for test files: tests/impl/params/data_parallel_test.cpp has an entry for each number of ranks."""
    names = [re.escape(entry_of(test)) for test in tests]
    return ["-R", f"^({'|'.join(names)})(/ranks[0-9]+)?$"]


def what_failed(output):
    """The first test that failed: a test case's name, a hang or a crash; None when CTest names no failed entry."""
    output = COLOUR.sub("", output)  # ranks may have a terminal
    entry = next((e for e in FAILED_ENTRY.finditer(output) if e.group(2) not in NOT_RUN), None)
    if not entry:
        return None
    name, reason = entry.groups()
    if reason == "Timeout":
        return f"hang in {name}"
    case = FAILED_CASE.search(output)
    if case:
        return case.group(1)
    return f"{name} ({reason})"


def verdict_of(output, beside=""):
    """What tests that did not all pass say of a mutant. One that did not run detected nothing, whatever CTest calls it."""
    idle = [name for name, reason in FAILED_ENTRY.findall(COLOUR.sub("", output)) if reason in NOT_RUN]
    if idle:
        return Verdict("error", f"{idle[0]} did not run: is its program built?")
    failed = what_failed(output)
    return Verdict("caught", failed + beside) if failed else Verdict("error", output[-400:])


def first_error(output):
    errors = [line for line in output.splitlines() if "error:" in line]
    return errors[0] if errors else output.strip()[-400:]


def tests_detect(scratch, mutant, limits):
    """Named tests first, in their order, then the room's everyday tests."""
    preset = PRESET[mutant.room]
    scratch.build(preset, programs_of(mutant.room, mutant.tests))
    for test in mutant.tests:
        passed, output = scratch.ctest(preset, selection_of([test]), limits.of([test]))
        if not passed:
            return verdict_of(output)
    layers = mutants.TESTED_IN[mutant.room] if mutant.room == "step" else (mutant.room,)
    scratch.build(preset, programs_of(mutant.room, [f"tests/{layer}/" for layer in layers]))
    passed, output = scratch.ctest(preset, ["-L", f"^({'|'.join(layers)})$", "-LE", NOT_EVERYDAY], limits.most)
    if passed:
        return Verdict("survived", mutant.meaning)
    return verdict_of(output, ", but not by the tests named for it")


def attempt(scratch, mutant, limits):
    begin = time.monotonic()
    source = mutants.source_of(scratch.folder, mutant)  # the tree may be edited meanwhile
    target = scratch.folder / mutant.file
    try:
        write_if_other(target, mutants.mutated(source, mutant).encode())
        verdict = tests_detect(scratch, mutant, limits)
    except mutants.Misfit as misfit:
        verdict = Verdict("error", str(misfit))
    except BuildFailed as failure:
        verdict = Verdict("error", f"does not compile: {first_error(str(failure))}")
    finally:
        write_if_other(target, source.encode())
    verdict.seconds = time.monotonic() - begin
    return verdict
