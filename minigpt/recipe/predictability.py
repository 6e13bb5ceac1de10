"""How well a text can be predicted, found out in half a second before anything is learned, and what
loss a run on it should therefore reach.

Two figures tell what a text is like, in bits per byte of its validation text: what counting gives
that has seen a sample of the training text, and what it gives if it may also copy, as a model does,
from a little further back. docs/decisions.md says how they were chosen.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.corpus import Part
from ..data.counting import CountingModel
from ..tokenizer.bpe import train_bpe

_KNOWN = 640_000  # characters of the training text in its sample, at most
_COUNTED = 4_000_000  # and where counting is to be as good as at the end of a run
_NEW = 100_000  # and of the validation text
_PIECE = 2_048  # characters of each piece of a sample
_LEARNED = 300_000  # characters that the samples' tokens are learned from
_VOCAB_SIZE = 1_024  # of these tokens
_REACH = 768  # tokens back from which may be copied: as many characters as 512 of a run
_MATCHES = (6, 4, 3, 2, 1)  # tokens that have to be the same before what is copied
_DOUBT = 2.0  # places at which copying is taken to have failed, besides those that were seen
_ROUNDS = 10  # of expectation and maximisation
_MOST_MORE = 100.0  # times as much text as in the sample: beyond that nothing was tried

# The texts that the forecast was fitted to: bytes to train on, what counting and copying give.
_TRIED = (
    (5_500, 5.151, 4.590),
    (18_431, 2.453, 2.407),
    (185_859, 1.891, 1.836),
    (305_048, 1.617, 0.650),
    (341_715, 2.169, 2.139),
    (536_742, 0.817, 0.758),
    (787_304, 0.746, 0.570),
    (1_003_855, 2.255, 2.081),
    (1_283_626, 1.923, 1.886),
    (1_843_982, 1.516, 1.503),
    (2_016_471, 1.320, 1.179),
    (2_262_928, 1.732, 1.428),
    (4_500_000, 2.107, 1.935),
    (18_039_596, 2.395, 1.578),
)
_AS_LARGE = 4.0  # times larger or smaller: texts to compare with
# By which factors a text may lie beyond these: in what counting gives, and in the share of it that
# copying leaves. Small tables on which counting gives what it gives on prose, but with a share of
# 0.91 where prose has 0.98, end a quarter lower.
_BEYOND = (1.10, 1.05)

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Predictability:
    """Bits per byte of a text, from 0.1 to 8."""

    counting: float = 2.2  # by a CountingModel
    copying: float = 2.1  # by one that may also copy what stands a little before


def measure_predictability(training: Part, validation: Part) -> Predictability:
    """Predict a sample of the validation text, knowing a sample of the training text.

    The samples come from all over the texts. Their tokens are those of a small vocabulary, learned
    for this alone.
    """
    counted = _count(training, validation, _KNOWN)
    p_with_copies = with_copies(counted.tokens, np.exp(counted.log_p))  # (n,)
    by_copying = -np.log2(p_with_copies).sum() / counted.size
    return Predictability(counted.bits_per_byte, _within_limits(by_copying))


def bits_by_counting(training: Part, validation: Part) -> float:
    """Bits per byte of the validation text by counting that knows all of the training text, or
    several megabytes of it: what a run is compared with at its end. It takes seconds."""
    return _count(training, validation, _COUNTED).bits_per_byte


@dataclass(frozen=True)
class _Counted:
    """What counting makes of a sample of the validation text."""

    tokens: Ids  # (n,)
    log_p: NDArray[np.float64]  # (n,), in nats
    size: int  # bytes

    @property
    def bits_per_byte(self) -> float:
        return _within_limits(-self.log_p.sum() / np.log(2) / self.size)


def _count(training: Part, validation: Part, most: int) -> _Counted:
    """Count at most so many characters of the training text."""
    pieces = [piece.text for piece in training.at_most(most, _PIECE).pieces()]
    known = "".join(pieces)
    new = "".join(piece.text for piece in validation.at_most(_NEW, _PIECE).pieces())

    from_all_over = "".join(pieces[::2])
    tokenizer = train_bpe([from_all_over[:_LEARNED]], _VOCAB_SIZE)
    known_tokens = np.array(tokenizer.encode(known), np.int64)
    tokens = np.array(tokenizer.encode(new), np.int64)  # (n,)

    counting = CountingModel(known_tokens, tokenizer.vocab_size)
    log_p = counting.log_probabilities(tokens)  # (n,), in nats
    return _Counted(tokens, log_p, size=max(len(new.encode()), 1))


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


def expected_bits_per_byte(text: Predictability, known: int, read: float, work: float) -> float:
    """What a run should reach on a text with `known` bytes to train on, 8 at most.

    It reads `read` bytes, perhaps some of them more than once; `work` is the parameters times the
    tokens trained on. A model ends below what counting and copying give on a sample, the more so
    the more of the text there is beyond the sample; and above it by what it has not yet learned.
    """
    sample = max(min(known, _KNOWN), 1)
    times_the_sample = max(min(known, read) / sample, 1.0)
    more = min(times_the_sample, _MOST_MORE)
    learned = 0.73 * text.copying * more**-0.11
    to_learn = 0.21 * text.counting * (1e12 / max(work, 1.0)) ** 0.15
    return min(learned + to_learn, 8.0)


def is_like_those_tried(text: Predictability, known: int) -> bool:
    """Whether the forecast was tried on texts like one with `known` bytes to train on: what
    counting gives, and how much less copying takes, lie among those of texts about as large. Of
    others nothing is known, such as small ones in which much is repeated."""
    smallest, largest = _TRIED[0][0], _TRIED[-1][0]
    size = min(max(known, smallest), largest)
    alike = [
        (counting, copying / counting)
        for other, counting, copying in _TRIED
        if size / _AS_LARGE <= other <= size * _AS_LARGE
    ]
    found = (text.counting, text.copying / text.counting)
    return all(
        min(tried) / beyond <= figure <= max(tried) * beyond
        for figure, tried, beyond in zip(found, zip(*alike, strict=True), _BEYOND, strict=True)
    )


def _within_limits(bits: float) -> float:
    """As in :class:`Predictability`."""
    return float(min(max(bits, 0.1), 8.0))
