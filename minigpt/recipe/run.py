"""A training from its text to its end: `train`, and what `train.py` and `train.py --resume` call.

Read the text, plan, make the tokens and the model, train in a folder, report. Of several processes
rank 0 reads and plans while the others wait; all of them train.
"""

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from .. import UserError
from ..config import GPTConfig, TextConfig, TrainConfig
from ..data.batches import Dataset
from ..data.source import Source
from ..devices.memory import enough_memory
from ..measure.copied import reserved_seconds, say_copied
from ..measure.yardstick import Counting
from ..model import GPT
from ..runs.folder import EXPECTED, PLAN, has_checkpoint
from ..runs.journal import Journal
from ..runs.listing import Run
from ..runs.making import check_free
from ..tokenizer import Tokenizer, as_tokenizer
from ..training import distributed
from ..training.distributed import on_all, on_main
from ..training.folder import RunFolder
from ..training.interruption import Interrupted, orderly_exit
from ..training.setup import same_random_numbers, threads_of
from ..training.trainer import Trainer
from . import report, result
from .first_model import first_model
from .planner import fitted_to_tokens, plan_run
from .request import Fields, make_request
from .resume import (
    check_has_more,
    continued_config,
    expected_of_run,
    run_to_resume,
    text_of_run,
    tokens_of_run,
)
from .samples import Samples, check_sample_prompt
from .texts import Text, most_to_copy, named_texts, new_place, read_source, tokens_of

_SMALLER = "a smaller --micro-batch-size or --context-length, or a smaller model"  # in memory


def train(
    *texts: Text,
    out: str | Path | None = None,
    model: nn.Module | None = None,
    tokenizer: str | Any = None,
    **settings: Any,
) -> Run:
    """Train on text; the same as the command. The caller's random numbers stay as they were.

    A str or a Path in `texts` is the name of a text file, a folder or a pattern. Anything else that
    can be iterated over holds documents: a list of texts, a dataset of Hugging Face's `datasets`,
    a generator of rows that hold a text each. Paths that are iterated over are names of files, as
    those of ``Path("texts").glob("*.md")``. `validation` is one of these too. Documents are copied
    to a temporary file. A stream of them may have no end if `steps` or `max_characters` is given:
    no more is read than these can use.

    Args:
        texts: the text to learn from; the bundled tales if none is given.
        out: the run's folder; unset: one in `runs/`, named after the text.
        model: a network of your own, from ids ``(b, T)`` to logits ``(b, T, vocab_size)``, which
            takes the place of a `GPT` that is planned for the text; see :class:`minigpt.Trainer`.
        tokenizer: a name, see :class:`minigpt.TextConfig`, or an object with ``encode(text)``,
            ``decode(ids)``, ``vocab_size`` and ``token_bytes(id)``.
        settings: fields of :class:`minigpt.TextConfig`, :class:`minigpt.GPTConfig` and
            :class:`minigpt.TrainConfig`, such as ``minutes=2``.

    Returns:
        The run: the path of its folder, for :func:`minigpt.load`.

    Raises:
        UserError: if a text cannot be read or is too short, or a setting is wrong or would do
            nothing beside the others.
    """
    started = time.monotonic()
    own_tokenizer = None
    if isinstance(tokenizer, str):
        settings["tokenizer"] = tokenizer
    elif tokenizer is not None:
        own_tokenizer = as_tokenizer(tokenizer)
    if isinstance(settings.get("init"), Path):
        settings["init"] = str(settings["init"])

    given_text, given_model, given_training = _split_settings(settings)
    most = most_to_copy(settings)

    with contextlib.ExitStack() as stack:
        stack.enter_context(orderly_exit())
        stack.enter_context(same_random_numbers())
        return start_run(
            stack.enter_context(named_texts(texts, given_text, most)),
            given_model,
            given_training,
            out=out,
            started=started,
            network=model,
            tokenizer=own_tokenizer,
        )


def _split_settings(settings: Fields) -> list[Fields]:
    """The fields of TextConfig, of GPTConfig and of TrainConfig among the settings. The size of the
    vocabulary, which two of them have, is the text's."""
    left = dict(settings)
    split: list[Fields] = []
    for config in (TextConfig, GPTConfig, TrainConfig):
        names = [field.name for field in fields(config) if field.name in left]
        split.append({name: left.pop(name) for name in names})

    if left:
        raise UserError(f"there is no setting {', '.join(left)}")
    return split


