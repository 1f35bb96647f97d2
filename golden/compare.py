"""Compares regenerated golden files with the committed ones: `python -m golden.compare GOLDEN NEW [NAME ...]`.

stdout: one line per tensor with its largest difference as a share of the tensor's largest value, then "N passed, N failed".
Exit code 1 when a file or tensor is missing or added, a shape, a kind or a header field changed, or a difference is too large.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from safetensors import safe_open

UNIT_ROUNDOFF = 2.0**-53
# Roundings in a chain by kind of source, so that gamma_n = n u / (1 - n u) bounds the difference between two machines
# (Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1): none where the arithmetic is the same everywhere;
# about a hundred in one op forward and backward at these sizes; ten times that through a whole model. That is 1.1e-14 and
# 1.1e-13; between the SSE and the AVX2 paths of one machine up to 4.3e-15 was measured, in a whole model.
ROUNDINGS = {"published": 0, "mpmath": 0, "torch_flop_counter": 0, "transformers": 0, "torch_float8": 0,
             "torch_f64": 100, "transformers_f64": 1_000, "tokenizers": 0, "tensorboard": 0}
FOLDERS = ("ops", "models", "model_inventories", "flops", "formats", "greedy", "tensorboard", "tokenizers", "weights")  # what golden.generate writes; hand-worked files lie beside it
FREE_FIELDS = {"tool_versions", "payload_sha256", "scalars", "shapes"}  # reported or compared in their own way


def load(path):
    """(header, tensors) of a golden file; (None, bytes) of a foreign one."""
    if path.suffix == ".json":
        content = json.loads(path.read_text())
        if "schema" not in content:
            return None, path.read_bytes()
        tensors = {name: np.array(t["values"], dtype=np.float64 if t["dtype"] == "F64" else np.int64).reshape(t["shape"])
                   for name, t in content.pop("tensors").items()}
        return content, tensors
    with safe_open(path, "numpy") as file:
        header = file.metadata() or {}
        if "schema" not in header:
            return None, path.read_bytes()
        for field in ("tool_versions", "scalars", "texts", "seed"):
            header[field] = json.loads(header[field])
        return header, {name: file.get_tensor(name) for name in file.keys()}


def difference(old, new):
    """max |new - old| / max |old|; infinite for another shape or kind of number."""
    if old.shape != new.shape or old.dtype.kind != new.dtype.kind:
        return np.inf
    if np.array_equal(old, new):
        return 0.0
    if old.dtype.kind != "f":
        return np.inf
    largest = np.abs(old).max()
    return float(np.abs(new - old).max() / largest) if largest else np.inf


def compare(name, old_path, new_path):
    """Prints a line per tensor; returns the list of complaints."""
    (old, old_data), (new, new_data) = load(old_path), load(new_path)
    if old is None or new is None:
        same = type(old) is type(new) and old_data == new_data
        print(f"{name}\tbytes\t{'equal' if same else 'DIFFERENT'}")
        return [] if same else ["its bytes differ"]
    complaints = [f"header field {field} differs" for field in sorted((old.keys() | new.keys()) - FREE_FIELDS)
                  if old.get(field) != new.get(field)]
    if old["tool_versions"] != new["tool_versions"]:
        print(f"{name}: made with {old['tool_versions']}, now {new['tool_versions']}", file=sys.stderr)
    roundings = ROUNDINGS[old["source_kind"]]
    allowed = roundings * UNIT_ROUNDOFF / (1 - roundings * UNIT_ROUNDOFF)
    pairs = [(f"scalar {key}", *(np.float64(side["scalars"].get(key, np.nan)) for side in (old, new)))
             for key in sorted(old["scalars"].keys() | new["scalars"].keys())]
    for tensor in sorted(old_data.keys() ^ new_data.keys()):
        complaints.append(f"tensor {tensor} is {'new' if tensor in new_data else 'missing'}")
    pairs += [(tensor, old_data[tensor], new_data[tensor]) for tensor in old_data if tensor in new_data]
    for label, before, after in pairs:
        error = difference(before, after)
        print(f"{name}\t{label}\t{error:.2e} of {allowed:.2e}")
        if not error <= allowed:
            complaints.append(f"{label} differs by {error:.2e} of its largest value, allowed {allowed:.2e}")
    return complaints


def committed(root, names):
    """Files below `root` that golden.generate must be able to write, by relative path."""
    files = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        chosen = not names or any(f"{name.with_suffix('')}/".startswith(f"{n}/") for n in names)
        if name.parts[0] in FOLDERS and path.suffix in (".json", ".safetensors") and chosen:
            header, _ = load(path)
            if header is None or header.get("source_kind") in ROUNDINGS:
                files[str(name)] = path
    return files


def main():
    parser = argparse.ArgumentParser(prog="python -m golden.compare", description=__doc__.split("\n")[0])
    parser.add_argument("golden", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    old, new = (committed(root, arguments.names) for root in (arguments.golden, arguments.new))
    failed = 0
    for name in sorted(old.keys() | new.keys()):
        if name in old and name in new:
            complaints = compare(name, old[name], new[name])
        else:
            complaints = ["no generator writes it: remove it or write one" if name in old else "it is not committed"]
        failed += bool(complaints)
        for complaint in complaints:
            print(f"{name}: {complaint}", file=sys.stderr)
        if complaints and name in new:
            print(f"{name}: if the new file is right: ci/golden --accept {name.rsplit('.', 1)[0]}", file=sys.stderr)
    print(f"{len(old.keys() | new.keys()) - failed} passed, {failed} failed")
    return 1 if failed or not old else 0


if __name__ == "__main__":
    sys.exit(main())
