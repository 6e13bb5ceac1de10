"""What a run's journal costs: python benchmarks/journal.py [--pairs 5]

Trains the same model for the same steps with the journal and its texts and without, in pairs one
after the other, on the tales. Prints the seconds of training of both and the median of the ratios.
"""

import argparse
import contextlib
import io
import math
import statistics
import tempfile
import time
from pathlib import Path
from unittest import mock

import minigpt
from minigpt.config import TrainConfig
from minigpt.data.batches import Dataset
from minigpt.recipe.texts_while_learning import Samples
from minigpt.runs.journal import Journal
from minigpt.training.folder import RunFolder
from minigpt.training.reports import SECONDS

STEPS = 300
TALES = Path(__file__).parent.parent / "data" / "tales.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what a run's journal costs.")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()

    dataset = minigpt.prepare(TALES)
    ratios = []
    for pair in range(given.pairs):
        is_first = pair % 2 == 0  # so that a machine that becomes slower favours neither
        measured = {has: seconds(dataset, given.steps, has) for has in (is_first, not is_first)}
        ratios.append(measured[True] / measured[False])
        print(
            f"with {measured[True]:.1f} s, without {measured[False]:.1f} s: {ratios[-1]:.3f}",
            flush=True,
        )
    print(f"median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")


def seconds(dataset: Dataset, steps: int, has_journal: bool) -> float:
    """How long a training of a model of about a million parameters takes."""
    vocab_size = dataset.tokenizer.vocab_size
    config = minigpt.GPTConfig(vocab_size, emb_dim=128, num_layers=4, num_heads=4)
    training = TrainConfig(steps=steps, batch_size=8, num_evals=2)
    callbacks: list[object] = []
    if has_journal:
        callbacks.append(Samples())

    between_writings = SECONDS if has_journal else math.inf  # of the losses of steps
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stderr(io.StringIO()),
        mock.patch("minigpt.training.reports.SECONDS", between_writings),
    ):
        journal = None if has_journal else _Silent(Path(folder))
        trainer = minigpt.Trainer(
            minigpt.GPT(config),
            dataset,
            training,
            out=RunFolder(Path(folder) / "run", journal),
            callbacks=callbacks,
        )
        start = time.monotonic()
        trainer.train()
        return time.monotonic() - start


class _Silent(Journal):
    """A journal that is never opened, and keeps nothing of what it is told."""

    def tell(self, phase: str | None = None, **more: object) -> None:
        pass


if __name__ == "__main__":
    main()
