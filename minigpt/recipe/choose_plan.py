"""Measures a text and the machine, and chooses among plans: with what a training begins, and on
which device it runs. A plan is made for each possibility, and the one is taken that is expected to
end lowest.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import torch

from .. import UserError
from ..config import PARTS, GPTConfig, Settings
from ..data.source import Source, check_short_text, held_out, split
from ..devices.choice import has_gpu
from ..training import distributed
from ..training.messages import say_meanwhile
from ..training.precision import choose_precision
from . import induction, rules
from .beginning import Beginning
from .machine import SPEED_OF_A_LESSON, Machine, Speed, count_workers
from .plan import Planned, check_step, has_time_for_a_step, plan
from .size_and_batch import used_by
from .speed import measure_speed
from .text_stats import TextStats, measure_text, seen_by
from .tuning import is_worthwhile, knows_language

Seen = TypeVar("Seen")

# Operations a second in a large matrix product, more than a training reaches on any processor.
_FASTER_THAN_PROCESSORS = 2e13


@dataclass(frozen=True)
class Measured:
    """What plans for a text are made from."""

    beginnings: tuple[Beginning, ...]  # with the text as each sees it; the second, if any, the base
    machines: tuple[Machine, ...]  # where there is a choice, the GPU and then the CPU
    held_out: tuple[str, ...]  # what is validated on, a name for each file of it

    def with_minutes(self, minutes: float) -> "Measured":
        """The same for so many minutes."""
        beginnings = tuple(beginning.with_minutes(minutes) for beginning in self.beginnings)
        return replace(self, beginnings=beginnings)


# Gets a device, a precision and the number of workers.
StoredSpeed = Callable[[torch.device, str, int], Speed | None]


def measure(
    source: Source,
    beginnings: tuple[Beginning, ...],
    stored_speed: StoredSpeed | None = None,
) -> Measured:
    """Measure the text, and the machine where there is no `stored_speed` of it."""
    asked, *_ = beginnings
    look = partial(_look_at_text, source, beginnings)
    seen = _while_gpu_starts(look, asked.settings) if _may_use_gpu(asked.settings) else look()
    machines = tuple(_machines(asked, stored_speed))
    return Measured(seen, machines, held_out(source, asked.settings.text))


def _look_at_text(source: Source, beginnings: tuple[Beginning, ...]) -> tuple[Beginning, ...]:
    """The beginnings with the text as each sees it. The second is left out if the text is too short
    for its model. What does not fit together is refused before the machine is measured."""
    asked, *others = beginnings
    settings = asked.settings
    text = measure_text(source, settings.text, settings["tokenizer"], can_copy=_can_copy(asked))
    asked = replace(asked, text=_text_for(asked, text, source) or text)
    _plan_for(asked, Machine(None, distributed.world_size()))

    seen = [asked]
    for other in others:
        known = _text_for(other, text, source)
        if known is not None:
            seen.append(replace(other, text=known))
    return tuple(seen)


def _may_use_gpu(settings: Settings) -> bool:
    """Whether a GPU is asked for, or seems to be here."""
    name = settings["device"]
    return has_gpu() if name == "auto" else name != "cpu"


def _while_gpu_starts(look: Callable[[], Seen], settings: Settings) -> Seen:
    """What the processor finds out, while a GPU loads its libraries and shows that it computes
    rightly. Nothing is timed meanwhile."""
    with ThreadPoolExecutor(1, "text") as beside:
        looked = beside.submit(look)
        device = distributed.device_of_rank(settings["device"])
        if device.type != "cpu":
            choose_precision(settings["precision"], device)
        return looked.result()


def _text_for(beginning: Beginning, text: TextStats, source: Source) -> TextStats | None:
    """A text as it is for the model that a training begins with. None if there is no such model,
    the text is too short for it, or the model is another program's: then the usual rules serve."""
    found = beginning.found
    settings = beginning.settings
    if found is None or not found.is_run:
        return None
    try:
        check_short_text(source, settings.text, settings.fixed("context_length"), found.tokenizer)
    except UserError:
        return None

    _, validation = split(source, settings.text)
    if settings["lesson"]:  # the same on every computer: all of the sample is read, however slowly
        return seen_by(found, text, validation, clock=lambda: 0.0)
    return seen_by(found, text, validation)


def _machines(asked: Beginning, stored_speed: StoredSpeed | None) -> Iterator[Machine]:
    """Where a training may run. A processor is not measured beside a GPU that no processor can be
    as fast as, so that the first step comes earlier."""
    settings = asked.settings
    processes = distributed.world_size()
    device = distributed.device_of_rank(settings["device"])
    devices = [device]
    if device.type != "cpu" and _has_choice(settings):
        devices.append(torch.device("cpu"))

    has_shape = not (settings.is_open("emb_dim") or settings.is_open("num_layers"))
    needs_speed = len(devices) > 1 or not has_shape or settings["steps"] is None
    for device in devices:
        num_workers = count_workers(
            settings.fixed("num_workers"),
            device=device,
            compile=settings["compile"],
            attention_dropout=settings["attention_dropout"],
        )
        precision = choose_precision(settings["precision"], device)
        speed = None
        if settings["lesson"]:
            speed = SPEED_OF_A_LESSON
        elif needs_speed:
            if stored_speed is not None:
                speed = stored_speed(device, precision, num_workers)
            if speed is None:
                say_meanwhile("measuring ...")
                speed = measure_speed(device, getattr(torch, precision), num_workers)
        name = device.type if processes > 1 else str(device)
        machine = Machine(speed, processes, num_workers, name, precision)
        yield machine
        if device.type != "cpu" and machine.flops >= _FASTER_THAN_PROCESSORS:
            return


