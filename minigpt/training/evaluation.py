"""How well a model predicts a text: nats a token, and bits a byte of the original text.

A training evaluates on windows of its validation text, `measure/evaluate.py` on those of text files
of any size. What a window's targets do not count, an evaluation does not count either.
"""

import itertools
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .. import UserError
from ..config import EvaluationConfig, TrainConfig
from ..data.batches import Batch, Batches, Window, batch_of
from ..system.networks import evaluating
from . import distributed, workers
from .checkpoint import TrainingState
from .loss import token_cross_entropy
from .precision import autocast, dtype_of
from .schedule import Pace

_FEWEST_WINDOWS = 4  # to evaluate on


@dataclass(frozen=True)
class Evaluation:
    """The cross-entropy of a text under a model."""

    loss: float  # nats a token
    bits_per_byte: float  # compares across tokenizers
    tokens: int  # predicted
    bytes: int  # that these stand for
    context_length: int  # tokens in a window
    stride: int  # tokens from one window to the next
    right: float | None = None  # share of the tokens that were the likeliest one; None: not counted
    counting_bits_per_byte: float | None = None  # that counting gives on the same text, if known
    # The files of the text that the model is known to have learned from
    learned_from: list[str] = field(default_factory=list)

    @property
    def perplexity(self) -> float:
        """``exp(loss)``: a choice among this many equally likely tokens has the same loss."""
        return math.exp(self.loss) if self.loss < 700 else math.inf


class Validation:
    """The evaluations during a training, of its model as it is at the moment."""

    def __init__(
        self,
        model: nn.Module,
        batches: Batches,
        config: TrainConfig,
        *,
        context_length: int,
        byte_lengths: Tensor,
    ):
        self._model = model
        self._batches = batches
        self._byte_lengths = byte_lengths
        self._context_length = context_length
        self._precision = dtype_of(config)
        # No more windows than in a step, which takes more memory for each.
        in_a_step = config.micro_batch_size or config.batch_size // distributed.world_size()
        self._at_once = min(in_a_step, EvaluationConfig.batch_size)
        self._seconds_per_token = 0.0

    def evaluate(self, max_tokens: int) -> Evaluation:
        """Evaluate on at most `max_tokens` tokens of the text, always the same ones."""
        return self._evaluate(self._batches.validation(max_tokens))

    def count(self, max_tokens: int) -> int:
        """How many tokens an evaluation on at most `max_tokens` reads, counted or not."""
        return sum(len(inputs) for inputs, _ in self._batches.validation(max_tokens))

    def seconds(self, max_tokens: int) -> float:
        """The seconds that an evaluation on at most `max_tokens` takes; 0 before :meth:`plan`."""
        return self._seconds_per_token * self.count(max_tokens)

    def plan(self, state: TrainingState, config: TrainConfig, pace: Pace) -> None:
        """Measure how long an evaluation takes. In a new training by time, choose how many tokens
        to evaluate on, so that all evaluations together take a tenth of it."""
        # As many windows at once as later, so that a lack of memory shows now.
        number = max(self._at_once, workers.count()) * distributed.world_size()
        windows = list(itertools.islice(self._batches.validation(config.eval_tokens), number))
        self._evaluate(windows)  # the first one is slow
        start = time.perf_counter()  # time.monotonic may stand still for 16 ms on Windows
        self._evaluate(windows)
        (took,) = distributed.highest(time.perf_counter() - start)
        self._seconds_per_token = took / sum(len(inputs) for inputs, _ in windows)

        if state.step > 0:
            return
        state.eval_tokens = config.eval_tokens
        if config.steps is None:
            left = max(pace.seconds_to_deadline(), 0.0)
            seconds = 0.1 * left / config.num_evals
            fewest = _FEWEST_WINDOWS * self._context_length
            affordable = max(fewest, int(seconds / self._seconds_per_token))
            state.eval_tokens = min(config.eval_tokens, affordable)

    def _evaluate(self, windows: Iterable[Window]) -> Evaluation:
        result = evaluate_windows(
            self._model,
            windows,
            self._byte_lengths,
            context_length=self._context_length,
            at_once=self._at_once,
            precision=self._precision,
        )
        if result.tokens == 0:
            raise UserError("no token of the text to validate on counts", kind="too_short")
        return result


# Windows of any text


