"""Vectors that the tokens of a text start from: tokens among the same neighbours get similar ones.

An embedding that starts at random needs most of a short training to find out what counting finds
in a second.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..dataset import TokenSequence

_REACH = 12  # tokens to either side that are neighbours, the n-th of them counted as 1 / n
_SAMPLE, _PIECES = 2_000_000, 16  # tokens that are counted, in pieces from all over the text
_CELLS = 1 << 23  # of a table of counts: so many tokens by so many of the most frequent ones
_SMOOTHING = 0.75  # power of the frequency of neighbours: the rare ones say less than they seem to
_STD = 0.06  # of the components; training moves them by some 0.02


@torch.no_grad()
def token_vectors(tokens: TokenSequence, vocab_size: int, emb_dim: int, seed: int) -> Tensor:
    """Factors of the tokens' positive pointwise mutual information with their neighbours.

    ``max(0, log p(neighbour | token) / p(neighbour))``, neighbours before and after apart, is
    brought down to emb_dim columns by a singular value decomposition ("Neural Word Embedding as
    Implicit Matrix Factorization", Levy and Goldberg 2014); singular values by their square root,
    neighbours smoothed and weighted by distance as in "Improving Distributional Similarity with
    Lessons Learned from Word Embeddings", Levy, Goldberg and Dagan 2015. Every vector has the same
    length; a token that has no neighbours, since it does not occur, a random direction.

    Args:
        tokens: ``(n,)``, of the training text.
        vocab_size: number of different tokens, V.
        emb_dim: size of a vector, d.
        seed: the same seed gives the same vectors.

    Returns:
        ``(V, d)``, components of standard deviation 0.06.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        information = torch.cat([_information(c) for c in _counts(tokens, vocab_size)], dim=1)
        rank = min(emb_dim, *information.shape)
        spare = min(rank + 16, *information.shape)  # columns that make the others exact
        left, values, _ = torch.svd_lowrank(information, q=spare, niter=3)
        factors = left[:, :rank] * values[:rank].sqrt()  # (V, rank)
        # A random rotation spreads the first, large factors over all components.
        rotation = torch.linalg.qr(torch.randn(emb_dim, rank)).Q  # (d, rank)
        vectors = factors @ rotation.T + 1e-6 * torch.randn(vocab_size, emb_dim)
    return vectors * (_STD * emb_dim**0.5 / vectors.norm(dim=1, keepdim=True))


def _counts(tokens: TokenSequence, vocab_size: int) -> tuple[Tensor, Tensor]:
    """How often each token has each of the most frequent ones before it, and after it: ``(V, C)``,
    the near ones counted more."""
    pieces = list(_pieces(tokens))
    frequencies = torch.bincount(torch.cat(pieces), minlength=vocab_size)  # (V,)
    most = max(1, min(vocab_size, _CELLS // vocab_size))
    column = torch.full((vocab_size,), most)  # the last, for all others, is dropped below
    column[frequencies.topk(most).indices] = torch.arange(most)
    before, after = (torch.zeros(vocab_size * (most + 1)) for _ in range(2))
    for piece in pieces:
        columns = column[piece]
        for distance in range(1, min(_REACH, len(piece) - 1) + 1):
            weight = torch.full((len(piece) - distance,), 1.0 / distance)
            after.index_add_(0, piece[:-distance] * (most + 1) + columns[distance:], weight)
            before.index_add_(0, piece[distance:] * (most + 1) + columns[:-distance], weight)
    table = (vocab_size, most + 1)
    return before.view(table)[:, :most], after.view(table)[:, :most]


def _pieces(tokens: TokenSequence) -> Iterator[Tensor]:
    """Tokens from all over a text, int64; all of a short one."""
    count = 1 if len(tokens) <= _SAMPLE else _PIECES
    for i in range(count):
        start = i * len(tokens) // count
        piece = tokens[start : start + min(_SAMPLE, len(tokens)) // count]
        yield torch.from_numpy(np.asarray(piece).astype(np.int64))


def _information(counts: Tensor) -> Tensor:
    """Positive pointwise mutual information of counts ``(V, C)``, of the same shape."""
    smoothed = counts.sum(dim=0) ** _SMOOTHING  # (C,)
    expected = counts.sum(dim=1, keepdim=True) * (smoothed / smoothed.sum())  # (V, C)
    # Where nothing is counted, 0 / 0 is no number, and 0 / expected the logarithm's end.
    return (counts / expected).log().nan_to_num(0.0, 0.0, 0.0).clamp(min=0.0)
