"""How a new run is to be sampled, if nothing else is given: what its generation.json holds.

Temperature and penalty are the same for all runs. How long a passage may be repeated is counted in
the text that is held out, without a model: so long that its author would seldom be penalised.
"""

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..config import USUAL, SampleConfig
from ..data.batches import Dataset, TokenSequence
from ..generation.repetition import Boundaries, boundaries_of

_RARE = 0.1  # of the author's tokens that a penalty may act on, at most so many would have one
_SHORTEST = 2  # tokens that may always be repeated
_LONGEST = 100  # longer passages are not looked for
_WINDOW = 1024  # tokens, in which passages are looked for
_MOST_WINDOWS = 32


@dataclass(frozen=True)
class Usual:
    """How a run is to be sampled, and the share of its author's tokens that would have been
    penalised, by the length that may be repeated."""

    settings: SampleConfig
    penalised: dict[int, float]

    def to_json(self) -> str:
        """The text of generation.json."""
        settings = {name: getattr(self.settings, name) for name in (*USUAL, "dry_allowed_length")}
        shares = {length: round(share, 5) for length, share in self.penalised.items()}
        return json.dumps({**settings, "author_penalised": shares}, indent=2) + "\n"


def usual_of(dataset: Dataset) -> Usual:
    """How a run that learns from these tokens is to be sampled."""
    penalised = penalised_shares(dataset.validation, boundaries_of(dataset.tokenizer))
    allowed_length = max(penalised)
    return Usual(SampleConfig(**USUAL, dry_allowed_length=allowed_length), penalised)


def penalised_shares(text: TokenSequence, boundaries: Boundaries) -> dict[int, float]:
    """The share of a text ``(n,)`` that would be penalised, of its tokens that may be, for each
    length that a repeated passage may have: from 2 to the first of which it is at most a tenth.

    A token is penalised if it and so many tokens before it stood before: see :class:`Passages`. Of
    a long text, pieces from all over it are looked at, each by itself.
    """
    windows = _windows(text)  # (w, T)
    w, T = windows.shape
    separators = boundaries.separators
    vocab_size = len(separators)

    # Of each place in all windows one after another, the passage that ends there as a number: equal
    # numbers for equal passages of a window, and -1 where no passage can end, as before a window.
    tokens = np.zeros((w, T + 1), np.int64)
    tokens[:, 1:] = windows
    are_free = np.zeros((w, T + 1), bool)  # places at which a penalty may act
    are_free[:, 1] = ~separators[windows[:, 0]]
    are_free[:, 2:] = boundaries.are_free(windows[:, :-1], windows[:, 1:])
    free = max(int(np.count_nonzero(are_free)), 1)
    passages = tokens + vocab_size * np.arange(w)[:, None]
    passages[:, 1:][separators[windows]] = -1
    passages[:, 0] = -1
    tokens = tokens.ravel()
    are_free = are_free.ravel()
    passages = passages.ravel()
    places = np.flatnonzero(passages >= 0)  # where passages end that may stand there twice

    shares: dict[int, float] = {}
    for length in range(1, _LONGEST + 1):
        # Make each passage longer by the token after it.
        before = passages[places - 1]
        places = places[before >= 0]
        longer = before[before >= 0] * vocab_size + tokens[places]
        _, first, numbers, counts = np.unique(
            longer, return_index=True, return_inverse=True, return_counts=True
        )

        if length >= _SHORTEST:
            stood_before = np.ones(len(places), bool)  # all but the first of equal ones
            stood_before[first] = False
            repeated = int(np.count_nonzero(stood_before & are_free[places]))
            shares[length] = repeated / free
            if shares[length] <= _RARE:
                break

        # What stands there once is part of no longer passage that stands there twice.
        stands_twice = counts[numbers] > 1
        passages[:] = -1
        places = places[stands_twice]
        passages[places] = numbers[stands_twice]
    return shares


def _windows(text: TokenSequence) -> NDArray[np.int64]:
    """Pieces of the same length of a text, ``(w, T)``."""
    length = min(len(text), _WINDOW)
    count = min(max(len(text) // _WINDOW, 1), _MOST_WINDOWS)
    starts = [i * (len(text) - length) // max(count - 1, 1) for i in range(count)]
    return np.stack([text[start : start + length] for start in starts]).astype(np.int64)
