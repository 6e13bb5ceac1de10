"""Tensors in safetensors files: data only, never code."""

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from .. import UserError
from .atomic import replace
from .eight_bits import WITHOUT_SCALES, is_int8, restored
from .platforms import is_windows

Array = NDArray[np.float32]

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "i1"}


def read_weights(path: Path) -> dict[str, Array]:
    """The tensors of a safetensors file as float32, matrices in 8 bits too. Those stored in float32
    are memory-mapped: read from the disk when they are used. Windows would then not let a training
    replace the file: there it is read at once. A missing or damaged file is refused."""
    try:
        with safe_open(path, "np"):  # checks every name, type, shape and place
            pass
        data: NDArray[np.uint8]  # (bytes,)
        if is_windows():
            data = np.fromfile(path, dtype=np.uint8)
        else:
            data = np.memmap(path, mode="r").view(np.ndarray)
        start = 8 + int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8:start].tobytes())
        header.pop("__metadata__", None)
        stored = {name: _stored(data[start:], **entry) for name, entry in header.items()}
        return {name: _as_float32(array) for name, array in restored(stored).items()}
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except (SafetensorError, OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(f"{path} is damaged: {error}") from None


def _stored(
    data: NDArray[np.uint8], dtype: str, shape: list[int], data_offsets: list[int]
) -> NDArray[Any]:
    """A tensor as the file has it; bfloat16, which numpy does not know, as uint16."""
    if dtype not in _TYPES:
        raise ValueError(f"weights of type {dtype}")
    return data[slice(*data_offsets)].view(_TYPES[dtype]).reshape(shape)


def _as_float32(array: NDArray[Any]) -> Array:
    if is_int8(array):
        raise ValueError(WITHOUT_SCALES)
    if array.dtype == np.uint16:  # bfloat16, the upper half of a float32
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return np.require(array, np.float32, "A")  # aligned, or numpy would be slow


def save_tensors(
    tensors: Mapping[str, Any],
    path: Path,
    metadata: dict[str, str],
    *,
    keep_as: Path | None = None,
) -> None:
    """Write a safetensors file, whole or not at all; for `keep_as` see
    :func:`minigpt.system.atomic.replace`."""
    write = partial(write_tensors, tensors, metadata=metadata)
    replace(path, write, keep_as=keep_as)


def write_tensors(
    tensors: Mapping[str, Any], path: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write numpy arrays, or torch tensors on a CPU, as a safetensors file with the permissions of
    any new file; the library by itself would let only the owner read it."""
    arrays = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    path.touch()
    usual = path.stat().st_mode
    try:
        save_file(arrays, path, metadata or {"format": "pt"})  # other readers look for it
    except SafetensorError as error:
        raise _error_of_system(str(error)) from None
    path.chmod(usual)


def _error_of_system(said: str) -> OSError:
    """What the library says, as "I/O error: No space left on device (os error 28)", as the error
    that Python itself would have raised."""
    reason = re.sub(r"^.*error: | \(os error \d+\)$", "", said)
    number = re.search(r"\(os error (\d+)\)$", said)
    if number is None:
        return OSError(reason)
    if is_windows():  # which has numbers of its own
        return OSError(0, reason, None, int(number[1]))
    return OSError(int(number[1]), reason)
