"""The comparison must fail on every kind of change: `python -m unittest golden.compare_test`."""

import contextlib
import dataclasses
import io
import tempfile
import unittest
from pathlib import Path

import numpy as np

from . import compare
from .generate.golden_file import JSON_LIMIT, Golden

SMALL = Golden("op", "case", "torch_f64", "eq", {"torch": "1"},
               {"x": np.array([[1.0, -2.0], [0.5, 0.0]]), "ids": np.array([3, -100])}, scalars={"eps": 0.1}, seed=1)
LARGE = dataclasses.replace(SMALL, tensors={**SMALL.tensors, "x": np.linspace(-1, 1, JSON_LIMIT + 1)})


def complaints(old, new):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        paths = [golden.write(Path(folder) / side) for golden, side in ((old, "old"), (new, "new"))]
        return compare.compare("op/case", *paths)


def changed(golden, **tensors):
    return dataclasses.replace(golden, tensors={**golden.tensors, **tensors})


class Compare(unittest.TestCase):
    def test_equal_and_rounding_pass(self):
        for golden in (SMALL, LARGE):
            self.assertEqual(complaints(golden, golden), [])
            self.assertEqual(complaints(golden, changed(golden, x=golden.tensors["x"] * (1 + 1e-15))), [])

    def test_changes_fail(self):
        for golden in (SMALL, LARGE):
            x = golden.tensors["x"]
            for new in (
                changed(golden, x=x * (1 + 1e-12)),
                changed(golden, x=-x),
                changed(golden, x=x.reshape(-1, 1)),
                changed(golden, x=np.ones(x.shape, dtype=np.int64)),
                changed(golden, ids=np.array([3, -99])),
                changed(golden, extra=np.zeros(1)),
                dataclasses.replace(golden, tensors={"ids": golden.tensors["ids"]}),
                dataclasses.replace(golden, scalars={"eps": 0.1 * (1 + 1e-12)}),
                dataclasses.replace(golden, scalars={}),
                dataclasses.replace(golden, source_kind="mpmath"),
                dataclasses.replace(golden, seed=2),
            ):
                self.assertNotEqual(complaints(golden, new), [])

    def test_exact_sources_allow_nothing(self):
        exact = dataclasses.replace(SMALL, source_kind="mpmath")
        self.assertNotEqual(complaints(exact, changed(exact, x=exact.tensors["x"] * (1 + 1e-15))), [])

    def test_nan_is_never_written(self):
        with self.assertRaises(ValueError):
            changed(SMALL, x=np.array([np.nan]))


if __name__ == "__main__":
    unittest.main()
