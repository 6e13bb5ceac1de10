"""Tensors in safetensors files: data only, never code."""

import os
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from .. import UserError


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file.

    Raises:
        UserError: if it is missing or damaged.
    """
    try:
        return load_file(path)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} is damaged: {error}") from None


def write_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write tensors as safetensors, marked as torch's for other readers.

    The file gets the permissions that any new file gets; safetensors would keep it to its owner.
    """
    save_file(tensors, path, {"format": "pt"})
    path.chmod(0o666 & ~umask())


def umask() -> int:
    """The process's, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
