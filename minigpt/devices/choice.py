"""The device to compute on: by its name, or the GPU of this machine if that computes rightly."""

import functools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from .. import UserError

if TYPE_CHECKING:
    import torch

_INSTALL = "https://pytorch.org/get-started/locally"


def has_gpu() -> bool:
    """Whether this machine has a GPU of NVIDIA or AMD, found out without torch."""
    return shutil.which("nvidia-smi") is not None or Path("/dev/kfd").exists()


def find_device(name: str) -> "torch.device":
    """The device called `name`; UserError if there is none. "auto" takes a GPU that computes
    rightly, where there is one."""
    import torch

    if name == "auto":
        return usable_gpu() or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise UserError(f"no device {name!r} on this machine; try --device cpu") from None
    return device


def usable_gpu() -> "torch.device | None":
    """The GPU that torch finds here, if it computes what the CPU does."""
    return None if why_no_gpu() else _gpu()


@functools.cache
def why_no_gpu() -> str | None:
    """Why the GPU of this machine is not used, in a line; None if it can be, or there is no GPU."""
    from .check import why_wrong

    gpu = _gpu()
    if gpu is None:
        return _why_not_found()
    problem = why_wrong(gpu)
    return problem and f"{gpu} is not used, because it computes wrongly here: {problem}"


def _gpu() -> "torch.device | None":
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps") if torch.backends.mps.is_available() else None


def _why_not_found() -> str | None:
    """Why torch does not find the GPU of NVIDIA that this machine has; None if it has none."""
    import torch

    if shutil.which("nvidia-smi") is None:
        return None
    if torch.version.cuda is None:
        return (
            f"the NVIDIA GPU is not used: this torch is not for CUDA; install one, see {_INSTALL}"
        )
    version = f"CUDA {torch.version.cuda}, which this torch is for"
    return f"the NVIDIA GPU is not used: its driver cannot run {version}; a newer driver may"
