"""Attention, from the bare equations to the layer the GPT uses; imports only torch.

Read `functional.py` (the equations), `stepping_stones.py` (the classes that lead up to it),
`multi_head.py` (the layer) and `rotary.py` (its positions), in this order. `fused.py` only makes
them faster.
"""

from .functional import (
    attention_scores,
    attention_weights,
    causal_average,
    causal_mask,
    scaled_dot_product_attention,
    simple_self_attention,
)
from .multi_head import KeyValueCache, MultiHeadAttention
from .rotary import RotaryPositions
from .stepping_stones import (
    CausalAttention,
    MultiHeadAttentionWrapper,
    SelfAttentionV1,
    SelfAttentionV2,
)

__all__ = [
    "CausalAttention",
    "KeyValueCache",
    "MultiHeadAttention",
    "MultiHeadAttentionWrapper",
    "RotaryPositions",
    "SelfAttentionV1",
    "SelfAttentionV2",
    "attention_scores",
    "attention_weights",
    "causal_average",
    "causal_mask",
    "scaled_dot_product_attention",
    "simple_self_attention",
]
