"""A run from its first step, or any later one, to its end: what both `train` and `--resume` do."""

import contextlib
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch

from .. import UserError
from ..config import GPTConfig, TextConfig, TrainConfig
from ..data.batches import Dataset
from ..data.corpus import STANDARD_INPUT, Source, find_source
from ..generation.torch_gpt import engine_of
from ..generation.writer import Writer
from ..model import GPT
from ..runs import CONFIG, RunConfig, locked
from .compilation import should_compile
from .interruption import Interrupted
from .processes import Processes
from .report import Report, say_interrupted, say_result, say_run
from .speed import choose_precision
from .trainer import Trainer

_SAMPLE_TOKENS = 80


def compile_resolved(config: TrainConfig, model: GPTConfig, processes: Processes) -> TrainConfig:
    """What `--compile auto` stands for here, so that a run that is resumed goes on as it was."""
    device = processes.together(lambda: processes.device(config.device))
    chosen = processes.by_first(lambda: should_compile(config, model, device, processes.size))
    return replace(config, compile=chosen)


def train_run(
    gpt: GPT,
    dataset: Dataset,
    config: RunConfig,
    folder: Path,
    started: float,
    processes: Processes,
    *,
    resume: bool,
) -> None:
    """Train until the steps or the time are used up, and say what came of it.

    Args:
        gpt: a model; what it has learned is replaced if the run is resumed.
        dataset: to train on.
        config: of the run.
        folder: of the run, locked.
        started: when the command began, in time.monotonic's seconds.
        processes: that train together.
        resume: from the checkpoint in the folder.

    Raises:
        UserError: if training goes wrong, or memory does not suffice.
        Interrupted: by SIGINT or SIGTERM, after saving the state.
    """
    processes.together(lambda: _wait_for(folder / CONFIG))
    device = processes.device(config.training.device)
    precision = choose_precision(config.training.precision, device)
    model = processes.placed(gpt, device, config.training.shard)
    say_run(config, dataset, folder, device, processes.size)
    report = Report(
        folder,
        tokens_per_step=config.training.batch_size * config.model.context_length,
        started=started,
        log=config.training.log if processes.is_first else "none",
    )
    trainer = Trainer(
        model,
        dataset,
        config.training,
        folder,
        precision=precision,
        report=report,
        deadline=started + 60 * config.training.minutes,
        sample=_sampler(dataset, config.training.seed),
    )
    try:
        if resume:
            trainer.restore()
        state = trainer.train()
    except torch.OutOfMemoryError:
        raise UserError(
            "out of memory; try a smaller --micro-batch-size or --context-length, or a smaller "
            "model"
        ) from None
    except Interrupted as interruption:
        report.close()
        say_interrupted(folder, interruption.saved)
        raise
    finally:
        report.close()
    minutes = None if config.training.steps else config.training.minutes
    say_result(folder, state, dataset, time.monotonic() - started, minutes)


def _wait_for(file: Path) -> None:
    """See what another process has written, which over a network may take a while."""
    for _ in range(60):
        if file.exists():
            return
        time.sleep(1.0)
    raise UserError(
        f"{file} is not seen on {platform.node()}; the run's folder has to be on a file system "
        "that all machines share"
    )


@contextlib.contextmanager
def locked_for_all(folder: Path, processes: Processes) -> Iterator[None]:
    """The lock of a run's folder, which the first process takes for all."""
    with contextlib.ExitStack() as stack:
        processes.by_first(lambda: stack.enter_context(locked(folder)))
        yield


def _sampler(dataset: Dataset, seed: int) -> Callable[[GPT], str]:
    def sample(model: GPT) -> str:
        training = model.training
        text = Writer(engine_of(model.eval()), dataset.tokenizer).generate(
            max_new_tokens=_SAMPLE_TOKENS, seed=seed
        )
        model.train(training)
        return text

    return sample


def source_for_all(text: TextConfig, processes: Processes) -> Source:
    """The text, which each of several processes reads for itself."""
    if processes.size > 1 and STANDARD_INPUT in (*text.files, *text.validation):
        raise UserError("several processes cannot share standard input; write it to a file first")
    return find_source(text)
