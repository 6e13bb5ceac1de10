"""Notebook 000: self-attention on one sentence of six words, first without weights, then with
three weight matrices. In [n] is the cell that printed a table.
"""

import torch

from minigpt.attention import (
    SelfAttentionV1,
    attention_scores,
    attention_weights,
    scaled_dot_product_attention,
    simple_self_attention,
)
from tests.attention.seeds import (
    JOURNEY,
    JOURNEY_CONTEXTS,
    JOURNEY_SCORES,
    JOURNEY_WEIGHTS,
    THREE_MATRIX_CONTEXTS,
    assert_table,
)


def test_the_second_word_without_weights() -> None:
    """In [13] to In [15]: scores, their softmax (not yet scaled), the context vector."""
    scores = attention_scores(JOURNEY[1:2], JOURNEY)[0]
    assert_table(scores, [0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])
    assert_table(scores.softmax(dim=-1), [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581])
    assert_table(simple_self_attention(JOURNEY)[1], [0.4419, 0.6515, 0.5683])


def test_all_words_without_weights() -> None:
    """In [17], In [18] and In [21]."""
    scores = attention_scores(JOURNEY, JOURNEY)
    assert_table(scores, JOURNEY_SCORES)
    assert_table(scores.softmax(dim=-1), JOURNEY_WEIGHTS)
    assert_table(simple_self_attention(JOURNEY), JOURNEY_CONTEXTS)


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
    """In [38]."""
    torch.manual_seed(123)
    assert_table(SelfAttentionV1(3, 2)(JOURNEY), THREE_MATRIX_CONTEXTS)
