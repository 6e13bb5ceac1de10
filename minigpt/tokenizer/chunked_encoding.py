"""Texts of any length to token ids, in constant memory and on all cores.

Texts come as a stream of stretches; a long one is cut where its ids do not change, many short
ones are put together, and threads encode them: tiktoken lets go of Python's lock meanwhile.
"""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from .bpe import Tokenizer

PIECE = 1 << 16  # characters
# Of text: whether an end of text stands before it, because another document did; and the text.
Stretch = tuple[bool, str]


def encode_in_pieces(
    tokenizer: Tokenizer, stretches: Iterable[Stretch], size: int = PIECE
) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Encode documents to the ids that each has when it is encoded whole.

    Args:
        tokenizer: encodes.
        stretches: the documents, cut anywhere.
        size: aim at pieces of this many characters.

    Yields:
        The number of characters of a piece and its ids, in order; pieces of several documents
        hold the end of text between them.

    Raises:
        UserError: if a text cannot be encoded.
    """
    workers = os.cpu_count() or 1
    pieces = _batches(cut_in_pieces(stretches, tokenizer.cut, size), size)
    waiting: deque[tuple[int, Future[NDArray[np.uint32]]]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        for piece in pieces:
            length = sum(len(text) for _, text in piece)
            waiting.append((length, pool.submit(_encode, tokenizer, piece)))
            if len(waiting) > 2 * workers:  # enough to keep all busy, in bounded memory
                length, ids = waiting.popleft()
                yield length, ids.result()
        for length, ids in waiting:
            yield length, ids.result()
    finally:
        pool.shutdown(cancel_futures=True)


def cut_in_pieces(
    stretches: Iterable[Stretch], cut: re.Pattern[str], size: int
) -> Iterator[Stretch]:
    """The same documents in pieces that can be encoded one by one.

    A document is cut at the first match of `cut` behind `size` characters; one without such a
    place stays whole.
    """
    separate, rest, searched = False, "", 0
    for begins, text in stretches:
        if begins:
            if rest:
                yield separate, rest
            separate, rest, searched = True, "", 0
        rest += text
        while place := cut.search(rest, max(size, searched)):
            yield separate, rest[: place.start()]
            separate, rest, searched = False, rest[place.start() :], 0
        searched = len(rest)
    if rest:
        yield separate, rest


def _batches(pieces: Iterable[Stretch], size: int) -> Iterator[list[Stretch]]:
    """Pieces put together to at least `size` characters."""
    batch: list[Stretch] = []
    length = 0
    for piece in pieces:
        batch.append(piece)
        length += len(piece[1])
        if length >= size:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def _encode(tokenizer: Tokenizer, batch: list[Stretch]) -> NDArray[np.uint32]:
    ids: list[int] = []
    for begins, text in batch:
        if begins:
            ids.append(tokenizer.end_of_text)
        ids += tokenizer.encode(text)
    return np.array(ids, dtype=np.uint32)
