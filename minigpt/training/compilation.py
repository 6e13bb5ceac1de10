"""The loss, compiled by torch.compile if that saves time and works here."""

import hashlib
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from .. import __version__
from ..config import GPTConfig, TrainConfig
from ..model import GPT

# A shorter run ends before compiled steps have won back the time to compile (about 20 seconds the
# first time, 4 from the cache, for steps a quarter faster; 4 layers of width 128 on 2 cores).
MINUTES_TO_PAY, _STEPS_TO_PAY = 3.0, 1000
_MINUTES_TO_PAY_IF_DONE_BEFORE, _STEPS_TO_PAY_IF_DONE_BEFORE = 1.0, 200


class Loss(nn.Module):
    """A model's loss, as a function of inputs and targets ``(b, T)``."""

    def __init__(self, model: GPT):
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy in nats a token."""
        return self.model(inputs, targets)[1]


def should_compile(
    config: TrainConfig, model: GPTConfig, device: torch.device, processes: int = 1
) -> Literal["on", "off"]:
    """Whether to compile: as told, or if the training is long enough to win the time back."""
    if config.compile != "auto":
        return config.compile
    if device.type == "mps":
        return "off"
    done_before = compile_marker(config, model, device, processes).exists()
    minutes = _MINUTES_TO_PAY_IF_DONE_BEFORE if done_before else MINUTES_TO_PAY
    steps = _STEPS_TO_PAY_IF_DONE_BEFORE if done_before else _STEPS_TO_PAY
    enough = config.minutes >= minutes if config.steps is None else config.steps >= steps
    return "on" if enough else "off"


def compile_marker(
    config: TrainConfig, model: GPTConfig, device: torch.device, processes: int = 1
) -> Path:
    """The empty file beside torch's compiled code that says that this loss is compiled already."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir  # takes a second to load

    what = (
        __version__, torch.__version__, platform.node(), torch.get_num_threads(), device.type,
        processes, model, config.batch_size, config.micro_batch_size, config.warmup_context,
        config.precision, config.shard,
    )  # fmt: skip
    return Path(cache_dir()) / f"minigpt-{hashlib.sha256(repr(what).encode()).hexdigest()[:32]}"


def compile_loss(loss: nn.Module, try_out: Callable[[], None]) -> str | None:
    """Compile a loss in place; returns why it cannot be compiled, if it cannot.

    `try_out` computes it and its gradients on batches like those to come, which compiles it.
    """
    # Random numbers as without compiling: those of compiled loops take a tenth of a step more.
    # Separate code for each shape: code for all shapes takes three times as long to compile.
    loss.forward = torch.compile(loss.forward, dynamic=False, options={"fallback_random": True})
    try:
        try_out()
    except (torch._dynamo.exc.TorchDynamoException, torch._inductor.exc.InductorError) as error:
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return None


def not_compiled(loss: nn.Module) -> None:
    """Undo :func:`compile_loss`."""
    del loss.forward
    torch._dynamo.reset()
