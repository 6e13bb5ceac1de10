"""Weights: named tensors of a network. Copies are averaged over steps, mixed with others, kept as
the best ones, and put in the place of the network's own while they are evaluated or saved.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..system.networks import named_parameters, tensors_of

_MEMORY = 0.1  # of the steps so far


@dataclass(eq=False)
class Weights:
    """Tensors of a network, by their names in it; a tensor with two names is there once."""

    tensors: dict[str, Tensor]

    @classmethod
    def trained(cls, model: nn.Module) -> "Weights":
        """The parameters of a model that are trained; not copied, so they change with it."""
        parameters = named_parameters(model)
        return cls({name: p.detach() for name, p in parameters if p.requires_grad})

    def copy(self) -> "Weights":
        """The same weights in memory of their own."""
        return Weights({name: tensor.clone() for name, tensor in self.tensors.items()})

    def lerp(self, other: "Weights", share: float) -> "Weights":
        """New weights at a share of the straight way from these (0) to others (1), exactly these
        or the others at either end."""
        pairs = self.tensors.items()
        return Weights({name: torch.lerp(t, other.tensors[name], share) for name, t in pairs})

    def put_into(self, model: nn.Module) -> None:
        """Give a model these weights; it keeps its own where there are none of these."""
        own = _tensors_by_name(model)
        for name, tensor in self.tensors.items():
            own[name].copy_(tensor)

    @contextlib.contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """Within, a model has these weights. Meanwhile its own are kept here: to swap the two
        tensor by tensor takes no more memory than one tensor."""
        self._swap(model)
        try:
            yield
        finally:
            self._swap(model)

    def _swap(self, model: nn.Module) -> None:
        own = _tensors_by_name(model)
        for name, tensor in self.tensors.items():
            kept = own[name].clone()
            own[name].copy_(tensor)
            tensor.copy_(kept)


class WeightAverage(Weights):
    """Each trained weight's average over about the last tenth of the steps so far: what is
    evaluated and kept. It is computed outside the optimizers, so that it works with any.

    What chance has added to a weight cancels out: the average predicts better than the weights
    that it is made of ("Analyzing and Improving the Training Dynamics of Diffusion Models", Karras
    et al. 2024, section 3, average over a share of the training).
    """

    def __init__(self, model: nn.Module):
        latest = Weights.trained(model)
        super().__init__(latest.copy().tensors)
        self._latest = list(latest.tensors.values())

    def update(self, step: int) -> None:
        """Move the averages a little towards the weights after a step; the first step is 0."""
        rate = 1 / max(_MEMORY * step, 1.0)
        torch._foreach_lerp_(list(self.tensors.values()), self._latest, rate)


def _tensors_by_name(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and saved buffers of a model, not copied."""
    parameters = {name: parameter.detach() for name, parameter in named_parameters(model)}
    return tensors_of(model) | parameters
