"""Faults planted in the tool's own input: each must be found, and sound input must not be."""
import pathlib
import tempfile

from . import mutants, trial

SOURCE = "double f(double a) { return a + 1; }\ndouble g(double a) { return a - 1; }\n"
SOUND = ('["spec/a.cpp"]\ntests = ["tests/spec/a_test.cpp"]\nmutants = [\n'
         "  [\"sign\", 'a + 1', 'a - 1', \"wrong sign\"],\n"
         "  [\"other\", 'return a', 'return 2', \"of g\", 'double g'],\n]\n")
CTEST = """ 1/2 Test #7: spec/a ..........***{}   0.10 sec
[  FAILED  ] ASpec.AddsOne (0 ms)
The following tests FAILED:
\t  7 - spec/a ({})                                   spec unit
"""


def applies():
    sign, other = mutants.parse("spec", SOUND)
    assert mutants.mutated(SOURCE, sign) == SOURCE.replace("a + 1", "a - 1")
    assert mutants.mutated(SOURCE, other).endswith("double g(double a) { return 2 - 1; }\n")


def refused(old, new, source=SOURCE):
    """A change of the sound table makes it unfit."""
    try:
        for mutant in mutants.parse("spec", SOUND.replace(old, new)):
            mutants.position_of(source, mutant)
    except mutants.Misfit:
        return True
    return False


def finds_missing_files():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "ci" / "mutation").mkdir(parents=True)
        for room in mutants.ROOMS:
            (root / "ci" / "mutation" / f"{room}.toml").write_text(SOUND if room == "spec" else "")
        try:
            mutants.load(root)
        except mutants.Misfit:
            return True
    return False


def outcome(entry):
    """How a mutant ends whose one failed entry CTest calls so."""
    return trial.verdict_of(CTEST.format(entry, entry).replace("[  FAILED  ] ", "")).outcome


def run():
    applies()
    planted = {
        "text that is gone": refused("'a + 1'", "'a * 1'"),
        "text that stands twice": refused("'a + 1'", "'return a'"),
        "anchor that is gone": refused("'double g'", "'double h'"),
        "anchor behind the text": refused("'return a', 'return 2'", "'a + 1', 'a'"),
        "no change": refused("'a - 1'", "'a + 1'"),
        "another room": refused('"spec/a.cpp"', '"impl/a.cpp"'),
        "test of a room not built": refused("tests/spec/", "tests/impl/"),
        "no meaning": refused(', "wrong sign"', ""),
        "missing test file": finds_missing_files(),
        "failed test": trial.what_failed(CTEST.format("Failed", "Failed")) == "ASpec.AddsOne",
        "hang": trial.what_failed(CTEST.format("Timeout", "Timeout")) == "hang in spec/a",
        "crash": trial.what_failed(CTEST.format("", "SEGFAULT").replace("[  FAILED  ] ", "")) == "spec/a (SEGFAULT)",
        "program that is not built": outcome("Not Run") == "error" and outcome("BAD_COMMAND") == "error",
        "not run beside a failure": trial.verdict_of(
            CTEST.format("Failed", "Failed") + "\t  8 - spec/b (Not Run)\n").outcome == "error",
        "failure that ran": outcome("Failed") == "caught" and outcome("Timeout") == "caught",
        "no test failed": trial.what_failed("No tests were found!!!") is None,
    }
    missed = [name for name, found in planted.items() if not found]
    if missed or refused("", ""):
        print(f"mutate: self-test failed: {missed or 'sound input was refused'}")
        return 1
    print(f"mutate: self-test: {len(planted)} planted faults found")
    return 0
