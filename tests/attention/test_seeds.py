"""The seed notebooks 000 to 004: each number that they print, and the package's beside it.

A table is compared to its printed digits. In [n] is the cell of a notebook that printed it.
"""

import math

import pytest
import torch
from torch import Tensor, nn

from minigpt.attention import (
    CausalAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    SelfAttentionV1,
    SelfAttentionV2,
    attention_scores,
    attention_weights,
    causal_average,
    causal_mask,
    scaled_dot_product_attention,
    simple_self_attention,
)


def table(text: str, *shape: int) -> Tensor:
    """The numbers of a printed table, one row a line unless a shape is given.

    They are read in float64, so that none of their digits is lost.
    """
    numbers = torch.tensor([float(number) for number in text.split()], dtype=torch.float64)
    return numbers.reshape(shape or (len(text.strip().splitlines()), -1))


def assert_table(
    actual: Tensor, expected: Tensor | float | list[float] | list[list[float]], atol: float = 5.1e-5
) -> None:
    """The same shape, and every number the printed one; the default is for four printed digits."""
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual.detach().double().cpu(), expected, atol=atol, rtol=0)


# Notebook 001: scaled dot-product attention of given queries, keys and values in float64, its
# causal mask, and why the scores are divided by the square root of d_k.
# The printed inputs have eight digits, so what follows from them agrees to about 1e-7.

EIGHT_DIGITS = 1e-7

Q = table("""
     0.03076571 -0.66596084 -0.57981773  0.78204297 -2.20486326  0.26485014
    -0.67861224  0.49590148  0.13423506 -0.4223308   0.7713341  -1.18389824
     2.0906267   0.27694552 -1.1727269   1.66930336 -0.14534764  0.74502536
    -1.13411916  1.13097436 -1.65952086 -2.06938392  2.02277881  0.37287297
""")
K = table("""
    -1.22715745  1.49918116  0.89824522 -0.08052928 -2.21706475 -0.26191323
     0.71747107  0.009494   -0.69504954  0.02322563 -1.25806545 -0.11341351
     0.91258838  1.11400796  0.46615481 -0.170631   -0.17803358 -0.97992068
     1.05682361  0.70185397  0.62036256 -0.63105621 -0.80103572 -2.07085978
""")
V = table("""
    -0.48742851  1.76485745  0.36118831  0.84109156  1.64645719  2.49370612
    -0.41495437 -0.82550919 -1.8979914   1.13401928 -0.17321176 -0.39958629
    -0.86078293  0.08485973  0.13252766  0.6324223   0.25428529 -0.25960824
    -1.01291217  0.73806086  0.21143847 -0.17391314 -1.78605033 -0.59720633
""")
FOUR, D_K = Q.shape

SCALED_SCORES = table("""
     1.30599064  1.29853211 -0.40193157 -0.0287394
     0.13503922 -0.58028584  0.4452293   0.74076119
    -1.31090471  1.00217946  0.27789664 -0.32805017
    -1.1508619  -0.93270475 -0.3760255  -1.02914406
""")
FOUR_WEIGHTS = table("""
    1.         0.         0.         0.
    0.67157673 0.32842327 0.         0.
    0.06248665 0.63146158 0.30605177 0.
    0.18039292 0.22436955 0.39149539 0.20374214
""")
FOUR_CONTEXTS = table("""
    -0.48742851  1.76485745  0.36118831  0.84109156  1.64645719  2.49370612
    -0.46362631  0.91412078 -0.38077887  0.93729584  1.04883557  1.54348157
    -0.55592966 -0.38502584 -1.13537887  0.96220057  0.07132949 -0.17595361
    -0.72439722  0.31674494 -0.26573278  0.61832334 -0.00619643  0.1368804
""")


# Dot products and scaling


def test_scores_of_four_queries_and_four_keys() -> None:
    expected = table("""
         3.19901068  3.18074107 -0.98452726 -0.07039688
         0.33077719 -1.4214042   1.09058459  1.81448694
        -3.21104763  2.45482831  0.68070498 -0.80355552
        -2.81902441 -2.28465071 -0.92107062 -2.52087782
    """)
    scores = attention_scores(Q, K)
    assert_table(scores, expected, atol=EIGHT_DIGITS)
    assert_table(scores.var(correction=0), 4.089120011404893, atol=EIGHT_DIGITS)


def test_scaled_scores_have_a_sixth_of_the_variance() -> None:
    scaled = attention_scores(Q, K) / math.sqrt(D_K)
    assert_table(scaled, SCALED_SCORES, atol=EIGHT_DIGITS)
    assert_table(scaled.var(correction=0), 0.6815200019008156, atol=EIGHT_DIGITS)


