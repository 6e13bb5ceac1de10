"""Configs and weights in transformers' terms and in ours, both ways, by the table of
`architectures.py`."""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .. import UserError
from ..config import GPTConfig, from_dict, named_shapes
from ..config.parts.norms import Array, NamedArrays
from ..config.parts.positions import POSITIONS
from .architectures import ARCHITECTURES, SUPPORTED, Module, architecture_of

# Keys for which our models compute only these values, whatever the architecture.
_NEVER: dict[str, tuple[Any, ...]] = {
    "quantization_config": (None,),
    "rope_interleaved": (False,),
    "partial_rotary_factor": (1.0, None),
}
# Older files also hold causal masks and tables of angles.
_NOT_WEIGHTS = re.compile(r"\.attn\.(masked_)?bias$|\.rotary_emb\.inv_freq$")


# Configs


def config_to_huggingface(config: GPTConfig) -> dict[str, Any]:
    """The content of a `config.json` for transformers, without the ids of special tokens."""
    architecture = architecture_of(config)
    ours = {
        **dataclasses.asdict(config),
        "num_kv_heads": config.kv_heads,
        "head_dim": config.head_size,
        "hidden_dim": config.ff_dim,
    }
    theirs: dict[str, Any] = {
        "architectures": [architecture.class_name],
        "model_type": architecture.name,
        "dtype": "float32",
    }
    theirs |= {key: ours[field] for field, key in architecture.keys.items()}
    theirs |= {key: values[0] for key, values in architecture.fixed.items()}
    return theirs | POSITIONS[config.positions].huggingface(config)


def config_from_huggingface(data: Mapping[str, Any]) -> GPTConfig:
    """Our config for a `config.json` of transformers; what our model cannot compute is refused."""
    architecture = ARCHITECTURES.get(str(data.get("model_type")))
    if architecture is None:
        found = _short(data.get("model_type"))
        raise UserError(f"model_type {found} is not supported, only {SUPPORTED}")

    data = {**architecture.defaults, **data}
    _check_no_window(data)
    if "rotary_base" in architecture.keys:
        data = _with_plain_rotation(data)

    for key, values in {**architecture.fixed, **_NEVER}.items():
        if data.get(key, values[0]) not in values:
            only = " or ".join(map(repr, values))
            raise UserError(f"{key} {_short(data[key])} is not supported, only {only}")

    if missing := [key for key in architecture.keys.values() if key not in data]:
        raise UserError(f"{missing[0]} is missing")
    fields = {field: data[key] for field, key in architecture.keys.items()}
    return from_dict(GPTConfig, {"architecture": architecture.name, **fields})


def _check_no_window(data: dict[str, Any]) -> None:
    """Refuse a model whose tokens see only the nearest ones. Qwen3's config may name the size of a
    window that it does not use."""
    kinds = data.get("layer_types") or ["full_attention"]
    if not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds):
        raise UserError(f"layer_types {_short(kinds)} is not supported, only full_attention")

    window = data.get("sliding_window")
    if window is not None and data.get("use_sliding_window", True):
        raise UserError(f"sliding_window {_short(window)} is not supported, only None")


def _with_plain_rotation(data: dict[str, Any]) -> dict[str, Any]:
    """Put rope_theta in one place; refuse rotary positions that are scaled or turn only a part of
    each head."""
    key = "rope_parameters" if data.get("rope_parameters") else "rope_scaling"
    rope = data.get(key) or {}
    usual = {"rope_type": "default", "type": "default", "partial_rotary_factor": 1.0}
    if not isinstance(rope, dict) or any(rope.get(k, v) != v for k, v in usual.items()):
        raise UserError(f"{key} {_short(rope)} is not supported, only the default rope_type")
    return {**data, "rope_theta": rope.get("rope_theta", data["rope_theta"])}


def _short(value: Any) -> str:
    """A value from a file, in one line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# Weights


def weights_to_huggingface(weights: NamedArrays, config: GPTConfig) -> dict[str, Array]:
    """Their tensors for our weights."""
    tensors = {}
    for module, i in numbered_modules(config):
        theirs = numbered(module.theirs, i)
        for kind, array in stacked(weights, module, i).items():
            name = f"{theirs}.{kind}"
            tensors[name] = array.T if module.is_transposed else array
    return tensors


def weights_from_huggingface(weights: NamedArrays, config: GPTConfig) -> dict[str, Array]:
    """Our weights from their tensors. UserError if a tensor is missing, or does not belong to the
    model; whoever makes a model of the weights checks their shapes."""
    tensors = _with_present_names(weights, config)
    names = {name for name, _ in named_shapes(config)}
    found = {}
    for module, i in numbered_modules(config):
        theirs = numbered(module.theirs, i)
        if f"{theirs}.weight" not in tensors:
            raise UserError(f"tensor {theirs}.weight is missing")

        for kind in ("weight", "bias"):
            is_ours = f"{numbered(module.ours[0], i)}.{kind}" in names
            if not is_ours or f"{theirs}.{kind}" not in tensors:
                continue
            array = np.atleast_1d(tensors.pop(f"{theirs}.{kind}"))
            array = array.T if module.is_transposed else array
            parts = np.array_split(array, len(module.ours))
            for ours, part in zip(module.ours, parts, strict=True):
                found[f"{numbered(ours, i)}.{kind}"] = part

    if tensors:
        class_name = architecture_of(config).class_name
        raise UserError(f"tensor {min(tensors)} does not belong to a {class_name} with this config")
    return found


def numbered_modules(config: GPTConfig) -> Iterator[tuple[Module, int]]:
    """The rows of the table, those of a block once for each block, without a tied head."""
    for module in architecture_of(config).modules:
        if module.ours == ("head",) and config.tie_embeddings:
            continue
        for i in range(config.num_layers if "#" in module.theirs else 1):
            yield module, i


def numbered(name: str, block: int) -> str:
    """A name of the table for one of the blocks."""
    return name.replace("#", str(block))


def stacked(weights: NamedArrays, module: Module, block: int) -> dict[str, Array]:
    """The tensors of a module of theirs, "weight" and "bias", a matrix as (out, in)."""
    found = {}
    for kind in ("weight", "bias"):
        names = [f"{numbered(name, block)}.{kind}" for name in module.ours]
        if names[0] in weights:
            parts = [weights[name] for name in names]
            found[kind] = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return found


def _with_present_names(weights: NamedArrays, config: GPTConfig) -> dict[str, Array]:
    """The weights by the names that transformers uses now: the first GPT-2 files leave out a prefix
    of the names, and hold more than weights."""
    prefix = architecture_of(config).prefix
    named = {}
    for name, array in weights.items():
        if _NOT_WEIGHTS.search(name):
            continue
        is_whole = name.startswith((prefix, "lm_head."))
        named[name if is_whole else prefix + name] = array

    if config.tie_embeddings:
        named.pop("lm_head.weight", None)
    return named
