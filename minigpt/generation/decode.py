"""The decode loop: read the prompt once, then one token a step, with a key/value cache."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from ..model import GPT, Caches


def decode(
    model: GPT,
    prompt: Sequence[int],
    choose: Callable[[Tensor], Tensor],
    *,
    samples: int = 1,
) -> Iterator[Tensor]:
    """Token ids that continue `prompt`, several continuations side by side, without end.

    The model looks back over at most context_length tokens. When its window is full, it is
    emptied and the later half of it read again, so that text can go on for ever; between two
    such moments every token costs one step.

    Args:
        model: in evaluation mode.
        prompt: at least one token id; of a longer prompt only the end is read, once.
        choose: maps logits ``(samples, vocab_size)`` to token ids ``(samples,)``.
        samples: how many continuations.

    Yields:
        The next token of each continuation, ``(samples,)``.
    """
    context_length = model.config.context_length
    device = model.token_embedding.weight.device
    unread = torch.tensor([prompt[-context_length:]], device=device)  # (1, T)
    windows = torch.empty(samples, context_length, dtype=torch.int64, device=device)
    length = unread.shape[1]
    windows[:, :length] = unread  # what the model sees of each continuation
    caches = model.new_caches(1)
    while True:
        with torch.inference_mode():
            logits = model(unread, caches=caches)[:, -1]  # (b, V), b = 1 for the prompt
            tokens = choose(logits.expand(samples, -1))  # (samples,)
        yield tokens
        unread = tokens.to(device)[:, None]  # (samples, 1)
        if length == context_length:
            unread = torch.cat((windows[:, context_length // 2 + 1 :], unread), dim=1)
            length, caches = 0, model.new_caches(samples)
        elif len(logits) < samples:
            caches = _repeated(caches, model.new_caches(samples))
        windows[:, length : length + unread.shape[1]] = unread
        length += unread.shape[1]


def _repeated(ones: Caches, many: Caches) -> Caches:
    """The empty caches `many`, with what `ones` hold of a single sequence in every row."""
    for one, new in zip(ones, many, strict=True):
        rows = (new.keys.shape[0], -1, -1, -1)
        new.update(
            one.keys[:, :, : one.length].expand(rows), one.values[:, :, : one.length].expand(rows)
        )
    return many
