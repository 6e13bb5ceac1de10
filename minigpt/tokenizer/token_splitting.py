"""StochasTok: some tokens become two shorter tokens of the same text. They are drawn anew each time
the text is read, so that a text that is read often teaches more."""

import numpy as np
from numpy.typing import NDArray

from .base import Tokenizer
from .bpe import merges_by_id

Ids = NDArray[np.int64]
Uniform = NDArray[np.floating]  # random numbers from 0 to 1


class TokenSplitter:
    """Splits some tokens into two tokens that together stand for the same bytes.

    All pairs that form a token are equally likely, whether or not the tokenizer would merge them
    ("StochasTok: Improving Fine-Grained Subword Understanding in LLMs", Sims et al. 2025). A token
    that no pair forms, such as a single character, stays as it is.
    """

    def __init__(self, tokenizer: Tokenizer):
        tokens = [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)]
        ids = {token: i for i, token in enumerate(tokens) if token}
        pairs = [(ids[a + b], ids[a], ids[b]) for a, b in merges_by_id(ids)]
        whole, *halves = np.array(pairs, np.int64).reshape(-1, 3).T
        self._pairs = np.stack(halves)  # (2, number of pairs)
        self._counts = np.bincount(whole, minlength=len(tokens))  # pairs of each token
        self._firsts = np.cumsum(self._counts) - self._counts  # where the pairs of a token begin

    def __call__(self, token_ids: Ids, split_prob: float, random: Uniform) -> Ids:
        """Split each token with probability `split_prob`, then cut each row to its old length:
        ``(b, n) -> (b, n)``, with ``(2, b, n)`` random numbers."""
        rows = zip(token_ids, *random, strict=True)
        return np.stack([self._split(ids, split_prob, *two)[: len(ids)] for ids, *two in rows])

    def _split(self, ids: Ids, split_prob: float, whether: Uniform, how: Uniform) -> Ids:
        """A whole row after splitting: ``(n,) -> (n + number of splits,)``."""
        chosen = (whether < split_prob) & (self._counts[ids] > 0)
        which = self._firsts[ids] + (how * self._counts[ids]).astype(np.int64)
        longer = np.repeat(ids, 1 + chosen)
        places = (np.arange(len(ids)) + np.cumsum(chosen) - chosen)[chosen]
        longer[places], longer[places + 1] = self._pairs[:, which[chosen]]
        return longer
