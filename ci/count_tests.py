#!/usr/bin/env python3
"""Prints 'N passed, N failed, N skipped' of a CTest JUnit report; exits 1 when one failed or none ran.

    ci/count_tests.py REPORT [--skips-need-a-gpu]

An entry of CTest is a test file. Cases that were skipped inside a file that passed are named as well, with the reason. With
--skips-need-a-gpu a skip whose reason is not that there is no GPU, or too few, is a failure: so says continuous integration, where
everything else is set up. A case that another entry of its file ran, on another number of ranks, is not skipped.
"""
import argparse
import contextlib
import io
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

SKIP = re.compile(r"^.*: Skipped\n(.*?)\n*^\[  SKIPPED \] (\S+) \(", re.M | re.S)


def skips(case):
    """(name, reason) of what was skipped in an entry: cases of a file, or the whole entry."""
    inside = [(name, reason.strip()) for reason, name in SKIP.findall(case.findtext("system-out") or "")]
    element = case.find("skipped")
    if inside or (element is None and case.get("status") not in ("notrun", "disabled")):
        return inside
    return [(case.get("name"), element.get("message") if element is not None else case.get("status"))]


def file_of(case):
    return re.sub(r"/ranks\d+$", "", case.get("name"))


def count(text, skips_need_a_gpu):
    """Prints what the report `text` says; the exit code."""
    cases = ElementTree.fromstring(text).findall("testcase")
    skipped = [c for c in cases if c.find("skipped") is not None or c.get("status") in ("notrun", "disabled")]
    failed = [c for c in cases if c.find("failure") is not None or c.get("status") == "fail"]
    ran = {(file_of(c), name) for c in cases for name in re.findall(r"^\[       OK \] (\S+) \(", c.findtext("system-out") or "", re.M)}
    unexcused = 0
    for case in cases:
        for name, reason in skips(case):
            if (file_of(case), name) in ran:
                continue
            wrong = skips_need_a_gpu and "GPU" not in reason
            unexcused += wrong
            print(f"skipped{', which nothing here excuses' if wrong else ''}: {case.get('name')}: {name}: {reason}")
    for case in failed:
        print(f"failed: {case.get('name')}")
    passed = len(cases) - len(failed) - len(skipped)
    if unexcused:
        print(f"{unexcused} skips for another reason than a GPU: set up what they need (ci/setup --golden)")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or passed == 0 or unexcused else 0


def self_test():
    def skipped(name, reason):
        return f"[ RUN      ] {name}\n/a_test.cpp:9: Skipped\n{reason}\n\n[  SKIPPED ] {name} (0 ms)\n"

    def report(*entries):
        return "<testsuite>" + "".join(
            f'<testcase name="{name}" status="{status}">{element}<system-out>{out}</system-out></testcase>'
            for name, status, element, out in entries) + "</testsuite>"

    whole = '<skipped message="SKIP_RETURN_CODE=125"/>'
    gpu, package, ranks = skipped("A.Gpu", "no GPU here"), skipped("A.Reader", "x is not installed"), skipped("A.Ranks", "one rank")
    ok = "[       OK ] A.Ranks (1 ms)\n"
    trials = [  # a report, the exit code without and with --skips-need-a-gpu
        (report(("a", "run", "", ok)), 0, 0),
        (report(("a", "run", "", ok + gpu), ("b", "notrun", whole, gpu)), 0, 0),
        (report(("a", "run", "", ok + package)), 0, 1),
        (report(("a", "run", "", ok), ("b", "notrun", whole, package)), 0, 1),
        (report(("a", "run", "", ok), ("b", "notrun", whole, "")), 0, 1),
        (report(("a/ranks1", "run", "", ranks), ("a/ranks4", "run", "", ok)), 0, 0),
        (report(("a/ranks1", "run", "", ranks), ("b/ranks4", "run", "", ok)), 0, 1),
        (report(("a", "run", "", ok), ("b", "fail", "<failure/>", "")), 1, 1),
        (report(("a", "notrun", whole, gpu)), 1, 1),
    ]
    for number, (text, plain, strict) in enumerate(trials):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            found = count(text, False), count(text, True)
        if found != (plain, strict):
            sys.exit(f"count_tests: self-test failed: report {number} gives {found}, not {(plain, strict)}\n{out.getvalue()}")
    print(f"count_tests: self-test: {len(trials)} reports are judged as they should be")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", nargs="?")
    parser.add_argument("--skips-need-a-gpu", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if not arguments.report:
        parser.error("a report is needed")
    return count(pathlib.Path(arguments.report).read_bytes(), arguments.skips_need_a_gpu)


if __name__ == "__main__":
    sys.exit(main())
