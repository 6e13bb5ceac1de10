"""What a plan needs to know of a text: its size, how well it can be predicted, and whether it
repeats itself far away.
"""

from dataclasses import dataclass, field, replace

from ..config import TextConfig
from ..data.corpus import Part
from ..data.source import Source, split
from .predictability import Predictability, measure_predictability

_SAMPLE = 320_000  # characters of a text in which repetitions are looked for
_SAME = 12  # characters that have to be the same
_NEAR = 256  # characters that most of a short context sees
_FAR = 2_048  # and of a long one
_MUCH = 0.06  # of the characters repeat what is far away: programs have 0.13, prose 0.02


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
    before: float | None = None  # its loss before the first step, in bits per byte
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
