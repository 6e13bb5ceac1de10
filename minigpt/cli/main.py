"""The commands: `minigpt train`, `generate`, ...; train.py and generate.py are the first two.

Errors are raised where they are understood and printed here, once, as one line.
"""

import argparse
import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from .. import UserError
from ..config import (
    PLANNED,
    AttentionConfig,
    EvaluationConfig,
    ExportConfig,
    GPTConfig,
    InferenceConfig,
    OutputConfig,
    SampleConfig,
    TextConfig,
    TrainConfig,
    cache_folder,
)
from ..training.interruption import Interrupted
from ..training.processes import only_the_first_speaks
from .options import Parser, add_options, chosen
from .prompts import read_prompt


def main(arguments: Sequence[str] | None = None) -> int:
    """`minigpt COMMAND ...`; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    commands = {
        "train": (train_main, "train a text generator on text files"),
        "plan": (plan_main, "tell what so many minutes of training would give"),
        "generate": (generate_main, "write with it"),
        "attention": (attention_main, "draw what each attention head looks at in a text"),
        "evaluate": (evaluate_main, "measure how well it predicts a text"),
        "export": (export_main, "write a model as a folder for other programs"),
        "import": (import_main, "make a run of a model in the Hugging Face layout"),
    }
    if arguments and arguments[0] in commands:
        command, _ = commands[arguments[0]]
        return command(arguments[1:], prog=f"minigpt {arguments[0]}")
    parser = Parser("minigpt", description="Train a text generator on your own text, and use it.")
    parser.add_argument("--version", action="version", version=_version())
    listed = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (_, help_) in commands.items():
        listed.add_parser(name, help=help_)
    parser.parse_args(arguments)
    return 2


def train_main(arguments: Sequence[str] | None = None, prog: str = "train.py") -> int:
    """`train.py [FILE ...]`; returns the exit status."""
    with only_the_first_speaks():  # of several processes, where torchrun has started them
        return _train(arguments, prog)


def _train(arguments: Sequence[str] | None, prog: str) -> int:
    started = time.monotonic()
    parser = Parser(prog, description="Train a text generator on text files.")
    _add_files(parser)
    parser.add_argument(
        "--plan", action="store_true", help="print what would be trained, and why, and stop"
    )
    parser.add_argument("--out", metavar="FOLDER", help="the run's folder (default: runs/FILE)")
    parser.add_argument(
        "--resume", action="store_true", help="continue the run --out, or else the newest one"
    )
    add_options(parser, TextConfig, "text", skip=("files",), planned=PLANNED)
    add_options(parser, GPTConfig, "model", skip=("vocab_size",), planned=PLANNED)
    add_options(parser, TrainConfig, "training", planned=PLANNED)
    given = parser.parse_args(arguments)

    def run() -> int:
        text, model, training = _chosen_for_training(given)
        if given.plan:
            from ..training.planning import planned_run, print_plan

            print_plan(planned_run(text, model, training)[0])
            return 0
        from ..training.resume import resume_run
        from ..training.run import start_run

        if given.resume:
            files = text.pop("files", ())
            if text or model:
                raise UserError("--resume takes its text and model from the run; leave them out")
            resume_run(given.out, training, started, files)
        else:
            start_run(text, model, training, given.out, started)
        return 0

    return _guarded(run)


def plan_main(arguments: Sequence[str] | None = None, prog: str = "minigpt plan") -> int:
    """`minigpt plan [FILE ...]`; returns the exit status."""
    parser = Parser(prog, description="Tell what so many minutes of training would give.")
    _add_files(parser)
    parser.add_argument(
        "--minutes", type=float, nargs="+", default=[1.0, 10.0, 60.0], metavar="X",
        help="a row for each (default: 1 10 60)",
    )  # fmt: skip
    add_options(parser, TextConfig, "text", skip=("files",), planned=PLANNED)
    add_options(parser, GPTConfig, "model", skip=("vocab_size",), planned=PLANNED)
    add_options(parser, TrainConfig, "training", skip=("minutes", "steps"), planned=PLANNED)
    given = parser.parse_args(arguments)

    def run() -> int:
        text, model, training = _chosen_for_training(given)
        training.pop("minutes")
        for minutes in given.minutes:
            TrainConfig(minutes=minutes)  # refused before torch is loaded
        from ..training.planning import planned_run, print_table

        print_table(*planned_run(text, model, training), given.minutes)
        return 0

    return _guarded(run)


def _add_files(parser: Parser) -> None:
    files = next(iter(TextConfig.__dataclass_fields__.values()))
    parser.add_argument("files", nargs="*", help=f"{files.metadata['help']} (default: the fables)")


def _chosen_for_training(
    given: argparse.Namespace,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The fields of TextConfig, GPTConfig and TrainConfig that were given."""
    text, model = chosen(given, TextConfig), chosen(given, GPTConfig)
    if not given.files:
        text.pop("files")  # which leaves the default, the fables
    model.pop("vocab_size", None)
    return text, model, chosen(given, TrainConfig)


