"""Command line options from configs: every field is an option of the same name. Only those that
were given appear in the result, so that a plan can fill in the others."""

import argparse
import dataclasses
import difflib
import re
import types
from collections.abc import Sequence
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from .. import UserError

_ESCAPES = {r"\n": "\n", r"\t": "\t", "\\\\": "\\"}


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises a wrong command line as a UserError of one line."""

    def __init__(self, prog: str, description: str = "", **settings: Any):
        super().__init__(prog, description=description, allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Called by argparse; it says which option might be meant."""
        near, known = [], [name.strip("-") for name in self._option_string_actions]
        if found := re.search("unrecognized arguments: -+([^ =]{2,})", message):
            near = [name for name in known if name.startswith(found[1]) or name.endswith(found[1])]
            near = near or difflib.get_close_matches(found[1], known, 1, 0.7)
        hint = f"did you mean --{near[0]}?" if near else f"see {self.prog} --help"
        raise UserError(f"{' '.join(message.split())} ({hint})")


def add_fields(
    parser: Parser, config: type, title: str, skip: Sequence[str] = (), planned: Sequence[str] = ()
) -> argparse._ArgumentGroup:
    """Add an option for each field but those to skip; the `planned` ones show no default. Returns
    their group."""
    group = parser.add_argument_group(title)
    hints = get_type_hints(config)
    for field in dataclasses.fields(config):
        if field.name in skip:
            continue
        silent = field.default in (None, ()) or field.default is False
        note = "" if silent else f" (default: {field.default})"
        note = " (default: planned)" if field.name in planned else note
        group.add_argument(
            f"--{field.name.replace('_', '-')}",
            help=(field.metadata["help"] + note).replace("%", "%%"),
            default=argparse.SUPPRESS,
            **_kind(hints[field.name], field),
        )
    return group


def given_fields(given: argparse.Namespace, config: type) -> dict[str, Any]:
    """The fields of `config` that were given on the command line."""
    names = [field.name for field in dataclasses.fields(config) if field.name in given]
    values = {name: getattr(given, name) for name in names}
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


def _kind(hint: Any, field: dataclasses.Field) -> dict[str, Any]:
    """How argparse reads a field of type `hint`.

    No option takes more than one value, so that none swallows the text or the prompt after it.
    """
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (option for option in get_args(hint) if option is not type(None))
    if repeated := field.metadata["repeated"]:
        reads = {"TEXT": typed_text, "FILE": str}
        return {"action": "append", "type": reads[repeated], "metavar": repeated}
    if get_origin(hint) is Literal:
        return {"choices": get_args(hint)}
    if hint is bool:
        return {
            "action": "store_true" if field.default is False else argparse.BooleanOptionalAction
        }
    return {"type": hint, "metavar": {int: "N", float: "X", str: "NAME"}[hint]}


def typed_text(typed: str) -> str:
    r"""A text as it is typed: \n, \t and \\ stand for a new line, a tab and a backslash."""
    return re.sub(r"\\[nt\\]", lambda escape: _ESCAPES[escape[0]], typed)
