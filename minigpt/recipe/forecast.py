"""What loss a training should reach, from what is known of its text and of its model.

docs/decisions.md says how these formulas were found, and on which texts they were tried.
"""

from ..config import GPTConfig
from . import rules
from .text_stats import SAMPLED, Predictability, TextStats

_MOST_MORE = 100.0  # times as much text as in the sample: beyond that nothing was tried

# Of a model that is trained further
_LOWEST = 0.1  # bits per byte: less is left of a text that hardly differs from place to place
_TOGETHER = 4.0  # the lower it is, the more what a model knew adds to what the text teaches it

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


def expected_after_tokens(
    trained_tokens: float, text: TextStats, model: GPTConfig, init: str | None
) -> float | None:
    """The bits per byte to expect of a model on the validation text, trained on so many tokens;
    None if it begins with a model, `init`, whose loss on the text is not known."""
    read = trained_tokens * rules.bytes_per_token(text, model.vocab_size)
    work = trained_tokens * rules.parameters_to_train(model)
    if text.loss_before is not None:
        return expected_after_tuning(text.loss_before, text, read=read, work=work)
    if init is not None:
        return None
    return expected_bits_per_byte(text.predictability, known=text.size, read=read, work=work)


def expected_bits_per_byte(
    predictability: Predictability, known: int, read: float, work: float
) -> float:
    """What a run should reach on a text with `known` bytes to train on, 8 at most.

    It reads `read` bytes, perhaps some of them more than once; `work` is the parameters times the
    tokens trained on. A model ends below what counting and copying give on a sample, the more so
    the more of the text there is beyond the sample; and above it by what it has not yet learned.
    """
    sample = max(min(known, SAMPLED), 1)
    times_the_sample = max(min(known, read) / sample, 1.0)
    more = min(times_the_sample, _MOST_MORE)
    learned = 0.73 * predictability.copying * more**-0.11
    to_learn = 0.21 * predictability.counting * (1e12 / max(work, 1.0)) ** 0.15
    return min(learned + to_learn, 8.0)


def expected_after_tuning(before: float, text: TextStats, read: float, work: float) -> float:
    """What a model should reach that predicts the text with `before` bits per byte now.

    It reads `read` bytes, perhaps some of them more than once; `work` is the parameters times the
    tokens trained on. All figures are bits per byte of the validation text.

    It ends below the lower of two figures: `before`, and what a new model reaches that is trained
    like this. The closer the two are, the farther below.
    """
    learned = expected_bits_per_byte(text.predictability, known=text.size, read=read, work=work)
    known = max(before, _LOWEST)
    both = known**-_TOGETHER + learned**-_TOGETHER
    return min(both ** (-1.0 / _TOGETHER), 8.0)


def is_like_those_tried(predictability: Predictability, known: int) -> bool:
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
    share_left = predictability.copying / predictability.counting
    found = (predictability.counting, share_left)
    return all(
        min(tried) / beyond <= figure <= max(tried) * beyond
        for figure, tried, beyond in zip(found, zip(*alike, strict=True), _BEYOND, strict=True)
    )
