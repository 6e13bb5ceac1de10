"""Weights in 8 bits, as the files of the base and of a page hold them.

Each number of a matrix is a whole number from -127 to 127 times the scale of its row. Vectors,
which are few numbers, have 16 bits.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCALE = ".scale"  # after the name of a matrix: the scales of its rows
WITHOUT_SCALES = "weights of type I8 without scales"
LARGEST_NUMBER = 127


def rounded(weights: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[Any]]:
    """Weights as a file holds them: a matrix ``(rows, columns)`` as int8, with the scales
    ``(rows,)`` in float16 beside it, anything else in float16. What is too large becomes
    infinite."""
    stored: dict[str, NDArray[Any]] = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for name, array in weights.items():
            if array.ndim == 2:
                stored[name], stored[name + SCALE] = _rounded_rows(array)
            else:
                stored[name] = array.astype(np.float16)
    return stored


def _rounded_rows(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """The whole numbers ``(rows, columns)`` and the scales ``(rows,)`` of a matrix."""
    scales = (np.abs(matrix).max(axis=1) / LARGEST_NUMBER).astype(np.float16)
    steps = np.where(scales == 0, 1, scales).astype(np.float32)  # of a row of zeros

    numbers = np.rint(matrix / steps[:, None])
    return np.clip(numbers, -LARGEST_NUMBER, LARGEST_NUMBER).astype(np.int8), scales


def restored(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What the tensors of a file stand for, numpy arrays or torch tensors on a CPU: a matrix in 8
    bits becomes a float32 array, anything else stays as it is. ValueError if the scales of a matrix
    are not one for each row."""
    in_8_bits = [name for name in stored if name + SCALE in stored and is_int8(stored[name])]
    scales = {name + SCALE for name in in_8_bits}
    weights = {name: array for name, array in stored.items() if name not in scales}

    for name in in_8_bits:
        numbers = np.asarray(stored[name])  # (rows, columns)
        steps = np.asarray(stored[name + SCALE], np.float32)  # (rows,)
        if numbers.ndim != 2 or steps.shape != numbers.shape[:1]:
            raise ValueError(f"{name} has {numbers.shape} numbers and {steps.shape} scales")
        weights[name] = np.multiply(numbers, steps[:, None], dtype=np.float32)
    return weights


def is_int8(array: Any) -> bool:
    """Whether a numpy array or torch tensor has whole numbers of 8 bits."""
    return str(array.dtype) in ("int8", "torch.int8")
