"""The weights file of a run, and what it says of itself: its network, and how good it is."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from .. import UserError
from ..config import GPT_NAME
from ..system.eight_bits import WITHOUT_SCALES, is_int8, restored
from ..system.json_objects import parse_object
from ..system.safetensors_files import save_tensors

if TYPE_CHECKING:
    from torch import nn

# What a weights file says of itself. One key of its metadata holds all: the library writes several
# in random order, and the same training is to end with the same file.
_ABOUT = "minigpt"


def save_weights(
    model: "nn.Module",
    path: Path,
    best: dict[str, float] | None = None,
    begun_with: Sequence[str] = (),
    step: int | None = None,
) -> None:
    """Write the parameters and saved buffers of any network, each once.

    The file says by itself what it holds: the name of the network, and the figures of its
    evaluation, `best`, or the names of the files that its run began with, or the `step` after which
    the weights were kept.
    """
    from ..generation.torch_gpt import weights_of

    about: dict[str, Any] = {"network": saved_name(model)}
    if best:
        about["best"] = best
    if begun_with:
        about["begun_with"] = sorted(begun_with)
    if step is not None:
        about["step"] = step
    save_tensors(weights_of(model), path, metadata_of(about))


def saved_name(model: "nn.Module") -> str:
    """The name of a network in its files: "GPT", or what it is instead."""
    from ..generation.torch_gpt import network_name

    return network_name(model)


def metadata_of(about: dict[str, Any]) -> dict[str, str]:
    """The metadata of a weights file that says `about` of itself."""
    return {_ABOUT: json.dumps(about)}


def load_weights(model: "nn.Module", path: Path) -> None:
    """Fill a network in place with the weights of a file: all parameters, frozen ones too, and
    saved buffers. UserError if they do not fit or are damaged; the network then stays as it was."""
    import torch

    from ..system.networks import tensors_of

    try:
        with safe_open(path, "pt") as file:
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        saved = restored(stored)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}", kind="not_found") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is damaged: {error}", kind="damaged_run") from None

    own = tensors_of(model)
    expected = {name: tuple(tensor.shape) for name, tensor in own.items()}
    found = {name: tuple(tensor.shape) for name, tensor in saved.items()}
    if expected != found:
        different = min(name for name, _ in expected.items() ^ found.items())
        there = found.get(different, "not there")
        here = expected.get(different, "not there")
        raise UserError(
            f"{path} holds the weights of {read_network(path)}, which do not fit this "
            f"{saved_name(model)}: {different} is {there} in the file, {here} in the network"
        )

    # A network of somebody's own may have whole numbers; those of another tensor lack their scales.
    for name, tensor in own.items():
        if tensor.is_floating_point() and is_int8(saved[name]):
            raise UserError(f"{path} is damaged: {WITHOUT_SCALES}", kind="damaged_run")

    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(torch.as_tensor(saved[name]))


def read_network(path: Path) -> str:
    """The name of the network whose weights a file holds; "GPT" if it does not say."""
    name = str(read_about(path).get("network", GPT_NAME))
    return name if name.isprintable() else ascii(name)


def read_best(path: Path) -> dict[str, float] | None:
    """The figures that `save_weights` wrote: val_loss, val_bits_per_byte and step; or None."""
    try:
        best = read_about(path)["best"]
        return {name: float(best[name]) for name in ("val_loss", "val_bits_per_byte", "step")}
    except (LookupError, TypeError, ValueError, ArithmeticError):
        return None


def files_begun_with(path: Path) -> set[str] | None:
    """The names of the files that a run began with, if this file has the weights before training;
    None if an evaluation has chosen them, or the file is damaged or not ours."""
    about = read_about(path)
    names = about.get("begun_with")
    if "best" in about or not isinstance(names, list):
        return None
    return set(map(str, names))


def count_weights(path: Path) -> int:
    """How many numbers a weights file holds; UserError if it is damaged."""
    try:
        with safe_open(path, "np") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is damaged: {error}", kind="damaged_run") from None
    return sum(map(math.prod, shapes))


def read_about(path: Path) -> dict[str, Any]:
    """What a weights file says of itself: nothing if it is damaged or not ours. Whoever reads the
    weights will say what is wrong with them."""
    try:
        with safe_open(path, "np") as file:
            about = (file.metadata() or {}).get(_ABOUT, "")
    except (SafetensorError, OSError, ValueError):
        return {}
    return parse_object(about, finite=False)  # as figures are before the first evaluation
