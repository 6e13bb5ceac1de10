"""The loss, and torch.compile for it where that pays; where there is no compiler, plain."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from ..caches import compiled_code
from ..config import GPTConfig, TrainConfig
from ..model import GPT

# Below these a run ends before the compiled steps have won back the time to compile (about
# 20 seconds the first time, 4 from the cache, against a gain of about a quarter; measured for
# 4 layers of width 128 on 2 cores).
_MINUTES_TO_PAY, _STEPS_TO_PAY = 3.0, 1000
_MINUTES_TO_PAY_AGAIN, _STEPS_TO_PAY_AGAIN = 1.0, 200


class Loss(nn.Module):
    """A model's loss, as a function of inputs and targets ``(b, T)``."""

    def __init__(self, model: GPT):
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy in nats a token."""
        return self.model(inputs, targets)[1]


def worth_compiling(config: TrainConfig, device: torch.device, record: Path) -> bool:
    """Whether to compile: as told, or where it is won back.

    Args:
        config: of the training; the time it has counts.
        device: to train on.
        record: from :func:`record_of`; where there is one, compiling takes a moment.
    """
    if config.compile != "auto":
        return config.compile == "on"
    if device.type == "mps":
        return False
    again = record.exists()
    if config.steps is not None:
        return config.steps >= (_STEPS_TO_PAY_AGAIN if again else _STEPS_TO_PAY)
    return config.minutes >= (_MINUTES_TO_PAY_AGAIN if again else _MINUTES_TO_PAY)


def record_of(model: GPTConfig, config: TrainConfig, processes: int) -> Path:
    """The empty file beside torch's compiled code that says that it has this loss already.

    Args:
        model: the shape.
        config: whose batch, precision, and sharding the code depends on.
        processes: that train together.
    """
    what = (
        torch.__version__, torch.get_num_threads(), model, config.batch_size,
        config.micro_batch_size, config.precision, config.shard, processes,
    )  # fmt: skip
    return compiled_code() / f"minigpt-{hashlib.sha256(repr(what).encode()).hexdigest()[:32]}"


def compile_loss(loss: nn.Module, try_out: Callable[[], None]) -> str | None:
    """Compile a loss in place.

    Args:
        loss: to compile.
        try_out: runs it once, forwards and backwards, on a batch like those to come; compilation
            happens there.

    Returns:
        Why it cannot be compiled, if it cannot be.
    """
    compiled_code()  # from where torch takes it the next time
    # Random numbers as without compiling: those of compiled loops take a tenth of a step more.
    loss.forward = torch.compile(loss.forward, options={"fallback_random": True})
    try:
        try_out()
    except (torch._dynamo.exc.TorchDynamoException, torch._inductor.exc.InductorError) as error:
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return None


def not_compiled(loss: nn.Module) -> None:
    """Undo :func:`compile_loss`."""
    del loss.forward
    torch._dynamo.reset()
