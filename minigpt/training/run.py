"""What `train` does from start to end, and what it says on the way."""

import contextlib
import dataclasses
import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from .. import UserError, __version__
from ..config import GPTConfig, TextConfig, TrainConfig
from ..data.batches import Dataset, check_length
from ..data.corpus import Source, spooled, spooled_from
from ..data.token_cache import prepare
from ..model import GPT
from ..runs import (
    CONFIG,
    INIT_LEARNING_RATE,
    PLAN,
    TOKENIZER,
    WEIGHTS,
    RunConfig,
    check_free,
    free_name,
    locked,
    save_weights,
    starting_point,
    write_text,
)
from .checkpoint import read_state
from .embedding_init import embedding_init
from .plan import PlannedRun, plan_context, plan_run, settled
from .processes import Processes, joined
from .report import (
    check_logger,
    described,
    progress_bar,
    say,
    say_reasons,
    say_split,
    say_unfinished,
)
from .resume import newest_run_of
from .speed import choose_precision
from .training_run import compile_resolved, locked_for_all, source_for_all, train_run


def train(
    *texts: str | Path | Iterable[Any], out: str | Path | None = None, **settings: Any
) -> Path:
    """Train on text; the same as the command.

    Args:
        texts: names of text files, folders or patterns; or documents themselves: a dataset of
            Hugging Face's `datasets`, or anything else that yields texts or rows that hold one.
        out: the run's folder; by default `runs/` and the name of the first file.
        settings: fields of :class:`~minigpt.TextConfig`, :class:`~minigpt.GPTConfig` and
            :class:`~minigpt.TrainConfig`, such as ``minutes=2``. `validation` too may be
            documents.

    Returns:
        The run's folder, for :func:`minigpt.load`.

    Raises:
        UserError: if the text cannot be read or a setting is unknown or out of range.
    """
    given: list[dict[str, Any]] = []
    for config in (TextConfig, GPTConfig, TrainConfig):
        names = {field.name for field in dataclasses.fields(config)}
        given.append({name: settings.pop(name) for name in names & settings.keys()})
    if settings:
        raise UserError(f"there is no setting {', '.join(settings)}")
    text, model, training = given
    started = time.monotonic()
    with contextlib.ExitStack() as copies:
        field = text.get("text_field", TextConfig.text_field)
        if len(texts) == 1 and isinstance(texts[0], Mapping):  # splits of a Hugging Face dataset
            splits = texts[0]
            if "train" not in splits:
                raise UserError(f"the dataset has no split 'train' but {', '.join(splits)}")
            texts = (splits["train"],)
            text.setdefault("validation", splits.get("validation", ()))
        if texts:
            text["files"] = tuple(_named(t, field, copies) for t in texts)
        validation = text.get("validation", ())
        if not isinstance(validation, tuple | list):
            text["validation"] = (_named(validation, field, copies),)
        return start_run(text, model, training, out, started)


def _named(text: str | Path | Iterable[Any], field: str, copies: contextlib.ExitStack) -> str:
    """The name of a text: its own, or that of a copy of the documents."""
    if isinstance(text, str | Path):
        return str(text)
    if not isinstance(text, Iterable):
        raise UserError(f"neither the name of a text nor documents: {text!r}")
    return str(copies.enter_context(spooled(text, field)))


def start_run(
    text: dict[str, Any],
    model: dict[str, Any],
    training: dict[str, Any],
    out: str | Path | None,
    started: float,
) -> Path:
    """Plan a run around what was given, and train it.

    Args:
        text: fields of TextConfig that were given.
        model: fields of GPTConfig that were given.
        training: fields of TrainConfig that were given.
        out: the run's folder, or None for a new one named after the text.
        started: when the command began, in time.monotonic's seconds.

    Returns:
        The run's folder.

    Raises:
        UserError: if something given cannot be used.
        Interrupted: when training was interrupted and has saved its state.
    """
    with joined() as processes:
        return _start(processes, text, model, training, out, started)


