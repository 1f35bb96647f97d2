"""Tokenizers: how texts become ids, which id ends a document, and the tokenizer's files beside the tokens."""
import json
import re
import shutil
import sys
from array import array
from pathlib import Path

from documents import BadInput, first_line
from fast_bpe import fast_bpe

CUT = re.compile(r"(?<=\S)\n(?=\S)")
PART = 1 << 12  # characters that are encoded at a time, but for a longer line
GROUP = 1 << 17  # characters in one call of the tokenizer: its results take about 100 times as many bytes
TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
                   "chat_template.jinja"]


def parts_of(text):
    """Cuts a long text between lines that no blanks end or begin."""
    begin = 0
    while len(text) - begin > PART and (cut := CUT.search(text, begin + PART)):
        yield text[begin:cut.end()]
        begin = cut.end()
    yield text[begin:]


class Bytes:
    """Each byte is a token."""

    vocabulary, type, raw, cuts, advice = 256, "H", True, True, None

    def encode(self, texts):
        for text, _, ends in texts:
            yield array(self.type, list(text if isinstance(text, bytes) else text.encode())), ends


class HuggingFace:
    raw = False

    def __init__(self, path):
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise BadInput("the package tokenizers is missing: pip install tokenizers") from None
        try:
            self.tokenizer = Tokenizer.from_file(path)
        except Exception as error:  # the package raises no type of its own
            raise BadInput(f"{path}: no Hugging Face tokenizer: {first_line(error)}") from None
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = True  # "<|endoftext|>" in a text ends no document
        self.fast, self.advice = None, None
        try:
            self.fast = fast_bpe(path, self.tokenizer)
        except ImportError:
            self.advice = "pip install tiktoken: with it this tokenizer takes half the time, and its ids are the same"
        self.vocabulary = self.tokenizer.get_vocab_size(with_added_tokens=True)
        self.type = "I" if self.vocabulary > 1 << 16 else "H"
        # A text that goes on behind a line end is encoded behind one, whose ids are taken off: some tokenizers begin a text with
        # a blank of their own.
        self.line_end = self.ids(["\n"])[0]
        probe = "One line, a\tsecond  word\n\n  indented\nÜmläute 1234\r\n\nfn(x) {\n\treturn;\n}\nlast"
        cuts = [cut.end() for cut in CUT.finditer(probe)]
        self.cuts = all(self.ids([probe])[0] == self.ids([probe[:at]])[0] + self.behind_a_line(probe[at:]) for at in cuts)

    def ids(self, texts):
        return self.fast.ids(texts, self.by_tokenizers) if self.fast else self.by_tokenizers(texts)

    def by_tokenizers(self, texts):
        encode = getattr(self.tokenizer, "encode_batch_fast", self.tokenizer.encode_batch)
        return [encoding.ids for encoding in encode(texts, add_special_tokens=False)]

    def behind_a_line(self, text):
        return self.ids(["\n" + text])[0][len(self.line_end):]

    def encode(self, texts):
        """Yields (ids, whether they end a document)."""
        group, size = [], 0
        for text, begins, ends in texts:
            parts = list(parts_of(text)) if self.cuts else [text]
            for number, part in enumerate(parts):
                first = number == 0 and begins
                group.append((part if first else "\n" + part, first, ends and number == len(parts) - 1))
                size += len(part)
                if size >= GROUP:
                    yield from self.of_group(group)
                    group, size = [], 0
        yield from self.of_group(group)

    def of_group(self, group):
        for (_, first, ends), ids in zip(group, self.ids([part for part, _, _ in group])):
            yield array(self.type, ids if first else ids[len(self.line_end):]), ends


def encoder(path):
    return HuggingFace(path) if path else Bytes()


def end_token(said, tokenizer_path, encoder):
    """The id behind each document; None for none."""
    if said == "none" or (said is None and not tokenizer_path):
        return None
    if said is not None and said.isdecimal():
        if int(said) >= encoder.vocabulary:
            raise BadInput(f"--end {said} is no id of a vocabulary of {encoder.vocabulary}")
        return int(said)
    word = said
    if said is None:
        try:
            word = json.loads((Path(tokenizer_path).parent / "tokenizer_config.json").read_text()).get("eos_token")
        except (OSError, ValueError):
            word = None
        word = word.get("content") if isinstance(word, dict) else word
        if not word:
            print("tokenise.py: the tokenizer's folder names no end token (eos_token in tokenizer_config.json), so nothing stands between "
                  "documents; name one with --end, or say --end none", file=sys.stderr)
            return None
    found = encoder.tokenizer.token_to_id(word) if tokenizer_path else None
    if found is None:
        raise BadInput(f"--end {word} is no token of the tokenizer" if tokenizer_path else
                       f"--end {word}: a token a byte has ids 0 to 255 alone")
    return found


def copy_tokenizer(path, folder):
    """Beside the tokens, where `assay checkpoint export` looks for it."""
    for name in TOKENIZER_FILES:
        source = Path(path) if name == "tokenizer.json" else Path(path).parent / name
        target = folder / name
        if source.is_file() and not (target.exists() and source.samefile(target)):
            if target.exists() and target.read_bytes() != source.read_bytes():
                raise BadInput(f"{target} is of another tokenizer; give -o another folder")
            shutil.copyfile(source, target)
