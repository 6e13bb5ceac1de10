"""MultiHeadAttention, the layer of the GPT, and the KeyValueCache it uses to generate text."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .functional import check_dropout, check_sizes, later_keys
from .fused import attention, explicit_attention
from .rotary import RotaryPositions

# From queries (b, num_heads, T, head_dim) and keys (b, num_kv_heads, T, head_dim) to others of the
# same shapes.
ProcessHeads = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class KeyValueCache:
    """Keys and values of the tokens read so far, so that they are not computed again.

    The memory is allocated once, for `context_length` tokens, and written in place. So a cache is
    for generating text, not for training: a backward pass works only from outputs since its last
    update, which has changed the keys and values that earlier outputs were computed from.

    Args:
        batch_size: number of sequences read side by side.
        num_kv_heads: key/value heads of the layer.
        context_length: how many tokens fit.
        head_dim: size of a head's keys and values.
        dtype: type of the stored tensors.
        device: where they live.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(
        self,
        batch_size: int,
        num_kv_heads: int,
        context_length: int,
        head_dim: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ):
        check_sizes(
            batch_size=batch_size,
            num_kv_heads=num_kv_heads,
            context_length=context_length,
            head_dim=head_dim,
        )
        shape = (batch_size, num_kv_heads, context_length, head_dim)
        self.keys = torch.empty(shape, dtype=dtype, device=device)
        self.values = torch.empty(shape, dtype=dtype, device=device)
        self.length = 0

    def update(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values ``(b, num_kv_heads, T, head_dim)``.

        Returns:
            All keys and all values so far, ``(b, num_kv_heads, length, head_dim)``, as views.

        Raises:
            ValueError: if they have another shape, or there is no room for them.
        """
        if keys.shape != values.shape:
            both = f"{tuple(keys.shape)} and {tuple(values.shape)}"
            raise ValueError(f"keys and values need the same shape, got {both}")

        b, num_kv_heads, T, head_dim = keys.shape
        room = (*self.keys.shape[:2], self.keys.shape[2] - self.length, self.keys.shape[3])
        if (b, num_kv_heads, head_dim) != (room[0], room[1], room[3]) or room[2] < T:
            raise ValueError(f"keys {tuple(keys.shape)} do not fit into a cache with room {room}")

        start = self.length
        self.length += T
        self.keys[:, :, start : self.length] = keys
        self.values[:, :, start : self.length] = values
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]


class MultiHeadAttention(nn.Module):
    """Causal multi-head attention with dropout and an output projection.

    ``head_h = softmax(Q_h K_hᵀ / sqrt(head_dim) + mask) V_h``, then
    ``[head_1; ...; head_H] W_out`` ("Attention Is All You Need", Vaswani et al. 2017,
    section 3.2.2). Parameters are created in the order query, key, value, out_proj.

    Args:
        d_in: size of each input vector.
        d_out: size of each output vector.
        context_length: the longest sequence it accepts, cached tokens included.
        dropout: probability of dropping an attention weight, in training only.
        num_heads: how many heads.
        qkv_bias: whether the query, key and value projections add a bias.
        num_kv_heads: how many key/value heads; each serves ``num_heads / num_kv_heads`` query
            heads (grouped-query attention, Ainslie et al. 2023). Default: num_heads.
        rotary_base: with a number, queries and keys are turned by their position
            (see :class:`minigpt.attention.RotaryPositions`). Default: no positions.
        rotary: in place of it, a module of your own that changes queries and keys by position:
            called, as that one is, with vectors ``(..., T, head_dim)`` and the position of the
            first.
        qk_norm: whether queries and keys are RMS-normalised in each head, before turning.
        norm_eps: the epsilon of that normalisation.
        causal: whether a token attends only to itself and to earlier tokens.
        out_bias: whether out_proj adds a bias.
        head_dim: size of a head's queries, keys and values; out_proj maps all heads,
            ``num_heads * head_dim`` together, to d_out. Default: d_out / num_heads.
        process_heads: a function, or a module, of queries ``(b, num_heads, T, head_dim)`` and keys
            ``(b, num_kv_heads, T, head_dim)`` that returns two tensors of these shapes: positions
            of your own, for example. It comes after query/key norm and rotary positions. It sees
            a whole sequence from its first token, so that such a layer takes no cache.

    Raises:
        ValueError: if a size is below 1, d_out is not divisible by num_heads where head_dim is left
            out, num_heads not by num_kv_heads, head_dim is odd with rotary positions, rotary is
            given beside rotary_base, or dropout is outside [0, 1).
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        *,
        num_kv_heads: int | None = None,
        rotary_base: float | None = None,
        qk_norm: bool = False,
        norm_eps: float = 1e-6,
        causal: bool = True,
        out_bias: bool = True,
        head_dim: int | None = None,
        rotary: nn.Module | None = None,
        process_heads: ProcessHeads | None = None,
    ):
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_sizes(
            d_in=d_in,
            d_out=d_out,
            context_length=context_length,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=1 if head_dim is None else head_dim,
        )
        if rotary_base is not None and rotary is not None:
            raise ValueError("give rotary_base or rotary, not both")
        if head_dim is None and d_out % num_heads:
            raise ValueError(f"d_out ({d_out}) must be divisible by num_heads ({num_heads})")
        if num_heads % num_kv_heads:
            raise ValueError(
                f"num_heads ({num_heads}) must be divisible by num_kv_heads ({num_kv_heads})"
            )

        self.d_in = d_in
        self.d_out = d_out
        self.context_length = context_length
        self.dropout = check_dropout(dropout)
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = d_out // num_heads if head_dim is None else head_dim
        self.causal = causal
        self.process_heads = process_heads

        q_dim = num_heads * self.head_dim
        kv_dim = num_kv_heads * self.head_dim
        self.W_query = nn.Linear(d_in, q_dim, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, kv_dim, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, kv_dim, bias=qkv_bias)
        self.out_proj = nn.Linear(q_dim, d_out, bias=out_bias)
        self.query_norm = HeadNorm(self.head_dim, norm_eps) if qk_norm else nn.Identity()
        self.key_norm = HeadNorm(self.head_dim, norm_eps) if qk_norm else nn.Identity()
        self.rotary = rotary
        if rotary_base is not None:
            self.rotary = RotaryPositions(self.head_dim, context_length, rotary_base)

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Attend, in the fastest way that is right on the device (`attention` in fused.py).

        Args:
            x: ``(b, T, d_in)``.
            cache: keys and values of the tokens before x; those of x are appended to it.

        Returns:
            ``(b, T, d_out)``.

        Raises:
            ValueError: if x has another shape, the sequence outgrows context_length, or there is
                a cache beside process_heads.
        """
        start = 0 if cache is None else cache.length
        queries, keys, values = self._project(x, cache)
        T = x.shape[1]

        # Torch's `is_causal` lets query 0 see key 0 only, query 1 keys 0 and 1, and so on, which
        # is right only without earlier keys; a single query at the end needs no mask.
        mask = self._mask(T, start, x.device) if start and T > 1 else None
        context = attention(
            queries,
            keys,
            values,
            mask=mask,
            dropout=self.dropout if self.training else 0.0,
            causal=self.causal and T > 1 and start == 0,
        )  # (b, num_heads, T, head_dim)
        return self.out_proj(context.transpose(1, 2).flatten(-2))  # (b, T, d_out)

    def forward_with_weights(
        self, x: Tensor, cache: KeyValueCache | None = None
    ) -> tuple[Tensor, Tensor]:
        """The same step by step; returns the attention weights as well.

        Args:
            x: ``(b, T, d_in)``.
            cache: as in :meth:`forward`.

        Returns:
            The output ``(b, T, d_out)``, and the attention weights before dropout
            ``(b, num_heads, T, S)``, where S counts the cached tokens and x together.

        Raises:
            ValueError: as :meth:`forward`.
        """
        start = 0 if cache is None else cache.length
        queries, keys, values = self._project(x, cache)
        context, weights = explicit_attention(
            queries,
            keys,
            values,
            mask=self._mask(x.shape[1], start, x.device),
            dropout=self.dropout if self.training else 0.0,
        )  # (b, num_heads, T, head_dim), (b, num_heads, T, S)
        return self.out_proj(context.transpose(1, 2).flatten(-2)), weights

    def _project(self, x: Tensor, cache: KeyValueCache | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries ``(b, num_heads, T, head_dim)``, keys and values ``(b, num_kv_heads, S,
        head_dim)``: normed and turned, those of the cache included."""
        if x.dim() != 3 or x.shape[-1] != self.d_in:
            raise ValueError(f"expected (b, T, d_in={self.d_in}), got {tuple(x.shape)}")
        start = 0 if cache is None else cache.length
        end = start + x.shape[1]
        limit = self.context_length
        if end > limit:
            raise ValueError(f"a sequence of {end} tokens is longer than context_length {limit}")

        queries = self.query_norm(self._split(self.W_query(x)))  # (b, num_heads, T, head_dim)
        keys = self.key_norm(self._split(self.W_key(x)))  # (b, num_kv_heads, T, head_dim)
        values = self._split(self.W_value(x))  # (b, num_kv_heads, T, head_dim)
        if self.rotary is not None:
            queries = self.rotary(queries, start)
            keys = self.rotary(keys, start)
        if self.process_heads is not None:
            if cache is not None:
                raise ValueError(
                    "a layer with process_heads takes no cache: the function would see the new "
                    "tokens without those before them"
                )
            queries, keys = self._processed(self.process_heads, queries, keys)

        if cache is not None:
            keys, values = cache.update(keys, values)
        return queries, keys, values

    def _processed(
        self, process_heads: ProcessHeads, queries: Tensor, keys: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What process_heads makes of queries and keys, of the same shapes."""
        found = process_heads(queries, keys)
        shapes = [tuple(part.shape) for part in found]
        expected = [tuple(queries.shape), tuple(keys.shape)]
        if shapes != expected:
            raise ValueError(f"process_heads must return shapes {expected}, got {shapes}")
        return found

    def _split(self, x: Tensor) -> Tensor:
        """(b, T, heads * head_dim) -> (b, heads, T, head_dim)."""
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def _mask(self, T: int, start: int, device: torch.device) -> Tensor | None:
        """Forbidden pairs ``(T, start + T)`` of queries whose first one follows `start` keys."""
        if not self.causal:
            return None
        return later_keys(start, start + T, device)


class HeadNorm(nn.RMSNorm):
    """RMSNorm with its weight converted to the type of its input. Under autocast the input is
    narrow, and the weight is not. A CPU then computes in the narrow type, a GPU in float32."""

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)
