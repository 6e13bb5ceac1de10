"""Self-attention built up one idea at a time, up to the last class before MultiHeadAttention.

SelfAttentionV1 (trainable matrices) -> SelfAttentionV2 (linear layers) -> CausalAttention
(mask, dropout, batches) -> MultiHeadAttentionWrapper (several heads side by side).
They are for reading and learning; the model uses the class in `multi_head.py`. Their names and
their order are those of chapter 3 of Sebastian Raschka's "Build a Large Language Model (From
Scratch)".
"""

import torch
from torch import Tensor, nn

from .functional import causal_mask, check_dropout, check_sizes, scaled_dot_product_attention


class SelfAttentionV1(nn.Module):
    """Self-attention with three trainable matrices, drawn from a uniform distribution.

    ``Q = x W_query, K = x W_key, V = x W_value``, then ``softmax(Q Kᵀ / sqrt(d_out)) V``.

    Args:
        d_in: size of each input vector.
        d_out: size of each query, key, value and context vector.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        check_sizes(d_in=d_in, d_out=d_out)
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., T, d_in)`` to context vectors ``(..., T, d_out)``."""
        return scaled_dot_product_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)


class SelfAttentionV2(nn.Module):
    """The same with linear layers, which are initialised in a way that trains better.

    Args:
        d_in: size of each input vector.
        d_out: size of each query, key, value and context vector.
        qkv_bias: whether the three projections add a bias.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False):
        super().__init__()
        check_sizes(d_in=d_in, d_out=d_out)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., T, d_in)`` to context vectors ``(..., T, d_out)``."""
        return scaled_dot_product_attention(self.W_query(x), self.W_key(x), self.W_value(x))


class CausalAttention(nn.Module):
    """Self-attention to the token itself and earlier ones only, with dropout on its weights.

    Args:
        d_in: size of each input vector.
        d_out: size of each query, key, value and context vector.
        context_length: the longest sequence it accepts.
        dropout: probability of dropping an attention weight, in training only.
        qkv_bias: whether the three projections add a bias.

    Raises:
        ValueError: if a size is below 1, or dropout is outside [0, 1).
    """

    mask: Tensor

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ):
        super().__init__()
        check_sizes(d_in=d_in, d_out=d_out, context_length=context_length)
        self.dropout = check_dropout(dropout)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.register_buffer("mask", causal_mask(context_length), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(b, T, d_in)`` to context vectors ``(b, T, d_out)``.

        Raises:
            ValueError: if T is more than context_length.
        """
        T, limit = x.shape[-2], len(self.mask)
        if limit < T:
            raise ValueError(f"a sequence of {T} tokens is longer than context_length {limit}")
        return scaled_dot_product_attention(
            self.W_query(x),  # (b, T, d_out)
            self.W_key(x),  # (b, T, d_out)
            self.W_value(x),  # (b, T, d_out)
            mask=self.mask[:T, :T],
            dropout=self.dropout if self.training else 0.0,
        )


class MultiHeadAttentionWrapper(nn.Module):
    """Several causal heads, each with its own projections; their outputs are concatenated.

    Args:
        d_in: size of each input vector.
        d_out: size of each head's context vectors.
        context_length: the longest sequence it accepts.
        dropout: probability of dropping an attention weight, in training only.
        num_heads: how many heads.
        qkv_bias: whether the projections add a bias.

    Raises:
        ValueError: if a size is below 1, or dropout is outside [0, 1).
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ):
        super().__init__()
        check_sizes(num_heads=num_heads)
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
            for _ in range(num_heads)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(b, T, d_in)`` to context vectors ``(b, T, num_heads * d_out)``."""
        return torch.cat([head(x) for head in self.heads], dim=-1)
