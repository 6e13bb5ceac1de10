"""The device to compute on: by its name, or the GPU of this machine if that computes rightly."""

import functools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
        return this_gpu().device or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise UserError(f"no device {name!r} on this machine; try --device cpu") from None
    _leave_out_cudnn(device)
    return device


class Gpu(NamedTuple):
    """The GPU of this machine, or why it is not used."""

    device: "torch.device | None"  # None if there is none to use
    problem: str | None  # in a line; None if it is used, or there is no GPU


@functools.cache
def this_gpu() -> Gpu:
    """The GPU that torch finds here, if it computes what the CPU does."""
    import torch

    from .check import why_wrong

    gpu = _gpu()
    if gpu is not None:
        wrong = why_wrong(gpu)
        if wrong is None:
            return Gpu(gpu, None)
        return Gpu(None, f"{gpu} is not used, because it computes wrongly here: {wrong}")

    if shutil.which("nvidia-smi") is None:
        return Gpu(None, None)
    problem = f"this torch is not for CUDA; install one, see {_INSTALL}"
    if torch.version.cuda is not None:
        version = f"CUDA {torch.version.cuda}, which this torch is for"
        problem = f"its driver cannot run {version}; a newer driver may"
    return Gpu(None, f"the NVIDIA GPU is not used: {problem}")


def _gpu() -> "torch.device | None":
    import torch

    if torch.cuda.is_available():
        device = torch.device("cuda")
        _leave_out_cudnn(device)
        return device
    return torch.device("mps") if torch.backends.mps.is_available() else None


def _leave_out_cudnn(device: "torch.device") -> None:
    """Let torch's own kernels compute attention on a GPU of NVIDIA in this process. On new GPUs
    torch 2.11 prefers cuDNN, which plans for nearly half a second before the first computation of
    each shape (issue 3704 of FunASR). Evaluations and shorter contexts have shapes of their own;
    where a model writes, each token has. On short contexts it gains little: 6% at 1,024 tokens,
    and it is slower at 576 (pull request 30090 of sglang)."""
    import torch

    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
