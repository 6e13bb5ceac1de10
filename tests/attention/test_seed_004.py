"""Notebook 004: the three words "sky is blue" with given embeddings and weight matrices, from
queries, keys and values to outputs. In [n] is the cell that holds or prints a table.
"""

import math

import torch

from minigpt.attention import (
    SelfAttentionV1,
    attention_scores,
    attention_weights,
    scaled_dot_product_attention,
)
from tests.attention.seeds import assert_table, table

# In [5] and In [7]
SKY_IS_BLUE = torch.tensor([[-1.0720, -0.5001], [-0.0120, -0.4311], [-0.0050, -0.5321]])
MATRICES = {
    "W_query": torch.tensor([[-0.0271, -0.3840], [-0.3940, -0.6610]]),
    "W_key": torch.tensor([[-0.4109, 0.5777], [-0.1162, -0.1661]]),
    "W_value": torch.tensor([[-0.2045, 0.1210], [-0.1712, -0.4462]]),
}

SCALED_LOGITS = table("""
    -0.2017 0.0427 0.0551
    -0.0498 0.0199 0.0252
    -0.0601 0.0243 0.0309
""")
WEIGHTS = table("""
    0.2801 0.3577 0.3622
    0.3175 0.3404 0.3422
    0.3141 0.3418 0.3441
""")
OUTPUTS = table("""
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
    assert_table(attention_scores(queries, keys) / math.sqrt(2), SCALED_LOGITS)
    assert_table(attention_weights(queries, keys), WEIGHTS)
    assert_table(scaled_dot_product_attention(queries, keys, values), OUTPUTS)
    assert_table(layer(SKY_IS_BLUE), OUTPUTS)
    assert_table(layer(SKY_IS_BLUE[None]), OUTPUTS[None])
