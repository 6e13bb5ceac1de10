"""The settings of a training: every field of its three configs with its value, where that comes
from and, where it was planned, why. And, in one place, what is true of fields: which of them a plan
chooses, which belong to a model, which a run keeps, and which contradict each other.
"""

import dataclasses
import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from .. import UserError
from ..system.platforms import how_to_install
from .checked import check_fields
from .network import PRESETS, GPTConfig
from .text import TALES, TextConfig
from .training import TrainConfig

# What is planned from the text, the machine and the minutes unless it is given; so are the device,
# the precision and how much of a long text is used.
PLANNED = (
    "vocab_size", "context_length", "emb_dim", "num_layers", "num_heads", "dropout", "batch_size",
    "max_epochs", "token_split_prob", "learning_rate", "weight_decay", "interpolate",
    "warmup_context", "num_evals", "num_workers", "tie_embeddings",
)  # fmt: skip

# What comes with the model that a training begins with: of the planned fields, and of the text.
SHAPE = ("vocab_size", "emb_dim", "num_layers", "num_heads", "tie_embeddings")
_TOKENS = ("tokenizer", "vocab_size", "embedding_init")
# The only fields of GPTConfig that may differ from those of that model.
FREE = ("context_length", "dropout", "attention_dropout")

# What a run keeps when it is resumed: the losses of its evaluations are compared with one another.
KEPT_ON_RESUMING = ("lesson", "eval_tokens")

# With `lesson`: what all lessons share, so that their numbers are the same everywhere.
LESSON: dict[str, Any] = {
    "device": "cpu",
    "precision": "float32",
    "compile": "off",
    "num_workers": 1,
    "seed": TrainConfig.seed,
}

SMALLEST_VOCABULARY = 320  # tokens of a bpe that is planned
FROM_NOTHING = "none"  # for `init`
EARLY_UNTIL = 0.8  # of a training, in which tokens are split and the context is shorter

# In each row a setting, another one that can leave it without effect, and for which values of the
# other this is so.
_USELESS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("minutes", "steps", lambda steps: steps is not None),
    ("max_epochs", "steps", lambda steps: steps is not None),
    ("steps", "lesson", bool),
    *((name, "lesson", bool) for name in LESSON),
    ("vocab_size", "tokenizer", lambda tokenizer: tokenizer != "bpe"),
    ("token_split_prob", "tokenizer", lambda tokenizer: tokenizer == "char"),
    ("validation_fraction", "validation", lambda validation: len(validation) > 0),
    ("momentum", "optimizer", lambda optimizer: optimizer == "adamw"),
    ("rotary_base", "positions", lambda positions: positions == "learned"),
    ("num_workers", "attention_dropout", lambda dropout: dropout > 0),
    ("num_workers", "compile", lambda compile: compile == "on"),
    ("rename", "plain", bool),
    ("anonymous", "plain", bool),
    ("silence", "plain", bool),
    ("only", "plain", bool),
    ("token_split_prob", "only", lambda only: only is not None),
    # Of other commands:
    ("json", "interactive", bool),
    ("show", "interactive", bool),
    ("samples", "interactive", bool),
    ("min_words", "interactive", bool),
    ("show", "json", bool),
    ("min_words", "json", bool),
    ("min_words", "show", bool),
    ("wrap", "json", bool),
    ("wrap", "show", bool),
    ("samples", "min_words", bool),
    ("json", "delete", bool),
    ("stride", "copied", bool),
    ("batch_size", "copied", bool),
)
# Values that ask for nothing; of every setting, False does so too.
_ASKS_FOR_NOTHING = {"token_split_prob": 0, "num_workers": 1, "samples": 1, "min_words": 0}

_CONFIGS = (TextConfig, GPTConfig, TrainConfig)
_FIELDS = {field.name: field for config in _CONFIGS for field in dataclasses.fields(config)}

# Given by whoever trains; brought by something else that is given, mostly by the model or the
# tokenizer that a training begins with; chosen by the plan; or the usual value.
Source = Literal["given", "brought", "planned", "default"]


class Setting(NamedTuple):
    """The value of a field, where it comes from, and why it was planned."""

    value: Any
    source: Source
    why: str = ""  # as the end of a sentence: ", because ..."


