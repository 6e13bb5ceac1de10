"""Command line options from configs: every field is an option of the same name. Only those that
were given appear in the result, so that a plan can fill in the others."""

import argparse
import dataclasses
import difflib
import re
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from .. import UserError
from ..config import ReadingConfig
from ..system.commands import command
from .terminal import print_message

# What help says of the model that a command is for; see `chosen_model`.
A_MODEL = (
    "a run, base, or a model such as hf:gpt2 (default: the newest run; before the first run, base)"
)
_ESCAPES = {r"\n": "\n", r"\t": "\t", "\\\\": "\\"}


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises a wrong command line as a UserError of one line."""

    def __init__(self, prog: str, description: str = "", **settings: Any):
        super().__init__(prog, description=description, allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Called by argparse; it says which option might be meant."""
        hint = f"see {self.prog} --help"
        unknown = re.search("unrecognized arguments: -+([^ =]{2,})", message)
        if unknown is not None:
            near = self._nearest_options(unknown[1])
            if near:
                hint = f"did you mean --{near[0]}?"
        one_line = " ".join(message.split())
        raise UserError(f"{one_line} ({hint})")

    def _nearest_options(self, typed: str) -> list[str]:
        """The options that begin or end like what was typed, or else look like it."""
        known = [name.strip("-") for name in self._option_string_actions]
        longer = [name for name in known if name.startswith(typed) or name.endswith(typed)]
        return longer or difflib.get_close_matches(typed, known, n=1, cutoff=0.7)


def add_fields(
    parser: Parser,
    config: type,
    title: str,
    skip: Sequence[str] = (),
    planned: Sequence[str] = (),
    defaults: Mapping[str, str] | None = None,
) -> argparse._ArgumentGroup:
    """Add an option for each field but those to skip; the `planned` ones show no default, and
    `defaults` says in words what some defaults are. Returns their group."""
    in_words = {**dict.fromkeys(planned, "planned"), **(defaults or {})}
    group = parser.add_argument_group(title)
    hints = get_type_hints(config)
    for field in dataclasses.fields(config):
        if field.name in skip:
            continue

        says_nothing = field.default in (None, (), "") or field.default is False
        if field.name in in_words:
            note = f" (default: {in_words[field.name]})"
        elif says_nothing:
            note = ""
        else:
            note = f" (default: {field.default})"
        shown = field.metadata["help"] + note

        option = field.name.replace("_", "-")
        group.add_argument(
            f"--{option}",
            help=shown.replace("%", "%%"),
            default=argparse.SUPPRESS,
            **_kind(hints[field.name], field, is_planned=field.name in planned),
        )
    return group


def given_fields(given: argparse.Namespace, config: type) -> dict[str, Any]:
    """The fields of `config` that were given on the command line."""
    values = {}
    for field in dataclasses.fields(config):
        if field.name in given:
            value = getattr(given, field.name)
            values[field.name] = tuple(value) if isinstance(value, list) else value
    return values


def add_model(parser: Parser) -> None:
    """Let a model be named as the first word or with --run, as for `generate`."""
    parser.add_argument("run", nargs="?", help=A_MODEL)
    parser.add_argument("--run", dest="named", metavar="NAME", help="the same as RUN")


def typed_model(given: argparse.Namespace) -> str | None:
    """The model that was typed in one of the two ways; None if none was."""
    named: str | None = given.named
    first: str | None = given.run
    if named is not None and first is not None:
        raise UserError(f"name one model: {first}, or --run {named}")
    return first if named is None else named


def names_a_model(typed: str | None) -> bool:
    """Whether what was typed is a run, base or another model, and not a text."""
    from ..runs.find import full_name

    if typed is None:
        return False
    try:
        full_name(typed)
    except (UserError, OSError):  # no such run, or a name too long for one
        return False
    return True


def chosen_model(name: str | None) -> str | Path:
    """The model that a command is for, by its full name. If none was named it is the newest run or,
    before the first one, the base; that is said."""
    from ..runs.base import BASE
    from ..runs.find import full_name, newest_run_or_base

    if name is not None:
        return full_name(name, say=print_message)
    newest = newest_run_or_base()
    if newest == BASE:
        newest = full_name(BASE)  # a folder of that name comes first
        which = "the base" if newest == BASE else f"the model in the folder {newest}"
        print_message(f"no run yet: this is {which}; {command('train')} my.txt makes it yours")
    return newest


def check_reading(settings: Mapping[str, Any]) -> None:
    """Refuse to read a run's own text in another way than the training did."""
    for field in dataclasses.fields(ReadingConfig):
        if field.name in settings:
            option = f"--{field.name.replace('_', '-')}"
            raise UserError(
                f"{option} is for a text that is named; a run knows how to read its own"
            )


def _kind(hint: Any, field: dataclasses.Field, is_planned: bool = False) -> dict[str, Any]:
    """How argparse reads a field of type `hint`. What a plan may turn on can be turned off.

    No option takes more than one value, so that none swallows the text or the prompt after it.
    """
    if get_origin(hint) in (Union, types.UnionType):  # something or None
        (hint,) = (option for option in get_args(hint) if option is not type(None))

    value = field.metadata["value"]
    if get_origin(hint) is tuple:
        reads = typed_text if value == "TEXT" else str
        return {"action": "append", "type": reads, "metavar": value}

    if get_origin(hint) is Literal:
        return {"choices": get_args(hint)}
    if hint is bool and field.default is False and not is_planned:
        return {"action": "store_true"}
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    metavars = {int: "N", float: "X", str: value}
    return {"type": hint, "metavar": metavars[hint]}


def typed_text(typed: str) -> str:
    r"""A text as it is typed: \n, \t and \\ are a new line, a tab and a backslash."""
    return re.sub(r"\\[nt\\]", lambda escape: _ESCAPES[escape[0]], typed)