def test_an_encoder_attends_without_the_mask() -> None:
    weights = torch.softmax(SCALED_SCORES, dim=-1)
    assert_table(attention_weights(Q, K), weights, atol=EIGHT_DIGITS)
    assert_table(scaled_dot_product_attention(Q, K, V), weights @ V, atol=5 * EIGHT_DIGITS)


@pytest.mark.parametrize("d_k", [2, 8, 32, 128, 512])
def test_scaling_keeps_the_variance_of_the_scores_near_one(d_k: int) -> None:
    """For unit-variance queries and keys; without it the variance is about d_k.

    The logarithms of a row of weights are the scaled scores minus a constant, so that the
    variances of both are equal.
    """
    draw = torch.Generator().manual_seed(d_k)
    queries = torch.randn(1000, d_k, generator=draw, dtype=torch.float64)
    keys = torch.randn(2000, d_k, generator=draw, dtype=torch.float64)
    unscaled = attention_scores(queries, keys).var(dim=-1).mean()
    scaled = attention_weights(queries, keys).log().var(dim=-1).mean()
    assert unscaled.item() == pytest.approx(d_k, rel=0.1)
    assert scaled.item() == pytest.approx(1.0, rel=0.1)


# Softmax and context vectors


def test_causal_weights_and_context_vectors() -> None:
    weights = attention_weights(Q, K, mask=causal_mask(FOUR))
    assert_table(weights, FOUR_WEIGHTS, atol=EIGHT_DIGITS)
    assert_table(weights.sum(dim=-1), [1.0] * FOUR, atol=1e-12)
    contexts = scaled_dot_product_attention(Q, K, V, mask=causal_mask(FOUR))
    assert_table(contexts, FOUR_CONTEXTS, atol=EIGHT_DIGITS)


def test_mask_allows_the_lower_triangle() -> None:
    allowed = table("""
        1. 0. 0. 0.
        1. 1. 0. 0.
        1. 1. 1. 0.
        1. 1. 1. 1.
    """)
    assert causal_mask(FOUR).dtype == torch.bool
    assert_table(~causal_mask(FOUR), allowed, atol=0)


# Notebooks 000 and 002: from dot products to multi-head attention on two copies of one sentence.
# The number in a docstring is the section of 002, In [n] is the cell of 000.

# One sentence of six words, each embedded in three dimensions.
JOURNEY = torch.tensor(
    [
        [0.43, 0.15, 0.89],  # Your
        [0.55, 0.87, 0.66],  # journey
        [0.57, 0.85, 0.64],  # starts
        [0.22, 0.58, 0.33],  # with
        [0.77, 0.25, 0.10],  # one
        [0.05, 0.80, 0.55],  # step
    ]
)

# Dot products of all pairs of words, and the context vectors (000 In [16] to [21],
# 002 section 3.3.2).
JOURNEY_SCORES = table("""
    0.9995 0.9544 0.9422 0.4753 0.4576 0.6310
    0.9544 1.4950 1.4754 0.8434 0.7070 1.0865
    0.9422 1.4754 1.4570 0.8296 0.7154 1.0605
    0.4753 0.8434 0.8296 0.4937 0.3474 0.6565
    0.4576 0.7070 0.7154 0.3474 0.6654 0.2935
    0.6310 1.0865 1.0605 0.6565 0.2935 0.9450
""")
JOURNEY_CONTEXTS = table("""
    0.4421 0.5931 0.5790
    0.4419 0.6515 0.5683
    0.4431 0.6496 0.5671
    0.4304 0.6298 0.5510
    0.4671 0.5910 0.5266
    0.4177 0.6503 0.5645
""")

# SelfAttentionV1(3, 2) made after torch.manual_seed(123) (000 In [38], 002 section 3.4.2).
THREE_MATRIX_CONTEXTS = table("""
    0.2996 0.8053
    0.3061 0.8210
    0.3058 0.8203
    0.2948 0.7939
    0.2927 0.7891
    0.2990 0.8040
""")

BATCH = torch.stack((JOURNEY, JOURNEY))  # 3.5.3: (2, 6, 3)
SECOND = JOURNEY[1:2]  # the second word, as one row

