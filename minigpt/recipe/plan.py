"""The dial: what to train on a text, on this machine, in the minutes that are given.

`make_plan` is a pure function of the text, the speed of the machine and what the user has set,
which always wins. The rules were tried on texts of 3 KB to 200 MB, see docs/decisions.md.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import torch

from .. import UserError
from ..config import (
    PARTS,
    SMALLEST_VOCABULARY,
    GPTConfig,
    TextConfig,
    TrainConfig,
    check_given,
    count_parameters,
)
from ..data.corpus import Part
from ..data.lengths import check_short_text
from ..data.source import Source, split
from ..model import flops_per_token
from ..runs.devices import find_device
from ..runs.find import FoundModel
from ..tokenizer import CharacterTokenizer
from ..training.messages import duration, say
from ..training.precision import choose_precision
from ..training.workers import can_share
from . import induction
from .predictability import Predictability, expected_bits_per_byte, measure_predictability
from .speed import Speed, measure_speed
from .start import starting_point

_WIDTHS, _LAYERS = (64, 96, 128, 192, 256, 384, 512, 768), (3, 4, 4, 6, 8, 8, 8, 12)
_PARAMETERS_PER_TOKEN = 20.0  # of the text; a larger model soon knows it by heart
_BATCH_SIZES = (8, 16, 32, 64, 128, 256)  # in windows of a short context
_LONG = 1e6  # tokens to train on; with more, a context twice as long pays off
_MANY_STEPS = 6_000  # with more, the batch is doubled
_SAMPLE = 320_000  # characters of a text in which repetitions are looked for
_NEAR, _FAR = 256, 2_048  # characters that most of a short and of a long context see
_MUCH = 0.06  # of the characters repeat what is far away: programs have 0.13, prose 0.02
_QUICK = 8_000_000  # bytes of a text that are prepared in three seconds


@dataclass(frozen=True)
class TextStats:
    """What is known of a text."""

    size: int  # bytes of text to train on
    validation: int = 0  # bytes of text to validate on
    tokenizer: str = "bpe"  # as in TextConfig
    predictability: Predictability = field(default_factory=Predictability)
    repeats_afar: bool = False  # as programs do, and the model can copy it


@dataclass(frozen=True)
class Plan:
    """Settings, under the names of TrainConfig, what to expect, and what this follows from."""

    model: GPTConfig
    batch_size: int
    max_epochs: float
    token_split_prob: float
    learning_rate: float
    weight_decay: float
    warmup_context: int
    num_evals: int
    num_workers: int
    max_characters: int | None  # of the text that are used, if it is far longer
    tokens: int  # of the training text; this and what follows are rough
    steps: int  # that fit into the time or the epochs
    seconds: float  # that these take
    bits_per_byte: float  # that the run should reach on the validation text
    ends_early: bool  # whether the epochs are over before the time is
    text: TextStats
    speed: Speed | None  # None if all that depends on it was given

    @property
    def trained_tokens(self) -> int:
        """Tokens in all steps together."""
        return self.steps * self.batch_size * self.model.context_length

    @property
    def epochs(self) -> float:
        """How often the text is read."""
        return self.trained_tokens / self.tokens


# What a plan is made from


def plan_run(
    source: Source, text: dict[str, Any], model: dict[str, Any], training: dict[str, Any]
) -> Plan:
    """A plan for the given fields of the configs."""
    config = TrainConfig(**training)
    text_config = TextConfig(**text)
    start = starting_point(text, model)
    given = settled(text, model, training, start)
    tokenizer = start.tokenizer if start else None
    check_short_text(source, text_config, given.get("context_length"), tokenizer)
    device = find_device(config.device)
    precision = choose_precision(config.precision, device)
    return measured_plan(source, text_config, given, device, precision)


def settled(
    text: dict[str, Any], model: dict[str, Any], training: dict[str, Any], start: FoundModel | None
) -> dict[str, Any]:
    """What a plan cannot change: all that was given, and all of a model to start from.

    UserError if something of it would do nothing."""
    given = {**text, **model, **training}
    if start is None:
        check_given(given)
        return given

    brought = asdict(start.glass.config)
    if isinstance(start.tokenizer, CharacterTokenizer):
        brought["tokenizer"] = "char"
    check_given(given, brought)
    return {**text, **brought, **training}


def measured_plan(
    source: Source,
    text: TextConfig,
    given: Mapping[str, Any],
    device: torch.device,
    precision: str,
    processes: int = 1,
) -> Plan:
    """Measure the text and the machine, and plan around what is given."""
    text = replace(text, tokenizer=given.get("tokenizer", text.tokenizer))
    parts = {name: given[name] for name in ("architecture", *PARTS) if name in given}
    usual = GPTConfig(1, **parts)
    stats = text_stats(source, text, can_copy=induction.spare(usual, text.tokenizer) > 0)
    is_settled = given.get("steps") is not None and {"emb_dim", "num_layers"} <= given.keys()
    shared = can_share(device, given.get("compile", "auto"), given.get("attention_dropout", 0.0))
    workers = (given.get("num_workers") or torch.get_num_threads()) if shared else 1
    make_plan(stats, None, given, processes)  # what does not fit together is refused first
    if not is_settled:
        say("measuring this machine ...")
    speed = None if is_settled else measure_speed(device, getattr(torch, precision), workers)
    given = {"num_workers": workers, **given} if is_settled else given
    plan = make_plan(stats, speed and speed.rounded(), given, processes)
    if speed is not None:
        plan = forecast(plan, speed, given, processes)
    step, seconds = plan.seconds / plan.steps, 60 * given.get("minutes", TrainConfig.minutes)
    if step > max(seconds, 10) and given.get("steps") is None:
        raise UserError(
            f"{duration(seconds)} will not do, one step would take about {duration(step)}; try "
            f"a shorter --context-length, a smaller model or --minutes {math.ceil(100 * step / 60)}"
        )
    return plan


def text_stats(source: Source, text: TextConfig, can_copy: bool) -> TextStats:
    """What a plan needs to know of a text: its size, and what of it a model can copy."""
    training, validation = split(source, text)
    size, share = source.training.scan.text_bytes, text.validation_fraction
    known = size if source.validation else round(size * (1.0 - share))
    aside = source.validation.scan.text_bytes if source.validation else size - known
    repeats = can_copy and repeated_afar(training) >= _MUCH
    found = measure_predictability(training, validation)
    if not can_copy:
        found = replace(found, copying=found.counting)
    return TextStats(known, aside, text.tokenizer, found, repeats)


def repeated_afar(part: Part) -> float:
    """Share of a sample where the last 12 characters stood 257 to 2,048 before, and not since.

    That is farther than a short context reaches, and not than a long one.
    """
    afar = read = 0
    for _, piece in part.at_most(_SAMPLE, 4 * _FAR).documents():
        last: dict[str, int] = {}
        for end in range(12, len(piece)):
            seen = piece[end - 12 : end]
            afar += _NEAR < end - last.get(seen, -_FAR) <= _FAR
            last[seen] = end
        read += len(piece)
    return afar / max(read, 1)


# The rules


def make_plan(
    text: TextStats, speed: Speed | None, given: Mapping[str, Any], processes: int = 1
) -> Plan:
    """A plan with the largest model for which both the time and the text suffice.

    `given` holds the fields of TextConfig, GPTConfig and TrainConfig that are settled, such as
    minutes. Several processes, each on a machine of this speed, share each step.
    """
    plans, problem = [], None
    for width, layers in zip(_WIDTHS, _LAYERS, strict=True):
        try:
            plans.append(_plan_of_shape(width, layers, text, speed, given, processes))
        except UserError as error:  # heads, say, that do not divide this width
            problem = problem or error
    if not plans:
        raise problem or UserError("no model can be planned")
    best = plans[0]
    for larger in plans[1:]:
        parameters = _size(larger.model)
        if parameters == _size(best.model):  # all of its shape is given
            continue
        needed = _tokens_needed(parameters) * (2.8 if text.repeats_afar else 1)  # copying is easy
        if larger.trained_tokens < needed or larger.tokens * _PARAMETERS_PER_TOKEN < parameters:
            return best
        best = larger
    return best


def _size(model: GPTConfig) -> int:
    """Parameters of a model, a head of its own left out: that begins with what the text tells."""
    return count_parameters(replace(model, tie_embeddings=True))


def _tokens_needed(parameters: int) -> float:
    """How many tokens to train on, for this model to become better than a smaller one.

    Some 0.6 for each parameter of a very small one; 20 always suffice (Hoffmann et al. 2022).
    """
    share = min(0.18 + 0.09 * parameters / 1e6, 20.0)
    return max(3e5 + 0.3 * parameters, share * parameters)


def _plan_of_shape(
    width: int,
    layers: int,
    text: TextStats,
    measured: Speed | None,
    given: Mapping[str, Any],
    processes: int,
    times: int = 2,
) -> Plan:
    """A plan for this shape, with a context twice as long if the time suffices for that."""
    speed = measured or Speed(flops=1e11, start=0.0)  # unknown where it makes no difference
    times = 1 if "context_length" in given else 4 if text.repeats_afar else times
    shape: dict[str, Any] = {"vocab_size": 0, "emb_dim": width, "num_layers": layers}
    shape |= {f.name: given[f.name] for f in fields(GPTConfig) if f.name in given}
    shape.setdefault("num_heads", _heads(shape["emb_dim"]))
    blocks = GPTConfig(**shape | {"vocab_size": 1})
    vocab_size = shape["vocab_size"] or plan_vocabulary(text, blocks)
    bytes_per_token = _bytes_per_token(text.tokenizer, vocab_size)
    tokens = max(2, round(text.size / bytes_per_token))
    shape.setdefault("context_length", plan_context(tokens, text.tokenizer, times))
    model = GPTConfig(**shape | {"vocab_size": vocab_size})
    max_epochs = given.get("max_epochs") or plan_max_epochs(model.emb_dim)
    for batch_size in _batch_sizes(given, processes, 1 if text.repeats_afar else times):
        seconds = speed.seconds(model, batch_size * model.context_length // processes)
        most = max_epochs * tokens / (batch_size * model.context_length)
        steps, ends_early = _count_steps(given, seconds, most)
        if steps <= _MANY_STEPS:
            break
    trained = steps * batch_size * model.context_length
    if times == 2 and trained < _LONG:
        return _plan_of_shape(width, layers, text, measured, given, processes, times=1)
    d, epochs, is_learned = model.emb_dim, trained / tokens, given.get("init") is not None
    split_prob = given.get("token_split_prob", plan_token_split_prob(epochs, d, text.tokenizer))
    dropout = given.get("dropout", plan_dropout(epochs, d, split_prob))
    tied = given.get("tie_embeddings", plan_tied(epochs, model))
    model = replace(model, dropout=dropout, tie_embeddings=tied)
    rate = given.get("learning_rate", plan_learning_rate(d, is_learned))
    decay = given.get("weight_decay", plan_weight_decay(epochs, d, tied))
    bits = _expected_bits(text, model, trained)
    warmup, total = plan_warmup_context(model, given), steps * seconds
    evals = _num_evals(text, model, speed, given, processes)
    most = given.get("max_characters") or plan_max_characters(text.size, trained * bytes_per_token)
    workers = given.get("num_workers") or min(speed.num_workers, batch_size)
    return Plan(
        model, batch_size, max_epochs, split_prob, rate, decay, warmup, evals, workers, most,
        tokens, steps, total, bits, ends_early, text, measured,
    )  # fmt: skip


def forecast(plan: Plan, speed: Speed, given: Mapping[str, Any], processes: int = 1) -> Plan:
    """The same settings, with what to expect of them at this speed.

    So a plan may be made for a rounded speed and still tell what the measured one gives.
    """
    per_step = plan.batch_size * plan.model.context_length
    seconds = speed.seconds(plan.model, per_step // processes)
    most = plan.max_epochs * plan.tokens / per_step
    steps, ends_early = _count_steps(given, seconds, most)
    bits = _expected_bits(plan.text, plan.model, steps * per_step)
    return replace(
        plan,
        steps=steps,
        seconds=steps * seconds,
        bits_per_byte=bits,
        ends_early=ends_early,
        speed=speed,
    )


def _count_steps(given: Mapping[str, Any], seconds: float, most: float) -> tuple[int, bool]:
    """The steps that are given, or fit into the time if each takes so many seconds, but at most
    `most`; and whether these are over before the time is."""
    if given.get("steps") is not None:
        return given["steps"], False
    # 8.5 seconds to start and to end, and a tenth of the rest for evaluations and files.
    time = 0.9 * (60 * given.get("minutes", TrainConfig.minutes) - 8.5)
    in_time = max(time / seconds, 1.0)
    return max(round(min(most, in_time)), 1), most < in_time


def _batch_sizes(given: Mapping[str, Any], processes: int, times: int) -> tuple[int, ...]:
    """The batch sizes to choose among, the smallest first; windows are so many times as long."""
    if "batch_size" in given:
        return (given["batch_size"],)
    sizes = _BATCH_SIZES if given.get("steps") is None else (TrainConfig.batch_size,)
    return tuple(-(-size // (processes * times)) * processes for size in sizes)


def _num_evals(
    text: TextStats, model: GPTConfig, speed: Speed, given: Mapping[str, Any], processes: int
) -> int:
    """As many evaluations as usual, or fewer, but 4, if they would take over 5% of the time."""
    usual = given.get("num_evals", TrainConfig.num_evals)
    if "num_evals" in given:
        return usual
    if given.get("steps") is not None:
        return min(usual, max(given["steps"] // 10, 1))
    found = text.validation / _bytes_per_token(text.tokenizer, model.vocab_size)
    tokens = min(found, given.get("eval_tokens", TrainConfig.eval_tokens))
    forward = tokens * flops_per_token(model, training=False) / (speed.flops * processes)
    seconds = forward + 0.3  # for a sample and files
    fitting = 0.05 * 60 * given.get("minutes", TrainConfig.minutes) / seconds
    return int(min(max(fitting, 4), usual))


def plan_vocabulary(text: TextStats, model: GPTConfig) -> int:
    """Size of a vocabulary: for BPE about 2 sqrt(bytes of text), a power of two.

    The different words of a text grow like that ("Information Retrieval", Heaps 1978). With more,
    some tokens are too rare to be learned; with fewer, computation is wasted on spelling. The table
    of embeddings outweighs the blocks, whose work counts, only where 4,096 tokens let a context
    reach farther back in a text that repeats itself. Other tokenizers bring their own.
    """
    if text.tokenizer != "bpe":
        return 128 if text.tokenizer == "char" else 50_257
    most = max(count_parameters(model) // model.emb_dim - 1, 4096 if text.repeats_afar else 1)
    size = min(2 ** round(math.log2(2 * max(text.size, 1) ** 0.5)), 2 ** int(math.log2(most)))
    return min(max(size, SMALLEST_VOCABULARY), 16_384)


def plan_max_characters(size: int, to_read: float) -> int | None:
    """How much of a text to prepare: half as much again as is read, and what takes no time."""
    enough = round(max(1.5 * to_read, _QUICK))
    return enough if enough < size else None


def plan_context(tokens: int, tokenizer: str, times: int) -> int:
    """How far back the model looks: some 300 characters times so many, less in a short text."""
    context_length = (256 if tokenizer == "char" else 128) * times
    while context_length > 8 and context_length * 16 > tokens:
        context_length //= 2
    return max(1, min(context_length, tokens - 1))


def plan_warmup_context(model: GPTConfig, given: Mapping[str, Any]) -> int:
    """Half of the context until near the end, which teaches as much in less time.

    The whole context if each position is learned by itself, and after `--init`.
    """
    is_halved = model.positions == "rotary" and given.get("init") is None
    usual = max(model.context_length // 2, 1) if is_halved else model.context_length
    return given.get("warmup_context") or usual


def plan_max_epochs(width: int) -> float:
    """How often a text is worth reading; the wider the model, the sooner it knows it by heart."""
    return max(30.0 * 128 / width, 10.0)


def plan_dropout(epochs: float, width: int, split_prob: float = 0.0) -> float:
    """0.1 for each doubling of epochs and width, in steps of 0.05, 0.3 at most.

    None up to some 5 epochs at width 128, or 9 if tokens are split.
    """
    dropout = 0.1 * math.log2(max(epochs * width / 128, 1e-9) / (8.0 if split_prob else 4.0))
    return min(max(round(0.05 * round(dropout / 0.05), 2), 0.0), 0.3)


def plan_tied(epochs: float, model: GPTConfig) -> bool:
    """Whether one table is embedding and head: if a text is read often, and with learned positions,
    as in GPT-2.

    A head of its own begins with what the text tells (see head_init) but soon knows it by heart.
    """
    return model.positions == "learned" or epochs >= 10


def plan_learning_rate(width: int, is_learned: bool) -> float:
    """The peak: of a wide model more weights act together, so each moves less. A tenth of it for a
    model that has learned already."""
    rate = TrainConfig.learning_rate * (128 / max(width, 64)) ** 0.5
    return round(rate / 10 if is_learned else rate, 6)


def plan_weight_decay(epochs: float, width: int, is_tied: bool) -> float:
    """0.1 for each time that the text is read, at most 0.5, or 1 with one table: what is known by
    heart is known by large weights."""
    return round(min(max(0.1 * epochs * width / 128, 0.1), 1.0 if is_tied else 0.5), 2)


def plan_token_split_prob(epochs: float, width: int, tokenizer: str) -> float:
    """Tokens are split if the text is read often, so that it differs each time.

    For a narrow model that begins later: it has enough to learn without. Characters stay whole.
    """
    return 0.15 if epochs * width / 128 >= 3.2 and tokenizer != "char" else 0.0


def _expected_bits(text: TextStats, model: GPTConfig, trained: int) -> float:
    """Bits per byte that a model should reach when it has been trained on so many tokens."""
    read = trained * _bytes_per_token(text.tokenizer, model.vocab_size)
    return expected_bits_per_byte(text.predictability, text.size, read, trained * _size(model))


def _bytes_per_token(tokenizer: str, vocab_size: int) -> float:
    """Of an English text, roughly."""
    if tokenizer == "char":
        return 1.0
    doublings = math.log2(max(vocab_size, 256) / 256)  # of an alphabet of bytes
    return min(1.0 + 1.15 * doublings**0.6, 4.5)


def _heads(emb_dim: int) -> int:
    """Heads of 64 or more, since few wide ones compute faster, and of an even size for rotary."""
    return next((n for n in range(max(emb_dim // 64, 1), 0, -1) if emb_dim % (2 * n) == 0), 1)
