"""The settings that can be chosen in the window: those of a training and its text, and those of a
text that is written. They are checked, described for the window, and given to commands as options.

Left out are those that name a file of this computer or a program on another one, or for which
something would be fetched: what is asked for comes from a browser.
"""

import dataclasses
import functools
import re
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from .. import UserError
from ..config import (
    FROM_NOTHING,
    PLANNED,
    GPTConfig,
    ReadingConfig,
    SampleConfig,
    TextConfig,
    TrainConfig,
    check_fields,
    check_given,
)
from ..runs.base import BASE

Fields = dict[str, Any]

_NEVER = ("files", "validation", "log", "minutes")  # minutes are asked for apart from settings
_FEW_CHOICES = {"tokenizer": ("bpe", "char"), "init": (BASE, FROM_NOTHING)}  # of more at a terminal
_MOST_TOKENS = 4000  # of a text that is written
_LONGEST_TEXT = 2000  # characters of a setting that is a text


def _names(config: type, but: Sequence[str] = ()) -> tuple[str, ...]:
    """The names of the fields of a config, without some."""
    return tuple(field.name for field in dataclasses.fields(config) if field.name not in but)


_OF_TRAINING = (TextConfig, GPTConfig, TrainConfig)
# Options without an opposite: what they turn on is off unless they are given.
_ONLY_ON = {
    field.name
    for config in (*_OF_TRAINING, SampleConfig)
    for field in dataclasses.fields(config)
    if field.default is False and field.name not in PLANNED
}
# The window leaves out "steps", too: a number of steps would take the place of the minutes.
_NOT_SHOWN = (*_NEVER, "steps")
_READING = _names(ReadingConfig, but=_NOT_SHOWN)
_TEXT = _names(TextConfig, but=(*_NOT_SHOWN, *_READING))
_SHOWN = {
    "reading": (TextConfig, _READING),
    "text": (TextConfig, _TEXT),
    "model": (GPTConfig, _names(GPTConfig, but=_TEXT)),
    "training": (TrainConfig, _names(TrainConfig, but=_NOT_SHOWN)),
}
_KINDS = {int: "whole number", float: "number", bool: "switch", str: "text"}
_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")


def checked_settings(settings: Any) -> dict[str, Any]:
    """Settings of a training, from JSON.

    Raises:
        UserError: if one is unknown, has a wrong value, or would do nothing beside the others.
    """
    chosen = _without_nulls(settings)
    for config in _OF_TRAINING:
        names = {*_names(config)}
        check_fields(config, {name: chosen[name] for name in chosen.keys() & names})
    known = {name for config in _OF_TRAINING for name in _names(config)}
    _refuse((chosen.keys() - known) | (chosen.keys() & {*_NEVER}))
    for name, choices in _FEW_CHOICES.items():
        if name in chosen and chosen[name] not in choices:
            raise UserError(f"{name} must be {' or '.join(choices)}, got {chosen[name]!r}")
    for config in (TextConfig, TrainConfig):  # whether fields fit together
        names = {*_names(config)}
        config(**{name: chosen[name] for name in chosen.keys() & names})
    check_given(chosen)
    return chosen


def checked_sampling(settings: Any) -> dict[str, Any]:
    """Settings of a text that is written, from JSON; errors as above."""
    chosen = _without_nulls(settings)
    names = {*_names(SampleConfig)} - {"samples"}
    _refuse(chosen.keys() - names)
    SampleConfig(**chosen)
    if chosen.get("max_new_tokens", 0) > _MOST_TOKENS:
        raise UserError(f"max_new_tokens must be at most {_MOST_TOKENS:,}")
    return chosen


def options(settings: Mapping[str, Any]) -> list[str]:
    """Settings as the options of a command. A value stands in the same word as its option, so that
    the value is never taken for an option."""
    words = []
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value is False:
            words += [] if name in _ONLY_ON else [f"--no-{name.replace('_', '-')}"]
        elif isinstance(value, list | tuple):
            words += [f"{option}={_typed(name, str(one))}" for one in value]
        else:
            words.append(f"{option}={value}")
    return words


def describe_settings(chosen: Mapping[str, Any]) -> list[Fields]:
    """Each setting: its name, group, help, kind ("whole number", "number", "switch", "text",
    "texts" or "choice"), choices (null but of a choice), default (null where it is planned, or
    there is none), whether it is planned, and the value that was chosen (null if none was)."""
    found = []
    for group, (config, names) in _SHOWN.items():
        for name in names:
            field = _field(config, name)
            is_planned = name in PLANNED
            choices = _choices(config, name)
            found.append(
                {
                    "name": name,
                    "group": group,
                    "help": for_window(field.metadata["help"]),
                    "kind": "choice" if choices else _kind(config, name),
                    "choices": choices,
                    "default": None if is_planned else field.default,
                    "planned": is_planned,
                    "value": chosen.get(name),
                }
            )
    return found


def reading_fields(chosen: Mapping[str, Any]) -> Fields:
    """The chosen ones of a ReadingConfig."""
    return _part(chosen, _READING)


def planned_fields(chosen: Mapping[str, Any]) -> Fields:
    """The chosen ones with which a training is planned, for any number of minutes."""
    return _part(chosen, [name for _, names in _SHOWN.values() for name in names])


def for_window(message: str) -> str:
    """What is said of settings at a terminal, in which they are options, as a window says it."""
    return _OPTION.sub(lambda option: option[1].replace("-", "_"), message)


def named_in(message: str) -> str | None:
    """The first setting that a message names; None if it names none."""
    known = {name for _, names in _SHOWN.values() for name in names}
    return next((word for word in re.findall(r"\w+", message) if word in known), None)


def _typed(name: str, value: str) -> str:
    r"""One of several texts as it would be typed, with \n for a new line."""
    if name != "stop":
        return value
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def _without_nulls(settings: Any) -> dict[str, Any]:
    """Settings from JSON; a null is as good as not given, and a list is a tuple."""
    if settings is None:
        return {}
    if not isinstance(settings, dict):
        raise UserError("the settings must be an object")
    chosen = {}
    for name, value in settings.items():
        one = tuple(value) if isinstance(value, list) else value
        if one is None:
            continue
        if len(str(one)) > _LONGEST_TEXT or "\0" in str(one):
            raise UserError(f"{name} is too long, or holds a character that is not text")
        chosen[str(name)] = one
    return chosen


def _refuse(names: set[str]) -> None:
    if names:
        raise UserError(f"{min(names)} is no setting that can be chosen here")


def _part(chosen: Mapping[str, Any], names: Sequence[str]) -> Fields:
    part = {name: chosen[name] for name in names if name in chosen}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in part.items()}


def _field(config: type, name: str) -> "dataclasses.Field[Any]":
    (field,) = (field for field in dataclasses.fields(config) if field.name == name)
    return field


def _kind(config: type, name: str) -> str:
    hint = _hint(config, name)
    return "texts" if get_origin(hint) is tuple else _KINDS[hint]


def _choices(config: type, name: str) -> tuple[str, ...] | None:
    if name in _FEW_CHOICES:
        return _FEW_CHOICES[name]
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
