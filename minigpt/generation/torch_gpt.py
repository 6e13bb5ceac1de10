"""The torch model with the methods of the glass engine, for a GPU; each made from the other; and
whether a network is exactly a `GPT`, for which alone the glass engine stands in.
"""

import functools
from collections.abc import Mapping
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .. import UserError
from ..config import GPT_NAME, GPTConfig, named_shapes
from ..model import GPT, Caches
from ..system.networks import (
    evaluating,
    is_wrapper,
    named_parameters,
    plain_names,
    tensors_of,
    unwrapped,
)
from .numpy_gpt import WORTH_A_GPU, NumpyGPT
from .window import Array, TokenIds

# The settings of a part are its plain attributes, apart from what acts in training only.
_PLAIN = (bool, int, float, str, tuple, NoneType)
_NOT_SETTINGS = ("training", "dropout")
_DROPOUTS = (nn.Dropout, nn.Identity)  # each does the same in evaluation as any other dropout


class WholeTexts:
    """Stands in for a cache where there can be none: the tokens of some texts, ``(b, T)``."""

    def __init__(self, token_ids: TokenIds):
        self.token_ids = token_ids


class TorchGPT:
    """A torch model, on any device and in any precision, that takes and returns numpy arrays: a
    `GPT`, or any network from ids ``(b, T)`` to logits ``(b, T, vocab_size)``. `context_length` is
    how far back it looks, where it has no ``config.context_length``.

    A network that is not exactly a `GPT` may look at earlier tokens in a way that no key/value
    cache knows of. It reads the whole text again for each token: slower, but never wrong.
    """

    def __init__(self, model: nn.Module, context_length: int | None = None):
        model = unwrapped(model)
        config: Any = getattr(model, "config", None)
        self.model: Any = model
        self.context_length: int = context_length or config.context_length
        self._has_caches = _is_exactly_gpt(model)

    @property
    def num_parameters(self) -> int:
        """How many numbers the model has learned, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def __call__(self, token_ids: TokenIds) -> Array:
        """The logits after each token, ``(b, T)`` to ``(b, T, vocab_size)``."""
        with torch.inference_mode(), evaluating(self.model):
            return _array(self.model(self._tensor(token_ids)))

    def next_logits(self, token_ids: TokenIds, cache: Caches | WholeTexts) -> Array:
        """Read ``(b, T)`` more tokens and predict the next one, ``(b, vocab_size)``."""
        if isinstance(cache, WholeTexts):
            cache.token_ids = np.concatenate((cache.token_ids, token_ids), axis=1)
            return self(cache.token_ids)[:, -1]

        with torch.inference_mode(), evaluating(self.model):
            return _array(self.model(self._tensor(token_ids), caches=cache)[:, -1])

    def new_cache(
        self, batch_size: int, start: Caches | WholeTexts | None = None
    ) -> Caches | WholeTexts:
        """A cache for so many texts: empty, or each with the tokens of the only text in `start`."""
        if isinstance(start, WholeTexts):
            return WholeTexts(np.repeat(start.token_ids, batch_size, axis=0))
        if not self._has_caches:
            return WholeTexts(np.empty((batch_size, 0), np.int64))

        caches = self.model.new_caches(batch_size)
        rows = (batch_size, -1, -1, -1)
        for new, old in zip(caches, start or (), strict=False):
            keys = old.keys[:, :, : old.length]  # (1, kv_heads, length, head_dim)
            values = old.values[:, :, : old.length]
            new.update(keys.expand(rows), values.expand(rows))
        return caches

    def _tensor(self, token_ids: TokenIds) -> Tensor:
        return torch.from_numpy(token_ids).to(next(self.model.parameters()).device)


def glass_of(model: nn.Module) -> NumpyGPT:
    """The glass engine for a torch model, with a copy of the weights that it has now: the model may
    be trained further. UserError if it is not exactly a `GPT`: the engine would compute something
    else."""
    if (name := network_name(model)) != GPT_NAME:
        raise UserError(f"the glass engine computes minigpt's own GPT only, not this one: {name}")
    return _copy_of(model)


def _copy_of(model: nn.Module) -> NumpyGPT:
    """The glass engine for what is exactly a `GPT`."""
    config: Any = unwrapped(model).config
    weights = {name: array.copy() for name, array in weights_of(model).items()}
    return NumpyGPT(config, weights)


def weights_of(model: nn.Module) -> dict[str, Array]:
    """The parameters and saved buffers of any network as arrays; numbers in float32."""
    weights = dict[str, Array]()
    for name, tensor in tensors_of(model).items():
        values = tensor.float() if tensor.is_floating_point() else tensor
        weights[name] = values.cpu().numpy()
    return weights


def engine_of(model: nn.Module, context_length: int | None = None) -> NumpyGPT | TorchGPT:
    """What writes with a torch model: the glass engine if it is a `GPT` in float32 on a CPU, else
    torch."""
    weight = next(model.parameters())
    is_usual = weight.device.type == "cpu" and weight.dtype == torch.float32
    if is_usual and _is_exactly_gpt(model):
        return _copy_of(model)
    return TorchGPT(model, context_length)


def soonest_engine_of(model: nn.Module, context_length: int) -> NumpyGPT | TorchGPT:
    """What writes a text soonest with a model that is being trained: as :func:`engine_of`, but the
    glass engine for a `GPT` that is no larger than is worth a GPU, wherever it lies. One token at a
    time a GPU mostly starts operations."""
    number = sum(parameter.numel() for parameter in model.parameters())
    if number < WORTH_A_GPU and _is_exactly_gpt(model):
        return _copy_of(model)
    return engine_of(model, context_length)


def _is_exactly_gpt(model: nn.Module) -> bool:
    """Whether it is a `GPT`, and nothing that could change it is called when a part computes."""
    has_hooks = any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    return network_name(model) == GPT_NAME and not has_hooks


def torch_of(engine: NumpyGPT | TorchGPT) -> Any:
    """The torch model of an engine; made from a copy of the weights of the glass engine."""
    if isinstance(engine, TorchGPT):
        return engine.model

    model = without_weights(engine.config)
    state: dict[str, Any] = {name: torch.tensor(array) for name, array in engine.weights.items()}
    model.load_state_dict(state, strict=False, assign=True)  # a tied head is not in it
    if engine.config.tie_embeddings:
        model.head.weight = model.token_embedding.weight
    return model.eval()


def _array(tensor: Tensor) -> Array:
    return tensor.detach().float().cpu().numpy()


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
    if (found := _difference(gpt, _usual_parts(gpt.config))) is not None:
        return f"GPT {found}"

    shapes = {name: parameter.shape for name, parameter in named_parameters(gpt)}
    return GPT_NAME if shapes == dict(named_shapes(gpt.config)) else "GPT with other weights"


class _Part(NamedTuple):
    """What counts of a part of a network, its weights apart."""

    kind: type[nn.Module]
    methods: set[str]
    settings: dict[str, Any]
    buffers: dict[str, Tensor]


@functools.lru_cache(maxsize=4)  # asked for again and again, of few configs
def _usual_parts(config: GPTConfig) -> dict[str, _Part]:
    """The parts of a new GPT by their names."""
    found = dict[str, _Part]()
    for path, part in without_weights(config).named_modules():
        kind = type(part)
        methods = {name for name in dir(kind) if callable(getattr(kind, name))}
        settings = dict[str, Any]()
        if not isinstance(part, nn.Dropout):
            for name, value in vars(part).items():
                if isinstance(value, _PLAIN) and name not in _NOT_SETTINGS and name[0] != "_":
                    settings[name] = value
        found[path] = _Part(kind, methods, settings, dict(part.named_buffers(recurse=False)))
    return found


def _difference(network: nn.Module, usual: Mapping[str, _Part]) -> str | None:
    """What a network has otherwise than the usual one of its class, part by part, so that it
    computes something else in evaluation, its weights apart: "with Square as blocks.1", say. None
    if there is nothing."""
    plain = plain_names(network)
    found = {plain(path): part for path, part in network.named_modules() if not is_wrapper(part)}
    for path, part in found.items():
        other = usual.get(path)
        kind = type(part)
        if other is None:
            return f"with {kind.__name__} as {path}"
        is_other_dropout = issubclass(other.kind, nn.Dropout) and kind in _DROPOUTS
        if kind is not other.kind and not is_other_dropout:
            return f"with {kind.__name__} as {path}"
        if not _computes_alike(part, other):
            return f"with a changed {path or 'forward'}"

    missing = usual.keys() - found.keys()
    return f"without {min(missing)}" if missing else None


def _computes_alike(part: nn.Module, usual: _Part) -> bool:
    """Whether a part of the usual class has its methods, settings and buffers, saved or not, and so
    computes the same in evaluation, the weights apart."""
    own = vars(part)
    if not usual.methods.isdisjoint(own):  # one is replaced in this one object
        return False

    nothing = object()
    if any(own.get(name, nothing) != value for name, value in usual.settings.items()):
        return False

    # In the type of the part's buffers, and not on the device "meta", where there are no values.
    buffers = dict(part.named_buffers(recurse=False))
    expected = usual.buffers
    return buffers.keys() == expected.keys() and all(
        buffer.is_meta or torch.equal(buffer.cpu(), expected[name].to(buffer.dtype))
        for name, buffer in buffers.items()
    )
