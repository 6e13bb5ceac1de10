"""StochasTok: some tokens of a batch become two shorter tokens of the same text. They are drawn
anew each time the text is read, so that a text that is read often teaches more.
"""

import numpy as np
import torch
from torch import Tensor

from ..tokenizer import Tokenizer
from ..tokenizer.bpe import merges_by_id


class TokenSplitter:
    """Splits some tokens into two tokens that together stand for the same bytes.

    All pairs that form a token are equally likely, whether or not the tokenizer would merge them
    ("StochasTok: Improving Fine-Grained Subword Understanding in LLMs", Sims et al. 2025). A token
    that no pair forms, such as a single character, stays as it is.

    Tokens are split on `device`, where the ids and the random numbers have to lie. Nothing waits
    for it: all shapes are known before.
    """

    def __init__(self, tokenizer: Tokenizer, device: torch.device | str = "cpu"):
        tokens = [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)]
        if tokenizer.end_of_turn is not None:
            tokens[tokenizer.end_of_turn] = b""  # two line ends are no end of a turn
        ids = {token: i for i, token in enumerate(tokens) if token}

        # Of each pair the token that it forms, its left half and its right half; the pairs of a
        # token stand side by side.
        pairs = [(ids[left + right], ids[left], ids[right]) for left, right in merges_by_id(ids)]
        formed, left, right = np.array(pairs, np.int64).reshape(-1, 3).T  # each (pairs,)
        counts = np.bincount(formed, minlength=len(tokens))  # pairs of each token, (vocab_size,)
        firsts = np.cumsum(counts) - counts  # where the pairs of a token begin, (vocab_size,)

        def table(numbers: np.ndarray) -> Tensor:
            return torch.from_numpy(numbers).to(device)

        self._counts = table(counts)
        self._firsts = table(firsts)
        # A pair more, for a vocabulary without any; nothing is split into it.
        self._left = table(np.append(left, 0))
        self._right = table(np.append(right, 0))

    def __call__(self, token_ids: Tensor, split_prob: float, random: Tensor) -> Tensor:
        """Split each token with probability `split_prob`, then cut each row to its old length:
        ``(b, n) -> (b, n)``, with random numbers ``(2, b, n)`` from 0 to 1."""
        whether, how = random
        counts = self._counts[token_ids]  # (b, n)
        is_split = (whether < split_prob) & (counts > 0)
        drawn = self._firsts[token_ids] + (how * counts).long()
        pair = torch.where(is_split, drawn, 0)
        first = torch.where(is_split, self._left[pair], token_ids)
        second = self._right[pair]  # only of tokens that are split

        # Where each token stands when those before it are split. What lies beyond the row, and the
        # second half of a token that has none, goes to a column that is cut off.
        b, n = token_ids.shape
        place = torch.arange(n, device=token_ids.device) + is_split.cumsum(1) - is_split.long()
        place_of_second = torch.where(is_split, place + 1, n)
        longer = token_ids.new_zeros(b, n + 1)
        longer.scatter_(1, place.clamp(max=n), first)
        longer.scatter_(1, place_of_second.clamp(max=n), second)
        return longer[:, :n]
