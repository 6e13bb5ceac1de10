"""The loss, compiled by torch.compile where that is asked for, or on a GPU."""

from collections.abc import Callable

import torch
from torch import nn

from .. import UserError


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
