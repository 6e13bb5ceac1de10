"""The evaluations during a training: on how many tokens, and what they take."""

import itertools
import time
from collections.abc import Iterable, Iterator

from torch import Tensor, nn

from .. import UserError
from ..config import EvaluationConfig, TrainConfig
from ..data.batches import Dataset
from . import distributed, workers
from .checkpoint import TrainingState
from .evaluation import Evaluation, Window, evaluate_windows, spread_windows
from .limits import TrainingLimits
from .precision import dtype_of

_FEWEST_WINDOWS = 4  # to evaluate on


class Validation:
    """Evaluates a model, as it is at the moment, on the validation text of a dataset."""

    def __init__(
        self,
        model: nn.Module,
        dataset: Dataset,
        config: TrainConfig,
        *,
        context_length: int,
        byte_lengths: Tensor,
    ):
        self._model = model
        marked = dataset.marked_validation
        self._tokens = dataset.validation if marked is None else marked
        self._byte_lengths = byte_lengths
        self._context_length = context_length
        self._precision = dtype_of(config)
        # No more windows than in a step, which takes more memory for each.
        in_a_step = config.micro_batch_size or config.batch_size // distributed.world_size()
        self._at_once = min(in_a_step, EvaluationConfig.batch_size)
        self._seconds_per_token = 0.0

    def evaluate(self, max_tokens: int) -> Evaluation:
        """Evaluate on at most `max_tokens` tokens of the text, always the same ones."""
        return self._evaluate(self._windows(max_tokens))

    def count(self, max_tokens: int) -> int:
        """How many tokens an evaluation on at most `max_tokens` reads, counted or not."""
        return _count(self._windows(max_tokens))

    def seconds(self, max_tokens: int) -> float:
        """The seconds that an evaluation on at most `max_tokens` takes; 0 before :meth:`plan`."""
        return self._seconds_per_token * self.count(max_tokens)

    def plan(self, state: TrainingState, config: TrainConfig, limits: TrainingLimits) -> None:
        """Measure how long an evaluation takes. In a new training by time, choose how many tokens
        to evaluate on, so that all evaluations together take a tenth of it."""
        self._seconds_per_token = self._measured(config.eval_tokens)
        if state.step == 0:
            state.eval_tokens = config.eval_tokens
            if config.steps is None:
                left = max(limits.seconds_to_deadline(), 0.0)
                seconds = 0.1 * left / config.num_evals
                fewest = _FEWEST_WINDOWS * self._context_length
                affordable = max(fewest, int(seconds / self._seconds_per_token))
                state.eval_tokens = min(config.eval_tokens, affordable)

    def _measured(self, most: int) -> float:
        """The seconds a token of an evaluation on `most` tokens, measured on a few windows.

        As many windows are computed at once as later, so that a lack of memory shows now.
        """
        number = max(self._at_once, workers.count()) * distributed.world_size()
        windows = list(itertools.islice(self._windows(most), number))
        self._evaluate(windows)  # the first one is slow
        start = time.perf_counter()  # time.monotonic may stand still for 16 ms on Windows
        self._evaluate(windows)
        took = distributed.on_main(lambda: time.perf_counter() - start)
        return took / _count(windows)

    def _windows(self, max_tokens: int) -> Iterator[Window]:
        return spread_windows(self._tokens, self._context_length, max_tokens)

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


def _count(windows: Iterable[Window]) -> int:
    """How many tokens the windows predict if all count."""
    return sum(len(window) - 1 for window in windows)
