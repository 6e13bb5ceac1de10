"""What a training begins with: whether a network, a dataset and a device fit together, found out
before anything is written; its config with nothing left "auto"; and what all lessons share.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from .. import UserError
from ..config import LESSON, TrainConfig
from ..data.batches import Dataset
from ..data.source import check_context
from ..model import GPT
from ..system.networks import evaluating, same_modes, unwrapped
from . import distributed, workers
from .callbacks import check_callbacks
from .precision import choose_precision

_CONTEXT_LENGTH = 256  # of a network that does not say how far back it looks


def check_batch(batch_size: int) -> None:
    """Refuse a batch that cannot be divided evenly."""
    size = distributed.world_size()
    if batch_size % size != 0:
        raise UserError(f"batch_size must be a multiple of {size}, the processes; got {batch_size}")


def config_for(model: nn.Module, config: TrainConfig) -> tuple[TrainConfig, torch.device]:
    """The config with nothing left "auto" but to compile, as it is for this model; and the device
    that the model is trained on. "auto" is the one that it is on, if that is not a CPU.

    A lesson has the settings that all lessons share: it is a training whose losses are the same on
    every laptop, to the third digit. It computes in float32 with one thread, since a sum that
    several threads share out is rounded otherwise, and it is as many steps long as the plan says,
    however long they take. Processors of different makers still round a little differently.
    """
    if config.lesson:
        config = replace(config, **LESSON)

    device = next(model.parameters()).device
    stays = config.device == "auto" and device.type != "cpu" and distributed.world_size() == 1
    if not stays:
        device = distributed.device_of_rank(config.device)
    return resolved(config, device, is_gpt=type(model) is GPT), device


def resolved(config: TrainConfig, device: torch.device, is_gpt: bool = True) -> TrainConfig:
    """The config with the device and the precision that "auto" means here, so that a resumed run
    continues alike.

    A network that is no `GPT` is not known to work compiled or in bfloat16: it is trained that way
    only if the config names it.
    """
    name = device.type if config.device == "auto" else config.device
    config = replace(config, device=name)
    if not is_gpt:
        precision = "float32" if config.precision == "auto" else config.precision
        compile = "off" if config.compile == "auto" else config.compile
        return replace(config, precision=precision, compile=compile)
    return replace(config, precision=choose_precision(config.precision, device))


def context_length_of(model: nn.Module, given: int | None) -> int:
    """How many tokens a model sees: what its config says, or what was given."""
    own = getattr(getattr(unwrapped(model), "config", None), "context_length", None)
    if own is None and given is None:
        return _CONTEXT_LENGTH
    if own is None:
        if not isinstance(given, int) or given < 1:
            raise UserError(f"context_length must be a whole number, at least 1, got {given!r}")
        return given
    if given not in (None, own):
        raise UserError(f"the model's own context_length is {own:,}; leave context_length out")
    return own


def check_arguments(
    model: Any, dataset: Any, config: Any, *, loss: Any, schedule: Any, callbacks: Any
) -> None:
    """Refuse arguments that no trainer takes, and a network with nothing to train."""
    if not isinstance(model, nn.Module):
        raise UserError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError("the model has no parameter that is trained: requires_grad is off in all")

    if not isinstance(dataset, Dataset):
        kind = type(dataset).__name__
        raise UserError(f"dataset must be what minigpt.prepare returns, got {kind}")
    if not isinstance(config, TrainConfig):
        raise UserError(f"config must be a minigpt.TrainConfig, got {type(config).__name__}")
    if loss is not None and not callable(loss):
        kind = type(loss).__name__
        raise UserError(f"loss must be a function of model, inputs and targets, got {kind}")
    if schedule is not None and not callable(schedule):
        kind = type(schedule).__name__
        raise UserError(f"schedule must be a function of the share that is done, got {kind}")

    check_batch(config.batch_size)
    if config.lesson and config.steps is None:
        raise UserError("a lesson is trained for steps and not for minutes: give steps=")
    if config.lesson and distributed.world_size() > 1:
        raise UserError("--lesson is for one process; leave torchrun out", kind="setting")
    check_callbacks(callbacks)


def check_fit(model: nn.Module, dataset: Dataset, context_length: int) -> None:
    """Refuse a text that does not hold a single window or nothing to validate on, and a network
    that does not map ids ``(b, T)`` to logits ``(b, T, vocab_size)``: it is tried on two short
    texts, and keeps its mode."""
    check_context(len(dataset.train), context_length)
    if len(dataset.validation) < 2:
        raise UserError("the dataset has fewer than 2 tokens to validate on", kind="too_short")

    vocab_size = dataset.tokenizer.vocab_size
    own = getattr(getattr(unwrapped(model), "config", None), "vocab_size", vocab_size)
    if own != vocab_size:
        raise UserError(
            f"the model has {own:,} tokens, but the dataset's tokenizer has {vocab_size:,}"
        )
    if type(model) is GPT:
        return

    device = next(model.parameters()).device
    length = min(context_length, 8)
    ids = torch.zeros((2, length), dtype=torch.int64, device=device)  # (b, T)
    with evaluating(model), torch.no_grad():
        logits = model(ids)

    expected = (2, length, vocab_size)
    found = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if found != expected:
        raise UserError(
            f"for ids (2, {length}) the model returns {found}; it must return logits {expected}, "
            "(b, T, vocab_size)"
        )


@contextlib.contextmanager
def undisturbed(model: nn.Module, config: TrainConfig) -> Iterator[None]:
    """Within, a model is trained, by workers if the config says so. Afterwards the caller's random
    numbers go on as before, torch has as many threads, and each part of the model is in its mode.
    """
    with (
        same_random_numbers(),
        same_modes(model),
        threads_of(config),
        workers.team(workers.number_for(model, config)),
    ):
        yield


def same_random_numbers() -> contextlib.AbstractContextManager[None]:
    """Afterwards random numbers go on as before. A GPU that this process has not used is left
    alone: it may be busy, and to use it takes seconds and memory."""
    count = torch.cuda.device_count() if torch.cuda.is_initialized() else 0
    return torch.random.fork_rng(range(count))


@contextlib.contextmanager
def threads_of(config: TrainConfig) -> Iterator[None]:
    """Within, torch has one thread if this is a lesson, else as many as before."""
    threads = torch.get_num_threads()
    if config.lesson:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
