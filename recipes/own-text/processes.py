"""Pieces of the input, encoded by several processes, in order."""
import os
import signal
import sys
import threading
import time
from array import array
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from documents import BadInput, texts_of
from encoders import encoder


class Worker:
    """What a process does with a piece: its ids, the number of them up to the end of each document, what was left out."""

    def __init__(self, tokenizer, field, end, skip):
        self.encoder, self.field, self.end, self.skip = encoder(tokenizer), field, end, skip

    def encode(self, piece):
        ids, ends, skipped = array(self.encoder.type), [], []
        begun = len(ids)
        for part, last in self.encoder.encode(texts_of(piece, self.field, self.encoder.raw, skipped if self.skip else None)):
            ids.extend(part)
            if last and (len(ids) > begun or piece.kind == "text"):  # a document without a token is none
                if self.end is not None:
                    ids.append(self.end)
                ends.append(len(ids))
                begun = len(ids)
        if sys.byteorder == "big":
            ids.byteswap()
        return ids.tobytes(), ends, skipped


worker = None


def start_worker(parent, *arguments):
    """In a process of its own, which ends with its parent, however that ends."""
    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    global worker
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
    worker = Worker(*arguments)


def encode_in_worker(piece):
    return worker.encode(piece)


def encoded(pieces, processes, arguments):
    """Yields what each piece gives, in order."""
    if processes == 1:
        yield from map(Worker(*arguments).encode, pieces)
        return
    # A tokenizer asks for much memory and gives it back at once: glibc is to keep it, which is 5 % of the time.
    for name in "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_":
        os.environ.setdefault(name, str(64 << 20))
    with ProcessPoolExecutor(processes, get_context("spawn"), start_worker, (os.getpid(), *arguments)) as pool:
        waiting = deque()
        try:
            for piece in pieces:
                waiting.append(pool.submit(encode_in_worker, piece))
                if len(waiting) > processes + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise BadInput("a process ended, for want of memory perhaps: take fewer --processes; the same command goes on") from None
        finally:
            for future in waiting:
                future.cancel()
