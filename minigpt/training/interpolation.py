"""The straight line from the weights that a training began with to the trained ones, on which the
weights to keep are sought.

A model that is trained further on a small text gains what the text teaches and loses some of what
it knew. Between both ends of the line it often predicts better than at either ("Robust fine-tuning
of zero-shot models", Wortsman et al. 2022: WiSE-FT).
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn

from ..model import named_parameters
from ..runs.folder import NEARLY

_COARSE = (1.0, 0.75, 0.5, 0.25)  # shares of the way that are tried first
_FINE = 0.125  # so much less and so much more than the best of these is tried next
SHARES_TRIED = len(_COARSE) + 2
_TOKENS = (1024, 4096)  # that each share is tried on, at least and at most


def first_weights(model: nn.Module) -> dict[str, Tensor]:
    """Copies of the weights that are trained, as they are now, by the names of the parameters."""
    return {name: weight.clone() for name, weight in _trained_weights(model).items()}


def interpolated(
    first: Mapping[str, Tensor], trained: Mapping[str, Tensor], share: float
) -> dict[str, Tensor]:
    """The weights at a share of the way from the first (0) to the trained ones (1), exactly these
    at either end, by name."""
    return {name: torch.lerp(weight, trained[name], share) for name, weight in first.items()}


@contextlib.contextmanager
def interpolated_in_place(
    model: nn.Module, first: Mapping[str, Tensor], share: float
) -> Iterator[None]:
    """Within, the model's weights are at a share of the way from the first to its own."""
    weights = _trained_weights(model)
    own = {name: weight.clone() for name, weight in weights.items()}
    found = interpolated(first, own, share)
    try:
        for name, weight in weights.items():
            weight.copy_(found[name])
        yield
    finally:
        for name, weight in weights.items():
            weight.copy_(own[name])


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


def _trained_weights(model: nn.Module) -> dict[str, Tensor]:
    """The model's weights that are trained, not copied; a weight with two names is there once."""
    return {
        name: parameter.detach()
        for name, parameter in named_parameters(model)
        if parameter.requires_grad
    }
