"""Rotary positions: queries and keys are turned by an angle that grows with their position.

The score of a turned query and a turned key then depends on their distance alone.
"RoFormer: Enhanced Transformer with Rotary Position Embedding", Su et al. 2021, section 3.2.
"""

import torch
from torch import Tensor, nn

from .functional import check_sizes


class RotaryPositions(nn.Module):
    """Turn vectors by position: ``x_t -> R(t θ) x_t`` with ``θ_i = base^(-2i / head_dim)``.

    The vector's first half pairs with its second half (component i with i + head_dim / 2),
    as in transformers.

    Args:
        head_dim: size of the vectors, even.
        context_length: positions 0 to context_length - 1 are tabulated.
        base: the larger it is, the more slowly the later components turn.

    Raises:
        ValueError: if head_dim is odd, or a size is below 1.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, head_dim: int, context_length: int, base: float = 10_000.0):
        super().__init__()
        if head_dim % 2:
            raise ValueError(f"rotary positions need an even head_dim, got {head_dim}")
        check_sizes(head_dim=head_dim, context_length=context_length)
        self.base = base

        shape = (context_length, head_dim // 2)
        self.register_buffer("cos", torch.empty(shape, dtype=torch.float32), persistent=False)
        self.register_buffer("sin", torch.empty(shape, dtype=torch.float32), persistent=False)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Compute the tables, in place. As in torch's own layers, this is for a module that was
        made on the device "meta" and has been given memory by `to_empty`."""
        context_length, pairs = self.cos.shape
        # On a CPU, since an Apple GPU has no float64.
        steps = torch.arange(pairs, dtype=torch.float64, device="cpu")
        positions = torch.arange(context_length, dtype=torch.float64, device="cpu")
        frequencies = self.base ** (-steps / pairs)
        angles = torch.outer(positions, frequencies)  # (context_length, head_dim / 2)
        self.cos.copy_(angles.cos())
        self.sin.copy_(angles.sin())

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
