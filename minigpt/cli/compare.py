"""`minigpt compare`: two models on the same text, as a report or a record."""

import argparse
import dataclasses
import json
import textwrap
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..config import EvaluationConfig, ReadingConfig
from ..system.shown import percent
from .options import Parser, add_fields, check_reading, chosen_model, given_fields
from .terminal import print_message, terminal_width, write

if TYPE_CHECKING:
    from ..measure.comparison import Comparison, Guess, Place

_MODEL = "a run, base, a model such as hf:gpt2, or counting (which token follows which four)"
_WIDTH = 80  # columns where there is no terminal


def options(parser: Parser) -> None:
    add = parser.add_argument
    add("first", help=_MODEL)
    add("second", help="the other one")
    files = "files as for train, folders, patterns, or - for standard input"
    add("files", nargs="*", help=f"{files} (default: what the runs were validated on)")
    add("--json", action="store_true", help="print one JSON record")
    add_fields(parser, EvaluationConfig, "evaluation")


def run(given: argparse.Namespace) -> None:
    """Print the report or the record."""
    settings = given_fields(given, EvaluationConfig)
    config = EvaluationConfig(**settings)  # refused before torch is loaded
    if not given.files:
        check_reading(settings)

    from ..training.interruption import orderly_exit

    with orderly_exit():  # there may be a copy of standard input to remove
        comparison = _compare(given, config.reading(), settings)

    if given.json:
        write(json.dumps(_record(comparison)))
    else:
        _write_figures(comparison)
        _write_places(comparison)


def _compare(
    given: argparse.Namespace, reading: ReadingConfig, settings: dict[str, Any]
) -> "Comparison":
    from ..data.files import find_files
    from ..data.readers.document import STANDARD_INPUT
    from ..measure.counting import means_counting
    from ..runs.find import find_model

    # What is not there is refused before torch is loaded, which takes seconds.
    named = tuple(name for name in given.files if name != STANDARD_INPUT)
    find_files(named, print_message, reading)
    names = []
    for typed in (given.first, given.second):
        if means_counting(typed):
            names.append(typed)
        else:
            names.append(str(chosen_model(typed)))
            find_model(names[-1])
    print_message(f"minigpt {__version__}: loading torch, to compare {' with '.join(names)}")

    from ..measure.compare import compare
    from ..training.messages import progress_bar

    with progress_bar("comparing") as bar:
        first, second = names
        return compare(first, second, *given.files, progress=bar.update, **settings)


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

    write("\nbits/byte  nats/token   tokens  context")
    for side in comparison.sides:
        write(
            f"{side.bits_per_byte:>9.4f}  {side.loss:>10.4f}  {side.tokens:>7,}  "
            f"{side.context_length:>7,}  {side.title()}"
        )
    write(f"\n{_wrapped(comparison.verdict())}")


def _write_places(comparison: "Comparison") -> None:
    """Where the two differ most."""
    if comparison.places:
        write("\nWhere they differ most:")
    else:
        write("\nThey differ nowhere by more than half a bit.")
    for number, place in enumerate(comparison.places, start=1):
        _write_place(comparison, number, place)


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


def _wrapped(text: str) -> str:
    """A paragraph broken between words, at the width of the terminal."""
    return textwrap.fill(text, terminal_width() or _WIDTH, break_long_words=False)
