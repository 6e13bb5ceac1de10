"""Any torch network, seen from outside: its wrappers, the names of its tensors, the modes of its
parts.

The network may be a `GPT` or somebody's own; wrappers are those of torch.compile and of data
parallelism, which only compute what the network in them computes.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

_PARALLEL = (DataParallel, DistributedDataParallel)

# Wrappers and names


def unwrapped(model: nn.Module) -> nn.Module:
    """A network without the wrappers that torch.compile and data parallelism put around it."""
    while is_wrapper(model):
        model = next(model.children())
    return model


def is_wrapper(part: object) -> bool:
    """Whether a part is a wrapper: it only computes what the network in it computes."""
    # By its attribute: to import the class that torch.compile makes takes a second.
    is_compiled = "_orig_mod" in getattr(part, "_modules", ())
    return is_compiled or isinstance(part, _PARALLEL)


def plain_name(model: nn.Module, name: str) -> str:
    """The name of a part or tensor of a network, without what wrappers put into it: "_orig_mod" of
    torch.compile, say."""
    part: object = model
    kept = []
    for key in name.split("."):
        if not is_wrapper(part):
            kept.append(key)
        part = getattr(part, key, part)
    return ".".join(kept)


def plain_names(model: nn.Module) -> Callable[[str], str]:
    """What turns a name in a network into its plain name."""
    # Most networks have no wrapper, so that no name need be looked at.
    if any(map(is_wrapper, model.modules())):
        return partial(plain_name, model)
    return str


def named_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters of any network, each once, by their plain names."""
    plain = plain_names(model)
    for name, parameter in model.named_parameters():
        yield plain(name), parameter


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and saved buffers of any network by their plain names. A tensor with several
    names, such as a tied head, comes once, by the first of them."""
    plain = plain_names(model)
    tensors = dict[str, Tensor]()
    seen = set[int]()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if isinstance(tensor, Tensor) and id(tensor) not in seen:
            seen.add(id(tensor))
            tensors[plain(name)] = tensor.detach()
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
