"""How well a model predicts a text: nats a token, and bits a byte of the original text. And, in a
training, which weights are evaluated, and kept if they are the best so far.

A training evaluates on windows of its validation text, `measure/evaluate.py` on those of text files
of any size. What a window's targets do not count, an evaluation does not count either.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .. import UserError
from ..config import EvaluationConfig, TrainConfig
from ..data.batches import Batch, Batches, Window, batch_of
from ..runs.folder import NEARLY
from ..system.networks import evaluating
from . import distributed, workers
from .checkpoint import Learner, TrainingState
from .loss import token_cross_entropy
from .pace import Pace
from .precision import autocast, dtype_of
from .weights import Weights

_FEWEST_WINDOWS = 4  # to evaluate on
_MORE_ON_GPU = 8  # times the windows of a step: without gradients each takes far less memory

# Of the way from the first weights of a training to the trained ones
_COARSE = (1.0, 0.75, 0.5, 0.25)  # shares that are tried first
_FINE = 0.125  # so much less and so much more than the best of these is tried next
SHARES_TRIED = len(_COARSE) + 2
_TOKENS = (1024, 4096)  # that each share is tried on, at least and at most


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
        # No more windows than in a step, which takes more memory for each; on a GPU a few times as
        # many, since each time the host waits for it.
        in_a_step = config.micro_batch_size or config.batch_size // distributed.world_size()
        if config.micro_batch_size is None and next(model.parameters()).is_cuda:
            in_a_step *= _MORE_ON_GPU
        self._at_once = min(in_a_step, EvaluationConfig.batch_size)
        self._seconds_per_token = 0.0

    def evaluate(self, max_tokens: int) -> Evaluation:
        """Evaluate on at most `max_tokens` tokens of the text, always the same ones."""
        return self._evaluate(self._batches.validation(max_tokens))

    def count(self, max_tokens: int) -> int:
        """How many tokens an evaluation on at most `max_tokens` reads, counted or not."""
        return sum(len(inputs) for inputs, _ in self._batches.validation(max_tokens))

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

    def seconds_at_end(self, learner: Learner, max_tokens: int) -> float:
        """The seconds that all evaluations at the end take, each on at most `max_tokens`, those of
        shares of the way apart; after :meth:`plan`."""
        tokens = self.count(max_tokens)
        if learner.first is None:
            return self._seconds_per_token * 2 * tokens
        of_a_share = self.count(tokens_to_search(tokens))
        return self._seconds_per_token * (3 * tokens + SHARES_TRIED * of_a_share)

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


# Which weights are the best


@dataclass(frozen=True)
class Candidate:
    """Weights, and how good they are."""

    weights: Weights
    result: Evaluation
    # How far these lie on the way from the first weights (0) to the trained ones (1); None if no
    # weights on that line were tried.
    share: float | None = None


def best_candidate(learner: Learner, validation: Validation, state: TrainingState) -> Candidate:
    """The weights with the lowest loss, on the tokens of every evaluation.

    An evaluation is of the average over the latest steps. At the end the last weights are
    evaluated, too: they are better where a model is still learning fast. A training that has its
    first weights still then also tries the straight line from these to the better of the two. A
    model that is trained further on a small text gains what the text teaches and loses some of what
    it knew: between both ends it often predicts better than at either ("Robust fine-tuning of
    zero-shot models", Wortsman et al. 2022: WiSE-FT).
    """
    first = learner.first

    def evaluated(weights: Weights, max_tokens: int) -> Candidate:
        with weights.in_place(learner.model):
            return Candidate(weights, validation.evaluate(max_tokens))

    average = evaluated(learner.average, state.eval_tokens)
    if not state.finished:
        return average

    last = evaluated(Weights.trained(learner.model), state.eval_tokens)  # which it has already
    trained = last if last.result.loss < average.result.loss else average
    if first is None:
        return trained

    few_tokens = tokens_to_search(validation.count(state.eval_tokens))

    def loss_at(share: float) -> float:
        return evaluated(first.lerp(trained.weights, share), few_tokens).result.loss

    share = best_share(loss_at)
    if share < 1.0:
        between = evaluated(first.lerp(trained.weights, share), state.eval_tokens)
        if between.result.loss < trained.result.loss:
            return replace(between, share=share)
    return replace(trained, share=1.0)


def best_share(loss_at: Callable[[float], float]) -> float:
    """The largest share of the way that has nearly the lowest loss.

    The lowest is sought among the eighths above 0, and found if the loss has a single minimum on
    the line. The farther a share is from the first weights, the more the model writes as its text
    does; near the minimum the loss hardly tells the shares apart.
    """
    losses = {share: loss_at(share) for share in _COARSE}
    best = min(losses, key=losses.__getitem__)
    for share in (best + _FINE, best - _FINE):
        if share < 1.0:
            losses[share] = loss_at(share)

    lowest = min(losses.values())
    nearly = [share for share, loss in losses.items() if loss <= (1.0 + NEARLY) * lowest]
    return max(nearly, default=1.0)  # empty if the losses are nan


def tokens_to_search(evaluated: int) -> int:
    """On how many tokens each share is tried, if an evaluation is made on `evaluated`: on half of
    them, within limits. All shares are tried on the same tokens, so few suffice to compare them."""
    fewest, most = _TOKENS
    return min(max(evaluated // 2, fewest), most)


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