class Totals(NamedTuple):
    """Sums over some predicted tokens."""

    nats: float  # their losses
    tokens: int  # how many there are
    bytes: int  # of text that they stand for
    right: float  # how many of them the model found likeliest; NaN if that was not counted


class Predictions(NamedTuple):
    """What was made of some windows of the same length. All are ``(b, T)``."""

    inputs: Tensor
    targets: Tensor
    nats: Tensor  # the loss of each target; 0 if it does not count
    are_right: Tensor | None = None  # whether it is the likeliest token; None: not looked at

    def totals(self, byte_lengths: Tensor) -> Totals:
        """Their sums."""
        counted = self.targets[self.targets >= 0]  # (n,)
        return Totals(
            nats=self.nats.sum().item(),
            tokens=len(counted),
            bytes=int(byte_lengths[counted].sum()),
            right=math.nan if self.are_right is None else int(self.are_right.sum()),
        )


def evaluate_windows(
    model: nn.Module,
    windows: Iterable[Window],
    byte_lengths: Tensor,
    *,
    context_length: int,
    stride: int | None = None,
    at_once: int = EvaluationConfig.batch_size,
    precision: torch.dtype = torch.float32,
) -> Evaluation:
    """Predict each target of a window that counts from all tokens before it in the window.

    Several processes, each given all windows, share the work; or workers do.

    Args:
        model: any network from ids ``(b, T)`` to logits ``(b, T, vocab_size)``. It keeps its mode,
            training or not; dropout is off meanwhile.
        windows: inputs and targets, ``(T,)`` each.
        byte_lengths: how many bytes of text each token stands for, ``(vocab_size,)``.
        context_length: the most tokens that the model sees.
        stride: tokens from one window to the next, the context length if unset.
        at_once: windows that a process computes at once, shared among its workers; each worker
            computes at least one.
        precision: of the matrix products.
    """
    predicted = predictions(model, windows, at_once=at_once, precision=precision)
    return evaluation_of(
        [group.totals(byte_lengths) for group in predicted],
        context_length=context_length,
        stride=context_length if stride is None else stride,
    )


def predictions(
    model: nn.Module,
    windows: Iterable[Window],
    *,
    at_once: int = EvaluationConfig.batch_size,
    precision: torch.dtype = torch.float32,
) -> Iterator[Predictions]:
    """The loss of every target that :func:`evaluate_windows` predicts, in the order of the windows;
    of several processes each has its share."""
    device = next(model.parameters()).device

    def predict(group: Batch) -> Predictions:
        inputs, targets = group  # each (b, T)
        with autocast(device, precision):
            losses, are_right = token_cross_entropy(model, inputs.to(device), targets.to(device))
        return Predictions(inputs, targets, losses.cpu().double(), are_right.cpu())

    groups = _groups(windows, size=max(at_once // workers.count(), 1))
    ranks = distributed.world_size()
    in_a_turn = ranks * workers.count()  # a group for each worker of each process
    with evaluating(model):
        while turn := list(itertools.islice(groups, in_a_turn)):
            own = turn[distributed.rank() :: ranks]
            yield from workers.compute(predict, own)


def _groups(windows: Iterable[Window], size: int) -> Iterator[Batch]:
    """Windows of the same length one below the other, `size` of them at most."""
    group: list[Window] = []
    for window in windows:
        is_whole = len(group) == size
        if group and (is_whole or len(window[0]) != len(group[0][0])):
            yield batch_of(group)
            group = []
        group.append(window)
    if group:
        yield batch_of(group)


def evaluation_of(totals: list[Totals], *, context_length: int, stride: int) -> Evaluation:
    """The evaluation from the totals that all processes have; its losses are NaN if no token
    counts."""
    none = Totals(0.0, 0, 0, 0.0)  # from a process without windows
    of_all = itertools.chain.from_iterable(distributed.gather([none, *totals]))
    nats, count, size, right = map(math.fsum, zip(*of_all, strict=True))  # exact in any order

    if count == 0:
        nats = math.nan  # 0 would be the best of all
    loss = nats / max(count, 1)
    bits = nats / math.log(2) / max(size, 1)
    return Evaluation(
        loss=loss,
        bits_per_byte=bits,
        tokens=int(count),
        bytes=int(size),
        context_length=context_length,
        stride=stride,
        right=None if math.isnan(right) else right / max(count, 1),
    )
