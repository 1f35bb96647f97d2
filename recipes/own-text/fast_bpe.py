"""Byte-level BPE by tiktoken, twice as fast as by tokenizers, where it is certain that the ids are the same.

tokenizers joins the pair of the earliest merge, tiktoken the two neighbours that make the earliest token. They agree on every text
where the merges stand in the order of the tokens that they make, and every token, taken as a text, is joined to itself: two parts
of a token that stand side by side have been joined within it alone, as in that text, so they are the pair that ends it there,
whatever other pairs make it. What is left is where a text is split into words. Both do it by one regular expression of known
meaning, but by other tables of Unicode; so the first time that a character is seen, its classes are compared, and texts with one of
which the two think differently go to tokenizers.
"""
import json

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"  # of a ByteLevel that splits
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# Beside one of each class, within a run, and where a short form may begin.
PLACES = ["{}", "{}{}", "a{}", "{}a", "1{}", "{}1", ".{}", "{}.", " {}", "{} ", "\n{}", "{}\n", " {}a", "'{}", "'{}a", "'l{}", "'l{}a", "'r{}"]


def byte_characters():
    """The character that stands for each byte in a vocabulary."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(0x100 + n): byte for n, byte in enumerate(hidden)}


def pattern_of(splitter):
    """By what words are split; None where it is not by one of the expressions that mean the same to both libraries."""
    splitter = splitter or {}
    parts = splitter.get("pretokenizers", []) if splitter.get("type") == "Sequence" else [splitter]
    *before, last = parts or [{}]
    if last.get("type") != "ByteLevel" or last.get("add_prefix_space"):
        return None
    if not before:
        return GPT2 if last.get("use_regex", True) else None
    split = before[0]
    plain = len(before) == 1 and split.get("type") == "Split" and split.get("behavior") == "Isolated" and not split.get("invert")
    own = plain and not last.get("use_regex", True) and split["pattern"].get("Regex")
    return own if own in (GPT2, LLAMA3) else None


def ranks_of(description):
    """Of each token's bytes its id; None where tiktoken's way of joining could give others."""
    from tokenizers.models import BPE

    model = description["model"]
    merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in model.get("merges", [])]
    odd = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback")
    if model.get("type") != "BPE" or any(model.get(name) for name in odd):
        return None
    added = description.get("added_tokens") or []
    special = {token["content"] for token in added}
    if description.get("normalizer") or not all(token["special"] for token in added):
        return None
    # A text that spells a special token out is text: it must be made by no merge, nor be a word that is looked up whole.
    if special & {left + right for left, right in merges} or model.get("ignore_merges") and special & set(model["vocab"]):
        return None
    vocabulary = {token: number for token, number in model["vocab"].items() if token not in special}
    made = [model["vocab"].get(left + right, -1) for left, right in merges]
    if made != sorted(made) or -1 in made:
        return None
    joined = BPE(vocab=model["vocab"], merges=merges)
    byte_of = byte_characters()
    try:
        ranks = {bytes(byte_of[character] for character in token): number for token, number in vocabulary.items()}
    except KeyError:
        return None
    whole = all(len(joined.tokenize(token)) == 1 for token in vocabulary)
    return ranks if whole and all(bytes([byte]) in ranks for byte in range(256)) else None


class FastBpe:
    def __init__(self, pattern, ranks, splitter):
        import tiktoken

        self.new = lambda ranks: tiktoken.Encoding("tokeniser", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        self.encoding, self.splitter = self.new(ranks), splitter
        self.alike, self.unlike = set(), set()  # characters

    def learn(self, characters):
        """A text is one word to tiktoken where it is one token of a vocabulary that has it."""
        places = {place.format(*[character] * place.count("{}")): character for character in characters for place in PLACES}
        ranks = {bytes([byte]): byte for byte in range(256)}
        for text in places:
            ranks.setdefault(text.encode(), len(ranks))
        words = self.new(ranks)
        for text, character in places.items():
            if (len(words.encode_ordinary(text)) == 1) != (len(self.splitter.pre_tokenize_str(text)) == 1) and len(text.encode()) > 1:
                self.unlike.add(character)
        self.alike |= characters - self.unlike

    def ids(self, texts, by_tokenizers):
        out = []
        for text in texts:
            there = set(text) - self.alike
            if there - self.unlike:
                self.learn(there - self.unlike)
            out.append(None if there & self.unlike else self.encoding.encode_ordinary(text))
        if slow := [n for n, ids in enumerate(out) if ids is None]:
            for n, ids in zip(slow, by_tokenizers([texts[n] for n in slow])):
                out[n] = ids
        return out


def fast_bpe(path, tokenizer):
    """Of the tokenizer.json at `path`, which `tokenizer` has read; None where that alone is certain to be right. Errors: ImportError
    where tiktoken is missing."""
    with open(path, encoding="utf-8") as file:
        description = json.load(file)
    pattern = pattern_of(description.get("pre_tokenizer"))
    ranks = pattern and ranks_of(description)
    return FastBpe(pattern, ranks, tokenizer.pre_tokenizer) if ranks else None
