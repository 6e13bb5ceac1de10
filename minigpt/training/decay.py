"""Weight decay towards the weights that a training began with, instead of towards zero."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..config import TrainConfig


def first_weights(
    model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], config: TrainConfig
) -> dict[str, Tensor]:
    """The weights that decay pulls towards, by the names of the parameters: copies of those that
    the model has now. Empty if it pulls towards zero.

    What a model has learned before is kept, unless the text says otherwise ("Explicit Inductive
    Bias for Transfer Learning with Convolutional Networks", Li et al. 2018: L2-SP). With rate r,
    decay d, first weights w0 and the step u of the optimizer, a step is
    ``w <- w - r d (w - w0) - r u``. The optimizers of a config compute ``(1 - r d) w - r u``; the
    rest, ``r d w0``, is added after each of their steps.
    """
    if config.decay_towards == "zero":
        return {}

    names = {parameter: name for name, parameter in model.named_parameters()}
    first = {
        parameter: parameter.detach().clone()
        for optimizer in optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
        if group["weight_decay"] > 0
    }

    @torch.no_grad()
    def pull_back(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            decayed = [p for p in group["params"] if p in first and p.grad is not None]
            if decayed:
                share = group["lr"] * group["weight_decay"]
                torch._foreach_add_(decayed, [first[p] for p in decayed], alpha=share)

    for optimizer in optimizers:
        optimizer.register_step_post_hook(pull_back)
    return {names[parameter]: tensor for parameter, tensor in first.items()}
