"""Measures a text and the machine, and plans for them: on which device, and what to begin with.

Where there is a choice, a plan is made for each possibility, and the one is taken that is expected
to end lowest.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from .. import UserError
from ..config import PARTS, GPTConfig
from ..data.batches import Dataset
from ..data.source import Source, check_short_text, held_out, split
from ..training import distributed
from ..training.messages import duration, say
from ..training.precision import choose_precision
from . import induction, rules
from .first_loss import first_loss
from .given import Given, either
from .machine import Machine, count_workers
from .plan import Plan, make_plan, without_guesses
from .request import Request
from .speed import LESSON, Speed, measure_speed
from .text_stats import TextStats, measure_text
from .tuning import is_worthwhile, knows_language

_SHORT_STEP = 10  # seconds; a training whose steps take no longer is never refused
_STEPS_WORTHWHILE = 100  # the minutes that are proposed suffice for so many steps


# What a plan is made from


@dataclass(frozen=True)
class MeasuredDevice:
    """Where a training may run, and how fast that is."""

    device: torch.device
    precision: Literal["float32", "bfloat16", "float16"]
    num_workers: int
    speed: Speed | None  # None if nothing depends on it


@dataclass(frozen=True)
class Measured:
    """What plans for a text are made from, however many minutes each of them is for."""

    text: TextStats
    text_for_base: TextStats | None  # as the base sees it, if a plan may begin with that
    devices: tuple[MeasuredDevice, ...]  # where there is a choice, the GPU and then the CPU
    held_out: tuple[str, ...]  # what is validated on, a name for each file of it


StoredSpeed = Callable[[torch.device, str, int], Speed | None]  # device, precision, num_workers


def plan_run(source: Source, request: Request) -> Plan:
    """Measure the text and the machine, and plan around what is given.

    A training that may begin with the base does so if that is expected to end with a lower loss. If
    nobody named a device and there is a GPU, the plan is for the GPU or the CPU: where the training
    is expected to end with a lower loss or, if the losses are alike, sooner.
    """
    return plan_measured(measure(source, request), request)


def measure(
    source: Source, request: Request, stored_speed: StoredSpeed = lambda *_: None
) -> Measured:
    """Measure the text, and the machine where there is no `stored_speed` of it.

    The result serves for :meth:`Request.with_minutes` too.
    """
    text = measure_text(source, request.text, request.given.tokenizer, can_copy=_can_copy(request))
    text = known_text(text, source, request) or text
    # What does not fit together is refused before the machine is measured.
    make_plan(text, Machine(None, distributed.world_size()), request.given)

    devices = tuple(_measured_devices(request, stored_speed))
    base = request.with_base
    text_for_base = None if base is None else known_text(text, source, base)
    return Measured(text, text_for_base, devices, held_out(source, request.text))


def _measured_devices(request: Request, stored_speed: StoredSpeed) -> Iterator[MeasuredDevice]:
    """Where a training may run."""
    given = request.given
    device = distributed.device_of_rank(request.training.device)
    has_choice = request.training.device == "auto" and distributed.world_size() == 1
    devices = [device]
    if has_choice and device.type != "cpu":
        devices.append(torch.device("cpu"))

    has_shape = given.emb_dim is not None and given.num_layers is not None
    needs_speed = len(devices) > 1 or not has_shape or given.steps is None
    for device in devices:
        workers = count_workers(
            request.training.num_workers,
            device=device,
            compile=request.training.compile,
            attention_dropout=given.attention_dropout,
        )
        precision = choose_precision(request.training.precision, device)
        speed = None
        if given.lesson:
            speed = LESSON
        elif needs_speed:
            speed = stored_speed(device, precision, workers) or _speed(device, precision, workers)
        yield MeasuredDevice(device, precision, workers, speed)


def _speed(device: torch.device, precision: str, workers: int) -> Speed:
    what = "this machine" if device.type == "cpu" else str(device)
    say(f"measuring {what} ...")
    return measure_speed(device, getattr(torch, precision), workers)


def plan_measured(measured: Measured, request: Request) -> Plan:
    """Plan around what is given, by what was measured for it, as :func:`plan_run` does."""
    plans = [_plan_for(device, measured, request) for device in measured.devices]
    plan = plans[0]
    if len(plans) == 2:
        on_gpu, on_cpu = plans
        plan = better_plan(on_gpu, on_cpu)
        say(why_device(plan, on_gpu, on_cpu))

    check_step(plan, request.given)
    check_warmup_context(plan)
    return replace(without_guesses(plan), held_out=measured.held_out)


def _plan_for(found: MeasuredDevice, measured: Measured, request: Request) -> Plan:
    """The plan for one device."""
    given = request.given
    processes = distributed.world_size()
    how: dict[str, Any] = {
        "device": found.device.type if processes > 1 else str(found.device),
        "precision": found.precision,
    }
    if found.speed is None:
        plan = make_plan(measured.text, Machine(None, processes), given)
        return replace(plan, num_workers=either(given.num_workers, found.num_workers), **how)

    # Settings follow from a rounded speed, so that the same machine plans the same ones again.
    machine = Machine(found.speed.rounded(), processes)
    choice = choose_beginning(measured, machine, request)
    plan = make_plan(
        choice.text,
        machine,
        choice.given,
        forecast_machine=Machine(found.speed, processes),
    )
    return replace(plan, from_nothing=choice.from_nothing, with_base=choice.with_base, **how)


# The device


def better_plan(on_gpu: Plan, on_cpu: Plan) -> Plan:
    """The plan that is expected to end lower or, if they end alike, sooner."""
    return min(on_gpu, on_cpu, key=_expected)


def _expected(plan: Plan) -> tuple[float, float]:
    """The loss that a plan is expected to reach, if that is known, and its seconds a token."""
    return round(plan.bits_per_byte or 0.0, 2), plan.seconds / plan.trained_tokens


def why_device(plan: Plan, on_gpu: Plan, on_cpu: Plan) -> str:
    """Why one of two plans is chosen, in a line."""
    gpu = on_gpu.device
    size = f"{rules.parameters_to_train(plan.model) / 1e6:.1f} M parameters"
    assert on_gpu.speed is not None and on_cpu.speed is not None
    tokens = plan.batch_size * plan.model.context_length
    ratio = on_cpu.speed.seconds(plan.model, tokens) / on_gpu.speed.seconds(plan.model, tokens)
    if plan is on_gpu:
        return f"training on {gpu}: for {size} it is {ratio:.1f} times as fast as the processor"
    return f"{gpu} is here, but for {size} the processor is {1 / ratio:.1f} times as fast"


# What to begin with


@dataclass(frozen=True)
class Choice:
    """What a plan is made from if the training begins with nothing, or with a model; and the losses
    to expect of both, if there was a choice."""

    text: TextStats
    given: Given
    from_nothing: float | None = None
    with_base: float | None = None


def choose_beginning(measured: Measured, machine: Machine, request: Request) -> Choice:
    """The base, if the request may begin with it and is then expected to end lower; else what the
    request says."""
    text = measured.text
    usual = Choice(text, request.given)
    other = request.with_base
    known = measured.text_for_base
    if other is None or known is None:
        return usual

    tuned = make_plan(known, machine, other.given)
    if not _has_time_for_a_step(tuned, other.given):
        return usual

    with_base = tuned.bits_per_byte
    from_nothing = make_plan(text, machine, request.given).bits_per_byte
    assert known.before is not None and with_base is not None and from_nothing is not None
    if not knows_language(known.before, from_nothing):
        with_base = known.before  # it would have to forget first what it knows
    if is_worthwhile(with_base, from_nothing):
        return Choice(known, other.given, from_nothing=from_nothing, with_base=with_base)
    return replace(usual, from_nothing=from_nothing, with_base=with_base)


def known_text(text: TextStats, source: Source, request: Request) -> TextStats | None:
    """A text as it is for the model that a training begins with. None if there is no such model,
    the text is too short for it, or the model is another program's: then the usual rules serve."""
    start = request.start
    if start is None or not start.is_run:
        return None
    try:
        check_short_text(source, request.text, request.given.context_length, start.tokenizer)
    except UserError:
        return None

    _, validation = split(source, request.text)
    found = first_loss(start, validation)
    if found is None:
        return None
    return replace(text, before=found.bits_per_byte, bytes_per_token=found.bytes_per_token)


