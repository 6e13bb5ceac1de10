"""The type that matrix products are computed in."""

import contextlib
import math
import shutil
import timeit
from dataclasses import replace
from typing import Literal

import torch

from ..config import TrainConfig


def choose_precision(
    name: Literal["auto", "float32", "bfloat16"], device: torch.device
) -> Literal["float32", "bfloat16"]:
    """The type of the matrix products; "auto" is the faster one."""
    if name != "auto":
        return name
    is_faster = device.type == "cuda" and torch.cuda.is_bf16_supported(False)
    if device.type == "cpu":
        is_faster = _gain_of_bfloat16() > 1.3
    return "bfloat16" if is_faster else "float32"


def resolved(config: TrainConfig, device: torch.device, is_gpt: bool = True) -> TrainConfig:
    """The config with what "auto" means here, so that a resumed run continues alike.

    A network that is no `GPT` is not known to work compiled or in bfloat16: it is trained so only
    if the config says so.
    """
    if not is_gpt:
        precision = "float32" if config.precision == "auto" else config.precision
        compile = "off" if config.compile == "auto" else config.compile
        return replace(config, precision=precision, compile=compile)

    # On a CPU compiling costs a short run more time than it gains; it needs a compiler of C.
    can_gain = device.type == "cuda" and any(map(shutil.which, ("cc", "gcc", "clang")))
    usual: Literal["on", "off"] = "on" if can_gain else "off"
    compile = usual if config.compile == "auto" else config.compile
    return replace(config, precision=choose_precision(config.precision, device), compile=compile)


def dtype_of(config: TrainConfig) -> torch.dtype:
    """The type that a resolved config names."""
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    return dtypes[config.precision]


def autocast(device: torch.device, precision: torch.dtype) -> contextlib.AbstractContextManager:
    """A context in which matrix products are computed in `precision`."""
    if precision == torch.float32:
        return contextlib.nullcontext()
    # No cache: threads would share it, and a step uses each weight once.
    return torch.autocast(device.type, dtype=precision, cache_enabled=False)


def _gain_of_bfloat16() -> float:
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
    return min(timeit.repeat(lambda: a @ a, repeat=repeat, number=1))
