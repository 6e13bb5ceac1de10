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
        if tokenizer.end_of_turn is not None:
            tokens[tokenizer.end_of_turn] = b""  # two line ends are no end of a turn
        ids = {token: i for i, token in enumerate(tokens) if token}

        # Of each pair the token that it forms, its left half and its right half; the pairs of a
        # token stand side by side.
        pairs = [(ids[left + right], ids[left], ids[right]) for left, right in merges_by_id(ids)]
        table = np.array(pairs, np.int64).reshape(-1, 3).T  # (3, number of pairs)

        self._halves = table[1:]  # (2, number of pairs)
        self._counts = np.bincount(table[0], minlength=len(tokens))  # pairs of each token
        self._firsts = np.cumsum(self._counts) - self._counts  # where the pairs of a token begin

    def __call__(self, token_ids: Ids, split_prob: float, random: Uniform) -> Ids:
        """Split each token with probability `split_prob`, then cut each row to its old length:
        ``(b, n) -> (b, n)``, with ``(2, b, n)`` random numbers."""
        whether, how = random
        rows = []
        for ids, row_whether, row_how in zip(token_ids, whether, how, strict=True):
            is_split = row_whether < split_prob
            longer = self._split(ids, is_split, row_how)
            rows.append(longer[: len(ids)])
        return np.stack(rows)

    def _split(self, ids: Ids, is_split: NDArray[np.bool_], how: Uniform) -> Ids:
        """A whole row after splitting: ``(n,) -> (n + number of splits,)``."""
        counts = self._counts[ids]
        is_split = is_split & (counts > 0)
        pair = self._firsts[ids] + (how * counts).astype(np.int64)  # the one drawn, for each token

        longer = np.repeat(ids, 1 + is_split)
        splits_before: Ids = np.cumsum(is_split) - is_split
        first_half = (np.arange(len(ids)) + splits_before)[is_split]  # its place in `longer`
        left, right = self._halves[:, pair[is_split]]
        longer[first_half] = left
        longer[first_half + 1] = right
        return longer
