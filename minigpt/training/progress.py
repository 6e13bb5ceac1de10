"""What a person sees of a training while it goes on: a bar, and a line for each evaluation."""

from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from ..runs.folder import INTERPOLATION
from .messages import bar, clock, say

if TYPE_CHECKING:
    from .trainer import Trainer


class Progress:
    """A callback that prints on standard error."""

    only_reports = True

    def __init__(self) -> None:
        self._bar: tqdm | None = None

    def on_start(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        self._bar = bar(total=100, bar_format="{percentage:3.0f}%|{bar}| {desc}")

    def on_step(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        if self._bar is None or self._bar.disable:
            return
        done = figures["done"]
        left = clock(figures["seconds_left"])
        loss = f"{figures['train_bits_per_byte']:.2f} bits/byte"
        speed = f"{figures['tokens_per_second']:,.0f} tokens/s"
        line = f"{left} left, loss {loss}, {speed}"
        self._bar.set_description_str(line if done > 0.001 else "", refresh=False)
        self._bar.update(100 * done - self._bar.n)

    def on_evaluation(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        training = figures["train_bits_per_byte"]
        validation = figures["val_bits_per_byte"]
        losses = f"training {training:.3f}, validation {validation:.3f} bits/byte"
        best = ""
        if figures["is_kept"]:
            best = " (kept)" if INTERPOLATION in figures else " (best so far)"
        say(f"step {figures['step']:,} at {clock(figures['seconds'])}: {losses}{best}")

    def on_end(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        if self._bar is not None:
            self._bar.close()
