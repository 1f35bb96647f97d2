"""formats: a file as the safetensors library itself writes it, so that our reader is held to that and not to our writer."""

import dataclasses
from pathlib import Path

import torch
from safetensors.torch import save


@dataclasses.dataclass
class LibraryFile:
    """Bytes of a foreign library, kept as they are. One metadata key: the library orders several at random."""

    name: str
    content: bytes

    def write(self, root):
        path = Path(root) / f"{self.name}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.content)
        return path


def cases():
    tensors = {
        "matrix": torch.arange(5, 20, dtype=torch.float32).reshape(3, 5),
        "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "ids": torch.tensor([[7], [-1]], dtype=torch.int64),
        "flag": torch.tensor([True, False, True]),
        "scalar": torch.tensor(0.25, dtype=torch.float64),
        "empty": torch.zeros(0, 4, dtype=torch.float16),
    }
    yield LibraryFile("formats/safetensors_library", save(tensors, metadata={"format": "pt"}))
