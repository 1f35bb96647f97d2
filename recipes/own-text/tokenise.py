#!/usr/bin/env python3
"""Writes text as raw token ids, which `assay train data.paths=...` reads.

  tokenise.py FILE... -o tokens.bin                             one token a byte: vocabulary of 256
  tokenise.py FILE... -o tokens.bin --tokenizer tokenizer.json  a Hugging Face tokenizer (pip install tokenizers)

Each FILE is one document; with a tokenizer, `--end ID` puts that id behind each. The ids are little-endian uint16, or
uint32 where the vocabulary has more than 65,536 entries; the last line printed is the command that trains on them.
"""
import argparse
import sys
from array import array
from pathlib import Path


def encoder(path):
    """A function from text to ids, and the size of its vocabulary."""
    if not path:
        return lambda text: list(text.encode()), 256
    try:
        from tokenizers import Tokenizer
    except ImportError:
        sys.exit("tokenise.py: the package tokenizers is missing: pip install tokenizers")
    tokenizer = Tokenizer.from_file(path)
    return lambda text: tokenizer.encode(text).ids, tokenizer.get_vocab_size(with_added_tokens=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-o", "--output", default="tokens.bin")
    parser.add_argument("--tokenizer", metavar="tokenizer.json")
    parser.add_argument("--end", type=int, metavar="ID", help="id behind each file: data.end_of_document")
    arguments = parser.parse_args()
    encode, vocabulary = encoder(arguments.tokenizer)
    wide = vocabulary > 1 << 16
    count = 0
    with open(arguments.output, "wb") as out:
        for name in arguments.files:
            ids = encode(Path(name).read_text(encoding="utf-8", errors="replace"))
            if arguments.end is not None:
                ids.append(arguments.end)
            tokens = array("I" if wide else "H", ids)
            if sys.byteorder == "big":
                tokens.byteswap()
            tokens.tofile(out)
            count += len(tokens)
    dtype = "uint32" if wide else "uint16"
    print(f"{count:,} tokens of a vocabulary of {vocabulary:,}, {dtype}: {arguments.output}")
    command = f"assay train data.paths={arguments.output} data.dtype={dtype}"
    if arguments.end is not None:
        command += f" data.end_of_document={arguments.end}"
    if vocabulary > 256:
        command += f" model.name=MODEL   # a model with vocab >= {vocabulary}: its config.json, or a .toml"
    print(command)


if __name__ == "__main__":
    main()
