"""The rules of a plan, each a function of a few numbers that says why it is so. Where a plan prints
the reason, the rule returns it with the value.

They were tried on texts of 3 KB to 200 MB, see docs/decisions.md.
"""

import math
from dataclasses import replace
from typing import NamedTuple, TypeVar

from tqdm import tqdm

from ..config import SMALLEST_VOCABULARY, GPTConfig, TrainConfig, count_parameters
from .text_stats import TextStats

Number = TypeVar("Number", int, float)


class Choice(NamedTuple):
    """What a rule chooses, and why: the end of a sentence, such as ", because ..."."""

    value: int
    why: str


class Size(NamedTuple):
    """How large the blocks of a model are together."""

    emb_dim: int
    num_layers: int


SIZES = (
    Size(64, 3),
    Size(96, 4),
    Size(128, 4),
    Size(192, 6),
    Size(256, 8),
    Size(384, 8),
    Size(512, 8),
    Size(768, 12),
)
BATCH_SIZES = (8, 16, 32, 64, 128, 256)  # in windows of a short context
MANY_STEPS = 6_000  # with more, the batch is doubled
CLEARLY_MORE = 1.4  # times the tokens: a batch twice as large pays off on a GPU that was idle
MANY_TOKENS = 1_000_000  # to train on: with as many, a context twice as long pays off
PARAMETERS_PER_TOKEN = 20.0  # of the text; a larger model soon knows it by heart

# Where a text can be copied, a larger model becomes the better one after so many times the tokens.
_EASIER_COPYING = 2.8
LARGEST_VOCABULARY = 16_384
_LONG_TOKENS = 4_096  # a vocabulary whose tokens let a context reach far
_QUICK = 8_000_000  # bytes of a text that are prepared in three seconds


# The model


def parameters_to_train(model: GPTConfig) -> int:
    """Parameters without those of a separate head, which starts from counts of the text."""
    return count_parameters(replace(model, tie_embeddings=True))


def tokens_needed(parameters: int, repeats_afar: bool) -> float:
    """How many tokens to train on, for a model to become better than a smaller one.

    For each parameter: about 2 in a model of 0.2 million, 0.4 in one of 2.5 million, and from there
    on more, up to the 20 that always suffice (Hoffmann et al. 2022). A text that repeats itself far
    away is copied, for which few parameters do.
    """
    of_a_parameter = min(0.18 + 0.09 * parameters / 1e6, 20.0)
    tokens = max(3e5 + 0.3 * parameters, of_a_parameter * parameters)
    return _EASIER_COPYING * tokens if repeats_afar else tokens


