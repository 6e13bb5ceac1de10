"""A training from its text to its end: `train`, and what `train.py` and `train.py --resume` call.

Find the text, plan, turn the text into tokens, make the model and the run's folder, train, report
the result. Rank 0 plans and writes while other processes wait; then all read the same files.
"""

import contextlib
import itertools
import json
import textwrap
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import torch

from .. import UserError, __version__
from ..config import (
    PLANNED,
    GPTConfig,
    TextConfig,
    TrainConfig,
    check_given,
    count_parameters,
    counted,
)
from ..data.batches import Dataset
from ..data.lengths import check_context, check_short_text
from ..data.readers import STANDARD_INPUT, title
from ..data.source import Source, find_again, find_source, spooled
from ..data.token_cache import prepare
from ..model import GPT
from ..runs.find import FoundModel, Run, all_runs, free_name, load, run_of_launch
from ..runs.folder import (
    CHECKPOINT,
    LAUNCH,
    PLAN,
    TOKENIZER,
    RunConfig,
    check_free,
    check_is_gpt,
    has_checkpoint,
    read_config,
)
from ..runs.memory import enough_memory
from ..tokenizer import Tokenizer, load_tokenizer
from ..training import distributed
from ..training.checkpoint import read_state
from ..training.distributed import on_all, on_main
from ..training.interruption import Interrupted, orderly_exit
from ..training.messages import clock, progress_bar, say, say_row
from ..training.picture import EXPECTED
from ..training.precision import resolved
from ..training.trainer import Trainer
from ..training.workers import why_not_shared
from . import induction, report
from .counting import Counting
from .embedding_init import embedding_init, head_init, sample
from .given import Given, gather_given
from .plan import Plan, measured_plan
from .rules import plan_context
from .samples import Samples
from .start import starting_point

_SMALLER = (
    "a smaller --micro-batch-size or --context-length, or a smaller model"  # takes less memory
)
_starts = itertools.count()  # trainings that this process has begun

Fields = dict[str, Any]  # of a config, that were given


def train(
    *texts: str | Path | Iterable[Any], out: str | Path | None = None, **settings: Any
) -> Run:
    """Train on text; the same as the command. The caller's random numbers stay as they were.

    A str or a Path in `texts` is the name of a text file, a folder or a pattern. Anything else that
    can be iterated over holds documents: a list of texts, a dataset of Hugging Face's `datasets`,
    a generator of rows that hold a text each. (Or it yields names, if these are Paths, as
    ``Path("texts").glob("*.md")`` does.) `validation` is one of these too.

    `settings` are fields of :class:`minigpt.TextConfig`, :class:`minigpt.GPTConfig` and
    :class:`minigpt.TrainConfig`, such as ``minutes=2``. The run that is returned is the path of its
    folder, `out` or one in `runs/`, for :func:`minigpt.load`.

    Raises:
        UserError: if a text cannot be read or is too short, or a setting is wrong or would do
            nothing beside the others.
    """
    started = time.monotonic()
    text, model, training = (
        {f.name: settings.pop(f.name) for f in fields(config) if f.name in settings}
        for config in (TextConfig, GPTConfig, TrainConfig)
    )
    if settings:
        raise UserError(f"there is no setting {', '.join(settings)}")
    with orderly_exit(), contextlib.ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(range(torch.cuda.device_count())))
        field = text.get("text_field", TextConfig.text_field)
        if "files" in text:
            raise UserError("texts come first, without a name: minigpt.train('my.txt', ...)")
        if texts:
            text["files"] = tuple(name for t in texts for name in _names(t, field, stack))
        if (validation := text.get("validation", ())) != ():
            text["validation"] = _names(validation, field, stack)
        return start_run(text, model, training, out, started)


