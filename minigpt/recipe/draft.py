"""Which model to train, on what batches and for how many steps: the largest model for which both
the time and the text suffice. The rest of a plan follows from such a draft.
"""

import math
from dataclasses import dataclass, replace

from .. import UserError
from ..config import GPTConfig, TrainConfig
from . import rules
from .given import Given, either
from .machine import Machine
from .text_stats import TextStats

_SECONDS_BESIDES = 8.5  # to start and to end
_SHARE_OF_TRAINING = 0.9  # of the rest; the other tenth is for evaluations and files


@dataclass(frozen=True)
class Shape:
    """A model, and what it makes of the text."""

    model: GPTConfig  # dropout, and whether the embeddings are tied, are planned later
    tokens: int  # that the training text has in this vocabulary, roughly
    max_epochs: float  # how often they are worth reading


@dataclass(frozen=True)
class Draft:
    """A shape, with as many steps as are given, or as the time and the epochs allow."""

    shape: Shape
    batch_size: int
    batch_divisor: int  # that the usual batch sizes were divided by
    steps: int
    longer: "Draft | None" = None  # with a longer context, for which the time does not suffice
    larger: "Draft | None" = None  # a larger model, for which the time or the text does not suffice

    @property
    def trained_tokens(self) -> int:
        """Tokens in all steps together."""
        return self.steps * self.batch_size * self.shape.model.context_length

    @property
    def epochs(self) -> float:
        """How often the text is read."""
        return self.trained_tokens / self.shape.tokens


def choose_draft(text: TextStats, machine: Machine, given: Given) -> Draft:
    """The draft with the largest model for which both the time and the text suffice."""
    drafts: list[Draft] = []
    problems: list[UserError] = []
    for size in rules.SIZES:
        try:
            drafts.append(draft_of_size(size, text, machine, given))
        except UserError as problem:  # heads, say, that do not divide this width
            problems.append(problem)
    if not drafts:
        raise problems[0]

    chosen = drafts[0]
    for larger in drafts[1:]:
        if not (has_time(larger, text) and has_text(larger)):
            return replace(chosen, larger=larger)
        chosen = larger
    return chosen


def has_time(draft: Draft, text: TextStats) -> bool:
    """Whether there is enough time for this model to become better than a smaller one."""
    parameters = rules.parameters_to_train(draft.shape.model)
    return draft.trained_tokens >= rules.tokens_needed(parameters, text.repeats_afar)


def has_text(draft: Draft) -> bool:
    """Whether there is enough text for this model to become better than a smaller one."""
    parameters = rules.parameters_to_train(draft.shape.model)
    return draft.shape.tokens * rules.PARAMETERS_PER_TOKEN >= parameters


def draft_of_size(size: rules.Size, text: TextStats, machine: Machine, given: Given) -> Draft:
    """The draft for a model of a size, with the context that pays off.

    That context is twice as long as a short one, of 128 tokens or 256 characters, if there is time
    for many tokens, and four times as long for a text that repeats itself far away. A training that
    begins with a model has the longest one, too, since that model has learned to use long contexts;
    its batch has a quarter of the sequences.
    """

    def draft_with(context_times: int, batch_divisor: int) -> Draft:
        """With a context so many times as long as a short one, unless its length is given."""
        shape = plan_shape(size, text, given, context_times)
        batch_size = plan_batch(shape, machine, given, batch_divisor)
        steps = count_steps(shape, batch_size, machine, given)
        return Draft(shape, batch_size, batch_divisor, steps.number)

    if given.context_length is not None:
        return draft_with(context_times=1, batch_divisor=1)
    if given.start is not None:
        return draft_with(context_times=4, batch_divisor=4)
    if text.repeats_afar:
        # A model that begins with the ability to copy learns more from steps that read more: the
        # batch has as many of the long windows as it would have of short ones.
        return draft_with(context_times=4, batch_divisor=1)

    longer = draft_with(context_times=2, batch_divisor=2)
    if longer.trained_tokens >= rules.MANY_TOKENS:
        return longer
    return replace(draft_with(context_times=1, batch_divisor=1), longer=longer)


