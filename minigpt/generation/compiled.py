"""The step of a token, compiled for one sequence on the CPU: as fast as memory is read.

Of one token all matrix products are sums over a row of weights, which every step reads once and
no library multiplies faster than memory delivers it; around them most time goes into starting
operations. torch.compile makes one loop of everything between two such sums.
"""

import copy
import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..attention import KeyValueCache, MultiHeadAttention
from ..model import GPT, Caches

Compile = Literal["auto", "on", "off"]
Predict = Callable[[Tensor, Caches], Tensor]  # ids (b, 1) and what came before -> logits (b, V)

# What compiling gains on a token, and what it costs the first time; measured on 2 cores for models
# of 0.8 to 124 million parameters (docs/decisions.md).
_SECONDS_A_BLOCK, _SECONDS_A_BYTE = 2e-4, 3e-11
_SECONDS_TO_COMPILE = 45.0

_OPTIONS: dict[str, str | int | bool | Callable[..., Any]] = {
    "cpp_wrapper": True,  # what calls the loops is compiled as well
    "size_asserts": False,
    "compile_threads": 1,  # a Ctrl-C would end others and leave us waiting for them
    # The weights never change: there is no need to look at each of them before every step.
    "guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe,
}
_LENGTH = r"L\['caches'\]\[0\]\.length"  # what differs from step to step


def plain(model: GPT) -> Predict:
    """The step as it is."""

    def step(token_ids: Tensor, caches: Caches) -> Tensor:
        return model(token_ids, caches=caches)[:, -1]

    return step


def worth_compiling(model: GPT, tokens: int) -> bool:
    """Whether compiling is won back in writing so many tokens, even where it was never done."""
    weight = model.token_embedding.weight
    if weight.device.type != "cpu":
        return False
    size = sum(p.nbytes for p in model.parameters())
    saved = _SECONDS_A_BLOCK * model.config.num_layers + _SECONDS_A_BYTE * size
    return tokens * saved > _SECONDS_TO_COMPILE


class CompiledStep:
    """The step, compiled when it is first taken; where that fails, as it is.

    Args:
        model: in evaluation mode.

    Attributes:
        problem: why it is not compiled, if it cannot be.
    """

    def __init__(self, model: GPT):
        self._plain = plain(model)
        step = plain(_for_one_token(model))

        def step_of_equal_lengths(token_ids: Tensor, caches: Caches) -> Tensor:
            for cache in caches[1:]:  # one number to hand over in place of one for each block
                cache.length = caches[0].length
            return step(token_ids, caches)

        self._compiled = torch.compile(step_of_equal_lengths, options=_OPTIONS)
        self._any_length = torch.compiler.config.patch(dynamic_sources=_LENGTH)  # type: ignore[attr-defined]
        self._last = model.config.context_length - 1
        self.problem: str | None = None

    def __call__(self, token_ids: Tensor, caches: Caches) -> Tensor:
        """Logits ``(b, vocab_size)`` for ids ``(b, 1)``."""
        # A cache with one token, or with room for one, would be compiled as a case of its own.
        is_usual = 2 <= caches[0].length < self._last
        if self.problem is not None or not is_usual:
            return self._plain(token_ids, caches)
        lengths = [cache.length for cache in caches]
        try:
            with _quiet(), self._any_length:
                return self._compiled(token_ids, caches)
        except (torch._dynamo.exc.TorchDynamoException, torch._inductor.exc.InductorError) as error:
            lines = str(error).strip().splitlines()
            self.problem = lines[0] if lines else type(error).__name__
            for cache, length in zip(caches, lengths, strict=True):
                cache.trim(length)
            return self._plain(token_ids, caches)


def _quiet() -> warnings.catch_warnings:
    return warnings.catch_warnings(action="ignore")


def _for_one_token(model: GPT) -> GPT:
    """The same model, on the same weights, with parts that compile well for one token."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    twin = copy.deepcopy(model, shared)
    for module in tuple(twin.modules()):
        for name, child in tuple(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, _RowLinear(child))
            elif isinstance(child, MultiHeadAttention):
                setattr(module, name, _TokenAttention(child))
    return twin


class _RowLinear(nn.Module):
    """A linear layer; the product with a single vector is written as sums over rows.

    torch.compile calls a library for a matrix product, but makes a parallel loop of sums.
    """

    def __init__(self, linear: nn.Linear):
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., d_in)`` to ``(..., d_out)``."""
        d_out, d_in = self.weight.shape
        if x.numel() != d_in:
            return nn.functional.linear(x, self.weight, self.bias)
        # as_strided keeps what x is computed from out of the loop, where it would be computed for
        # every row again.
        row = x.as_strided((1, d_in), (d_in, 1))
        y = (self.weight.float() * row.float()).sum(-1).to(x.dtype)  # (d_out,)
        return (y if self.bias is None else y + self.bias).view(*x.shape[:-1], d_out)


class _TokenAttention(nn.Module):
    """Attention of one query over the cache, written out so that it is compiled with the rest."""

    def __init__(self, attention: MultiHeadAttention):
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor, cache: KeyValueCache) -> Tensor:
        """Map ``(b, 1, d)`` to ``(b, 1, d)``."""
        queries, keys, values = self.attention.project(x, cache)
        groups = (self.attention.num_kv_heads, -1)
        queries = queries.unflatten(1, groups)  # (b, num_kv_heads, group, 1, head_dim)
        keys, values = keys.unsqueeze(2), values.unsqueeze(2)  # (b, num_kv_heads, 1, S, head_dim)
        scores = (queries * keys).sum(-1) * self.attention.head_dim**-0.5  # (b, kv, group, S)
        weights = scores.softmax(-1).unsqueeze(-1)  # (b, kv, group, S, 1)
        context = (weights * values).sum(-2, keepdim=True)  # (b, kv, group, 1, head_dim)
        return self.attention.merge(context.flatten(1, 2))