def _names(
    text: str | Path | Iterable[Any], field: str, copies: contextlib.ExitStack
) -> tuple[str, ...]:
    """The names of text files: those given, or that of a temporary copy of the documents."""
    if isinstance(text, str) and "\n" in text:
        raise UserError(f"{text[:20]!r}... is no file's name; a text itself is given in a list")
    if isinstance(text, str | Path):
        return (str(text),)

    is_table = isinstance(text, Mapping) or hasattr(text, "iterrows")  # of pandas
    if is_table or isinstance(text, bytes) or not isinstance(text, Iterable):
        shown = textwrap.shorten(repr(text), 40, placeholder="...")
        hint = "; give one of its columns or parts" if is_table else ""
        raise UserError(f"neither the name of a text nor documents: {shown}{hint}")

    documents = iter(text)
    first = list(itertools.islice(documents, 1))
    if first and isinstance(first[0], Path):
        return tuple(str(name) for name in (*first, *documents))
    return (str(copies.enter_context(spooled(itertools.chain(first, documents), field))),)


# A new run


def start_run(
    text: Fields,
    model: Fields,
    training: Fields,
    out: Any,
    started: float,
    read: Source | None = None,
) -> Run:
    """Plan a run around the given fields of TextConfig, GPTConfig and TrainConfig, and train it.

    `started` is when the command began, in time.monotonic's seconds; `read` is the text, if it
    has been read already.
    """
    text_config, train_config = TextConfig(**text), TrainConfig(**training)
    with distributed.process_group(), enough_memory(_SMALLER):
        launch = distributed.launch(next(_starts))
        begun = on_main(lambda: run_of_launch(launch, None if out is None else Path(out)))
        if begun is not None:  # before torchrun restarted these processes
            if on_main(lambda: has_checkpoint(begun)):
                return _restarted(begun, started)
            out = begun
        if out is not None:
            on_main(lambda: check_free(Path(out)))
        start = on_all(lambda: starting_point(text, model))
        device = on_all(lambda: distributed.device_of_rank(train_config.device))
        given = gather_given(text, model, training, start)
        source, planned, train_config = on_main(
            lambda: _planned(read, text_config, train_config, given, device, start)
        )
        if start is None and text_config.tokenizer == "bpe":
            text_config = replace(text_config, vocab_size=planned.model.vocab_size)
        text_config = replace(text_config, max_characters=planned.max_characters)
        dataset = on_all(lambda: _tokens(source, text_config, start.tokenizer if start else None))
        gpt_config = start.glass.config if start else _fitted(planned, dataset, model)
        check_context(len(dataset.train), gpt_config.context_length)
        reasons = report.reasons(planned)
        for i, reason in enumerate(reasons):
            say_row("" if i else "plan", reason)
        config = RunConfig(gpt_config, train_config, dataset.origin)
        gpt = start.model if start else _new_model(config, dataset)
        files = {
            PLAN: json.dumps(asdict(planned) | {"reasons": reasons}, indent=2) + "\n",
        }
        if launch:
            files[LAUNCH] = "\n".join(launch) + "\n"
        folder = on_main(_place, out, Path(text_config.files[0]), source)
        _train(
            gpt,
            dataset,
            config,
            folder,
            started=started,
            expected=planned.bits_per_byte,
            files=files,
        )
    return Run(folder)


def _planned(
    source: Source | None,
    text: TextConfig,
    training: TrainConfig,
    given: Given,
    device: Any,
    start: FoundModel | None,
) -> tuple[Source, Plan, TrainConfig]:
    """The text and a plan for it; errors that can be found without measuring come first."""
    processes = distributed.world_size()
    if processes > 1 and STANDARD_INPUT in (*text.files, *text.validation):
        raise UserError("several processes cannot share standard input; write it to a file first")
    is_read = source is not None
    source = source or find_source(text, say)
    tokenizer = start.tokenizer if start else None
    check_short_text(source, text, given.context_length, tokenizer)
    if not is_read:
        report.say_text(source)
        report.say_unfinished(text, source)
    training = resolved(training, device)
    _say_unused_workers(given.num_workers, training, given.attention_dropout, device)
    planned = measured_plan(
        source, text, given, device=device, precision=training.precision, processes=processes
    )
    distributed.check_batch(planned.batch_size)
    chosen = {n: getattr(planned, n) for n in PLANNED if hasattr(planned, n)}
    return source, planned, replace(training, **chosen)


