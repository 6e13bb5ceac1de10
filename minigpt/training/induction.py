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
SPARE = _CODE + 1  # and one that is the same in all token vectors
_CONSTANT = 2.0  # that one, if the standard deviation of the others is 1
_WRITTEN = 0.25  # standard deviation of the code, likewise: it hardly disturbs the others
_RIDGE = 0.3  # share of its mean that is added to the diagonal of a matrix before it is inverted


def fits(config: GPTConfig) -> bool:
    """Whether a model has the blocks, the rotary positions and the room for it."""
    has_room = config.emb_dim > 3 * SPARE and config.head_size >= 2 * _CODE
    return config.architecture == "qwen3" and config.num_layers > 1 and has_room


def with_spare(vectors: Tensor) -> Tensor:
    """Token vectors ``(V, d - 17)`` with components to spare, ``(V, d)``."""
    V, d = vectors.shape
    constant = _CONSTANT * vectors.norm(dim=1, keepdim=True) / d**0.5
    return torch.cat((vectors, torch.zeros(V, _CODE), constant), dim=1)


@torch.no_grad()
def start(gpt: GPT, frequencies: Tensor) -> None:
    """Set the first heads of the first two blocks; ``(V,)`` counts tell how often tokens occur.

    The token vectors come from :func:`with_spare`, the head is what training begins with.
    """
    looking_back, inducing = (cast(TransformerBlock, b).attention for b in gpt.blocks[:2])
    h, d = looking_back.head_dim, gpt.config.emb_dim
    known = slice(d - SPARE)  # components that say which token it is
    told = slice(d - SPARE, d - 1)  # which one stands before it
    share = F.normalize((frequencies + 1.0).sqrt(), p=1, dim=0).unsqueeze(1)  # (V, 1)
    embedding = gpt.token_embedding.weight  # (V, d)
    size = embedding.norm(dim=1).mean() / d**0.5
    vectors = F.rms_norm(embedding, (d,))  # (V, d)
    code = _code(vectors[:, known], share, vectors[0, -1])  # (16, d)
    for attention in (looking_back, inducing):
        for linear in (attention.W_query, attention.W_key, attention.W_value):
            linear.weight[:h] *= 0.1  # what they learn besides begins small

    # Rotary positions turn query and key by an angle for each position. Keys that are turned by
    # one position more meet the queries one position later; quick turns tell positions apart best.
    angle = gpt.config.rotary_base ** (-torch.arange(h // 2) / (h // 2))  # (h / 2,)
    length = angle**0.75
    looking_back.W_query.weight[: h // 2, -1] = length
    looking_back.W_key.weight[:h, -1] = torch.cat((length * angle.cos(), length * angle.sin()))
    looking_back.W_value.weight[:_CODE] = code
    looking_back.out_proj.weight[told, :_CODE] = _WRITTEN * size * torch.eye(_CODE)

    # The slowest turns hardly tell positions apart: there the codes are compared.
    slow = torch.arange(h).view(2, -1)[:, -_CODE // 2 :].flatten()  # (16,)
    inducing.W_query.weight[slow] = code
    inducing.W_key.weight[slow, told] = torch.eye(_CODE)
    values, outputs = _copying(vectors, gpt.head.weight / size, share, h)
    inducing.W_value.weight[:h], inducing.out_proj.weight[:, :h] = values, outputs


def _code(vectors: Tensor, share: Tensor, constant: Tensor) -> Tensor:
    """A matrix ``(16, d)`` that maps each token's vector to a code, of mean 0 and variance 1."""
    mean = (share * vectors).sum(dim=0)  # (d - 17,)
    centred = vectors - mean
    values, directions = torch.linalg.eigh(centred.T @ (share * centred))
    least = 1e-3 * values.mean() + 1e-6
    whitening = directions * (values + least).rsqrt() @ directions.T
    chosen = torch.linalg.qr(torch.randn(len(mean), _CODE)).Q.T @ whitening  # (16, d - 17)
    shift = -(chosen @ mean / constant).unsqueeze(1)  # (16, 1)
    return torch.cat((chosen, torch.zeros(_CODE, _CODE), shift), dim=1)


def _copying(vectors: Tensor, head: Tensor, share: Tensor, h: int) -> tuple[Tensor, Tensor]:
    """Values ``(h, d)`` and outputs ``(d, h)``: what they make of a token's vector raises this
    token's own logit, by 1 on average, and that of others as little as can be."""
    vectors, head = (x - (share * x).sum(dim=0) for x in (vectors, head))
    wanted = head.T @ (share * vectors)
    copying = _ridge(head, share) @ wanted @ _ridge(vectors, share)  # (d, d)
    copying[-SPARE:] = copying[:, -SPARE:] = 0.0
    left, sizes, right = torch.linalg.svd(copying)
    left, sizes, right = left[:, :h], sizes[:h], right[:h]
    raised = (share * (vectors @ right.T * sizes @ left.T) * head).sum().clamp(min=1e-6)
    root = (sizes / raised).sqrt()  # (h,)
    return root.unsqueeze(1) * right, left * root


def _ridge(x: Tensor, share: Tensor) -> Tensor:
    """The inverse of the covariance of ``(V, d)``, the diagonal raised: ``(d, d)``."""
    covariance = x.T @ (share * x)
    covariance.diagonal().add_(_RIDGE * covariance.diagonal().mean() + 1e-6)
    return torch.linalg.inv(covariance)
