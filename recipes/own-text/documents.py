"""Text, JSON lines and Parquet as documents, cut into pieces of a few MB that several processes read apart.

A text file is one document; a line of JSON lines, or a row of Parquet, is one each. A piece of a text file ends behind a line
that ends in no blank and is followed by one that begins with none: there tokenizers merge nothing over the cut (encoders.py tries it).
"""
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path

PIECE = 4 << 20  # bytes of a file that one process works on at a time
LONGEST_LINE = 64 << 20  # bytes; a line is in memory whole
KINDS = {".txt": "text", ".text": "text", ".md": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
PACKED = {b"\x1f\x8b": "gunzip -k", b"\x28\xb5\x2f\xfd": "zstd -d", b"PK\x03\x04": "unzip", b"BZh": "bunzip2 -k", b"\xfd7zXZ": "unxz -k"}


class BadInput(Exception):
    """One line for the user."""


@dataclass(frozen=True)
class Piece:
    """Of a text or JSON lines file about bytes [begin, end), of a Parquet file row group `begin`."""

    path: str
    kind: str
    begin: int
    end: int
    weight: int  # bytes of the file, for progress


def kind_of(path, said):
    with open(path, "rb") as file:
        start = file.read(1 << 16)
        if start.startswith(b"PAR1"):
            if said not in ("auto", "parquet"):
                raise BadInput(f"{path}: a Parquet file; leave --format out, or say --format parquet")
            return "parquet"
    for magic, command in PACKED.items():
        if start.startswith(magic):
            raise BadInput(f"{path}: a compressed file; unpack it first: {command} '{path}'")
    kind = said if said != "auto" else KINDS.get(Path(path).suffix.lower())
    if kind == "parquet":
        raise BadInput(f"{path}: no Parquet file: it does not begin with PAR1")
    if not kind:  # a name that says nothing: by the first line
        first = start.lstrip().split(b"\n")[0]
        try:
            kind = "jsonl" if first.startswith(b"{") and isinstance(json.loads(first), dict) else "text"
        except ValueError:
            kind = "text"
    return kind


def parquet_file(path):
    try:
        import pyarrow.parquet
    except ImportError:
        raise BadInput(f"{path}: Parquet needs the package pyarrow: pip install pyarrow") from None
    try:
        return pyarrow.parquet.ParquetFile(path, memory_map=True)
    except Exception as error:  # pyarrow has many types of its own
        raise BadInput(f"{path}: no whole Parquet file: {first_line(error)}") from None


def first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0]


