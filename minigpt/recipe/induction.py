"""An induction circuit to start from: two attention heads that continue what a text repeats.

A head of the first block writes into each token's vector which token stands before it. A head of
the second block attends to the tokens that stand after an earlier copy of the current one, and
makes them more likely ("In-context Learning and Induction Heads", Olsson et al. 2022). By itself a
model finds this after many steps only. Training changes these weights like all others.
"""

from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F

from ..config import GPTConfig
from ..model import GPT, TransformerBlock

_CODE = 16  # components of a vector that say which token stands before
_CONSTANT = 2.0  # one that is the same in all token vectors, if the others' standard deviation is 1
_WRITTEN = 0.5  # standard deviation of what the circuit writes, likewise: it disturbs little
_NATS = 10.0  # that a copy adds to a logit if all that a text repeats goes on as it did before


def spare(config: GPTConfig, tokenizer: str) -> int:
    """Components of the token vectors that the circuit takes for itself, or 0 if it does not fit.

    It needs two blocks, room, tokens longer than a character, rotary positions, and norms that
    give the vectors, the queries and the keys a known size.
    """
    d, h = config.emb_dim, config.head_size
    has_room = d >= 64 and h >= 2 * _CODE and config.num_layers >= 2
    has_parts = config.positions == "rotary" and config.norm == "rms" and config.qk_norm
    if not has_parts or tokenizer == "char" or not has_room:
        return 0
    return _CODE + (0 if config.tie_embeddings else min(d // 4, h)) + 1


def with_spare(vectors: Tensor, spare: int) -> Tensor:
    """Token vectors ``(V, d - spare)`` with components to spare, ``(V, d)``."""
    V, known = vectors.shape
    constant = _CONSTANT * vectors.norm(dim=1, keepdim=True) / known**0.5
    return torch.cat((vectors, torch.zeros(V, spare - 1), constant), dim=1)


@torch.no_grad()
def start(gpt: GPT, tokens: Tensor, spare: int) -> None:
    """Set the first heads of the first two blocks, and the head for what they copy.

    `tokens` are a sample of the text, ``(pieces, length)``. The token vectors come from
    :func:`with_spare`, with so many to spare; the head is what training begins with.
    """
    looking_back, inducing = (cast(TransformerBlock, b).attention for b in gpt.blocks[:2])
    h, d = looking_back.head_dim, gpt.config.emb_dim
    C = min(d // 4, h)  # numbers that say which token is copied
    n = d - spare  # components that say which token it is
    told = slice(n, n + _CODE)  # which one stands before it
    copied = slice(n + _CODE, d - 1)  # and which one to repeat
    embedding, ids = gpt.token_embedding.weight, tokens.flatten()  # (V, d), (tokens,)
    size = embedding.norm(dim=1).mean() / d**0.5
    vectors = F.rms_norm(embedding, (d,))  # (V, d)
    share = F.normalize((ids.bincount(minlength=len(vectors)) + 1.0).sqrt(), p=1, dim=0)  # (V,)
    for attention in (looking_back, inducing):
        for linear in (attention.W_query, attention.W_key, attention.W_value):
            linear.weight[:h] *= 0.1  # what they learn besides begins small

    # Rotary positions turn query and key by an angle for each position. Keys that are turned by
    # one position more meet the queries one position later; quick turns tell positions apart best.
    angle = gpt.config.rotary_base ** (-torch.arange(h // 2) / (h // 2))  # (h / 2,)
    length = angle**0.75
    looking_back.W_query.weight[: h // 2, -1] = length
    looking_back.W_key.weight[:h, -1] = torch.cat((length * angle.cos(), length * angle.sin()))
    codes = _codes(vectors, n, share)  # (n, d)
    looking_back.W_value.weight[:_CODE] = codes[:_CODE]
    looking_back.out_proj.weight[told, :_CODE] = _WRITTEN * size * torch.eye(_CODE)

    # The slowest turns hardly tell positions apart: there the codes are compared.
    slow = torch.arange(h).view(2, -1)[:, -_CODE // 2 :].flatten()  # (16,)
    inducing.W_query.weight[slow] = codes[:_CODE]
    inducing.W_key.weight[slow, told] = torch.eye(_CODE)
    nats = _NATS * _repetition(ids, gpt.config.context_length)
    inducing.W_value.weight[:C] = codes[-C:]
    if gpt.config.tie_embeddings:  # the head is the embedding: the vector itself is written
        inducing.out_proj.weight[:, :C] = nats / C * codes[-C:].T
    else:  # in components of its own, by which the head can tell similar tokens apart
        inducing.out_proj.weight[copied, :C] = _WRITTEN * size * torch.eye(C)
        gpt.head.weight[:, copied] = nats / (C * _WRITTEN) * vectors @ codes[-C:].T


def _codes(vectors: Tensor, n: int, share: Tensor) -> Tensor:
    """A random matrix ``(n, d)``: from a token vector to n numbers, uncorrelated, of variance 1."""
    x = vectors[:, :n]  # (V, n)
    mean = share @ x  # (n,)
    values, directions = torch.linalg.eigh((x - mean).T * share @ (x - mean))
    sizes = (values + 1e-3 * values.mean() + 1e-6).rsqrt()
    codes = torch.zeros(n, vectors.shape[1])
    codes[:, :n] = torch.linalg.qr(torch.randn(n, n)).Q * sizes @ directions.T
    codes[:, -1] = -(codes[:, :n] @ mean) / vectors[0, -1]
    return codes


def _repetition(tokens: Tensor, context_length: int) -> float:
    """Of the tokens ``(n,)`` that stand in the context already, the share that is followed by the
    same token as there."""
    window = torch.arange(len(tokens)) // context_length
    keys, order = (window * (tokens.max() + 1) + tokens).sort(stable=True)
    again, following = keys[1:] == keys[:-1], tokens.roll(-1)[order]
    return (following[1:] == following[:-1])[again].float().mean().nan_to_num().item()
