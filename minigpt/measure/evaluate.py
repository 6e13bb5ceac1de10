"""How well a model predicts text files of any size, beside what counting gives."""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .. import UserError
from ..config import EvaluationConfig
from ..data.batches import windows_of_stream
from ..data.corpus import Corpus, Part, encode
from ..data.files import each_once, find_files
from ..data.readers.document import title
from ..data.source import check_names, check_text_field, read_corpus
from ..devices.memory import enough_memory
from ..runs.find import find_model
from ..runs.read_model import FoundModel
from ..tokenizer import Tokenizer
from ..training import distributed, workers
from ..training.evaluation import Evaluation, evaluate_windows
from ..training.messages import say
from .counting import counting_model
from .learned import files_learned_from

_NEARLY_ALL = 1 << 16  # tokens

Progress = Callable[[int], Any]


def evaluate(
    run: str | Path,
    *files: str | Path,
    progress: Progress = lambda characters: None,
    **settings: Any,
) -> Evaluation:
    """Measure how well a model predicts every token of a text but the first, in constant memory.

    With a `stride` below the context length windows overlap. Each but the first then predicts only
    as many tokens as the stride, and these see at least ``context_length - stride`` tokens before
    them. Published perplexities are measured like this ("Perplexity of fixed-length models" in the
    documentation of transformers). By default windows stand side by side, as in training.

    Args:
        run: anything that :func:`minigpt.load` takes.
        files: text files, folders or patterns; documents follow each other as in training. Each
            file is read once. Of several files, those that cannot be read are named and left out.
        progress: called with the number of characters whenever some have been read.
        settings: fields of :class:`minigpt.EvaluationConfig`, such as ``device="cpu"``.

    Returns:
        The loss, bits per byte and perplexity, and how many tokens and bytes were predicted; and
        what counting which token follows which four in the run's training text gives, if that text
        can be read.

    Raises:
        UserError: if the model or the text cannot be read, the text holds fewer than two tokens
            or something that the tokenizer does not know, or the stride is above the context
            length.
    """
    config = EvaluationConfig(**settings)
    if not files:
        raise UserError("name a text to predict, as in minigpt.evaluate('runs/my', 'my.txt')")
    reading = config.reading()
    names = tuple(map(str, files))
    paths = each_once(find_files(names, reading=reading))
    check_text_field(paths, reading)

    found = find_model(run)
    context_length = found.glass.config.context_length
    stride = stride_of(found, config)

    text = read_corpus(Corpus(paths, reading), names, say)
    check_names(text)
    learned_from = files_learned_from(found, text)
    if learned_from:
        which = ", ".join(learned_from[:3]) + (" and more" if len(learned_from) > 3 else "")
        say(f"{run} has learned from {which}, so its figure says what it remembers")
    windows = windows_of_stream(ids_of(found.tokenizer, text, progress), context_length, stride)

    device = distributed.device_of_rank(config.device)
    with computing(config, device):
        result = evaluate_windows(
            found.model.to(device),
            windows,
            torch.tensor(found.tokenizer.byte_lengths()),
            context_length=context_length,
            stride=stride,
            at_once=config.batch_size,
        )
    result = replace(result, learned_from=learned_from)
    if not result.tokens:
        which = ", ".join(map(title, names))
        raise UserError(f"{which}: too short to evaluate on, at least 2 tokens are needed")
    if not math.isfinite(result.loss):
        raise UserError(f"{run} is damaged: its loss is {result.loss}")

    try:
        counting = counting_model(found)
    except UserError:  # its text is not known, or not there, or has changed
        return result
    windows = windows_of_stream(
        ids_of(found.tokenizer, text), counting_length(context_length, stride=stride)
    )
    bits = counting.bits_per_byte(windows, found.tokenizer.byte_lengths())
    return replace(result, counting_bits_per_byte=bits)


def stride_of(found: FoundModel, config: EvaluationConfig) -> int:
    """How many tokens a window begins after the one before; UserError if there would be gaps."""
    context_length = found.glass.config.context_length
    stride = context_length if config.stride is None else config.stride
    if stride > context_length:
        limits = f"between 1 and the context length {context_length:,}"
        raise UserError(f"stride must be {limits}, got {stride:,}")
    return stride


def ids_of(
    tokenizer: Tokenizer, text: Corpus | Part, progress: Progress = lambda characters: None
) -> Iterator[NDArray[np.integer]]:
    """The tokens of a text, in pieces; `progress` is told the characters of each."""
    for characters, piece in encode(tokenizer, text):
        yield piece
        progress(characters)


@contextlib.contextmanager
def computing(config: EvaluationConfig, device: torch.device) -> Iterator[None]:
    """Within, workers share the windows on a CPU."""
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    with enough_memory("a smaller --batch-size"), workers.team(min(threads, config.batch_size)):
        yield


def counting_length(context_length: int, *, stride: int) -> int:
    """How many tokens a window of counting has: as many as a window of the model or, if the model's
    windows overlap, so many that nearly every token has all the context that counting needs."""
    return context_length if stride == context_length else _NEARLY_ALL
