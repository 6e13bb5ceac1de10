"""How well a model predicts a text: nats a token, and bits a byte of the original text.

The trainer evaluates on its validation tokens, `minigpt.evaluate` on text files of any size.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import UserError
from ..config import EvaluationConfig
from ..data.batches import TokenSequence
from ..data.corpus import Corpus, chunks, find_files
from ..memory import enough_memory
from ..model import GPT
from ..runs import choose_device, find_model
from ..tokenizer import encode_in_pieces
from . import distributed, workers
from .speed import autocast

Window = NDArray[np.integer]  # tokens (length + 1,)


@dataclass(frozen=True)
class Evaluation:
    """The cross-entropy of a text under a model."""

    loss: float  # nats a token
    bits_per_byte: float  # compares across tokenizers
    tokens: int  # predicted
    bytes: int  # that these stand for
    context_length: int  # tokens in a window

    @property
    def perplexity(self) -> float:
        """``exp(loss)``: a choice among this many equally likely tokens has the same loss."""
        return math.exp(self.loss) if self.loss < 700 else math.inf


def evaluate(
    run: str | Path,
    *files: str | Path,
    progress: Callable[[int], Any] = lambda characters: None,
    **settings: Any,
) -> Evaluation:
    """Measure how well a model predicts every token of a text but the first, in constant memory.

    Args:
        run: anything that :func:`minigpt.load` takes.
        files: text files, folders or patterns; documents follow each other as in training.
        progress: called with the number of characters whenever some have been read.
        settings: fields of :class:`minigpt.EvaluationConfig`, such as ``device="cpu"``.

    Returns:
        Its loss, bits per byte and perplexity, and of how many tokens and bytes.

    Raises:
        UserError: if the model or the text cannot be read, the text holds fewer than two tokens
            or something that the tokenizer does not know.
    """
    config = EvaluationConfig(**settings)
    paths = find_files(tuple(map(str, files)))
    found = find_model(run)

    def ids() -> Iterator[NDArray[np.integer]]:
        texts = chunks(Corpus(paths, config.text_field).documents())
        for characters, piece in encode_in_pieces(found.tokenizer, texts):
            yield piece
            progress(characters)

    windows = windows_of(ids(), found.glass.config.context_length)
    device, lengths = choose_device(config.device), torch.tensor(found.tokenizer.byte_lengths())
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    smaller = "a smaller --batch-size"
    with enough_memory(smaller), workers.team(min(threads, config.batch_size)):
        model = found.model.to(device)
        result = evaluate_windows(model, windows, lengths, at_once=config.batch_size)
    if not result.tokens:
        names = ", ".join(map(str, files))
        raise UserError(f"{names}: too short to evaluate on, at least 2 tokens are needed")
    if not math.isfinite(result.loss):
        raise UserError(f"{run} is damaged: its loss is {result.loss}")
    return result


def evaluate_tokens(
    model: GPT,
    tokens: TokenSequence,
    byte_lengths: Tensor,
    *,
    max_tokens: int,
    at_once: int = EvaluationConfig.batch_size,
    precision: torch.dtype = torch.float32,
) -> Evaluation:
    """Predict every token but the first, once, in windows of the context length side by side.

    Of a text longer than `max_tokens` only some windows are read, see :func:`spread_windows`.
    For the rest see :func:`evaluate_windows`.
    """
    windows = spread_windows(tokens, model.config.context_length, max_tokens)
    return evaluate_windows(model, windows, byte_lengths, at_once=at_once, precision=precision)


def spread_windows(tokens: TokenSequence, context_length: int, max_tokens: int) -> Iterator[Window]:
    """Windows of a text side by side, in which every token but the first is predicted once. Of a
    text longer than `max_tokens` only some that are spread evenly over it, always the same."""
    T = min(context_length, len(tokens) - 1)
    starts = np.arange(0, len(tokens) - 1, T)  # of each window; the last one may be short
    if len(starts) * T > max_tokens:
        full = starts[: max(len(starts) - 1, 1)]
        starts = full[:: -(-len(full) * T // max_tokens)]

    for start in starts.tolist():
        yield tokens[start : start + T + 1]


def evaluate_windows(
    model: GPT,
    windows: Iterable[Window],
    byte_lengths: Tensor,
    *,
    at_once: int = EvaluationConfig.batch_size,
    precision: torch.dtype = torch.float32,
) -> Evaluation:
    """Predict each token of a window but the first from all tokens before it in the window.

    Several processes, each given all windows, share the work; or workers do.

    Args:
        model: keeps its mode, training or not; dropout is off meanwhile.
        windows: tokens ``(length + 1,)`` each.
        byte_lengths: of the text that each token stands for, ``(vocab_size,)``.
        at_once: windows that a process computes at once; all its workers together, but for each
            one at least.
        precision: of the matrix products.
    """
    device, was_training = model.token_embedding.weight.device, model.training

    def predict(tokens: Tensor) -> tuple[float, int, int]:  # (b, length + 1)
        inputs, targets = tokens[:, :-1], tokens[:, 1:]  # each (b, length)
        with autocast(device, precision):
            losses = model.token_losses(inputs.to(device), targets.to(device))  # (b, length)
        nats = losses.cpu().double().sum().item()
        return nats, targets.numel(), int(byte_lengths[targets].sum())

    totals = [(0.0, 0, 0)]  # nats, tokens and bytes of each group of windows
    model.eval()
    groups = _stacked(windows, max(at_once // workers.count(), 1))
    ranks, rank = distributed.world_size(), distributed.rank()
    while turn := list(itertools.islice(groups, ranks * workers.count())):
        totals += workers.compute(predict, turn[rank::ranks])
    model.train(was_training)
    of_all = itertools.chain.from_iterable(distributed.gather(totals))
    nats, count, size = map(math.fsum, zip(*of_all, strict=True))  # exact in any order
    loss, bits = nats / max(count, 1), nats / math.log(2) / max(size, 1)
    return Evaluation(loss, bits, int(count), int(size), model.config.context_length)


def windows_of(chunks: Iterable[NDArray[np.integer]], context_length: int) -> Iterator[Window]:
    """Windows over a text in chunks, side by side; each begins with the last token of the one
    before, so that every token but the first is predicted once."""
    held = np.empty(0, np.int64)  # the tokens from the beginning of the next window
    for chunk in chunks:
        held = np.concatenate([held, chunk])
        while len(held) > context_length:
            yield held[: context_length + 1]
            held = held[context_length:]
    if len(held) > 1:
        yield held


def _stacked(windows: Iterable[Window], batch_size: int) -> Iterator[Tensor]:
    """Windows of the same length side by side, int64 ``(b, length + 1)``."""
    for _, alike in itertools.groupby(windows, key=len):
        while group := list(itertools.islice(alike, batch_size)):
            yield torch.from_numpy(np.stack(group).astype(np.int64))
