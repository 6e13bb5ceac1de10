"""What the train command says: what it will do, what came of it, and what to do next.

Talk goes to standard error; the result to standard output.
"""

import gzip
import lzma
import math
import os
import shlex
import sys
from pathlib import Path

import torch

from .. import UserError
from ..config import TextConfig
from ..data.batches import Dataset
from ..data.corpus import Source
from ..model import count_parameters
from ..runs import RunConfig
from .checkpoint import TrainingState
from .plan import PlannedRun
from .report import clock
from .trainer import Trainee

_YARDSTICK_TOKENS = 1 << 20
_XZ = {"id": lzma.FILTER_LZMA2, "preset": 9}  # with a window that would hold 64 MB
_UNITS = (("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12))


def say(line: str) -> None:
    """Talk goes to standard error; results to standard output."""
    print(line, file=sys.stderr, flush=True)


def say_run(trainee: Trainee, config: RunConfig) -> None:
    """What is about to be done, in a few plain lines."""
    model, training, text = config.model, config.training, config.text
    learned = " learned from the text" if text.tokenizer in ("bpe", "char") else ""
    train, validation = len(trainee.dataset.train), len(trainee.dataset.validation)
    device = trainee.model.token_embedding.weight.device.type
    threads = f" with {torch.get_num_threads()} threads" if device == "cpu" else ""
    precision = str(trainee.precision).removeprefix("torch.")
    goal = f"{training.steps:,} steps" if training.steps else f"{training.minutes:g} minutes"
    say(f"  text       {train:,} tokens to train on, {validation:,} to validate on")
    if text.weights:
        shares = zip(text.files, text.weights, strict=True)
        drawn = (f"{weight / sum(text.weights):.0%} {name}" for name, weight in shares)
        say(f"  drawn      {', '.join(drawn)}")
    tokenizer = f"that of {text.init}" if text.init else text.tokenizer
    say(f"  tokenizer  {tokenizer}, {model.vocab_size:,} tokens{'' if text.init else learned}")
    say(
        f"  model      {model.architecture}, {count_parameters(model) / 1e6:.2f} M parameters: "
        f"{model.num_layers} layers of width {model.emb_dim}, {model.num_heads} heads, "
        f"context {model.context_length}"
    )
    size, sharded = trainee.processes.size, ", sharded" if trainee.processes.is_sharded else ""
    many = f"{size} processes{sharded}, each " if size > 1 else ""
    say(
        f"  training   {goal} on {many}{device}{threads} in {precision}, "
        f"{training.batch_size} x {model.context_length} tokens a step, "
        f"dropout {model.dropout:g}, seed {training.seed}"
    )
    say(f"  run        {trainee.folder} (Ctrl-C stops early and keeps the best)")


def say_reasons(planned: PlannedRun) -> None:
    """Why it is planned so."""
    for i, line in enumerate(planned.reasons()):
        say(f"  {'' if i else 'plan':<11}{line}")


def say_split(dataset: Dataset, text: TextConfig) -> None:
    """That documents were too few to set aside the share asked for, if they were."""
    train, validation = len(dataset.train), len(dataset.validation)
    share = validation / (train + validation)
    wanted = text.validation_fraction
    if not text.validation and not wanted / 2 < share < 2 * wanted:
        say(
            f"  no document is split: {share:.0%} of the text is set aside to validate on; "
            f"--split end sets aside its last {wanted:.0%} instead"
        )


def say_result(folder: Path, state: TrainingState, dataset: Dataset, seconds: float) -> None:
    """What was reached, how good that is, where it is, and how to write with it."""
    if state.step == 0:
        raise UserError(
            f"no time was left to train: getting ready took {clock(seconds)}; give more --minutes"
        )
    if state.best_bits_per_byte is None:
        raise UserError(f"nothing could be saved in {folder}")
    say(f"done in {clock(seconds)}, {state.step:,} steps")
    print(
        f"{folder}: validation {state.best_bits_per_byte:.4f} bits/byte "
        f"({state.best_loss:.4f} nats/token) at step {state.best_step:,}",
        flush=True,
    )
    others = ", ".join(f"{name} {bits:.2f}" for name, bits in yardsticks(dataset).items())
    say(f"for comparison, in bits/byte of the same text: {others}")
    prompt = shlex.quote(_first_words(dataset))
    say(f"to generate:  {command('generate')} {prompt} --run {shlex.quote(str(folder))}")


def yardsticks(dataset: Dataset) -> dict[str, float]:
    """What the validation text takes otherwise, in bits a byte.

    For a model to which all tokens are alike, and for gzip and xz at their best, given nothing
    but that text.
    """
    tokens = dataset.validation[:_YARDSTICK_TOKENS].tolist()
    text = b"".join(map(dataset.tokenizer.token_bytes, tokens))
    uniform = len(tokens) * math.log2(dataset.tokenizer.vocab_size)
    bits = {
        "all tokens alike": uniform,
        "gzip": 8 * len(gzip.compress(text, 9)),
        "xz": 8 * len(lzma.compress(text, filters=[_XZ | {"dict_size": max(len(text), 4096)}])),
    }
    return {name: total / max(len(text), 1) for name, total in bits.items()}


def described(source: Source) -> str:
    """The files and their size, in a few words."""
    files, size = source.training.files, source.training.size
    names = str(files[0]) if len(files) == 1 else f"{len(files)} files"
    if size < 10_000:
        return f"{names} ({size:,.0f} bytes)"
    unit, scale = next(u for u in _UNITS if size < 1000 * u[1])
    return f"{names} ({size / scale:.{0 if unit == 'KB' else 1}f} {unit})"


def extent(state: TrainingState) -> str:
    """How far a training has come, in a few words."""
    return f"{state.step:,} steps in {clock(state.seconds)}"


def command(name: str) -> str:
    """How the user calls a command: as they called this one."""
    called = os.path.basename(sys.argv[0])
    return f"python {name}.py" if called.endswith(".py") else f"minigpt {name}"


def _first_words(dataset: Dataset) -> str:
    """The first three words of the text, as a prompt to try."""
    return " ".join(dataset.tokenizer.decode(dataset.train[:40].tolist()).split()[:3])
