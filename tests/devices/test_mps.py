"""Apple's GPU, as far as it can be known without one."""

from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from minigpt.attention import fused


class OnMPS(torch.Tensor):
    """A tensor that says that it is on MPS, where torch has no kernel on other machines. `near`
    holds its numbers."""

    near: torch.Tensor

    @staticmethod
    def __new__(cls, near: torch.Tensor) -> "OnMPS":
        kind = {"dtype": near.dtype, "device": "mps:0"}
        return torch.Tensor._make_wrapper_subclass(cls, near.shape, near.stride(), **kind)

    def __init__(self, near: torch.Tensor):
        self.near = near

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        args, kwargs = tree_map_only(OnMPS, lambda tensor: tensor.near, (args, kwargs))
        return tree_map_only(torch.Tensor, OnMPS, func(*args, **kwargs))


def test_attention_there_does_without_the_fused_kernel() -> None:
    torch.manual_seed(0)
    q = torch.randn(2, 1, 4, 64).transpose(1, 2)  # (b, num_heads, 1, head_dim): a step of sampling
    k, v = torch.randn(2, 2, 2, 33, 64)  # each (b, num_kv_heads, S, head_dim)
    expected = fused.attention(q, k, v)

    with torch.no_grad():
        context = fused.attention(OnMPS(q), OnMPS(k), OnMPS(v))
    torch.testing.assert_close(context.near, expected, atol=1e-5, rtol=1e-5)
