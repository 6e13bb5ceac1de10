"""Strings that must not be written: which tokens would complete one, given the text so far."""

from bisect import bisect_left
from collections.abc import Sequence

import torch
from torch import Tensor


class BannedStrings:
    """Finds the tokens that would complete a banned string, exactly, whatever the tokenizer.

    A token completes one if it contains one; or if the text ends with the first bytes of one and
    the token begins with the rest. Both are known before the first step: the tokens that begin
    with given bytes stand side by side in the sorted vocabulary, and what is left to do at a step
    is to compare the end of the text. All of it is in bytes, so that it holds for characters of
    several tokens too.

    Args:
        banned: the strings, none of them empty.
        vocabulary: the bytes of each token; none for special ones.

    Attributes:
        memory: how many of the last bytes of a text matter.
    """

    def __init__(self, banned: Sequence[str], vocabulary: Sequence[bytes]):
        strings = [string.encode() for string in banned]
        ids = sorted(range(len(vocabulary)), key=vocabulary.__getitem__)
        tokens, order = [vocabulary[i] for i in ids], torch.tensor(ids)  # (vocab_size,)

        def beginning_with(rest: bytes) -> Tensor:
            behind = rest[:-1] + bytes([rest[-1] + 1])  # no byte of UTF-8 is 255
            return order[bisect_left(tokens, rest) : bisect_left(tokens, behind)]

        self.memory = max(map(len, strings)) - 1
        self._begun = [(s[:n], beginning_with(s[n:])) for s in strings for n in range(1, len(s))]
        containing = [any(string in token for string in strings) for token in vocabulary]
        self._containing = torch.tensor(containing)  # (vocab_size,)
        self._writing = torch.tensor([token != b"" for token in vocabulary])  # (vocab_size,)

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
            for beginning, completing in self._begun:
                if text.endswith(beginning):
                    row[completing] = -torch.inf
        left = (self._writing & (logits > -torch.inf)).any(dim=-1)  # (b,)
        return logits, (~left).tolist()
