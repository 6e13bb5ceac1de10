"""What a plan is made from and how it is told: the text, the machine, `--plan`, `minigpt plan`."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..config import PLANNED, TextConfig, TrainConfig, to_dict
from ..data.corpus import Corpus, Source, find_source
from ..model import count_parameters
from ..runs import FoundModel, choose_device, starting_point
from .device import choose_precision
from .ngram_baseline import bits_per_byte
from .plan import Plan, TextStats, make_plan
from .speed import Speed, measure_speed

_ANY = Speed(flops=1e11, start=0.0)  # where it makes no difference
_SAMPLE = 800_000  # characters from the start of the text, to see how predictable it is
_LEAST = 0.1  # bits a byte; no model is as sure of a repetition as counting is
_WHY = {
    "time": "the widest that so many steps can train",
    "text": "the widest that a text of this size can feed",
    "settings": "as wide as the settings allow",
}


@dataclass(frozen=True)
class PlannedRun:
    """A plan, and what it was made from."""

    plan: Plan
    text: TextStats
    speed: Speed | None  # None where everything was given that it decides about
    minutes: float

    def reasons(self) -> list[str]:
        """What was measured and why it was so chosen, in a few lines."""
        plan = self.plan
        lines = []
        if self.speed is not None:
            lines.append(
                f"this machine computes {self.speed.flops / 1e9:,.0f} GFLOP/s in a training step: "
                f"about {plan.steps:,} steps in {plan.seconds / 60:.1f} minutes"
            )
        lines += [
            f"width {plan.model.emb_dim} is {_WHY[plan.limit]}",
            f"dropout {plan.model.dropout:g}, since the text is read {plan.epochs:,.1f} times",
            *_until_the_last_fifth(plan),
            f"to be expected: about {plan.bits_per_byte:.1f} bits/byte",
        ]
        if plan.ends_early:
            lines.append(
                f"more than {plan.max_epochs:g} times would teach it nothing more: ends early"
            )
        return lines

    def to_json(self) -> str:
        """The text of `plan.json`."""
        return json.dumps(dataclasses.asdict(self) | {"reasons": self.reasons()}, indent=2) + "\n"


def _until_the_last_fifth(plan: Plan) -> list[str]:
    """What is different before the end, when validation is suddenly better; one line or none."""
    parts = []
    if plan.token_split_prob:
        parts.append(f"{plan.token_split_prob:.0%} of the tokens are respelled")
    if plan.warmup_context < plan.model.context_length:
        parts.append(f"windows are cut to {plan.warmup_context} tokens")
    if not parts:
        return []
    return [f"until the last fifth {' and '.join(parts)}; expect validation to fall after that"]


def plan_run(
    source: Source,
    text: TextConfig,
    given: Mapping[str, Any],
    device: torch.device,
    precision: torch.dtype,
    processes: int = 1,
) -> PlannedRun:
    """Measure the text and the machine, and plan around what is given.

    Args:
        source: the text.
        text: how it becomes tokens.
        given: fields of TextConfig, GPTConfig and TrainConfig that are settled.
        device: to train on.
        precision: of the matrix products.
        processes: that train together.

    Raises:
        UserError: if no model can be made with what is given, or the text cannot be read.
    """
    facts = text_stats(source, text)
    speed = None if _is_settled(given) else measure_speed(device, precision)
    minutes = given.get("minutes", TrainConfig.minutes)
    plan = make_plan(facts, speed or _ANY, given, processes)
    return PlannedRun(plan, facts, speed, minutes)


def _is_settled(given: Mapping[str, Any]) -> bool:
    """Whether nothing is left that the speed of the machine decides about."""
    return given.get("steps") is not None and {"emb_dim", "num_layers"} <= given.keys()


def text_stats(source: Source, text: TextConfig) -> TextStats:
    """What the plan wants to know of a text, from its size and its beginning.

    Raises:
        UserError: if it cannot be read.
    """
    size = source.training.size
    bits = _bits_by_counting(source.training, text.validation_fraction)
    if source.validation:
        return TextStats(size, source.validation.size, text.tokenizer, bits)
    rest = round(size * (1.0 - text.validation_fraction))
    return TextStats(rest, size - rest, text.tokenizer, bits)


def _bits_by_counting(corpus: Corpus, fraction: float) -> float:
    """Bits that the end of a sample takes a byte, predicted by what was counted before it."""
    pieces, length = [], 0
    for _, piece in corpus.documents():
        pieces.append(piece[: _SAMPLE - length])
        length += len(pieces[-1])
        if length == _SAMPLE:
            break
    sample, end = "".join(pieces), int(length * (1 - fraction))
    return max(bits_per_byte(sample[:end], sample[end:]), _LEAST)


def planned_run(
    text: dict[str, Any], model: dict[str, Any], training: dict[str, Any]
) -> tuple[PlannedRun, dict[str, Any]]:
    """A plan for what was given, and all of that in one.

    Args:
        text: fields of TextConfig.
        model: fields of GPTConfig.
        training: fields of TrainConfig.

    Raises:
        UserError: if something given cannot be used.
    """
    text_config, config = TextConfig(**text), TrainConfig(**training)
    source, start = find_source(text_config), starting_point(text, model)
    given = settled(text, model, training, start)
    device = choose_device(config.device)
    precision = choose_precision(config.precision, device)
    return plan_run(source, text_config, given, device, precision), given


def settled(
    text: dict[str, Any],
    model: dict[str, Any],
    training: dict[str, Any],
    start: FoundModel | None,
) -> dict[str, Any]:
    """What a plan has to go by: all that was given, or all of the model to begin with."""
    return {**text, **(to_dict(start.model.config) if start else model), **training}


def print_plan(planned: PlannedRun) -> None:
    """What `--plan` shows: the reasons, and the settings as options; on standard output."""
    plan = planned.plan
    chosen = {n: getattr(plan if hasattr(plan, n) else plan.model, n) for n in PLANNED}
    if planned.text.tokenizer != "bpe":
        del chosen["vocab_size"]
    for line in planned.reasons():
        print(line)
    options = (f"--{name.replace('_', '-')} {value:g}" for name, value in chosen.items())
    print(" ".join(options), flush=True)


def print_table(planned: PlannedRun, given: Mapping[str, Any], minutes: Sequence[float]) -> None:
    """What so many minutes would give, a row for each; on standard output.

    Args:
        planned: for the same text and machine.
        given: from :func:`planned_run`.
        minutes: to compare.
    """
    print(
        f"{'minutes':>8}{'parameters':>12}{'layers x width':>16}{'vocabulary':>12}{'steps':>9}"
        f"{'passes':>8}{'dropout':>9}{'bits/byte':>11}"
    )
    for count in minutes:
        plan = make_plan(planned.text, planned.speed or _ANY, {**given, "minutes": count})
        model = plan.model
        shape = f"{model.num_layers} x {model.emb_dim}"
        print(
            f"{count:>8g}{count_parameters(model) / 1e6:>10.2f} M{shape:>16}{model.vocab_size:>12,}"
            f"{plan.steps:>9,}{plan.epochs:>8,.1f}{model.dropout:>9g}{plan.bits_per_byte:>11.2f}",
            flush=True,
        )
