"""Which model to train, on what batches and for how many steps: the largest model for which both
the time and the text suffice. The rest of a plan follows from such a draft.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from .. import UserError
from ..config import GPTConfig, Settings, TrainConfig
from ..system.shown import plural
from ..training.messages import duration, rough
from . import rules
from .machine import Machine
from .text_stats import TextStats

_SECONDS_BESIDES = 8.5  # to start and to end
_SHARE_OF_TRAINING = 0.9  # of the rest; the other tenth is for evaluations and files


class Steps(NamedTuple):
    """How many steps there are with batches of some size, and what comes of it."""

    number: int
    seconds: float  # that all of them take
    ends_early: bool  # whether the epochs are over before the time is


_NO_STEPS = Steps(0, 0.0, ends_early=False)


@dataclass(frozen=True)
class Draft:
    """A model, and as many steps as are given, or as the time and the epochs allow."""

    settings: Settings  # with the model, the batch and the epochs, and why they are so
    model: GPTConfig  # of these; dropout, and whether the embeddings are tied, are planned later
    tokens: int  # that the training text has in this vocabulary, roughly
    steps: Steps = _NO_STEPS  # not counted yet
    filling: float = 1.0  # times as large the batch is as it would be if no GPU were left idle

    @property
    def tokens_a_step(self) -> int:
        """Tokens in a batch."""
        tokens: int = self.settings["batch_size"] * self.model.context_length
        return tokens

    @property
    def trained_tokens(self) -> int:
        """Tokens in all steps together."""
        return self.steps.number * self.tokens_a_step

    @property
    def epochs(self) -> float:
        """How often the text is read."""
        return self.trained_tokens / self.tokens


def choose_draft(
    text: TextStats, machine: Machine, settings: Settings, longest: int | None = None
) -> Draft:
    """The draft with the largest model for which both the time and the text suffice. `longest` is
    the context of the model that a training begins with."""
    chosen: Draft | None = None
    problems: list[UserError] = []
    why = ", the largest that is planned"
    for size in rules.SIZES:
        try:
            draft = draft_of_size(size, text, machine, settings, longest)
        except UserError as problem:  # heads, say, that do not divide this width
            problems.append(problem)
            continue
        why_not = None if chosen is None else _why_not(draft, chosen, text, settings)
        if why_not is not None:
            why = why_not
            break
        chosen = draft
    if chosen is None:
        raise problems[0]

    shape = {"emb_dim": chosen.model.emb_dim, "num_layers": chosen.model.num_layers}
    planned = {name: value for name, value in shape.items() if settings.is_open(name)}
    return replace(chosen, settings=chosen.settings.with_values("planned", planned, why))


def _why_not(larger: Draft, chosen: Draft, text: TextStats, settings: Settings) -> str | None:
    """Why a larger model would not become better than the one chosen so far: too little time, or
    too little text. None if it would."""
    name = f"{larger.model.num_layers} of width {larger.model.emb_dim}"
    parameters = rules.parameters_to_train(larger.model)

    needed = rules.tokens_needed(parameters, text.repeats_afar)
    if larger.trained_tokens < needed:
        extent = duration(60 * settings["minutes"])
        if settings["steps"] is not None:
            extent = plural(settings["steps"], "step")
        elif larger.steps.ends_early:
            extent = f"at most {larger.settings['max_epochs']:g} readings of the text"
        read = rough(larger.trained_tokens)
        return f"; {name} would need {rough(needed)} tokens, and {extent} give them {read}"

    if parameters > larger.tokens * rules.PARAMETERS_PER_TOKEN:
        tokens = rough(chosen.tokens)
        most = f"{rules.PARAMETERS_PER_TOKEN:g} for each of the text's {tokens} tokens"
        return f"; {name} have {rough(parameters)} parameters, more than {most}"
    return None


def draft_of_size(
    size: rules.Size,
    text: TextStats,
    machine: Machine,
    settings: Settings,
    longest: int | None = None,
) -> Draft:
    """The draft for a model of a size, with the context that pays off.

    That context is twice as long as a short one, of 128 tokens or 256 characters, if there is time
    for many tokens, and four times as long for a text that repeats itself far away. A training that
    begins with a model has the `longest` one, too, since that model has learned to use long
    contexts; its batch has a quarter of the sequences.
    """
    short = rules.short_context(text.tokenizer)
    many = rough(rules.MANY_TOKENS)

    draft_with = partial(
        _draft_with,
        size=size,
        text=text,
        machine=machine,
        settings=settings,
        longest=longest,
    )

    if not settings.is_open("context_length"):
        return draft_with(times=1, batch_divisor=1)

    if longest is not None:
        times = 4
        draft = draft_with(times=times, batch_divisor=4)
        why = f" of the {longest:,} that the model can read; more need more time and memory"
    elif text.repeats_afar:
        # A model that begins with the ability to copy learns more from steps that read more: the
        # batch has as many of the long windows as it would have of short ones.
        times = 4
        draft = draft_with(times=times, batch_divisor=1)
        why = ", because the text repeats itself far away"
    else:
        times = 2
        draft = draft_with(times=times, batch_divisor=2)
        read = rough(draft.trained_tokens)
        why = f", because {many} tokens or more are read: {read}"
        if draft.trained_tokens < rules.MANY_TOKENS:
            times = 1
            draft = draft_with(times=times, batch_divisor=1)
            twice = 2 * draft.model.context_length
            why = f", because for {twice} too few tokens are read: {read} instead of {many}"

    if draft.model.context_length == longest:
        why = f", that of {settings['init']}"
    elif draft.model.context_length < times * short:
        why = f", because the text has only {rough(draft.tokens)}"
    planned = {"context_length": draft.model.context_length}
    return replace(draft, settings=draft.settings.with_values("planned", planned, why))


def _draft_with(
    *,
    times: int,
    batch_divisor: int,
    size: rules.Size,
    text: TextStats,
    machine: Machine,
    settings: Settings,
    longest: int | None,
) -> Draft:
    """The draft with a context so many times as long as a short one, unless its length is given."""
    settings = settings.planned(emb_dim=size.emb_dim, num_layers=size.num_layers)
    settings = settings.planned(num_heads=rules.plan_heads(settings["emb_dim"]))
    # As many parameters as its blocks have: the vocabulary is chosen by their number.
    blocks = settings.with_values("planned", {"vocab_size": 1}).network

    vocabulary = rules.plan_vocabulary(text, blocks)
    settings = settings.planned(vocabulary.why, vocab_size=vocabulary.value)
    bytes_per_token = rules.bytes_per_token(text, settings["vocab_size"])
    tokens = max(2, round(text.size / bytes_per_token))

    context_length = rules.plan_context(tokens, text.tokenizer, times)
    if longest is not None:
        context_length = min(context_length, longest)
    settings = settings.planned(
        context_length=context_length, max_epochs=rules.plan_max_epochs(blocks.emb_dim)
    )

    draft = Draft(settings, settings.network, tokens)
    return _with_batch(draft, machine, batch_divisor)


# Batch and steps


def _with_batch(draft: Draft, machine: Machine, divisor: int) -> Draft:
    """The draft with the smallest batch with which there are not too many steps, and which leaves
    no GPU idle for want of work: up to a point many small steps teach more than a few large ones.
    """
    settings = draft.settings
    if not settings.is_open("batch_size"):
        return replace(draft, steps=count_steps(draft, machine))

    usual_sizes: tuple[int, ...] = rules.BATCH_SIZES
    why = f", the fewest, because there are no more than {rules.MANY_STEPS:,} steps"
    if settings["steps"] is not None:
        usual_sizes = (TrainConfig.batch_size,)
        why = ", as usual for a given number of steps"

    # For longer windows there are fewer. Processes share a batch evenly.
    fewest, *others = (
        math.ceil(usual_size / (machine.processes * divisor)) * machine.processes
        for usual_size in usual_sizes
    )
    draft = _with_sequences(fewest, why, draft, machine)
    for batch_size in others:
        fewer = draft.settings["batch_size"]
        has_too_many_steps = draft.steps.number > rules.MANY_STEPS
        why = f", because a step on {fewer} would take hardly less time"
        if has_too_many_steps:
            many = f"{rules.MANY_STEPS:,} steps: {rough(draft.steps.number)}"
            why = f", because {fewer} would make more than {many}"

        larger = _with_sequences(batch_size, why, draft, machine)
        if has_too_many_steps:
            draft = larger
        elif draft.tokens_a_step < machine.busy and rules.reads_clearly_more(
            larger.trained_tokens, draft.trained_tokens
        ):
            draft = replace(larger, filling=draft.filling * batch_size / fewer)
        else:
            break
    return draft


def _with_sequences(batch_size: int, why: str, draft: Draft, machine: Machine) -> Draft:
    """The draft with so many sequences in a step, and as many steps as there are then."""
    settings = draft.settings.with_values("planned", {"batch_size": batch_size}, why)
    draft = replace(draft, settings=settings)
    return replace(draft, steps=count_steps(draft, machine))


def count_steps(draft: Draft, machine: Machine) -> Steps:
    """As many steps as are given, or as the time and the epochs allow."""
    settings = draft.settings
    used = used_by(settings, machine)
    seconds_a_step = used.seconds(draft.model, draft.tokens_a_step)
    steps = settings["steps"]
    if steps is not None:
        return Steps(steps, steps * seconds_a_step, ends_early=False)

    steps_in_time = max(training_seconds(settings["minutes"]) / seconds_a_step, 1.0)
    steps_in_epochs = settings["max_epochs"] * draft.tokens / draft.tokens_a_step
    number = max(round(min(steps_in_time, steps_in_epochs)), 1)
    return Steps(number, number * seconds_a_step, ends_early=steps_in_epochs < steps_in_time)


def used_by(settings: Settings, machine: Machine) -> Machine:
    """The machine as a training with this batch uses it."""
    batch_size = settings["batch_size"]
    at_once = settings["micro_batch_size"] or batch_size
    return machine.shared_by(min(at_once, batch_size))


def training_seconds(minutes: float) -> float:
    """How long the steps of a training of so many minutes may take together."""
    return _SHARE_OF_TRAINING * (60 * minutes - _SECONDS_BESIDES)


def whole_seconds(seconds: float) -> float:
    """How long a whole training takes if its steps together take so many seconds."""
    return _SECONDS_BESIDES + seconds / _SHARE_OF_TRAINING
