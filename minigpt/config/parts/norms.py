"""The norms of a network: of each its parameters, torch and numpy forms, and its name elsewhere.

`NORMS` is the table. A norm is a value without state; its two forms hold the weights.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import nn

Array = NDArray[np.floating[Any]]
NamedArrays = Mapping[str, Array]  # the weights of a network, by the names of its parameters
Shapes = dict[str, tuple[int, ...]]


class NumpyNorm(Protocol):
    """A norm with its weights, as the glass engine uses it."""

    bias: Array | None  # what is added last, (d,)

    def __call__(self, x: Array) -> Array:
        """Each vector normed by itself, ``(..., d)`` to ``(..., d)``."""

    def direction_before(self, direction: NDArray[np.float64], x: Array) -> NDArray[np.float64]:
        """What a direction after the norm is before it, with the scale that the norm has at x and
        that is kept: its dot product with a part of x is what that part adds in the direction after
        the norm, the bias apart. All are ``(d,)``."""


class Norm(Protocol):
    """A kind of norm, for vectors of `width` numbers."""

    gguf_epsilon: str  # what GGUF calls its epsilon

    def shapes(self, width: int, bias: bool) -> Shapes:
        """Its parameters; `bias` is whether the network has biases."""

    def torch_form(self, width: int, eps: float, bias: bool) -> "nn.Module":
        """A new one, for training: ``(..., width)`` to ``(..., width)``."""

    def numpy_form(self, weights: NamedArrays, name: str, eps: float) -> NumpyNorm:
        """The one whose parameters have this `name` before theirs."""


class RMSNorm:
    """``x / sqrt(mean(x²) + eps) * weight`` (Zhang and Sennrich 2019)."""

    gguf_epsilon = "layer_norm_rms_eps"

    def shapes(self, width: int, bias: bool) -> Shapes:
        return {"weight": (width,)}

    def torch_form(self, width: int, eps: float, bias: bool) -> "nn.Module":
        from torch import nn

        return nn.RMSNorm(width, eps)

    def numpy_form(self, weights: NamedArrays, name: str, eps: float) -> NumpyNorm:
        return ScaledNorm(weights[f"{name}.weight"], eps)


class LayerNorm:
    """``(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`` (Ba et al. 2016)."""

    gguf_epsilon = "layer_norm_eps"

    def shapes(self, width: int, bias: bool) -> Shapes:
        return {"weight": (width,), "bias": (width,)} if bias else {"weight": (width,)}

    def torch_form(self, width: int, eps: float, bias: bool) -> "nn.Module":
        from torch import nn

        return nn.LayerNorm(width, eps, bias=bias)

    def numpy_form(self, weights: NamedArrays, name: str, eps: float) -> NumpyNorm:
        bias = weights.get(f"{name}.bias")
        return ScaledNorm(weights[f"{name}.weight"], eps, centres=True, bias=bias)


class ScaledNorm:
    """The numpy form of both: RMSNorm, or LayerNorm, which `centres` x first and may add a bias.
    With weights ``(heads, d)``, each head has a row of them."""

    def __init__(
        self, weight: Array, eps: float, *, centres: bool = False, bias: Array | None = None
    ):
        # x / sqrt(x·x / d + eps) * weight  =  x / sqrt(x·x + d eps) * (sqrt(d) weight)
        d = weight.shape[-1]
        self.scale = weight * np.float32(math.sqrt(d))
        self.d_eps = np.array(d * eps, np.float32)  # a 0-d array adds faster than a Python float
        self.centres = centres
        self.bias = bias

    def __call__(self, x: Array) -> Array:
        if self.centres:
            x = x - np.add.reduce(x, axis=-1, keepdims=True) / x.shape[-1]
        x = x / np.sqrt(np.vecdot(x, x)[..., None] + self.d_eps) * self.scale
        return x if self.bias is None else x + self.bias

    def direction_before(self, direction: NDArray[np.float64], x: Array) -> NDArray[np.float64]:
        x = x.astype(np.float64)
        if self.centres:
            x = x - x.mean()
        direction = direction * self.scale / np.sqrt(x @ x + self.d_eps)

        if self.centres:  # (part - mean(part)) · direction  =  part · (direction - mean(direction))
            direction = direction - direction.mean()
        return direction


NORMS: dict[str, Norm] = {"rms": RMSNorm(), "layer": LayerNorm()}
