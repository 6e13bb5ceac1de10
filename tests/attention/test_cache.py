"""KeyValueCache: a sequence read in pieces gives what it gives when read whole, and what does
not fit is refused.
"""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from minigpt.attention import KeyValueCache

from .examples import (
    CONTEXT,
    D_IN,
    EXTRAS,
    HEAD_DIM,
    HEADS,
    Forward,
    attention,
    both_forwards,
    cache_of,
    extras,
    few,
    normal,
)

# Lengths of pieces that together fit into the context.
splits = st.lists(st.integers(1, 5), min_size=1, max_size=CONTEXT).filter(
    lambda pieces: sum(pieces) <= CONTEXT
)


# Reading in pieces


@both_forwards
@given(pieces=splits, extra=extras)
@example(pieces=[CONTEXT], extra="all")
@example(pieces=[1] * CONTEXT, extra="all")
@example(pieces=[4, 6], extra="all")
@example(pieces=[CONTEXT - 1, 1], extra="all")
@few
def test_a_sequence_read_in_pieces_gives_the_output_of_the_whole(
    forward: Forward, pieces: list[int], extra: str
) -> None:
    layer, x = attention(**EXTRAS[extra]), normal(2, sum(pieces), D_IN)
    cache = cache_of(layer)
    outputs = [forward(layer, piece, cache) for piece in x.split(pieces, dim=1)]
    torch.testing.assert_close(torch.cat(outputs, dim=1), layer(x))
    assert cache.length == sum(pieces)


@given(start=st.integers(1, 5), T=st.integers(1, 5), extra=extras)
@few
def test_weights_after_a_cache_are_the_last_rows_of_all_weights(
    start: int, T: int, extra: str
) -> None:
    layer, x = attention(**EXTRAS[extra]), normal(2, start + T, D_IN)
    cache = cache_of(layer)
    layer(x[:, :start], cache)
    _, weights = layer.forward_with_weights(x[:, start:], cache)
    torch.testing.assert_close(weights, layer.forward_with_weights(x)[1][:, :, start:])


@both_forwards
def test_without_the_mask_the_last_piece_attends_to_everything(forward: Forward) -> None:
    layer, x = attention(causal=False, **EXTRAS["all"]), normal(2, 9, D_IN)
    cache = cache_of(layer)
    forward(layer, x[:, :5], cache)
    torch.testing.assert_close(forward(layer, x[:, 5:], cache), layer(x)[:, 5:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_cache_keeps_the_type_of_its_layer(dtype: torch.dtype) -> None:
    """Tolerance: 24 bits for float32, 8 bits for bfloat16, of outputs up to about ten."""
    layer, x = attention(**EXTRAS["all"]).to(dtype), normal(2, 9, D_IN).to(dtype)
    cache = cache_of(layer)
    outputs = torch.cat([layer(piece, cache) for piece in x.split(4, dim=1)], dim=1)
    assert outputs.dtype == cache.keys.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float32 else 0.1
    torch.testing.assert_close(outputs, layer(x), atol=tolerance, rtol=0.02)


def test_update_returns_what_was_read_and_allocates_nothing() -> None:
    cache = KeyValueCache(2, 3, CONTEXT, HEAD_DIM, dtype=torch.float64)
    memory = cache.keys.data_ptr(), cache.values.data_ptr()
    k, v = normal(2, 3, 7, HEAD_DIM), normal(2, 3, 7, HEAD_DIM, seed=1)
    cache.update(k[:, :, :5], v[:, :, :5])
    keys, values = cache.update(k[:, :, 5:], v[:, :, 5:])
    assert torch.equal(keys, k)
    assert torch.equal(values, v)
    assert (keys.data_ptr(), values.data_ptr()) == memory


def test_a_cache_is_on_the_device_asked_for() -> None:
    cache = KeyValueCache(1, 1, CONTEXT, HEAD_DIM, device="meta")
    assert cache.keys.device.type == cache.values.device.type == "meta"


def test_gradients_reach_the_tokens_that_a_cache_holds() -> None:
    layer, cache = attention(), KeyValueCache(1, HEADS, CONTEXT, HEAD_DIM, dtype=torch.float64)
    first, second = normal(1, 3, D_IN).requires_grad_(), normal(1, 2, D_IN, seed=1)
    before = layer(first, cache)
    layer(second, cache).sum().backward(retain_graph=True)
    assert first.grad is not None and first.grad.abs().sum() > 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        before.sum().backward()


# What does not fit


@pytest.mark.parametrize("which", range(4))
def test_a_cache_of_a_size_below_one_is_refused(which: int) -> None:
    sizes = [2, 2, 2, 2]
    sizes[which] = 0
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        KeyValueCache(*sizes)


@pytest.mark.parametrize(
    ("keys", "values", "words"),
    [
        ((2, 4, 6, 2), (2, 4, 6, 2), r"\(2, 4, 6, 2\) .* room \(2, 4, 5, 2\)"),  # too many tokens
        ((3, 4, 1, 2), (3, 4, 1, 2), r"\(3, 4, 1, 2\) .* room \(2, 4, 5, 2\)"),  # more sequences
        ((2, 2, 1, 2), (2, 2, 1, 2), r"\(2, 2, 1, 2\) .* room \(2, 4, 5, 2\)"),  # other heads
        ((2, 4, 1, 3), (2, 4, 1, 3), r"\(2, 4, 1, 3\) .* room \(2, 4, 5, 2\)"),  # other head_dim
        ((2, 4, 1, 2), (2, 4, 2, 2), r"same shape, got \(2, 4, 1, 2\) and \(2, 4, 2, 2\)"),
    ],
)
def test_what_does_not_fit_into_the_cache_is_refused(
    keys: tuple[int, ...], values: tuple[int, ...], words: str
) -> None:
    cache = KeyValueCache(2, 4, CONTEXT, HEAD_DIM, dtype=torch.float64)
    cache.update(normal(2, 4, 5, HEAD_DIM), normal(2, 4, 5, HEAD_DIM))
    with pytest.raises(ValueError, match=words):
        cache.update(normal(*keys), normal(*values))
    assert cache.length == 5


@both_forwards
def test_cached_and_new_tokens_together_may_not_outgrow_context_length(forward: Forward) -> None:
    """Even if the cache has room for more than the layer was made for."""
    layer = attention(rotary_base=100.0)
    cache = cache_of(layer, 2 * CONTEXT)
    forward(layer, normal(2, 6, D_IN), cache)
    with pytest.raises(ValueError, match=r"sequence of 11 tokens .* context_length 10"):
        forward(layer, normal(2, 5, D_IN), cache)
    assert cache.length == 6
    forward(layer, normal(2, 4, D_IN), cache)