def pieces_of(path, kind, field):
    """All pieces of a file, in order. Errors: BadInput, OSError."""
    size = Path(path).stat().st_size
    if kind != "parquet":
        return [Piece(path, kind, at, min(at + PIECE, size), min(PIECE, size - at)) for at in range(0, size, PIECE)]
    file = parquet_file(path)
    names = file.schema_arrow.names
    if field not in names:
        raise BadInput(f"{path}: no column \"{field}\"; it has {', '.join(names)}: name one with --field")
    if str(file.schema_arrow.field(field).type) not in ("string", "large_string", "string_view"):
        raise BadInput(f"{path}: column \"{field}\" holds {file.schema_arrow.field(field).type}, no text: name another with --field")
    groups = file.num_row_groups
    return [Piece(path, kind, group, group + 1, size // groups) for group in range(groups)]


def cut_behind(file, at, size, between):
    """The first place >= `at` where a piece may begin: behind a line end; `between`: of lines that no blanks end or begin."""
    if at == 0 or at >= size:
        return min(at, size)
    done = max(0, at - 2)
    file.seek(done)
    last = b""
    while done < size and done - at < LONGEST_LINE:
        block = last + file.read(1 << 16)
        here = done - len(last)
        for found in re.finditer(rb"(?<=\S)\n(?=\S)" if between else rb"\n", block):
            if here + found.end() >= at:
                return here + found.end()
        done = here + len(block)
        last = block[-2:]  # the next block decides
    if done >= size:
        return size
    raise BadInput(f"{file.name}: no lines to cut between in {LONGEST_LINE >> 20} MB from byte {at:,} on: one line, or lines that begin or "
                   f"end with blanks; break the lines, or give the documents as JSON lines")


def bytes_of(piece, anywhere=False):
    """The piece's bytes, where in the file they begin, and whether they are the file's last. `anywhere`: lines may be cut."""
    size = Path(piece.path).stat().st_size
    with open(piece.path, "rb") as file:
        begin, end = (at if anywhere else cut_behind(file, at, size, piece.kind == "text") for at in (piece.begin, piece.end))
        file.seek(begin)
        return file.read(max(0, end - begin)), begin, end >= size > begin


def line_number(path, byte):
    """Lines count from 1."""
    lines, left = 1, byte
    with open(path, "rb") as file:
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            lines += block.count(b"\n")
            left -= len(block)
    return lines


def decoded(content, piece, begin):
    if begin == 0 and content.startswith(b"\xef\xbb\xbf"):
        content = content[3:]
        begin = 3
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        at = begin + error.start
        raise BadInput(f"{piece.path}:{line_number(piece.path, at)}: byte {at:,} is no UTF-8; convert the file, for example "
                       f"iconv -f LATIN1 -t UTF-8") from None


def json_text(line, piece, at, field):
    """The text of a line of JSON that begins at byte `at` of the file."""
    def bad(why):
        return BadInput(f"{piece.path}:{line_number(piece.path, at)}: {why}")

    try:
        value = json.loads(decoded(line, piece, at))
    except json.JSONDecodeError as error:
        raise bad(f"no JSON: {error.msg.removesuffix(' at')} at column {error.colno}; mend the line, or leave such out with --skip-bad") from None
    except RecursionError:
        raise bad("JSON that is nested too deeply; leave such lines out with --skip-bad") from None
    if not isinstance(value, dict):
        raise bad(f"no JSON object but {type(value).__name__}; each line must be one, as {{\"{field}\": \"...\"}}")
    if field not in value:
        raise bad(f"no field \"{field}\"; it has {', '.join(value) or 'none'}: name one with --field")
    text = value[field]
    if not isinstance(text, str):
        raise bad(f"field \"{field}\" is {type(text).__name__}, no text; leave such lines out with --skip-bad")
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):  # JSON can name halves of a character
        raise bad("half a character (\\ud800 to \\udfff) in the text; mend the line, or leave such out with --skip-bad")
    return text


def documents_of(piece, field):
    """The text of each line or row, or the BadInput that it is."""
    if piece.kind == "jsonl":
        content, at, _ = bytes_of(piece)
        for line in io.BytesIO(content):
            if line.strip():
                try:
                    yield json_text(line, piece, at, field)
                except BadInput as error:
                    yield error
            at += len(line)
        return
    row = 0
    try:
        for batch in parquet_file(piece.path).iter_batches(batch_size=256, row_groups=[piece.begin], columns=[field]):
            for text in batch.column(0).to_pylist():
                yield text if text is not None else BadInput(
                    f"{piece.path}: row {row} of row group {piece.begin} has no text in column \"{field}\" (null); leave such out "
                    f"with --skip-bad")
                row += 1
    except (OSError, ValueError) as error:  # pyarrow's own are both
        raise BadInput(f"{piece.path}: row group {piece.begin} cannot be read: {first_line(error)}; fetch the file anew") from None


def texts_of(piece, field, raw=False, skipped=None):
    """Yields (text, begins, ends) of the piece: whether it begins and ends a document. `raw`: a text file's bytes as they are.
    `skipped`: a list that takes the errors of lines and rows that are left out; None: there are none. Errors: BadInput, OSError."""
    if piece.kind == "text":
        content, begin, last = bytes_of(piece, anywhere=raw)
        if content:
            yield content if raw else decoded(content, piece, begin), begin == 0, last
        return
    for text in documents_of(piece, field):
        if not isinstance(text, BadInput):
            yield text, True, True
        elif skipped is None:
            raise text
        else:
            skipped.append(str(text))
