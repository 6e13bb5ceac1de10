"""What all layers have in common that drop weights and have a longest sequence, once for all."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from minigpt.attention import (
    CausalAttention,
    MultiHeadAttentionWrapper,
    attention_weights,
    scaled_dot_product_attention,
)

from .examples import CONTEXT, D_IN, D_OUT, EXTRAS, Forward, attention, both_forwards, normal

Make = Callable[[float], nn.Module]  # of a probability of dropout


def one_head(dropout: float) -> nn.Module:
    torch.manual_seed(123)
    return CausalAttention(D_IN, D_OUT, CONTEXT, dropout).double()


def three_heads(dropout: float) -> nn.Module:
    torch.manual_seed(123)
    return MultiHeadAttentionWrapper(D_IN, D_OUT, CONTEXT, dropout, num_heads=3).double()


def plain(dropout: float) -> nn.Module:
    return attention(dropout=dropout)


def with_all(dropout: float) -> nn.Module:
    return attention(dropout=dropout, **EXTRAS["all"])


class WithWeights(nn.Module):
    """The same layer, asked for its weights too."""

    def __init__(self, layer: Any):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.layer.forward_with_weights(x)[0]
        return output


def with_all_and_weights(dropout: float) -> nn.Module:
    return WithWeights(with_all(dropout))


every_layer = pytest.mark.parametrize(
    "make", [one_head, three_heads, plain, with_all, with_all_and_weights]
)


@every_layer
def test_dropout_acts_in_training_only(make: Make) -> None:
    layer, x = make(0.5).eval(), normal(2, CONTEXT, D_IN)
    expected = make(0.0)(x)
    torch.testing.assert_close(layer(x), expected)
    first, second = layer.train()(x), layer(x)
    assert not torch.allclose(first, expected)
    assert not torch.allclose(first, second)
    torch.testing.assert_close(layer.eval()(x), expected)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1.5, float("nan")])
def test_dropout_that_is_no_probability_below_one_is_refused(dropout: float) -> None:
    x = normal(3, 2)
    for refused in (
        one_head,
        three_heads,
        plain,
        lambda p: scaled_dot_product_attention(x, x, x, dropout=p),
    ):
        with pytest.raises(ValueError, match=rf"dropout .* got {dropout}"):
            refused(dropout)


@every_layer
def test_a_sequence_longer_than_context_length_is_refused(make: Make) -> None:
    layer = make(0.0)
    layer(normal(1, CONTEXT, D_IN))
    with pytest.raises(ValueError, match=r"sequence of 11 tokens .* context_length 10"):
        layer(normal(1, CONTEXT + 1, D_IN))


# What is dropped


def weights_by_function(draws: int, p: float) -> tuple[Tensor, Tensor]:
    """Weights ``(draws, 20)`` after dropout, and those before: with values one-hot the output is
    the weights."""
    queries, keys = normal(4, 6).expand(draws, 4, 6), normal(5, 6, seed=1)
    dropped = scaled_dot_product_attention(queries, keys, torch.eye(5).double(), dropout=p)
    return dropped.flatten(1), attention_weights(queries, keys).flatten(1)


def weights_by_layer(forward: Forward, draws: int, p: float) -> tuple[Tensor, Tensor]:
    """The same, ``(draws, heads * T * T)``, of a layer whose output they are: with queries of zero
    and no mask all weights are 1 / T."""
    T, heads = 4, 2
    layer = attention(T, heads * T, heads=heads, dropout=p, causal=False, out_bias=False).train()
    nn.init.zeros_(layer.W_query.weight)
    layer.W_value.weight.data = torch.eye(T).double().repeat(heads, 1)
    nn.init.eye_(layer.out_proj.weight)
    output = forward(layer, torch.eye(T).double().expand(draws, T, T))
    return output.unflatten(-1, (heads, T)).transpose(1, 2).flatten(1), torch.tensor(1 / T).double()


def assert_each_is_dropped_by_itself(dropped: Tensor, weights: Tensor, p: float) -> None:
    """A weight is dropped or scaled by 1 / (1 - p), and two are dropped together only by chance.

    Rates and correlations of N draws have standard errors sqrt(p (1 - p) / N) and 1 / sqrt(N).
    """
    N = len(dropped)
    kept = dropped > 0
    torch.testing.assert_close(dropped, kept * weights / (1 - p))
    rates = kept.double().mean(dim=0)
    assert (rates - (1 - p)).abs().max() < 5 * (p * (1 - p) / N) ** 0.5
    correlations = kept.T.double().corrcoef() - torch.eye(kept.shape[1])
    assert correlations.abs().max() < 5 / N**0.5


def test_the_function_drops_each_weight_by_itself() -> None:
    torch.manual_seed(0)
    assert_each_is_dropped_by_itself(*weights_by_function(4000, 0.3), p=0.3)


@both_forwards
def test_a_layer_drops_each_weight_by_itself(forward: Forward) -> None:
    assert_each_is_dropped_by_itself(*weights_by_layer(forward, 4000, 0.1), p=0.1)


def test_the_weights_returned_in_training_are_those_before_dropout() -> None:
    layer, x = attention(dropout=0.5), normal(2, 7, D_IN)
    expected = layer.forward_with_weights(x)[1]
    torch.testing.assert_close(layer.train().forward_with_weights(x)[1], expected)
