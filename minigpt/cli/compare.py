"""`minigpt compare`: two models on the same text, as a report, a record or a page."""

import argparse
import dataclasses
import json
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import UserError, __version__
from ..config import EvaluationConfig, ReadingConfig
from ..generation.results import percent
from .options import Parser, add_fields, chosen_model, given_fields
from .terminal import has_colours, print_message, terminal_width, write, write_coloured

if TYPE_CHECKING:
    from ..generation.comparison import Comparison, Guess, Place, ShownPiece

_MODEL = "a run, base, a model such as hf:gpt2, or counting, to see what attention adds"
_SHOWN = 1200  # characters of the text
_WIDTH = 80  # columns where there is no terminal
_COLOURS = (("48;5;25;38;5;255", "48;5;27;38;5;255", "1;48;5;33;38;5;16"),
            ("4;48;5;94;38;5;255", "4;48;5;172;38;5;16", "1;4;48;5;214;38;5;16"))  # fmt: skip
_BRACKETS = ("[]", "{}")  # where there are no colours
_CLEARLY = 1  # the level from which on brackets stand


def options(parser: Parser) -> None:
    add = parser.add_argument
    add("first", help=_MODEL)
    add("second", help="the other one")
    files = "files as for train, folders, patterns, or - for standard input"
    add("files", nargs="*", help=f"{files} (default: what the runs were validated on)")
    add("--json", action="store_true", help="print one JSON record")
    add("--html", metavar="FILE", help="write a page, one HTML file, with the text in two colours")
    seed = "seed of the texts that both write (default: 0)"
    add("--seed", type=int, default=0, metavar="N", help=seed)
    add_fields(parser, EvaluationConfig, "evaluation")


def run(given: argparse.Namespace) -> None:
    """Print the report or the record, or write the page."""
    settings = given_fields(given, EvaluationConfig)
    EvaluationConfig(**settings)  # refused before torch is loaded
    page = None if given.html is None else _page(given.html)
    if given.seed < 0:
        raise UserError(f"--seed must be at least 0, got {given.seed}")
    if not given.files:
        _check_reading(settings)

    from ..training.interruption import orderly_exit

    with orderly_exit():  # there may be a copy of standard input to remove
        comparison = _compare(given, settings)

    if page is not None:
        from ..page.comparison import comparison_page
        from ..runs.atomic import write_text

        write_text(comparison_page(comparison), page)
    if given.json:
        write(json.dumps(_record(comparison)))
    elif page is None:
        _write_report(comparison)
    else:
        _write_figures(comparison)
    if page is not None:
        message = f"{page}: {page.stat().st_size / 1e6:.1f} MB"
        print_message(message) if given.json else write(f"\n{message}")


def _page(name: str) -> Path:
    """The file to write a page to; what cannot be one is refused before anything is computed."""
    file = Path(name)
    if file.is_dir() or (file.exists() and file.suffix not in (".html", ".htm")):
        raise UserError(f"{file} exists and is not a page; choose another --html")
    if not file.parent.is_dir():
        raise UserError(f"there is no folder {file.parent} to write {file.name} to")
    return file


def _check_reading(settings: dict[str, Any]) -> None:
    """Refuse to read the validation text in another way than the training did."""
    for field in dataclasses.fields(ReadingConfig):
        if field.name in settings:
            option = f"--{field.name.replace('_', '-')}"
            raise UserError(
                f"{option} is for a text that is named; the runs know how to read theirs"
            )


def _compare(given: argparse.Namespace, settings: dict[str, Any]) -> "Comparison":
    from ..data.files import find_files
    from ..data.readers import STANDARD_INPUT
    from ..runs.counting import means_counting
    from ..runs.find import find_model

    # What is not there is refused before torch is loaded, which takes seconds.
    find_files(tuple(name for name in given.files if name != STANDARD_INPUT), print_message)
    names = []
    for typed in (given.first, given.second):
        if means_counting(typed):
            names.append(typed)
        else:
            names.append(str(chosen_model(typed)))
            find_model(names[-1])
    print_message(f"minigpt {__version__}: loading torch, to compare {' with '.join(names)}")

    from ..recipe.compare import compare
    from ..training.messages import progress_bar

    with progress_bar("comparing") as bar:
        first, second = names
        return compare(
            first, second, *given.files, seed=given.seed, progress=bar.update, **settings
        )


def _record(comparison: "Comparison") -> dict[str, Any]:
    """The record: all that Python returns."""
    record = dataclasses.asdict(comparison)
    record["bits_per_byte"] = comparison.bits_per_byte
    for shown, place in zip(record["places"], comparison.places, strict=True):
        shown["probabilities"] = place.probabilities
    return record


# The report


