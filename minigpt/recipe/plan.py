"""The dial: what to train on a text, on this machine, in the minutes that are given.

`make_plan` is a pure function of the text, the machine and what was given, which always wins. Each
choice follows a rule of rules.py; here they are put in order, since one needs what another found.
planner.py measures the text and the machine.
"""

from dataclasses import dataclass, replace
from typing import Literal

from ..config import GPTConfig, TrainConfig
from ..model import flops_per_token
from . import rules
from .draft import Draft, choose_draft, count_steps
from .given import Given, either
from .machine import Machine
from .predictability import expected_bits_per_byte, is_like_those_tried
from .reasons import explain
from .speed import Speed
from .text_stats import TextStats
from .tuning import expected_after_tuning, plan_tuning, with_tuning

_SHARE_OF_EVALUATIONS = 0.05  # of all minutes, at most


@dataclass(frozen=True)
class Plan:
    """The chosen settings, the forecast, and the measurements behind both. Kept as plan.json.

    The settings have the names that they have in TrainConfig.
    """

    init: str | None  # the model that the training begins with; None: nothing
    model: GPTConfig
    batch_size: int
    max_epochs: float
    token_split_prob: float
    learning_rate: float
    weight_decay: float
    interpolate: bool
    warmup_context: int
    num_evals: int
    num_workers: int
    max_characters: int | None  # of the text that are used, if it is far longer
    tokens: int  # of the training text; this and what follows are rough
    steps: int  # that fit into the time or the epochs
    seconds: float  # that these take
    # Expected on the validation text at the end; None if the run begins with a model whose loss on
    # this text is not known, or if no text like this was tried.
    bits_per_byte: float | None
    ends_early: bool  # whether the epochs are over before the time is
    text: TextStats
    speed: Speed | None  # None if all that depends on it was given
    reasons: tuple[str, ...]  # why this model, vocabulary, context and batch: a line each

    # Bits per byte to expect, where the plan had the choice
    from_nothing: float | None = None
    with_base: float | None = None

    held_out: tuple[str, ...] = ()  # what is validated on, a name for each file of it

    # What it is for
    device: str = TrainConfig.device
    precision: Literal["auto", "float32", "bfloat16", "float16"] = TrainConfig.precision

    @property
    def trained_tokens(self) -> int:
        """Tokens in all steps together."""
        return self.steps * self.batch_size * self.model.context_length

    @property
    def epochs(self) -> float:
        """How often the text is read."""
        return self.trained_tokens / self.tokens


def make_plan(
    text: TextStats, machine: Machine, given: Given, *, forecast_machine: Machine | None = None
) -> Plan:
    """A plan with the largest model for which both the time and the text suffice, or for the model
    to begin with.

    `machine` decides the settings. The forecast is for `forecast_machine`, if given.
    """
    if forecast_machine is None:
        forecast_machine = machine
    asked = given
    if text.before is not None:
        given = with_tuning(given, plan_tuning(text.before, text, given))

    draft = choose_draft(text, machine, given)
    regularisation = plan_regularisation(draft, text, given)
    expected = forecast(draft, text, forecast_machine, given)

    model = replace(
        draft.shape.model,
        dropout=regularisation.dropout,
        tie_embeddings=regularisation.tie_embeddings,
    )

    is_pretrained = given.init is not None
    learning_rate = rules.plan_learning_rate(model.emb_dim, is_pretrained)
    warmup_context = rules.plan_warmup_context(model, is_pretrained)
    num_evals = plan_num_evals(text, model, machine, given)
    num_workers = min(machine.assumed_speed.num_workers, draft.batch_size)
    bytes_to_read = draft.trained_tokens * rules.bytes_per_token(text, model.vocab_size)
    max_characters = rules.plan_max_characters(text.size, bytes_to_read)

    return Plan(
        init=given.init,
        model=model,
        batch_size=draft.batch_size,
        max_epochs=draft.shape.max_epochs,
        token_split_prob=regularisation.token_split_prob,
        learning_rate=either(given.learning_rate, learning_rate),
        weight_decay=regularisation.weight_decay,
        interpolate=either(given.interpolate, is_pretrained),
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
        speed=forecast_machine.speed,
        reasons=explain(draft, text, machine, asked),
    )


def without_guesses(plan: Plan) -> Plan:
    """The plan without the losses to expect, if the forecast was not tried on texts like this: such
    losses are good enough to choose by, but not to be shown."""
    if is_like_those_tried(plan.text.predictability, plan.text.size):
        return plan
    return replace(plan, bits_per_byte=None, from_nothing=None, with_base=None)


# What follows from a draft


@dataclass(frozen=True)
class Regularisation:
    """What keeps a model from learning its text by heart."""

    token_split_prob: float
    dropout: float
    tie_embeddings: bool
    weight_decay: float


def plan_regularisation(draft: Draft, text: TextStats, given: Given) -> Regularisation:
    """The more often a text is read, the more each of these is used: split tokens, dropout, one
    table of embeddings for input and output, weight decay."""
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
    """The usual number of evaluations, or fewer (at least 4) so that they take at most 5% of the
    time. With a given number of steps, one for every ten of them, up to the usual number."""
    usual = TrainConfig.num_evals
    if given.steps is not None:
        return rules.clamped(given.steps // 10, 1, usual)

    tokens = text.validation / rules.bytes_per_token(text, model.vocab_size)
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
    bits_per_byte: float | None
    ends_early: bool


def forecast(draft: Draft, text: TextStats, machine: Machine, given: Given) -> Forecast:
    """What this machine makes of a draft, which may have been made for another speed."""
    shape = draft.shape
    steps = count_steps(shape, draft.batch_size, machine, given)
    trained_tokens = steps.number * draft.batch_size * shape.model.context_length
    bits_per_byte = expected_after_tokens(trained_tokens, text, shape.model, given.init)
    return Forecast(steps.number, steps.seconds, bits_per_byte, steps.ends_early)


def expected_after_tokens(
    trained_tokens: float, text: TextStats, model: GPTConfig, init: str | None
) -> float | None:
    """The bits per byte to expect of a model on the validation text, trained on so many tokens;
    None if it begins with a model, `init`, whose loss on the text is not known."""
    read = trained_tokens * rules.bytes_per_token(text, model.vocab_size)
    work = trained_tokens * rules.parameters_to_train(model)
    if text.before is not None:
        return expected_after_tuning(text.before, text, read=read, work=work)
    if init is not None:
        return None
    return expected_bits_per_byte(text.predictability, known=text.size, read=read, work=work)
