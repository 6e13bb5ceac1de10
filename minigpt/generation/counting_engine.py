"""Counting as an engine: it takes the place of a network in a Writer, to write what counting
expects."""

from dataclasses import dataclass

import numpy as np

from ..data.counting import ORDER, CountingModel
from .window import Array, TokenIds


class Seen:
    """Stands in for a cache: the last tokens of some texts, ``(b, T)``."""

    def __init__(self, token_ids: TokenIds):
        self.token_ids = token_ids


@dataclass
class CountingEngine:
    """A `CountingModel` with the methods of the glass engine. It looks four tokens back, whatever
    `context_length` is: that of the model that it is compared with."""

    counting: CountingModel
    context_length: int

    @property
    def num_parameters(self) -> int:
        """It has counts, and no weights."""
        return 0

    def __call__(self, token_ids: TokenIds) -> Array:
        """The log-probabilities after each token, ``(b, T)`` to ``(b, T, vocab_size)``."""
        ends = range(1, token_ids.shape[1] + 1)
        return np.stack([self._after(token_ids[:, :end]) for end in ends], axis=1)

    def next_logits(self, token_ids: TokenIds, cache: Seen) -> Array:
        """Read ``(b, T)`` more tokens; the log-probabilities of the next, ``(b, vocab_size)``."""
        known = np.concatenate((cache.token_ids, token_ids), axis=1)
        cache.token_ids = known[:, -(ORDER - 1) :]
        return self._after(cache.token_ids)

    def new_cache(self, batch_size: int, start: Seen | None = None) -> Seen:
        """A cache for so many texts: empty, or each with the tokens of the only text in `start`."""
        if start is None:
            return Seen(np.empty((batch_size, 0), np.int64))
        return Seen(np.repeat(start.token_ids, batch_size, axis=0))

    def _after(self, token_ids: TokenIds) -> Array:
        """The log-probabilities of all tokens after each text ``(b, T)``: ``(b, vocab_size)``."""
        candidates = np.arange(self.counting.vocab_size)[:, None]  # (vocab_size, 1)
        rows = []
        for context in token_ids[:, -(ORDER - 1) :]:
            repeated = np.broadcast_to(context, (len(candidates), len(context)))
            continued = np.concatenate((repeated, candidates), axis=1)  # (vocab_size, T + 1)
            rows.append(self.counting.log_probabilities(continued)[:, -1])
        return np.stack(rows).astype(np.float32)
