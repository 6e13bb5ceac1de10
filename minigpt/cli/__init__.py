"""The command line: `minigpt COMMAND ...`; train.py and generate.py are two of its commands.

Each command is a module: its options, and what it does. Errors are raised where they are understood
and printed here, as one line. torch is loaded only when a command needs it.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .. import UserError, __version__
from ..config import cache_folder
from ..training.interruption import Interrupted
from . import attention, evaluate, export, generate, plan, train
from .options import Parser
from .terminal import say


class Command(NamedTuple):
    """What a command is for, its options, and what it does with them."""

    purpose: str
    add_options: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], None]


COMMANDS = {
    "train": Command("train a text generator on text files", train.add_options, train.run),
    "plan": Command("show what some minutes of training would give", plan.add_options, plan.run),
    "generate": Command("write text with a trained model", generate.add_options, generate.run),
    "attention": Command(
        "draw what each attention head looks at in a text", attention.add_options, attention.run
    ),
    "evaluate": Command(
        "measure how well a model predicts a text", evaluate.add_options, evaluate.run
    ),
    "export": Command(
        "write a model as a folder for other programs", export.add_options, export.run
    ),
    "import": Command(
        "make a run of a model in the Hugging Face layout",
        export.add_import_options,
        export.run_import,
    ),
}


def main(arguments: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Run a command, such as ["train", "my.txt"]; returns the exit status.

    Args:
        arguments: what follows `minigpt`; those of this process by default.
        prog: the command's name in its help; by default "minigpt train" and so on.
    """
    try:
        command, given = parse(sys.argv[1:] if arguments is None else arguments, prog)
        keep_compiled_code()
        command.run(given)
    except UserError as error:
        return _failed(str(error))
    except BrokenPipeError:  # the reader of our output is gone, as in `... | head`
        _discard_output()
        return 141
    except OSError as error:  # the disk is full, or a folder may not be written to
        if error.filename is None:
            _discard_output()
        return _failed(f"{error.filename or 'writing'}: {error.strerror or error}")
    except Interrupted as interruption:
        return interruption.exit_status
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    return 0


def parse(arguments: Sequence[str], prog: str | None) -> tuple[Command, argparse.Namespace]:
    """The command that was typed, and its options.

    Raises:
        UserError: if there is no such command, or its options are wrong.
    """
    parser = Parser("minigpt", _overview(), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"minigpt {__version__}")
    parser.add_argument("name", metavar="COMMAND", choices=COMMANDS, help="one of these")
    parser.add_argument("rest", metavar="...", nargs=argparse.REMAINDER, help="its options")
    typed = parser.parse_args(arguments)
    command = COMMANDS[typed.name]
    parser = Parser(prog or f"minigpt {typed.name}", f"{command.purpose.capitalize()}.")
    command.add_options(parser)
    return command, parser.parse_args(typed.rest)


def _overview() -> str:
    lines = [f"  {name:<11}{command.purpose}" for name, command in COMMANDS.items()]
    return "\n".join(["Train a text generator on your own text, and use it.", "", *lines])


def _failed(message: str) -> int:
    """Print an error as one line, once: where torchrun has started several processes, by rank 0."""
    if os.environ.get("RANK", "0") == "0" or "LOCAL_RANK" not in os.environ:
        say(f"error: {message}")
    return 2


def _discard_output() -> None:
    """Discard what Python still has to write, so that its last attempt at exit does not fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def keep_compiled_code() -> None:
    """Have torch keep the code it compiles in the cache folder, not in a temporary one.

    This has to happen before torch is loaded. If $TORCHINDUCTOR_CACHE_DIR is set it is used; if the
    cache folder cannot be written to, torch chooses.
    """
    if os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        return
    folder = cache_folder() / "compiled"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