def plan_heads(emb_dim: int) -> int:
    """How many heads. Each has 64 components or more, since few wide heads compute faster, and an
    even number of components, since rotary positions turn two together."""
    most = max(emb_dim // 64, 1)
    for num_heads in range(most, 1, -1):
        if emb_dim % (2 * num_heads) == 0:
            return num_heads
    return 1


def vocabulary_of_words(size: int) -> int:
    """Size of a BPE vocabulary for so many bytes of text: about 2 sqrt(bytes), a power of two.

    The different words of a text grow like that ("Information Retrieval", Heaps 1978). With more,
    some tokens are too rare to be learned; with fewer, computation is wasted on spelling.
    """
    wanted = 2 ** round(math.log2(2 * max(size, 1) ** 0.5))
    return clamped(wanted, SMALLEST_VOCABULARY, LARGEST_VOCABULARY)


def plan_vocabulary(text: TextStats, model: GPTConfig) -> Choice:
    """Size of a vocabulary: for BPE that of its words, but no more than the model is worth.

    The table of embeddings may have as many parameters as the blocks. It may have more, for 4,096
    tokens, only where a text repeats itself far away: longer tokens let a context reach farther
    back. Other tokenizers have a vocabulary of a given size.

    `model` has a vocabulary of 1.
    """
    if text.tokenizer == "char":
        return Choice(128, "")  # a guess: the characters are counted later

    of_words = vocabulary_of_words(text.size)
    most = count_parameters(model) // model.emb_dim - 1  # as many as the blocks have
    usual = _vocabulary_within(most, of_words)
    size = usual
    if text.repeats_afar:
        size = _vocabulary_within(max(most, _LONG_TOKENS), of_words)

    if size > usual:
        why = ": long ones, because the text repeats itself far away"
    elif size == SMALLEST_VOCABULARY:
        why = ", the fewest that are planned"
    elif size < of_words:
        why = f"; {2 * size:,} would need more parameters than the layers have"
    elif size == LARGEST_VOCABULARY:
        why = ", the most that are planned"
    else:
        extent = tqdm.format_sizeof(text.size, "B")
        why = f"; more would be too rare in {extent} of text to be learned"
    return Choice(size, why)


def _vocabulary_within(most: int, of_words: int) -> int:
    """The size for the words of a text, or the largest power of two that is not above `most`."""
    within_most = 2 ** int(math.log2(max(most, 1)))
    return max(min(of_words, within_most), SMALLEST_VOCABULARY)


def bytes_per_token(text: TextStats, vocab_size: int) -> float:
    """How many bytes of the text a token has. If that was not measured, it is guessed, of English:
    2.2 in a vocabulary of 512, 3.2 of 2,048, 4.5 at most."""
    if text.bytes_per_token is not None:
        return text.bytes_per_token
    if text.tokenizer == "char":
        return text.bytes_per_character
    doublings = math.log2(max(vocab_size, 256) / 256)  # of an alphabet of bytes
    return min(1.0 + 1.15 * doublings**0.6, 4.5)


def short_context(tokenizer: str) -> int:
    """The tokens of a short context: about 300 characters."""
    return 256 if tokenizer == "char" else 128


def plan_context(tokens: int, tokenizer: str, times: int) -> int:
    """How far back the model looks, in tokens: `times` a short context. The context is to be a
    sixteenth of the text at most, so that it is shorter for a short text."""
    context_length = short_context(tokenizer) * times
    while context_length > 8 and context_length * 16 > tokens:
        context_length //= 2
    return clamped(context_length, 1, max(tokens - 1, 1))


# The training


def plan_max_epochs(width: int) -> float:
    """How often a text is worth reading; the wider the model, the sooner it knows it by heart."""
    return max(30.0 * 128 / width, 10.0)


def reads_clearly_more(tokens: int, with_half_the_batch: int) -> bool:
    """Whether a batch twice as large is worth that there are fewer steps: it reads clearly more of
    the text in the same time, since steps on half of it leave a GPU idle. Where the text, and not
    the time, ends the training it does not, and small steps teach more."""
    return tokens >= CLEARLY_MORE * with_half_the_batch


def plan_warmup_context(model: GPTConfig, is_pretrained: bool) -> int:
    """Half of the context until near the end, which teaches as much in less time.

    The whole context if each position is learned by itself, and for a pretrained model.
    """
    if model.positions == "learned" or is_pretrained:
        return model.context_length
    return max(model.context_length // 2, 1)


def plan_learning_rate(width: int, is_pretrained: bool, filling: float = 1.0) -> float:
    """The peak. In a wide model more weights act together, so that each must move less. A tenth of
    it for a pretrained model.

    With `filling` times the usual batch there are fewer steps, on gradients that vary less: each
    may move the weights by the square root of that more.
    """
    rate = TrainConfig.learning_rate * (128 / max(width, 64)) ** 0.5
    rate *= filling**0.5
    if is_pretrained:
        rate /= 10
    return round(rate, 6)


def evals_in_steps(steps: int) -> int:
    """How many evaluations there are in a given number of steps: one for every ten, up to the usual
    number."""
    return clamped(steps // 10, 1, TrainConfig.num_evals)


def plan_max_characters(size: int, to_read: float) -> int | None:
    """How many characters of a long text to prepare: 1.5 times as many as are read, or as many as
    are prepared quickly if these are more. None: all of them.

    `size` and `to_read` are in bytes; a text has about as many bytes as characters.
    """
    enough = round(max(1.5 * to_read, _QUICK))
    return enough if enough < size else None


# Against learning by heart


def plan_token_split_prob(epochs: float, width: int, tokenizer: str) -> float:
    """Tokens are split if the text is read often, so that it differs each time.

    For a narrow model a text has to be read more often before its tokens are split: it has enough
    to learn without that. Characters stay whole.
    """
    is_read_often = epochs * width / 128 >= 3.2
    return 0.15 if is_read_often and tokenizer != "char" else 0.0


def plan_dropout(epochs: float, width: int, is_helped: bool = False) -> float:
    """0.1 for each doubling of epochs or width beyond what does no harm, in steps of 0.05, 0.3 at
    most.

    It is 0 up to about 5 epochs at width 128, or 9 where it `is_helped`: tokens are split, or the
    weights that are kept lie near those of a model that a training has begun with.
    """
    harmless = 8.0 if is_helped else 4.0  # epochs at width 128
    doublings = math.log2(max(epochs * width / 128, 1e-9) / harmless)
    in_steps = round(0.05 * round(0.1 * doublings / 0.05), 2)
    return clamped(in_steps, 0.0, 0.3)


def plan_tied(epochs: float, model: GPTConfig) -> bool:
    """Whether one table is embedding and head: if a text is read often, and with learned positions,
    as in GPT-2.

    A separate head begins with counts of the text (see head_init) but soon knows it by heart.
    """
    return model.positions == "learned" or epochs >= 10


def plan_weight_decay(epochs: float, width: int, is_tied: bool) -> float:
    """0.1 for each time that the text is read, at width 128; at most 0.5, or 1 with one table.

    To know a text by heart takes large weights, which decay most.
    """
    most = 1.0 if is_tied else 0.5
    return round(clamped(0.1 * epochs * width / 128, 0.1, most), 2)


def clamped(number: Number, least: Number, most: Number) -> Number:
    """The number, or the limit that it exceeds."""
    return min(max(number, least), most)