# Shape


def plan_shape(size: rules.Size, text: TextStats, given: Given, times: int) -> Shape:
    """The model of a size, with a context so many times as long as a short one."""
    emb_dim = either(given.emb_dim, size.emb_dim)
    blocks = GPTConfig(
        vocab_size=1,
        context_length=either(given.context_length, GPTConfig.context_length),
        emb_dim=emb_dim,
        num_layers=either(given.num_layers, size.num_layers),
        num_heads=either(given.num_heads, rules.plan_heads(emb_dim)),
        dropout=either(given.dropout, GPTConfig.dropout),
        attention_dropout=given.attention_dropout,
        tie_embeddings=either(given.tie_embeddings, GPTConfig.tie_embeddings),
        **given.others,
    )
    vocab_size = either(given.vocab_size, rules.plan_vocabulary(text, blocks))

    tokens = max(2, round(text.size / rules.bytes_per_token(text, vocab_size)))
    context_length = rules.plan_context(tokens, text.tokenizer, times)
    if given.start is not None:
        context_length = min(context_length, given.start.context_length)
    model = replace(
        blocks,
        vocab_size=vocab_size,
        context_length=either(given.context_length, context_length),
    )
    max_epochs = either(given.max_epochs, rules.plan_max_epochs(emb_dim))
    return Shape(model, tokens, max_epochs)


# Batch and steps


@dataclass(frozen=True)
class Steps:
    """How many steps there are with batches of some size, and what comes of it."""

    number: int
    seconds: float  # that all of them take
    ends_early: bool  # whether the epochs are over before the time is


def plan_batch(shape: Shape, machine: Machine, given: Given, divisor: int) -> int:
    """The smallest batch with which there are not too many steps: up to a point many small steps
    teach more than a few large ones."""
    if given.batch_size is not None:
        return given.batch_size

    sizes = batch_sizes(machine, given, divisor)
    for size in sizes:
        if count_steps(shape, size, machine, given).number <= rules.MANY_STEPS:
            return size
    return sizes[-1]


def batch_sizes(machine: Machine, given: Given, divisor: int) -> list[int]:
    """The sizes that a batch may have, the smallest first.

    The usual sizes are divided by `divisor`, for longer windows. Processes share a batch evenly.
    """
    usual_sizes = rules.BATCH_SIZES if given.steps is None else (TrainConfig.batch_size,)
    sizes = []
    for usual_size in usual_sizes:
        of_a_process = math.ceil(usual_size / (machine.processes * divisor))
        sizes.append(of_a_process * machine.processes)
    return sizes


def count_steps(shape: Shape, batch_size: int, machine: Machine, given: Given) -> Steps:
    """As many steps as are given, or as the time and the epochs allow."""
    tokens_a_step = batch_size * shape.model.context_length
    seconds_a_step = machine.seconds(shape.model, tokens_a_step)
    if given.steps is not None:
        return Steps(given.steps, given.steps * seconds_a_step, ends_early=False)

    steps_in_time = max(training_seconds(given.minutes) / seconds_a_step, 1.0)
    steps_in_epochs = shape.max_epochs * shape.tokens / tokens_a_step
    number = max(round(min(steps_in_time, steps_in_epochs)), 1)
    return Steps(number, number * seconds_a_step, ends_early=steps_in_epochs < steps_in_time)


def training_seconds(minutes: float) -> float:
    """How long the steps of a training of so many minutes may take together."""
    return _SHARE_OF_TRAINING * (60 * minutes - _SECONDS_BESIDES)


def whole_seconds(seconds: float) -> float:
    """How long a whole training takes if its steps together take so many seconds."""
    return _SECONDS_BESIDES + seconds / _SHARE_OF_TRAINING
