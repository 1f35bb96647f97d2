#!/usr/bin/env python3
"""Checks that the sources of a room can be compiled as one, in whichever batches the build draws (ASSAY_BATCH).

    ci/check_batches.py [--self-test]

Sources are compiled in batches, and one more file moves every batch's edges: a name that two sources both give to
something internal compiles until they meet. Here all of a room meet: the compiler reads them as one source and makes
nothing of it. Sources that the build compiles apart are left out (APART).
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import check_tidy

ROOT = check_tidy.ROOT
ROOMS = ["tests/impl", "tests/spec", "impl", "spec", "tests/cli", "reference", "tests/reference", "tests/support"]
NEED_TORCH = ("impl", "tests/impl")
APART = {"impl/machine/architectures.cpp", "tests/support/program/entry.cpp"}
PROGRAM = re.compile(r"^int main\(", re.M)


def sources(room):
    names = check_tidy.git("ls-files", "--cached", "--others", "--exclude-standard", "--", f"{room}/*.cpp").splitlines()
    return [n for n in sorted(set(names))
            if n not in APART and (ROOT / n).is_file() and not PROGRAM.search((ROOT / n).read_text())]


def as_one(names):
    """What the compiler says to these sources as one; '' when nothing."""
    text = "".join(f'#include "{name}"\n' for name in names)
    flags = [f for f in check_tidy.flags() if not f.startswith("-W")]  # those are clang's
    done = subprocess.run(["g++", *flags, "-fsyntax-only", "-w", "-fmax-errors=5", "-"], cwd=ROOT, input=text,
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.replace(f"{ROOT}/", "")


def self_test():
    with tempfile.TemporaryDirectory(dir=ROOT / "tests", prefix="batches-self-test-") as folder:
        names = []
        for name in ("one", "other"):
            path = pathlib.Path(folder) / f"{name}.cpp"
            path.write_text(f"namespace {{\nint twice() {{ return 2; }}\n}}\nint {name}() {{ return twice(); }}\n")
            names.append(str(path.relative_to(ROOT)))
        alone, both = [as_one([name]) for name in names], as_one(names)
    if any(alone) or "twice" not in both:
        sys.exit(f"check_batches: self-test failed: alone {alone}, both {both!r}")
    print("check_batches: self-test: a name that two sources have was found")


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    rooms = [room for room in ROOMS if check_tidy.torch_root() or room not in NEED_TORCH]
    if len(rooms) < len(ROOMS):
        print(f"check_batches: no toolchain with torch here, so not checked: {' '.join(NEED_TORCH)}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        said = list(pool.map(lambda room: as_one(sources(room)), rooms))
    for room, errors in zip(rooms, said):
        if errors:
            print(f"check_batches: sources of {room} cannot share a batch; give each internal name to one of them:\n{errors}")
    if any(said):
        sys.exit(1)
    print(f"check_batches: {sum(len(sources(r)) for r in rooms)} sources of {len(rooms)} rooms, each room as one")


if __name__ == "__main__":
    main()
