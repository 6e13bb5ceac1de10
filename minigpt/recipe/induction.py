"""An induction circuit to start from: two attention heads that continue what a text repeats.

Where a text has "A B" and later "A" again, the circuit makes "B" likely ("In-context Learning and
Induction Heads", Olsson et al. 2022). It takes two steps:

1. In the first block a head looks back by one token and writes into each token's vector which one
   stands before it. The vector of B then says that A stands before.
2. In the second block a head looks for tokens before which the current one stands: from the later A
   it finds B. It writes which token that is, and the model's head gives that one a higher logit.

By itself a model finds this after many steps only. Training changes these weights like all others.

A token's vector has d components in four groups; all groups after the first are reserved for the
circuit (h is the size of an attention head):

    which token it is | which one stands before | which one to repeat          | a constant
    d - reserved      | 16                      | min(d / 4, h); 0 if tied     | 1

If the model's head is the embedding itself (tied), which one to repeat is written into the first
group.
"""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F

from ..attention import MultiHeadAttention
from ..config import GPTConfig
from ..model import GPT, TransformerBlock

_CODE = 16  # numbers that say which token stands before
# If the other components have a standard deviation of 1:
_CONSTANT = 2.0  # the constant
_WRITTEN = 0.5  # standard deviation of what the circuit writes, which disturbs little
_NATS = 10.0  # that a copy adds to a logit if all that a text repeats goes on as it did before


def reserved_components(config: GPTConfig, tokenizer: str) -> int:
    """How many components of the token vectors the circuit needs, or 0 if it does not fit.

    It needs two blocks, room, tokens longer than a character, rotary positions, and norms that
    give the vectors, the queries and the keys a known size.
    """
    has_blocks = config.num_layers >= 2
    has_room = config.emb_dim >= 64 and config.head_size >= 2 * _CODE
    has_parts = config.positions == "rotary" and config.norm == "rms" and config.qk_norm
    if not (has_blocks and has_room and has_parts) or tokenizer == "char":
        return 0

    to_repeat = 0 if config.tie_embeddings else _copied_numbers(config)
    return _CODE + to_repeat + 1


def with_reserved(vectors: Tensor, reserved: int) -> Tensor:
    """Token vectors ``(V, d - reserved)`` followed by the reserved components, ``(V, d)``: zeros
    and, in the last one, the constant."""
    V, known = vectors.shape
    constant = _CONSTANT * vectors.norm(dim=1, keepdim=True) / known**0.5  # (V, 1)
    zeros = torch.zeros(V, reserved - 1)
    return torch.cat((vectors, zeros, constant), dim=1)


@torch.no_grad()
def start(gpt: GPT, tokens: Tensor, reserved: int) -> None:
    """Set the first heads of the first two blocks, and the model's head for what they copy.

    `tokens` are a sample of the text, ``(pieces, length)``. The token vectors come from
    :func:`with_reserved`, with so many reserved components; the model's head is what training
    begins with.
    """
    embedding = gpt.token_embedding.weight  # (V, d)
    V, d = embedding.shape
    known = d - reserved  # components that say which token it is
    vectors = F.rms_norm(embedding, (d,))  # (V, d), as the first block sees them

    ids = tokens.flatten()  # (n,)
    counts = ids.bincount(minlength=V) + 1.0  # (V,)
    # By the root of its count, a rare token weighs more than its share of the text.
    share = F.normalize(counts.sqrt(), p=1, dim=0)  # (V,)
    circuit = _Circuit(
        config=gpt.config,
        codes=_codes(vectors, known, share),
        previous=slice(known, known + _CODE),
        copied=slice(known + _CODE, d - 1),
        written=_WRITTEN * embedding.norm(dim=1).mean() / d**0.5,
    )

    first = cast(TransformerBlock, gpt.blocks[0]).attention
    second = cast(TransformerBlock, gpt.blocks[1]).attention
    nats = _NATS * _repetition(ids, gpt.config.context_length)
    _look_back(first, circuit)
    _find_what_followed(second, circuit)
    if gpt.config.tie_embeddings:
        _copy_into_vector(second, circuit, nats)
    else:
        _copy_through_head(second, circuit, nats, gpt.head.weight, vectors)


@dataclass(frozen=True)
class _Circuit:
    """What both attention heads and the model's head have to agree about."""

    config: GPTConfig
    codes: Tensor  # (known, d): a row turns a token's vector into a number of the token's code
    previous: slice  # components that say which token stands before
    copied: slice  # components that say which token to repeat
    written: Tensor  # standard deviation of what is written there


