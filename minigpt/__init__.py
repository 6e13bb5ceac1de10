"""minigpt: text file in, text generator out, with the attention layer in the middle.

The public names load when first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"


class UserError(ValueError):
    """Something a user can put right: printed as one line, exit status 2.

    Attributes:
        kind: a short name for programs, one of `minigpt.system.errors.KINDS`.
    """

    def __init__(self, message: str = "", *, kind: str = "other"):
        super().__init__(message)
        self.kind = kind


if TYPE_CHECKING:  # what a type checker and an editor see
    from .attention import CausalAttention as CausalAttention
    from .attention import KeyValueCache as KeyValueCache
    from .attention import MultiHeadAttention as MultiHeadAttention
    from .attention import MultiHeadAttentionWrapper as MultiHeadAttentionWrapper
    from .attention import RotaryPositions as RotaryPositions
    from .attention import SelfAttentionV1 as SelfAttentionV1
    from .attention import SelfAttentionV2 as SelfAttentionV2
    from .config import EvaluationConfig as EvaluationConfig
    from .config import GPTConfig as GPTConfig
    from .config import InferenceConfig as InferenceConfig
    from .config import SampleConfig as SampleConfig
    from .config import TextConfig as TextConfig
    from .config import TrainConfig as TrainConfig
    from .generation.attention_maps import AttentionMaps as AttentionMaps
    from .generation.attention_maps import attention_maps as attention_maps
    from .generation.explanation import Explanation as Explanation
    from .generation.results import Sample as Sample
    from .generation.results import Score as Score
    from .generation.writer import Writer as Writer
    from .measure.compare import compare as compare
    from .measure.comparison import Comparison as Comparison
    from .measure.evaluate import evaluate as evaluate
    from .model import GPT as GPT
    from .recipe.run import train as train
    from .recipe.texts import prepare as prepare
    from .runs.find import load as load
    from .runs.listing import Run as Run
    from .tokenizer import TokenizerLike as TokenizerLike
    from .tokenizer import load_tokenizer as load_tokenizer
    from .training.callbacks import StopTraining as StopTraining
    from .training.trainer import Trainer as Trainer

else:  # a type checker that saw these would take any name for a public one
    _HOMES = {
        "GPT": "model",
        "AttentionMaps": "generation.attention_maps",
        "CausalAttention": "attention",
        "Comparison": "measure.comparison",
        "EvaluationConfig": "config",
        "Explanation": "generation.explanation",
        "GPTConfig": "config",
        "InferenceConfig": "config",
        "KeyValueCache": "attention",
        "MultiHeadAttention": "attention",
        "MultiHeadAttentionWrapper": "attention",
        "RotaryPositions": "attention",
        "Run": "runs.listing",
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
        "compare": "measure.compare",
        "evaluate": "measure.evaluate",
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