def _start(
    processes: Processes,
    text: dict[str, Any],
    model: dict[str, Any],
    training: dict[str, Any],
    out: str | Path | None,
    started: float,
) -> Path:
    if text.get("init") is not None:
        training = {"learning_rate": INIT_LEARNING_RATE, **training}
    train_config = _resolved(TrainConfig(**training), processes)
    text_config = TextConfig(**text)
    if train_config.shard and processes.size == 1:
        raise UserError("--shard needs several processes: torchrun --nproc-per-node N train.py ...")
    if out is not None:
        processes.by_first(lambda: check_free(Path(out)))
    source = processes.together(lambda: source_for_all(text_config, processes))
    start = processes.together(lambda: starting_point(text, model))
    say(f"minigpt {__version__}: training on {described(source)}")
    given = settled(text, model, training, start)
    planned = _planned(source, text_config, train_config, given, processes)
    plan = planned.plan
    train_config = replace(
        train_config,
        batch_size=plan.batch_size,
        max_epochs=plan.max_epochs,
        token_split_prob=plan.token_split_prob,
        warmup_context=plan.warmup_context,
        num_evals=plan.num_evals,
    )
    processes.check_batch(train_config.batch_size)
    if start is None and text_config.tokenizer == "bpe":
        text_config = replace(text_config, vocab_size=plan.model.vocab_size)
    tokenizer = start.tokenizer if start else None
    dataset = processes.by_node(
        lambda: prepare(source, text_config, tokenizer=tokenizer, say=say, progress=progress_bar)
    )
    gpt_config = (
        start.model.config if start else _fitted(plan.model, dataset, text_config.tokenizer, model)
    )
    check_length(dataset.train, gpt_config.context_length)
    for name, source_range in zip(text_config.files, dataset.sources, strict=False):
        check_length(source_range, gpt_config.context_length, name)
    _check_alike(source, dataset, gpt_config, processes)
    say_split(dataset, text_config)
    say_reasons(planned.reasons())

    train_config = compile_resolved(train_config, gpt_config, processes)
    config = RunConfig(gpt_config, train_config, text_config, source.fingerprint)
    torch.manual_seed(train_config.seed)
    gpt = start.model if start else GPT(gpt_config)
    if start is None and text_config.embedding_init == "text":
        processes.together(lambda: _set_vectors(gpt, dataset, train_config.seed))
    processes.by_first(lambda: _offer_unfinished(text_config))
    folder = processes.by_first(lambda: _new_folder(out, _name(source)))
    with locked_for_all(folder, processes):
        processes.by_first(lambda: _begin(folder, dataset, gpt, config, planned))
        train_run(gpt, dataset, config, folder, started, processes, resume=False)
    return folder


def _planned(
    source: Source,
    text: TextConfig,
    training: TrainConfig,
    given: dict[str, Any],
    processes: Processes,
) -> PlannedRun:
    """What the first process plans, for all of them."""
    device = processes.device(training.device)
    precision = choose_precision(training.precision, device)
    return processes.by_first(
        lambda: plan_run(source, text, given, device, precision, processes.size)
    )


def _check_alike(source: Source, dataset: Dataset, model: GPTConfig, processes: Processes) -> None:
    """Refuse to train together on different things: a file may differ from machine to machine."""
    parts = (source.fingerprint, dataset.tokenizer.to_json(), str(model))
    seen = processes.gather(hashlib.sha256("".join(parts).encode()).hexdigest())
    for rank, other in enumerate(seen):
        if other != seen[0]:
            raise UserError(
                f"process {rank} sees another text or model than process 0: "
                "every machine needs the same files"
            )


def _fitted(
    planned: GPTConfig, dataset: Dataset, tokenizer: str, given: dict[str, Any]
) -> GPTConfig:
    """The planned shape, for the tokens that there turned out to be."""
    context_length = planned.context_length
    if "context_length" not in given:
        most = plan_context(len(dataset.train), tokenizer, is_long=True)
        context_length = min(context_length, most)
    vocab_size = dataset.tokenizer.vocab_size
    return replace(planned, vocab_size=vocab_size, context_length=context_length)


def _set_vectors(gpt: GPT, dataset: Dataset, seed: int) -> None:
    """Let the model's token embedding begin with what the text says of its tokens."""
    config = gpt.config
    vectors = embedding_init(dataset.train, config.vocab_size, config.emb_dim, seed)
    gpt.token_embedding.load_state_dict({"weight": vectors})


def _begin(
    folder: Path, dataset: Dataset, gpt: GPT, config: RunConfig, planned: PlannedRun
) -> None:
    """Make the folder a run: untrained, but whole from the start."""
    write_text(planned.to_json(), folder / PLAN)
    write_text(dataset.tokenizer.to_json(), folder / TOKENIZER)
    save_weights(gpt, folder / WEIGHTS)
    write_text(config.to_json(), folder / CONFIG)


def _resolved(config: TrainConfig, processes: Processes) -> TrainConfig:
    """The precision that "auto" stands for here, so that a run that is resumed keeps it.

    Raises:
        UserError: if there is no such device, or the logger is not installed.
    """
    device = processes.together(lambda: processes.device(config.device))

    def resolve() -> TrainConfig:
        check_logger(config.log)
        precision = choose_precision(config.precision, device)
        is_short = precision == torch.bfloat16
        return replace(config, precision="bfloat16" if is_short else "float32")

    return processes.by_first(resolve)


def _new_folder(out: str | Path | None, name: str) -> Path:
    """`out`, or a folder in runs/ that no other run has, made."""
    try:
        if out is not None:
            Path(out).mkdir(parents=True, exist_ok=True)
            return Path(out)
        while True:
            folder = free_name(name)
            folder.parent.mkdir(exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another process was faster
                folder.mkdir()
                return folder
    except OSError as error:
        raise UserError(f"cannot make the folder {error.filename}: {error.strerror}") from None


def _offer_unfinished(text: TextConfig) -> None:
    """Point to an earlier run of the same text that was cut off."""
    folder = newest_run_of(text.files)
    if folder is None:
        return
    try:
        state = read_state(folder)
        with locked(folder):  # or it is being trained right now
            pass
    except UserError:
        return
    if not state.finished:
        say_unfinished(folder, state)


def _name(source: Source) -> str:
    """A run's name: that of its first file, without suffixes."""
    file = source.training.files[0]
    return spooled_from(file) or file.name.split(".")[0] or "run"
