#!/usr/bin/env python3
"""Checks that no test and no evidence lies idle.

    ci/check_registered.py [--self-test]

- Every golden file (data under golden/) is read by a test: one source file under tests/ names its path below golden/, or
  names its folder ("ops/rms_norm/") and, as a string, its stem ("basic").
- Every test file under a folder "cuda" of tests/impl/ is in a part of ci/gpu, and every test that `ci/gpu memcheck` names exists.
- Every file with a test in it is tests/{spec,reference,impl,cli}/**/*_test.cpp, where the build finds it, and its first
  line states known labels: "// labels: unit golden".
"""
import collections
import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile

LABELS = "unit property golden parity cli fault fuzz gpu multigpu scaling perf slow".split()
LABEL_LINE = re.compile(r"// labels:((?: [a-z]+)+)")
LAYERS = ("spec", "reference", "impl", "cli")
HAS_TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\s*\(", re.M)
TEST_NAME = re.compile(r"^(?:TEST|TEST_F|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\s*\(\s*(\w+),\s*(\w+)", re.M)
GPU_PARTS = "ops model staged multigpu".split()
DATA = {".json", ".safetensors", ".jsonl", ".txt", ".bin", ".csv", ".log"}
# A test that walks a whole folder of golden/ says so with one of these beside the folder's name.
WALKS = re.compile(r"directory_iterator|golden_files\(")


def names_folder(folder):
    return re.compile(rf'"(?:[^"]*/)?{re.escape(folder.as_posix())}/?[^"]*"')


def is_read(golden, sources):
    folder, stem = golden.parent.as_posix(), golden.stem
    folder_named = names_folder(golden.parent)
    above = [names_folder(each) for each in golden.parent.parents if each.name]
    file_named = re.compile(rf'"{re.escape(stem)}(?:\.\w+)?"')
    for text in sources:
        if golden.as_posix() in text or f"{folder}/{stem}\"" in text:
            return True
        if "recursive_directory_iterator" in text and any(each.search(text) for each in above):
            return True
        if folder_named.search(text) and (file_named.search(text) or WALKS.search(text)):
            return True
    return False


def check_test_file(path, text):
    found = path.name.endswith("_test.cpp") and len(path.parts) > 2 and path.parts[1] in LAYERS
    if not found:
        # A project of its own, built and run by tests/cli/install_test.cpp.
        if HAS_TEST.search(text) and "consumer" not in path.parts:
            yield f"{path}: the build takes tests from tests/{{{','.join(LAYERS)}}}/**/*_test.cpp only; this one never runs"
        return
    labels = LABEL_LINE.fullmatch(text.split("\n", 1)[0])
    if not labels:
        yield f'{path}:1: line 1 states the labels, like "// labels: unit golden"'
    else:
        for label in labels.group(1).split():
            if label not in LABELS:
                yield f"{path}:1: no such label: {label} (known: {' '.join(LABELS)})"
    if not HAS_TEST.search(text):
        yield f"{path}: there is no test in it"


def check_gpu(root, tests):
    """The files of each part of ci/gpu, and the tests that it names."""
    parts = collections.Counter()
    for part in GPU_PARTS:
        parts.update(subprocess.run(["bash", "ci/gpu", "files", part], cwd=root, capture_output=True, text=True).stdout.split())
    for path in map(str, tests):
        if fnmatch.fnmatch(path, "tests/impl/*/cuda/*_test.cpp") and not parts[path]:
            yield f"{path}: is in none of the parts {' '.join(GPU_PARTS)} of ci/gpu"
    names = [".".join(name) for text in tests.values() for name in TEST_NAME.findall(text)]
    for patterns in re.findall(r"^sanitized\+?='([^']*)'", (root / "ci/gpu").read_text(), re.M):
        for pattern in filter(None, patterns.split(":")):
            if not fnmatch.filter(names, pattern):
                yield f"ci/gpu: no test is called {pattern}"


def check(root):
    faults = []
    tests = {p.relative_to(root): p.read_text() for p in sorted((root / "tests").rglob("*"))
             if p.suffix in (".cpp", ".hpp", ".cu", ".cc") and p.is_file()}
    for path, text in tests.items():
        faults += check_test_file(path, text)
    faults += check_gpu(root, tests)
    data = [p.relative_to(root / "golden") for p in sorted((root / "golden").rglob("*")) if p.suffix in DATA]
    for golden in data:
        if not is_read(golden, tests.values()):
            faults.append(f"golden/{golden}: no test reads it")
    return len(tests), len(data), faults


def self_test():
    files = {
        "golden/ops/a/basic.json": "{}", "golden/ops/a/idle.json": "{}", "golden/ops/b/one.safetensors": "",
        "golden/whole/x.json": "{}", "golden/ops/c/basic.json": "{}", "golden/generate/a.py": "",
        "tests/spec/ops/a_test.cpp": '// labels: unit golden\nTEST(A, B) { for (n : {"basic"}) load("ops/a/" + n); }\n',
        "tests/impl/b_test.cpp": '// labels: unit\nTEST(B, C) { load("ops/b/one.safetensors"); }\n',
        "golden/tree/a/x.json": "{}", "golden/flat/a/x.json": "{}",
        "tests/impl/tree_test.cpp": '// labels: unit\nTEST(B, D) { recursive_directory_iterator("golden/tree"); }\n',
        "tests/impl/flat_test.cpp": '// labels: unit\nTEST(B, E) { directory_iterator("golden/flat"); }\n',
        "tests/impl/walk_test.cpp": '// labels: unit\nTEST(B, C) { directory_iterator("golden/whole"); }\n',
        "tests/impl/no_line_test.cpp": "TEST(B, C) {}\n",
        "tests/impl/wrong_label_test.cpp": "// labels: unit fast\nTEST(B, C) {}\n",
        "tests/impl/empty_test.cpp": "// labels: unit\n",
        "tests/other/lost_test.cpp": "// labels: unit\nTEST(B, C) {}\n",
        "tests/support/draw.hpp": "#pragma once\n",
        "tests/impl/ops/cuda/a_test.cpp": "// labels: gpu\nTEST(ACuda, B) {}\n",
        "tests/impl/ops/cuda/no_part_test.cpp": "// labels: gpu\nTEST(C, D) {}\n",
        "ci/gpu": "sanitized='ACuda.*:Gone.*'\n[ $2 = ops ] && echo tests/impl/ops/cuda/a_test.cpp\n",
    }
    expected = ["golden/flat/a/x.json", "golden/ops/a/idle.json", "golden/ops/c/basic.json", "no_line_test.cpp:1", "wrong_label_test.cpp:1",
                "empty_test.cpp", "lost_test.cpp", "no_part_test.cpp: is in none", "called Gone.*"]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = check(root)[2]
    missed = [e for e in expected if not any(e in f for f in found)]
    if missed or len(found) != len(expected):
        sys.exit(f"check_registered: self-test failed: missed {missed}; found {found}")
    print(f"check_registered: self-test: {len(expected)} planted faults found")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    tests, data, faults = check(pathlib.Path(__file__).resolve().parent.parent)
    for fault in faults:
        print(fault)
    print(f"check_registered: {tests} files under tests/, {data} golden files, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
