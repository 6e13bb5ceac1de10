"""Notebook 001: scaled dot-product attention of given queries, keys and values in float64, its
causal mask, and why the scores are divided by the square root of d_k.
The printed inputs have eight digits, so what follows from them agrees to about 1e-7.
"""

import math

import pytest
import torch

from minigpt.attention import (
    attention_scores,
    attention_weights,
    causal_mask,
    scaled_dot_product_attention,
)
from tests.attention.seeds import assert_table, table

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
T, D_K = Q.shape

SCALED_SCORES = table("""
     1.30599064  1.29853211 -0.40193157 -0.0287394
     0.13503922 -0.58028584  0.4452293   0.74076119
    -1.31090471  1.00217946  0.27789664 -0.32805017
    -1.1508619  -0.93270475 -0.3760255  -1.02914406
""")
CAUSAL_WEIGHTS = table("""
    1.         0.         0.         0.
    0.67157673 0.32842327 0.         0.
    0.06248665 0.63146158 0.30605177 0.
    0.18039292 0.22436955 0.39149539 0.20374214
""")
CAUSAL_CONTEXTS = table("""
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
    weights = attention_weights(Q, K, mask=causal_mask(T))
    assert_table(weights, CAUSAL_WEIGHTS, atol=EIGHT_DIGITS)
    assert_table(weights.sum(dim=-1), [1.0] * T, atol=1e-12)
    contexts = scaled_dot_product_attention(Q, K, V, mask=causal_mask(T))
    assert_table(contexts, CAUSAL_CONTEXTS, atol=EIGHT_DIGITS)


def test_mask_allows_the_lower_triangle() -> None:
    allowed = table("""
        1. 0. 0. 0.
        1. 1. 0. 0.
        1. 1. 1. 0.
        1. 1. 1. 1.
    """)
    assert causal_mask(T).dtype == torch.bool
    assert_table(~causal_mask(T), allowed, atol=0)
