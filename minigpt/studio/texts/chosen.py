"""The settings of a training and of a text that may be chosen in the window: checked, and as
options of a command.

Left out are those that name a file of this computer or a program on another one, or for which
something would be fetched: what is asked for comes from a browser.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ... import UserError
from ...config import (
    FROM_NOTHING,
    PLANNED,
    GPTConfig,
    SampleConfig,
    TextConfig,
    TrainConfig,
    check_fields,
    check_given,
)
from ...runs.base import BASE

NEVER = ("files", "validation", "log", "minutes")  # minutes are asked for apart from settings
FEW_CHOICES = {"tokenizer": ("bpe", "char"), "init": (BASE, FROM_NOTHING)}  # of more at a terminal
_OF_TRAINING = (TextConfig, GPTConfig, TrainConfig)
# Options without an opposite: what they turn on is off unless they are given.
_ONLY_ON = {
    field.name
    for config in (*_OF_TRAINING, SampleConfig)
    for field in dataclasses.fields(config)
    if field.default is False and field.name not in PLANNED
}
_MOST_TOKENS = 4000  # of a text that is written
_LONGEST_TEXT = 2000  # characters of a setting that is a text


def checked_settings(settings: Any) -> dict[str, Any]:
    """Settings of a training, from JSON.

    Raises:
        UserError: if one is unknown, has a wrong value, or would do nothing beside the others.
    """
    chosen = _without_nulls(settings)
    for config in _OF_TRAINING:
        names = {field.name for field in dataclasses.fields(config)}
        check_fields(config, {name: chosen[name] for name in chosen.keys() & names})
    known = {field.name for config in _OF_TRAINING for field in dataclasses.fields(config)}
    _refuse((chosen.keys() - known) | (chosen.keys() & {*NEVER}))
    for name, choices in FEW_CHOICES.items():
        if name in chosen and chosen[name] not in choices:
            raise UserError(f"{name} must be {' or '.join(choices)}, got {chosen[name]!r}")
    for config in (TextConfig, TrainConfig):  # whether fields fit together
        names = {field.name for field in dataclasses.fields(config)}
        config(**{name: chosen[name] for name in chosen.keys() & names})
    check_given(chosen)
    return chosen


def checked_sampling(settings: Any) -> dict[str, Any]:
    """Settings of a text that is written, from JSON; errors as above."""
    chosen = _without_nulls(settings)
    names = {field.name for field in dataclasses.fields(SampleConfig)} - {"samples"}
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
