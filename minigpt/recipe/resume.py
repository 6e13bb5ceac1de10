"""What a run that is continued begins with: its folder, its settings from now on, its tokens."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .. import UserError, __version__
from ..config import KEPT_ON_RESUMING, TrainConfig, check_given, check_interpolation
from ..data.batches import Dataset
from ..data.readers.document import title
from ..data.source import Source, find_again
from ..data.token_cache import prepare_tokens
from ..runs.folder import TOKENIZER, RunConfig, check_is_gpt, read_config, read_plan
from ..runs.listing import Run, full_names, runs_by_training
from ..system.platforms import quote_path
from ..system.shown import plural
from ..tokenizer import load_tokenizer
from ..training import distributed
from ..training.checkpoint import TrainingState
from ..training.messages import clock, progress_bar, say
from ..training.setup import check_batch, resolved
from . import rules
from .forecast import expected_after_tokens, is_like_those_tried
from .machine import count_workers
from .size_and_batch import training_seconds
from .text_stats import Predictability, TextStats


def run_to_resume(out: str | Path | None, files: tuple[str, ...] = ()) -> Run:
    """The run in the folder `out`, or else that trained last, on these files if some are named."""
    folder = _newest_run(files) if out is None else Run(out)
    learned_from = read_config(folder).text.files
    if files and full_names(files) != full_names(learned_from):
        raise UserError(f"{folder} learned from {' '.join(map(title, learned_from))}")
    return folder


def _newest_run(files: tuple[str, ...]) -> Run:
    """The run in runs/ that was trained last on these files, or on any. UserError if there is none,
    with what is wrong with the newest if no files are named."""
    problems = []
    for folder in runs_by_training():
        try:
            learned_from = read_config(folder).text.files
        except UserError as problem:  # damaged, or of another version
            problems.append(problem)
            continue
        if not files or full_names(files) == full_names(learned_from):
            return folder

    if problems and not files:
        raise problems[0]
    raise UserError(f"no run in runs/ was trained on {', '.join(files) or 'a text'}")


def continued_config(folder: Path, state: TrainingState, training: Mapping[str, Any]) -> RunConfig:
    """The settings of a run with the given fields of TrainConfig changed; `state` is how far it is.

    UserError if it cannot be continued with these. Nothing on disk changes.
    """
    check_is_gpt(folder)
    old = read_config(folder)
    for name in KEPT_ON_RESUMING:
        if name in training:
            option = name.replace("_", "-")
            raise UserError(f"--{option} is for a new run; a run keeps its own", kind="setting")
    changed = dict(training)
    if "minutes" in changed:  # more time is worth as many evaluations as usual
        usual = max(old.training.num_evals, TrainConfig.num_evals)
        changed = {"steps": None, "num_evals": usual, **changed}
    more_steps = (changed.get("steps") or 0) > (old.training.steps or 0)
    if more_steps:  # are worth more of them, too
        usual = max(old.training.num_evals, rules.evals_in_steps(changed["steps"]))
        changed = {"num_evals": usual, **changed}
    asked = _on_its_device(replace(old.training, **changed), old.training, changed)

    check_given(changed, {**asdict(old.text), **asdict(old.gpt), **asdict(asked)})
    if changed.get("interpolate"):
        check_interpolation(old.text.init)
    check_batch(asked.batch_size)
    if old.training.lesson and "minutes" in changed:
        asked = replace(asked, steps=_steps_of_lesson(old.training, asked.minutes))

    if state.finished and not _asks_for_more(old.training, asked, state):
        options = ["--minutes", "--steps"]
        if old.training.steps is None and old.training.max_epochs is not None:
            options.insert(1, "--max-epochs")
        raise _finished(folder, state, f"a larger {' or '.join(options)}")

    say(f"minigpt {__version__}: continuing {folder} after {_extent(state)}")
    count_workers(
        training.get("num_workers"),
        device=distributed.device_of_rank(asked.device),
        compile=asked.compile,
        attention_dropout=old.gpt.attention_dropout,
    )
    return replace(old, training=asked)


def _steps_of_lesson(lesson: TrainConfig, minutes: float) -> int:
    """How many steps a lesson has in all if it is given so many minutes: in proportion to its steps
    so far, as the time for steps grows."""
    assert lesson.steps is not None
    times_as_long = training_seconds(minutes) / training_seconds(lesson.minutes)
    return max(round(lesson.steps * times_as_long), 1)


def _on_its_device(asked: TrainConfig, old: TrainConfig, changed: Mapping[str, Any]) -> TrainConfig:
    """The settings of a run with another device, if none is given and its own is not here any more:
    the run comes from another machine. On a device of another kind it has the precision that is
    fastest there, unless one is given."""
    try:
        device = distributed.device_of_rank(asked.device)
    except UserError:
        if "device" in changed:
            raise
        device = distributed.device_of_rank("auto")
        say(f"{old.device}, which it began on, is not here: going on on {device.type}")
        asked = replace(asked, device="auto")

    kind, _, _ = old.device.partition(":")
    if "precision" not in changed and device.type != kind:
        asked = replace(asked, precision="auto")
    return resolved(asked, device)


def _asks_for_more(old: TrainConfig, asked: TrainConfig, state: TrainingState) -> bool:
    """Whether more steps, time or readings of the text are asked for than a finished run has had.
    Whether that is enough is seen once its tokens are counted, see :func:`check_has_more`."""
    if asked.steps is not None:
        return asked.steps > state.step
    was_by_time = old.steps is None
    return not was_by_time or asked.minutes > old.minutes or _epochs(asked) > _epochs(old)


def check_has_more(folder: Path, state: TrainingState, config: RunConfig, dataset: Dataset) -> None:
    """Refuse to continue a finished run with settings by which it would end at once: it has read
    its text often enough, or its time is over."""
    old = read_config(folder).training
    asked = config.training
    if not state.finished or asked.steps is not None:
        return

    def has_read_enough(training: TrainConfig) -> bool:
        of_a_step = training.batch_size * config.gpt.context_length
        return state.step * of_a_step >= _epochs(training) * len(dataset.train)

    if has_read_enough(asked):
        raise _finished(folder, state, f"a larger --max-epochs than {asked.max_epochs:g}")
    was_by_time = old.steps is None and not has_read_enough(old)
    if was_by_time and asked.minutes <= old.minutes:
        raise _finished(folder, state, f"a larger --minutes than {old.minutes:g}")


def _epochs(training: TrainConfig) -> float:
    return math.inf if training.max_epochs is None else training.max_epochs


def _extent(state: TrainingState) -> str:
    return f"{plural(state.step, 'step')} in {clock(state.seconds)}"


def _finished(folder: Path, state: TrainingState, more: str) -> UserError:
    """The error for a run that is finished; `more` is what would give it more."""
    return UserError(
        f"{folder} is finished ({_extent(state)}); give it more with {more}", kind="finished"
    )


def text_of_run(folder: Path, config: RunConfig) -> Source:
    """The text that a run learned from; UserError if it has changed or is not there any more."""
    try:
        return find_again(config.text, config.origin.fingerprint, say)
    except UserError as error:
        if error.kind != "text_changed":
            raise
        new_run = f"--init {quote_path(folder)}"
        raise UserError(
            f"{error}; a new run can begin with its model: {new_run}", kind=error.kind
        ) from None


def tokens_of_run(folder: Path, config: RunConfig, source: Source) -> Dataset:
    """The tokens of a run's text, by the run's own tokenizer."""
    tokenizer = load_tokenizer(folder / TOKENIZER)
    known = tokenizer if config.text.init else None
    dataset = prepare_tokens(source, config.text, tokenizer=known, say=say, progress=progress_bar)
    if dataset.tokenizer.to_json() != tokenizer.to_json():  # it was not learned from this text
        return prepare_tokens(
            source, config.text, tokenizer=tokenizer, say=say, progress=progress_bar
        )
    return dataset


def expected_of_run(folder: Path, state: TrainingState, config: RunConfig) -> float | None:
    """The bits per byte to expect of a run at its end, which may be later than was planned at
    first; None for a run without a plan, or on a text of which nothing is known."""
    if config.text.only is not None:  # the forecast is of all speakers' words
        return None
    plan = read_plan(folder)
    try:
        predictability = Predictability(**plan["text"]["predictability"])
        text = TextStats(**{**plan["text"], "predictability": predictability})
        if not is_like_those_tried(predictability, text.size):
            return None
        tokens = _tokens_at_end(config, state, plan)
        return expected_after_tokens(tokens, text, config.gpt, plan["init"])
    except (ValueError, LookupError, TypeError):
        return None


def _tokens_at_end(config: RunConfig, state: TrainingState, plan: Mapping[str, Any]) -> float:
    """On how many tokens a run will have trained that goes on at the speed that it has had."""
    training = config.training
    of_a_step = training.batch_size * config.gpt.context_length
    if training.steps is not None:
        return training.steps * of_a_step
    if state.step == 0:  # nothing is known of its speed yet
        return float(plan["steps"] * of_a_step)

    in_time = state.step / state.seconds * 60 * training.minutes * of_a_step
    epochs = training.max_epochs
    return in_time if epochs is None else min(in_time, epochs * plan["tokens"])
