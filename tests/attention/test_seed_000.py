"""Notebook 000: self-attention on one sentence of six words, first without weights, then with
three weight matrices. Each test holds one printed table; In [n] is the cell that printed it.
"""

import pytest
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

JOURNEY_2 = JOURNEY[1:2]  # the second word, as one row
STARTS = JOURNEY[2:3]  # In [28] takes inputs[2], the third word, although it calls it x_2


@pytest.fixture
def three_matrices() -> SelfAttentionV1:
    """W_query, W_key and W_value (3, 2) drawn in this order after seed 123 (In [28])."""
    torch.manual_seed(123)
    return SelfAttentionV1(3, 2)


def test_scores_of_the_second_word() -> None:
    """In [13]."""
    scores = attention_scores(JOURNEY_2, JOURNEY)[0]
    assert_table(scores, [0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])


def test_weights_of_the_second_word_sum_to_one() -> None:
    """In [14]: the softmax of the scores, not yet scaled."""
    weights = torch.softmax(attention_scores(JOURNEY_2, JOURNEY), dim=-1)[0]
    assert_table(weights, [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581])
    assert weights.sum().item() == pytest.approx(1.0)


def test_context_vector_of_the_second_word() -> None:
    """In [15]."""
    assert_table(simple_self_attention(JOURNEY)[1], [0.4419, 0.6515, 0.5683])


def test_scores_of_all_pairs_of_words_are_their_dot_products() -> None:
    """In [16] pair by pair, In [17] as one product: the same table."""
    scores = attention_scores(JOURNEY, JOURNEY)
    assert_table(scores, JOURNEY_SCORES)
    for i, query in enumerate(JOURNEY):
        for j, key in enumerate(JOURNEY):
            assert scores[i, j].item() == pytest.approx(torch.dot(query, key).item())


def test_weights_of_all_words() -> None:
    """In [18]."""
    assert_table(torch.softmax(attention_scores(JOURNEY, JOURNEY), dim=-1), JOURNEY_WEIGHTS)


def test_context_vectors_of_all_words() -> None:
    """In [21]."""
    assert_table(simple_self_attention(JOURNEY), JOURNEY_CONTEXTS)


def test_query_of_the_third_word(three_matrices: SelfAttentionV1) -> None:
    """In [28]."""
    assert_table((STARTS @ three_matrices.W_query)[0], [0.4300, 1.4343])


def test_keys_and_values_have_one_row_a_word(three_matrices: SelfAttentionV1) -> None:
    """In [29]."""
    assert (JOURNEY @ three_matrices.W_key).shape == (6, 2)
    assert (JOURNEY @ three_matrices.W_value).shape == (6, 2)


def test_score_of_the_third_word_with_itself(three_matrices: SelfAttentionV1) -> None:
    """In [30]: its own key is used, not the second word's, which the cell takes out before."""
    query, key = STARTS @ three_matrices.W_query, STARTS @ three_matrices.W_key
    assert_table(attention_scores(query, key), [[1.7877]])


def test_scores_of_the_third_word_with_all_words(three_matrices: SelfAttentionV1) -> None:
    """In [31]."""
    query, keys = STARTS @ three_matrices.W_query, JOURNEY @ three_matrices.W_key
    scores = attention_scores(query, keys)[0]
    assert_table(scores, [1.2544, 1.8284, 1.7877, 1.0654, 0.5508, 1.5238])


def test_scaled_weights_of_the_third_word(three_matrices: SelfAttentionV1) -> None:
    """In [32]: divided by the square root of d_k = 2 before the softmax."""
    query, keys = STARTS @ three_matrices.W_query, JOURNEY @ three_matrices.W_key
    weights = attention_weights(query, keys)[0]
    assert_table(weights, [0.1503, 0.2256, 0.2192, 0.1315, 0.0914, 0.1819])


def test_context_vector_of_the_third_word(three_matrices: SelfAttentionV1) -> None:
    """In [33]."""
    query = STARTS @ three_matrices.W_query
    keys, values = JOURNEY @ three_matrices.W_key, JOURNEY @ three_matrices.W_value
    assert_table(scaled_dot_product_attention(query, keys, values)[0], [0.3058, 0.8203])


def test_context_vectors_of_the_three_matrix_version(three_matrices: SelfAttentionV1) -> None:
    """In [38]."""
    assert_table(three_matrices(JOURNEY), THREE_MATRIX_CONTEXTS)
