"""torch.compile where it pays, with a plain fall-back where there is no compiler."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..config import TrainConfig
from ..model import GPT

# Below these a run ends before the compiled steps have won back the time to compile (about
# 20 seconds the first time, 4 from the cache, against a gain of about a quarter; measured for
# 4 layers of width 128 on 2 cores).
_MINUTES_TO_PAY, _STEPS_TO_PAY = 2.0, 1000

Loss = Callable[[Tensor, Tensor], Tensor]


def loss_function(model: GPT) -> Loss:
    """The model's loss as a function of inputs and targets ``(b, T)``."""
    return lambda inputs, targets: model(inputs, targets)[1]


def worth_compiling(config: TrainConfig, device: torch.device) -> bool:
    """Whether to compile: as told, or where it is won back."""
    if config.compile != "auto":
        return config.compile == "on"
    if device.type == "mps":
        return False
    if config.steps is not None:
        return config.steps >= _STEPS_TO_PAY
    return config.minutes >= _MINUTES_TO_PAY


def compiled_loss(model: GPT, try_out: Callable[[Loss], None]) -> tuple[Loss, str | None]:
    """The model's loss, compiled, and why it is not if it cannot be.

    Args:
        model: to compile.
        try_out: runs a loss once, forwards and backwards, on a batch like those to come;
            compilation happens there.
    """
    # Random numbers as without compiling: those of compiled loops take a tenth of a step more.
    loss = torch.compile(loss_function(model), options={"fallback_random": True})
    try:
        try_out(loss)
    except (torch._dynamo.exc.TorchDynamoException, torch._inductor.exc.InductorError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        torch._dynamo.reset()
        return loss_function(model), reason
    return loss, None
