"""What a training begins with instead of nothing: the model that `--init` names, or the base."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import UserError
from ..config import GPTConfig
from ..generation.numpy_gpt import NumpyGPT
from ..runs.find import find_model
from ..runs.found import FoundModel

# Fields that may differ from the model's, and fields that come with the model.
_FREE = {"context_length", "dropout", "attention_dropout"}
_FIXED = {"tokenizer", "vocab_size", "embedding_init"}


def starting_point(text: Mapping[str, Any], model: Mapping[str, Any]) -> FoundModel | None:
    """The model that `--init` names, or None; a field that would change its shape is refused."""
    if text.get("init") is None:
        return None
    refused = _shaping(text, model)
    if refused:
        kept = "the model's shape, tokenizer and weights"
        raise UserError(f"--init keeps {kept}; leave out --{min(refused).replace('_', '-')}")

    found = find_model(text["init"])
    if not all(np.isfinite(array).all() for array in found.glass.weights.values()):
        raise UserError(f"{text['init']} is damaged: some of its weights are not finite numbers")
    return adapted(found, model)


def leaves_shape_open(text: Mapping[str, Any], model: Mapping[str, Any]) -> bool:
    """Whether a training with these fields may begin with any model."""
    return not _shaping(text, model)


def _shaping(text: Mapping[str, Any], model: Mapping[str, Any]) -> set[str]:
    """The fields that say what shape or what tokens a model has."""
    from_text = {name for name in _FIXED if text.get(name) is not None}
    from_model = {name for name, value in model.items() if value is not None}
    return from_text | (from_model - _FREE)


def adapted(found: FoundModel, changes: Mapping[str, Any]) -> FoundModel:
    """The same weights under a config with these changes of the fields that are free."""
    glass = found.glass
    config = dataclasses.replace(glass.config, **changes)
    weights = dict(glass.weights)
    name = "position_embedding.weight"
    if name in weights:
        learned = glass.config.context_length
        if config.context_length > learned:
            raise UserError(
                f"context_length must be at most {learned}, the positions that the model has "
                f"learned, got {config.context_length}"
            )
        weights[name] = weights[name][: config.context_length]
    return dataclasses.replace(found, glass=NumpyGPT(config, weights))


def as_planned(found: FoundModel, planned: GPTConfig) -> FoundModel:
    """The same weights under the planned config."""
    return adapted(found, {name: getattr(planned, name) for name in _FREE})