def fitted_to_tokens(plan: Plan, dataset: Dataset, given: Given) -> Plan:
    """The plan fitted to the tokens of the text, whose number it had to guess. If they are too few
    for its context, it is made anew around the same given settings."""
    tokens = len(dataset.train)
    vocab_size = dataset.tokenizer.vocab_size
    if plan.init is None:
        longest = rules.plan_context(tokens, plan.text.tokenizer, times=4)
    else:  # guessed from the model's own tokens, which seldom misses by much
        longest = tokens - 1
    if given.context_length is not None or plan.model.context_length <= longest:
        return replace(plan, model=replace(plan.model, vocab_size=vocab_size))

    processes = distributed.world_size()
    fitted = make_plan(
        replace(plan.text, bytes_per_token=plan.text.size / tokens),
        Machine(plan.speed and plan.speed.rounded(), processes),
        replace(given, vocab_size=vocab_size),
        forecast_machine=Machine(plan.speed, processes),
    )
    fitted = without_guesses(fitted)
    check_warmup_context(fitted)
    # What does not follow from the tokens stays.
    why_vocabulary = [line for line in plan.reasons if line.startswith("vocabulary:")]
    others = [line for line in fitted.reasons if not line.startswith("vocabulary:")]
    return replace(
        fitted,
        num_workers=min(plan.num_workers, fitted.batch_size),
        max_characters=plan.max_characters,
        held_out=plan.held_out,
        device=plan.device,
        precision=plan.precision,
        from_nothing=plan.from_nothing,
        with_base=plan.with_base,
        reasons=(*others[:1], *why_vocabulary, *others[1:]),
    )


