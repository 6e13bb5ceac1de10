"""`minigpt train`, which is also train.py: hands what was typed to `training/run.py`."""

import argparse
import os
import time
from pathlib import Path

from .. import UserError, __version__
from ..config import GPTConfig, TextConfig, TrainConfig, check_fields
from .options import Parser
from .plan import add_training_options, print_plan, read_text, training_settings
from .terminal import say


def options(parser: Parser) -> None:
    add = parser.add_argument
    add("--plan", action="store_true", help="print what would be trained, and why, and stop")
    add("--out", metavar="FOLDER", help="the run's folder (default: runs/FILE)")
    add("--resume", action="store_true", help="continue the run --out, or else the newest one")
    add_training_options(parser)


def run(given: argparse.Namespace) -> int:
    """Train, resume a training, or print a plan; a signal's status if one ended it."""
    started = time.monotonic()
    text, model, training = training_settings(given)
    files, source = text.get("files", ()), None
    for config, fields in ((TextConfig, text), (GPTConfig, model), (TrainConfig, training)):
        check_fields(config, fields)  # refused before torch is loaded
    if given.resume:
        if (text.keys() | model.keys()) - {"files"}:
            raise UserError("--resume takes its text and model from the run; leave them out")
        say(f"minigpt {__version__}: loading torch, to continue a run")
        from ..runs import read_config

        if given.out:
            read_config(Path(given.out))
    elif "LOCAL_RANK" not in os.environ:  # several processes read the text together
        source = read_text(text, None if given.plan else Path(given.out or "runs/.any"))
    from ..training.interruption import Interrupted
    from ..training.plan import planned_run
    from ..training.run import resume_run, start_run

    try:
        if given.plan:
            print_plan(planned_run(source or read_text(text), text, model, training)[0])
        elif given.resume:
            resume_run(given.out, training, started, files)
        else:
            start_run(text, model, training, given.out, started, source)
    except Interrupted as interruption:
        return interruption.exit_status
    return 0
