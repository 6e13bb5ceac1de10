"""The kinds of positions: of each its parameters, torch and numpy forms, and its names elsewhere.

`POSITIONS` is the table. Positions come into a network in two places: as a vector that is added to
the embedding of each token, or by turning the queries and keys of each head. `Positions` does
neither; a kind overrides what it does.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .norms import Array, NamedArrays, Shapes

if TYPE_CHECKING:
    from torch import nn


class Network(Protocol):
    """What positions may depend on: these fields of a `GPTConfig`."""

    @property
    def context_length(self) -> int: ...
    @property
    def emb_dim(self) -> int: ...
    @property
    def num_heads(self) -> int: ...
    @property
    def kv_heads(self) -> int: ...
    @property
    def head_size(self) -> int: ...
    @property
    def rotary_base(self) -> float: ...
    @property
    def dropout(self) -> float: ...


class NumpyTurn(Protocol):
    """Turns queries and keys in the glass engine."""

    def at(self, positions: Any) -> "NumpyTurn":
        """Only for some tokens: the index of their positions, a slice of T or ``(b, T)``."""

    def __call__(self, x: Array) -> Array:
        """The vectors ``(b, T, heads, head_dim)`` of these tokens, turned."""


class NumpyPositions(NamedTuple):
    """Positions in the glass engine; what is None is not done."""

    vectors: Array | None = None  # (context_length, emb_dim), added to the embedding of each token
    turn: NumpyTurn | None = None


class Positions:
    """A kind of positions. This one is none at all."""

    turns_pairs = False  # whether a head needs an even number of components

    def shapes(self, network: Network) -> Shapes:
        """The parameters of `vectors`, whose names begin with "position_embedding"."""
        return {}

    def vectors(self, network: Network) -> "nn.Module | None":
        """A new torch module from positions ``(T,)`` to the vectors ``(T, emb_dim)`` that are added
        to the embeddings of tokens. If it has buffers, its `reset_parameters` fills them."""
        return None

    def in_attention(self, network: Network) -> dict[str, Any]:
        """The arguments with which `MultiHeadAttention` is made, so that it turns by position."""
        return {}

    def numpy_form(self, network: Network, weights: NamedArrays) -> NumpyPositions:
        """The same for the glass engine, with the weights of a whole network."""
        return NumpyPositions()

    def huggingface(self, network: Network) -> dict[str, Any]:
        """What a config.json of transformers says of these positions alone."""
        return {}

    def gguf(self, network: Network) -> dict[str, Any]:
        """What a GGUF file says of them alone: the ends of methods of a `GGUFWriter`."""
        return {}


class Learned(Positions):
    """A learned vector for each position, added to the token's (Radford et al. 2019)."""

    def shapes(self, network: Network) -> Shapes:
        return {"position_embedding.weight": (network.context_length, network.emb_dim)}

    def vectors(self, network: Network) -> "nn.Module | None":
        from torch import nn

        return nn.Embedding(network.context_length, network.emb_dim)

    def numpy_form(self, network: Network, weights: NamedArrays) -> NumpyPositions:
        return NumpyPositions(vectors=weights["position_embedding.weight"])

    def huggingface(self, network: Network) -> dict[str, Any]:
        return {"embd_pdrop": network.dropout}


class Rotary(Positions):
    """Queries and keys are turned by an angle that grows with the position; the torch form is
    `attention/rotary.py`."""

    turns_pairs = True

    def in_attention(self, network: Network) -> dict[str, Any]:
        return {"rotary_base": network.rotary_base}

    def numpy_form(self, network: Network, weights: NamedArrays) -> NumpyPositions:
        """Turns by the angle ``t base^(-2i / head_dim)``, for each pair i and each position t of
        the context."""
        exponents = -np.arange(0, network.head_size, 2) / network.head_size
        angles = np.outer(np.arange(network.context_length), network.rotary_base**exponents)
        angles = angles[:, None, None, :]  # (context_length, 1, 1, head_dim / 2)

        sines = np.concatenate((-np.sin(angles), np.sin(angles)), axis=2)
        turn = Rotation(np.cos(angles).astype(np.float32), sines.astype(np.float32))
        return NumpyPositions(turn=turn)

    def huggingface(self, network: Network) -> dict[str, Any]:
        # transformers 5 reads rope_parameters, 4 reads rope_theta.
        return {"rope_parameters": {"rope_type": "default", "rope_theta": network.rotary_base}}

    def gguf(self, network: Network) -> dict[str, Any]:
        return {
            "head_count_kv": network.kv_heads,
            "key_length": network.head_size,
            "value_length": network.head_size,
            "rope_dimension_count": network.head_size,
            "rope_freq_base": network.rotary_base,
        }


class Rotation(NamedTuple):
    """Cosines and sines of the angles by which pairs of components turn."""

    cos: Array  # (..., 1, 1, head_dim / 2)
    sin: Array  # (..., 1, 2, head_dim / 2): -sin for the first of a pair, sin for the second

    def at(self, positions: Any) -> "Rotation":
        return Rotation(self.cos[positions], self.sin[positions])

    def __call__(self, x: Array) -> Array:
        """Each pair of components i and j = i + head_dim / 2 is turned by an angle:
        ``(x_i cos - x_j sin, x_j cos + x_i sin)``."""
        pairs = x.reshape(*x.shape[:-1], 2, -1)  # (b, T, heads, 2, head_dim / 2)
        swapped = pairs[..., ::-1, :]
        return (pairs * self.cos + swapped * self.sin).reshape(x.shape)


POSITIONS: dict[str, Positions] = {"rotary": Rotary(), "learned": Learned()}
