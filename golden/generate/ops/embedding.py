"""embedding: rows of a table by id, by torch.nn.functional.embedding and autograd in float64."""

from torch.nn import functional as F

from ..golden_file import Golden, tool_versions
from ..inputs import Draw, gradients, leaves


def cases():
    for case, seed, lead, vocab, width in [
        ("repeated_ids", 111, (2, 5), 4, 3),  # fewer ids than tokens: gradients must add up
        ("sparse_ids", 112, (1, 3), 11, 5),  # some rows are never read: their gradient is zero
    ]:
        draw = Draw(seed)
        ids = draw.integers(0, vocab, *lead)
        (table,) = leaves(draw.normal(vocab, width))
        y = F.embedding(ids, table)
        dy = draw.normal(*y.shape)
        (dtable,) = gradients(y, dy, table)
        yield Golden(
            "embedding", case, "torch_f64", "y_btd = table[ids_bt, d]; torch.nn.functional.embedding",
            tool_versions("torch"), {"ids": ids, "table": table, "y": y, "dy": dy, "dtable": dtable}, seed=seed)
