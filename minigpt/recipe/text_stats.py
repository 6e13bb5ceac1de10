"""What a plan needs to know of a text: its size, how well it can be predicted, whether it repeats
itself far away, and how well a trained model predicts it before the first step.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..config import TextConfig
from ..data.batches import windows_side_by_side
from ..data.corpus import Part, encode
from ..data.source import Source, split
from ..generation.scoring import log_probabilities
from ..runs.found import FoundModel
from .predictability import Predictability, measure_predictability

_SAMPLE = 320_000  # characters of a text in which repetitions are looked for
_SAME = 12  # characters that have to be the same
_NEAR = 256  # characters that most of a short context sees
_FAR = 2_048  # and of a long one
_MUCH = 0.06  # of the characters repeat what is far away: programs have 0.13, prose 0.02

# To measure the loss of a trained model
_OPERATIONS = 6e10  # of the forward pass: about half a second on two cores
_FEWEST_TOKENS = 512  # tokens of the sample
_MOST_TOKENS = 4_096
_CHARACTERS_A_TOKEN = 5  # of the text for each of them: enough in any language
_STRETCH = 2_048  # characters of each stretch of the sample
_WINDOW = 256  # tokens that the model sees, at most
_LIMIT = 1.5  # seconds; on a slow or busy machine, what was read by then has to do
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class TextStats:
    """What is known of a text."""

    size: int  # bytes of text to train on, at most what --max-characters takes
    validation: int = 0  # bytes of text to validate on
    bytes_per_character: float = 1.0  # in UTF-8
    tokenizer: str = "bpe"  # as in TextConfig
    predictability: Predictability = field(default_factory=Predictability)
    repeats_afar: bool = False  # as programs do, and the model can copy it
    whole: int | None = None  # bytes, if --max-characters takes only a part of them

    # Of a model to begin with, on the validation text, if it is a run or the base:
    loss_before: float | None = None  # its loss before the first step, in bits per byte
    bytes_per_token: float | None = None


def measure_text(source: Source, text: TextConfig, tokenizer: str, can_copy: bool) -> TextStats:
    """Measure a text, by samples of it. That it repeats itself counts only if a model can copy."""
    scan = source.training.scan
    size = scan.text_bytes
    if source.validation is not None:
        to_train_on = size
        to_validate_on = source.validation.scan.text_bytes
    else:
        to_train_on = round(size * (1.0 - text.validation_fraction))
        to_validate_on = size - to_train_on

    training, validation = split(source, text)
    bytes_per_character = size / sum(scan.lengths)
    whole = None
    if text.max_characters is not None:
        whole = to_train_on
        to_train_on = min(whole, round(training.size * bytes_per_character))
        to_validate_on = min(to_validate_on, round(validation.size * bytes_per_character))

    predictability = measure_predictability(training, validation)
    if not can_copy:
        predictability = replace(predictability, copying=predictability.counting)

    return TextStats(
        size=to_train_on,
        validation=to_validate_on,
        bytes_per_character=bytes_per_character,
        tokenizer=tokenizer,
        predictability=predictability,
        repeats_afar=can_copy and repeated_afar(training) >= _MUCH,
        whole=whole,
    )


def repeated_afar(part: Part) -> float:
    """The share of a text's characters that continue what stood far away: the 12 characters before
    them stood 257 to 2,048 characters earlier, and not since. Measured on a sample.

    A short context does not reach that far, and a long one does.
    """
    read = 0  # characters
    repeated = 0
    for piece in part.at_most(_SAMPLE, stretch=4 * _FAR).pieces():
        text = piece.text
        read += len(text)
        last_end: dict[str, int] = {}  # where each 12 characters ended last

        for end in range(_SAME, len(text)):
            characters = text[end - _SAME : end]
            if characters in last_end and _NEAR < end - last_end[characters] <= _FAR:
                repeated += 1
            last_end[characters] = end

    return repeated / max(read, 1)


# As a trained model sees it


def seen_by(
    model: FoundModel,
    text: TextStats,
    validation: Part,
    clock: Callable[[], float] = time.monotonic,
) -> TextStats | None:
    """The text with the loss of a model on its validation text, measured on a sample from all over
    it, and the size of the model's tokens; None if it has fewer than two of them.

    The glass engine computes it, so that one of several processes can do so alone.

    Raises:
        UserError: if the tokenizer does not know a character, which is named with its place.
    """
    glass = model.glass
    affordable = _OPERATIONS / (2 * glass.num_parameters)
    most = int(min(max(affordable, _FEWEST_TOKENS), _MOST_TOKENS))
    sample = validation.at_most(_CHARACTERS_A_TOKEN * most, _STRETCH)
    pieces = [ids for _, ids in encode(model.tokenizer, sample)]
    tokens = np.concatenate([np.zeros(0, np.int64), *pieces])  # (n,)
    if len(tokens) < 2:
        return None

    # In an order in which the first few windows are from all over the sample too.
    length = min(glass.context_length, _WINDOW)
    windows = list(windows_side_by_side(tokens, length, most))
    order = sorted(range(len(windows)), key=lambda i: i * _GOLDEN % 1.0)

    byte_lengths = np.array(model.tokenizer.byte_lengths())  # (vocab_size,)
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

    return replace(
        text,
        loss_before=nats / math.log(2) / max(size, 1),
        bytes_per_token=float(byte_lengths[tokens].mean()),
    )
