"""The mutants of the .toml files beside this one, and how one is put into its source.

A table is a source file: `tests`, the test files that must fail, cheapest first, and `mutants`, one line each:
["slug", 'text', 'replacement', "what it means"], and a fifth entry, an anchor, where the text stands more than once:
the position is then the first one behind the anchor, which stands once.
"""
import dataclasses
import pathlib
import tomllib

# A file of mutants: the folders of its sources. The step is written once, in spec/, and computed in impl/.
ROOMS = {"spec": ("spec/",), "reference": ("reference/",), "impl": ("impl/",), "step": ("spec/step/", "impl/model/")}
# Rooms whose test program is built where a file's mutants are. Programs that cli's tests start load the library of impl.
TESTED_IN = {"spec": ("spec", "reference"), "reference": ("reference",), "impl": ("impl", "cli"), "step": ("spec", "impl")}


class Misfit(Exception):
    """The data or a source is not as a mutant says."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str  # "reference/ops/rms_norm:sum-for-mean"
    file: str
    text: str
    replacement: str
    meaning: str
    anchor: str
    tests: tuple
    room: str  # the file of mutants that it stands in


def check_table(room, file, table):
    for key in table.keys() ^ {"tests", "mutants"}:
        raise Misfit(f'{room}.toml: ["{file}"]: a table has tests and mutants, look at: {key}')
    if not file.startswith(ROOMS[room]):
        raise Misfit(f"{room}.toml: {file} belongs to another room")
    for test in table["tests"]:
        parts = test.split("/")
        if parts[0] != "tests" or parts[1] not in TESTED_IN[room] or not test.endswith("_test.cpp"):
            raise Misfit(f"{room}.toml: {file}: {test} is no test file that is built with {room}/")


def parse(room, text):
    found = []
    for file, table in tomllib.loads(text).items():
        check_table(room, file, table)
        for entry in table["mutants"]:
            if len(entry) not in (4, 5) or not all(isinstance(part, str) for part in entry) or not entry[1]:
                raise Misfit(f"{room}.toml: {file}: not [slug, text, replacement, meaning(, anchor)]: {entry}")
            slug, old, new, meaning = entry[:4]
            found.append(Mutant(f"{file.rpartition('.')[0]}:{slug}", file, old, new, meaning,
                                entry[4] if len(entry) == 5 else "", tuple(table["tests"]), room))
    return found


def load(root):
    found = []
    for room in ROOMS:
        path = root / "ci" / "mutation" / f"{room}.toml"
        try:
            found += parse(room, path.read_text())
        except tomllib.TOMLDecodeError as error:
            raise Misfit(f"{path.relative_to(root)}: {error}") from error
    names = [mutant.name for mutant in found]
    for name in {name for name in names if names.count(name) > 1}:
        raise Misfit(f"two mutants are called {name}")
    for test in {test for mutant in found for test in mutant.tests}:
        if not (root / test).is_file():
            raise Misfit(f"there is no {test}; name the file that holds these tests now")
    return found


def choose(found, names, only):
    for name in names:
        if not any(name in mutant.name for mutant in found):
            raise Misfit(f'no mutant has "{name}" in its name; ci/mutate --list names them')
    return [mutant for mutant in found
            if only in (None, mutant.room) and (not names or any(name in mutant.name for name in names))]


def position_of(source, mutant):
    """Where the text begins. Errors: Misfit when it stands nowhere, or more than once without an anchor."""
    if mutant.text == mutant.replacement:
        raise Misfit("the replacement is the text itself")
    begin = 0
    if mutant.anchor:
        if source.count(mutant.anchor) != 1:
            raise Misfit(f"the anchor stands {source.count(mutant.anchor)} times in {mutant.file}, not once: {mutant.anchor}")
        begin = source.index(mutant.anchor) + len(mutant.anchor)
    count = source.count(mutant.text, begin)
    if count == 0:
        raise Misfit(f"{mutant.file} has changed: this text no longer stands there: {mutant.text}")
    if count > 1 and not mutant.anchor:
        raise Misfit(f"this text stands {count} times in {mutant.file}, give an anchor: {mutant.text}")
    return source.index(mutant.text, begin)


def mutated(source, mutant):
    position = position_of(source, mutant)
    return source[:position] + mutant.replacement + source[position + len(mutant.text):]


def source_of(root, mutant):
    path = pathlib.Path(root) / mutant.file
    if not path.is_file():
        raise Misfit(f"there is no {mutant.file}")
    return path.read_text()


def line_of(root, mutant):
    source = source_of(root, mutant)
    return source.count("\n", 0, position_of(source, mutant)) + 1
