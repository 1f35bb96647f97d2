#!/usr/bin/env python3
"""Checks who includes whom: spec < reference, spec < impl, and only tests see both reference and impl.

    ci/check_layers.py [--self-test]

spec/      spec/ and the standard library; in .cpp files, unseen by users of a header, toml++, nlohmann-json, xxhash
reference/ reference/, spec/, the standard library, Eigen
impl/      impl/, spec/, any library
tests/     everything of the repository, any library
toml++ and nlohmann-json cost seconds a file, so one file each compiles them; all others use spec/text/json.hpp and
spec/text/toml.hpp. Tests may use them as a second opinion.
Quoted includes name a file from the repository's root. Headers start with `#pragma once`. No file is called after
no subject (utils, common, misc, helpers).
"""
import pathlib
import re
import subprocess
import sys
import tempfile

SUFFIXES = {".hpp", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
STANDARD = re.compile(r"[a-z_0-9]+")
PRIVATE_IN_SPEC = {"toml++/toml.h", "nlohmann/json.hpp", "xxhash.h"}
# Start of the include: the one file outside tests/ that has it, the header for all others.
COSTLY = {"toml++/": ("spec/text/toml.cpp", "spec/text/toml.hpp"),
          "nlohmann/": ("spec/text/json_events.cpp", "spec/text/json.hpp")}
ROOMS = {
    "spec": ("spec",),
    "reference": ("reference", "spec"),
    "impl": ("impl", "spec"),
    "tests": ("tests", "spec", "reference", "impl"),
}
NO_SUBJECT = re.compile(r"(^|[/_])(utils?|common|misc|helpers?)([/_.]|$)")


def library_allowed(path, library):
    room = path.parts[0]
    if room in ("impl", "tests") or STANDARD.fullmatch(library):
        return True
    if room == "spec":
        return path.suffix == ".cpp" and library in PRIVATE_IN_SPEC
    return library.startswith("Eigen/")


def faults_of_cost(path, place, library):
    for start, (owner, front) in COSTLY.items():
        if library.startswith(start) and str(path) != owner:
            yield place + f'<{library}> costs seconds of compiling, so only {owner} includes it: include "{front}"'


def faults_of_file(root, path, text):
    room = path.parts[0]
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 1
        place = f"{path}:{line}: "
        bracket, target = match.groups()
        if bracket == "<":
            if not library_allowed(path, target):
                yield place + f"{room}/ may not include <{target}>"
            elif room != "tests":
                yield from faults_of_cost(path, place, target)
        elif not (root / target).is_file():
            yield place + f'"{target}" is no file named from the repository\'s root'
        elif target.split("/")[0] not in ROOMS[room]:
            yield place + f'{room}/ may not include "{target}": it sees {", ".join(r + "/" for r in ROOMS[room])} only'
    if path.suffix in (".hpp", ".cuh") and not text.startswith("#pragma once\n"):
        yield f"{path}:1: a header starts with #pragma once"


def faults(root, paths):
    for path in paths:
        if NO_SUBJECT.search(str(path)):
            yield f"{path}: name the file for its subject"
        if path.suffix in SUFFIXES and path.parts[0] in ROOMS:
            yield from faults_of_file(root, path, (root / path).read_text())


def tracked(root):
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, check=True, text=True).stdout
    return [pathlib.Path(p) for p in listed.split("\0") if p and (root / p).is_file()]


def self_test():
    """Each rule is broken once, and each break is found; the sound file beside them is not."""
    files = {
        "spec/a.hpp": "#pragma once\n#include <vector>\n",
        "spec/b.cpp": '#include "spec/a.hpp"\n#include <xxhash.h>\n',
        "spec/text/toml.cpp": "#include <toml++/toml.h>\n",
        "spec/text/json_events.cpp": "#include <nlohmann/json.hpp>\n#include <toml++/toml.h>\n",
        "impl/l.cpp": "#include <nlohmann/json_fwd.hpp>\n",
        "tests/m.cpp": "#include <nlohmann/json.hpp>\n",
        "spec/c.hpp": "#pragma once\n#include <toml++/toml.h>\n",
        "spec/d.cpp": '#include "reference/e.hpp"\n',
        "reference/e.hpp": "#pragma once\n#include <Eigen/Core>\n",
        "reference/f.cpp": '#include "impl/g.hpp"\n',
        "impl/g.hpp": "#include <ATen/ATen.h>\n",
        "impl/h.cpp": '#include "../spec/a.hpp"\n',
        "impl/i.cpp": '#include "tests/k.hpp"\n',
        "reference/j_utils.cpp": "#include <ATen/ATen.h>\n",
        "tests/k.hpp": '#pragma once\n#include "impl/g.hpp"\n#include "reference/e.hpp"\n#include <gtest/gtest.h>\n',
    }
    expected = {"spec/text/json_events.cpp:2", "impl/l.cpp:1", "spec/c.hpp:2", "spec/d.cpp:1", "reference/f.cpp:1", "impl/g.hpp:1", "impl/h.cpp:1", "impl/i.cpp:1",
                "reference/j_utils.cpp", "reference/j_utils.cpp:1"}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = {fault.split(": ")[0] for fault in faults(root, [pathlib.Path(n) for n in files])}
    if found != expected:
        sys.exit(f"check_layers: self-test failed: not found {sorted(expected - found)}, "
                 f"wrongly found {sorted(found - expected)}")
    print(f"check_layers: self-test: {len(expected)} planted faults found")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(__file__).resolve().parent.parent
    paths = tracked(root)
    found = list(faults(root, paths))
    for fault in found:
        print(fault)
    print(f"check_layers: {sum(p.suffix in SUFFIXES for p in paths)} files, {len(found)} faults")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
