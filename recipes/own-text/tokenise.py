#!/usr/bin/env python3
"""Writes text as raw token ids, which `assay train data.paths=...` reads.

  tokenise.py FILE... -o tokens.bin                             one token a byte: vocabulary of 256
  tokenise.py FILE... -o tokens.bin --tokenizer tokenizer.json  a Hugging Face tokenizer (pip install tokenizers tiktoken)

FILE: text (one document), JSON lines (one a line, in --field) or Parquet (one a row; pip install pyarrow). Behind each
document stands the tokenizer's end token, or what --end names. A run that was stopped or killed goes on when the same command
is given again; token files that are there are written over with --force alone. Beside tokens.bin: tokens.ends, the number of tokens up to the end of each document (uint64, little-endian);
tokens.json: vocabulary, dtype and counts; the tokenizer's files. The ids are little-endian uint16, or uint32 where the vocabulary
has more than 65,536 entries; the last line printed is the command that trains on them.
"""
import argparse
import errno
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

from documents import PIECE, BadInput, kind_of, pieces_of
from encoders import copy_tokenizer, encoder, end_token
from processes import encoded
from shards import Output, shard_name, unfinished


class Progress:
    """A line on the terminal, or one every half minute elsewhere."""

    def __init__(self, total, before):
        self.total, self.done, self.before = max(total, 1), before, before
        self.begun = self.shown = time.monotonic()
        self.terminal = sys.stderr.isatty()

    def add(self, weight, tokens):
        self.done += weight
        now = time.monotonic()
        if now - self.shown < (0.2 if self.terminal else 30) and self.done < self.total:
            return
        self.shown = now
        share, rate = min(1, self.done / self.total), (self.done - self.before) / max(now - self.begun, 1e-3)
        left = (self.total - self.done) / max(rate, 1)
        bar = "#" * int(24 * share)
        line = f"[{bar:24}] {share:4.0%} {self.done / 1e6:,.0f} of {self.total / 1e6:,.0f} MB, {rate / 1e6:.1f} MB/s, {tokens:,} tokens, "
        line += f"{int(left) // 60}:{int(left) % 60:02d} left"
        if self.terminal:
            print(f"\r{line}", end="  \n" if self.done >= self.total else "  ", file=sys.stderr, flush=True)
        elif now - self.begun > 1:
            print(line, file=sys.stderr, flush=True)


def facts_of(arguments, encoder, end, tokenizer):
    dtype = "uint32" if encoder.type == "I" else "uint16"
    return {"format": "assay-tokens-1", "vocabulary": encoder.vocabulary, "dtype": dtype, "end_of_document": end,
            "tokenizer": "tokenizer.json" if tokenizer else "bytes", "tokenizer_sha256": tokenizer}


def command_of(facts, names, end):
    paths = ",".join(str(name) for name in names)
    command = f"assay train data.paths={paths} data.dtype={facts['dtype']}"
    if end is not None:
        command += f" data.end_of_document={end}"
    elif facts["documents"] > 1 and all(file["documents"] for file in facts["files"]):
        command += " data.document_ends=on"  # no token ends a document, and the .ends beside each file says where one does
    if facts["vocabulary"] > 256:
        command += (f" model.name=MODEL train.tokens={facts['tokens']} batch.sequence_length=2048 optimizer.learning_rate=3e-4"
                    f"   # a model with vocab >= {facts['vocabulary']}: its config.json, or a .toml; the text once")
    return command


def refuse_output(arguments):
    """Nothing is written over without a word: no input, and without --force no file that is there."""
    output = Path(arguments.output)
    if output.suffix in (".ends", ".json", ".partial"):
        raise BadInput(f"-o {output}: the name of what stands beside the tokens; name the tokens, as tokens.bin")
    written = [output, output.with_suffix(".ends"), output.with_suffix(".json"), shard_name(output, 1)]
    for name in arguments.files:
        if Path(name).resolve() in (path.resolve() for path in written):
            raise BadInput(f"{name} is both input and output; give -o another file")
    there = [path for path in written if path.exists()]
    if there and not arguments.force and (arguments.restart or not unfinished(output)):
        raise BadInput(f"{there[0]} is there already; give -o another file, or --force to write over it and what stands beside it")


