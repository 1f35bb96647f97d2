#!/usr/bin/env python3
"""Prints 'N passed, N failed, N skipped' of a CTest JUnit report; exits 1 when one failed or none ran.

An entry of CTest is a test file. Cases that were skipped inside a file that passed are named as well.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

suite = ElementTree.parse(sys.argv[1]).getroot()
cases = suite.findall("testcase")
skipped = [c for c in cases if c.find("skipped") is not None or c.get("status") in ("notrun", "disabled")]
failed = [c for c in cases if c.find("failure") is not None or c.get("status") == "fail"]
passed = len(cases) - len(failed) - len(skipped)
for case in skipped:
    reason = case.find("skipped")
    print(f"skipped: {case.get('name')}: {reason.get('message') if reason is not None else case.get('status')}")
for case in cases:
    if case not in skipped:
        inside = re.findall(r"^\[  SKIPPED \] ([\w./]+)$", case.findtext("system-out") or "", re.M)
        if inside:
            print(f"skipped inside {case.get('name')}: {' '.join(sorted(set(inside)))}")
for case in failed:
    print(f"failed: {case.get('name')}")
print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
sys.exit(1 if failed or passed == 0 else 0)
