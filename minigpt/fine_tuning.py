"""Where a training begins that goes on from another model: `train.py my.txt --init RUN`."""

import dataclasses
from typing import Any

from .config import GPTConfig, TrainConfig, UserError
from .loading import FoundModel, find_model
from .model import GPT

_FIXED = {"tokenizer", "vocab_size", "token_vectors"}  # of the text's settings
# What may differ from the model that it began as; nothing else leaves its weights their meaning.
_FREE = ("context_length", "dropout", "attention_dropout")
# A tenth of what suits a model that knows nothing yet.
LEARNING_RATE = TrainConfig.learning_rate / 10


def starting_point(text: dict[str, Any], model: dict[str, Any]) -> FoundModel | None:
    """The model to begin with, or None without `init`.

    Args:
        text: fields of TextConfig that were given.
        model: fields of GPTConfig that were given.

    Raises:
        UserError: if it cannot be read, or something given would change its shape or tokenizer.
    """
    if text.get("init") is None:
        return None
    refused = [*(_FIXED & text.keys()), *(model.keys() - set(_FREE))]
    if refused:
        option = "--" + sorted(refused)[0].replace("_", "-")
        raise UserError(
            f"--init keeps the model's shape, tokenizer and weights; leave out {option}"
        )
    found = find_model(text["init"])
    return dataclasses.replace(found, model=_adapted(found.model, model))


def _adapted(model: GPT, changes: dict[str, Any]) -> GPT:
    """The same weights under a config with these changes."""
    config: GPTConfig = dataclasses.replace(model.config, **changes)
    state = model.state_dict()
    if model.position_embedding is not None:
        learned = model.config.context_length
        if config.context_length > learned:
            raise UserError(
                f"context_length must be at most {learned}, the positions that the model has "
                f"learned, got {config.context_length}"
            )
        positions = state["position_embedding.weight"]
        state["position_embedding.weight"] = positions[: config.context_length]
    adapted = GPT(config)
    adapted.load_state_dict(state)
    return adapted
