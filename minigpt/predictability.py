"""How well the next character of a text is told by those before it, counted and not learned."""

import numpy as np
from numpy.typing import NDArray

_ORDER = 4  # characters; what lies further back, a small model hardly makes use of
_BITS = np.uint64(20)  # of a key for the character, the others for those before it


def bits_per_byte(known: str, rest: str) -> float:
    """What predictions by counting take for each byte of a text.

    The chance of a character is its share behind the same four characters before, mixed with its
    chance behind three of them, and so on down to none (Witten and Bell 1991, method C): of n
    characters there, of k kinds, ``(count + k * chance behind fewer) / (n + k)``.

    Args:
        known: the text in which is counted.
        rest: what follows it, and is predicted.

    Returns:
        Bits; 8 where there is nothing to count in or nothing to predict.
    """
    if not known or not rest:
        return 8.0
    codes = np.frombuffer((known + rest).encode("utf-32-le"), np.uint32)
    kinds, numbers = np.unique(codes, return_inverse=True)
    characters = numbers.astype(np.uint64)
    chance = np.full(len(rest), 1 / len(kinds))
    for order in range(_ORDER + 1):
        keys = (_contexts(characters, order) << _BITS) | characters
        chance = _sharpened(chance, keys[: len(known)], keys[len(known) :])
    return float(-np.log2(chance).sum()) / len(rest.encode())


def _contexts(characters: NDArray[np.uint64], order: int) -> NDArray[np.uint64]:
    """A hash of the `order` characters before each; before the first ones there are zeros."""
    count = len(characters)
    padded = np.concatenate([np.zeros(order, np.uint64), characters + np.uint64(1)])
    hashes = np.zeros(count, np.uint64)
    for first in range(order):
        hashes = (hashes + padded[first : first + count]) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(32)
    return hashes


def _sharpened(
    chance: NDArray[np.floating], known: NDArray[np.uint64], wanted: NDArray[np.uint64]
) -> NDArray[np.floating]:
    """The chances ``(n,)`` of the wanted keys, given those behind shorter contexts."""
    keys, counts = np.unique(known, return_counts=True)
    contexts, first, kinds = np.unique(keys >> _BITS, return_index=True, return_counts=True)
    totals = np.add.reduceat(counts, first)
    count = _found(keys, counts, wanted)
    kind = _found(contexts, kinds, wanted >> _BITS)
    total = _found(contexts, totals, wanted >> _BITS)
    mixed = (count + kind * chance) / np.maximum(total + kind, 1)
    return np.where(total > 0, mixed, chance)


def _found(
    keys: NDArray[np.uint64], values: NDArray[np.integer], wanted: NDArray[np.uint64]
) -> NDArray[np.integer]:
    """The values of the wanted keys, and 0 for keys that are not there."""
    places = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)
