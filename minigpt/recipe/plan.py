"""The dial: what to train on a text, on this machine, in the minutes that are given.

`make_plan` is a pure function of the text, the machine and what was given, which always wins. Each
choice follows a rule of rules.py; here they are put in order, since one needs what another found.
"""

import math
from dataclasses import dataclass, replace

import torch

from .. import UserError
from ..config import PARTS, GPTConfig, TrainConfig
from ..data.source import Source
from ..model import flops_per_token
from ..training import distributed
from ..training.messages import duration, say
from ..training.precision import choose_precision
from . import induction, rules
from .draft import Draft, choose_draft, count_steps
from .given import Given, either
from .machine import Machine, count_workers
from .predictability import expected_bits_per_byte
from .request import Request
from .speed import Speed, measure_speed
from .text_stats import TextStats, measure_text

_SHARE_OF_EVALUATIONS = 0.05  # of all minutes, at most


@dataclass(frozen=True)
class Plan:
    """Settings, under the names of TrainConfig, what to expect of them, and what they follow from.

    It is kept as plan.json.
    """

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


def plan_run(source: Source, request: Request) -> Plan:
    """Measure the text and the machine, and plan around what is given."""
    given = request.given
    stats = measure_text(source, request.text, given.tokenizer, can_copy=_can_copy(given))
    device = distributed.device_of_rank(request.training.device)
    processes = distributed.world_size()
    workers = count_workers(
        given.num_workers,
        device=device,
        compile=given.compile,
        attention_dropout=given.attention_dropout,
    )

    # What does not fit together is refused before the machine is measured.
    plan = make_plan(stats, Machine(None, processes), given)
    has_shape = given.emb_dim is not None and given.num_layers is not None
    if has_shape and given.steps is not None:  # nothing depends on the machine
        return replace(plan, num_workers=given.num_workers or workers)

    say("measuring this machine ...")
    precision = choose_precision(request.training.precision, device)
    speed = measure_speed(device, getattr(torch, precision), workers)
    measured = Machine(speed, processes)
    # Settings follow from a rounded speed, so that the same machine plans the same ones again.
    rounded = Machine(speed.rounded(), processes)
    plan = make_plan(stats, rounded, given, measured)
    if given.steps is None:
        _check_step(plan, given)
    return plan


def _can_copy(given: Given) -> bool:
    """Whether a model of this kind begins with an induction circuit, if it is large enough."""
    parts = {name: given.others[name] for name in ("architecture", *PARTS) if name in given.others}
    usual = GPTConfig(vocab_size=1, **parts)
    return induction.spare(usual, given.tokenizer) > 0


def _check_step(plan: Plan, given: Given) -> None:
    """Refuse minutes in which not a single step can be made."""
    step = plan.seconds / plan.steps
    seconds = 60 * given.minutes
    if step > max(seconds, 10):
        raise UserError(
            f"{duration(seconds)} will not do, one step would take about {duration(step)}; try "
            f"a shorter --context-length, a smaller model or --minutes {math.ceil(100 * step / 60)}"
        )


# The plan


def make_plan(
    text: TextStats, machine: Machine, given: Given, measured: Machine | None = None
) -> Plan:
    """A plan with the largest model for which both the time and the text suffice.

    `measured` is the machine at the speed that was measured, where `machine` has a rounded one:
    what to expect is told for that.
    """
    draft = choose_draft(text, machine, given)
    regularisation = plan_regularisation(draft, text, given)
    actual = measured or machine
    expected = forecast(draft, text, actual, given)

    model = replace(
        draft.shape.model,
        dropout=regularisation.dropout,
        tie_embeddings=regularisation.tie_embeddings,
    )
    is_learned = given.init is not None
    learning_rate = rules.plan_learning_rate(model.emb_dim, is_learned)
    warmup_context = rules.plan_warmup_context(model, is_learned)
    num_evals = plan_num_evals(text, model, machine, given)
    num_workers = min(machine.assumed_speed.num_workers, draft.batch_size)
    bytes_to_read = draft.trained_tokens * rules.bytes_per_token(text.tokenizer, model.vocab_size)
    max_characters = rules.plan_max_characters(text.size, bytes_to_read)

    return Plan(
        model=model,
        batch_size=draft.batch_size,
        max_epochs=draft.shape.max_epochs,
        token_split_prob=regularisation.token_split_prob,
        learning_rate=either(given.learning_rate, learning_rate),
        weight_decay=regularisation.weight_decay,
        warmup_context=either(given.warmup_context, warmup_context),
        num_evals=either(given.num_evals, num_evals),
        num_workers=either(given.num_workers, num_workers),
        max_characters=either(given.max_characters, max_characters),
        tokens=draft.shape.tokens,
        steps=expected.steps,
        seconds=expected.seconds,
        bits_per_byte=expected.bits_per_byte,
        ends_early=expected.ends_early,
        text=text,
        speed=actual.speed,
    )


# What follows from a draft


@dataclass(frozen=True)
class Regularisation:
    """What keeps a model from learning its text by heart."""

    token_split_prob: float
    dropout: float
    tie_embeddings: bool
    weight_decay: float


def plan_regularisation(draft: Draft, text: TextStats, given: Given) -> Regularisation:
    """The more often a text is read, the more of each."""
    epochs = draft.epochs
    model = draft.shape.model
    width = model.emb_dim

    split_prob = either(
        given.token_split_prob, rules.plan_token_split_prob(epochs, width, text.tokenizer)
    )
    dropout = either(given.dropout, rules.plan_dropout(epochs, width, split_prob))
    is_tied = either(given.tie_embeddings, rules.plan_tied(epochs, model))
    decay = either(given.weight_decay, rules.plan_weight_decay(epochs, width, is_tied))
    return Regularisation(split_prob, dropout, is_tied, decay)


def plan_num_evals(text: TextStats, model: GPTConfig, machine: Machine, given: Given) -> int:
    """As many evaluations as usual, or fewer, but 4, if they would take over 5% of the time."""
    usual = TrainConfig.num_evals
    if given.steps is not None:
        return rules.clamped(given.steps // 10, 1, usual)

    tokens = text.validation / rules.bytes_per_token(text.tokenizer, model.vocab_size)
    operations = min(tokens, given.eval_tokens) * flops_per_token(model, training=False)
    forward = operations / (machine.assumed_speed.flops * machine.processes)
    seconds = forward + 0.3  # for a sample and files
    fitting = _SHARE_OF_EVALUATIONS * 60 * given.minutes / seconds
    return int(rules.clamped(fitting, 4, usual))


@dataclass(frozen=True)
class Forecast:
    """What to expect of a plan."""

    steps: int
    seconds: float
    bits_per_byte: float
    ends_early: bool


def forecast(draft: Draft, text: TextStats, machine: Machine, given: Given) -> Forecast:
    """What this machine makes of a draft, which may have been made for another speed."""
    shape = draft.shape
    steps = count_steps(shape, draft.batch_size, machine, given)
    trained_tokens = steps.number * draft.batch_size * shape.model.context_length

    bits_per_byte = expected_bits_per_byte(
        text.predictability,
        known=text.size,
        read=trained_tokens * rules.bytes_per_token(text.tokenizer, shape.model.vocab_size),
        work=trained_tokens * rules.parameters_to_train(shape.model),
    )
    return Forecast(steps.number, steps.seconds, bits_per_byte, steps.ends_early)