def generate_main(arguments: Sequence[str] | None = None, prog: str = "generate.py") -> int:
    """`generate.py [PROMPT]`; returns the exit status."""
    parser = Parser(prog, description="Generate text with a trained model.")
    parser.add_argument(
        "prompt",
        nargs="*",
        help="how the text begins; - for standard input, as if left out where something is piped in"
        " (a line end at its end is dropped)",
    )
    parser.add_argument("--prompt-file", metavar="FILE", help="the file that holds the prompt")
    parser.add_argument(
        "--run",
        metavar="FOLDER",
        help="a run, or a model such as hf:gpt2 (default: the newest run)",
    )
    add_options(parser, OutputConfig, "output")
    add_options(parser, SampleConfig, "sampling")
    add_options(parser, InferenceConfig, "machine")
    given = parser.parse_args(arguments)

    def run() -> int:
        config = SampleConfig(**chosen(given, SampleConfig))
        output = OutputConfig(**chosen(given, OutputConfig))
        machine = InferenceConfig(**chosen(given, InferenceConfig))
        if len(given.prompt) > 1:
            raise UserError(f"put quotes around the prompt: {shlex.quote(' '.join(given.prompt))}")
        prompt = read_prompt(
            next(iter(given.prompt), None), given.prompt_file, stdin=not output.interactive
        )
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
        if output.interactive:
            from .interactive import interact

            interact(prompt, given.run, machine, config, show=output.show)
        else:
            from .generate import generate

            generate(prompt, given.run, machine, config, output)
        return 0

    return _guarded(run)


def attention_main(arguments: Sequence[str] | None = None, prog: str = "minigpt attention") -> int:
    """`minigpt attention RUN TEXT`; returns the exit status."""
    parser = Parser(prog, description="Draw what each attention head looks at in a text.")
    parser.add_argument("run", help="a run, or a model such as hf:gpt2")
    parser.add_argument("text", help="a text of some 5 to 40 tokens")
    add_options(parser, AttentionConfig, "picture")
    given = parser.parse_args(arguments)

    def run() -> int:
        config = AttentionConfig(**chosen(given, AttentionConfig))
        from .attention import draw_attention

        print(draw_attention(given.run, given.text, config), flush=True)
        return 0

    return _guarded(run)


def evaluate_main(arguments: Sequence[str] | None = None, prog: str = "minigpt evaluate") -> int:
    """`minigpt evaluate RUN FILE ...`; returns the exit status."""
    parser = Parser(prog, description="Measure how well a model predicts a text of any size.")
    parser.add_argument("run", help="a run, or a model such as hf:gpt2")
    parser.add_argument("files", nargs="+", help="text files, folders, patterns, or - for stdin")
    parser.add_argument("--json", action="store_true", help="print one JSON record")
    add_options(parser, EvaluationConfig, "evaluation")
    given = parser.parse_args(arguments)

    def run() -> int:
        settings = chosen(given, EvaluationConfig)
        EvaluationConfig(**settings)  # refused before torch is loaded
        from ..training.measurement import print_evaluation

        print_evaluation(given.run, tuple(given.files), settings, given.json)
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
        from .export import export_model, say_exported

        say_exported(export_model(given.run, config), config)
        return 0

    return _guarded(run)


def import_main(arguments: Sequence[str] | None = None, prog: str = "minigpt import") -> int:
    """`minigpt import MODEL`; returns the exit status."""
    parser = Parser(prog, description="Make a run of a model in the Hugging Face layout.")
    parser.add_argument("model", help="a folder with config.json and safetensors, or hf:NAME")
    parser.add_argument("--out", metavar="FOLDER", help="the run's folder (default: runs/MODEL)")
    given = parser.parse_args(arguments)

    def run() -> int:
        from .export import import_model

        print(import_model(given.model, given.out), flush=True)
        return 0

    return _guarded(run)


def _guarded(run: Callable[[], int]) -> int:
    """Run a command; what goes wrong becomes one line and an exit status."""
    keep_compiled_code()
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
    from .. import __version__

    return f"minigpt {__version__}"


def keep_compiled_code() -> None:
    """Have torch keep the code it compiles in the cache folder, unless $TORCHINDUCTOR_CACHE_DIR
    says where.

    Torch itself would choose a temporary folder, which is often emptied when the machine starts,
    and does so as soon as it is loaded; so this comes before. Where the cache folder cannot be
    written to, torch chooses.
    """
    if os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        return
    folder = cache_folder() / "compiled"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