def _write_figures(comparison: "Comparison") -> None:
    """How well each predicts the text."""
    first, second = (side.name for side in comparison.sides)
    text = f"{comparison.text} ({comparison.characters:,} characters)"
    write(_wrapped(f"{first} beside {second}, on {text}."))
    for warning in comparison.warnings():
        write(_wrapped(warning))

    write("\nbits/byte  nats/token   tokens  context  seconds")
    for side in comparison.sides:
        write(
            f"{side.bits_per_byte:>9.4f}  {side.loss:>10.4f}  {side.tokens:>7,}  "
            f"{side.context_length:>7,}  {side.seconds:>7.1f}  {side.title()}"
        )
    write(f"\n{_wrapped(comparison.verdict())}")


def _write_report(comparison: "Comparison") -> None:
    _write_figures(comparison)
    _write_text(comparison)

    if comparison.places:
        write("\nWhere they differ most, of the whole text:")
    else:
        write("\nThey differ nowhere by more than half a bit.")
    for number, place in enumerate(comparison.places, start=1):
        _write_place(comparison, number, place)

    write("\nWhat each writes, with the same beginning and the same seed:")
    for written in comparison.written:
        write(f"\n“{written.prompt}” (seed {written.seed})")
        for side, text, seconds in zip(
            comparison.sides, written.texts, written.seconds, strict=True
        ):
            write(f"\n  {side.name} ({seconds:.1f} seconds):")
            write(_wrapped(f"{written.prompt}{text}", indent="    "))


def _write_text(comparison: "Comparison") -> None:
    """The beginning of the text, in colours or brackets."""
    first, second = (side.name for side in comparison.sides)
    passage = comparison.passages[0]
    shown = list(_within(passage.pieces, _SHOWN))
    length = sum(len(piece.text) for piece in shown)
    which = "The text" if length == comparison.characters else "How the text begins"
    rest = "" if length == comparison.characters else "; --html shows more"

    if has_colours():
        write(f"\n{which}{rest}.")
        for name, styles, how in zip((first, second), _COLOURS, ("", ", underlined"), strict=True):
            write_coloured([(f"likelier by {name}{how}:", ""), *_swatches(styles)])
        write("")
        write_coloured(_coloured(shown))
    else:
        legend = f"At least 8 times as likely by {first} is [text], by {second} {{text}}."
        write(f"\n{_wrapped(f'{which}{rest}. {legend}')}\n")
        write("".join(_bracketed(shown)))


def _within(pieces: Iterable["ShownPiece"], most: int) -> Iterator["ShownPiece"]:
    """The first pieces, of so many characters."""
    length = 0
    for piece in pieces:
        length += len(piece.text)
        if length > most:
            return
        yield piece


def _swatches(styles: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for words, style in zip(("2 times", "8 times", "64 times"), styles, strict=True):
        yield " ", ""
        yield f" {words} ", style


def _coloured(pieces: Iterable["ShownPiece"]) -> Iterator[tuple[str, str]]:
    """Texts with their styles; those at a line end lose theirs, which would fill the line."""
    from ..page.comparison import level

    for piece in pieces:
        found = None if piece.bits is None else level(piece.bits)
        style = "" if found is None or "\n" in piece.text else _COLOURS[found[0]][found[1]]
        yield piece.text or "\n\n¶ ", style


def _bracketed(pieces: Iterable["ShownPiece"]) -> Iterator[str]:
    """The text with brackets around what one expected clearly more than the other."""
    from ..page.comparison import level

    def side(piece: "ShownPiece") -> int | None:
        found = None if piece.bits is None else level(piece.bits)
        return None if found is None or found[1] < _CLEARLY else found[0]

    for number, alike in groupby(pieces, key=side):
        text = "".join(piece.text or "\n\n¶ " for piece in alike)
        yield text if number is None else f"{_BRACKETS[number][0]}{text}{_BRACKETS[number][1]}"


def _write_place(comparison: "Comparison", number: int, place: "Place") -> None:
    text = place.text or "¶"
    before = place.before[-(_WIDTH // 2) :]
    where = f"…{before}[{text}]{place.after}…"
    write(f"\n{number:>2}. {' '.join(where.split())}")
    width = max(len(side.name) for side in comparison.sides)
    for side, probability, guesses in zip(
        comparison.sides, place.probabilities, place.instead, strict=True
    ):
        write(f"    {side.name:<{width}}  {percent(probability):>5}  {_instead(guesses)}".rstrip())


def _instead(guesses: tuple["Guess", ...]) -> str:
    """What one expected in the place of a piece."""
    if not guesses:
        return ""
    named = [f"{guess.text} {percent(guess.probability)}" for guess in guesses]
    return "  ".join(["expected", *named])


def _wrapped(text: str, indent: str = "") -> str:
    """A text broken between words, at the width of the terminal."""
    width = (terminal_width() or _WIDTH) - len(indent)
    lines = []
    for line in text.split("\n"):
        lines += textwrap.wrap(line, width, break_long_words=False) or [""]
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)
