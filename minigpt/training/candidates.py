"""Which weights are evaluated, and kept if they are the best so far."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from .checkpoint import Trained, TrainingState
from .evaluation import Evaluation
from .interpolation import SHARES_TRIED, best_share, interpolated_in_place, tokens_to_search
from .validation import Validation

InPlace = Callable[[], AbstractContextManager[None]]  # within, the model has some weights


@dataclass(frozen=True)
class Candidate:
    """Weights, and how good they are."""

    result: Evaluation
    in_place: InPlace
    # How far these lie on the way from the first weights (0) to the trained ones (1); None if no
    # weights on that line were tried.
    share: float | None = None


class Candidates:
    """The weights of a training that may be kept.

    An evaluation is of the average over the latest steps. At the end the last weights are
    evaluated, too: they are better where a model is still learning fast. A training that keeps its
    first weights then also tries weights on the line from the first ones to the better of the two.
    """

    def __init__(self, trained: Trained, validation: Validation):
        self._trained = trained
        self._validation = validation

    def best(self, state: TrainingState) -> Candidate:
        """The candidate with the lowest loss, on the tokens of every evaluation."""
        average = self._evaluated(self._trained.average.in_place, state)
        if not state.finished:
            return average
        last = self._evaluated(contextlib.nullcontext, state)
        best = last if last.result.loss < average.result.loss else average
        return self._on_line(best, state) if self._trained.first else best

    def seconds_at_end(self, eval_tokens: int) -> float:
        """The seconds that all evaluations at the end take."""
        an_evaluation = self._validation.seconds(eval_tokens)
        if not self._trained.first:
            return 2 * an_evaluation
        a_share = self._validation.seconds(self._tokens_to_search(eval_tokens))
        return 3 * an_evaluation + SHARES_TRIED * a_share

    def _tokens_to_search(self, eval_tokens: int) -> int:
        return tokens_to_search(self._validation.count(eval_tokens))

    def _on_line(self, trained: Candidate, state: TrainingState) -> Candidate:
        """The weights with nearly the lowest loss on the line from the first weights to the trained
        ones, these included; of several the farthest from the first weights."""
        max_tokens = self._tokens_to_search(state.eval_tokens)

        def loss_at(share: float) -> float:
            with self._between(trained.in_place, share):
                return self._validation.evaluate(max_tokens).loss

        share = best_share(loss_at)
        if share < 1.0:
            found = self._evaluated(lambda: self._between(trained.in_place, share), state)
            if found.result.loss < trained.result.loss:
                return Candidate(found.result, found.in_place, share)
        return Candidate(trained.result, trained.in_place, share=1.0)

    @contextlib.contextmanager
    def _between(self, in_place: InPlace, share: float) -> Iterator[None]:
        """Within, the model has the weights at a share of the way from the first weights to those
        that `in_place` gives it."""
        with (
            in_place(),
            interpolated_in_place(self._trained.model, self._trained.first, share),
        ):
            yield

    def _evaluated(self, in_place: InPlace, state: TrainingState) -> Candidate:
        with in_place():
            return Candidate(self._validation.evaluate(state.eval_tokens), in_place)
