"""The loss, compiled by torch.compile where that is asked for, or where a GPU gains by it."""

import importlib.util
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .. import UserError
from ..config import TrainConfig
from ..data.batches import Batch
from ..devices.memory import is_out_of_memory
from .loss import Loss
from .messages import say
from .precision import autocast, dtype_of

# Compiling takes about 35 s for each of two shapes, and may double the speed of recorded steps:
_LONG = 5.0  # minutes from which a training gains by it
_MANY = 20_000  # steps: likewise, of 3 ms to 50 ms each
_OLDEST = (7, 0)  # compute capability that Triton, which writes the code, knows


def compile_for_training(
    loss: Loss, synchronised: nn.Module, parts: list[Batch], config: TrainConfig
) -> None:
    """Compile a loss in place if the config asks for it or, with compile "auto", the training is
    long enough to gain by it; or say in a line what prevents that.

    `synchronised` is the same loss as DDP computes it, and `parts` have all shapes of the parts to
    come.

    Raises:
        UserError: if it cannot be compiled and the config says "on".
    """
    is_long = config.minutes >= _LONG if config.steps is None else config.steps >= _MANY
    if config.compile == "off" or (config.compile == "auto" and not is_long):
        return
    device = next(loss.parameters()).device

    def try_out() -> None:
        for inputs, targets in parts:
            with autocast(device, dtype_of(config)):
                value, _ = synchronised(inputs.to(device), targets.to(device))
            value.backward()
            loss.zero_grad()

    problem = why_not_compiled(device) if config.compile == "auto" else None
    if problem is None:
        say("compiling the model, which takes up to a minute ...")
        problem = compile_loss(loss, try_out)
    if problem is not None and config.compile == "on":
        raise UserError(f"cannot compile the model: {problem}; use --compile off")
    if problem is not None:
        say(f"the model is not compiled, so that steps take longer: {problem}")


def why_not_compiled(device: torch.device) -> str | None:
    """What is missing to compile for a GPU, or None."""
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    if not any(map(shutil.which, ("cc", "gcc", "clang", "cl"))):
        return "there is no C compiler"
    if torch.version.hip is None and torch.cuda.get_device_capability(device) < _OLDEST:
        return f"{torch.cuda.get_device_name(device)} is too old for Triton"
    return None


def compile_loss(loss: nn.Module, try_out: Callable[[], None]) -> str | None:
    """Compile a loss in place; None, or a line that says why it cannot be compiled and stays as it
    is.

    `try_out` computes the loss and its gradients on batches like those to come: torch compiles it
    then.
    """
    # Random numbers as without compiling: drawn in compiled loops they take a tenth of a step more.
    # Separate code for each shape: code for all shapes takes three times as long to compile.
    options: dict[str, Any] = {"fallback_random": True}
    try:
        loss.forward = torch.compile(loss.forward, dynamic=False, options=options)
    except RuntimeError as error:  # this Python is too new for it, or this system unknown to it
        return _first_line(error)

    try:
        try_out()
    except (torch._dynamo.exc.TorchDynamoException, ImportError, OSError) as error:
        if is_out_of_memory(error):
            raise
        del loss.forward  # the method of the class is left
        loss.zero_grad()
        return _first_line(error)
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
