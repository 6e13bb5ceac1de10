"""The recipe for training a model further: how to train one that already knows something.

Its rules follow the loss that the model has on the text before the first step, in bits per byte:
the farther the text is from what the model has read, the more its weights may move.
"""

from ..config import GPTConfig, Settings
from ..training.messages import rough
from . import rules
from .text_stats import TextStats

_NEAR = 2.0  # bits per byte, before the first step, of a text like those that the model has read
_FAR = 3.0  # and of one that has little in common with them
_RATES = (1e-3, 3e-3)  # a good peak for each of them, at width 256
_WINDOWS = 4  # that the text has at least, or the context is shortened
_FOREIGN = 1.4  # times the loss a new model ends with: from there on the model knows too little
_READINGS = 0.5  # of those that are worthwhile for a new model, which has more to learn from each
_WEIGHT_DECAY = 0.1  # in so few steps it makes no difference
_CLEARLY = 0.98  # times: begun with a model, a training has to be expected to end that much lower


def tuned(settings: Settings, text: TextStats, model: GPTConfig) -> Settings:
    """The settings with which to train a model further on a text, where they are open: the text as
    the model sees it. The batch is that of a new model."""
    assert text.loss_before is not None
    tokens = round(text.size / rules.bytes_per_token(text, model.vocab_size))
    context_length = tuning_context(tokens, model.context_length)
    why = f", that of {settings['init']}"
    if context_length < model.context_length:
        why = f", because the text has only {rough(max(2, tokens))}"

    settings = settings.planned(why, context_length=context_length)
    return settings.planned(
        learning_rate=tuning_rate(text.loss_before, model.emb_dim),
        warmup_context=context_length,
        max_epochs=_READINGS * rules.plan_max_epochs(model.emb_dim),
        weight_decay=_WEIGHT_DECAY,
        token_split_prob=0.0,  # unless a model began with split tokens, they are harder to read
    )


def tuning_rate(before: float, width: int) -> float:
    """The peak: larger for a text that is far from those that the model has read.

    Near them any rate from 3e-4 to 1.5e-3 ends within 1%, since the weights that are kept lie
    between the first and the trained ones.
    """
    low, high = _RATES
    distance = rules.clamped((before - _NEAR) / (_FAR - _NEAR), 0.0, 1.0)
    rate = low * (high / low) ** distance * (256 / max(width, 64)) ** 0.5
    return float(f"{rate:.3g}")


def tuning_context(tokens: int, longest: int) -> int:
    """As far back as the model looks, or less in a text that has few windows of that length."""
    context_length = longest
    while context_length > 8 and context_length * _WINDOWS > tokens:
        context_length //= 2
    return int(rules.clamped(context_length, 1, max(tokens - 1, 1)))


def knows_language(before: float, from_nothing: float) -> bool:
    """Whether a text is like what a model has read, by its loss before the first step and that of a
    new model at the end. If not, as with another language, there is little to build on."""
    return before < _FOREIGN * from_nothing


def is_worthwhile(with_model: float, from_nothing: float) -> bool:
    """Whether a training should begin with a model, by the bits per byte that are expected of it
    and of a new model."""
    return with_model < _CLEARLY * from_nothing
