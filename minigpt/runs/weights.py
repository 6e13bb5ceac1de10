"""The weights file of a run, and what it says of itself: its network, and how good it is."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from ..config import (
    GPT_NAME,
)
from .atomic import write_tensors

if TYPE_CHECKING:
    from ..model import GPT

# What a weights file says of itself. One key of its metadata holds all: the library writes several
# in random order, and the same training is to end with the same file.
_ABOUT = "minigpt"


def save_weights(model: "GPT", path: Path, best: dict[str, float] | None = None) -> None:
    """Write the parameters, but for a tied head, with the name of the network's class and the
    figures of its evaluation. So a weights file says by itself what it holds."""
    from ..generation.torch_gpt import weights_of
    from ..model import network_name

    about: dict[str, Any] = {"network": network_name(model)}
    if best:
        about["best"] = best
    metadata = {_ABOUT: json.dumps(about)}
    write_tensors(weights_of(model), path, metadata)


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


def read_about(path: Path) -> dict[str, Any]:
    """What a weights file says of itself: nothing if it is damaged or not ours. Whoever reads the
    weights will say what is wrong with them."""
    try:
        with safe_open(path, "np") as file:
            about = json.loads((file.metadata() or {})[_ABOUT])
    except (SafetensorError, OSError, ValueError, LookupError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}
