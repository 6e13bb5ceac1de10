"""What every head looks at in a text, as an array."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import UserError
from ..system.shown import visible
from .writer import Writer


@dataclass(frozen=True)
class AttentionMaps:
    """The attention weights of a text of T tokens.

    ``weights[l, h, i, j]`` is how much token i attends to token j in head h of layer l. Rows sum
    to 1, and no token looks ahead.
    """

    tokens: tuple[str, ...]  # the text of each; ␣ stands for a space, ↵ for a new line
    weights: NDArray[np.float32]  # (num_layers, num_heads, T, T)


def attention_maps(writer: Writer, text: str) -> AttentionMaps:
    """The attention weights of every layer and head for a text of 1 to context_length tokens, with
    a writer from :func:`minigpt.load`; a UserError if it has more, or none."""
    ids = writer.tokenizer.encode(text)
    limit = writer.glass.config.context_length
    if not ids:
        raise UserError("the text is empty; give at least a word to look at")
    if len(ids) > limit:
        raise UserError(f"the text has {len(ids):,} tokens; this model reads at most {limit:,}")

    tokens = tuple(visible(writer.tokenizer.token_bytes(i)) for i in ids)
    record = writer.glass.record(np.array(ids))
    return AttentionMaps(tokens, record.attention)
