"""Every setting of a run: the model, its training, its text. Frozen dataclasses, saved as JSON.

The help text of a field is also that of its command line option. Values are checked once, when a
config is made; the code that receives a config trusts it. No torch, which takes long to load.
"""

from .checked import (
    Checked,
    Count,
    Limits,
    Natural,
    Positive,
    Temperature,
    check_fields,
    from_dict,
    setting,
)
from .network import (
    GPT_NAME,
    PARTS,
    PRESETS,
    GPTConfig,
    check_shapes,
    count_parameters,
    named_shapes,
    weight_shapes,
)
from .sampling import OF_PROBABILITIES, PLAIN, USUAL, InferenceConfig, SampleConfig
from .settings import (
    EARLY_UNTIL,
    FREE,
    FROM_NOTHING,
    KEPT_ON_RESUMING,
    LESSON,
    PLANNED,
    SHAPE,
    SMALLEST_VOCABULARY,
    Setting,
    Settings,
    check_given,
    check_interpolation,
    check_log,
    fields_of,
)
from .text import PLAYS, TALES, EvaluationConfig, ReadingConfig, TextConfig, is_text_encoding
from .training import TrainConfig

__all__ = [
    "EARLY_UNTIL",
    "FREE",
    "FROM_NOTHING",
    "GPT_NAME",
    "KEPT_ON_RESUMING",
    "LESSON",
    "OF_PROBABILITIES",
    "PARTS",
    "PLAIN",
    "PLANNED",
    "PLAYS",
    "PRESETS",
    "SHAPE",
    "SMALLEST_VOCABULARY",
    "TALES",
    "USUAL",
    "Checked",
    "Count",
    "EvaluationConfig",
    "GPTConfig",
    "InferenceConfig",
    "Limits",
    "Natural",
    "Positive",
    "ReadingConfig",
    "SampleConfig",
    "Setting",
    "Settings",
    "Temperature",
    "TextConfig",
    "TrainConfig",
    "check_fields",
    "check_given",
    "check_interpolation",
    "check_log",
    "check_shapes",
    "count_parameters",
    "fields_of",
    "from_dict",
    "is_text_encoding",
    "named_shapes",
    "setting",
    "weight_shapes",
]