def check_warmup_context(plan: Plan) -> None:
    """Refuse a warm-up context that was given and is longer than the context that is planned."""
    shorter = plan.warmup_context
    longer = plan.model.context_length
    if shorter > longer:
        raise UserError(
            f"--warmup-context {shorter} is longer than the context that is planned, "
            f"{longer}; leave it out, or name a --context-length too",
            kind="setting",
        )


def _can_copy(request: Request) -> bool:
    """Whether the model begins with an induction circuit. Where its size is not given, the usual
    size is assumed."""
    if request.text.embedding_init != "text":
        return False

    given = request.given
    fields = {name: given.others[name] for name in ("architecture", *PARTS) if name in given.others}
    if given.num_layers is not None:
        fields["num_layers"] = given.num_layers
    if given.emb_dim is not None:
        num_heads = either(given.num_heads, rules.plan_heads(given.emb_dim))
        fields |= {**given.others, "emb_dim": given.emb_dim, "num_heads": num_heads}

    model = GPTConfig(vocab_size=1, context_length=1, **fields)
    return induction.reserved_components(model, given.tokenizer) > 0


def check_step(plan: Plan, given: Given) -> None:
    """Refuse minutes in which not a single step can be made."""
    if not _has_time_for_a_step(plan, given):
        seconds = 60 * given.minutes
        seconds_a_step = plan.seconds / plan.steps
        enough = math.ceil(_STEPS_WORTHWHILE * seconds_a_step / 60)
        raise UserError(
            f"{duration(seconds)} are too short: one step would take about "
            f"{duration(seconds_a_step)}; try a shorter --context-length, a smaller model or "
            f"--minutes {enough}",
            kind="too_few_minutes",
        )


def _has_time_for_a_step(plan: Plan, given: Given) -> bool:
    """Whether a single step can be made. A step of a few seconds always can, however few the
    minutes, and so can any step if their number is given."""
    if given.steps is not None:
        return True
    return plan.seconds / plan.steps <= max(60 * given.minutes, _SHORT_STEP)
