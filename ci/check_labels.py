#!/usr/bin/env python3
"""Checks that every constraint of the spec is checked by code and violated by a test, and that code knows no other.

    ci/check_labels.py [--self-test]

A page under spec/ states a constraint as **C1** (`rms_norm_c1`), or as the first cell of a table's row. Then
- the label stands in code of spec/, reference/ or impl/ as a string, or first in one, where it is thrown; or that code puts labels together
  ("rms_norm_c" + number) and has the comment `// rms_norm_c1` at the check;
- a test shows it: the label stands in a test file, or a test file named after it (rms_norm_test.cpp, rms_norm_*_test.cpp)
  has a test whose name has C1 in it;
- every label in code stands on exactly one page.
"""
import pathlib
import re
import sys
import tempfile

ON_PAGE = re.compile(r"\*\*C(\d+)\*\*\s+\(`(\w+)`\)")
IN_TABLE = re.compile(r"^\|\s*`?(\w+_c(\d+))`?\s*\|", re.M)
IN_CODE = re.compile(r'"[: ]*([a-z0-9_]+_c\d+)[":]')
COMPOSED = re.compile(r'\b([a-z0-9_]+_c)"\s*\+')
COMMENT = re.compile(r"//[^\n]*\b([a-z0-9_]+_c)(\d+)\b")
THROWN = re.compile(r"\b(?:require|refuse|SpecError|UserError)\s*\(")
TEST_NAME = re.compile(r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\s*\(\s*\w+\s*,\s*(\w+)")
STATEMENT_END = re.compile(r";\s*$", re.M)


def read(root, folders, suffixes):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path.relative_to(root), path.read_text()


def labels_on_pages(root, faults):
    pages = {}
    for path, text in read(root, ["spec"], {".md"}):
        for number, label in ON_PAGE.findall(text) + [(n, label) for label, n in IN_TABLE.findall(text)]:
            if not label.endswith(f"_c{number}"):
                faults.append(f"{path}: C{number} is called {label}; its name ends in _c{number}")
            if label in pages:
                faults.append(f"{path}: {label} stands on {pages[label]} already")
            pages[label] = path
    return pages


def labels_in_code(root):
    """Label -> (file, is it thrown there) of every line where it stands as a string, or as said above in a comment."""
    code = {}
    for path, text in read(root, ["spec", "reference", "impl"], {".hpp", ".cpp", ".cu", ".cuh"}):
        for match in IN_CODE.finditer(text):
            before = text[:match.start()]
            statement = before[max((m.end() for m in STATEMENT_END.finditer(before)), default=0):]
            code.setdefault(match.group(1), []).append((path, bool(THROWN.search(statement))))
        composed = set(COMPOSED.findall(text))
        for stem, number in COMMENT.findall(text):
            if stem in composed:
                code.setdefault(stem + number, []).append((path, True))
    return code


def tested(label, tests):
    stem, number = re.fullmatch(r"(\w+)_c(\d+)", label).groups()
    named = re.compile(rf"C{number}(?!\d)")
    in_string = re.compile(rf'"[^"\n]*\b{label}\b')
    for path, text in tests:
        if in_string.search(text):
            return True
        if re.fullmatch(rf"{stem}(_\w+)?_test", path.stem) and any(named.search(n) for n in TEST_NAME.findall(text)):
            return True
    return False


def check(root):
    faults = []
    pages = labels_on_pages(root, faults)
    code = labels_in_code(root)
    tests = list(read(root, ["tests"], {".cpp", ".hpp", ".cu"}))
    for label, page in sorted(pages.items()):
        if not any(thrown for _, thrown in code.get(label, [])):
            faults.append(f"{page}: {label} is thrown nowhere in spec/, reference/ or impl/")
        if not tested(label, tests):
            faults.append(f"{page}: {label} has no test: name the label in one, or C{label.rpartition('_c')[2]} in a test's name")
    for label, uses in sorted(code.items()):
        if label not in pages:
            faults.append(f"{uses[0][0]}: {label} stands on no page of spec/")
    return pages, faults


def self_test():
    files = {
        "spec/ops/a.md": "- **C1** (`a_c1`): x.\n- **C2** (`a_c2`): y.\n- **C3** (`a_c3`): z. **C4** (`a_c4`): w.\n"
                         "- **C5** (`a_c6`): v.\n",
        "spec/ops/b.md": "- **C1** (`a_c1`): again.\n\n| b_c1 | in a table |\n",
        "spec/ops/a.cpp": 'require(x, "a_c1", v);\nthrow SpecError(f(), \n  "a_c2", v);\nrequire(x, "a_c4", v);\n'
                          'require(x, "a_c6", v);\nrequire(x, "a_c9", v);\nauto s = "a_c3";\n'
                          'refuse(path, "a_c7: other");\n',
        "spec/d.md": "- **C1** (`d_c1`): u.\n- **C2** (`d_c2`): t.\n",
        "spec/d.cpp": '// d_c1\nrefuse(1);\nthrow Error("d_c" + n);\n',
        "tests/spec/d_test.cpp": "TEST(D, C1Refuses) {}\nTEST(D, C2Refuses) {}\n",
        "tests/spec/ops/a_test.cpp": 'TEST(ASpec, C1Refuses) {}\nTEST(ASpec, C3Refuses) {}\nTEST(ASpec, C6Refuses) {}\n'
                                     'TEST(ASpec, C40Refuses) {}\n',
        "tests/impl/run_test.cpp": 'EXPECT_EQ(label, "a_c2");\n',
    }
    expected = ["a_c6; its name", "a_c1 stands on", "a_c3 is thrown nowhere", "a_c4 has no test", "a_c9 stands on no page", "a_c7 stands on no page",
                "d_c2 is thrown nowhere", "b_c1 is thrown nowhere", "b_c1 has no test"]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = check(root)[1]
    missed = [e for e in expected if not any(e in f for f in found)]
    if missed or len(found) != len(expected):
        sys.exit(f"check_labels: self-test failed: missed {missed}; found {found}")
    print(f"check_labels: self-test: {len(expected)} planted faults found")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    pages, faults = check(pathlib.Path(__file__).resolve().parent.parent)
    for fault in faults:
        print(fault)
    print(f"check_labels: {len(pages)} constraints, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
