"""The loss, compiled by torch.compile where that is asked for, or on a GPU."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .. import UserError
from ..model import GPT


class Loss(nn.Module):
    """A model's loss, as a function of inputs and targets ``(b, T)``."""

    def __init__(self, model: GPT):
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy in nats a token."""
        return self.model.loss(inputs, targets)


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
