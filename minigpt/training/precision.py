"""The type that matrix products are computed in, and how losses are scaled for a narrow one."""

import contextlib
import math
import timeit
from functools import partial
from typing import Literal

import torch

from ..config import TrainConfig
from ..devices.check import why_wrong
from .messages import say

Precision = Literal["float32", "bfloat16", "float16"]

# Losses in float16 are multiplied by a scale before their gradients are computed: otherwise the
# smallest gradients would become zero. The scale is halved when a gradient becomes infinite, and
# doubled after so many steps in which none has ("Mixed Precision Training", Micikevicius et al.
# 2018, section 3.2).
FIRST_SCALE = 2.0**16
STEPS_TO_DOUBLE = 2000


def choose_precision(name: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """The type of the matrix products; "auto" is the fastest one that is right on the device."""
    if name != "auto":
        return name
    if device.type == "cpu":
        return "bfloat16" if gain_of_bfloat16() > 1.3 else "float32"
    if device.type != "cuda":
        return "float32"

    fastest = fastest_on_gpu(device)
    problem = why_wrong(device, getattr(torch, fastest))
    if problem is not None:
        say(f"training in float32, because {fastest} is wrong on {device}: {problem}")
        return "float32"
    return fastest


def fastest_on_gpu(device: torch.device) -> Precision:
    """The type in which a GPU of NVIDIA or AMD multiplies matrices fastest. Those of NVIDIA have
    units for bfloat16 from compute capability 8.0 on, and from 7.0 on (V100, T4) for float16."""
    if torch.cuda.is_bf16_supported(including_emulation=False):
        return "bfloat16"
    has_units = torch.cuda.get_device_capability(device) >= (7, 0)
    return "float16" if has_units else "float32"


def dtype_of(config: TrainConfig) -> torch.dtype:
    """The type that a resolved config names."""
    return getattr(torch, config.precision)


def autocast(device: torch.device, precision: torch.dtype) -> contextlib.AbstractContextManager:
    """A context in which matrix products are computed in `precision`."""
    if precision == torch.float32:
        return contextlib.nullcontext()
    # No cache: threads would share it, and a step uses each weight once.
    return torch.autocast(device.type, dtype=precision, cache_enabled=False)


def gain_of_bfloat16() -> float:
    """How many times as fast as in float32 a matrix product is on the CPU.

    Both are timed in turn, so that another program slows down both of them alike.
    """
    seconds = dict[torch.dtype, float]()
    for _ in range(6):
        for dtype in (torch.float32, torch.bfloat16):
            found = matmul_seconds(dtype, size=256, repeat=4)
            seconds[dtype] = min(found, seconds.get(dtype, math.inf))
    return seconds[torch.float32] / seconds[torch.bfloat16]


def matmul_seconds(dtype: torch.dtype, size: int, repeat: int) -> float:
    """The least seconds that a square matrix product took."""
    a = torch.ones(size, size, dtype=dtype)  # small: without bfloat16 it is 100 times as slow
    return min(timeit.repeat(partial(torch.matmul, a, a), repeat=repeat, number=1))
