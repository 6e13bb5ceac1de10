"""What a plan needs to know of a text: its size, how well it can be predicted, whether it repeats
itself far away, and how well a trained model predicts it before the first step.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..config import TextConfig
from ..data.batches import windows_side_by_side
from ..data.corpus import Part, encode
from ..data.counting import CountingModel
from ..data.source import Source, split
from ..generation.sampler import nats_of
from ..runs.read_model import FoundModel
from ..tokenizer.bpe import train_bpe

# To find out how well it can be predicted
SAMPLED = 640_000  # characters of the training text in its sample, at most
_MOST_COUNTED = 4_000_000  # and where counting is to be as good as at the end of a run
_NEW = 100_000  # and of the validation text
_PIECE = 2_048  # characters of each piece of a sample
_LEARNED = 300_000  # characters that the samples' tokens are learned from
_VOCAB_SIZE = 1_024  # of these tokens
_REACH = 768  # tokens back from which may be copied: as many characters as 512 of a run
_MATCHES = (6, 4, 3, 2, 1)  # tokens that have to be the same before what is copied
_DOUBT = 2.0  # places at which copying is taken to have failed, besides those that were seen
_ROUNDS = 10  # of expectation and maximisation

# To find out whether it repeats itself far away
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

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Predictability:
    """Bits per byte of a text, from 0.1 to 8."""

    counting: float = 2.2  # by a CountingModel
    copying: float = 2.1  # by one that may also copy what stands a little before


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


def measure_text(source: Source, config: TextConfig, tokenizer: str, can_copy: bool) -> TextStats:
    """Measure a text, by samples of it. That it repeats itself counts only if a model can copy."""
    scan = source.training.scan
    size = scan.text_bytes
    if source.validation is not None:
        to_train_on = size
        to_validate_on = source.validation.scan.text_bytes
    else:
        to_train_on = round(size * (1.0 - config.validation_fraction))
        to_validate_on = size - to_train_on

    training, validation = split(source, config)
    bytes_per_character = size / sum(scan.lengths)
    whole = None
    if config.max_characters is not None:
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


# How well it can be predicted, found out in half a second before anything is learned


def measure_predictability(training: Part, validation: Part) -> Predictability:
    """Predict a sample of the validation text, knowing a sample of the training text: by counting,
    and by counting that may also copy, as a model does, from a little further back.

    The samples come from all over the texts. Their tokens are those of a small vocabulary, learned
    for this alone.
    """
    tokens, log_p, size = _counted(training, validation, SAMPLED)
    p_with_copies = with_copies(tokens, np.exp(log_p))  # (n,)
    by_counting = -log_p.sum() / np.log(2) / size
    by_copying = -np.log2(p_with_copies).sum() / size
    return Predictability(_within_limits(by_counting), _within_limits(by_copying))


def bits_by_counting(training: Part, validation: Part) -> float:
    """Bits per byte of the validation text by counting that knows all of the training text, or
    several megabytes of it: what a run is compared with at its end. It takes seconds."""
    _, log_p, size = _counted(training, validation, _MOST_COUNTED)
    return _within_limits(-log_p.sum() / np.log(2) / size)


def _counted(training: Part, validation: Part, most: int) -> tuple[Ids, NDArray[np.float64], int]:
    """What counting makes of a sample of the validation text, with at most so many characters of
    the training text: the tokens of the sample ``(n,)``, their log-probabilities ``(n,)`` in nats,
    and the bytes of the sample."""
    pieces = [piece.text for piece in training.at_most(most, _PIECE).pieces()]
    known = "".join(pieces)
    new = "".join(piece.text for piece in validation.at_most(_NEW, _PIECE).pieces())

    from_all_over = "".join(pieces[::2])
    tokenizer = train_bpe([from_all_over[:_LEARNED]], _VOCAB_SIZE)
    known_tokens = np.array(tokenizer.encode(known), np.int64)
    tokens = np.array(tokenizer.encode(new), np.int64)  # (n,)

    counting = CountingModel(known_tokens, tokenizer.vocab_size)
    log_p = counting.log_probabilities(tokens)  # (n,), in nats
    return tokens, log_p, max(len(new.encode()), 1)


def with_copies(tokens: Ids, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each token ``(n,)`` if what followed the same tokens before may be copied.

    `p` ``(n,)`` are the probabilities without copying. Where the last six tokens stood before, or
    at least the last four, three, two or one, not too far back, the token that followed there gets
    a share of the probability, and p the rest. All places where as many tokens are the same have
    the same share: the best one for them.
    """
    p = p.copy()
    is_open = np.ones(len(tokens), bool)  # where no match of more tokens has been found
    for length in _MATCHES:  # the longest first
        source = _earlier_place(tokens, length)
        is_near = (source >= 0) & (np.arange(len(tokens)) - source <= _REACH)
        (places,) = np.nonzero(is_open & is_near)
        is_open[places] = False

        is_right = tokens[source[places]] == tokens[places]
        p[places] = _mixed(p[places], is_right)
    return p


