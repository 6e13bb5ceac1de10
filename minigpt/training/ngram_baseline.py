"""How predictable a text is by counting alone; the plan's forecast starts from this."""

import numpy as np
from numpy.typing import NDArray

from ..data.corpus import Corpus

_SAMPLE = 800_000  # characters from the start of the text
_LEAST = 0.1  # bits a byte; no model predicts a repetition as surely as counting does
_ORDER = 4  # characters; a small model makes little use of those further back
_BITS = np.uint64(21)  # of a key, for a character in Unicode; the other bits for its context


def predictability(corpus: Corpus, fraction: float, sample_size: int = _SAMPLE) -> float:
    """Bits a byte that the last `fraction` of a sample takes, predicted from the rest of it."""
    pieces, length = [], 0
    for _, piece in corpus.documents():
        pieces.append(piece[: sample_size - length])
        length += len(pieces[-1])
        if length == sample_size:
            break
    sample, end = "".join(pieces), int(length * (1 - fraction))
    return max(bits_per_byte(sample[:end], sample[end:]), _LEAST)


def bits_per_byte(known: str, rest: str) -> float:
    """Bits that each byte of `rest` takes, predicted from counts in `known`, which it follows.

    The probability of a character is its share after the same four characters, mixed with its
    probability after the last three of them, and so on down to none, and to a uniform one (Witten
    and Bell 1991, method C): where n characters of k kinds followed,
    ``(count + k * probability after fewer) / (n + k)``. 8 bits where there is nothing to count in
    or nothing to predict.
    """
    if not known or not rest:
        return 8.0
    codes = np.frombuffer((known + rest).encode("utf-32-le"), np.uint32)
    alphabet, numbers = np.unique(codes, return_inverse=True)
    characters = numbers.astype(np.uint64)
    probs = np.full(len(rest), 1 / len(alphabet))
    for order in range(_ORDER + 1):
        keys = (_contexts(characters, order) << _BITS) | characters
        probs = _mixed(probs, keys[: len(known)], keys[len(known) :])
    return float(np.log2(1 / probs).sum()) / len(rest.encode())


def _contexts(characters: NDArray[np.uint64], order: int) -> NDArray[np.uint64]:
    """A hash of the `order` characters before each; before the first ones there are zeros."""
    count = len(characters)
    padded = np.concatenate([np.zeros(order, np.uint64), characters + np.uint64(1)])
    hashes = np.zeros(count, np.uint64)
    for first in range(order):
        hashes = (hashes + padded[first : first + count]) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(32)
    return hashes


def _mixed(
    probs: NDArray[np.floating], counted: NDArray[np.uint64], wanted: NDArray[np.uint64]
) -> NDArray[np.floating]:
    """Probabilities ``(n,)`` of the wanted keys, given those by a shorter context."""
    keys, counts = np.unique(counted, return_counts=True)
    contexts, first, kinds = np.unique(keys >> _BITS, return_index=True, return_counts=True)
    totals = np.add.reduceat(counts, first)
    count = _found(keys, counts, wanted)
    total = _found(contexts, totals, wanted >> _BITS)
    kind_count = np.maximum(_found(contexts, kinds, wanted >> _BITS), 1)
    return (count + kind_count * probs) / (total + kind_count)


def _found(
    keys: NDArray[np.uint64], values: NDArray[np.integer], wanted: NDArray[np.uint64]
) -> NDArray[np.integer]:
    """The values of the wanted keys, and 0 for keys that are not there."""
    places = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)
