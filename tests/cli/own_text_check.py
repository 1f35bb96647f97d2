"""tokenise.py with a tokenizer, against the same tokenizer's own encoding of whole documents: `own_text_check.py TOKENISE FOLDER`.

A small byte-level BPE is trained on the spot. Text, JSON lines and Parquet, several processes, shards and kills give the same
ids. Needs the packages tokenizers, tiktoken and, for Parquet, pyarrow.
"""
import json
import random
import signal
import subprocess
import sys
from array import array
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

script, folder = sys.argv[1], Path(sys.argv[2])
draw = random.Random(28)
WORDS = ["the", "loss", "of", "step", "é", "  two", "\ttab", "x=1;", "#", "<|end|>", "Ümläut", "1234", "don't", "日本", "\u2028"]


def drawn_text(lines):
    return "".join(" ".join(draw.choice(WORDS) for _ in range(draw.randint(0, 12))) + draw.choice(["\n", "\n", "\n\n", " \n", "\r\n"])
                   for _ in range(lines))


def run(words, kill_after=None):
    with subprocess.Popen([sys.executable, script, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, err = process.communicate(timeout=kill_after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return None
    assert process.returncode == 0, err
    return out


def values(path, code):
    numbers = array(code)
    numbers.frombytes(Path(path).read_bytes())
    return list(numbers)


def check_fast_path(tokenizer_json):
    """By tiktoken the ids are those of tokenizers, on any characters; where that is not certain, it is not used."""
    sys.path.insert(0, str(Path(script).parent))
    import fast_bpe
    from encoders import HuggingFace

    coder = HuggingFace(str(tokenizer_json))
    assert coder.fast
    letters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for width in (0x80, 0x800, 0x3000, len(letters)):
        texts = ["".join(draw.choice(WORDS + [" ", "\n", "a"] + draw.choices(letters[:width], k=20)) for _ in range(60)) for _ in range(30)]
        assert coder.fast.ids(texts, None) == coder.by_tokenizers(texts), width

    def changed(change, of=tokenizer_json):
        description = json.loads(Path(of).read_text())
        change(description)
        other = folder / "other.json"
        other.write_text(json.dumps(description))
        return HuggingFace(str(other))

    def as_llama3(d):
        """Its splitter, words looked up whole, and every pair that makes a token a merge, as its conversion writes them."""
        d["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": fast_bpe.LLAMA3}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}
        model, special = d["model"], [d["model"]["vocab"].pop("<|end|>")]
        model["ignore_merges"] = True
        model["vocab"] = {token: number - (number > special[0]) for token, number in model["vocab"].items()}
        d["added_tokens"][0]["id"] = len(model["vocab"])
        model["merges"] = [[token[:at], token[at:]] for token in sorted(model["vocab"], key=model["vocab"].get) for at in range(1, len(token))
                           if token[:at] in model["vocab"] and token[at:] in model["vocab"]]

    llama3 = changed(as_llama3)
    assert llama3.fast and len(llama3.fast.encoding._mergeable_ranks) < len(json.loads((folder / "other.json").read_text())["model"]["merges"]) + 256
    texts = ["".join(draw.choice(WORDS + ["\n", " ", "DON'T"] + draw.choices(letters, k=20)) for _ in range(60)) for _ in range(30)]
    assert llama3.fast.ids(texts, None) == llama3.by_tokenizers(texts)
    (folder / "llama3.json").write_text((folder / "other.json").read_text())
    for change in [lambda d: d["pre_tokenizer"]["pretokenizers"][0].update(invert=True),
                   lambda d: d["pre_tokenizer"]["pretokenizers"][0].update(behavior="Removed"),
                   lambda d: d["pre_tokenizer"]["pretokenizers"][0].update(pattern={"Regex": "^a|" + fast_bpe.LLAMA3}),
                   lambda d: d["pre_tokenizer"]["pretokenizers"][1].update(use_regex=True),
                   lambda d: d["added_tokens"][0].update(content="a", id=d["model"]["vocab"]["a"])]:
        assert not changed(change, folder / "llama3.json").fast

    def out_of_order(d):
        d["model"]["merges"] = d["model"]["merges"][1:] + d["model"]["merges"][:1]

    def makes_special(d):
        made = next(token for token in map("".join, d["model"]["merges"]) if token.isascii() and token.isalpha())
        d["added_tokens"].append(dict(d["added_tokens"][0], content=made, id=d["model"]["vocab"][made]))

    assert changed(lambda d: None).fast
    for change in [out_of_order, makes_special, lambda d: d["model"]["merges"].pop(), lambda d: d["model"].update(dropout=0.1),
                   lambda d: d["model"].update(byte_fallback=True), lambda d: d["pre_tokenizer"].update(add_prefix_space=True),
                   lambda d: d.update(normalizer={"type": "NFC"}), lambda d: d.update(pre_tokenizer={"type": "Whitespace"}),
                   lambda d: d["added_tokens"].append(dict(d["added_tokens"][0], id=600, content="loss", special=False))]:
        assert not changed(change).fast

    # Texts with a character that the two take for another class go to tokenizers.
    bytes_alone = {bytes([byte]): byte for byte in range(256)}
    doubtful = fast_bpe.FastBpe(fast_bpe.GPT2.replace(r"\p{L}", "[a-z]"), bytes_alone, coder.tokenizer.pre_tokenizer)
    assert doubtful.ids(["a b", "\u00e9", "b"], lambda texts: [texts]) == [[97, 32, 98], ["\u00e9"], [98]]
    assert doubtful.unlike == {"\u00e9"} and {"a", "b"} <= doubtful.alike


def main():
    text = drawn_text(200_000)  # 9 MB: several pieces
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator([text[:100_000]], trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.enable_truncation(16)  # of the file alone: nothing of a text may be lost by it
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"eos_token": {"content": "<|end|>"}}')
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    check_fast_path(folder / "tokenizer.json")
    end = tokenizer.token_to_id("<|end|>")
    with_tokenizer = ["--tokenizer", str(folder / "tokenizer.json"), "--processes", "2"]

    (folder / "a.txt").write_text(text, newline="")
    whole = tokenizer.encode(text, add_special_tokens=False).ids + [end]
    out = folder / "out"
    out.mkdir()
    said = run([str(folder / "a.txt"), "-o", str(out / "a.bin"), *with_tokenizer])
    assert values(out / "a.bin", "H") == whole
    assert f"data.end_of_document={end}" in said, said
    assert (out / "tokenizer.json").exists() and (out / "tokenizer_config.json").exists()

    documents = [text[at:at + draw.randint(0, 3000)] for at in range(0, len(text), 9000)]
    (folder / "a.jsonl").write_text("".join(json.dumps({"n": n, "body": d}, ensure_ascii=n % 2 == 0) + "\n" for n, d in enumerate(documents)))
    ids, ends = [], []
    for encoding in tokenizer.encode_batch(documents, add_special_tokens=False):
        if encoding.ids:
            ids += encoding.ids + [end]
            ends.append(len(ids))
    run([str(folder / "a.jsonl"), "-o", str(out / "b.bin"), "--field", "body", *with_tokenizer])
    assert values(out / "b.bin", "H") == ids
    assert values(out / "b.ends", "Q") == ends
    facts = json.loads((out / "b.json").read_text())
    assert (facts["vocabulary"], facts["dtype"], facts["end_of_document"], facts["documents"], facts["tokens"]) == (
        tokenizer.get_vocab_size(), "uint16", end, len(ends), len(ids)), facts

    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError:
        print("Parquet was not tried: pyarrow is not installed")
    else:
        parquet.write_table(pa.table({"body": documents}), folder / "a.parquet", row_group_size=77)
        run([str(folder / "a.parquet"), "-o", str(out / "c.bin"), "--field", "body", *with_tokenizer])
        assert (out / "c.bin").read_bytes() == (out / "b.bin").read_bytes()
        assert (out / "c.ends").read_bytes() == (out / "b.ends").read_bytes()

    # Killed at any moment, and begun again, until it is done.
    words = [str(folder / "a.jsonl"), str(folder / "a.txt"), "-o", str(out / "d.bin"), "--field", "body", "--shard-tokens", "1000000", *with_tokenizer]
    kills, patience = 0, 1.5
    while run(words, kill_after=draw.uniform(0.1, patience)) is None and not ((out / "d.json").exists() and not (out / "d.bin.partial").exists()):
        kills, patience = kills + 1, patience * 1.1  # a slow machine comes to its end too
    shards = sorted(out.glob("d-*.bin"))
    assert len(shards) > 1 and sum((values(shard, "H") for shard in shards), []) == ids + whole
    # The text ends in the last shard, its documents count in their own.
    ended = [values(shard.with_suffix(".ends"), "Q") for shard in shards]
    assert sum(map(len, ended)) == len(ends) + 1 and ended[-1][-1] == len(values(shards[-1], "H"))
    assert not (out / "d.bin.partial").exists()
    print(f"{kills} kills")


main()
