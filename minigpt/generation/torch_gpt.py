"""The torch model with the methods of the glass engine, for a GPU; and each made from the other."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import UserError
from ..config import GPT_NAME
from ..model import Caches
from ..networks import evaluating, network_name, tensors_of, unwrapped, without_weights
from .numpy_gpt import NumpyGPT
from .window import Array, TokenIds


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
        return glass_of(model)
    return TorchGPT(model, context_length)


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