def tokenise(arguments):
    refuse_output(arguments)
    coder = encoder(arguments.tokenizer)
    end = end_token(arguments.end, arguments.tokenizer, coder)
    kinds = {name: kind_of(name, arguments.format) for name in arguments.files}
    if coder.advice:
        print(f"tokenise.py: {coder.advice}", file=sys.stderr)
    if not coder.cuts:
        print("tokenise.py: this tokenizer's ids depend on the lines before: each document is encoded whole", file=sys.stderr)
        for name in (name for name in arguments.files if kinds[name] == "text"):
            if Path(name).stat().st_size > PIECE:
                raise BadInput(f"{name}: a text of more than {PIECE >> 20} MB, and this tokenizer cannot go on behind a line; give JSON "
                               f"lines or Parquet")
    pieces = [piece for name in arguments.files for piece in pieces_of(name, kinds[name], arguments.field)]
    tokenizer = hashlib.sha256(Path(arguments.tokenizer).read_bytes()).hexdigest() if arguments.tokenizer else None
    stats = [(name, kinds[name], (stat := Path(name).stat()).st_size, stat.st_mtime_ns) for name in arguments.files]
    command = json.dumps([stats, arguments.field, end, tokenizer, arguments.shard_tokens, PIECE])
    width = 4 if coder.type == "I" else 2
    output = Output(arguments.output, width, arguments.shard_tokens or sys.maxsize, command, arguments.restart)
    done = output.note["pieces"]
    if done:
        print(f"tokenise.py: goes on behind {done:,} of {len(pieces):,} pieces of an earlier start", file=sys.stderr)
    progress = Progress(sum(piece.weight for piece in pieces), sum(piece.weight for piece in pieces[:done]))
    processes = max(1, min(arguments.processes or len(os.sched_getaffinity(0)), len(pieces) - done))
    settings = (arguments.tokenizer, arguments.field, end, arguments.skip_bad)
    try:
        for piece, result in zip(pieces[done:], encoded(pieces[done:], processes, settings)):
            output.add(*result)
            progress.add(piece.weight, sum(shard[0] for shard in output.note["shards"]))
    except (KeyboardInterrupt, BadInput):
        output.stop()
        raise
    facts = facts_of(arguments, coder, end, tokenizer)
    facts["left_out"] = output.note.get("skipped_count", 0)
    if arguments.tokenizer:
        copy_tokenizer(arguments.tokenizer, Path(arguments.output).parent)
    for line in output.note["skipped"]:
        print(f"tokenise.py: left out: {line}", file=sys.stderr)
    names = output.finish(facts)
    print(f"{facts['tokens']:,} tokens in {facts['documents']:,} documents, of a vocabulary of {facts['vocabulary']:,}, {facts['dtype']}: "
          f"{names[0]}" + (f" to {names[-1].name}" if len(names) > 1 else ""))
    if facts["left_out"]:
        print(f"{facts['left_out']:,} lines or rows were left out")
    print(command_of(facts, names, end))


def stop(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-o", "--output", default="tokens.bin")
    parser.add_argument("--tokenizer", metavar="tokenizer.json")
    parser.add_argument("--format", choices=["auto", "text", "jsonl", "parquet"], default="auto", help="auto: by content and name")
    parser.add_argument("--field", default="text", metavar="NAME", help="of JSON lines, or the column of Parquet: %(default)s")
    parser.add_argument("--end", metavar="ID|TOKEN|none", help="behind each document, data.end_of_document: the tokenizer's own")
    parser.add_argument("--shard-tokens", type=int, default=0, metavar="N", help="begins a new file behind about N tokens")
    parser.add_argument("--processes", type=int, default=0, metavar="N", help="as many as cores")
    parser.add_argument("--skip-bad", action="store_true", help="leaves out lines and rows without a text, and counts them")
    parser.add_argument("--restart", action="store_true", help="begins anew where an earlier start was stopped")
    parser.add_argument("--force", action="store_true", help="writes over token files that are there")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    try:
        tokenise(arguments)
    except BadInput as error:
        sys.exit(f"tokenise.py: {error}")
    except OSError as error:
        room = "; make room, then the same command goes on" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        sys.exit(f"tokenise.py: {error.filename or arguments.output}: {error.strerror or error}{room}")
    except KeyboardInterrupt:
        print("\ntokenise.py: stopped; the same command goes on", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