def _tokens(source: Source, text: TextConfig, tokenizer: Tokenizer | None) -> Dataset:
    """The text as tokens; of several processes on a machine one makes them, the others wait."""
    return prepare(source, text, tokenizer=tokenizer, say=say, progress=progress_bar)


def _fitted(planned: Plan, dataset: Dataset, given: dict[str, Any]) -> GPTConfig:
    """The planned shape, adapted to the number of tokens that were found."""
    model: GPTConfig = replace(planned.model, vocab_size=dataset.tokenizer.vocab_size)
    if "context_length" in given:
        return model
    most = plan_context(len(dataset.train), planned.text.tokenizer, times=4)
    return replace(model, context_length=min(model.context_length, most))


def _say_unused_workers(
    asked: int | None, config: TrainConfig, attention_dropout: float, device: torch.device
) -> None:
    """Say why workers that were asked for will not be used, if so."""
    reason = why_not_shared(device, config.compile, attention_dropout)
    if reason is not None and (asked or 1) > 1:
        say(f"--num-workers {asked} is not used: {reason}")


def _new_model(config: RunConfig, dataset: Dataset) -> GPT:
    """An untrained model; embedding, head and an induction circuit may start from the text."""
    torch.manual_seed(config.training.seed)
    gpt = GPT(config.gpt)
    if config.text.embedding_init == "text":
        V, d = config.gpt.vocab_size, config.gpt.emb_dim
        spare = induction.spare(config.gpt, config.text.tokenizer)
        vectors = embedding_init(dataset.train, V, d - spare, config.training.seed)
        vectors = induction.with_spare(vectors, spare) if spare else vectors
        gpt.token_embedding.load_state_dict({"weight": vectors})
        if not config.gpt.tie_embeddings:
            gpt.head.load_state_dict({"weight": head_init(dataset.train, gpt.final_norm(vectors))})
        if spare:
            induction.start(gpt, sample(dataset.train), spare)
    return gpt


def _place(out: Any, named: Path, source: Source) -> Path:
    """Where the run is to be: `out`, or a free place in runs/ by the name of its text."""
    if out is not None:
        return Path(out)
    first = source.training.files[0]
    name = named.resolve().name if named.is_dir() else Path(title(first)).name.split(".")[0]
    return free_name(name or "run")


# An earlier run


def resume_run(
    out: str | Path | None, training: Fields, started: float, files: tuple[str, ...] = ()
) -> Run:
    """Continue a run from its checkpoint, with the given fields of TrainConfig changed.

    The run is that in the folder `out`, or else the newest one, on these files if some are named.
    Nothing on disk changes before all of it is accepted.
    """
    with distributed.process_group(), enough_memory(_SMALLER):
        folder = Path(out) if out is not None else on_main(lambda: _newest_run(files))
        learned_from = on_main(lambda: read_config(folder)).text.files
        if files and files != learned_from:
            raise UserError(f"{folder} learned from {' '.join(map(title, learned_from))}")
        return _resume(folder, training, started)


def _restarted(folder: Path, started: float) -> Run:
    """Continue the run that these processes began before torchrun restarted them."""
    if on_main(lambda: read_state(folder).finished):
        return Run(folder)
    return _resume(folder, {}, started)


def _resume(folder: Path, training: Fields, started: float) -> Run:
    old = on_main(lambda: read_config(folder))
    if "minutes" in training:  # more time is worth as many evaluations as usual
        usual = max(old.training.num_evals, TrainConfig.num_evals)
        training = {"steps": None, "num_evals": usual, **training}
    asked = replace(old.training, **training)
    check_given(training, {**asdict(old.text), **asdict(old.gpt), **asdict(asked)})
    device = on_all(lambda: distributed.device_of_rank(asked.device))
    source, config = on_main(lambda: _continued(folder, old, training, asked, device))
    dataset = on_all(lambda: _same_tokens(folder, config, source))
    _train(GPT(config.gpt), dataset, config, folder, started=started, expected=None, files={})
    return Run(folder)


