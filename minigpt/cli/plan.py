"""`minigpt plan`, and the options that it shares with `train`: what is trained, and how."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import UserError, __version__
from ..config import PLANNED, GPTConfig, TextConfig, TrainConfig, count_parameters
from .options import Parser, add_fields, given_fields
from .terminal import say, write

if TYPE_CHECKING:
    from ..data.corpus import Source
    from ..training.plan import PlannedRun

MINUTES = (1.0, 10.0, 60.0)


def options(parser: Parser) -> None:
    add_training_options(parser, skip=("minutes", "steps"))
    minutes = "a row for these minutes; may be given again (default: 1, 10 and 60)"
    parser.add_argument("--minutes", type=float, action="append", metavar="X", help=minutes)


def run(given: argparse.Namespace) -> None:
    """Print what each of these minutes would give."""
    text, model, training = training_settings(given)
    rows = training.pop("minutes") or MINUTES
    for minutes in rows:
        TrainConfig(minutes=minutes)  # refused before torch is loaded
    source = read_text(text)
    from ..training.plan import planned_run

    print_table(*planned_run(source, text, model, training | {"minutes": max(rows)}), rows)


def read_text(text: dict[str, Any], out: Path | None = None) -> "Source":
    """Check that a run can be written to `out` and read the text, before torch is loaded, which
    takes seconds; what is done is said."""
    config = TextConfig(**text)
    from ..data.readers import title

    say(f"minigpt {__version__}: reading {', '.join(map(title, config.files))}")
    from ..data.corpus import find_source
    from ..runs import check_free
    from ..tokenizer import tiktoken_tokenizer
    from ..training import report

    if out is not None:
        check_free(out)
    if config.tokenizer not in ("bpe", "char"):  # it has to be there
        tiktoken_tokenizer(config.tokenizer)
    source = find_source(config, say)
    report.say_text(source)
    say("loading torch ...")
    return source


def add_training_options(parser: Parser, skip: tuple[str, ...] = ()) -> None:
    """The text and all settings of a training."""
    files = TextConfig.__dataclass_fields__["files"].metadata["help"]
    parser.add_argument("files", nargs="*", help=f"{files} (default: the tales)")
    add_fields(parser, TextConfig, "text", skip=("files",), planned=PLANNED)
    add_fields(parser, GPTConfig, "model", skip=("vocab_size",), planned=PLANNED)
    add_fields(parser, TrainConfig, "training", skip=skip, planned=PLANNED)


def training_settings(
    given: argparse.Namespace,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The fields of TextConfig, GPTConfig and TrainConfig that were given.

    An option that needs a text is refused if none is named; otherwise it is the tales.
    """
    text, model = given_fields(given, TextConfig), given_fields(given, GPTConfig)
    model.pop("vocab_size", None)  # a setting of the text
    if not given.files:
        del text["files"]
        for name in ("validation", "init"):
            if name in text and not vars(given).get("resume"):
                raise UserError(f"--{name} needs a text to train on: name it too, such as my.txt")
    return text, model, given_fields(given, TrainConfig)


def print_plan(planned: "PlannedRun") -> None:
    """What `train --plan` prints: the reasons, and the settings as options."""
    plan = planned.plan
    chosen = {n: getattr(plan if hasattr(plan, n) else plan.model, n) for n in PLANNED}
    if planned.text.tokenizer != "bpe":
        del chosen["vocab_size"]
    options = (f"--{name.replace('_', '-')} {value:g}" for name, value in chosen.items())
    write("\n".join([*planned.reasons(), " ".join(options)]))


def print_table(planned: "PlannedRun", given: Mapping[str, Any], minutes: Sequence[float]) -> None:
    """A row for each of the minutes, planned for the same text and machine."""
    from ..training.plan import make_plan

    write(
        f"{'minutes':>8}{'parameters':>12}{'layers x width':>16}{'vocabulary':>12}{'steps':>9}"
        f"{'epochs':>8}{'dropout':>9}{'bits/byte':>11}"
    )
    for count in minutes:
        plan = make_plan(planned.text, planned.speed, {**given, "minutes": count})
        model = plan.model
        shape = f"{model.num_layers} x {model.emb_dim}"
        write(
            f"{count:>8g}{count_parameters(model) / 1e6:>10.2f} M{shape:>16}{model.vocab_size:>12,}"
            f"{plan.steps:>9,}{plan.epochs:>8,.1f}{model.dropout:>9g}{plan.bits_per_byte:>11.2f}"
        )