def _mixed(p: NDArray[np.float64], is_right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Probabilities ``(m,)`` of tokens, mixed with those of a copy: 1 where it is right, else 0.

    The proportion is the one that makes the tokens likeliest, found by expectation and maximisation
    ("Maximum Likelihood from Incomplete Data via the EM Algorithm", Dempster, Laird and Rubin
    1977).
    """
    share = 0.5  # of the copy
    for _ in range(_ROUNDS):
        mixed = share * is_right + (1.0 - share) * p
        copied = (share * is_right / mixed).sum()  # places that were copied, as it seems
        share = copied / (len(p) + _DOUBT)
    return share * is_right + (1.0 - share) * p


def _earlier_place(tokens: Ids, length: int) -> Ids:
    """For each place in a text ``(n,)``, the last place before it that follows the same `length`
    tokens; -1 if there is none."""
    found = np.full(len(tokens), -1)
    if len(tokens) <= length:
        return found

    # What stands before each place but the first, as a number, made longer token by token.
    context = np.zeros(len(tokens) - length, np.int64)
    for i in range(length):
        keys = context * (tokens.max() + 1) + tokens[i : i + len(context)]
        _, context = np.unique(keys, return_inverse=True)

    # Sorted by that number, places after the same tokens are neighbours, in the order of the text.
    order = np.argsort(context, kind="stable")
    places = length + order
    is_same = context[order[1:]] == context[order[:-1]]
    found[places[1:][is_same]] = places[:-1][is_same]
    return found


def _within_limits(bits: float) -> float:
    """As in :class:`Predictability`."""
    return float(min(max(bits, 0.1), 8.0))


# As a trained model sees it


def seen_by(
    found: FoundModel,
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
    glass = found.glass
    affordable = _OPERATIONS / (2 * glass.num_parameters)
    most = int(min(max(affordable, _FEWEST_TOKENS), _MOST_TOKENS))
    sample = validation.at_most(_CHARACTERS_A_TOKEN * most, _STRETCH)
    pieces = [ids for _, ids in encode(found.tokenizer, sample)]
    tokens = np.concatenate([np.zeros(0, np.int64), *pieces])  # (n,)
    if len(tokens) < 2:
        return None

    # In an order in which the first few windows are from all over the sample too.
    length = min(glass.context_length, _WINDOW)
    windows = list(windows_side_by_side(tokens, length, most))
    order = sorted(range(len(windows)), key=lambda i: i * _GOLDEN % 1.0)

    byte_lengths = np.array(found.tokenizer.byte_lengths())  # (vocab_size,)
    end = clock() + _LIMIT
    nats = 0.0
    size = 0
    for i in order:
        inputs, targets = windows[i]  # each (T,)
        logits = glass(inputs[None])[0]  # (T, vocab_size)
        nats -= float(nats_of(logits, targets).sum())
        size += int(byte_lengths[targets].sum())
        if clock() > end:
            break

    return replace(
        text,
        loss_before=nats / math.log(2) / max(size, 1),
        bytes_per_token=float(byte_lengths[tokens].mean()),
    )
