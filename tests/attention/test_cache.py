"""KeyValueCache: a sequence read in pieces gives what it gives when read whole, forgetting the
latest tokens leaves no trace, and what does not fit is refused.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from minigpt.attention import KeyValueCache, MultiHeadAttention

few = settings(max_examples=25, deadline=None)

D_IN, HEAD_DIM, CONTEXT = 6, 4, 12
EXTRAS: dict[str, dict[str, Any]] = {
    "plain": {},
    "grouped": {"num_kv_heads": 2},
    "rotary": {"rotary_base": 100.0},
    "qk_norm": {"qk_norm": True},
    "all": {"num_kv_heads": 2, "rotary_base": 100.0, "qk_norm": True, "qkv_bias": True},
}
Forward = Callable[[MultiHeadAttention, Tensor, KeyValueCache | None], Tensor]
both_forwards = pytest.mark.parametrize(
    "forward",
    [MultiHeadAttention.forward, lambda layer, x, cache: layer.forward_with_weights(x, cache)[0]],
    ids=["forward", "forward_with_weights"],
)
extras = st.sampled_from(list(EXTRAS))
# Lengths of pieces that together fit into the context.
splits = st.lists(st.integers(1, 5), min_size=1, max_size=CONTEXT).filter(
    lambda pieces: sum(pieces) <= CONTEXT
)


def attention(extra: str = "plain", causal: bool = True) -> MultiHeadAttention:
    torch.manual_seed(123)
    layer = MultiHeadAttention(
        D_IN, 4 * HEAD_DIM, CONTEXT, 0.0, 4, causal=causal, **EXTRAS[extra]
    ).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer.eval()


def cache_of(layer: MultiHeadAttention, batch_size: int = 2) -> KeyValueCache:
    return KeyValueCache(
        batch_size, layer.num_kv_heads, CONTEXT, HEAD_DIM, dtype=layer.W_key.weight.dtype
    )


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# Reading in pieces


@both_forwards
@given(pieces=splits, extra=extras)
@few
def test_a_sequence_fed_in_pieces_gives_the_output_of_the_whole(
    forward: Forward, pieces: list[int], extra: str
) -> None:
    layer, x = attention(extra), normal(2, sum(pieces), D_IN)
    cache = cache_of(layer)
    outputs = [forward(layer, piece, cache) for piece in x.split(pieces, dim=1)]
    torch.testing.assert_close(torch.cat(outputs, dim=1), layer(x))
    assert cache.length == sum(pieces)


@both_forwards
@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("pieces", [[12], [1] * 12, [5, 7], [1, 11], [11, 1]], ids=str)
def test_the_splits_that_decoding_meets(forward: Forward, pieces: list[int], extra: str) -> None:
    """A prompt at once, token by token, several tokens behind a prompt, and a last one."""
    layer, x = attention(extra), normal(2, CONTEXT, D_IN)
    cache = cache_of(layer)
    outputs = [forward(layer, piece, cache) for piece in x.split(pieces, dim=1)]
    torch.testing.assert_close(torch.cat(outputs, dim=1), layer(x))


@both_forwards
def test_a_prompt_on_an_empty_cache_is_masked(forward: Forward) -> None:
    layer, x = attention(), normal(1, 6, D_IN)
    changed = torch.cat([x[:, :-1], x[:, -1:] + 1], dim=1)
    before, after = (forward(layer, part, cache_of(layer, 1)) for part in (x, changed))
    assert torch.equal(before[:, :-1], after[:, :-1])
    assert not torch.allclose(before[:, -1], after[:, -1])


@given(start=st.integers(1, 6), T=st.integers(1, 6), extra=extras)
@few
def test_weights_behind_a_cache_are_the_last_rows_of_all_weights(
    start: int, T: int, extra: str
) -> None:
    layer, x = attention(extra), normal(2, start + T, D_IN)
    cache = cache_of(layer)
    layer(x[:, :start], cache)
    _, weights = layer.forward_with_weights(x[:, start:], cache)
    torch.testing.assert_close(weights, layer.forward_with_weights(x)[1][:, :, start:])


@both_forwards
def test_without_the_mask_the_last_piece_attends_to_everything(forward: Forward) -> None:
    layer, x = attention("all", causal=False), normal(2, 9, D_IN)
    cache = cache_of(layer)
    forward(layer, x[:, :5], cache)
    torch.testing.assert_close(forward(layer, x[:, 5:], cache), layer(x)[:, 5:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_cache_keeps_the_type_of_its_layer(dtype: torch.dtype) -> None:
    """Tolerance: 24 bits for float32, 8 bits for bfloat16, of outputs up to about ten."""
    layer, x = attention("all").to(dtype), normal(2, 9, D_IN).to(dtype)
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


# Forgetting


@both_forwards
@given(kept=st.integers(0, 4), dropped=st.integers(0, 4), more=st.integers(1, 4), extra=extras)
@few
def test_trim_leaves_no_trace_of_what_it_forgets(
    forward: Forward, kept: int, dropped: int, more: int, extra: str
) -> None:
    layer = attention(extra)
    x, other = normal(2, kept + more, D_IN), normal(2, dropped, D_IN, seed=1)
    cache = cache_of(layer)
    for piece in (x[:, :kept], other):
        if piece.shape[1]:
            forward(layer, piece, cache)
    cache.trim(kept)
    assert cache.length == kept
    torch.testing.assert_close(forward(layer, x[:, kept:], cache), layer(x)[:, kept:])


@pytest.mark.parametrize("length", [-1, 6])
def test_trim_to_what_is_not_stored_is_refused(length: int) -> None:
    layer = attention()
    cache = cache_of(layer)
    layer(normal(2, 5, D_IN), cache)
    with pytest.raises(ValueError, match=f"cache of 5 tokens to {length}"):
        cache.trim(length)
    assert cache.length == 5


# What does not fit


@pytest.mark.parametrize(
    "shape", [(2, 4, 8, HEAD_DIM), (3, 4, 1, HEAD_DIM), (2, 2, 1, HEAD_DIM), (2, 4, 1, 2)], ids=str
)
def test_what_does_not_fit_into_the_cache_is_refused(shape: tuple[int, ...]) -> None:
    """Too many tokens, another batch size, other heads, another head_dim."""
    cache = KeyValueCache(2, 4, CONTEXT, HEAD_DIM, dtype=torch.float64)
    cache.update(normal(2, 4, 5, HEAD_DIM), normal(2, 4, 5, HEAD_DIM))
    with pytest.raises(ValueError, match="do not fit") as error:
        cache.update(normal(*shape), normal(*shape))
    assert str(shape) in str(error.value)
    assert str((2, 4, 7, HEAD_DIM)) in str(error.value)
    assert cache.length == 5


@both_forwards
def test_another_batch_size_is_refused(forward: Forward) -> None:
    layer = attention()
    with pytest.raises(ValueError, match=r"\(3, 4, 1, 4\) .* room \(2, 4, 12, 4\)"):
        forward(layer, normal(3, 1, D_IN), cache_of(layer, 2))


@both_forwards
def test_cached_and_new_tokens_together_may_not_outgrow_context_length(forward: Forward) -> None:
    """Even if the cache has room for more than the layer was made for."""
    layer = attention("rotary")
    cache = KeyValueCache(2, 4, 2 * CONTEXT, HEAD_DIM, dtype=torch.float64)
    forward(layer, normal(2, 8, D_IN), cache)
    with pytest.raises(ValueError, match=r"sequence of 13 tokens .* context_length 12"):
        forward(layer, normal(2, 5, D_IN), cache)
    assert cache.length == 8
    forward(layer, normal(2, 4, D_IN), cache)
