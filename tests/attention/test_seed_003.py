"""Notebook 003: the running average of a sequence as the simplest causal attention, three ways,
and a single causal head of size 16. In [n] is the cell that printed a table.
"""

import pytest
import torch
from torch import Tensor, nn

from minigpt.attention import (
    CausalAttention,
    attention_weights,
    causal_average,
    causal_mask,
    scaled_dot_product_attention,
)
from tests.attention.seeds import assert_table, table

B, T, C = 4, 8, 2
HEAD_SIZE = 16

AVERAGES = table(
    """
    -2.0555 1.8275 -0.3760  0.6887  0.1984  1.0228  0.1177 0.3465
     0.0888 0.2920  0.2493  0.3563  0.2575  0.1987  0.3182 0.2848
     2.2874 0.9611  0.3789  0.3350  0.2146  0.1187  0.0036 0.3737
    -0.1954 0.3329  0.0413  0.2384 -0.1156  0.1108  0.0977 0.0096
    -0.8961 0.0662 -0.4762  1.2037 -1.2253  0.9724 -1.1226 0.6678
    -0.8971 0.9437 -0.7739  0.7500 -0.8565  0.6346 -0.9811 0.3822
    -0.3454 -1.1625 -0.1005 -0.4981 0.1833 -0.0277 -0.2945 0.3056
    -0.0437 0.4565  0.0685  0.1660 -0.0395  0.4477  0.0294 0.5441
    """,
    *(B, T, C),
)


@pytest.fixture
def x() -> Tensor:
    """The input of the averages: the third draw after seed 1337.

    In [1] seeds once, and the cell that draws had already run twice when In [15] ran it.
    """
    torch.manual_seed(1337)
    return [torch.randn(B, T, C) for _ in range(3)][-1]


@pytest.fixture
def head_input() -> Tensor:
    """In [23]: the first draw after seed 1337; the weights of the head are drawn next."""
    torch.manual_seed(1337)
    return torch.randn(B, T, C)


@pytest.fixture
def head(head_input: Tensor) -> CausalAttention:
    """In [23]: a head whose weights were drawn in the order key, query, value."""
    key, query, value = (nn.Linear(C, HEAD_SIZE, bias=False) for _ in range(3))
    layer = CausalAttention(C, HEAD_SIZE, T, 0.0)
    layer.W_key.load_state_dict(key.state_dict())
    layer.W_query.load_state_dict(query.state_dict())
    layer.W_value.load_state_dict(value.state_dict())
    return layer


# The running average


def test_weights_of_the_running_average() -> None:
    """In [16]: one over the number of positions seen, shown by averaging the identity."""
    expected = torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]
    assert_table(causal_average(torch.eye(T)), expected)
    equal_scores = torch.zeros(T, C)
    assert_table(attention_weights(equal_scores, equal_scores, mask=causal_mask(T)), expected)


def test_running_averages(x: Tensor) -> None:
    """In [15], In [17] and In [18]: the same table."""
    assert_table(causal_average(x), AVERAGES)
    means = torch.stack([x[:, : t + 1].mean(dim=1) for t in range(T)], dim=1)
    torch.testing.assert_close(causal_average(x), means)


# A single head


def test_output_of_the_single_head(head: CausalAttention, head_input: Tensor) -> None:
    """In [23]: the first four positions of the first sequence, all that the notebook keeps."""
    expected = table(
        """
         6.6016e-02  8.6541e-02 -2.1800e-03 -9.7871e-02  4.9378e-02 -8.4692e-02 -1.6165e-01
        -4.9517e-02  1.2838e-01  1.3316e-01  9.1477e-03  5.9705e-02  1.5792e-01 -3.8152e-02
         4.1841e-02 -8.9396e-02 -2.5548e-01  1.1884e-01 -2.2966e-01 -1.9912e-01  3.3471e-01
         1.5141e-01 -2.4099e-01  7.8147e-02  2.9808e-02  2.5287e-01  1.9010e-01 -9.2274e-02
         2.7042e-01 -6.0876e-02 -1.4815e-01 -2.5797e-01 -2.7583e-02  1.5441e-01 -9.9084e-02
        -2.0180e-01  2.0019e-01 -3.8674e-02 -2.9640e-01 -2.6971e-02  1.6753e-01  2.6698e-01
         9.0885e-02  3.3340e-02  3.0425e-01 -7.1635e-02 -1.1698e-02 -2.1629e-01  1.5503e-01
         2.0607e-01 -6.6096e-03 -2.3345e-01  1.1925e-01 -1.9999e-01 -3.8504e-01 -1.1699e-01
         3.0476e-01  3.1750e-01  2.2893e-02  1.4108e-01  3.7636e-01 -9.0899e-02  9.8343e-02
        -2.1371e-01
        """,
        *(4, HEAD_SIZE),
    )
    out = head(head_input)
    assert out.shape == (B, T, HEAD_SIZE)
    # Five digits, whatever the power of ten. Float32 rounds to about 2e-8, which shows in the
    # fifth digit of the smallest numbers: a little more than half a unit of it is allowed.
    power = 10 ** expected.abs().log10().floor()
    assert_table(out[0, :4] / power, expected / power, atol=8e-5)


def test_weights_of_the_single_head_before_it_was_scaled(
    head: CausalAttention, head_input: Tensor
) -> None:
    """In [21], printed before In [23] adds the scaling by the root of the head size, 4; queries
    four times as long undo it."""
    expected = table("""
        1.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000
        0.5599 0.4401 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000
        0.3220 0.2016 0.4764 0.0000 0.0000 0.0000 0.0000 0.0000
        0.1640 0.0815 0.2961 0.4585 0.0000 0.0000 0.0000 0.0000
        0.2051 0.3007 0.1894 0.1808 0.1241 0.0000 0.0000 0.0000
        0.0600 0.1273 0.0291 0.0169 0.0552 0.7114 0.0000 0.0000
        0.1408 0.1025 0.1744 0.2038 0.1690 0.0669 0.1426 0.0000
        0.0223 0.1086 0.0082 0.0040 0.0080 0.7257 0.0216 0.1016
    """)
    queries, keys = head.W_query(head_input), head.W_key(head_input)
    assert_table(attention_weights(4 * queries, keys, mask=causal_mask(T))[0], expected)


def test_only_the_mask_separates_a_decoder_from_an_encoder(
    head: CausalAttention, head_input: Tensor
) -> None:
    q, k, v = head.W_query(head_input), head.W_key(head_input), head.W_value(head_input)
    decoded = scaled_dot_product_attention(q, k, v, mask=causal_mask(T))
    encoded = scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(decoded, head(head_input))
    torch.testing.assert_close(decoded[:, -1], encoded[:, -1])  # the last position sees all
    assert not torch.allclose(decoded[:, :-1], encoded[:, :-1])
