"""Where the figures of an evaluation go besides metrics.jsonl: TensorBoard, Weights & Biases."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .. import UserError

Logger = Callable[[dict[str, Any]], None]


def check_logger(name: str) -> None:
    """Refuse a logger whose package is not installed.

    Raises:
        UserError: naming the package.
    """
    if name != "none" and find_spec(name) is None:
        raise UserError(f"--log {name} needs a package that is missing: pip install {name}")


def make_logger(name: str, folder: Path) -> Logger:
    """The logger called `name`, for a run in `folder`."""
    makers = {"none": lambda _: lambda figures: None, "tensorboard": _tensorboard, "wandb": _wandb}
    logger: Logger = makers[name](folder)
    return logger


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
