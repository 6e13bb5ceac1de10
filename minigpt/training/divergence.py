"""Whether a training has diverged: a loss, a gradient or a weight is not finite, or the loss has
grown."""

import math
from pathlib import Path

import torch
from torch import nn

from .. import UserError

_FAR_ABOVE = 2.0  # nats a token: a loss that has grown by so much will not fall again


class Diverged(Exception):
    """A training that cannot go on; the message says what is wrong."""


def advice(
    problem: Diverged, step: int, *, kept_in: Path | None, learning_rate: float | None
) -> UserError:
    """What to say of a training that has diverged.

    Args:
        problem: what is wrong.
        step: at which it was noticed.
        kept_in: the run's folder, if good weights are in it.
        learning_rate: of the config; None if the optimizers were given, with rates of their own.
    """
    if step == 0:
        return UserError(f"cannot train from these weights: {problem}", kind="diverged")

    kept = "" if kept_in is None else f"the best weights so far are in {kept_in}; "
    remedy = "train again with lower learning rates"
    if learning_rate is not None:
        remedy = f"train again with --learning-rate {learning_rate / 4:.1g} or less"
    return UserError(f"{problem} at step {step:,}; {kept}{remedy}", kind="diverged")


def check_finite(name: str, value: float) -> None:
    """Raise Diverged if a number is not finite."""
    if not math.isfinite(value):
        raise Diverged(f"the {name} became {value}")


def check_weights(model: nn.Module) -> None:
    """Raise Diverged if a weight is not finite."""
    norms = torch.stack(torch._foreach_norm(list(model.parameters())))
    check_finite("size of the weights", norms.sum().item())


def check_growth(latest: float, first: float, vocab_size: int) -> None:
    """Raise Diverged if the loss in nats a token is far above both the first loss and the loss of
    guessing.

    A model that is trained further on another language begins far above guessing.
    """
    loss_of_guessing = math.log(vocab_size)
    if latest > max(first, loss_of_guessing) + _FAR_ABOVE:
        raise Diverged(f"the loss grew from {first:.1f} to {latest:.1f} nats a token")
