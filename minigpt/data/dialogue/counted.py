"""Which tokens the loss counts if it is to count one speaker's turns only."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import UserError
from ...tokenizer import Tokenizer
from .dialogue import Dialogue

IGNORED = -100  # a target that the loss does not count, as in torch's cross-entropy


class MarkedTokens:
    """Token ids of which some are marked: a marked id is given as ``~id``, which is negative.

    `tokens` are the ids, and `counted` says which of them, ``(n,)``, are not marked.
    """

    def __init__(self, tokens: Any, counted: NDArray[np.bool_]):
        self._tokens = tokens
        self._counted = counted
        self._counted_before = np.concatenate([[0], np.cumsum(counted)])  # unmarked, (n + 1,)

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, part: slice) -> NDArray[Any]:
        ids = np.asarray(self._tokens[part]).astype(np.int64)
        return np.where(self._counted[part], ids, ~ids)

    def windows_that_count(self, starts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """The `starts` of windows in which not all targets are marked. The targets of a window are
        the `length` tokens after its first."""
        ends = np.minimum(starts + length, len(self) - 1)  # the last target of each
        counts = self._counted_before[ends + 1] > self._counted_before[starts + 1]
        return starts[counts]

    @property
    def first_target(self) -> int:
        """The place of the first unmarked token, not counting the first of all, which is no
        target."""
        return 1 + int(self._counted[1:].argmax())


def marked(tokens: Any, tokenizer: Tokenizer, dialogue: Dialogue, speaker: str) -> MarkedTokens:
    """The tokens of conversations, all marked except what one speaker says, up to the end of each
    turn. The name before the text is marked, too: it is given when the model answers."""
    return MarkedTokens(tokens, said_by(tokens, tokenizer, dialogue, speaker))


def said_by(
    tokens: Any, tokenizer: Tokenizer, dialogue: Dialogue, speaker: str
) -> NDArray[np.bool_]:
    """Whether each token belongs to the text of one speaker's turn: ``(n,)`` to ``(n,)``."""
    ids = np.asarray(tokens[0 : len(tokens)]).astype(np.int64)  # (n,)
    table = [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)]
    text = b"".join([table[i] for i in ids.tolist()])
    sizes = np.array([len(token) for token in table], np.int64)[ids]  # (n,)
    ends = np.cumsum(sizes)  # of each token in the text, in bytes, (n,)
    starts = ends - sizes

    end_of_turn = re.escape(dialogue.end.encode())
    opening = re.escape(dialogue.opening(speaker).encode())
    begins = re.compile(rb"(?:\A|(?<=" + end_of_turn + rb"))" + opening)
    ends_turn = re.compile(end_of_turn)
    if dialogue.layout.ends_at_name:
        openings = (re.escape(dialogue.opening(name).encode()) for name in dialogue.speakers)
        ends_turn = re.compile(end_of_turn + rb"(?=" + rb"|".join(openings) + rb")")

    counted = np.zeros(len(ids), np.bool_)
    for match in begins.finditer(text):
        found = ends_turn.search(text, match.end())
        end = len(text) if found is None else found.end()
        first = int(np.searchsorted(ends, match.end(), side="right"))
        last = int(np.searchsorted(starts, end, side="left"))
        counted[first:last] = sizes[first:last] > 0

    if not counted[1:].any():  # nothing predicts the first token
        raise UserError(
            f"{speaker} says too little: there is nothing to train on, or nothing to validate on",
            kind="too_short",
        )
    return counted
