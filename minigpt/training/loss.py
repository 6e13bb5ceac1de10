"""What a training of any network minimises, and the cross-entropy that it is judged by, also on
average over the steps; and whether it has diverged: a loss, a gradient or a weight is not finite,
or the loss has grown.
"""

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .. import UserError
from ..data.batches import IGNORED
from ..model import GPT

# Of a model, inputs and targets, both ``(b, T)``: what is to be minimised, a scalar.
LossFunction = Callable[[nn.Module, Tensor, Tensor], Tensor]

_FAR_ABOVE = 2.0  # nats a token: a loss that has grown by so much will not fall again


class Loss(nn.Module):
    """A model with its loss, as a function of inputs and targets ``(b, T)``.

    Without a `function` the loss is the mean cross-entropy in nats a token. With one it is what the
    function returns, which is not called if no target counts.

    The cross-entropy, which tells how the training goes, is computed in both cases. With a function
    it takes the logits that the model gives when the function calls it with just these inputs,
    while the loss is :meth:`watching`. If the function never does, another forward pass without
    gradients gives the logits.

    With `all_count` every target counts, so that nobody has to wait for a GPU to look at them.
    """

    def __init__(
        self,
        model: nn.Module,
        function: LossFunction | None = None,
        *,
        all_count: bool = False,
    ):
        super().__init__()
        self.model = model
        self._all_count = all_count
        # In a partial: parameters of a function that is a module are no part of the model.
        self._function = None if function is None else partial(function)
        self._seen = threading.local()  # by each worker, which has a part of the batch of its own

    def forward(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """What is minimised, and the mean cross-entropy in nats a token, without gradients."""
        if self._function is None or not (self._all_count or (targets != IGNORED).any()):
            if _has_usual_loss(self.model):
                assert isinstance(self.model, GPT)
                loss = self.model.loss(inputs, targets)
            else:
                loss = _mean_of_counted(self.model(inputs), targets)
            return loss, loss.detach()

        self._seen.inputs = inputs
        self._seen.logits = None
        loss = self._function(self.model, inputs, targets)
        logits = self._seen.logits
        self._seen.inputs = None
        self._seen.logits = None

        with torch.no_grad():
            if logits is None:
                logits = self.model(inputs)
            return loss, _mean_of_counted(logits, targets)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Within, logits that the model gives inside the function are noted."""
        if self._function is None:
            yield
            return
        handle = self.model.register_forward_hook(self.note)
        try:
            yield
        finally:
            handle.remove()

    def note(self, model: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        """The hook that notes the logits of a model."""
        inputs = getattr(self._seen, "inputs", None)
        is_of_the_batch = len(arguments) == 1 and arguments[0] is inputs
        if is_of_the_batch and isinstance(output, Tensor):
            self._seen.logits = output.detach()


def check_minimised(loss: Any) -> None:
    """Refuse what a loss function returned if it is not a number that can be minimised."""
    if not isinstance(loss, Tensor):
        raise UserError(f"loss must return a tensor, got {type(loss).__name__}")
    if loss.dim() != 0:
        shape = tuple(loss.shape)
        raise UserError(f"loss must return one number, a tensor of shape (), got {shape}")
    if not loss.requires_grad:
        raise UserError("what loss returned does not depend on any parameter that is trained")


@torch.no_grad()
def token_cross_entropy(model: nn.Module, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The cross-entropy in nats of each target, 0 if it does not count, and whether it is the
    likeliest token. All are ``(b, T)``."""
    if _has_usual_loss(model):
        assert isinstance(model, GPT)
        return model.token_losses(inputs, targets)
    logits = model(inputs)  # (b, T, vocab_size)
    return _cross_entropy(logits, targets), logits.argmax(-1) == targets


def smoothed(average: float, value: float, count: int) -> float:
    """A running average that has seen `count` values and now sees one more.

    The mean of the first twenty values, then an exponential average of that memory.
    """
    return average + max(0.05, 1 / (count + 1)) * (value - average)


def _mean_of_counted(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean cross-entropy of logits ``(b, T, vocab_size)`` over the targets ``(b, T)`` that are
    not IGNORED; 0 if all are."""
    losses = _cross_entropy(logits, targets)  # (b, T), 0 for an ignored one
    return losses.sum() / (targets != IGNORED).sum().clamp(min=1)


def _has_usual_loss(model: nn.Module) -> bool:
    """Whether `GPT.loss` is the cross-entropy of the logits that `forward` returns: a subclass, or
    a GPT with another head, may compute something else in `forward`."""
    if type(model) is not GPT or "forward" in vars(model):
        return False
    head = model.head
    return type(head) is nn.Linear and head.bias is None


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Of logits ``(b, T, vocab_size)`` and targets ``(b, T)``: nats for each target, ``(b, T)``, in
    float32 or wider."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    losses = F.cross_entropy(wide.flatten(0, 1), targets.flatten(), reduction="none")  # (b * T,)
    return losses.view(targets.shape)


# Whether a training has diverged


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
