"""What to train for a given text: pure functions from its size to settings.

Whatever the user sets goes before whatever is planned here.
"""

import math
from typing import Any

from ..config import GPTConfig, TrainConfig

# Rules of thumb, tried on texts of 20 KB to 1 MB; docs/decisions.md holds the figures.
_SMALLEST_VOCABULARY, _LARGEST_VOCABULARY = 320, 16_384
_BYTES_PER_TOKEN_KIND = 512
_TOKENS_A_MINUTE = 2_000_000  # what 2 cores train on in a minute at 4 layers of width 128


def plan_vocabulary(text_bytes: int) -> int:
    """Size of a BPE vocabulary: about one token for 512 bytes of text, a power of two.

    A vocabulary that is large for its text leaves tokens too rare to be learned; one that is
    small wastes context and computation on spelling.
    """
    size = 2 ** round(math.log2(max(text_bytes, 1) / _BYTES_PER_TOKEN_KIND))
    return min(max(size, _SMALLEST_VOCABULARY), _LARGEST_VOCABULARY)


def plan_model(
    train_tokens: int, training: TrainConfig, emb_dim: int | None = None
) -> dict[str, Any]:
    """Width, heads, context length and dropout for a text of `train_tokens` tokens.

    The context is cut to what a short text holds. A text that will be read many times over
    needs dropout.
    """
    emb_dim = emb_dim or GPTConfig.emb_dim
    context_length = 128
    while context_length > 8 and context_length * 16 > train_tokens:
        context_length //= 2
    if training.steps is None:
        trained_tokens = training.minutes * _TOKENS_A_MINUTE
    else:
        trained_tokens = training.steps * training.batch_size * context_length
    passes = trained_tokens / train_tokens
    return {
        "emb_dim": emb_dim,
        "num_heads": _heads(emb_dim),
        "context_length": max(1, min(context_length, train_tokens - 1)),
        "dropout": 0.0 if passes < 3 else 0.1 if passes < 30 else 0.2,
    }


def _heads(emb_dim: int) -> int:
    """As many heads of 64 or more as divide the width evenly: few wide heads compute faster.

    Rotary positions turn pairs of components, so that a head needs an even size.
    """
    at_most = max(emb_dim // 64, 1)
    return next((n for n in range(at_most, 0, -1) if emb_dim % (2 * n) == 0), 1)
