"""`minigpt evaluate`: how well a model predicts a text, and how much of a text is copied."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import UserError, __version__
from ..config import PLAIN, EvaluationConfig, ReadingConfig, check_given
from ..system.commands import command
from ..system.shown import plural
from .options import (
    Parser,
    add_fields,
    add_model,
    check_reading,
    chosen_model,
    given_fields,
    names_a_model,
    typed_model,
)
from .terminal import print_message, write

if TYPE_CHECKING:
    from ..training.evaluation import Evaluation


def options(parser: Parser) -> None:
    add = parser.add_argument
    add_model(parser)
    add("files", nargs="*", help="files as for train, folders, patterns, or - for standard input")
    copied = "measure how much of these texts, or of eight new samples, is in the training text"
    add("--copied", action="store_true", help=copied)
    add("--json", action="store_true", help="print one JSON record")
    add_fields(parser, EvaluationConfig, "evaluation")


def run(given: argparse.Namespace) -> None:
    """Print one line, or one JSON record."""
    settings = given_fields(given, EvaluationConfig)
    config = EvaluationConfig(**settings)  # refused before torch is loaded
    is_named = given.run is not None and given.named is not None
    if is_named or _is_text(given.run):
        given.files.insert(0, given.run)
        given.run = None
    given.run = typed_model(given)
    check_given({**settings, "copied": given.copied})
    if not (given.files or given.copied):
        raise UserError(_what_is_missing(given.run))
    if given.copied:
        _check_copied(given, settings)

    from ..training.interruption import orderly_exit

    with orderly_exit():  # there may be a copy of standard input to remove
        if given.copied:
            line, figures = _copied(given, config)
        else:
            line, figures = _predicted(given, config.reading(), settings)

    if given.json:
        write(json.dumps({"run": given.run, "files": given.files, **figures}))
    else:
        write(f"{given.run}: {line}")


def _is_text(name: str | None) -> bool:
    """Whether what was typed in the place of a run is a text, and no run has this name."""
    from ..data.readers.document import STANDARD_INPUT

    is_file = name is not None and Path(name).is_file()
    return name == STANDARD_INPUT or (is_file and not names_a_model(name))


def _what_is_missing(run: str | None) -> str:
    """What to type if no text was named."""
    from ..runs.base import BASE

    text = f"name a text to predict, as in {command('evaluate')} {run or BASE} my.txt"
    return text if run == BASE else f"{text}, or ask for --copied"


def _check_copied(given: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Refuse options that do nothing where it is measured what is copied."""
    if not given.files:
        check_reading(settings)
    elif "device" in settings:
        raise UserError("--device does nothing beside a text and --copied; leave it out")


def _predicted(
    given: argparse.Namespace, reading: ReadingConfig, settings: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """How well the model predicts the texts: a line, and the figures of the record."""
    from ..data.files import find_files
    from ..data.readers.document import STANDARD_INPUT
    from ..runs.find import find_model

    # What is not there is refused before torch is loaded, which takes seconds.
    named = tuple(name for name in given.files if name != STANDARD_INPUT)
    find_files(named, print_message, reading)
    given.run = str(chosen_model(given.run))
    find_model(given.run)
    print_message(f"minigpt {__version__}: loading torch, to evaluate {given.run}")
    from ..measure.evaluate import evaluate
    from ..training.messages import progress_bar

    with progress_bar("evaluating") as bar:
        result = evaluate(given.run, *given.files, progress=bar.update, **settings)
    if not given.json:
        _explain(result)

    figures = {**dataclasses.asdict(result), "perplexity": result.perplexity}
    loss = f"{result.loss:.4f} nats/token, token perplexity {result.perplexity:.2f}"
    return f"{result.bits_per_byte:.4f} bits/byte ({loss})", figures


def _explain(result: "Evaluation") -> None:
    """Say what was read and how, and what to compare the figures with."""
    from ..recipe.told_at_start import BITS

    sequences = f"sequences of {result.context_length}"
    if result.stride < result.context_length:
        sequences += f", each {plural(result.stride, 'token')} after the one before"
    print_message(f"read {plural(result.tokens, 'token')} in {sequences}")
    print_message(f"bits/byte: {BITS}")
    if (counting := result.counting_bits_per_byte) is not None:
        what = "counting which token follows which four in the training text"
        print_message(f"{what} gives {counting:.4f} bits/byte on the same text")


def _copied(given: argparse.Namespace, config: EvaluationConfig) -> tuple[str, dict[str, Any]]:
    """How much of the texts is copied: a line, and the figures of the record."""
    from ..data.corpus import Corpus, whole_documents
    from ..data.files import each_once, find_files
    from ..data.source import check_names, check_text_field, read_corpus
    from ..runs.base import BASE, NO_TEXTS
    from ..runs.find import find_model, glass_writer, load
    from ..runs.listing import newest_run

    files = each_once(find_files(tuple(given.files), print_message, config.reading()))
    check_text_field(files, config.reading())
    texts: list[str] = []
    if files:
        corpus = read_corpus(Corpus(files, config.reading()), tuple(given.files), print_message)
        check_names(corpus)
        texts = whole_documents(corpus.pieces())
    given.run = str(newest_run() if given.run is None else chosen_model(given.run))
    if given.run == BASE:
        raise UserError(f"{NO_TEXTS}: what it copies from them cannot be measured")
    if texts:  # nothing is sampled
        result = glass_writer(find_model(given.run), PLAIN).copied(*texts)
    else:
        result = load(given.run, config.device).copied()
    return str(result), dataclasses.asdict(result)
