"""What a model sees of the texts that it writes: their last tokens, each read once."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
TokenIds = NDArray[np.integer[Any]]


class Engine(Protocol):
    """What `NumpyGPT` and `TorchGPT` have in common; see there."""

    context_length: int  # the most tokens that it reads

    @property
    def num_parameters(self) -> int: ...

    def __call__(self, token_ids: TokenIds) -> Array: ...

    def next_logits(self, token_ids: TokenIds, cache: Any) -> Array: ...

    def new_cache(self, batch_size: int, start: Any = None) -> Any: ...


class Window:
    """Several texts that begin with the same prompt and grow by a token at a time.

    Every token is read once, until context_length tokens are read. Then the model forgets them and
    reads their later half again, so that a text can go on for ever. The prompt is at least one
    token; if it is longer than the context, only its end is read."""

    def __init__(self, engine: Engine, prompt: Sequence[int], samples: int = 1):
        self._engine = engine
        self._samples = samples
        self._size = engine.context_length
        self._seen = np.empty((samples, self._size), np.int64)  # what the model has read
        self._length = 0  # of _seen
        self._unread = np.array([prompt[-self._size :]])  # (1, T), later (samples, T)
        self._cache = engine.new_cache(1)

    def next_logits(self) -> Array:
        """The logits of the token after each text, ``(samples, vocab_size)``."""
        start = self._length
        self._length += self._unread.shape[1]
        self._seen[:, start : self._length] = self._unread
        logits = self._engine.next_logits(self._unread, self._cache)
        if len(logits) == self._samples:
            return logits

        # The prompt was read once; from now on each text has a row of its own.
        self._cache = self._engine.new_cache(self._samples, self._cache)
        return np.repeat(logits, self._samples, axis=0)

    def append(self, token_ids: TokenIds) -> None:
        """Add a token to each text, ``(samples,)``."""
        self._unread = token_ids[:, None]
        if self._length == self._size:
            later_half = self._seen[:, self._size // 2 + 1 :]
            self._unread = np.concatenate((later_half, self._unread), axis=1)
            self._length = 0
            self._cache = self._engine.new_cache(self._samples)
