"""A training from its text to its end: `train`, and what `train.py` and `train.py --resume` call.

Read the text, plan, make the tokens and the model, train in a folder, report. Of several processes
rank 0 reads and plans while the others wait; all of them train.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from ..config import SampleConfig, Settings, TrainConfig
from ..data.batches import Dataset
from ..data.source import Source
from ..devices.memory import enough_memory
from ..measure.copied import reserved_seconds, say_copied
from ..measure.yardstick import Counting
from ..model import GPT
from ..runs.begin import check_free
from ..runs.folder import EXPECTED, GENERATION, PLAN, read_usual
from ..runs.journal import Journal
from ..runs.listing import Run, why_not_continued
from ..tokenizer import Tokenizer, as_tokenizer
from ..training import distributed
from ..training.checkpoint import read_state
from ..training.distributed import on_all, on_main
from ..training.folder import RunFolder
from ..training.interruption import Interrupted, orderly_exit
from ..training.messages import say
from ..training.setup import same_random_numbers, threads_of
from ..training.trainer import Trainer
from . import told_at_end, told_at_start
from .beginning import Beginning, begin, beginning_of, chosen_of, with_base
from .choose_plan import choose_plan, measure
from .plan import Planned
from .resume import (
    check_has_more,
    continued_config,
    expected_of_run,
    run_to_resume,
    text_of_run,
    tokens_of_run,
)
from .sampling import usual_of
from .texts import Text, most_to_copy, named_texts, new_place, read_source, tokens_of
from .texts_while_learning import Samples, check_sample_prompt

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
        texts: the text to learn from; if none is given, the plays that come with minigpt, or with
            ``lesson=True`` the tales.
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

    most = most_to_copy(settings)
    texts_aside = ("files", "validation")  # which get their names below
    Settings.given({name: settings[name] for name in settings if name not in texts_aside})

    with contextlib.ExitStack() as stack:
        stack.enter_context(orderly_exit())
        stack.enter_context(same_random_numbers())
        named = stack.enter_context(named_texts(texts, settings, most))
        return start_run(
            Settings.given(named),
            out=out,
            started=started,
            network=model,
            tokenizer=own_tokenizer,
        )


def start_run(
    settings: Settings,
    *,
    started: float,
    out: str | Path | None = None,
    source: Source | None = None,
    network: nn.Module | None = None,
    tokenizer: Tokenizer | None = None,
    journal: Journal | None = None,
) -> Run:
    """Train a new run with the settings that were given.

    `started` is when the command began, in time.monotonic's seconds. `source` is the text, if it
    has been read already: the command reads it while torch is not loaded yet. `journal` is that of
    the run, if it is open.
    """
    with distributed.process_group(), enough_memory(_SMALLER):
        folder = RunFolder(out, journal)
        if folder.path is not None:
            on_main(check_free, folder.path, is_locked=journal is not None)

        # Read
        beginning = on_all(beginning_of, settings, network=network, tokenizer=tokenizer)
        source = on_main(read_source, beginning, source)

        # Measure and choose; nothing is planned for a network of somebody's own
        folder.tell("planning")
        planned = None
        if network is None:
            beginnings = on_all(with_base, beginning)
            planned = on_main(plan_run, source, beginnings)
            beginning = on_all(chosen_of, beginnings, planned.init)
            del beginnings  # else the base would be kept beside what was chosen
            settings = planned.settings

        # Encode, and fit the plan to the tokens
        folder.tell("tokens", fingerprint=source.fingerprint)

        def tell_share(share: float) -> None:
            folder.tell("tokens", share=round(share, 3))

        dataset = on_all(tokens_of, source, settings.text, beginning.tokenizer, tell_share)
        usual = on_main(usual_of, dataset)
        files = {GENERATION: usual.to_json()}
        if planned is not None:
            planned = planned.with_tokens(dataset)
            settings = planned.settings
            files[PLAN] = planned.to_json(told_at_start.reasons(planned))

        # Begin
        training = settings.training
        with threads_of(training):
            network = begin(beginning, settings, dataset)
        del beginning  # the network has a copy of the weights

        # Train in a folder, and report
        with new_place(settings.text, source, out) as place:
            folder.path = place
            trainer = make_trainer(
                network,
                dataset,
                training,
                folder=folder,
                usual=usual.settings,
                files=files,
                started=started,
            )
            trainer.figures[EXPECTED] = None if planned is None else planned.bits_per_byte
            told_at_start.say_run(trainer, started, planned)
            return train_and_report(trainer, place, usual.settings, trainer.train)


def plan_run(source: Source, beginnings: tuple[Beginning, ...]) -> Planned:
    """Measure the text and the machine, and choose the best plan for them."""
    planned = choose_plan(measure(source, beginnings))
    if planned.why_device:
        say(planned.why_device)
    return planned


def resume_run(
    out: str | Path | None,
    training: Mapping[str, Any],
    started: float,
    files: tuple[str, ...] = (),
    journal: Journal | None = None,
) -> Run:
    """Continue a run from its checkpoint, with the given fields of TrainConfig changed.

    The run is the one in the folder `out`, or else the one that was trained last, on these files if
    some are named. `journal` is that of the run, if it is open. Nothing else on disk changes before
    the run, its text and the fields are accepted.
    """
    with distributed.process_group(), enough_memory(_SMALLER):
        run = on_main(run_to_resume, out, files)
        state = on_main(read_state, run)
        config = on_main(continued_config, run, state, training)
        usual = on_main(read_usual, run)
        source = on_main(text_of_run, run, config)
        dataset = on_all(tokens_of_run, run, config, source)
        on_main(check_has_more, run, state, config, dataset)

        folder = RunFolder(run, journal)
        trainer = make_trainer(
            GPT(config.gpt),
            dataset,
            config.training,
            folder=folder,
            usual=usual,
            started=started,
        )
        trainer.figures[EXPECTED] = on_main(expected_of_run, run, state, config)
        told_at_start.say_run(trainer, started - state.seconds)
        return train_and_report(trainer, run, usual, trainer.resume)


# Of a new run and of one that is continued


def make_trainer(
    network: nn.Module,
    dataset: Dataset,
    training: TrainConfig,
    *,
    folder: RunFolder,
    usual: SampleConfig,
    started: float,
    files: Mapping[str, str] | None = None,
) -> Trainer:
    """A trainer that shows samples and what counting gives, and leaves time to tell how much of
    what the model writes is copied."""
    callbacks: list[object] = [Samples(usual)]
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


def train_and_report(
    trainer: Trainer, folder: Path, usual: SampleConfig, train: Callable[[], object]
) -> Run:
    """Train a new or an earlier run to its end, and tell what has become of it."""
    try:
        with enough_memory(_smaller(trainer), lambda: why_not_continued(folder) is None):
            train()
    except Interrupted as interruption:
        told_at_end.say_interrupted(folder, interruption.saved)
        raise

    told_at_end.say_result(trainer, usual)
    on_main(say_copied, trainer, usual)
    return Run(folder)


def _smaller(trainer: Trainer) -> str:
    """What of a training can be made smaller if memory runs out."""
    config = trainer.config
    rows = config.batch_size // distributed.world_size()
    at_once = min(config.micro_batch_size or rows, rows)
    model = "a shorter --context-length, or a smaller model"
    return model if at_once == 1 else f"--micro-batch-size {at_once // 2}, {model}"
