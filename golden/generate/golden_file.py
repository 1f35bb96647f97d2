"""One golden file: its provenance, its tensors, and the two formats it is stored in.

Small files are JSON, larger ones safetensors; both hold the same fields (golden/README.md). Bytes depend on the content
alone: keys in the order given, doubles in their shortest form that reads back exactly, no clock, no host name.
"""

import dataclasses
import hashlib
import json
import platform
import struct
from importlib import metadata
from pathlib import Path

import numpy as np

SCHEMA = "assay-golden-1"
JSON_LIMIT = 2000  # numbers; above it a file is safetensors
ALIGNMENT = 64  # bytes; of the data within a safetensors file


def tool_versions(*packages):
    """{'python': ..., package: ...}; torch without its build suffix (+cu130, +cpu): the data are made on the CPU."""
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    for package in ("numpy", *packages):
        versions[package] = metadata.version(package).split("+")[0]
    return versions


@dataclasses.dataclass
class Golden:
    """A case of an op or a model. `tensors` maps names to numpy arrays (float64 or integers) or torch tensors."""

    op: str
    case: str
    source_kind: str  # mpmath, torch_f64, transformers_f64, published
    equation_source: str
    tool_versions: dict
    tensors: dict
    scalars: dict = dataclasses.field(default_factory=dict)
    texts: dict = dataclasses.field(default_factory=dict)
    seed: int | None = None
    folder: str = "ops"  # ops: golden/ops/<op>/<case>; else golden/<folder>/<case>
    note: str = ""

    def __post_init__(self):
        self.tensors = {name: as_array(value) for name, value in self.tensors.items()}
        for name, value in self.tensors.items():
            if not np.isfinite(value).all():
                raise ValueError(f"{self.op}/{self.case}: {name} is not finite")

    @property
    def name(self):
        return f"ops/{self.op}/{self.case}" if self.folder == "ops" else f"{self.folder}/{self.case}"

    def provenance(self):
        """Header fields, equal in both formats."""
        fields = {
            "schema": SCHEMA,
            "op": self.op,
            "case": self.case,
            "source_kind": self.source_kind,
            "equation_source": self.equation_source,
            "generator": f"golden/generate/{'ops/' + self.op if self.folder == 'ops' else self.folder}.py",
            "command": f"python -m golden.generate --out golden {self.name}",
            "tool_versions": self.tool_versions,
            "seed": self.seed,
            "dtype": "F64",
            "shapes": {name: list(value.shape) for name, value in self.tensors.items()},
            "payload_sha256": self.payload_digest(),
        }
        if self.note:
            fields["note"] = self.note
        return fields

    def payload_digest(self):
        """SHA-256 over every tensor's name and little-endian elements, in order."""
        digest = hashlib.sha256()
        for name, value in self.tensors.items():
            digest.update(name.encode())
            digest.update(value.tobytes())
        return digest.hexdigest()

    def write(self, root):
        """Writes <root>/<name>.json or .safetensors and returns the path."""
        numbers = sum(value.size for value in self.tensors.values())
        small = numbers <= JSON_LIMIT and self.folder != "models"
        path = Path(root) / (self.name + (".json" if small else ".safetensors"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.as_json() if small else self.as_safetensors())
        return path

    def as_json(self):
        fields = [f'"{key}": {json.dumps(value)}' for key, value in self.provenance().items()]
        fields.append(f'"scalars": {json.dumps(self.scalars)}')
        fields.append(f'"texts": {json.dumps(self.texts)}')
        tensors = ",\n".join(f'  "{name}": {tensor_json(value)}' for name, value in self.tensors.items())
        fields.append('"tensors": {\n' + tensors + "\n }")
        return ("{\n " + ",\n ".join(fields) + "\n}\n").encode()

    def as_safetensors(self):
        strings = {key: value if isinstance(value, str) else json.dumps(value) for key, value in self.provenance().items()}
        del strings["shapes"]  # the header itself states them
        strings |= {"scalars": json.dumps(self.scalars), "texts": json.dumps(self.texts)}
        header, offset = {"__metadata__": strings}, 0
        for name, value in self.tensors.items():
            end = offset + value.nbytes
            header[name] = {"dtype": dtype_name(value), "shape": list(value.shape), "data_offsets": [offset, end]}
            offset = end
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-(8 + len(text)) % ALIGNMENT)
        return struct.pack("<Q", len(text)) + text + b"".join(value.tobytes() for value in self.tensors.values())


def as_array(value):
    """Little-endian float64 or int64, contiguous; a torch tensor must already be float64 or integer."""
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    value = np.asarray(value)
    if value.dtype == np.float64 or value.dtype.kind in "iu":
        return np.array(value, dtype="<f8" if value.dtype.kind == "f" else "<i8", order="C")
    raise TypeError(f"golden data is float64 or integer, not {value.dtype}")


def dtype_name(value):
    return "F64" if value.dtype.kind == "f" else "I64"


def tensor_json(value):
    """One line per row of the last axis."""
    rows = value.reshape(-1, value.shape[-1]) if value.ndim and value.size else value.reshape(1, -1)
    text = ",\n   ".join(", ".join(json.dumps(element) for element in row.tolist()) for row in rows)
    return f'{{"dtype": "{dtype_name(value)}", "shape": {json.dumps(list(value.shape))}, "values": [\n   {text}]}}'