def _has_choice(settings: Settings) -> bool:
    """Whether the device is left to the plan."""
    is_open: bool = settings["device"] == "auto"
    return is_open and distributed.world_size() == 1


def _can_copy(asked: Beginning) -> bool:
    """Whether the model begins with an induction circuit. Where its size is not given, the usual
    size is assumed."""
    settings = asked.settings
    if settings["embedding_init"] != "text":
        return False

    names = ["architecture", *PARTS, "num_layers"]
    if not settings.is_open("emb_dim"):
        names += ["emb_dim", "num_heads", "num_kv_heads", "head_dim"]
        settings = settings.planned(num_heads=rules.plan_heads(settings["emb_dim"]))
    fields = {name: settings[name] for name in names if not settings.is_open(name)}
    model = GPTConfig(vocab_size=1, context_length=1, **fields)
    return induction.reserved_components(model, settings["tokenizer"]) > 0


# The choice


def choose_plan(measured: Measured) -> Planned:
    """The plan for the device and the beginning that are expected to end lowest.

    A training that may begin with the base does so if that is expected to end with a lower loss. If
    nobody named a device and there is a GPU, the plan is for the GPU or the CPU: where the training
    is expected to end with a lower loss or, if the losses are alike, sooner.
    """
    plans = [_plan_on(machine, measured) for machine in measured.machines]
    planned = plans[0]
    if len(plans) == 2:
        on_gpu, on_cpu = plans
        planned = min(plans, key=_expected)  # the lower one or, if they end alike, the sooner
        planned = replace(planned, why_device=why_device(planned, on_gpu, on_cpu))
    elif planned.machine.device != "cpu" and _has_choice(planned.asked):
        planned = replace(planned, why_device=why_gpu(planned))
    check_step(planned)
    return replace(planned, held_out=measured.held_out).checked()


def _plan_on(machine: Machine, measured: Measured) -> Planned:
    """The plan for one machine. Settings follow from its rounded speed, so that the same machine
    plans the same ones again; the forecast is for the speed that was measured."""
    rounded = machine.rounded()
    beginning, from_nothing, with_base = _choose_beginning(rounded, measured)
    planned = _plan_for(beginning, rounded, forecast_by=machine)
    return replace(planned, from_nothing=from_nothing, with_base=with_base)


def _plan_for(
    beginning: Beginning, machine: Machine, *, forecast_by: Machine | None = None
) -> Planned:
    """The plan of a training that begins with this."""
    text = beginning.text
    assert text is not None
    return plan(text, machine, beginning.settings, beginning.config, forecast_by=forecast_by)


def _choose_beginning(
    machine: Machine, measured: Measured
) -> tuple[Beginning, float | None, float | None]:
    """What to begin with, and the losses to expect from nothing and with the base if there was a
    choice between these two."""
    asked, *others = measured.beginnings
    if not others:
        return asked, None, None

    (base,) = others
    tuned = _plan_for(base, machine)
    if not has_time_for_a_step(tuned):
        return asked, None, None

    with_base = tuned.bits_per_byte
    from_nothing = _plan_for(asked, machine).bits_per_byte
    before = tuned.text.loss_before
    assert before is not None and with_base is not None and from_nothing is not None
    if not knows_language(before, from_nothing):
        with_base = before  # it would have to forget first what it knows
    chosen = base if is_worthwhile(with_base, from_nothing) else asked
    return chosen, from_nothing, with_base


def _expected(planned: Planned) -> tuple[float, float]:
    """The loss that a plan is expected to reach, if that is known, and its seconds a token."""
    return round(planned.bits_per_byte or 0.0, 2), planned.seconds / planned.trained_tokens


def why_device(chosen: Planned, on_gpu: Planned, on_cpu: Planned) -> str:
    """Why one of two plans is chosen, in a line."""
    gpu = on_gpu.machine.device
    size = _size_of(chosen)
    model = chosen.model
    tokens = chosen.settings["batch_size"] * model.context_length
    cpu = used_by(chosen.settings, on_cpu.machine)
    ratio = cpu.seconds(model, tokens) / on_gpu.machine.seconds(model, tokens)
    if chosen is on_gpu:
        return f"training on {gpu}: for {size} it is {ratio:.1f} times as fast as the processor"
    return f"{gpu} is here, but for {size} the processor is {1 / ratio:.1f} times as fast"


def why_gpu(planned: Planned) -> str:
    """Why the only plan is for a GPU that nobody named, in a line."""
    gpu = planned.machine.device
    return f"training on {gpu}: for {_size_of(planned)} no processor is as fast"


def _size_of(planned: Planned) -> str:
    return f"{rules.parameters_to_train(planned.model) / 1e6:.1f} M parameters"
