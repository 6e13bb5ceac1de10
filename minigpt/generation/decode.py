"""The decode loop: read the prompt once, then one token a step, with a key/value cache."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from ..model import GPT


def decode(model: GPT, prompt: Sequence[int], choose: Callable[[Tensor], Tensor]) -> Iterator[int]:
    """Token ids that continue `prompt`, without end.

    The model looks back over at most context_length tokens. When its window is full, it is
    emptied and the later half of it read again, so that text can go on for ever; between two
    such moments every token costs one step.

    Args:
        model: in evaluation mode.
        prompt: at least one token id; of a longer prompt only the end is read.
        choose: maps logits ``(1, vocab_size)`` to token ids ``(1,)``.
    """
    context_length = model.config.context_length
    device = model.token_embedding.weight.device
    window = list(prompt[-context_length:])  # what the model sees
    unread, caches = window, model.new_caches(1)
    while True:
        with torch.inference_mode():
            logits = model(torch.tensor([unread], device=device), caches=caches)  # (1, T, V)
            token = int(choose(logits[:, -1]))
        yield token
        if len(window) == context_length:
            window = [*window[context_length // 2 + 1 :], token]
            unread, caches = window, model.new_caches(1)
        else:
            window.append(token)
            unread = [token]