def _newest_run(files: tuple[str, ...]) -> Path:
    """The run in runs/ that was trained last on these files, or on any."""
    for folder in all_runs():
        with contextlib.suppress(UserError):
            can_resume = (folder / CHECKPOINT).is_dir()
            if can_resume and files in ((), read_config(folder).text.files):
                return folder
    raise UserError(f"no run in runs/ was trained on {', '.join(files) or 'a text'}")


def _continued(
    folder: Path, old: RunConfig, training: Fields, asked: TrainConfig, device: torch.device
) -> tuple[Source, RunConfig]:
    """The text of a run, and its settings from now on."""
    check_is_gpt(folder)
    distributed.check_batch(asked.batch_size)
    state = read_state(folder)
    more_steps = asked.steps is not None and asked.steps > state.step
    by_time = old.training.steps is None
    more_time = asked.steps is None and (not by_time or asked.minutes > old.training.minutes)
    extent = f"{counted(state.step, 'step')} in {clock(state.seconds)}"
    if state.finished and not (more_steps or more_time):
        more = "give it more with a larger --minutes or --steps"
        raise UserError(f"{folder} is finished ({extent}); {more}")
    source = find_again(old.text, old.origin.fingerprint, say)
    say(f"minigpt {__version__}: continuing {folder} after {extent}")
    config = resolved(asked, device)
    _say_unused_workers(training.get("num_workers"), config, old.gpt.attention_dropout, device)
    return source, replace(old, training=config)


def _same_tokens(folder: Path, config: RunConfig, source: Source) -> Dataset:
    tokenizer = load_tokenizer(folder / TOKENIZER)
    dataset = _tokens(source, config.text, tokenizer if config.text.init else None)
    if dataset.tokenizer.to_json() != tokenizer.to_json():  # learned anew, by another version
        dataset = _tokens(source, config.text, tokenizer)
    return dataset


# What both do


def _train(
    gpt: GPT,
    dataset: Dataset,
    config: RunConfig,
    folder: Path,
    *,
    started: float,
    expected: float | None,
    files: Mapping[str, str],
) -> None:
    """Train until the steps or the time are used up, and report the result. So many bits per byte
    are expected of a new run; None continues one from its last checkpoint."""
    training, device = config.training, distributed.device_of_rank(config.training.device)
    # About the seconds to see how much is copied; they may take a fiftieth of the minutes.
    copying = 1 + count_parameters(gpt.config) / 3e6 + len(dataset.train) / 1e6
    kept = copying if copying < 1.2 * training.minutes else 0.0
    report.say_run(config, dataset, folder, device, distributed.world_size())
    trainer = Trainer(
        gpt,
        dataset,
        training,
        out=folder,
        callbacks=[Counting(), Samples()],
        files=files,
        started=started,
        reserve=kept,
    )
    if expected is not None:
        trainer.figures[EXPECTED] = expected
    try:
        if expected is None:
            trainer.resume()
        else:
            trainer.train()
    except Interrupted as interruption:
        report.say_interrupted(folder, interruption.saved)
        raise
    report.say_result(trainer)
    if copying < 3:
        deadline = trainer.started + 60 * training.minutes
        left = deadline - time.monotonic() if training.steps is None else 3.0
        on_main(_say_copied, folder, left)


def _say_copied(folder: Path, left: float) -> None:
    """How much of what the run writes stands in its text, if so many seconds suffice."""
    writer, start = load(folder), time.monotonic()
    writer.samples(samples=8, max_new_tokens=8, seed=0)  # of the 200 that are to come
    if 60 * (time.monotonic() - start) < left:  # half of it to write, half to look them up
        with contextlib.suppress(UserError):  # the text cannot be read again
            say(f"copied: of what it writes, {writer.copied()}")
