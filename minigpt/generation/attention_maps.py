"""What every head looks at in a text, as tensors; `minigpt attention` draws them.

The model runs as it always does; beside it each layer is asked for the weights that it used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .. import UserError
from ..attention import MultiHeadAttention
from ..model import GPT
from .results import visible
from .writer import Writer


@dataclass(frozen=True)
class AttentionMaps:
    """The attention weights of a text of T tokens.

    Attributes:
        tokens: the text of each token, T of them, as :func:`.results.visible` has it.
        weights: ``(num_layers, num_heads, T, T)``; ``[l, h, i, j]`` is how much token i attends
            to token j in head h of layer l. Rows sum to 1, and no token looks ahead.
    """

    tokens: tuple[str, ...]
    weights: Tensor


def attention_maps(writer: Writer, text: str) -> AttentionMaps:
    """The attention weights of every layer and head for a text.

    Args:
        writer: from :func:`minigpt.load`.
        text: at least one token, at most context_length.

    Raises:
        UserError: if the text is empty, too long or cannot be encoded.
    """
    ids = writer.tokenizer.encode(text)
    limit = writer.model.config.context_length
    if not ids:
        raise UserError("the text is empty; give at least a word to look at")
    if len(ids) > limit:
        raise UserError(f"the text has {len(ids):,} tokens; this model looks at {limit:,} at most")
    tokens = tuple(visible(writer.tokenizer.token_bytes(i)) for i in ids)
    return AttentionMaps(tokens, _weights(writer.model, ids))


def _weights(model: GPT, ids: Sequence[int]) -> Tensor:
    """Attention weights ``(num_layers, num_heads, T, T)`` of the model reading `ids`."""
    weights: list[Tensor] = []  # of each layer in its turn, (num_heads, T, T)

    def record(layer: MultiHeadAttention, inputs: tuple[Tensor, ...]) -> None:
        weights.append(layer.forward_with_weights(inputs[0])[1].squeeze(0))

    layers = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    hooks = [layer.register_forward_pre_hook(record) for layer in layers]
    try:
        with torch.no_grad():
            model(torch.tensor([ids], device=model.token_embedding.weight.device))
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(weights).cpu()
