"""tokenise.py with a tokenizer, against the same tokenizer's own encoding of whole documents: `own_text_check.py TOKENISE FOLDER`.

A small byte-level BPE is trained on the spot. Text, JSON lines and Parquet, several processes, shards and kills give the same
ids. Needs the packages tokenizers and, for Parquet, pyarrow.
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
    while run(words, kill_after=draw.uniform(0.1, patience)) is None:
        kills, patience = kills + 1, patience * 1.1  # a slow machine comes to its end too
    shards = sorted(out.glob("d-*.bin"))
    assert len(shards) > 1 and sum((values(shard, "H") for shard in shards), []) == ids + whole
    # The text ends in the last shard, its documents count in their own.
    ended = [values(shard.with_suffix(".ends"), "Q") for shard in shards]
    assert sum(map(len, ended)) == len(ends) + 1 and ended[-1][-1] == len(values(shards[-1], "H"))
    assert not (out / "d.bin.partial").exists()
    print(f"{kills} kills")


main()