# 3.5.1: causal weights of the queries and keys of SelfAttentionV2 made after seed 789
CAUSAL_WEIGHTS = table("""
    1.0000 0.0000 0.0000 0.0000 0.0000 0.0000
    0.5517 0.4483 0.0000 0.0000 0.0000 0.0000
    0.3800 0.3097 0.3103 0.0000 0.0000 0.0000
    0.2758 0.2460 0.2462 0.2319 0.0000 0.0000
    0.2175 0.1983 0.1984 0.1888 0.1971 0.0000
    0.1935 0.1663 0.1666 0.1542 0.1666 0.1529
""")
# 3.5.2: the same after half of them are dropped with seed 123 and the rest doubled
DROPPED_WEIGHTS = table("""
    2.0000 0.0000 0.0000 0.0000 0.0000 0.0000
    0.0000 0.0000 0.0000 0.0000 0.0000 0.0000
    0.7599 0.6194 0.6206 0.0000 0.0000 0.0000
    0.0000 0.4921 0.4925 0.0000 0.0000 0.0000
    0.0000 0.3966 0.0000 0.3775 0.0000 0.0000
    0.0000 0.3327 0.3331 0.3084 0.3331 0.0000
""")
# 3.6.1: two causal heads side by side; the first is the head of 3.5.3
TWO_HEADS = table("""
    -0.4519  0.2216  0.4772  0.1063
    -0.5874  0.0058  0.5891  0.3257
    -0.6300 -0.0632  0.6202  0.3860
    -0.5675 -0.0843  0.5478  0.3589
    -0.5526 -0.0981  0.5321  0.3428
    -0.5299 -0.1081  0.5077  0.3493
""")
ONE_HEAD = TWO_HEADS[:, :2]
# 3.6.2: one layer split into two heads of one dimension each, and its output projection
SPLIT_HEADS = table("""
    0.3190 0.4858
    0.2943 0.3897
    0.2856 0.3593
    0.2693 0.3873
    0.2639 0.3928
    0.2575 0.4028
""")


def twice(table: Tensor) -> Tensor:
    """A table for both sentences of the batch."""
    return torch.stack((table, table))


@pytest.fixture
def linear_layers() -> SelfAttentionV2:
    """3.4.2: the version with Linear layers, made after seed 789."""
    torch.manual_seed(789)
    return SelfAttentionV2(3, 2)


@pytest.fixture
def queries(linear_layers: SelfAttentionV2) -> Tensor:
    queries: Tensor = linear_layers.W_query(JOURNEY)
    return queries


@pytest.fixture
def keys(linear_layers: SelfAttentionV2) -> Tensor:
    keys: Tensor = linear_layers.W_key(JOURNEY)
    return keys


# 3.3 Attention without trainable weights


def test_all_words_of_a_batch_without_weights() -> None:
    """3.3, In [13] to In [21], for both sentences of the batch of 3.5.3."""
    scores = attention_scores(BATCH, BATCH)
    assert_table(scores, twice(JOURNEY_SCORES))
    assert_table(simple_self_attention(BATCH), twice(JOURNEY_CONTEXTS))


# 3.4 Attention with trainable weights


def test_the_second_word_with_three_matrices() -> None:
    """3.4.1: the matrices (3, 2) are drawn in the order query, key, value."""
    torch.manual_seed(123)
    layer = SelfAttentionV1(3, 2)
    query = SECOND @ layer.W_query
    keys, values = JOURNEY @ layer.W_key, JOURNEY @ layer.W_value
    assert_table(query[0], [0.4306, 1.4551])
    scores = [1.2705, 1.8524, 1.8111, 1.0795, 0.5577, 1.5440]
    assert_table(attention_scores(query, keys)[0], scores)
    weights = [0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820]
    assert_table(attention_weights(query, keys)[0], weights)
    assert_table(scaled_dot_product_attention(query, keys, values)[0], [0.3061, 0.8210])


def test_the_third_word_with_three_matrices() -> None:
    """In [28] to In [33], which take inputs[2], the third word, although they call it x_2.

    In [30] scores it with its own key, not with the second word's key that the cell takes first.
    """
    torch.manual_seed(123)
    layer = SelfAttentionV1(3, 2)
    query = JOURNEY[2:3] @ layer.W_query
    keys, values = JOURNEY @ layer.W_key, JOURNEY @ layer.W_value
    assert_table(query[0], [0.4300, 1.4343])
    assert_table(attention_scores(query, keys[2:3]), [[1.7877]])
    scores = [1.2544, 1.8284, 1.7877, 1.0654, 0.5508, 1.5238]
    assert_table(attention_scores(query, keys)[0], scores)
    weights = [0.1503, 0.2256, 0.2192, 0.1315, 0.0914, 0.1819]
    assert_table(attention_weights(query, keys)[0], weights)
    assert_table(scaled_dot_product_attention(query, keys, values)[0], [0.3058, 0.8203])


