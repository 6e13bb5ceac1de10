"""Rotary positions: queries and keys are turned by an angle that grows with their position.

The score of a turned query and a turned key then depends on their distance alone.
"RoFormer: Enhanced Transformer with Rotary Position Embedding", Su et al. 2021, section 3.2.
"""

import functools

import torch
from torch import Tensor, nn


class RotaryPositions(nn.Module):
    """Turn vectors by position: ``x_t -> R(t θ) x_t`` with ``θ_i = base^(-2i / head_dim)``.

    The vector's first half pairs with its second half (component i with i + head_dim / 2),
    as in transformers.

    Args:
        head_dim: size of the vectors, even.
        context_length: positions 0 to context_length - 1 are tabulated.
        base: the larger it is, the more slowly the later components turn.

    Raises:
        ValueError: if head_dim is odd.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, head_dim: int, context_length: int, base: float = 10_000.0):
        super().__init__()
        if head_dim % 2:
            raise ValueError(f"rotary positions need an even head_dim, got {head_dim}")
        self.base = base

        # What is made under a mode of torch, such as FakeTensorMode, is of no use outside it.
        is_under_a_mode = torch._C._len_torch_dispatch_stack() > 0
        tables = _tables.__wrapped__ if is_under_a_mode else _tables
        cos, sin = tables(head_dim, context_length, base)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Turn `x`, the first row of which is at position `start`.

        Args:
            x: ``(..., T, head_dim)``.
            start: position of the first row; start + T may not exceed context_length.

        Returns:
            The turned vectors, same shape and type.

        Raises:
            ValueError: if the position of a row is not tabulated.
        """
        T = x.shape[-2]
        if start + T > self.cos.shape[0]:
            raise ValueError(
                f"position {start + T - 1} is beyond context_length {self.cos.shape[0]}"
            )

        cos = self.cos[start : start + T]  # (T, head_dim / 2)
        sin = self.sin[start : start + T]  # (T, head_dim / 2)
        first, second = x.chunk(2, dim=-1)  # each (..., T, head_dim / 2)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return turned.to(x.dtype)


@functools.lru_cache(maxsize=8)
def _tables(head_dim: int, context_length: int, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines ``(context_length, head_dim / 2)``, shared by the layers of a model.

    The cached tensors outlive the model that they are first made for; so they are ordinary tensors
    on the CPU, whatever device or mode that model is made under.
    """
    with torch.inference_mode(False), torch.device("cpu"):
        frequencies = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        positions = torch.arange(context_length, dtype=torch.float64)
        angles = torch.outer(positions, frequencies)
        return angles.cos().float(), angles.sin().float()
