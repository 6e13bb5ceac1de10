"""The glass engine: the whole GPT in numpy, token ids in, logits out, nothing in between hidden.

It computes what `model.py` does, without torch, and reads the weights where they lie in their file.
`NumpyGPT.layers` is the model, `Layer` holds its equations, for both architectures.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import UserError
from ..config import GPTConfig, weight_shapes
from .window import Array, TokenIds

Weights = Mapping[str, Array]  # by the names of the torch model's parameters
At = tuple[tuple[Any, Any], Array | None, list[Array]]  # places in the cache, mask, turns
Heads = Collection[tuple[int, int]]  # (layer, head), counted from 0

_AT_ONCE = 256  # tokens of a prompt: the attention scores of more would need much memory
_FEW = 64  # vectors: for so many, BLAS is up to twice as fast the other way round
_ZERO = np.float32(0)
_SMALL = 1 << 20  # weights: fewer are copied side by side, for one product along the longer axis


@dataclass(frozen=True)
class Record:
    """What happened inside a model while it read T tokens."""

    attention: Array  # (num_layers, num_heads, T, T), the weights: rows sum to 1
    residual: Array  # (num_layers + 1, T, emb_dim): the embedding, then the stream after each layer


class Cache(NamedTuple):
    """Keys and values of the tokens already read, of several texts side by side."""

    both: Array  # (2, num_layers, b, context_length, kv_heads, head_dim)
    lengths: TokenIds  # (b,), in tokens

    def part(self, texts: slice) -> "Cache":
        """The same memory, for some of the texts."""
        return Cache(self.both[:, :, texts], self.lengths[texts])

    def fill(self, start: "Cache") -> "Cache":
        """Copy what was read of the only text in `start` to each; returns itself."""
        self.lengths[:] = S = int(start.lengths[0])
        self.both[:, :, :, :S] = start.both[:, :, :, :S]
        return self


class NumpyGPT:
    """A trained GPT; a UserError if the weights do not fit the config."""

    def __init__(self, config: GPTConfig, weights: Weights):
        _check_shapes(config, weights)
        self.config, self.weights = config, weights
        self.context_length = config.context_length
        self._layers = [Layer(config, weights, f"blocks.{i}") for i in range(config.num_layers)]
        self._final_norm = Norm(config, weights, "final_norm")
        self._head = Linear(weights, "token_embedding" if config.tie_embeddings else "head")
        self._turns = rotary_tables(config) if config.architecture == "qwen3" else ()

    @property
    def num_parameters(self) -> int:
        """How many numbers the model has learned; a tied head counts once."""
        return sum(array.size for array in self.weights.values())

    def layers(
        self, token_ids: TokenIds, cache: Cache | None = None, heads_off: Heads = ()
    ) -> Iterator[tuple[Array, Array]]:
        """The residual stream and the attention weights, layer after layer, for tokens ``(b, T)``.

        First comes the embedding ``(b, T, emb_dim)`` with an empty array, then the stream after
        each layer with its attention weights ``(b, num_heads, T, S)``. S tokens are then in the
        cache, these included. The context vectors of `heads_off` are set to zero.
        """
        (b, T), cache = token_ids.shape, cache or self.new_cache(len(token_ids))
        S = int(cache.lengths.max()) + T
        if self.config.context_length < S:
            raise ValueError(f"{S} tokens do not fit into the model's context")
        places: tuple[Any, Any] = slice(None), slice(S - T, S)  # of the tokens in the cache, (b, T)
        if (cache.lengths != S - T).any():  # texts of different lengths
            places = np.arange(b)[:, None], cache.lengths[:, None] + np.arange(T)
        cache.lengths[:] += T
        x = self.weights["token_embedding.weight"][token_ids]  # (b, T, emb_dim)
        if "position_embedding.weight" in self.weights:
            x = x + self.weights["position_embedding.weight"][places[1]]
        yield x, np.empty(0, np.float32)
        x = x.reshape(b * T, -1)
        turns, order = [table[places[1]] for table in self._turns], np.arange(S)
        ahead = order > order[places[1]][..., None, None, :, None]  # (1 or b, 1, 1, T, S)
        at = places, np.where(ahead, -np.inf, _ZERO) if ahead.any() else None, turns
        cached = zip(*cache.both[:, :, :, :S], strict=True)
        for i, (layer, (keys, values)) in enumerate(zip(self._layers, cached, strict=True)):
            off = [head for number, head in heads_off if number == i] if heads_off else []
            update, weights = layer.attention(layer.attention_norm(x), keys, values, at, off)
            x = x + update  # (b * T, emb_dim)
            x = x + layer.feed_forward(layer.feed_forward_norm(x))
            yield x.reshape(b, T, -1), weights

    def logits(self, x: Array) -> Array:
        """The logits ``(..., vocab_size)`` of a residual stream ``(..., emb_dim)``. For a record's
        `residual`, what the model would predict after each layer (the logit lens,
        nostalgebraist 2020)."""
        logits = self._head(self._final_norm(x.reshape(-1, x.shape[-1])))
        return logits.reshape(*x.shape[:-1], -1)

    def __call__(self, token_ids: TokenIds) -> Array:
        """The logits after each token, ``(b, T)`` to ``(b, T, vocab_size)``."""
        with np.errstate(all="ignore"):  # damaged weights show in their logits
            *_, (x, _) = self.layers(token_ids)
            return self.logits(x)

    def next_logits(self, token_ids: TokenIds, cache: Cache) -> Array:
        """Read ``(b, T)`` more tokens and predict the next one, ``(b, vocab_size)``."""
        with np.errstate(all="ignore"):
            for i in range(0, token_ids.shape[1], _AT_ONCE):
                *_, (x, _) = self.layers(token_ids[:, i : i + _AT_ONCE], cache)
            return self.logits(x[:, -1])

    def record(self, token_ids: TokenIds, heads_off: Heads = ()) -> Record:
        """What happens while the model reads tokens ``(T,)``; heads_off as in :meth:`layers`."""
        streams, attention = zip(*self.layers(token_ids[None], None, heads_off), strict=True)
        return Record(np.concatenate(attention[1:]), np.concatenate(streams))

    def new_cache(self, batch_size: int, start: Cache | None = None) -> Cache:
        """A cache for so many texts: empty, or each with the tokens of the only text in `start`."""
        c = self.config
        shape = (2, c.num_layers, batch_size, c.context_length, c.kv_heads, c.head_size)
        cache = Cache(np.zeros(shape, np.float32), np.zeros(batch_size, int))
        return cache.fill(start) if start else cache


def _check_shapes(config: GPTConfig, weights: Weights) -> None:
    """Refuse weights that do not fit, in no more time if a damaged config names huge sizes."""
    expected = 0
    for pattern, shape in weight_shapes(config).items():
        for i in range(config.num_layers if "#" in pattern else 1):
            name, expected = pattern.replace("#", str(i)), expected + 1
            if name not in weights:
                raise UserError(f"tensor {name} is missing, {shape} by the config")
            if weights[name].shape != shape:
                raise UserError(f"tensor {name} is {weights[name].shape}, {shape} by the config")
    if len(weights) > expected:
        raise UserError(f"{len(weights)} tensors, but the model has {expected}")


class Layer:
    """A block; it adds ``attention(norm(x))`` to the stream x, then ``feed_forward(norm(x))``."""

    def __init__(self, config: GPTConfig, weights: Weights, block: str):
        c = self.config = config
        attention, feed_forward = f"{block}.attention", f"{block}.feed_forward"
        self.attention_norm = Norm(c, weights, f"{attention}_norm")
        kqv = [f"{attention}.{name}" for name in ("W_key", "W_query", "W_value")]
        self.W_kqv = Linear(weights, *kqv)  # one product for all three
        self.out_proj = Linear(weights, f"{attention}.out_proj")
        self.feed_forward_norm = Norm(c, weights, f"{feed_forward}_norm")
        self.W_in = Linear(weights, f"{feed_forward}.W_in")
        self.W_out = Linear(weights, f"{feed_forward}.out_proj")
        if c.architecture == "qwen3":
            norms = ["key_norm"] * c.kv_heads + ["query_norm"] * c.num_heads
            self.kq_norm = Norm(c, weights, *(f"{attention}.{name}" for name in norms))
            self.W_in = Linear(weights, f"{feed_forward}.W_gate", f"{feed_forward}.W_in")

    def attention(
        self, x: Array, keys: Array, values: Array, at: At, off: list[int]
    ) -> tuple[Array, Array]:
        """``softmax(Q Kᵀ / sqrt(head_dim) + mask) V`` in each head, then out_proj of all heads; and
        the attention weights. Keys and values lie in the cache, ``(b, S, kv_heads, head_dim)``;
        those at the places ``(b, T)`` are computed from x ``(b * T, emb_dim)`` and written here."""
        (b, S, kv_heads, head_dim), (places, mask, turns) = keys.shape, at
        T = len(x) // b
        kqv = self.W_kqv(x).reshape(b, T, -1, head_dim)  # (b, T, heads of all kinds, head_dim)
        kq = kqv[:, :, :-kv_heads]
        if turns:
            kq = turned(self.kq_norm(kq), *turns)
        keys[places], values[places] = kq[:, :, :kv_heads], kqv[:, :, -kv_heads:]
        # Each key/value head serves a group of heads: (b, kv_heads, group, T, head_dim)
        queries = kq[:, :, kv_heads:].reshape(b, T, kv_heads, -1, head_dim).transpose(0, 2, 3, 1, 4)
        scores = queries @ keys.transpose(0, 2, 3, 1)[:, :, None]  # (..., T, S)
        scores /= math.sqrt(head_dim)
        weights = softmax(scores if mask is None else scores + mask)
        context = (weights @ values.swapaxes(1, 2)[:, :, None]).transpose(0, 3, 1, 2, 4)
        context = context.reshape(b * T, -1, head_dim)  # (b * T, num_heads, head_dim)
        if off:
            context[:, off] = 0.0
        return self.out_proj(context.reshape(b * T, -1)), weights.reshape(b, -1, T, S)

    def feed_forward(self, x: Array) -> Array:
        """``W_out gelu(W_in x)`` (gpt2) or ``W_out (silu(W_gate x) * W_in x)`` (qwen3)."""
        hidden = self.W_in(x)  # (b * T, ff_dim), with a gate (b * T, 2 ff_dim)
        if self.config.architecture == "gpt2":
            return self.W_out(gelu(hidden))
        gate, hidden = hidden[:, : self.config.ff_dim], hidden[:, self.config.ff_dim :]
        return self.W_out(silu(gate) * hidden)


class Norm:
    """RMSNorm, ``x / sqrt(mean(x²) + eps) * weight``; or, if there is a bias, LayerNorm, which
    centres x first and adds the bias. With several names, each has a row of weights."""

    def __init__(self, config: GPTConfig, weights: Weights, *names: str):
        rows = np.stack([weights[f"{name}.weight"] for name in names])
        d = rows.shape[1]  # mean(x²) = x·x / d: the d goes into weight and eps
        self.weight = (rows if len(names) > 1 else rows[0]) * np.float32(math.sqrt(d))
        self.eps = np.array(d * config.norm_eps, np.float32)  # faster than a number as an array
        self.bias = weights.get(f"{names[0]}.bias")

    def __call__(self, x: Array) -> Array:  # (..., d) -> (..., d)
        if self.bias is not None:
            x = x - np.add.reduce(x, axis=-1, keepdims=True) / x.shape[-1]
        x = x / np.sqrt(np.vecdot(x, x)[..., None] + self.eps) * self.weight
        return x if self.bias is None else x + self.bias


class Linear:
    """``x Wᵀ + b``; with several names, their outputs side by side."""

    def __init__(self, weights: Weights, *names: str):
        self.matrices = [weights[f"{name}.weight"].T for name in names]  # each (d_in, d_out)
        d_in, d_out = len(self.matrices[0]), sum(len(matrix.T) for matrix in self.matrices)
        if d_in < d_out and d_in * d_out <= _SMALL:
            self.matrices = [np.ascontiguousarray(np.concatenate(self.matrices, axis=1))]
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
    """``x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³)))``."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def rotary_tables(config: GPTConfig) -> tuple[Array, Array]:
    """Cosines ``(context_length, 1, 1, i)`` and sines ``(context_length, 1, 2, i)``, the first of
    the two negative, of the angles ``t base^(-2i / head_dim)``."""
    frequencies = config.rotary_base ** (-np.arange(0, config.head_size, 2) / config.head_size)
    angles = np.outer(np.arange(config.context_length), frequencies)[:, None, None]
    sines = np.concatenate((-np.sin(angles), np.sin(angles)), axis=2)
    return np.cos(angles).astype(np.float32), sines.astype(np.float32)


def turned(x: Array, cos: Array, sin: Array) -> Array:
    """Vectors ``(b, T, heads, head_dim)``, components i and i + head_dim / 2 turned by an angle."""
    pairs = x.reshape(*x.shape[:-1], 2, -1)  # (b, T, heads, 2, head_dim / 2)
    return (pairs * cos + pairs[..., ::-1, :] * sin).reshape(x.shape)
