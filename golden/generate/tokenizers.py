"""tokenizers: small tokenizer.json files of the kinds that published models have, the ids that the package tokenizers gives texts, and
the texts that it gives ids, most of which no text is encoded as.

Byte pairs over bytes with the patterns of GPT-2, Llama 3 and Qwen 2, and over characters with bytes for the others, as Llama 2 (a
normalizer) and Mistral's later files (Metaspace) state them. Trained on the spot, from the texts and a few more.
"""

import dataclasses
import json
import tempfile
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from .golden_file import Golden, tool_versions

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEXTS = [
    "Hello world", " the loss  of\tstep 12345 is 0.75;  don't you'LL WE'VE\n", "", " ", "   \n\n \r\n  x", "a\n\n\nb  \n c\t\n",
    "Ümläute, naïve café – “quotes” … 日本語のテキスト 한국어 🙂👍🏽", "x=1;#!/bin/sh\n\tif (a<b) { return -1; }\n", "<|end|>one<|end|>two <|end|> three",
    "²³½ ٣٤ Ⅻ 1a2b", "\u00a0nbsp\u2003em\u3000wide\u2028line", "it's IT'S 'tis '' 's", "....!!!\n\n\n", "éé ~ÿ\x7f\x01", "x" * 60, "1234567 89"]
MORE = ["the loss of the step is the sum of the losses", "hello hello world return returns 100 1000 don't isn't we'll", "日本語 テキスト café naïve \n\n \t"] * 20


def over_bytes(pattern):
    tokenizer = Tokenizer(models.BPE())
    if pattern:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=["<|end|>"], initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                  show_progress=False)
    tokenizer.train_from_iterator(TEXTS + MORE, trainer)
    return tokenizer


def over_characters(metaspace):
    words = [text.replace(" ", "▁") for text in MORE]
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    trained.train_from_iterator(words, trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<unk>", "<|end|>", *(f"<0x{byte:02X}>" for byte in range(256))], show_progress=False))
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(merge) if isinstance(merge, list) else tuple(merge.split(" ")) for merge in model["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=model["vocab"], merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens([AddedToken("<|end|>", normalized=False)])
    if metaspace:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def with_front(tokenizer):
    """As Llama 3: a token in front of each text."""
    end = tokenizer.token_to_id("<|end|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<|end|> $A", special_tokens=[("<|end|>", end)])])
    return tokenizer


def qwen():
    tokenizer = over_bytes(QWEN2)
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


MAKERS = {"gpt2": lambda: over_bytes(None), "llama3": lambda: with_front(over_bytes(LLAMA3)), "qwen2": qwen,
          "llama2": lambda: over_characters(False), "mistral": lambda: over_characters(True)}


def drawn_ids(tokenizer):
    """Rows of ids: any tokens, then bytes alone, then bytes among tokens, and the bytes of characters cut off in every place."""
    generator = np.random.Generator(np.random.PCG64(7))
    size = tokenizer.get_vocab_size()
    spelled = [tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256)]
    if spelled[0] is None:  # a byte-level alphabet: its characters in the order of GPT-2's table
        plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = iter(range(256, 512))
        spelled = [tokenizer.token_to_id(chr(byte if byte in plain else next(others))) for byte in range(256)]
    known = [token for token in spelled if token is not None]
    rows = [generator.integers(0, size, 40).tolist() for _ in range(8)]
    rows += [generator.choice(known, 24).tolist() for _ in range(8)]
    rows += [[int(generator.choice(known)) if generator.integers(0, 3) else int(generator.integers(0, size)) for _ in range(40)] for _ in range(8)]
    for text in ("é", "日本", "🙂👍"):
        bytes_of = [spelled[byte] for byte in text.encode()]
        rows += [bytes_of[begin:end] for begin in range(len(bytes_of)) for end in range(begin + 1, len(bytes_of) + 1)]
    return rows


@dataclasses.dataclass
class WithFile(Golden):
    file: str = ""

    def write(self, root):
        path = super().write(root)
        folder = path.with_suffix("")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(self.file)
        return path


def cases():
    for case, make in MAKERS.items():
        tokenizer = make()
        tensors = {f"ids_{n}": np.array(tokenizer.encode(text).ids, dtype=np.int64) for n, text in enumerate(TEXTS)}
        texts = {f"text_{n}": text for n, text in enumerate(TEXTS)}
        for n, ids in enumerate(drawn_ids(tokenizer)):
            tensors[f"drawn_{n}"] = np.array(ids, dtype=np.int64)
            texts[f"decoded_{n}"] = tokenizer.decode(ids)
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save(str(Path(folder) / "t.json"), pretty=False)
            file = (Path(folder) / "t.json").read_text()
        yield WithFile("tokenizers", case, "tokenizers", "the package tokenizers, Tokenizer.encode and decode", tool_versions("tokenizers"), tensors, texts=texts,
                       folder="tokenizers", file=file)
