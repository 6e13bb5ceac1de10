"""`minigpt evaluate`: how well a model predicts a text of any size."""

import argparse
import dataclasses
import json

from .. import __version__
from ..config import EvaluationConfig, counted
from .options import Parser, add_fields, given_fields
from .terminal import say, write


def options(parser: Parser) -> None:
    parser.add_argument("run", help="a run, or a model such as hf:gpt2")
    parser.add_argument("files", nargs="+", help="text files, folders, patterns, or - for stdin")
    parser.add_argument("--json", action="store_true", help="print one JSON record")
    add_fields(parser, EvaluationConfig, "evaluation")


def run(given: argparse.Namespace) -> None:
    """Print one line, or one JSON record."""
    settings = given_fields(given, EvaluationConfig)
    EvaluationConfig(**settings)  # refused before torch is loaded
    from ..data.corpus import find_files
    from ..data.readers import STANDARD_INPUT
    from ..runs import find_model

    find_files(tuple(name for name in given.files if name != STANDARD_INPUT))
    find_model(given.run)
    say(f"minigpt {__version__}: loading torch, to evaluate {given.run}")
    from ..training.evaluation import evaluate
    from ..training.report import BITS, progress_bar

    with progress_bar("evaluating") as bar:
        result = evaluate(given.run, *given.files, progress=bar.update, **settings)
    if given.json:
        figures = {**dataclasses.asdict(result), "perplexity": result.perplexity}
        write(json.dumps({"run": given.run, "files": given.files, **figures}))
        return
    say(f"read {counted(result.tokens, 'token')} in windows of {result.context_length}")
    say(f"bits/byte: {BITS}")
    loss = f"{result.loss:.4f} nats/token, perplexity {result.perplexity:.2f}"
    write(f"{given.run}: {result.bits_per_byte:.4f} bits/byte ({loss})")
