"""The loss, compiled by torch.compile where that is asked for, or on a GPU."""

from collections.abc import Callable

import torch
from torch import nn

from .. import UserError
from ..config import TrainConfig
from . import distributed
from .gradients import Part
from .loss import Loss
from .messages import say
from .precision import autocast, dtype_of


def prepared(loss: Loss, parts: list[Part], config: TrainConfig) -> nn.Module:
    """A loss whose gradients are the mean over all processes, compiled if the config says so. The
    parts are like those that are to come: each shape is compiled."""
    synchronised = distributed.synchronised(loss)
    if config.compile != "on":
        return synchronised

    device = next(loss.parameters()).device

    def try_out() -> None:
        for inputs, targets in parts:
            with autocast(device, dtype_of(config)):
                value, _ = synchronised(inputs.to(device), targets.to(device))
            value.backward()
            loss.zero_grad()

    say("compiling the model, which takes up to a minute ...")
    compile_loss(loss, try_out)
    return synchronised


def compile_loss(loss: nn.Module, try_out: Callable[[], None]) -> None:
    """Compile a loss in place; UserError if that cannot be done.

    `try_out` computes it and its gradients on batches like those to come, which compiles it.
    """
    # Random numbers as without compiling: those of compiled loops take a tenth of a step more.
    # Separate code for each shape: code for all shapes takes three times as long to compile.
    loss.forward = torch.compile(loss.forward, dynamic=False, options={"fallback_random": True})
    try:
        try_out()
    except (torch._dynamo.exc.TorchDynamoException, torch._inductor.exc.InductorError) as error:
        problem = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"cannot compile the model: {problem}; use --compile off") from None