@dataclass(frozen=True)
class Settings:
    """All fields of :class:`TextConfig`, :class:`GPTConfig` and :class:`TrainConfig`, by their
    names: ``settings["steps"]`` is a value. The two fields `vocab_size` are one setting."""

    said: Mapping[str, Setting] = field(default_factory=dict)  # all but the usual values

    @classmethod
    def given(cls, fields: Mapping[str, Any]) -> "Settings":
        """The settings that were given; None means that one was not.

        UserError if one is unknown, has a wrong value, or would do nothing beside the others.
        """
        unknown = [name for name in fields if name not in _FIELDS]
        if unknown:
            raise UserError(f"there is no setting {', '.join(unknown)}")
        for config in _CONFIGS:
            own = fields_of(config, fields)
            if config is GPTConfig:
                own.pop("vocab_size", None)  # as a setting it is the text's
            check_fields(config, own)
        check_given(fields)

        values = {name: value for name, value in fields.items() if value is not None}
        if values.get("init") == FROM_NOTHING:
            values["init"] = None
        settings = cls().with_values("given", values)
        if settings["lesson"]:
            of_lesson = LESSON if "files" in values else {**LESSON, "files": (TALES,)}
            settings = settings.with_values("brought", of_lesson, why=", as in every lesson")
        if settings["only"] is not None:  # whether a token counts is known of whole tokens only
            settings = settings.with_values("brought", {"token_split_prob": 0.0})
        return settings

    def with_values(self, source: Source, values: Mapping[str, Any], why: str = "") -> "Settings":
        """The same with these values in the place of any others."""
        new = {name: Setting(value, source, why) for name, value in values.items()}
        return Settings({**self.said, **new})

    def planned(self, why: str = "", **values: Any) -> "Settings":
        """The same with these values where a plan may still choose them: what was planned first
        stays."""
        open_values = {name: value for name, value in values.items() if self.is_open(name)}
        return self.with_values("planned", open_values, why)

    def __getitem__(self, name: str) -> Any:
        return self.said[name].value if name in self.said else _FIELDS[name].default

    def source(self, name: str) -> Source:
        """Where a value comes from."""
        return self.said[name].source if name in self.said else "default"

    def why(self, name: str) -> str:
        """Where a value comes from or, if it was planned, why: the end of a sentence."""
        source = self.source(name)
        if source == "given":
            return ", as given"
        why = self.said[name].why if name in self.said else ""
        if source == "brought" and not why:
            return f", that of {self['init']}"
        return why

    def is_open(self, name: str) -> bool:
        """Whether a plan may choose the value."""
        return self.source(name) == "default"

    def fixed(self, name: str) -> Any:
        """A value that no plan may choose; None of one that is open, whatever is usual."""
        return None if self.is_open(name) else self[name]

    def given_values(self) -> dict[str, Any]:
        """The values that were given, by their names."""
        return {name: said.value for name, said in self.said.items() if said.source == "given"}

    def shaping(self) -> list[str]:
        """The given fields that say which shape or which tokens a model has: one that a training
        begins with has its own."""
        of_a_model = {field.name for field in dataclasses.fields(GPTConfig)} - {*FREE}
        return sorted(self.given_values().keys() & (of_a_model | {*_TOKENS}))

    # The three configs

    @property
    def text(self) -> TextConfig:
        """What is read, and how it becomes tokens."""
        values = self._values_of(TextConfig)
        learns_its_tokens = self["tokenizer"] == "bpe" and self.source("vocab_size") != "brought"
        if not learns_its_tokens:
            values.pop("vocab_size", None)
        return TextConfig(**values)

    @property
    def network(self) -> GPTConfig:
        """The model, once its vocabulary is known."""
        return GPTConfig(**self._values_of(GPTConfig))

    @property
    def training(self) -> TrainConfig:
        """How it is trained."""
        return TrainConfig(**self._values_of(TrainConfig))

    def _values_of(self, config: type) -> dict[str, Any]:
        return fields_of(config, {name: setting.value for name, setting in self.said.items()})


def fields_of(config: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some values that are fields of a config."""
    names = (field.name for field in dataclasses.fields(config))
    return {name: values[name] for name in names if name in values}


# What contradicts


def check_given(given: Mapping[str, Any], known: Mapping[str, Any] | None = None) -> None:
    """Refuse settings that were given and would be ignored beside others.

    `given` holds fields of configs and other options of a command; None and () mean that a setting
    was not given. `known` holds values of settings that were not given, where these differ from the
    defaults.
    """
    wanted = {name: value for name, value in given.items() if value not in (None, (), [])}
    defaults = {name: field.default for name, field in _FIELDS.items()}
    values = {**defaults, **(known or {}), **wanted}
    parts = PRESETS.get(str(values["architecture"]), {})  # an unknown one is refused elsewhere
    values |= {part: usual for part, usual in parts.items() if values[part] is None}

    for name, other, is_useless in _USELESS:
        asked = wanted.get(name, False)
        asks_for_nothing = asked is False or asked == _ASKS_FOR_NOTHING.get(name)
        if not asks_for_nothing and other in values and is_useless(values[other]):
            # A part that was not given comes from the architecture.
            cause = "architecture" if other in parts and other not in wanted else other
            remedy = "leave one of them out" if cause in wanted else "leave it out"
            beside = _typed(cause, values[cause])
            raise UserError(
                f"{_option(name)} does nothing beside {beside}; {remedy}", kind="setting"
            )

    if "log" in wanted:
        check_log(wanted["log"])
    shorter = wanted.get("warmup_context", 0)
    longer = {**(known or {}), **wanted}.get("context_length", math.inf)
    if shorter > longer:
        raise UserError(
            f"--warmup-context {shorter} is longer than --context-length {longer}",
            kind="setting",
        )


def check_interpolation(init: str | None) -> None:
    """Refuse to interpolate between random weights and trained ones."""
    if init is None:
        raise UserError(
            "--interpolate is for a training that begins with a model; name it by --init",
            kind="setting",
        )


def check_log(name: str) -> None:
    """Refuse to log to a program whose package is not installed."""
    if importlib.util.find_spec(name) is None:
        raise UserError(f"--log {name} needs a package: {how_to_install(name)}", kind="setting")


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def _typed(field: str, value: Any) -> str:
    """A setting as it is typed; of a list or a switch the option alone."""
    has_value = isinstance(value, str | int | float) and not isinstance(value, bool)
    return f"{_option(field)} {value}" if has_value else _option(field)
