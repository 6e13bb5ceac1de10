"""The device to compute on, by its name."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from .. import UserError

if TYPE_CHECKING:
    import torch


def has_gpu() -> bool:
    """Whether this machine has a GPU of NVIDIA or AMD, found out without torch."""
    return shutil.which("nvidia-smi") is not None or Path("/dev/kfd").exists()


def find_device(name: str = "auto") -> "torch.device":
    """The device called `name`; "auto" takes a GPU where there is one."""
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise UserError(f"no device {name!r} on this machine; try --device cpu") from None
    return device
