"""Any network, seen from outside: its wrappers, the names of its tensors, the modes of its parts,
and whether it is exactly a `GPT`.

The network may be a `GPT` or somebody's own; wrappers are those of torch.compile and of data
parallelism, which only compute what the network in them computes.
"""

import contextlib
import functools
from collections.abc import Iterator
from types import NoneType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from .config import GPT_NAME, GPTConfig, named_shapes
from .model import GPT

# The settings of a part are its plain attributes, apart from what acts in training only.
_PLAIN = (bool, int, float, str, tuple, NoneType)
_NOT_SETTINGS = ("training", "dropout")

_DROPOUTS = (nn.Dropout, nn.Identity)  # each does the same in evaluation as any other dropout


# Wrappers and names


def unwrapped(model: nn.Module) -> nn.Module:
    """A network without the wrappers that torch.compile and data parallelism put around it."""
    while _is_wrapper(model):
        model = next(model.children())
    return model


def _is_wrapper(part: object) -> bool:
    """Whether a part is a wrapper: it only computes what the network in it computes."""
    # By its attribute: to import the class that torch.compile makes takes a second.
    is_compiled = "_orig_mod" in getattr(part, "_modules", ())
    return is_compiled or isinstance(part, DistributedDataParallel | DataParallel)


def plain_name(model: nn.Module, name: str) -> str:
    """The name of a part or tensor of a network, without what wrappers put into it: "_orig_mod" of
    torch.compile, say."""
    part: object = model
    kept = []
    for key in name.split("."):
        if not _is_wrapper(part):
            kept.append(key)
        part = getattr(part, key, part)
    return ".".join(kept)


def named_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters of any network, each once, by their plain names."""
    for name, parameter in model.named_parameters():
        yield plain_name(model, name), parameter


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and saved buffers of any network by their plain names. A tensor with several
    names, such as a tied head, comes once, by the first of them."""
    tensors = dict[str, Tensor]()
    seen = set[int]()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if isinstance(tensor, Tensor) and id(tensor) not in seen:
            seen.add(id(tensor))
            tensors[plain_name(model, name)] = tensor.detach()
    return tensors


# Modes


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Within, the model is in evaluation mode; then each of its parts is in the mode it was in."""
    with same_modes(model):
        model.eval()
        yield


@contextlib.contextmanager
def same_modes(model: nn.Module) -> Iterator[None]:
    """Afterwards each part of the model is in the mode, training or not, that it was in."""
    modes = {part: part.training for part in model.modules()}
    try:
        yield
    finally:
        for part, was_training in modes.items():
            part.training = was_training


# Whether it is a GPT


def without_weights(config: GPTConfig) -> GPT:
    """A GPT whose weights take neither memory nor random numbers; its tables are there."""
    with torch.device("meta"):
        model = GPT(config)
    parts: list[Any] = list(model.modules())
    for part in parts:
        if dict(part.named_buffers(recurse=False)):
            part.to_empty(device="cpu", recurse=False)
            part.reset_parameters()
    return model


_usual = functools.lru_cache(maxsize=4)(without_weights)  # called again and again, for few configs


def network_name(model: nn.Module) -> str:
    """What to call a network: "GPT" if, in evaluation, it computes what a GPT of its config does;
    else its class, or "GPT with ...", the part that was replaced or changed.

    A subclass, or a GPT with another part in it, often has the same weights by the same names. So a
    network is compared part by part with a new GPT. To compare outputs would tell less: a new GPT's
    outputs do not depend on its attention, and outputs for a few tokens hardly show a change that
    matters for long texts. Forward hooks do not count, since they are not saved, and wrappers do
    not, since they compute the same.
    """
    gpt = unwrapped(model)
    if type(gpt) is not GPT:
        name = type(gpt).__name__
        return name if name != GPT_NAME else "GPT of another package"
    if (found := _difference(gpt, _usual(gpt.config))) is not None:
        return f"GPT {found}"

    shapes = {name: parameter.shape for name, parameter in named_parameters(gpt)}
    return GPT_NAME if shapes == dict(named_shapes(gpt.config)) else "GPT with other weights"


def _difference(network: nn.Module, usual: nn.Module) -> str | None:
    """What a network has otherwise than the usual one of its class, part by part, so that it
    computes something else in evaluation, its weights apart: "with Square as blocks.1", say. None
    if there is nothing."""
    expected = dict(usual.named_modules())
    found = {
        plain_name(network, path): part
        for path, part in network.named_modules()
        if not _is_wrapper(part)
    }
    for path, part in found.items():
        other = expected.get(path)
        is_other_dropout = isinstance(other, nn.Dropout) and type(part) in _DROPOUTS
        if other is None or (type(part) is not type(other) and not is_other_dropout):
            return f"with {type(part).__name__} as {path}"
        if not _computes_alike(part, other):
            return f"with a changed {path or 'forward'}"

    missing = expected.keys() - found.keys()
    return f"without {min(missing)}" if missing else None


def _computes_alike(part: nn.Module, usual: nn.Module) -> bool:
    """Whether a part of the usual class has its methods, settings and buffers, saved or not, and so
    computes the same in evaluation, the weights apart."""
    own_methods = [name for name in vars(part) if callable(getattr(type(part), name, None))]
    if own_methods:  # replaced in this one object
        return False

    nothing = object()
    for name, value in vars(usual).items():
        is_setting = isinstance(value, _PLAIN) and name not in _NOT_SETTINGS and name[0] != "_"
        counts = is_setting and not isinstance(usual, nn.Dropout)
        if counts and vars(part).get(name, nothing) != value:
            return False

    # In the type of the part's buffers, and not on the device "meta", where there are no values.
    buffers = dict(part.named_buffers(recurse=False))
    expected = dict(usual.named_buffers(recurse=False))
    return buffers.keys() == expected.keys() and all(
        buffer.is_meta or torch.equal(buffer.cpu(), expected[name].to(buffer.dtype))
        for name, buffer in buffers.items()
    )
