"""Dataclasses that check their fields: types of settings, and what is said of a wrong value."""

import dataclasses
import functools
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from .. import UserError

Config = TypeVar("Config")


class Limits(NamedTuple):
    """Which numbers a field takes, in words and as a test."""

    words: str
    hold: Callable[[float], bool]


Count = Annotated[int, Limits("at least 1", lambda n: n >= 1)]
Kept = Annotated[int, Limits("between 2 and 1,000", lambda n: 2 <= n <= 1000)]
Natural = Annotated[int, Limits("at least 0", lambda n: n >= 0)]
# No vocabulary or context in use is larger.
Size = Annotated[int, Limits("between 1 and 262,144", lambda n: 1 <= n <= 1 << 18)]
Seed = Annotated[int, Limits("between 0 and 2^63 - 1", lambda n: 0 <= n < 1 << 63)]
ANY_SEED = -1  # for clients that cannot leave a seed out
SeedOrAny = Annotated[
    int, Limits("-1 or between 0 and 2^63 - 1", lambda n: ANY_SEED <= n < 1 << 63)
]
Positive = Annotated[float, Limits("above 0 and below 1e6", lambda x: 0 < x < 1e6)]
Share = Annotated[float, Limits("between 0 and 1", lambda x: 0 <= x <= 1)]
Decay = Annotated[float, Limits("between 0 and 100", lambda x: 0 <= x <= 100)]
Fraction = Annotated[float, Limits("above 0 and below 1", lambda x: 0 < x < 1)]
Probability = Annotated[float, Limits("at least 0 and below 1", lambda x: 0 <= x < 1)]
Penalty = Annotated[float, Limits("between -1e3 and 1e3", lambda x: -1e3 <= x <= 1e3)]
VocabSize = Annotated[int, Limits("at least 257", lambda n: n >= 257)]
Samples = Annotated[int, Limits("between 1 and 4,096", lambda n: 1 <= n <= 4096)]
Temperature = Annotated[float, Limits("at least 0 and below 1e3", lambda x: 0 <= x < 1e3)]
TopP = Annotated[float, Limits("above 0 and at most 1", lambda x: 0 < x <= 1)]
Factor = Annotated[float, Limits("above 0 and below 1e3", lambda x: 0 < x < 1e3)]
Multiplier = Annotated[float, Limits("at least 0 and below 1e3", lambda x: 0 <= x < 1e3)]
Base = Annotated[float, Limits("above 1 and below 1e12", lambda x: 1 < x < 1e12)]

_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def setting(default: Any, help: str, value: str = "") -> Any:
    """A field of a config; in the help, `value` (NAME if left out) stands for a text that its
    option takes."""
    return dataclasses.field(default=default, metadata={"help": help, "value": value or "NAME"})


class Checked:
    """A dataclass that checks its fields; a UserError names the one that is wrong."""

    def __post_init__(self) -> None:
        check_fields(type(self), vars(self))
        self._check()

    def _check(self) -> None:
        """Raise a UserError if fields do not fit together."""


def from_dict(cls: type[Config], data: Any) -> Config:
    """A dataclass from JSON values; UserError if a field is unknown, missing or of another type."""
    if not isinstance(data, dict):
        raise UserError(f"{cls.__name__}: expected an object, got {type(data).__name__}")
    check_fields(cls, data)
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.default is MISSING and field.name not in data:
            raise UserError(f"{cls.__name__}: {field.name} is missing")

    values = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
    return cls(**values)


def check_fields(cls: type, values: Mapping[str, Any]) -> None:
    """Refuse a value that has not the type of its field in a config, or is out of its range."""
    hints = _type_hints(cls)
    for name, value in values.items():
        if name not in hints:
            raise UserError(f"{cls.__name__}: unknown field {name!r}")
        if (expected := _problem(value, hints[name])) is not None:
            raise UserError(f"{name} must be {expected}, got {value!r}", kind="setting")


@functools.cache  # it takes longer than the check itself; a server checks every request
def _type_hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)


def _problem(value: Any, hint: Any) -> str | None:
    """What a value should be by the type `hint`, in words; None if it fits. True is no number, and
    1 is a float."""
    kind = get_origin(hint)
    inner = get_args(hint)
    if kind is Annotated:
        base, limits = inner
        return _problem(value, base) or (None if limits.hold(value) else limits.words)
    if kind in (Union, UnionType):  # with None
        return None if value is None else _problem(value, inner[0])
    if kind is Literal:
        return None if value in inner else "one of " + ", ".join(inner)
    if kind is tuple:
        if not isinstance(value, list | tuple):
            return "a list"
        problem = next(filter(None, (_problem(item, inner[0]) for item in value)), None)
        return problem and f"a list, each item {problem}"

    allowed = int | float if hint is float else hint
    is_right = isinstance(value, allowed) and isinstance(value, bool) == (hint is bool)
    return None if is_right else _WORDS[hint]


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded in UTF-8: it holds no surrogate, which stands for a byte that
    could not be decoded."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def require(config: Any, name: str, holds: bool, expected: str) -> None:
    """Refuse the value of a field unless `holds`; `expected` says in words what it must be."""
    if not holds:
        raise UserError(f"{name} must be {expected}, got {getattr(config, name)}", kind="setting")
