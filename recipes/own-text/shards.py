"""Token files that a kill cannot harm."""
import fcntl
import json
import os
import shutil
import sys
import time
from array import array
from pathlib import Path

from documents import BadInput

SAVED_EVERY = 1  # seconds


def folder_of(path):
    return Path(f"{path}.partial")


def unfinished(path):
    """Whether an earlier start left work on `path` that the same command goes on with."""
    return (folder_of(path) / "note.json").exists()


def named_before(path):
    """The token files that the .json beside `path` names, of an earlier start that ended."""
    try:
        return [path.with_name(file["name"]) for file in json.loads(path.with_suffix(".json").read_text())["files"]]
    except (OSError, ValueError, KeyError, TypeError):  # none, or another program's
        return []


def shard_name(path, number):
    return path.with_name(f"{path.stem}-{number:05d}{path.suffix}")


class Output:
    """Shards in a folder OUTPUT.partial, with a note of how much of them counts; renamed when all is there. What a kill left beyond
    the note is cut off: no token is lost or twice."""

    def __init__(self, path, width, shard_tokens, command, restart):
        self.path, self.width, self.shard_tokens = Path(path), width, shard_tokens
        self.folder = folder_of(path)
        self.note = {"command": command, "pieces": 0, "shards": [[0, 0]], "skipped": []}
        if restart:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = open(self.folder / "lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(f"{self.folder}: another tokenise.py writes here") from None
        if unfinished(path):
            note = json.loads((self.folder / "note.json").read_text())
            if note["pieces"] and note["command"] != command:
                raise BadInput(f"{self.folder} is of another command, or an input or the tokenizer has changed since: give --restart to "
                               f"begin anew")
            self.note = note if note["pieces"] else self.note
        self.files = None
        if "finished" not in self.note:
            self.open_shard()
        self.saved = time.monotonic()

    def shard_file(self, number, kind):
        return self.folder / f"{number:05d}.{kind}"

    def open_shard(self):
        number, (tokens, documents) = len(self.note["shards"]), self.note["shards"][-1]
        self.files = []
        for kind, size in ("bin", tokens * self.width), ("ends", documents * 8):
            file = open(self.shard_file(number, kind), "ab")
            file.truncate(size)
            self.files.append(file)

    def add(self, ids, ends, skipped):
        shard = self.note["shards"][-1]
        self.files[0].write(ids)
        places = array("Q", [shard[0] + end for end in ends])
        if sys.byteorder == "big":
            places.byteswap()
        self.files[1].write(places.tobytes())
        shard[0] += len(ids) // self.width
        shard[1] += len(ends)
        self.note["pieces"] += 1
        self.note["skipped"] += skipped[:max(0, 100 - len(self.note["skipped"]))]
        self.note["skipped_count"] = self.note.get("skipped_count", 0) + len(skipped)
        if shard[0] >= self.shard_tokens:
            self.note["shards"].append([0, 0])  # first: a start behind a kill would go on in the full one
            self.save()
            self.open_shard()
        elif time.monotonic() - self.saved > SAVED_EVERY:
            self.save()

    def save(self):
        for file in self.files or []:
            file.flush()
            os.fsync(file.fileno())
        write_whole(self.folder / "note.json", json.dumps(self.note))
        self.saved = time.monotonic()

    def stop(self):
        """Keeps what there is, if anything."""
        if self.note["pieces"]:
            self.save()
        else:
            shutil.rmtree(self.folder)

    def finish(self, facts):
        """Renames everything to its place. Returns the token files."""
        shards = [shard for shard in self.note["shards"] if shard[0] > 0]
        if not shards:
            shutil.rmtree(self.folder)
            raise BadInput("the files hold no text; nothing was written")
        self.note["finished"] = True
        self.save()
        several = len(shards) > 1
        names = [shard_name(self.path, n) if several else self.path for n in range(1, len(shards) + 1)]
        for number, name in enumerate(names, 1):
            for kind, target in ("ends", name.with_suffix(".ends")), ("bin", name):
                if (source := self.shard_file(number, kind)).exists():  # not where a kill came in between
                    source.replace(target)
        for name in named_before(self.path):  # --force: no shard of the text before stays among these
            if name not in names:
                for stale in name, name.with_suffix(".ends"):
                    stale.unlink(missing_ok=True)
        facts["files"] = [{"name": name.name, "tokens": tokens, "documents": documents, "ends": name.with_suffix(".ends").name}
                          for name, (tokens, documents) in zip(names, shards)]
        facts["tokens"], facts["documents"] = (sum(shard[i] for shard in shards) for i in (0, 1))
        write_whole(self.path.with_suffix(".json"), json.dumps(facts, indent=1) + "\n")
        shutil.rmtree(self.folder)
        return names


def write_whole(path, text):
    partial = Path(f"{path}.new")
    with open(partial, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
