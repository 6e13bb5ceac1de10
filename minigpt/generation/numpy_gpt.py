"""The glass engine: the whole GPT in numpy, token ids in, logits out, nothing in between hidden.

It computes what `model.py` does, without torch. The weights are used where they lie, in memory or
in a mapped file; only small ones are copied. `NumpyGPT.streams` is the model, `Layer` holds its
equations, whatever parts it is made of. In shapes, head_dim is `GPTConfig.head_size`.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..config import GPTConfig, check_shapes
from ..config.parts.norms import NORMS, NamedArrays, ScaledNorm
from ..config.parts.positions import POSITIONS, NumpyTurn
from .window import Array, TokenIds

Heads = Collection[tuple[int, int]]  # (layer, head), counted from 0

WORTH_A_GPU = 50_000_000  # parameters: with fewer, a text is written before a GPU has begun
_AT_ONCE = 256  # tokens of a prompt: the attention scores of more would need much memory
_FEW = 64  # vectors: up to so many, BLAS is up to twice as fast at (W xᵀ)ᵀ as at x Wᵀ
_SMALL = 1 << 20  # weights: matrices of fewer may be copied into one, for a single product
_ZERO = np.float32(0)  # beside a Python 0.0, np.where would give float64
_without_warnings = np.errstate(all="ignore")  # of damaged weights, which show in the logits


@dataclass(frozen=True)
class Record:
    """What happened inside a model while it read T tokens."""

    attention: Array  # (num_layers, num_heads, T, T), the weights: rows sum to 1
    residual: Array  # (num_layers + 1, T, emb_dim): the embedding, then the stream after each layer


class Cache(NamedTuple):
    """Keys and values of the tokens already read, of several texts side by side."""

    keys_values: Array  # (2, num_layers, b, context_length, kv_heads, head_dim)
    lengths: TokenIds  # (b,), in tokens

    def part(self, texts: slice) -> "Cache":
        """The same memory, for some of the texts."""
        return Cache(self.keys_values[:, :, texts], self.lengths[texts])

    def fill(self, start: "Cache") -> "Cache":
        """Copy the one text in `start` into every row; return self."""
        S = int(start.lengths[0])
        self.lengths[:] = S
        self.keys_values[:, :, :, :S] = start.keys_values[:, :, :, :S]
        return self


class NewTokens(NamedTuple):
    """The positions of T new tokens of each text. With them the longest text has S tokens."""

    in_text: Any  # a slice of T positions, if all texts are equally long; else (b, T)
    in_cache: tuple[Any, Any]  # the index (text, position) of the new tokens in (b, S)
    mask: Array | None  # (1 or b, 1, 1, T, S): -inf hides a key, 0 does not; None: nothing to hide
    turn: NumpyTurn | None  # of the queries and keys of the new tokens; None: they are not turned


class NumpyGPT:
    """A trained GPT; a UserError if the weights do not fit the config."""

    def __init__(self, config: GPTConfig, weights: NamedArrays):
        check_shapes(config, {name: array.shape for name, array in weights.items()})
        self.config = config
        self.weights = weights
        self.context_length = config.context_length
        self.layers = [Layer(config, weights, f"blocks.{i}") for i in range(config.num_layers)]
        self.final_norm = NORMS[config.norm].numpy_form(weights, "final_norm", config.norm_eps)
        self._head = Linear(weights, "token_embedding" if config.tie_embeddings else "head")
        self._positions = POSITIONS[config.positions].numpy_form(config, weights)

    @property
    def num_parameters(self) -> int:
        """How many numbers the model has learned; a tied head counts once."""
        return sum(array.size for array in self.weights.values())

    def streams(
        self,
        token_ids: TokenIds,
        cache: Cache | None = None,
        heads_off: Heads = (),
        hidden: Sequence[int] = (),
    ) -> Iterator[tuple[Array, Array | None]]:
        """The residual stream and the attention weights, layer after layer, for tokens ``(b, T)``.

        First comes the embedding ``(b, T, emb_dim)`` with None, then the stream after each layer
        with its attention weights ``(b, num_heads, T, S)``. S is the length of the longest text in
        the cache, these tokens included. The context vectors of `heads_off` are set to zero. No
        head may look from these tokens at the positions `hidden`, which are in the cache.
        """
        b, T = token_ids.shape
        if cache is None:
            cache = self.new_cache(b)
        S = int(cache.lengths.max()) + T
        if self.config.context_length < S:
            raise ValueError(f"{S} tokens do not fit into the model's context")
        at = self._new_tokens(cache.lengths, T, hidden)

        x = self.weights["token_embedding.weight"][token_ids]  # (b, T, emb_dim)
        if self._positions.vectors is not None:
            x = x + self._positions.vectors[at.in_text]
        yield x, None

        cache.lengths[:] += T  # each layer writes the keys and values of these tokens
        keys, values = cache.keys_values[:, :, :, :S]  # each (num_layers, b, S, kv_heads, head_dim)
        x = x.reshape(b * T, -1)
        for i, layer in enumerate(self.layers):
            off = [head for in_layer, head in heads_off if in_layer == i]
            x, weights = layer(x, keys[i], values[i], at, off)  # (b * T, emb_dim)
            yield x.reshape(b, T, -1), weights

    @_without_warnings
    def last_stream(
        self,
        token_ids: TokenIds,
        cache: Cache | None = None,
        heads_off: Heads = (),
        hidden: Sequence[int] = (),
    ) -> Array:
        """The residual stream after the last layer, for tokens ``(b, T)``: ``(b, T, emb_dim)``."""
        for stream, _ in self.streams(token_ids, cache, heads_off, hidden):
            last = stream  # the others are not kept in memory
        return last

    @_without_warnings
    def last_stream_from(self, layer: int, x: Array, heads_off: Heads = ()) -> Array:
        """The residual stream after the last layer ``(b, T, emb_dim)``, for texts whose stream
        before `layer` (from 0) is x ``(b, T, emb_dim)``."""
        b, T, _ = x.shape
        cache = self.new_cache(b)
        at = self._new_tokens(cache.lengths, T)
        keys, values = cache.keys_values[:, :, :, :T]  # each (num_layers, b, T, kv_heads, head_dim)

        x = x.reshape(b * T, -1)
        for i in range(layer, len(self.layers)):
            off = [head for in_layer, head in heads_off if in_layer == i]
            x, _ = self.layers[i](x, keys[i], values[i], at, off)  # (b * T, emb_dim)
        return x.reshape(b, T, -1)

    @_without_warnings
    def logits(self, x: Array) -> Array:
        """The logits ``(..., vocab_size)`` of a residual stream ``(..., emb_dim)``. For a record's
        `residual`, what the model would predict after each layer (the logit lens,
        nostalgebraist 2020)."""
        logits = self._head(self.final_norm(x.reshape(-1, x.shape[-1])))
        return logits.reshape(*x.shape[:-1], -1)

    def __call__(self, token_ids: TokenIds) -> Array:
        """The logits after each token, ``(b, T)`` to ``(b, T, vocab_size)``."""
        return self.logits(self.last_stream(token_ids))

    def next_logits(self, token_ids: TokenIds, cache: Cache) -> Array:
        """Read ``(b, T)`` more tokens and predict the next one, ``(b, vocab_size)``."""
        for i in range(0, token_ids.shape[1], _AT_ONCE):
            x = self.last_stream(token_ids[:, i : i + _AT_ONCE], cache)
        return self.logits(x[:, -1])

    def record(self, token_ids: TokenIds, heads_off: Heads = ()) -> Record:
        """What happens while the model reads tokens ``(T,)``; heads_off as in :meth:`streams`."""
        residual = []
        attention = []
        for x, weights in self.streams(token_ids[None], heads_off=heads_off):
            residual.append(x)  # (1, T, emb_dim)
            if weights is not None:
                attention.append(weights)  # (1, num_heads, T, T)
        # The axis of length 1, for the one text, becomes the axis of the layers.
        return Record(attention=np.concatenate(attention), residual=np.concatenate(residual))

    def new_cache(self, batch_size: int, start: Cache | None = None) -> Cache:
        """A cache for so many texts: empty, or each with the tokens of the one text in `start`."""
        c = self.config
        shape = (2, c.num_layers, batch_size, c.context_length, c.kv_heads, c.head_size)
        cache = Cache(np.zeros(shape, np.float32), np.zeros(batch_size, int))
        return cache if start is None else cache.fill(start)

    def _new_tokens(self, lengths: TokenIds, T: int, hidden: Sequence[int] = ()) -> NewTokens:
        """The positions of T more tokens of each text; ``lengths`` ``(b,)`` counts the tokens of
        each that are in the cache. `hidden` are positions of keys that they may not look at."""
        if any(position >= lengths.min() for position in hidden):
            raise ValueError("a token always sees itself: only tokens before it can be hidden")
        S = int(lengths.max()) + T
        in_text: Any = slice(S - T, S)
        texts: Any = slice(None)
        if (lengths != S - T).any():  # texts of different lengths
            in_text = lengths[:, None] + np.arange(T)  # (b, T)
            texts = np.arange(len(lengths))[:, None]  # (b, 1)

        # Hidden are later tokens, and what the cache holds after the end of a shorter text.
        key_positions = np.arange(S)
        query_positions = key_positions[in_text].reshape(-1, 1, 1, T, 1)  # (1 or b, 1, 1, T, 1)
        is_hidden = key_positions > query_positions  # (1 or b, 1, 1, T, S)
        is_hidden[..., list(hidden)] = True
        mask = np.where(is_hidden, -np.inf, _ZERO) if is_hidden.any() else None

        turn = self._positions.turn
        if turn is not None:
            turn = turn.at(in_text)
        return NewTokens(in_text, (texts, in_text), mask, turn)


class Layer:
    """A block: attention, then a feed-forward network, each added to the stream."""

    def __init__(self, config: GPTConfig, weights: NamedArrays, block: str):
        self.config = config
        norm = NORMS[config.norm]

        attention = f"{block}.attention"
        self.attention_norm = norm.numpy_form(weights, f"{attention}_norm", config.norm_eps)
        # Keys come before queries, so that one slice takes both, to norm and turn them alike.
        matrices = [f"{attention}.{name}" for name in ("W_key", "W_query", "W_value")]
        self.W_key_query_value = Linear(weights, *matrices)  # one product for all three
        if config.qk_norm:
            of_heads = ["key_norm"] * config.kv_heads + ["query_norm"] * config.num_heads
            rows = [weights[f"{attention}.{name}.weight"] for name in of_heads]
            self.key_query_norm = ScaledNorm(np.stack(rows), config.norm_eps)
        self.out_proj = Linear(weights, f"{attention}.out_proj")

        feed_forward = f"{block}.feed_forward"
        self.feed_forward_norm = norm.numpy_form(weights, f"{feed_forward}_norm", config.norm_eps)
        if config.feed_forward == "swiglu":
            self.W_in = Linear(weights, f"{feed_forward}.W_gate", f"{feed_forward}.W_in")
        else:
            self.W_in = Linear(weights, f"{feed_forward}.W_in")
        self.W_out = Linear(weights, f"{feed_forward}.out_proj")

    def __call__(
        self, x: Array, keys: Array, values: Array, at: NewTokens, off: list[int]
    ) -> tuple[Array, Array]:
        """The stream after the block, by ``x + attention(norm(x))`` and then
        ``x + feed_forward(norm(x))``; and the attention weights. Arguments as of :meth:`attention`.
        """
        update, weights = self.attention(self.attention_norm(x), keys, values, at, off)
        x = x + update
        x = x + self.feed_forward(self.feed_forward_norm(x))
        return x, weights

    def attention(
        self, x: Array, keys: Array, values: Array, at: NewTokens, off: list[int]
    ) -> tuple[Array, Array]:
        """``softmax(Q Kᵀ / sqrt(head_dim) + mask) V`` in each head, then out_proj of all heads; and
        the attention weights ``(b, num_heads, T, S)``.

        Keys and values lie in the cache, ``(b, S, kv_heads, head_dim)``; those of the new tokens
        are computed from x ``(b * T, emb_dim)`` and written into it. The heads in `off` add
        nothing.
        """
        b, S, kv_heads, head_dim = keys.shape
        T = len(x) // b

        projected = self.W_key_query_value(x).reshape(b, T, -1, head_dim)  # heads of all kinds
        keys_queries = projected[:, :, :-kv_heads]  # (b, T, kv_heads + num_heads, head_dim)
        if self.config.qk_norm:
            keys_queries = self.key_query_norm(keys_queries)
        if at.turn is not None:
            keys_queries = at.turn(keys_queries)

        queries = keys_queries[:, :, kv_heads:]  # (b, T, num_heads, head_dim)
        keys[at.in_cache] = keys_queries[:, :, :kv_heads]  # (b, T, kv_heads, head_dim)
        values[at.in_cache] = projected[:, :, -kv_heads:]  # (b, T, kv_heads, head_dim)

        # Each key/value head serves a group of query heads that follow each other.
        grouped = queries.reshape(b, T, kv_heads, -1, head_dim)
        Q = grouped.transpose(0, 2, 3, 1, 4)  # (b, kv_heads, group, T, head_dim)
        K = keys.transpose(0, 2, 1, 3)[:, :, None]  # (b, kv_heads, 1, S, head_dim)
        V = values.transpose(0, 2, 1, 3)[:, :, None]  # (b, kv_heads, 1, S, head_dim)

        scores = Q @ K.swapaxes(-1, -2)  # (b, kv_heads, group, T, S)
        scores /= math.sqrt(head_dim)
        if at.mask is not None:
            scores = scores + at.mask
        weights = softmax(scores)

        context = weights @ V  # (b, kv_heads, group, T, head_dim)
        by_token = context.transpose(0, 3, 1, 2, 4)  # (b, T, kv_heads, group, head_dim)
        context = by_token.reshape(b * T, -1, head_dim)  # (b * T, num_heads, head_dim)
        if off:
            context[:, off] = 0.0
        return self.out_proj(context.reshape(b * T, -1)), weights.reshape(b, -1, T, S)

    def feed_forward(self, x: Array) -> Array:
        """``W_out gelu(W_in x)`` or ``W_out (silu(W_gate x) * W_in x)``, for x ``(n, emb_dim)``."""
        hidden = self.W_in(x)  # (n, ff_dim), with a gate (n, 2 ff_dim)
        if self.config.feed_forward == "gelu":
            return self.W_out(gelu(hidden))

        gate = hidden[:, : self.config.ff_dim]
        hidden = hidden[:, self.config.ff_dim :]
        return self.W_out(silu(gate) * hidden)


class Linear:
    """``x Wᵀ + b``; with several names, their outputs side by side."""

    def __init__(self, weights: NamedArrays, *names: str):
        self.matrices = [weights[f"{name}.weight"].T for name in names]  # each (d_in, d_out)
        d_in = len(self.matrices[0])
        d_out = sum(matrix.shape[1] for matrix in self.matrices)
        if d_in < d_out and d_in * d_out <= _SMALL:
            # Wider than tall: one product is faster, with rows that lie contiguous.
            joined = np.concatenate(self.matrices, axis=1)  # of transposed arrays: in Fortran order
            self.matrices = [np.ascontiguousarray(joined)]

        biases = [weights[f"{name}.bias"] for name in names if f"{name}.bias" in weights]
        self.bias = np.concatenate(biases) if biases else None

    def __call__(self, x: Array) -> Array:  # (n, d_in) -> (n, d_out)
        if 1 < len(x) <= _FEW:
            products = [matrix.T.dot(x.T).T for matrix in self.matrices]
        else:
            products = [x.dot(matrix) for matrix in self.matrices]

        y = products[0] if len(products) == 1 else np.concatenate(products, axis=1)
        return y if self.bias is None else y + self.bias


def softmax(x: Array) -> Array:
    """``exp(x) / sum(exp(x))`` over the last axis."""
    x = np.exp(x - np.maximum.reduce(x, axis=-1, keepdims=True))
    return x / np.add.reduce(x, axis=-1, keepdims=True)


def silu(x: Array) -> Array:
    """``x / (1 + exp(-x))``."""
    return x / (1.0 + np.exp(-x))


def gelu(x: Array) -> Array:
    """``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³)))``."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))
