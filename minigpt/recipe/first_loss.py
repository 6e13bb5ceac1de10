"""How well a model predicts a text before it is trained on it, measured on a small sample."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..data.batches import windows_side_by_side
from ..data.corpus import Part, encode
from ..generation.scoring import log_probabilities
from ..runs.found import FoundModel

_OPERATIONS = 6e10  # of the forward pass: about half a second on two cores
_FEWEST = 512  # tokens of the sample
_MOST = 4_096
_CHARACTERS = 5  # of the text for each of them: enough in any language
_STRETCH = 2_048  # characters of each stretch of the sample
_WINDOW = 256  # tokens that the model sees, at most
_LIMIT = 1.5  # seconds; on a slow or busy machine, what was read by then has to do
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class FirstLoss:
    """What a model makes of a text that it was not trained on."""

    bits_per_byte: float
    bytes_per_token: float  # in its tokenizer's tokens


def first_loss(
    start: FoundModel, validation: Part, clock: Callable[[], float] = time.monotonic
) -> FirstLoss | None:
    """The loss on a sample from all over the validation text; None if it has fewer than two tokens.

    The glass engine computes it, so that one of several processes can do so alone.

    Raises:
        UserError: if the tokenizer does not know a character, which is named with its place.
    """
    glass = start.glass
    affordable = _OPERATIONS / (2 * glass.num_parameters)
    most = int(min(max(affordable, _FEWEST), _MOST))
    sample = validation.at_most(_CHARACTERS * most, _STRETCH)
    pieces = [ids for _, ids in encode(start.tokenizer, sample)]
    tokens = np.concatenate([np.zeros(0, np.int64), *pieces])  # (n,)
    if len(tokens) < 2:
        return None

    # In an order in which the first few windows are from all over the sample too.
    length = min(glass.context_length, _WINDOW)
    windows = list(windows_side_by_side(tokens, length, most))
    order = sorted(range(len(windows)), key=lambda i: i * _GOLDEN % 1.0)

    byte_lengths = np.array(start.tokenizer.byte_lengths())  # (vocab_size,)
    end = clock() + _LIMIT
    nats = 0.0
    size = 0
    for i in order:
        inputs, targets = windows[i]  # each (T,)
        logits = glass(inputs[None])[0]  # (T, vocab_size)
        nats -= float(log_probabilities(logits, targets).sum())
        size += int(byte_lengths[targets].sum())
        if clock() > end:
            break

    return FirstLoss(
        bits_per_byte=nats / math.log(2) / max(size, 1),
        bytes_per_token=float(byte_lengths[tokens].mean()),
    )