def start_run(
    given_text: Fields,
    given_model: Fields,
    given_training: Fields,
    *,
    started: float,
    out: str | Path | None = None,
    source: Source | None = None,
    network: nn.Module | None = None,
    tokenizer: Tokenizer | None = None,
    journal: Journal | None = None,
) -> Run:
    """Train a new run, with what is given of the fields of TextConfig, GPTConfig and TrainConfig.

    `started` is when the command began, in time.monotonic's seconds; `source` is the text, if it
    has been read already, and `journal` that of the run, if it is open.
    """
    with distributed.process_group(), enough_memory(_SMALLER):
        folder = RunFolder(out, journal)
        if folder.path is not None:
            on_main(check_free, folder.path)

        request = on_all(
            make_request,
            given_text,
            given_model,
            given_training,
            network=network,
            tokenizer=tokenizer,
        )
        source = on_main(read_source, request, source)

        folder.tell("planning")
        plan = None if request.network is not None else on_main(plan_run, source, request)
        request = on_all(request.with_plan, plan)

        folder.tell("tokens")
        dataset = on_all(tokens_of, source, request, partial(folder.tell_share, "tokens"))
        if plan is not None:
            plan = fitted_to_tokens(plan, dataset, request.given)
            request = request.with_plan(plan)

        with threads_of(request.training):
            network = first_model(request, plan, dataset)
        request = replace(request, start=None)  # the network has a copy of its weights

        files = {}
        expected = None
        if plan is not None:
            reasons = report.say_plan(plan)
            files[PLAN] = json.dumps(asdict(plan) | {"reasons": reasons}, indent=2) + "\n"
            expected = plan.bits_per_byte

        with new_place(request.text, source, out) as place:
            folder.path = place
            trainer = make_trainer(
                network,
                dataset,
                request.training,
                folder=folder,
                files=files,
                started=started,
            )
            trainer.figures[EXPECTED] = expected
            return train_and_report(trainer, place, trainer.train)


def resume_run(
    out: str | Path | None, training: Fields, started: float, files: tuple[str, ...] = ()
) -> Run:
    """Continue a run from its checkpoint, with the given fields of TrainConfig changed.

    The run is the one in the folder `out`, or else the one that was trained last, on these files if
    some are named. Nothing on disk changes before the run, its text and the fields are accepted.
    """
    with distributed.process_group(), enough_memory(_SMALLER):
        run = on_main(run_to_resume, out, files)
        config = on_main(continued_config, run, training)
        source = on_main(text_of_run, run, config)
        dataset = on_all(tokens_of_run, run, config, source)
        on_main(check_has_more, run, config, dataset)

        folder = RunFolder(run)
        trainer = make_trainer(
            GPT(config.gpt), dataset, config.training, folder=folder, started=started
        )
        trainer.figures[EXPECTED] = on_main(expected_of_run, run, config)
        return train_and_report(trainer, run, trainer.resume)


# Of a new run and of one that is continued


def make_trainer(
    network: nn.Module,
    dataset: Dataset,
    training: TrainConfig,
    *,
    folder: RunFolder,
    started: float,
    files: Mapping[str, str] | None = None,
) -> Trainer:
    """A trainer that shows samples and what counting gives, and leaves time to tell how much of
    what the model writes is copied."""
    callbacks: list[object] = [Samples()]
    # What counting gives is of all tokens, and not to be compared with the loss of some.
    if dataset.counted_train is None:
        callbacks.insert(0, Counting())

    trainer = Trainer(
        network,
        dataset,
        training,
        out=folder,
        callbacks=callbacks,
        files=files,
        started=started,
        reserve=reserved_seconds(network, dataset, training.minutes),
    )
    on_all(check_sample_prompt, trainer)
    return trainer


def train_and_report(trainer: Trainer, folder: Path, train: Callable[[], object]) -> Run:
    """Train a new or an earlier run to its end, and tell what has become of it."""
    report.say_run(trainer)
    try:
        with enough_memory(_smaller(trainer), lambda: has_checkpoint(folder)):
            train()
    except Interrupted as interruption:
        result.say_interrupted(folder, interruption.saved)
        raise

    result.say_result(trainer)
    on_main(say_copied, trainer)
    return Run(folder)


def _smaller(trainer: Trainer) -> str:
    """What of a training can be made smaller if memory runs out."""
    config = trainer.config
    rows = config.batch_size // distributed.world_size()
    at_once = min(config.micro_batch_size or rows, rows)
    model = "a shorter --context-length, or a smaller model"
    return model if at_once == 1 else f"--micro-batch-size {at_once // 2}, {model}"
