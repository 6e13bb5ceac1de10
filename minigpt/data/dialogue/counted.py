"""Which tokens the loss counts if it is to count one speaker's turns only."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import UserError
from ...tokenizer import Tokenizer
from .dialogue import Dialogue


def said_by(
    tokens: Any, tokenizer: Tokenizer, dialogue: Dialogue, speaker: str
) -> NDArray[np.bool_]:
    """Whether each token of conversations belongs to what one speaker says, up to the end of each
    turn: ``(n,)`` to ``(n,)``. The name before the text does not: it is given when the model
    answers.

    Raises:
        UserError: if none does that could be predicted.
    """
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
