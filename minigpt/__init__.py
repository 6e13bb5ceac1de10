"""minigpt: text file in, text generator out, with the attention layer in the middle.

The public names load when first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


class UserError(ValueError):
    """Something a user can put right: printed as one line, exit status 2."""


_HOMES = {
    "GPT": "model",
    "AttentionMaps": "generation.attention_maps",
    "CausalAttention": "attention",
    "EvaluationConfig": "config",
    "GPTConfig": "config",
    "InferenceConfig": "config",
    "KeyValueCache": "attention",
    "MultiHeadAttention": "attention",
    "MultiHeadAttentionWrapper": "attention",
    "RotaryPositions": "attention",
    "Run": "runs.find",
    "Sample": "generation.results",
    "SampleConfig": "config",
    "Score": "generation.results",
    "SelfAttentionV1": "attention",
    "SelfAttentionV2": "attention",
    "StopTraining": "training.callbacks",
    "TextConfig": "config",
    "TokenizerLike": "tokenizer",
    "TrainConfig": "config",
    "Trainer": "training.trainer",
    "Writer": "generation.writer",
    "attention_maps": "generation.attention_maps",
    "evaluate": "recipe.evaluate",
    "load": "runs.find",
    "load_tokenizer": "tokenizer",
    "prepare": "recipe.texts",
    "train": "recipe.run",
}

__all__ = ["UserError", "__version__", *_HOMES]  # noqa: PLE0604


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