def _copied_numbers(config: GPTConfig) -> int:
    """How many numbers say which token to repeat."""
    return min(config.emb_dim // 4, config.head_size)


def _look_back(attention: MultiHeadAttention, circuit: _Circuit) -> None:
    """Head 0 of the first block: attend to the token before, and write its code."""
    _quieten(attention)
    h = circuit.config.head_size

    # Queries and keys are made of the constant alone: only positions matter. Rotary positions turn
    # both by the same angle for each position. A key that is turned by one position more from the
    # start points where the query of the next position points. Quick turns tell positions apart
    # best, so they have the greatest length; how much greater was found by trial.
    exponents = torch.arange(h // 2) / (h // 2)
    angle = circuit.config.rotary_base ** (-exponents)  # (h / 2,)
    length = angle**0.75
    turned = torch.cat((length * angle.cos(), length * angle.sin()))  # (h,)
    attention.W_query.weight[: h // 2, -1] = length
    attention.W_key.weight[:h, -1] = turned

    attention.W_value.weight[:_CODE] = circuit.codes[:_CODE]
    attention.out_proj.weight[circuit.previous, :_CODE] = circuit.written * torch.eye(_CODE)


def _find_what_followed(attention: MultiHeadAttention, circuit: _Circuit) -> None:
    """Head 0 of the second block: attend to tokens before which the current one stands, and read
    their codes."""
    _quieten(attention)

    # The query is the code of the current token, the key the code of the token before. Rotary
    # positions turn component i together with i + h / 2, the last of each half so slowly that
    # positions hardly matter: there the codes are compared.
    pairs = torch.arange(circuit.config.head_size).view(2, -1)  # (2, h / 2)
    half = _CODE // 2
    slow = pairs[:, -half:].flatten()  # (16,)
    attention.W_query.weight[slow] = circuit.codes[:_CODE]
    attention.W_key.weight[slow, circuit.previous] = torch.eye(_CODE)

    C = _copied_numbers(circuit.config)
    attention.W_value.weight[:C] = circuit.codes[-C:]


def _copy_into_vector(attention: MultiHeadAttention, circuit: _Circuit, nats: float) -> None:
    """Write the vector of the token to repeat into the components that say which token it is: the
    model's head is the embedding, and adds so many nats to this token's logit.

    The dot product of a code of C numbers with itself is about C, with another code about 0.
    """
    C = _copied_numbers(circuit.config)
    attention.out_proj.weight[:, :C] = nats / C * circuit.codes[-C:].T  # (d, C)


def _copy_through_head(
    attention: MultiHeadAttention, circuit: _Circuit, nats: float, head: Tensor, vectors: Tensor
) -> None:
    """Write the code of the token to repeat into components of its own, by which the model's head
    ``(V, d)`` can tell similar tokens apart; it adds so many nats to this token's logit.

    `vectors` ``(V, d)`` are those of all tokens, as the first block sees them.
    """
    C = _copied_numbers(circuit.config)
    attention.out_proj.weight[circuit.copied, :C] = circuit.written * torch.eye(C)
    scaled = nats / (C * _WRITTEN) * vectors  # (V, d)
    head[:, circuit.copied] = scaled @ circuit.codes[-C:].T  # (V, C)


def _quieten(attention: MultiHeadAttention) -> None:
    """Shrink the random weights of head 0: what it computes besides begins small."""
    for linear in (attention.W_query, attention.W_key, attention.W_value):
        linear.weight[: attention.head_dim] *= 0.1


def _codes(vectors: Tensor, known: int, share: Tensor) -> Tensor:
    """A random matrix ``(known, d)`` that turns a token's vector into its code: numbers that are
    uncorrelated, of mean 0 and variance 1, so that any few of them tell tokens apart.

    The vectors ``(V, d)`` say in the first `known` components which token they are; `share`
    ``(V,)`` is how much each counts.
    """
    x = vectors[:, :known]  # (V, known)
    mean = share @ x  # (known,)
    centred = x - mean
    values, directions = torch.linalg.eigh(centred.T * share @ centred)

    # Along these directions the vectors are uncorrelated; scaled, they have variance 1 along each.
    scales = (values + 1e-3 * values.mean() + 1e-6).rsqrt()  # (known,)
    rotation = torch.linalg.qr(torch.randn(known, known)).Q  # (known, known)
    codes = torch.zeros(known, vectors.shape[1])
    codes[:, :known] = rotation * scales @ directions.T

    constant = vectors[0, -1]  # the same in all vectors: through it the mean is taken away
    codes[:, -1] = -(codes[:, :known] @ mean) / constant
    return codes


def _repetition(tokens: Tensor, context_length: int) -> float:
    """Of the tokens ``(n,)`` that come again in their window, the share, 0 to 1, that is followed
    by what followed last time."""
    window = torch.arange(len(tokens)) // context_length
    token_in_window = window * (tokens.max() + 1) + tokens  # in another window another number
    ordered, order = token_in_window.sort(stable=True)

    # Now the same tokens of a window stand side by side, in the order of the text.
    comes_again = ordered[1:] == ordered[:-1]
    following = tokens.roll(-1)[order]
    is_followed_alike = following[1:] == following[:-1]
    share = is_followed_alike[comes_again].float().mean()
    return share.nan_to_num().item()  # 0 if no token comes again
