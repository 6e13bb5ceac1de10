"""Command line options from config dataclasses: every field is an option of the same name.

Only the options that were given appear in the result, so that a plan can fill in the others.
"""

import argparse
import dataclasses
import types
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that says what is wrong in one line, and exits with status 2."""

    def __init__(self, prog: str, description: str = ""):
        super().__init__(prog, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Called by argparse."""
        self.exit(2, f"error: {' '.join(message.split())} (see {self.prog} --help)\n")


def add_options(
    parser: argparse.ArgumentParser,
    config: type,
    title: str,
    *,
    skip: tuple[str, ...] = (),
    planned: tuple[str, ...] = (),
) -> None:
    """Add an option for each field of a config dataclass.

    Args:
        parser: to add to.
        config: the dataclass.
        title: heading of the group in --help.
        skip: fields that are no options.
        planned: fields whose default is worked out from the text.
    """
    group = parser.add_argument_group(title)
    hints = get_type_hints(config)
    for field in dataclasses.fields(config):
        if field.name in skip:
            continue
        note = "" if field.default in (None, ()) else f" (default: {field.default})"
        note = " (default: planned)" if field.name in planned else note
        group.add_argument(
            f"--{field.name.replace('_', '-')}",
            help=(field.metadata["help"] + note).replace("%", "%%"),
            default=argparse.SUPPRESS,
            **_kind(hints[field.name]),
        )


def chosen(arguments: argparse.Namespace, config: type) -> dict[str, Any]:
    """The fields of `config` that were given on the command line."""
    given = vars(arguments)
    names = [field.name for field in dataclasses.fields(config) if field.name in given]
    return {n: tuple(given[n]) if isinstance(given[n], list) else given[n] for n in names}


def _kind(hint: Any) -> dict[str, Any]:
    """How argparse reads a value of type `hint`."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (option for option in get_args(hint) if option is not type(None))
    if get_origin(hint) is Literal:
        return {"choices": get_args(hint)}
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return {"nargs": "+", "type": item, "metavar": "FILE" if item is str else "X"}
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    return {"type": hint, "metavar": {int: "N", float: "X", str: "NAME"}[hint]}
