"""How a plan is printed."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..config import PLANNED
from ..model import count_parameters
from .plan import PlannedRun, make_plan, planned_run

__all__ = ["planned_run", "print_plan", "print_table"]


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
        plan = make_plan(planned.text, planned.speed, {**given, "minutes": count})
        model = plan.model
        shape = f"{model.num_layers} x {model.emb_dim}"
        print(
            f"{count:>8g}{count_parameters(model) / 1e6:>10.2f} M{shape:>16}{model.vocab_size:>12,}"
            f"{plan.steps:>9,}{plan.epochs:>8,.1f}{model.dropout:>9g}{plan.bits_per_byte:>11.2f}",
            flush=True,
        )
