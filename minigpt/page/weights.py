"""The weights as a page holds them: a safetensors file in base64, in 8 bits if that costs little.

What rounding costs is measured on texts that the model itself writes, not on its training text,
which may be large or gone.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from .. import UserError
from ..config import PLAIN
from ..generation.numpy_gpt import NumpyGPT
from ..generation.sampler import log_softmax
from ..runs.find import glass_writer
from ..runs.read_model import FoundModel
from ..system.eight_bits import restored, rounded

WeightType = Literal["int8", "float16", "float32"]
_BITS: dict[WeightType, int] = {"int8": 8, "float16": 16, "float32": 32}
_MOST = 0.001  # of the loss: what rounding may cost if no type is asked for
_TEXTS = 4  # that the model writes
_TOKENS = 32  # of each
_CERTAIN = 1e-6  # nats in all: the entropy of a model that is sure of each token

Tensors = Mapping[str, NDArray[Any]]


class PageWeights(NamedTuple):
    """The weights of a page."""

    content: str  # the file in base64
    bits: int  # of each number of a matrix
    cost: float  # by which share rounding raises the loss


def page_weights(found: FoundModel, asked: WeightType | None = None) -> PageWeights:
    """The weights of a model in the type that is asked for or, if none is, in the smallest one that
    raises the loss by at most 0.1%. UserError if they are not finite numbers in that type."""
    if not _are_finite(found.glass.weights):
        raise UserError(f"{found.folder} has weights that are not finite numbers")

    texts = [] if asked == "float32" else _written(found)  # it rounds nothing
    for kind in _BITS if asked is None else [asked]:
        stored = _stored(found, kind)
        cost = _cost(found, stored, texts) if _are_finite(stored) else np.inf
        if cost <= _MOST:
            break
    if not _are_finite(stored):
        raise UserError(
            f"{found.folder} has weights that are not finite numbers in {kind}; "
            "store them with --weights float32"
        )

    content = base64.b64encode(save(dict(stored))).decode()
    return PageWeights(content, _BITS[kind], cost)


def _are_finite(tensors: Tensors) -> bool:
    return all(np.isfinite(array).all() for array in tensors.values())


def _written(found: FoundModel) -> list[NDArray[np.int64]]:
    """Texts that the model writes, as it has learned to and not as it is usually sampled: each a
    batch of token ids ``(1, T)``."""
    writer = glass_writer(found, PLAIN)
    count = min(_TOKENS, found.glass.context_length - 1)
    samples = writer.samples(samples=_TEXTS, max_new_tokens=count, temperature=1, seed=0)
    return [np.array([[writer.first_token(), *sample.token_ids]]) for sample in samples]


def _stored(found: FoundModel, kind: WeightType) -> Tensors:
    """The tensors of the file."""
    weights = found.glass.weights
    if kind == "int8":
        return rounded(weights)
    with np.errstate(over="ignore"):  # what is too large becomes infinite
        return {name: array.astype(kind) for name, array in weights.items()}


def _cost(found: FoundModel, stored: Tensors, texts: Iterable[NDArray[np.int64]]) -> float:
    """By which share the loss rises on texts of the model's own if it computes with the weights
    that are stored: the divergence of the two predictions (Kullback-Leibler), divided by the
    entropy."""
    weights = {name: array.astype(np.float32) for name, array in restored(stored).items()}
    rounded_glass = NumpyGPT(found.glass.config, weights)

    divergence = 0.0
    entropy = 0.0
    for ids in texts:
        whole = log_softmax(found.glass(ids))  # (1, T, vocab_size)
        less = log_softmax(rounded_glass(ids))
        chances = np.exp(whole)
        divergence += float((chances * (whole - less)).sum())
        entropy -= float((chances * whole).sum())
    return max(divergence, 0.0) / max(entropy, _CERTAIN)
