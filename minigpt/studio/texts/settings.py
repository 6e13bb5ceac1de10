"""The settings that a window shows: fields of the three configs of a training, with their help.
chosen.py says which may be chosen."""

import dataclasses
import functools
import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ...config import PLANNED, GPTConfig, ReadingConfig, TextConfig, TrainConfig
from .chosen import FEW_CHOICES, NEVER

# "steps" is left out, too: a number of steps would take the place of the minutes.
_NOT_HERE = (*NEVER, "steps")
_KINDS = {int: "whole number", float: "number", bool: "switch", str: "text"}

_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")

Fields = dict[str, Any]


def _fields(config: type) -> list[str]:
    return [field.name for field in dataclasses.fields(config) if field.name not in _NOT_HERE]


_READING = tuple(_fields(ReadingConfig))
_TEXT = tuple(name for name in _fields(TextConfig) if name not in _READING)
_MODEL = tuple(name for name in _fields(GPTConfig) if name not in _TEXT)
_TRAINING = tuple(_fields(TrainConfig))
_GROUPS = {
    "reading": (TextConfig, _READING),
    "text": (TextConfig, _TEXT),
    "model": (GPTConfig, _MODEL),
    "training": (TrainConfig, _TRAINING),
}


def describe_settings(chosen: Mapping[str, Any]) -> list[Fields]:
    """Each setting: its name, group, help, kind ("whole number", "number", "switch", "text",
    "texts" or "choice"), choices (null but of a choice), default (null where it is planned, or
    there is none), whether it is planned, and the value that was chosen (null if none was)."""
    found = []
    for group, (config, names) in _GROUPS.items():
        for name in names:
            field = _field(config, name)
            is_planned = name in PLANNED
            choices = _choices(config, name)
            found.append(
                {
                    "name": name,
                    "group": group,
                    "help": field.metadata["help"],
                    "kind": "choice" if choices else _kind(config, name),
                    "choices": choices,
                    "default": None if is_planned else field.default,
                    "planned": is_planned,
                    "value": chosen.get(name),
                }
            )
    return found


def reading_fields(chosen: Mapping[str, Any]) -> Fields:
    """Those of a ReadingConfig."""
    return _part(chosen, _READING)


def text_fields(chosen: Mapping[str, Any]) -> Fields:
    """Those of a TextConfig."""
    return _part(chosen, _READING + _TEXT)


def model_fields(chosen: Mapping[str, Any]) -> Fields:
    """Those of a GPTConfig."""
    return _part(chosen, _MODEL)


def training_fields(chosen: Mapping[str, Any]) -> Fields:
    """Those of a TrainConfig."""
    return _part(chosen, _TRAINING)


def for_window(message: str) -> str:
    """What is said of settings at a terminal, in which they are options, as a window says it."""
    return _OPTION.sub(lambda option: option[1].replace("-", "_"), message)


def named_in(message: str) -> str | None:
    """The first setting that a message names; None if it names none."""
    known = {name for _, names in _GROUPS.values() for name in names}
    return next((word for word in re.findall(r"\w+", message) if word in known), None)


def _part(chosen: Mapping[str, Any], names: tuple[str, ...]) -> Fields:
    part = {name: chosen[name] for name in names if name in chosen}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in part.items()}


def _field(config: type, name: str) -> "dataclasses.Field[Any]":
    (field,) = (field for field in dataclasses.fields(config) if field.name == name)
    return field


def _kind(config: type, name: str) -> str:
    hint = _hint(config, name)
    return "texts" if get_origin(hint) is tuple else _KINDS[hint]


def _choices(config: type, name: str) -> tuple[str, ...] | None:
    if name in FEW_CHOICES:
        return FEW_CHOICES[name]
    hint = _hint(config, name)
    return get_args(hint) if get_origin(hint) is Literal else None


@functools.cache
def _hint(config: type, name: str) -> Any:
    """The type of a field, without None and limits."""
    hint = get_type_hints(config, include_extras=True)[name]
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (option for option in get_args(hint) if option is not type(None))
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return hint
