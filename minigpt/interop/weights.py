"""The weights of our two architectures as other programs name, stack and turn them, both ways.

Pure functions of tensors; what is called what is said by the tables of `architectures.py`.
"""

import re
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from .. import UserError
from ..config import GPTConfig
from ..model import GPT
from .architectures import Module, architecture_of

Tensors = Mapping[str, Tensor]

# What older files hold besides weights: causal masks and tables of angles.
_NO_WEIGHTS = re.compile(r"\.attn\.(masked_)?bias$|\.rotary_emb\.inv_freq$")


def weights_to_huggingface(state: Tensors, config: GPTConfig) -> dict[str, Tensor]:
    """Their tensors for a model's state dict; a tied head is left out."""
    return {
        name: (tensor.T if transposed else tensor).contiguous()
        for name, tensor, transposed in stacked(state, config)
    }


def stacked(state: Tensors, config: GPTConfig) -> Iterator[tuple[str, Tensor, bool]]:
    """Their name for each of their tensors, the tensor with its matrix as (out, in), and
    whether GPT-2 transposes it."""
    if config.architecture == "gpt2":
        state = _with_all_heads(state, config)
    for ours, theirs, transposed in _modules(config):
        for kind in ("weight", "bias"):
            if f"{ours[0]}.{kind}" in state:
                tensor = torch.cat([state[f"{module}.{kind}"] for module in ours])
                yield f"{theirs}.{kind}", tensor, transposed and kind == "weight"


def weights_from_huggingface(tensors: Tensors, config: GPTConfig) -> dict[str, Tensor]:
    """A state dict for ``GPT(config)`` from their tensors.

    Raises:
        UserError: naming the tensor that is missing, is one too many, or has another shape than
            the config says, with both shapes.
    """
    tensors = _canonical(tensors, config)
    _check_shapes(tensors, config)
    state = {}
    for ours, theirs, transposed in _modules(config):
        for kind in ("weight", "bias"):
            if f"{theirs}.{kind}" in tensors:
                tensor = tensors[f"{theirs}.{kind}"]
                tensor = tensor.T if transposed and kind == "weight" else tensor
                for module, part in zip(ours, tensor.chunk(len(ours)), strict=True):
                    state[f"{module}.{kind}"] = part
    if config.tie_embeddings:
        state["head.weight"] = state["token_embedding.weight"]
    return state


def _modules(config: GPTConfig) -> Iterator[Module]:
    """The architecture's modules, those of a block once for each block; without a tied head."""
    for ours, theirs, transposed in architecture_of(config).modules:
        if theirs == "lm_head" and config.tie_embeddings:
            continue
        for i in range(config.num_layers if "#" in theirs else 1):
            numbered = tuple(module.replace("#", str(i)) for module in ours)
            yield Module(numbered, theirs.replace("#", str(i)), transposed)


def _with_all_heads(state: Tensors, config: GPTConfig) -> Tensors:
    """GPT-2 knows no grouped-query heads: give each query head its copy of keys and values."""
    copies = config.num_heads // config.kv_heads

    def repeated(tensor: Tensor) -> Tensor:
        return tensor.unflatten(0, (config.kv_heads, -1)).repeat_interleave(copies, 0).flatten(0, 1)

    shared = (".W_key.weight", ".W_key.bias", ".W_value.weight", ".W_value.bias")
    return {name: repeated(t) if name.endswith(shared) else t for name, t in state.items()}


def _canonical(tensors: Tensors, config: GPTConfig) -> dict[str, Tensor]:
    """Today's names: the first GPT-2 files leave a prefix out and hold more than weights."""
    prefix = architecture_of(config).modules[0].theirs.partition(".")[0] + "."
    named = {
        name if name.startswith((prefix, "lm_head.")) else prefix + name: tensor
        for name, tensor in tensors.items()
        if not _NO_WEIGHTS.search(name)
    }
    if config.tie_embeddings:
        named.pop("lm_head.weight", None)
    return named


def _check_shapes(tensors: Tensors, config: GPTConfig) -> None:
    with torch.device("meta"):  # shapes without memory
        expected = weights_to_huggingface(GPT(config).state_dict(), config)
    for name, tensor in expected.items():
        if name not in tensors:
            raise UserError(f"tensor {name} is missing, {tuple(tensor.shape)} by the config")
        if tensors[name].shape != tensor.shape:
            raise UserError(
                f"tensor {name} is {tuple(tensors[name].shape)}, "
                f"but {tuple(tensor.shape)} by the config"
            )
    if extra := sorted(tensors.keys() - expected.keys()):
        raise UserError(f"tensor {extra[0]} is none of {architecture_of(config).name}'s")
