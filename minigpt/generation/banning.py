"""Strings that must not be written: which tokens would complete one, given the text so far."""

from bisect import bisect_left
from collections.abc import Sequence

import torch
from torch import Tensor


class BannedStrings:
    """Finds the tokens that would complete a banned string, exactly, whatever the tokenizer.

    A token completes one if it contains one, which is known beforehand; or if the text ends with
    the first n bytes of one and the token begins with the others. The tokens that begin with given
    bytes stand side by side once the vocabulary is sorted. All of it is in bytes, so that it holds
    for characters of several tokens too.

    Args:
        banned: the strings, none of them empty.
        vocabulary: the bytes of each token.
    """

    def __init__(self, banned: Sequence[str], vocabulary: Sequence[bytes]):
        self._banned = [string.encode() for string in banned]
        self._order = sorted(range(len(vocabulary)), key=vocabulary.__getitem__)
        self._sorted = [vocabulary[i] for i in self._order]
        self._order_ids = torch.tensor(self._order)  # (vocab_size,)
        containing = [any(string in token for string in self._banned) for token in vocabulary]
        self._always = torch.tensor(containing)  # (vocab_size,)
        self._writing = torch.tensor([len(token) > 0 for token in vocabulary])  # (vocab_size,)
        self.memory = max(map(len, self._banned)) - 1  # bytes of the text that matter

    def mask(self, logits: Tensor, texts: Sequence[bytes]) -> tuple[Tensor, list[bool]]:
        """Forbid what would complete a banned string.

        Args:
            logits: ``(b, vocab_size)``.
            texts: the text so far of each row, or the last `memory` bytes of it.

        Returns:
            Logits ``(b, vocab_size)`` with -inf for forbidden tokens; and for each row whether no
            token that writes anything is left.
        """
        logits = logits.masked_fill(self._always, -torch.inf)
        for row, text in zip(logits, texts, strict=True):
            for string in self._banned:
                for n in range(1, len(string)):
                    if text.endswith(string[:n]):
                        row[self._beginning_with(string[n:])] = -torch.inf
        left = logits.masked_fill(~self._writing, -torch.inf).isfinite().any(dim=-1)  # (b,)
        return logits, (~left).tolist()

    def _beginning_with(self, start: bytes) -> Tensor:
        """Ids of the tokens that begin with `start`, the bytes of some text."""
        following = start[:-1] + bytes([start[-1] + 1])  # in UTF-8 no byte is 255
        return self._order_ids[
            bisect_left(self._sorted, start) : bisect_left(self._sorted, following)
        ]