def test_context_vectors_of_the_three_matrix_version() -> None:
    """3.4.2 and In [38], on one sentence and on a batch."""
    torch.manual_seed(123)
    layer = SelfAttentionV1(3, 2)
    assert_table(layer(JOURNEY), THREE_MATRIX_CONTEXTS)
    assert_table(layer(BATCH), twice(THREE_MATRIX_CONTEXTS))


def test_context_vectors_of_the_linear_version(linear_layers: SelfAttentionV2) -> None:
    """3.4.2, on one sentence and on a batch."""
    expected = table("""
        -0.0739 0.0713
        -0.0748 0.0703
        -0.0749 0.0702
        -0.0760 0.0685
        -0.0763 0.0679
        -0.0754 0.0693
    """)
    assert_table(linear_layers(JOURNEY), expected)
    assert_table(linear_layers(BATCH), twice(expected))


def test_the_two_versions_differ_only_in_their_weights(linear_layers: SelfAttentionV2) -> None:
    """3.4.2: a Linear layer keeps the transpose of the matrix, and by default no bias."""
    names = ("W_query", "W_key", "W_value")
    assert all(getattr(linear_layers, name).bias is None for name in names)
    same = SelfAttentionV1(3, 2)
    same.load_state_dict({name: getattr(linear_layers, name).weight.T for name in names})
    torch.testing.assert_close(same(JOURNEY), linear_layers(JOURNEY))


# 3.5 Causal attention


def test_weights_before_the_mask(queries: Tensor, keys: Tensor) -> None:
    """3.5.1."""
    expected = table("""
        0.1921 0.1646 0.1652 0.1550 0.1721 0.1510
        0.2041 0.1659 0.1662 0.1496 0.1665 0.1477
        0.2036 0.1659 0.1662 0.1498 0.1664 0.1480
        0.1869 0.1667 0.1668 0.1571 0.1661 0.1564
        0.1830 0.1669 0.1670 0.1588 0.1658 0.1585
        0.1935 0.1663 0.1666 0.1542 0.1666 0.1529
    """)
    assert_table(attention_weights(queries, keys), expected)


def test_scores_masked_before_the_softmax(queries: Tensor, keys: Tensor) -> None:
    """3.5.1: an allowed pair keeps its score."""
    expected = table("""
        0.2899   -inf   -inf   -inf   -inf   -inf
        0.4656 0.1723   -inf   -inf   -inf   -inf
        0.4594 0.1703 0.1731   -inf   -inf   -inf
        0.2642 0.1024 0.1036 0.0186   -inf   -inf
        0.2183 0.0874 0.0882 0.0177 0.0786   -inf
        0.3408 0.1270 0.1290 0.0198 0.1290 0.0078
    """)
    masked = attention_scores(queries, keys).masked_fill(causal_mask(6), -torch.inf)
    assert_table(masked, expected)


def test_causal_weights(queries: Tensor, keys: Tensor) -> None:
    """3.5.1: masking the scores gives what masking and then dividing the weights gives."""
    weights = attention_weights(queries, keys, mask=causal_mask(6))
    assert_table(weights, CAUSAL_WEIGHTS)
    zeroed = attention_weights(queries, keys) * ~causal_mask(6)
    assert_table(zeroed / zeroed.sum(dim=-1, keepdim=True), CAUSAL_WEIGHTS)


def test_dropout_of_half_of_the_causal_weights(queries: Tensor, keys: Tensor) -> None:
    """3.5.2: with the identity as values, the context vectors are the weights."""
    torch.manual_seed(123)
    shown = scaled_dot_product_attention(
        queries, keys, torch.eye(6), mask=causal_mask(6), dropout=0.5
    )
    assert_table(shown, DROPPED_WEIGHTS)


def test_a_causal_layer_drops_weights_in_training_only(linear_layers: SelfAttentionV2) -> None:
    """3.5.2 and 3.5.3: DROPPED_WEIGHTS times the values, or CAUSAL_WEIGHTS once in eval mode."""
    layer = CausalAttention(3, 2, 6, 0.5)
    for name in ("W_query", "W_key", "W_value"):
        getattr(layer, name).load_state_dict(getattr(linear_layers, name).state_dict())
    values = linear_layers.W_value(JOURNEY).double()
    torch.manual_seed(123)
    assert_table(layer.train()(JOURNEY[None])[0], DROPPED_WEIGHTS @ values, atol=2e-4)
    torch.manual_seed(123)
    assert_table(layer.eval()(JOURNEY[None])[0], CAUSAL_WEIGHTS @ values, atol=2e-4)


