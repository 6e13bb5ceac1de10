"""How likely tokens are under a model, at temperature 1, no filter applied."""

from collections.abc import Iterator, Sequence

import numpy as np

from .window import Array, Engine, TokenIds


def log_softmax(logits: Array) -> Array:
    """``x - log(sum(exp(x)))`` over the last axis: log-probabilities, in nats."""
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def log_probabilities(logits: Array, tokens: TokenIds) -> Array:
    """The log-probabilities of tokens ``(n,)`` under logits ``(n, vocab_size)``, in nats."""
    return log_softmax(logits)[np.arange(len(tokens)), tokens]


def likeliest(logits: Array, k: int) -> Iterator[tuple[list[int], list[float]]]:
    """For each row of logits ``(n, vocab_size)`` the ids of its k likeliest tokens, likeliest
    first, of equals the smallest id first, and their log-probabilities."""
    k = min(k, logits.shape[-1])
    for row, nats in zip(logits, log_softmax(logits), strict=True):
        least = np.partition(row, -k)[-k]  # only what is wanted is sorted
        kept = np.flatnonzero(row >= least)  # k, or more with equals
        ids = kept[np.argsort(-row[kept], kind="stable")[:k]]
        yield ids.tolist(), nats[ids].tolist()


def score(engine: Engine, ids: Sequence[int]) -> list[float]:
    """The log-probability of each token but the first, given those before it, in nats.

    The first window predicts as many tokens as it holds. Each later window overlaps by half with
    the one before, and predicts the tokens that follow those of its own later half."""
    context_length = engine.context_length
    found: list[float] = []  # found[i] is the log-probability of ids[i + 1]
    while len(found) < len(ids) - 1:
        # The window is ids[start:end]; it predicts the tokens that follow each of ids[known:end].
        known = len(found)
        new = context_length - context_length // 2 if found else context_length
        end = min(known + new, len(ids) - 1)
        start = max(end - context_length, 0)

        logits = engine(np.array([ids[start:end]]))[0, known - start :]  # (new, vocab_size)
        predicted = np.array(ids[known + 1 : end + 1])  # (new,)
        found += log_probabilities(logits, predicted).tolist()
    return found
