"""What a training begins with instead of nothing: the model that `--init` names."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import UserError
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
    refused = (_FIXED & text.keys()) | (model.keys() - _FREE)
    if refused:
        kept = "the model's shape, tokenizer and weights"
        raise UserError(f"--init keeps {kept}; leave out --{min(refused).replace('_', '-')}")
    found = find_model(text["init"])
    if not all(np.isfinite(array).all() for array in found.glass.weights.values()):
        raise UserError(f"{text['init']} is damaged: some of its weights are not finite numbers")
    return dataclasses.replace(found, glass=_adapted(found.glass, model))


def _adapted(glass: NumpyGPT, changes: Mapping[str, Any]) -> NumpyGPT:
    """The same weights under a config with these changes."""
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
    return NumpyGPT(config, weights)
