"""The average of the weights: what is evaluated and kept. It is kept outside the optimizers, so
that it works with any.
"""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ..model import named_parameters

_MEMORY = 0.1  # of the steps so far


class WeightAverage:
    """Each trained weight's average over about the last tenth of the steps so far.

    What chance has added to a weight cancels out: the average predicts better than the weights
    that it is made of ("Analyzing and Improving the Training Dynamics of Diffusion Models", Karras
    et al. 2024, section 3, average over a share of the training).

    Attributes:
        averages: for the name of each parameter that is trained, a tensor of its shape.
    """

    def __init__(self, model: nn.Module):
        self._weights: dict[str, Tensor] = {
            name: parameter.detach()  # which shares its memory
            for name, parameter in named_parameters(model)
            if parameter.requires_grad
        }
        self.averages = {name: weight.clone() for name, weight in self._weights.items()}

    def update(self, step: int) -> None:
        """Move the averages a little towards the weights after a step; the first step is 0."""
        rate = 1 / max(_MEMORY * step, 1.0)
        averages = list(self.averages.values())
        torch._foreach_lerp_(averages, list(self._weights.values()), rate)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Within, the model's weights are the averages."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for name, weight in self._weights.items():
            kept = weight.clone()
            weight.copy_(self.averages[name])
            self.averages[name].copy_(kept)