# 3.6 Several heads


def test_splitting_one_layer_is_the_same_as_stacking_heads() -> None:
    """3.6.2: with the matrices of the heads of 3.6.1 and an output projection that does nothing."""
    torch.manual_seed(123)
    stacked = MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=2)
    split = MultiHeadAttention(3, 4, 6, 0.0, num_heads=2)
    for name in ("W_query", "W_key", "W_value"):
        rows = torch.cat([getattr(head, name).weight for head in stacked.heads])
        getattr(split, name).load_state_dict({"weight": rows})
    split.out_proj.load_state_dict({"weight": torch.eye(4), "bias": torch.zeros(4)})
    assert_table(split(BATCH), twice(TWO_HEADS))


@pytest.mark.parametrize("tokens", [6, 4, 1])
def test_context_vectors_of_one_head_of_two_and_of_one_layer_split_into_two(tokens: int) -> None:
    """3.5.3 to 3.6.2; those of a shorter sequence are the first rows of the longer one's."""
    torch.manual_seed(123)
    one = CausalAttention(3, 2, 6, 0.0)
    torch.manual_seed(123)
    two = MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=2)
    torch.manual_seed(123)
    split = MultiHeadAttention(3, 2, 6, 0.0, num_heads=2)
    for layer, contexts in ((one, ONE_HEAD), (two, TWO_HEADS), (split, SPLIT_HEADS)):
        assert_table(layer(BATCH[:, :tokens]), twice(contexts[:tokens]))


# Notebook 003: the running average of a sequence as the simplest causal attention, three ways,
# and a single causal head of size 16. In [n] is the cell that printed a table.

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


# Notebook 004: the three words "sky is blue" with given embeddings and weight matrices, from
# queries, keys and values to outputs. In [n] is the cell that holds or prints a table.

# In [5] and In [7]
SKY_IS_BLUE = torch.tensor([[-1.0720, -0.5001], [-0.0120, -0.4311], [-0.0050, -0.5321]])
MATRICES = {
    "W_query": torch.tensor([[-0.0271, -0.3840], [-0.3940, -0.6610]]),
    "W_key": torch.tensor([[-0.4109, 0.5777], [-0.1162, -0.1661]]),
    "W_value": torch.tensor([[-0.2045, 0.1210], [-0.1712, -0.4462]]),
}

SKY_LOGITS = table("""
    -0.2017 0.0427 0.0551
    -0.0498 0.0199 0.0252
    -0.0601 0.0243 0.0309
""")
SKY_WEIGHTS = table("""
    0.2801 0.3577 0.3622
    0.3175 0.3404 0.3422
    0.3141 0.3418 0.3441
""")
SKY_OUTPUTS = table("""
    0.1460 0.1802
    0.1543 0.1757
    0.1535 0.1761
""")


def test_queries_keys_values_scores_weights_and_outputs() -> None:
    """In [9] to In [19]; the outputs from the function and from the layer, alone and as a batch."""
    layer = SelfAttentionV1(2, 2)
    layer.load_state_dict(MATRICES)
    queries, keys, values = (SKY_IS_BLUE @ matrix for matrix in MATRICES.values())
    expected = table("""
        0.2261 0.7422
        0.1702 0.2896
        0.2098 0.3536
    """)
    assert_table(queries, expected)
    expected = table("""
        0.4986 -0.5362
        0.0550  0.0647
        0.0639  0.0855
    """)
    assert_table(keys, expected)
    expected = table("""
        0.3048 0.0934
        0.0763 0.1909
        0.0921 0.2368
    """)
    assert_table(values, expected)
    expected = table("""
        -0.2853 0.0604 0.0779
        -0.0704 0.0281 0.0356
        -0.0850 0.0344 0.0436
    """)
    assert_table(attention_scores(queries, keys), expected)
    assert_table(attention_scores(queries, keys) / math.sqrt(2), SKY_LOGITS)
    assert_table(attention_weights(queries, keys), SKY_WEIGHTS)
    assert_table(scaled_dot_product_attention(queries, keys, values), SKY_OUTPUTS)
    assert_table(layer(SKY_IS_BLUE), SKY_OUTPUTS)
    assert_table(layer(SKY_IS_BLUE[None]), SKY_OUTPUTS[None])
