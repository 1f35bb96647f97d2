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
    """A function from the bytes of a file to ids, and the size of their vocabulary."""
    if not path:
        return list, 256
    try:
        from tokenizers import Tokenizer
    except ImportError:
        sys.exit("tokenise.py: the package tokenizers is missing: pip install tokenizers")
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # the package raises no type of its own
        sys.exit(f"tokenise.py: {path}: no Hugging Face tokenizer: {error}")
    return lambda content: tokenizer.encode(content.decode()).ids, tokenizer.get_vocab_size(with_added_tokens=True)


def ids_of(name, encode):
    try:
        return encode(Path(name).read_bytes())
    except OSError as error:
        sys.exit(f"tokenise.py: {name}: {error.strerror}; nothing was written")
    except UnicodeDecodeError as error:
        sys.exit(f"tokenise.py: {name}: byte {error.start} is no UTF-8, which a tokenizer reads; convert it, for example "
                 f"iconv -f LATIN1 -t UTF-8; nothing was written")


def write(path, tokens):
    """Under another name first: neither an error nor an input of the same name costs what is there."""
    partial = Path(f"{path}.partial")
    try:
        with open(partial, "wb") as out:
            tokens.tofile(out)
        partial.replace(path)
    except OSError as error:
        sys.exit(f"tokenise.py: {path}: cannot be written: {error.strerror}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-o", "--output", default="tokens.bin")
    parser.add_argument("--tokenizer", metavar="tokenizer.json")
    parser.add_argument("--end", type=int, metavar="ID", help="id behind each file: data.end_of_document")
    arguments = parser.parse_args()
    encode, vocabulary = encoder(arguments.tokenizer)
    wide = vocabulary > 1 << 16
    tokens = array("I" if wide else "H")
    for name in arguments.files:
        if Path(name).resolve() == Path(arguments.output).resolve():
            sys.exit(f"tokenise.py: {name} is both input and output; give -o another file")
        tokens.extend(ids_of(name, encode))
        if arguments.end is not None:
            if not 0 <= arguments.end < vocabulary:
                sys.exit(f"tokenise.py: --end {arguments.end} is no id of a vocabulary of {vocabulary}")
            tokens.append(arguments.end)
    if not tokens:
        sys.exit("tokenise.py: the files hold no text; nothing was written")
    count = len(tokens)
    if sys.byteorder == "big":
        tokens.byteswap()
    write(arguments.output, tokens)
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
