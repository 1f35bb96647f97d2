#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy: an allow-list, every finding an error) on the C++ files that a change touches.

    ci/check_tidy.py [--base COMMIT] [--seconds S] [--all] [--self-test]

The change is what differs from the merge base with main, on main itself from the commit before, plus what is not yet
committed. Files are taken cheapest room first (include, spec, reference, impl, tests) until the time is used up (--seconds, else
ASSAY_TIDY_SECONDS, else 300); files left over are named and count as a fault. A file that passed is not checked again until it, a header it includes, or .clang-tidy changes.
The flags are given here, so that no configured build is needed.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSED = ROOT / "build" / "lint" / "tidy"
ROOMS = ["include", "spec", "reference", "impl", "tests"]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def change_base():
    head = git("rev-parse", "HEAD")
    for branch in ("origin/main", "main"):
        base = git("merge-base", "HEAD", branch)
        if base and base != head:
            return base
    return git("rev-parse", "--verify", "--quiet", "HEAD~1")


def changed_files(base):
    names = git("diff", "--name-only", "--diff-filter=d", base).splitlines() if base else git("ls-files").splitlines()
    names += git("ls-files", "--others", "--exclude-standard").splitlines()
    paths = {pathlib.Path(n) for n in names}
    return sorted((p for p in paths if p.parts[0] in ROOMS and p.suffix in (".cpp", ".hpp") and (ROOT / p).is_file()),
                  key=lambda p: (ROOMS.index(p.parts[0]), p.suffix, str(p)))


def torch_root():
    described = ROOT / ".toolchain" / "assay-toolchain.cmake"
    found = re.search(r'ASSAY_TORCH_ROOT "([^"]+)"', described.read_text()) if described.exists() else None
    return found.group(1) if found else None


def cuda_root():
    described = ROOT / ".toolchain" / "assay-toolchain.cmake"
    found = re.search(r'CUDAToolkit_ROOT "([^"]+)"', described.read_text()) if described.exists() else None
    return found.group(1) if found else None


def flags():
    system = ["/usr/include/eigen3", str(ROOT / "impl/comm")]  # the second for <gloo/...>
    if torch_root():
        system += [f"{torch_root()}/include", f"{torch_root()}/include/torch/csrc/api/include", f"{cuda_root()}/include"]
    defined = ["ASSAY_SOURCE_DIR", "ASSAY_BINARY_DIR", "ASSAY_VERSION"]
    return (["-x", "c++", "-std=c++20", "-I", str(ROOT), "-I", str(ROOT / "include"), "-DTOML_HEADER_ONLY=1", "-Wno-pragma-once-outside-header"]
            + [f"-isystem{folder}" for folder in system] + [f'-D{name}="x"' for name in defined])


def content_key(path):
    """Hash of the file, the repository's headers it includes, directly or not, and the rules."""
    seen, waiting, digest = set(), [path], hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    while waiting:
        one = waiting.pop()
        if one in seen or not (ROOT / one).is_file():
            continue
        seen.add(one)
        text = (ROOT / one).read_text()
        digest.update(f"{one}\n{text}\n".encode())
        waiting += sorted(pathlib.Path(i) for i in INCLUDE.findall(text))
    return digest.hexdigest()


def tidy(program, path, end):
    """'' when the file passes, None when the time ran out, else what clang-tidy says."""
    key = PASSED / content_key(path)
    if key.exists():
        return ""
    left = end - time.monotonic()
    if left <= 1:
        return None
    try:
        done = subprocess.run([program, "--quiet", str(path), "--", *flags()], cwd=ROOT, timeout=left,
                              capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode == 0:
        PASSED.mkdir(parents=True, exist_ok=True)
        key.touch()
        return ""
    said = done.stdout.strip() or done.stderr.strip()
    return said.replace(f"{ROOT}/", "")


def run(program, paths, seconds):
    end = time.monotonic() + seconds
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        results = list(pool.map(lambda p: tidy(program, p, end), paths))
    faulty = [said for said in results if said]
    left = [str(p) for p, said in zip(paths, results) if said is None]
    for said in faulty:
        print(said)
    if left:
        print(f"check_tidy: not checked within {seconds:.0f} s: {' '.join(left)}; run it again (what passed is not checked "
              "again), or with more ASSAY_TIDY_SECONDS")
    print(f"check_tidy: {len(paths) - len(left)} of {len(paths)} changed files checked, {len(faulty)} with faults")
    return not faulty and not left


def self_test(program):
    with tempfile.TemporaryDirectory(dir=ROOT / "tests", prefix="tidy-self-test-") as folder:
        faulty = pathlib.Path(folder) / "faulty.cpp"
        faulty.write_text("#include <string>\nint BadName(std::string s) { return int(s.size()); }\n")
        said = tidy(program, faulty.relative_to(ROOT), time.monotonic() + 60)
    for check in ("readability-identifier-naming", "performance-unnecessary-value-param"):
        if check not in (said or ""):
            sys.exit(f"check_tidy: self-test failed: {check} not found; clang-tidy said: {said}")
    print("check_tidy: self-test: 2 planted faults found")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", help="compare with this commit")
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("ASSAY_TIDY_SECONDS", 300)))
    parser.add_argument("--all", action="store_true", help="every file, whatever the time")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    program = shutil.which("clang-tidy-14") or sys.exit("check_tidy: clang-tidy-14 is not here; run ci/setup")
    if arguments.self_test:
        return self_test(program)
    paths = changed_files(None if arguments.all else arguments.base or change_base())
    if not torch_root():
        without = [p for p in paths if p.parts[0] == "impl" or p.parts[:2] == ("tests", "impl")]
        if without:
            print(f"check_tidy: no toolchain with torch here, so not checked: {' '.join(map(str, without))}")
        paths = [p for p in paths if p not in without]
    sys.exit(0 if run(program, paths, 1e6 if arguments.all else arguments.seconds) else 1)


if __name__ == "__main__":
    main()
