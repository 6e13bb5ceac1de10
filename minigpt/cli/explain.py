"""`minigpt explain`: why a model found a token of a text likely, as two short tables."""

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, TypeVar

from .. import UserError
from ..config import PLAIN
from ..generation.results import Token
from ..system.commands import command
from ..system.shown import percent, plural, visible
from .generate import read_prompt, token_name
from .options import Parser, add_model, chosen_model, names_a_model, typed_model, typed_text
from .terminal import print_message, write

if TYPE_CHECKING:
    from ..generation.explanation import Explanation
    from ..generation.writer import Writer

_Name = TypeVar("_Name", str, int)
_ROWS = 8  # of a table
_BEFORE = 40  # characters of the text before the token


def options(parser: Parser) -> None:
    add = parser.add_argument
    add_model(parser)
    text = "a text of two tokens or more (\\n: new line); - for standard input"
    add("text", nargs="?", help=text)
    place = "the token to explain, counted from 0, at least 1 (default: the last one)"
    add("--place", type=int, metavar="N", help=place)
    add("--json", action="store_true", help="print one JSON record, of all parts and words")


def run(given: argparse.Namespace) -> None:
    """Print the tables, or one JSON record."""
    from ..runs.find import find_model, glass_writer

    is_named = given.named is not None
    is_text = given.run is not None and any(map(str.isspace, given.run))  # whatever runs there are
    if given.text is None and (is_named or is_text or not names_a_model(given.run)):
        given.text = given.run
        given.run = None
    typed = None if given.text is None else typed_text(given.text)
    text = read_prompt(typed)
    if not text:
        raise UserError(f'give a text, as in {command("explain")} base "Once upon a time"')

    name = str(chosen_model(typed_model(given)))
    writer = glass_writer(find_model(name), PLAIN)  # it explains, and samples nothing
    ids = writer.tokenizer.encode(text)
    place = len(ids) - 1 if given.place is None else given.place

    millions = writer.glass.num_parameters / 1e6
    print_message(f"explaining with {name} ({millions:.2f} M parameters)")
    why = writer.explain(text, place)
    if given.json:
        tokens = [visible(writer.tokenizer.token_bytes(i)) for i in ids]
        record = {"run": name, "text": text, "tokens": tokens, "place": place}
        write(json.dumps({**record, **dataclasses.asdict(why)}))
    else:
        _write_tables(writer, ids, place, why)


def _write_tables(writer: "Writer", ids: list[int], place: int, why: "Explanation") -> None:
    """A sentence, what each part adds, and which words mattered."""
    names = [_name(writer, token_id) for token_id in ids]
    before = "".join(names[:place])
    if len(before) > _BEFORE:
        before = f"…{before[-_BEFORE:]}"
    side = "above" if why.logit >= 0 else "below"
    write(
        f"{names[place]} is {percent(why.probability)} likely after {before}: its logit is "
        f"{abs(why.logit):.2f} {side} the mean logit of the vocabulary."
    )

    write(f"\nWhat each part adds to that:\n\n{'logit':>7}  {'part':<16}  without it")
    parts = _by_size(why.parts)
    for part, added in parts[:_ROWS]:
        if part in why.heads:
            write(f"{added:>+7.2f}  {f'head {part}':<16}  {percent(why.heads[part])} likely")
        else:
            write(f"{added:>+7.2f}  {part}")
    others = [added for _, added in parts[_ROWS:]]
    if others:
        write(f"{sum(others):>+7.2f}  {plural(len(others), 'other part')} together")

    # The last of these tokens is left out: no later one could look at it.
    words = _by_size({i: bits for i, bits in why.words.items() if i != place - 1})
    if not words:
        return
    write("\nHow its probability changes if no later token may look at one (-1 bit halves it):")
    write(f"\n{'bits':>7}  {'place':>5}  token")
    for i, bits in words[:_ROWS]:
        write(f"{bits:>+7.2f}  {i:>5}  {names[i]}")
    if len(words) > _ROWS:
        others_count = plural(len(words) - _ROWS, "other token")
        write(f"{'':>7}  {'':>5}  {others_count} changed it less")


def _by_size(values: dict[_Name, float]) -> list[tuple[_Name, float]]:
    """Names with their values, the largest first, whichever its sign is."""
    return sorted(values.items(), key=lambda item: -abs(item[1]))


def _name(writer: "Writer", token_id: int) -> str:
    """How a token looks."""
    token = Token(token_id, writer.tokenizer.token_bytes(token_id), 0.0)
    return token_name(token, writer.tokenizer.end_of_text)
