"""What tests do to a run that is being trained: stop it, resume it, look at what is left of it."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import minigpt
from minigpt.recipe.run import resume_run
from minigpt.training.interruption import Interrupted
from minigpt.training.weights import WeightAverage
from tests.conftest import tiny_settings


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def resume(folder: Path, **changes: Any) -> Path:
    return resume_run(folder, changes, time.monotonic())


def after_step(
    monkeypatch: pytest.MonkeyPatch, is_due: Callable[[int], bool], action: Callable[[], Any]
) -> None:
    """Have something happen at the end of the steps that are due."""
    plain = WeightAverage.update

    def update(self: WeightAverage, step: int) -> None:
        plain(self, step)
        if is_due(step + 1):
            action()

    monkeypatch.setattr(WeightAverage, "update", update)


def interrupted(
    out: str | Path,
    step: int = 3,
    number: int = signal.SIGINT,
    texts: Any = ("my.txt",),
    **changes: Any,
) -> Interrupted:
    """A run stopped by a signal at the end of a step, and what it was stopped with."""
    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(Interrupted) as stopped:
        after_step(monkeypatch, lambda at: at == step, lambda: signal.raise_signal(number))
        minigpt.train(*texts, out=out, **tiny_settings(**changes))
    return stopped.value
