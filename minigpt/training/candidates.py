"""Which weights are evaluated, and kept if they are the best so far.

An evaluation is of the average over the latest steps. At the end the last weights are evaluated,
too: they are better where a model is still learning fast. A training that has its first weights
still then also tries the straight line from these to the better of the two. A model that is trained
further on a small text gains what the text teaches and loses some of what it knew: between both
ends it often predicts better than at either ("Robust fine-tuning of zero-shot models",
Wortsman et al. 2022: WiSE-FT).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..runs.folder import NEARLY
from .checkpoint import Learner, TrainingState
from .evaluation import Evaluation, Validation
from .weights import Weights

_COARSE = (1.0, 0.75, 0.5, 0.25)  # shares of the way that are tried first
_FINE = 0.125  # so much less and so much more than the best of these is tried next
SHARES_TRIED = len(_COARSE) + 2
_TOKENS = (1024, 4096)  # that each share is tried on, at least and at most


@dataclass(frozen=True)
class Candidate:
    """Weights, and how good they are."""

    weights: Weights
    result: Evaluation
    # How far these lie on the way from the first weights (0) to the trained ones (1); None if no
    # weights on that line were tried.
    share: float | None = None


def best_candidate(learner: Learner, validation: Validation, state: TrainingState) -> Candidate:
    """The weights with the lowest loss, on the tokens of every evaluation."""
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


def seconds_at_end(learner: Learner, validation: Validation, eval_tokens: int) -> float:
    """The seconds that all evaluations at the end take."""
    an_evaluation = validation.seconds(eval_tokens)
    if learner.first is None:
        return 2 * an_evaluation
    a_share = validation.seconds(tokens_to_search(validation.count(eval_tokens)))
    return 3 * an_evaluation + SHARES_TRIED * a_share
