"""The command line: `minigpt COMMAND ...`; train.py and generate.py are two of its commands.

A command is two functions of its module: `options` and `run`. Errors are raised where they are
understood and printed here, as one line. torch is loaded only when a command needs it.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from .. import UserError, __version__
from ..devices.memory import enough_memory
from ..system.commands import MODULE, started_as
from ..system.platforms import MISSING_LIBRARY, is_missing_library, why_not_written
from . import compare, evaluate, explain, export, generate, page, read, runs, serve, studio, train
from .options import Parser
from .terminal import prepare_streams, print_message, write

Run = Callable[[argparse.Namespace], int | None]  # the exit status; None is 0
COMMANDS: dict[str, tuple[str, Callable[[Parser], None], Run]] = {
    "studio": (
        "open a window in the browser to do all of this without a terminal",
        studio.options,
        studio.run,
    ),
    "train": ("train a text generator on text files", train.options, train.run),
    "read": (
        "print what would be trained on, and what is left out of the files",
        read.options,
        read.run,
    ),
    "runs": (
        "list the runs, with their texts, sizes and losses; or delete one",
        runs.options,
        runs.run,
    ),
    "generate": ("write text with a trained model", generate.options, generate.run),
    "evaluate": ("measure how well a model predicts a text", evaluate.options, evaluate.run),
    "explain": ("say why a model found a token likely", explain.options, explain.run),
    "compare": (
        "show where one of two models expects a text more than the other",
        compare.options,
        compare.run,
    ),
    "export": ("write a model for other programs", export.options, export.run),
    "page": (
        "make one HTML file that holds a model and shows how it thinks",
        page.options,
        page.run,
    ),
    "serve": ("answer requests of the OpenAI API with a trained model", serve.options, serve.run),
}


def main(arguments: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Run a command, such as ["train", "my.txt"], by default the one that was typed; returns the
    exit status. `prog` is its name in its help, by default "minigpt train" and so on."""
    prepare_streams()
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        run, given = parse(typed, prog)
        with enough_memory("a smaller model, or end other programs"):
            return run(given) or 0

    except UserError as error:
        print_message(f"error: {error}")
        return 2
    except BrokenPipeError:  # the reader of our output is gone, as in `... | head`
        _discard(sys.stdout)
        return 141
    except ImportError as error:
        if error.name != "torch":
            raise
        print_message("error: torch is not installed in this environment: pip install torch")
        return 2
    except OSError as error:  # the disk is full, or a folder may not be written to
        if is_missing_library(error):
            print_message(f"error: torch cannot be loaded: {error}; {MISSING_LIBRARY}")
            return 2
        if error.filename is None:  # what failed is our output
            _discard(sys.stdout)
        place = error.filename or "writing"
        print_message(f"error: {place}: {why_not_written(error, Path(place))}")
        return 2
    except KeyboardInterrupt:
        print_message("interrupted")
        return 130

    finally:
        try:
            sys.stderr.flush()
        except (OSError, ValueError):  # its reader is gone, or the terminal
            _discard(sys.stderr)


def parse(arguments: Sequence[str], prog: str | None) -> tuple[Run, argparse.Namespace]:
    """The command that was typed, and its options; UserError if either is wrong."""
    lines = [f"  {name:<11}{purpose}" for name, (purpose, *_) in COMMANDS.items()]
    overview = "\n".join(["Train a text generator on your own text, and use it.", "", *lines])
    called = MODULE if started_as() == MODULE else "minigpt"
    parser = Parser(called, overview, formatter_class=argparse.RawDescriptionHelpFormatter)
    versions = "show the versions of minigpt, torch, Python and the system"
    parser.add_argument("--version", action=ShowVersions, nargs=0, help=versions)
    parser.add_argument(
        "name",
        metavar="COMMAND",
        choices=COMMANDS,
        help="one of those above; COMMAND --help lists its options",
    )
    parser.add_argument(
        "rest", metavar="...", nargs=argparse.REMAINDER, help="the options of the command"
    )
    typed = parser.parse_args(arguments or ["--help"])

    purpose, options, run = COMMANDS[typed.name]
    parser = Parser(prog or f"{called} {typed.name}", f"{purpose[0].upper()}{purpose[1:]}.")
    options(parser)
    if "--" in typed.rest:  # what follows it is no option
        return run, parser.parse_args(typed.rest)
    return run, parser.parse_intermixed_args(typed.rest)  # files before and after options


class ShowVersions(argparse.Action):
    """The option --version: prints what a bug report should name. torch is not loaded for it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import platform
        from importlib.metadata import PackageNotFoundError, version

        try:
            torch = f"torch {version('torch')}"
        except PackageNotFoundError:
            torch = "no torch"
        python = f"Python {platform.python_version()}"
        write(", ".join([f"minigpt {__version__}", torch, python, platform.platform()]))
        parser.exit()


def _discard(stream: TextIO) -> None:
    """Discard what Python still has to write, so that its last attempt at exit does not fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
