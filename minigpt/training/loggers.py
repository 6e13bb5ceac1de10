"""Where the figures of an evaluation go besides metrics.jsonl: TensorBoard, Weights & Biases."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..config import UserError

Logger = Callable[[dict[str, Any]], None]


def make_logger(name: str, folder: Path) -> Logger | None:
    """The logger called `name`, or None for "none".

    Raises:
        UserError: if what it needs is not installed, naming it.
    """
    try:
        return {"none": lambda _: None, "tensorboard": _tensorboard, "wandb": _wandb}[name](folder)
    except ImportError:
        raise UserError(
            f"--log {name} needs a package that is missing: pip install {name}"
        ) from None


def _tensorboard(folder: Path) -> Logger:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder / "tensorboard"))

    def log(figures: dict[str, Any]) -> None:
        for key, value in figures.items():
            writer.add_scalar(key, value, figures["step"])
        writer.flush()

    return log


def _wandb(folder: Path) -> Logger:
    import wandb

    run = wandb.init(project="minigpt", name=folder.name, dir=str(folder))
    return lambda figures: run.log(figures, step=figures["step"])
