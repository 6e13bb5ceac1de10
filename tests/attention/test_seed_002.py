"""Notebooks 000 and 002: from dot products to multi-head attention on two copies of one sentence.
The number in a docstring is the section of 002, In [n] is the cell of 000.
"""

import pytest
import torch
from torch import Tensor

from minigpt.attention import (
    CausalAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    SelfAttentionV1,
    SelfAttentionV2,
    attention_scores,
    attention_weights,
    causal_mask,
    scaled_dot_product_attention,
    simple_self_attention,
)
from tests.attention.seeds import assert_table, table

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
