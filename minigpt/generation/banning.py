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

    Attributes:
        memory: of the text so far, how many of the last bytes matter.
    """

    def __init__(self, banned: Sequence[str], vocabulary: Sequence[bytes]):
        self._banned = [string.encode() for string in banned]
        order = sorted(range(len(vocabulary)), key=vocabulary.__getitem__)
        self._sorted = [vocabulary[i] for i in order]
        self._order = torch.tensor(order)  # (vocab_size,), ids in the order of their bytes
        containing = [any(string in token for string in self._banned) for token in vocabulary]
        self._containing = torch.tensor(containing)  # (vocab_size,)
        self._writing = torch.tensor([token != b"" for token in vocabulary])  # (vocab_size,)
        self.memory = max(map(len, self._banned)) - 1

    def mask(self, logits: Tensor, texts: Sequence[bytes]) -> tuple[Tensor, list[bool]]:
        """Forbid what would complete a banned string.

        Args:
            logits: ``(b, vocab_size)``.
            texts: the text of each row so far, at least the last `memory` bytes of it.

        Returns:
            Logits ``(b, vocab_size)`` with -inf for forbidden tokens; and for each row whether no
            token that writes anything is left.
        """
        logits = logits.masked_fill(self._containing, -torch.inf)
        for row, text in zip(logits, texts, strict=True):
            for string in self._banned:
                for n in range(1, len(string)):
                    if text.endswith(string[:n]):
                        row[self._beginning_with(string[n:])] = -torch.inf
        left = (self._writing & (logits > -torch.inf)).any(dim=-1)  # (b,)
        return logits, (~left).tolist()

    def _beginning_with(self, start: bytes) -> Tensor:
        """Ids of the tokens that begin with `start`, the bytes of some text."""
        behind = start[:-1] + bytes([start[-1] + 1])  # no byte of UTF-8 is 255
        return self._order[bisect_left(self._sorted, start) : bisect_left(self._sorted, behind)]
