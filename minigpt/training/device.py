"""The machine: which device to compute on, and whether bfloat16 is worth its while there."""

import contextlib
import time

import torch


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """The type of the matrix products: "float32", "bfloat16", or "auto" for the faster one."""
    if name != "auto":
        return torch.bfloat16 if name == "bfloat16" else torch.float32
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(False) else torch.float32
    if device.type != "cpu":
        return torch.float32
    faster = matmul_gflops(torch.bfloat16) > 1.3 * matmul_gflops(torch.float32)
    return torch.bfloat16 if faster else torch.float32


def autocast(device: torch.device, precision: torch.dtype) -> contextlib.AbstractContextManager:
    """A context in which matrix products are computed in `precision`."""
    if precision == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=precision)


def matmul_gflops(dtype: torch.dtype, size: int = 256) -> float:
    """Measured speed of a square matrix product on the CPU, in 10⁹ operations a second.

    By default one so small that it takes a moment even where a type is computed a hundred times
    more slowly, as bfloat16 is by processors that do not know it.
    """
    a = torch.ones(size, size, dtype=dtype)
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best / 1e9
