"""Tensors in safetensors files: data only, never code."""

import os
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from .. import UserError


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file; a missing or damaged one is refused."""
    try:
        return load_file(path)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} is damaged: {error}") from None


def write_tensors(
    tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file with the permissions of any new file; the library by itself would
    let only the owner read it."""
    save_file(tensors, path, metadata or {"format": "pt"})  # which other readers look for
    path.chmod(0o666 & ~umask())


def umask() -> int:
    """The umask of this process, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
