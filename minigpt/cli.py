"""The commands: `minigpt train`, `generate`, `export`, `import`; train.py and generate.py for two.

Errors are raised where they are understood and printed here, once, as one line.
"""

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from .config import ExportConfig, GPTConfig, SampleConfig, TextConfig, TrainConfig, UserError
from .options import Parser, add_options, chosen
from .training.interruption import Interrupted
from .training.processes import only_the_first_speaks

PLANNED = ("vocab_size", "context_length", "num_heads", "dropout")


def main(arguments: Sequence[str] | None = None) -> int:
    """`minigpt train|generate|export|import ...`; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    commands = {
        "train": train_main,
        "generate": generate_main,
        "export": export_main,
        "import": import_main,
    }
    if arguments and arguments[0] in commands:
        return commands[arguments[0]](arguments[1:], prog=f"minigpt {arguments[0]}")
    parser = Parser("minigpt", description="Train a text generator on your own text, and use it.")
    parser.add_argument("command", choices=commands, help="minigpt COMMAND --help says more")
    parser.add_argument("--version", action="version", version=_version())
    parser.parse_args(arguments)
    return 2


def train_main(arguments: Sequence[str] | None = None, prog: str = "train.py") -> int:
    """`train.py [FILE ...]`; returns the exit status."""
    with only_the_first_speaks():  # of several processes, where torchrun has started them
        return _train(arguments, prog)


def _train(arguments: Sequence[str] | None, prog: str) -> int:
    started = time.monotonic()
    parser = Parser(prog, description="Train a text generator on text files.")
    files = next(iter(TextConfig.__dataclass_fields__.values()))
    parser.add_argument("files", nargs="*", help=f"{files.metadata['help']} (default: the fables)")
    parser.add_argument("--out", metavar="FOLDER", help="the run's folder (default: runs/FILE)")
    parser.add_argument(
        "--resume", action="store_true", help="continue the run --out, or else the newest one"
    )
    add_options(parser, TextConfig, "text", skip=("files",), planned=PLANNED)
    add_options(parser, GPTConfig, "model", skip=("vocab_size",), planned=PLANNED)
    add_options(parser, TrainConfig, "training", planned=PLANNED)
    given = parser.parse_args(arguments)

    def run() -> int:
        text = chosen(given, TextConfig)
        if not given.files:
            text.pop("files")  # which leaves the default, the fables
        from .commands import resume_run, start_run

        model, training = chosen(given, GPTConfig), chosen(given, TrainConfig)
        model.pop("vocab_size", None)
        if given.resume:
            files = text.pop("files", ())
            if text or model:
                raise UserError("--resume takes its text and model from the run; leave them out")
            resume_run(given.out, training, started, files)
        else:
            start_run(text, model, training, given.out, started)
        return 0

    return _guarded(run)


def generate_main(arguments: Sequence[str] | None = None, prog: str = "generate.py") -> int:
    """`generate.py [PROMPT]`; returns the exit status."""
    parser = Parser(prog, description="Generate text with a trained model.")
    parser.add_argument("prompt", nargs="?", default="", help="how the text begins")
    parser.add_argument(
        "--run", metavar="FOLDER", help="a run, or a model such as gpt2 (default: the newest run)"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")
    add_options(parser, SampleConfig, "sampling")
    given = parser.parse_args(arguments)

    def run() -> int:
        config = SampleConfig(**chosen(given, SampleConfig))
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
        seed = random.randrange(2**31) if config.seed is None else config.seed
        from .commands import generate_text

        generate_text(given.prompt, given.run, given.device, replace(config, seed=seed))
        return 0

    return _guarded(run)


def export_main(arguments: Sequence[str] | None = None, prog: str = "minigpt export") -> int:
    """`minigpt export [RUN]`; returns the exit status."""
    parser = Parser(prog, description="Write a model as a folder for other programs.")
    parser.add_argument("run", nargs="?", help="the run to export (default: the newest)")
    add_options(parser, ExportConfig, "export")
    given = parser.parse_args(arguments)

    def run() -> int:
        config = ExportConfig(**chosen(given, ExportConfig))
        from .exchange import export_model, say_exported

        say_exported(export_model(given.run, config), config)
        return 0

    return _guarded(run)


def import_main(arguments: Sequence[str] | None = None, prog: str = "minigpt import") -> int:
    """`minigpt import MODEL`; returns the exit status."""
    parser = Parser(prog, description="Make a run of a model in the Hugging Face layout.")
    parser.add_argument("model", help="a folder with config.json and safetensors, or a hub name")
    parser.add_argument("--out", metavar="FOLDER", help="the run's folder (default: runs/MODEL)")
    given = parser.parse_args(arguments)

    def run() -> int:
        from .exchange import import_model

        print(import_model(given.model, given.out), flush=True)
        return 0

    return _guarded(run)


def _guarded(run: Callable[[], int]) -> int:
    """Run a command; what goes wrong becomes one line and an exit status."""
    try:
        return run()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output has gone, as in `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # a disk that is full, a folder that is closed to us
        print(f"error: {error.filename or 'writing'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except Interrupted as interruption:
        return interruption.exit_status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _version() -> str:
    from . import __version__

    return f"minigpt {__version__}"
