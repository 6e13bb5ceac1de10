"""`minigpt train`, which is also train.py: hands what was typed to `recipe/run.py`."""

import argparse
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import UserError, __version__
from ..config import (
    FROM_NOTHING,
    PLANNED,
    SHAPE,
    GPTConfig,
    Settings,
    TextConfig,
    TrainConfig,
    fields_of,
)
from ..system.platforms import quote
from .options import Parser, add_fields, chosen_model, given_fields
from .terminal import print_message, write

if TYPE_CHECKING:
    from ..data.source import Source
    from ..recipe.plan import Planned
    from ..runs.journal import Journal

Fields = dict[str, Any]  # of a config, that were given


def options(parser: Parser) -> None:
    add = parser.add_argument
    add("--plan", action="store_true", help="print what would be trained and why, then stop")
    add("--out", metavar="FOLDER", help="the run's folder (default: runs/FILE, without the ending)")
    add("--resume", action="store_true", help="continue the run in --out, or that trained last")
    files = TextConfig.__dataclass_fields__["files"].metadata["help"]
    default = "plays that come with minigpt; with --lesson, fairy tales"
    parser.add_argument("files", nargs="*", help=f"{files} (default: {default})")
    add_fields(parser, TextConfig, "text", skip=("files",), planned=PLANNED)
    add_fields(parser, GPTConfig, "model", skip=("vocab_size",), planned=PLANNED)
    add_fields(parser, TrainConfig, "training", planned=PLANNED)


def run(given: argparse.Namespace) -> int:
    """Train, resume a training, or print a plan; a signal's status if one ended it."""
    from ..training.interruption import Interrupted, orderly_exit

    try:
        with orderly_exit():
            _run(given)
    except Interrupted as interruption:
        return interruption.exit_status
    return 0


def _run(given: argparse.Namespace) -> None:
    started = time.monotonic()
    fields = _given_settings(given)
    settings = Settings.given(fields)  # wrong ones are refused before torch is loaded

    if given.resume:
        _resume(given, fields, started=started)
    elif given.plan:
        _plan(settings)
    else:
        _start(given.out, settings, started=started)


def _resume(given: argparse.Namespace, fields: Fields, *, started: float) -> None:
    """Continue a run."""
    if given.plan:
        raise UserError("--plan is for a new run; leave out --resume")
    training = fields_of(TrainConfig, fields)
    if fields.keys() - training.keys() - {"files"}:
        raise UserError("--resume takes its text and model from the run; leave them out")

    from ..runs.base import BASE
    from ..runs.find import check_is_whole
    from ..runs.folder import read_config

    out = None
    if given.out is not None:
        chosen = chosen_model(given.out)
        if chosen == BASE:
            raise UserError("the base cannot be continued; --init base trains it on your text")
        check_is_whole(chosen)
        out = Path(chosen)
        read_config(out)
    with _early_journal(out) as journal:
        print_message(f"minigpt {__version__}: loading torch, to continue a run")
        from ..recipe.run import resume_run

        resume_run(out, training, started, fields.get("files", ()), journal)


def _plan(settings: Settings) -> None:
    """Print what would be trained, and why."""
    _say_reading(settings)
    source = _read_text(settings)
    from ..recipe.beginning import beginning_of, with_base
    from ..recipe.run import plan_run
    from ..recipe.texts import read_source

    beginning = beginning_of(settings)
    source = read_source(beginning, source)
    _print_plan(plan_run(source, with_base(beginning)))


def _start(out: str | None, settings: Settings, *, started: float) -> None:
    """Train a new run."""
    if "LOCAL_RANK" in os.environ:  # several processes read the text together
        from ..recipe.run import start_run

        start_run(settings, out=out, started=started)
        return

    from ..runs.begin import check_free

    place = Path(out or "runs/.any")  # without a name: whether runs/ can be written to
    check_free(place)
    with _early_journal(place) as journal:
        _say_reading(settings)
        source = _read_text(settings, is_for_run=True, journal=journal)
        from ..recipe.run import start_run

        start_run(settings, out=out, started=started, source=source, journal=journal)


@contextlib.contextmanager
def _early_journal(run: Path | None) -> Iterator["Journal | None"]:
    """The journal of a run, opened before the text is read, if its folder is there: another program
    has made it, or the run is continued. None otherwise, and where several processes train."""
    from ..runs.folder import JOURNAL
    from ..runs.journal import Journal

    if run is None or not (run / JOURNAL).is_dir() or "LOCAL_RANK" in os.environ:
        yield None
        return
    with Journal(run) as journal:
        journal.tell("reading")
        try:
            yield journal
        except SystemExit:  # by a signal; a `stop` in the journal acts as SIGTERM does
            if not journal.is_stop_asked:
                raise
            print_message("stopped before the training began")
            journal.end("interrupted")


def _say_reading(settings: Settings) -> None:
    """Print what is read: the first line of a training."""
    from ..data.readers.document import title

    names = ", ".join(map(title, settings["files"]))
    if settings.source("files") != "given":
        names += ", because no text was named"
    print_message(f"minigpt {__version__}: reading {names}")


def _read_text(
    settings: Settings, *, is_for_run: bool = False, journal: "Journal | None" = None
) -> "Source":
    """Read the text before torch is loaded, which takes seconds; the journal tells how much of it
    has been read."""
    from ..recipe.reading import read_text
    from ..tokenizer import tiktoken_tokenizer
    from ..training.messages import say_meanwhile

    tokenizer = settings.text.tokenizer
    if tokenizer not in ("bpe", "char"):  # it has to be there
        tiktoken_tokenizer(tokenizer)

    def tell_share(_: Path, share: float) -> None:
        if journal is not None:
            journal.tell("reading", share=round(share, 3))

    source = read_text(settings, is_for_run=is_for_run, tell_share=tell_share)
    say_meanwhile("loading torch ...")
    return source


def _given_settings(given: argparse.Namespace) -> Fields:
    """The settings that were given.

    If no text is named, it is one that comes with minigpt, and options that need a text of the
    user's are refused.
    """
    fields: Fields = {}
    for config in (GPTConfig, TextConfig, TrainConfig):
        fields |= given_fields(given, config)

    if not given.files:
        del fields["files"]
        for name in ("validation", "init"):
            if name in fields and not given.resume and not _is_for_any_text(fields[name]):
                raise UserError(f"--{name} needs a text to train on: name it too, such as my.txt")
    return fields


def _is_for_any_text(value: Any) -> bool:
    """Whether an option with this value makes sense for a text of ours, too."""
    from ..runs.base import BASE

    return value in (FROM_NOTHING, BASE)


def _print_plan(planned: "Planned") -> None:
    """What `train --plan` prints: the reasons, and the settings as options."""
    from ..recipe.told_at_start import reasons

    settings = planned.settings
    is_lesson = settings["lesson"]
    options = [f"--init {quote(planned.init or FROM_NOTHING)}"]
    if is_lesson:
        options.append("--lesson")

    for name in PLANNED:
        option = name.replace("_", "-")
        value = settings[name]
        if name == "vocab_size" and settings["tokenizer"] != "bpe":
            continue
        if name == "max_epochs" and planned.asked["steps"] is not None:
            continue
        if name == "num_workers" and is_lesson:
            continue
        if name in SHAPE and planned.init is not None:  # comes with the model
            continue
        if isinstance(value, bool):
            options.append(f"--{option}" if value else f"--no-{option}")
        elif isinstance(value, str):
            options.append(f"--{option} {value}")
        else:
            options.append(f"--{option} {value:g}")
    write("\n".join([*reasons(planned), " ".join(options)]))
