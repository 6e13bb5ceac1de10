"""The dial: what to train on a text, on this machine, in so many minutes.

A pure function of what is known of the text, how fast the machine is, and what was asked for.
Whatever the user sets goes before whatever is planned here. The rules of thumb were tried on
texts of 20 KB to 1 MB; docs/decisions.md holds the figures.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from .. import UserError
from ..config import GPTConfig, TrainConfig
from ..model import count_parameters, flops_per_token
from .compilation import MINUTES_TO_PAY
from .speed import Speed

_SHAPES = ((64, 3), (128, 4), (192, 6), (256, 8), (384, 8), (512, 8), (768, 12))  # width, layers
_SMALLEST_VOCABULARY, _LARGEST_VOCABULARY = 320, 16_384
_BYTES_PER_TOKEN_KIND = 512
_FEWEST_TOKENS = 0.19  # that a parameter needs to learn, or the model is half-trained,
_MORE_TOKENS = 0.1  # more with each million of parameters,
_MOST_TOKENS = 20.0  # but that always suffice (Hoffmann et al. 2022)
_PARAMETERS_PER_TOKEN = 20.0  # of the text; a larger model knows it by heart at once
_BATCH_SIZES = (8, 16, 32, 64, 128, 256)  # in windows of a short context
_LONG = 1e6  # tokens to train on, from which a context twice as long pays
_MANY_STEPS = 6_000  # with more, the batch is doubled
_PASSES = 30.0  # over the text by a model of width 128, after which more of them teach nothing
_FEWEST_PASSES = 10.0  # at which to end, however wide the model
_MOST_DROPOUT = 0.3
_OFTEN = 3.2  # passes over the text by a model of width 128; from then on
_RESPELLING = 0.15  # of the tokens are respelled
_DROPOUT = 0.1  # for each doubling of passes times width
_COMPILED = 0.8  # of the time of a step, once it is compiled
_GETTING_READY = 8.5  # seconds, those that training keeps for its end included
_TRAINING = 0.9  # share of the time; the rest is evaluation and files
_EVALUATING = 0.05  # share of the time,
_FEW_EVALUATIONS = 4  # but at least so many evaluations
_SAMPLING = 0.3  # seconds that an evaluation takes besides, for its sample and files


@dataclass(frozen=True)
class TextStats:
    """What is known of a text.

    Attributes:
        size: bytes of the part to train on.
        validation: bytes of the part to validate on.
        tokenizer: as in TextConfig.
        ngram_bits_per_byte: bits a byte that predictions by counting take, for the end of a sample.
    """

    size: int
    validation: int = 0
    tokenizer: str = "bpe"
    ngram_bits_per_byte: float = 2.5


@dataclass(frozen=True)
class Plan:
    """Settings for a run, and what is to be expected of it.

    Attributes:
        model: the shape.
        batch_size: sequences in a step.
        passes: over the text, after which the run ends even if time is left.
        respelling: share of the tokens.
        warmup_context: tokens of the context until near the end.
        evaluations: on the validation text.
        tokens: of the training text, roughly.
        steps: that the time or the passes allow, roughly.
        seconds: that these take, roughly.
        bits_per_byte: that the run will reach on the validation text, roughly.
        ends_early: whether the text will have been read often enough before the time is over.
        limit: what keeps the model from being larger.
    """

    model: GPTConfig
    batch_size: int
    max_epochs: float
    token_split_prob: float
    warmup_context: int
    num_evals: int
    tokens: int
    steps: int
    seconds: float
    bits_per_byte: float
    ends_early: bool
    limit: Literal["time", "text", "settings"] = "settings"

    @property
    def trained_tokens(self) -> int:
        """Tokens in all steps together."""
        return self.steps * self.batch_size * self.model.context_length

    @property
    def epochs(self) -> float:
        """How often the text is read."""
        return self.trained_tokens / self.tokens


def make_plan(text: TextStats, speed: Speed, given: Mapping[str, Any], processes: int = 1) -> Plan:
    """The largest model that the time suffices to train and the text to feed.

    Args:
        text: to train on.
        speed: of the machine.
        given: fields of TextConfig, GPTConfig and TrainConfig that are settled, such as minutes.
        processes: that share each step, on as many such machines.

    Raises:
        UserError: if no model can be made with what is given.
    """
    plans, problem = [], None
    for width, layers in _SHAPES:
        try:
            plans.append(_plan_of_shape(width, layers, text, speed, given, processes))
        except UserError as error:  # heads, say, that do not divide this width
            problem = problem or error
    if not plans:
        raise problem or UserError("no model can be planned")
    best = plans[0]
    for larger in plans[1:]:
        parameters = count_parameters(larger.model)
        if parameters == count_parameters(best.model):  # all of its shape is given
            continue
        if larger.trained_tokens < _tokens_needed(parameters):
            return replace(best, limit="time")
        if larger.tokens * _PARAMETERS_PER_TOKEN < parameters:
            return replace(best, limit="text")
        best = larger
    return best


def _tokens_needed(parameters: int) -> float:
    """How many to train on, for this model to become better than a smaller one."""
    return min(_FEWEST_TOKENS + _MORE_TOKENS * parameters / 1e6, _MOST_TOKENS) * parameters


def _plan_of_shape(
    width: int,
    layers: int,
    text: TextStats,
    speed: Speed,
    given: Mapping[str, Any],
    processes: int,
    is_long: bool = True,
) -> Plan:
    """With a long context, or a short one if the time does not suffice for that."""
    is_long = is_long and "context_length" not in given
    vocab_size = given.get("vocab_size") or plan_vocabulary(text)
    tokens = max(2, round(text.size / _bytes_per_token(text.tokenizer, vocab_size)))
    shape: dict[str, Any] = {
        "vocab_size": vocab_size,
        "context_length": plan_context(tokens, text.tokenizer, is_long),
        "emb_dim": width,
        "num_layers": layers,
    }
    shape |= {f.name: given[f.name] for f in fields(GPTConfig) if f.name in given}
    shape.setdefault("num_heads", _heads(shape["emb_dim"]))
    model = GPTConfig(**shape)
    passes = given.get("max_epochs") or plan_max_epochs(model.emb_dim)
    for batch_size in _batch_sizes(given, processes, is_long):
        seconds = speed.seconds(model, batch_size * model.context_length // processes)
        seconds *= _COMPILED if _is_compiled(given) else 1.0
        most = passes * tokens / (batch_size * model.context_length)
        in_time = _steps_in_time(seconds, given)
        ends_early = most < in_time and given.get("steps") is None
        steps = max(round(most if ends_early else in_time), 1)
        if steps <= _MANY_STEPS:
            break
    trained = steps * batch_size * model.context_length
    if is_long and trained < _LONG:
        return _plan_of_shape(width, layers, text, speed, given, processes, is_long=False)
    times = trained / tokens
    respelling = plan_token_split_prob(times, model.emb_dim, text.tokenizer)
    respelling = given.get("token_split_prob", respelling)
    if "dropout" not in given:
        dropout = plan_dropout(times, model.emb_dim, respelling)
        model = GPTConfig(**shape, dropout=dropout)
    bits = expected_bits_per_byte(text.ngram_bits_per_byte, trained * count_parameters(model))
    evaluations = _evaluations(text, model, speed, given, processes)
    return Plan(
        model,
        batch_size,
        passes,
        respelling,
        plan_warmup_context(model, given),
        evaluations,
        tokens,
        steps,
        steps * seconds,
        bits,
        ends_early,
    )


def _is_compiled(given: Mapping[str, Any]) -> bool:
    """Whether steps will be compiled, as far as the time says."""
    chosen = given.get("compile", TrainConfig.compile)
    long = given.get("minutes", TrainConfig.minutes) >= MINUTES_TO_PAY
    return chosen == "on" or (chosen == "auto" and long)


def _batch_sizes(given: Mapping[str, Any], processes: int, is_long: bool) -> tuple[int, ...]:
    """Those to choose among, the smallest first."""
    if "batch_size" in given:
        return (given["batch_size"],)
    sizes = _BATCH_SIZES if given.get("steps") is None else (TrainConfig.batch_size,)
    short_windows = 2 if is_long else 1  # in each window
    return tuple(-(-size // short_windows // processes) * processes for size in sizes)


def _steps_in_time(seconds: float, given: Mapping[str, Any]) -> float:
    """How many steps of so many seconds the time allows, or how many are wanted."""
    if given.get("steps") is not None:
        return given["steps"]
    time = 60 * given.get("minutes", TrainConfig.minutes) - _GETTING_READY
    return max(_TRAINING * time / seconds, 1.0)


def _evaluations(
    text: TextStats,
    model: GPTConfig,
    speed: Speed,
    given: Mapping[str, Any],
    processes: int,
) -> int:
    """As many as usual, or fewer where they would take too much of the time."""
    usual = given.get("num_evals", TrainConfig.num_evals)
    if "num_evals" in given or given.get("steps") is not None:
        return usual
    tokens = text.validation / _bytes_per_token(text.tokenizer, model.vocab_size)
    tokens = min(tokens, given.get("eval_tokens", TrainConfig.eval_tokens))
    forward = tokens * flops_per_token(model, training=False) / (speed.flops * processes)
    fitting = _EVALUATING * 60 * given.get("minutes", TrainConfig.minutes) / (forward + _SAMPLING)
    return int(min(max(fitting, _FEW_EVALUATIONS), usual))


def plan_vocabulary(text: TextStats) -> int:
    """Size of a vocabulary: for BPE about one token for 512 bytes of text, a power of two.

    A vocabulary that is large for its text leaves tokens too rare to be learned; one that is
    small wastes context and computation on spelling. Other tokenizers bring their own.
    """
    if text.tokenizer != "bpe":
        return 128 if text.tokenizer == "char" else 50_257
    size = 2 ** round(math.log2(max(text.size, 1) / _BYTES_PER_TOKEN_KIND))
    return min(max(size, _SMALLEST_VOCABULARY), _LARGEST_VOCABULARY)


def plan_context(tokens: int, tokenizer: str, is_long: bool) -> int:
    """How far back the model looks: some 300 characters or 600, less in a short text."""
    context_length = (256 if tokenizer == "char" else 128) * (2 if is_long else 1)
    while context_length > 8 and context_length * 16 > tokens:
        context_length //= 2
    return max(1, min(context_length, tokens - 1))


def plan_warmup_context(model: GPTConfig, given: Mapping[str, Any]) -> int:
    """Half of the context until near the end: as much is learned in less time.

    All of it where each position is learned by itself, or by a model that has learned before.
    """
    halved = model.architecture == "qwen3" and given.get("init") is None
    usual = max(model.context_length // 2, 1) if halved else model.context_length
    return given.get("warmup_context") or usual


def plan_max_epochs(width: int) -> float:
    """How often a text is worth reading; the wider the model, the sooner it knows it by heart."""
    return max(_PASSES * 128 / width, _FEWEST_PASSES)


def plan_dropout(passes: float, width: int, respelling: float = 0.0) -> float:
    """The more often a text is read by the wider a model, the more is hidden of it.

    Nothing up to some 5 passes by a model of width 128, or 9 where the text is respelled each
    time; in steps of 0.05, since each other dropout is compiled anew.
    """
    enough = 8.0 if respelling else 4.0
    dropout = _DROPOUT * math.log2(max(passes * width / 128, 1e-9) / enough)
    return min(max(round(0.05 * round(dropout / 0.05), 2), 0.0), _MOST_DROPOUT)


def plan_token_split_prob(passes: float, width: int, tokenizer: str) -> float:
    """A text that is read often is read in other tokens each time; characters have no others.

    The narrower the model, the later: it has enough to learn as it is.
    """
    is_often = passes * width / 128 >= _OFTEN
    return _RESPELLING if is_often and tokenizer != "char" else 0.0


def expected_bits_per_byte(ngram_bits_per_byte: float, work: float) -> float:
    """What a run will reach on a text, judged by runs on six texts (docs/decisions.md).

    Args:
        ngram_bits_per_byte: bits a byte that predictions by counting take for the text.
        work: parameters times tokens trained on, a measure of the computation.
    """
    return min(ngram_bits_per_byte * (0.78 + 0.05 * (1e12 / max(work, 1.0)) ** 0.4), 8.0)


def _bytes_per_token(tokenizer: str, vocab_size: int) -> float:
    """Of an English text, roughly."""
    if tokenizer == "char":
        return 1.0
    doublings = math.log2(max(vocab_size, 256) / 256)  # of an alphabet of bytes
    return min(1.0 + 1.15 * doublings**0.6, 4.5)


def _heads(emb_dim: int) -> int:
    """As many heads of 64 or more as divide the width evenly: few wide heads compute faster.

    Rotary positions turn pairs of components, so that a head needs an even size.
    """
    at_most = max(emb_dim // 64, 1)
    return next((n for n in range(at_most, 0, -1) if emb_dim % (2 * n) == 0), 1)
