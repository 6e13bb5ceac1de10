"""The torch model with the methods of the glass engine, for a GPU; and each made from the other."""

from typing import Any

import torch
from torch import Tensor

from ..model import GPT, Caches
from .numpy_gpt import NumpyGPT
from .window import Array, TokenIds


class TorchGPT:
    """A torch GPT, on any device and in any precision, that takes and returns numpy arrays."""

    def __init__(self, model: GPT):
        self.model, self.config = model.eval(), model.config

    def __call__(self, token_ids: TokenIds) -> Array:
        """The logits after each token, ``(b, T)`` to ``(b, T, vocab_size)``."""
        with torch.inference_mode():
            return _array(self.model(self._tensor(token_ids)))

    def next_logits(self, token_ids: TokenIds, cache: Caches) -> Array:
        """Read ``(b, T)`` more tokens and predict the next one, ``(b, vocab_size)``."""
        with torch.inference_mode():
            return _array(self.model(self._tensor(token_ids), caches=cache)[:, -1])

    def new_cache(self, batch_size: int, start: Caches | None = None) -> Caches:
        """A cache for so many texts: empty, or each with the tokens of the only text in `start`."""
        caches, rows = self.model.new_caches(batch_size), (batch_size, -1, -1, -1)
        for new, old in zip(caches, start or (), strict=False):
            keys, values = old.keys[:, :, : old.length], old.values[:, :, : old.length]
            new.update(keys.expand(rows), values.expand(rows))
        return caches

    def _tensor(self, token_ids: TokenIds) -> Tensor:
        return torch.from_numpy(token_ids).to(self.model.token_embedding.weight.device)


def glass_of(model: GPT) -> NumpyGPT:
    """The glass engine for a torch model; float32 weights on a CPU are not copied."""
    weights = {name: _array(parameter) for name, parameter in model.named_parameters()}
    return NumpyGPT(model.config, weights)


def engine_of(model: GPT) -> NumpyGPT | TorchGPT:
    """What writes with a torch model: the glass engine in float32 on a CPU, elsewhere torch."""
    weight = model.token_embedding.weight
    is_usual = weight.device.type == "cpu" and weight.dtype == torch.float32
    return glass_of(model) if is_usual else TorchGPT(model)


def torch_of(engine: NumpyGPT | TorchGPT) -> GPT:
    """The torch model of an engine; made from a copy of the weights of the glass engine."""
    if isinstance(engine, TorchGPT):
        return engine.model
    with torch.device("meta"):  # no memory and no random numbers for weights that are replaced
        model = GPT(engine.config)
    state: dict[str, Any] = {name: torch.tensor(array) for name, array in engine.weights.items()}
    model.load_state_dict(state, strict=False, assign=True)  # a tied head is not in it
    if engine.config.tie_embeddings:
        model.head.weight = model.token_embedding.weight
    return model.eval()


def _array(tensor: Tensor) -> Array:
    return tensor.detach().float().cpu().numpy()
