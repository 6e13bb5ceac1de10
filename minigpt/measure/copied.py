"""How much of what a new model writes is copied from its text: the last line of a training."""

import contextlib
import time
from dataclasses import asdict
from functools import partial
from typing import Any

from torch import nn

from .. import UserError
from ..config import SampleConfig
from ..data.batches import Dataset
from ..data.source import read_again
from ..generation.torch_gpt import soonest_engine_of
from ..generation.writer import Writer
from ..runs.state import keep_copied
from ..training.callbacks import Training
from ..training.messages import say

_MOST_SECONDS = 3.0  # that looking may take
_MOST_OF_THE_TIME = 0.02  # of the minutes, likewise


def seconds_to_look(network: nn.Module, dataset: Dataset) -> float:
    """About the seconds that it takes to write some texts and to look them up."""
    parameters = sum(parameter.numel() for parameter in network.parameters())
    return 1 + parameters / 3e6 + len(dataset.train) / 1e6


def reserved_seconds(network: nn.Module, dataset: Dataset, minutes: float) -> float:
    """The seconds that a training by time keeps free to look afterwards; 0 if it will not look, or
    if that takes too much of its minutes."""
    seconds = seconds_to_look(network, dataset)
    can_look = dataset.origin.text is not None and seconds < _MOST_SECONDS
    if can_look and seconds < _MOST_OF_THE_TIME * 60 * minutes:
        return seconds
    return 0.0


def say_copied(trainer: Training, usual: SampleConfig) -> None:
    """How much of what a trained model writes is copied from its text, if there is time to look.
    It is sampled as usual."""
    expected = seconds_to_look(trainer.model, trainer.dataset)
    origin = trainer.dataset.origin
    if expected >= _MOST_SECONDS or origin.text is None:
        return
    left = _MOST_SECONDS
    if trainer.config.steps is None:
        left = trainer.started + 60 * trainer.config.minutes - time.monotonic()

    read_text = partial(read_again, origin.text, origin.fingerprint)
    writer = writer_of(trainer, usual, read_text=read_text)
    start = time.monotonic()
    writer.samples(samples=8, max_new_tokens=8, seed=0)  # of the 200 that are to come
    if 60 * (time.monotonic() - start) < left:  # half of it to write, half to look them up
        with contextlib.suppress(UserError):  # the text cannot be read again
            result = writer.copied()
            say(f"copied: of what it writes, {result}")
            if trainer.folder.path is not None:
                with contextlib.suppress(OSError):  # the disk is full, say
                    keep_copied(trainer.folder.path, asdict(result))


def writer_of(trainer: Training, usual: SampleConfig, **more: Any) -> Writer:
    """A writer with the model in its present state; `more` are further arguments of it."""
    dataset = trainer.dataset
    origin = dataset.origin
    return Writer(
        soonest_engine_of(trainer.model, trainer.context_length),
        dataset.tokenizer,
        knows_documents=origin.knows_documents,
        alphabet=origin.alphabet,
        dialogue=origin.dialogue,
        usual=usual,
        **more,
    )
