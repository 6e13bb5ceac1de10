"""A model's weights in fewer bytes, since reading them is most of what a token costs."""

from typing import Literal

import torch
from torch import Tensor, nn

from ..model import GPT

Precision = Literal["float32", "bfloat16", "int8"]

_FEW_ROWS = 32  # up to so many, a product with int8 weights beats one with weights turned back
_KERNEL_WIDTH = 32  # torch's kernel reads weights by so many, and past the end of other matrices


def in_precision(model: GPT, precision: Precision) -> GPT:
    """The model, changed in place to weights of that precision.

    bfloat16 halves all of it and computes in bfloat16. int8 stores the matrices of linear layers,
    the head included, in a byte a weight and computes everything else in float32; a matrix whose
    rows are no multiple of 32 long stays as it is.
    """
    if precision == "bfloat16":
        return model.to(torch.bfloat16)
    if precision == "int8":
        for module in tuple(model.modules()):
            for name, child in tuple(module.named_children()):
                if type(child) is nn.Linear and child.in_features % _KERNEL_WIDTH == 0:
                    setattr(module, name, Int8Linear(child))
    return model


class Int8Linear(nn.Module):
    """A linear layer with int8 weights: ``y = scale * (x Wᵀ) + b``, one scale for each output.

    Symmetric and rounded to the nearest ("LLM.int8()", Dettmers et al. 2022, section 2.1, for the
    weights only).

    Args:
        linear: whose weights ``(d_out, d_in)`` are rounded; d_in is a multiple of 32.
    """

    weight: Tensor
    scale: Tensor

    def __init__(self, linear: nn.Linear):
        super().__init__()
        weight = linear.weight.detach().float()
        # In bfloat16, which torch's kernel wants.
        scale = (weight.abs().amax(dim=1).clamp_min(1e-12) / 127).bfloat16()  # (d_out,)
        self.register_buffer("weight", (weight / scale[:, None]).round().clamp(-127, 127).char())
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., d_in)`` to ``(..., d_out)``."""
        d_out, d_in = self.weight.shape
        rows = x.reshape(-1, d_in)  # (n, d_in)
        if len(rows) <= _FEW_ROWS and x.device.type == "cpu":
            # torch's kernel is fast with bfloat16 vectors.
            y = torch._weight_int8pack_mm(rows.bfloat16(), self.weight, self.scale)  # (n, d_out)
        else:
            y = rows @ (self.weight * self.scale[:, None]).to(x.dtype).T
        y = y.to(x.dtype)
        return (y if self.bias is None else y + self.bias).view(*x.shape[:-1], d_out)
