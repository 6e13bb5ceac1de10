"""What a model starts from: a token embedding in which tokens with similar neighbours have similar
vectors, and a head that knows which token often follows which.

Random weights take many steps to learn what counting finds in about a second. Both are made of
tables of counts with a row for each token, and a column for each that stands near it or follows it.
The embedding is such a table reduced to a few columns; the head predicts from a token's vector
which share each column has of its row.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ..data.batches import TokenSequence

_REACH = 12  # tokens to either side are neighbours, the n-th of them counted as 1 / n
_TOKENS = 2_000_000  # that are counted
_PIECES = 16  # of a longer text, from all over it
_CELLS = 1 << 23  # of a table of counts, at most
_FEWEST = 512  # columns or rows of a table at least, even if it then has more cells
_SMOOTHING = 0.75  # power of the neighbours' frequency: rare ones say less than they seem to
_STD = 0.06  # of the components, found by trial (docs/decisions.md)
_PRIOR = 100.0  # tokens that are added to what follows each token, drawn from the whole text
_ITERATIONS = 15  # in which the head is fitted

Evaluate = Callable[[Tensor], tuple[float, Tensor]]  # a head's loss, nats a token, and gradient


@torch.no_grad()
def embedding_init(tokens: TokenSequence, vocab_size: int, emb_dim: int, seed: int) -> Tensor:
    """Factors of the tokens' positive pointwise mutual information with their neighbours.

    ``max(0, log p(neighbour | token) / p(neighbour))``, with neighbours before and after apart, is
    reduced to emb_dim columns by a singular value decomposition ("Neural Word Embedding as Implicit
    Matrix Factorization", Levy and Goldberg 2014). The square root of the singular values, and
    neighbours smoothed and weighted by distance, follow "Improving Distributional Similarity with
    Lessons Learned from Word Embeddings", Levy, Goldberg and Dagan 2015. Every vector has the same
    length; a token without neighbours has a random direction.

    Of a long text two million tokens are counted; neighbours are the most frequent tokens, as many
    as memory allows. The components of the vectors ``(V, d)`` have a standard deviation of 0.06 or
    ``ln V / d``, whichever is less. With only a norm between embedding and tied head, the logit of
    the token itself is d times the deviation; above ln V an untrained model predicts nothing else.
    """
    # The tokens that occur, (n,), and the text numbered by these, (pieces, length).
    occurring, numbers = sample(tokens).unique(return_inverse=True)
    n = len(occurring)
    before, after = _count_neighbours(numbers, n, _room_for(n))
    information = torch.cat((_information(before), _information(after)), dim=1)  # (n, 2 most)

    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        vectors = 1e-6 * torch.randn(vocab_size, emb_dim)
        vectors[occurring] += _factors(information, emb_dim)

    std = min(_STD, math.log(max(vocab_size, 2)) / emb_dim)
    length = std * emb_dim**0.5
    return vectors.mul_(length / vectors.norm(dim=1, keepdim=True))


@torch.no_grad()
def head_init(tokens: TokenSequence, inputs: Tensor) -> Tensor:
    """A head ``(V, d)`` that predicts the next token from the last one alone.

    `inputs` ``(V, d)`` is what the head sees of each token while the blocks add nothing. The head
    is a softmax regression on how often each token follows each other. To the counts of what
    follows each token, 100 tokens drawn from the whole text are added, so that rare tokens predict
    little. Of a large vocabulary only what follows the n most frequent tokens counts. The head
    predicts these counts at least as well as the tokens' frequencies in the text do, and as
    guessing does.
    """
    V, _ = inputs.shape
    text = sample(tokens)
    frequencies = torch.bincount(text.flatten(), minlength=V)  # (V,)
    share = (frequencies + 0.5) / (frequencies + 0.5).sum()  # (V,)

    # What the head should predict after each of the frequent tokens, and how much that matters.
    frequent, number = _most_frequent(frequencies, _room_for(V))  # (n,), (V,)
    counts = _count_next(text, number, n=len(frequent))  # (n, V)
    total = counts.sum(dim=1, keepdim=True)  # (n, 1)
    weight = total / total.sum()  # (n, 1)
    wanted = weight * (counts + _PRIOR * share) / (total + _PRIOR)  # (n, V)

    # In coordinates in which the inputs have no preferred direction, and frequent tokens move less,
    # a few steps suffice.
    turn = _even_out(inputs[frequent], weight)  # (d, d)
    x = inputs[frequent] @ turn  # (n, d)
    scale = share.unsqueeze(1) ** -0.25  # (V, 1)

    def evaluate(head: Tensor) -> tuple[float, Tensor]:
        """The cross-entropy of a head ``(V, d)`` in these coordinates, and its gradient."""
        predicted = (x @ (head * scale).T).log_softmax(dim=1)  # (n, V)
        loss = -(wanted * predicted).sum().item()
        gradient = (weight * predicted.exp_() - wanted).T @ x * scale  # (V, d)
        return loss, gradient

    # Before it is fitted the head predicts each token as often as the whole text has it.
    logits = share.log() - share.log().mean()  # (V,)
    mean_input = (weight * x).sum(dim=0)  # (d,)
    unfitted = torch.outer(logits, mean_input) / scale  # (V, d)
    head = _fitted(evaluate, unfitted)
    return head * scale @ turn.T


def _even_out(x: Tensor, weight: Tensor) -> Tensor:
    """A matrix ``(d, d)``: inputs ``(n, d)`` times it have about the same size in all directions.

    Each input counts as much as its weight ``(n, 1)``.
    """
    covariance = x.T @ (weight * x) + 1e-6 * torch.eye(x.shape[1])  # (d, d)
    values, directions = torch.linalg.eigh(covariance)
    return directions * (values + 1e-4 * values.mean()).rsqrt()


def _fitted(evaluate: Evaluate, unfitted: Tensor) -> Tensor:
    """The head ``(V, d)`` that L-BFGS finds; its loss is at most that of the unfitted one, and of
    guessing.

    Steps without a line search are the fastest, and nearly always go down. On a text so regular
    that the next token is almost sure they may overshoot. Then a line search looks for them.
    """
    loss_of_guessing = math.log(len(unfitted))
    head, loss_before = _minimized(evaluate, unfitted, line_search=None)
    loss, _ = evaluate(head)
    if loss <= min(loss_before, loss_of_guessing):  # false if it is not a number
        return head

    guessing = torch.zeros_like(unfitted)
    start = unfitted if loss_before <= loss_of_guessing else guessing
    head, _ = _minimized(evaluate, start, line_search="strong_wolfe")
    return head


def _minimized(evaluate: Evaluate, start: Tensor, line_search: str | None) -> tuple[Tensor, float]:
    """Where a few iterations of L-BFGS (Liu and Nocedal 1989) lead from `start`, and the loss that
    they began with."""
    head = start.clone()
    optimizer = torch.optim.LBFGS(
        [head],
        max_iter=_ITERATIONS,
        max_eval=4 * _ITERATIONS,
        tolerance_change=0.0,
        line_search_fn=line_search,
    )

    def closure() -> float:
        loss, head.grad = evaluate(head)
        return loss

    loss_before = optimizer.step(closure)
    return head, loss_before


def sample(tokens: TokenSequence) -> Tensor:
    """The text, or of a long one pieces from all over it: ``(pieces, length)``."""
    count = 1 if len(tokens) <= _TOKENS else _PIECES
    length = min(_TOKENS, len(tokens)) // count
    pieces = []
    for i in range(count):
        start = i * len(tokens) // count
        pieces.append(np.asarray(tokens[start : start + length]))
    return torch.from_numpy(np.stack(pieces).astype(np.int64))


# Counting


def _room_for(n: int) -> int:
    """How many columns a table with n rows may have, or how many rows one with n columns may have:
    n at most."""
    return min(n, max(_CELLS // n, _FEWEST))


def _most_frequent(frequencies: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The most frequent tokens ``(most,)``, and the number of each token among them ``(V,)``, which
    is `most` for all the rest: a row or column that is dropped later."""
    tokens = frequencies.topk(most).indices
    numbers = torch.full_like(frequencies, most)
    numbers[tokens] = torch.arange(most)
    return tokens, numbers


def _count_neighbours(pieces: Tensor, n: int, most: int) -> tuple[Tensor, Tensor]:
    """How often each of n tokens has each of the most frequent ones before it and after it, near
    ones counted more: both ``(n, most)``."""
    frequencies = torch.bincount(pieces.flatten(), minlength=n)  # (n,)
    _, column = _most_frequent(frequencies, most)  # of each neighbour, (n,)
    width = most + 1
    before = torch.zeros(n * width)
    after = torch.zeros(n * width)

    for piece in pieces:
        rows = piece * width  # where the row of each token begins
        columns = column[piece]
        for distance in range(1, min(_REACH, len(piece) - 1) + 1):
            weight = torch.full((len(piece) - distance,), 1.0 / distance)
            after.index_add_(0, rows[:-distance] + columns[distance:], weight)
            before.index_add_(0, rows[distance:] + columns[:-distance], weight)

    return before.view(n, width)[:, :most], after.view(n, width)[:, :most]


def _count_next(text: Tensor, number: Tensor, n: int) -> Tensor:
    """How often each token follows each of the n numbered ones: ``(n, V)``."""
    V = len(number)
    cells = number[text[:, :-1]] * V + text[:, 1:]  # in rows of V, the last for unnumbered tokens
    counts = torch.bincount(cells.flatten(), minlength=(n + 1) * V)
    return counts.view(n + 1, V)[:-1]


# From counts to vectors


def _information(counts: Tensor) -> Tensor:
    """Positive pointwise mutual information of counts ``(n, C)``, of the same shape."""
    smoothed = counts.sum(dim=0) ** _SMOOTHING  # (C,)
    share = smoothed / smoothed.sum()  # (C,)
    expected = counts.sum(dim=1, keepdim=True) * share  # (n, C)

    # In place, since a table is large. A count of 0 gives log(0) or 0 / 0, which both become 0.
    ratio = expected.reciprocal_().mul_(counts)
    return ratio.log_().nan_to_num_(0.0, 0.0, 0.0).clamp_(min=0.0)


def _factors(information: Tensor, emb_dim: int) -> Tensor:
    """``U sqrt(S)`` of the largest singular values of ``(n, C)``: ``(n, emb_dim)``."""
    rank = min(emb_dim, *information.shape)
    searched = min(rank + 16, *information.shape)  # with more, the first ones are more exact
    left, values, _ = torch.svd_lowrank(information, q=searched, niter=3)
    factors = left[:, :rank] * values[:rank].sqrt()  # (n, rank)

    # A random rotation spreads the first, large factors over all components.
    rotation = torch.linalg.qr(torch.randn(emb_dim, rank)).Q  # (emb_dim, rank)
    return factors @ rotation.T
