"""Why was a token likely? What each part of the model adds to its logit, and what changes where no
head may look at an earlier token, or where a head is off.

The residual stream is a sum: the embedding, and what each head and each feed-forward layer adds.
With the scale of the final norm frozen, the logit is linear in the stream, and so each part adds a
number to it: direct logit attribution (nostalgebraist 2020; Elhage et al. 2021, "A mathematical
framework for transformer circuits"). An earlier token is hidden by attention knockout (Geva et al.
2023, "Dissecting recall of factual associations in auto-regressive language models").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import UserError
from .numpy_gpt import Cache, Heads, NumpyGPT
from .sampler import log_softmax
from .window import Array, TokenIds

BIAS = "bias"
EMBEDDING = "embedding"


@dataclass(frozen=True)
class Explanation:
    """Why a token was as likely as it was, after the tokens of its window: the last
    `context_length` tokens before it.

    A part is named "embedding" (the last token of the window, with its learned position), "1.2"
    (layer 1, head 2: both from 1), "1 feed-forward" (with its biases) or "bias" (what depends on no
    token: the biases of the attention layers' out_proj and of the final norm; 0 without biases).
    None of these numbers is a cause; docs/page.md says what they do not tell.
    """

    logit: float  # before softmax, less the mean logit of the vocabulary
    probability: float  # between 0 and 1, at temperature 1

    # What each part adds to `logit`, the scale of the final norm frozen; the sum is `logit`.
    parts: dict[str, float]

    # For each token of the window, by its index in the text: the change of the log-probability, in
    # bits, if in no layer any head may look at it from a later token. Below 0: the token helped.
    # The last one is 0: no token of the window comes after it, and it always sees itself.
    words: dict[int, float]

    # For each head: the probability if its context vectors are zero, at all tokens.
    heads: dict[str, float]


class _Reading(NamedTuple):
    """What the model computes of a window of T tokens."""

    streams: list[Array]  # num_layers + 1 of (1, T, emb_dim): the residual stream
    attention: list[Array]  # num_layers of (num_heads, T): the attention weights of the last token
    cache: Cache  # of the window
    logits: NDArray[np.float64]  # (vocab_size,), after the last token


def explain_token(
    glass: NumpyGPT, ids: Sequence[int], place: int, heads_off: Heads = ()
) -> Explanation:
    """Why the model predicts ids[place] as it does, after the tokens before it.

    Args:
        glass: the model.
        ids: the tokens of a text.
        place: index of the token in ids, counted from 0, at least 1; what comes after it is not
            looked at.
        heads_off: pairs of layer and head, both from 0, that are off in all that is computed.

    Raises:
        UserError: if `place` is not the place of a token that others come before, or if the logits
            are not finite.
    """
    if len(ids) < 2:
        raise UserError("the text has no token with another before it; give a longer text")
    if not 1 <= place < len(ids):
        raise UserError(f"place must be between 1 and {len(ids) - 1}, got {place}")

    start = max(0, place - glass.context_length)
    window = np.array([ids[start:place]])  # (1, T)
    token = ids[place]
    reading = _read(glass, window, heads_off)
    if not np.isfinite(reading.logits).all():
        raise UserError("the model is damaged: its logits are not finite")

    words = _words(glass, window, token, reading, heads_off)
    return Explanation(
        logit=float(reading.logits[token] - reading.logits.mean()),
        probability=math.exp(_nats(reading.logits, token)),
        parts=_parts(glass, token, reading, heads_off),
        words={start + i: bits for i, bits in enumerate(words)},
        heads=_heads(glass, token, reading, heads_off),
    )


@np.errstate(all="ignore")  # of damaged weights, which show in the logits
def _read(glass: NumpyGPT, window: TokenIds, heads_off: Heads) -> _Reading:
    cache = glass.new_cache(1)
    streams = []
    attention = []
    for x, weights in glass.streams(window, cache, heads_off):
        streams.append(x)
        if weights is not None:
            attention.append(weights[0, :, -1])
    return _Reading(streams, attention, cache, _logits(glass, streams[-1]))


def _parts(glass: NumpyGPT, token: int, reading: _Reading, heads_off: Heads) -> dict[str, float]:
    """What each part adds to the centred logit of the token."""
    last = reading.streams[-1][0, -1]  # (emb_dim,)
    direction = _direction(glass, token)
    along_stream = glass.final_norm.direction_before(direction, last)
    parts = {EMBEDDING: reading.streams[0][0, -1] @ along_stream}
    bias = 0.0
    if glass.final_norm.bias is not None:
        bias += float(glass.final_norm.bias @ direction)

    for i, layer in enumerate(glass.layers):
        x = reading.streams[i][0, -1]  # (emb_dim,)
        for head, update in enumerate(_head_updates(glass, i, reading)):
            name = head_name(i, head)
            parts[name] = 0.0
            if (i, head) not in heads_off:
                parts[name] = update @ along_stream
                x = x + update

        if layer.out_proj.bias is not None:
            bias += float(layer.out_proj.bias @ along_stream)
            x = x + layer.out_proj.bias
        update = layer.feed_forward(layer.feed_forward_norm(x[None]))[0]  # (emb_dim,)
        parts[f"{i + 1} feed-forward"] = update @ along_stream

    parts[BIAS] = bias
    return {name: float(value) for name, value in parts.items()}


def _head_updates(glass: NumpyGPT, layer: int, reading: _Reading) -> Array:
    """What each head of the layer adds to the stream of the last token: ``W_h context_h``, where
    W_h are the columns of out_proj that read the head; ``(num_heads, emb_dim)``."""
    config = glass.config
    T = reading.attention[layer].shape[-1]

    # Each key/value head serves a group of query heads that follow each other.
    weights = reading.attention[layer].reshape(config.kv_heads, -1, T)  # (kv_heads, group, T)
    values = reading.cache.keys_values[1, layer, 0, :T]  # (T, kv_heads, head_dim)
    context = weights @ values.swapaxes(0, 1)  # (kv_heads, group, head_dim)

    matrix = glass.weights[f"blocks.{layer}.attention.out_proj.weight"]  # (emb_dim, q_dim)
    by_head = matrix.T.reshape(config.num_heads, -1, config.emb_dim)
    context = context.reshape(config.num_heads, 1, -1)
    return (context @ by_head)[:, 0]  # (num_heads, emb_dim)


def _direction(glass: NumpyGPT, token: int) -> NDArray[np.float64]:
    """The direction after the final norm, ``(emb_dim,)``, along which the token's logit rises above
    the mean logit of the vocabulary."""
    name = "token_embedding" if glass.config.tie_embeddings else "head"
    head = glass.weights[f"{name}.weight"]  # (vocab_size, emb_dim)
    return head[token] - head.mean(axis=0, dtype=np.float64)


def _words(
    glass: NumpyGPT, window: TokenIds, token: int, reading: _Reading, heads_off: Heads
) -> list[float]:
    """The change of the token's log-probability, in bits, with each token of the window hidden from
    the later ones. Keys and values of the hidden token and of earlier ones stay in the cache."""
    T = window.shape[1]
    whole = _nats(reading.logits, token)
    cache = glass.new_cache(1, reading.cache)  # a copy
    bits = [0.0] * T

    # Last token first: what is read after a token overwrites only what is not needed again.
    for i in reversed(range(T - 1)):
        cache.lengths[:] = i + 1
        x = glass.last_stream(window[:, i + 1 :], cache, heads_off, hidden=[i])
        bits[i] = (_nats(_logits(glass, x), token) - whole) / math.log(2)
    return bits


def _heads(glass: NumpyGPT, token: int, reading: _Reading, heads_off: Heads) -> dict[str, float]:
    """The token's probability without each head. The layers below a head are not computed anew."""
    probabilities = {}
    for layer in range(glass.config.num_layers):
        for head in range(glass.config.num_heads):
            off = [*heads_off, (layer, head)]
            x = glass.last_stream_from(layer, reading.streams[layer], off)
            nats = _nats(_logits(glass, x), token)
            probabilities[head_name(layer, head)] = math.exp(nats)
    return probabilities


def head_name(layer: int, head: int) -> str:
    """What a head is called: "1.2" is the second head of the first layer."""
    return f"{layer + 1}.{head + 1}"


def _logits(glass: NumpyGPT, x: Array) -> NDArray[np.float64]:
    """The logits after the last token of a stream ``(1, T, emb_dim)``: ``(vocab_size,)``."""
    return glass.logits(x[0, -1]).astype(np.float64)


def _nats(logits: NDArray[Any], token: int) -> float:
    """The log-probability of the token."""
    return float(log_softmax(logits)[token])
