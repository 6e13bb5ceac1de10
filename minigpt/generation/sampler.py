"""Chooses the next token of each continuation: what a SampleConfig asks for, step by step."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import UserError
from ..config import SampleConfig
from ..tokenizer import Tokenizer
from .banning import BannedStrings
from .sampling import exponentials, penalise_counts, penalise_repetition, sample


class Chooser:
    """Maps logits to tokens, and remembers the tokens for what depends on them.

    The order is that of transformers: logit bias, repetition penalty, presence and frequency
    penalties, banned strings; then, where tokens are drawn, temperature, top k, top p, min p. What
    is off costs nothing.

    Args:
        config: how to choose, and for how many continuations.
        tokenizer: what the tokens stand for.
        vocab_size: of the model, at least that of the tokenizer.
        prompt: the token ids of the prompt. They count as repeated, and banned strings may begin
            in them; the presence and frequency penalties are for what has been written.

    Attributes:
        stuck: for each continuation whether the last step left no token that writes anything
            which may be written; what was drawn then means nothing.

    Raises:
        UserError: if a text of logit_bias is not one token.
    """

    def __init__(
        self, config: SampleConfig, tokenizer: Tokenizer, vocab_size: int, prompt: Sequence[int]
    ):
        shape = (config.samples, vocab_size)
        self.stuck = [False] * config.samples
        self._config = config
        self._tokenizer = tokenizer
        seed = secrets.randbits(63) if config.seed is None else config.seed
        self._noise = exponentials(seed, *shape)
        names = ("temperature", "top_k", "top_p", "min_p")
        self._filters: dict[str, Any] = {name: getattr(config, name) for name in names}
        self._bias = _bias(config.logit_bias, tokenizer, vocab_size) if config.logit_bias else None
        self._seen = self._counts = self._banned = None
        if config.repetition_penalty != 1.0:
            self._seen = torch.zeros(shape, dtype=torch.bool)
            self._seen[:, list(prompt)] = True
        if config.presence_penalty or config.frequency_penalty:
            self._counts = torch.zeros(shape)
        if config.banned:
            vocabulary = [tokenizer.token_bytes(i) for i in range(vocab_size)]
            self._banned = BannedStrings(config.banned, vocabulary)
            text = b"".join(tokenizer.token_bytes(i) for i in prompt)
            self._texts = [text] * config.samples  # the ends of them

    def __call__(self, logits: Tensor) -> Tensor:
        """Map logits ``(samples, vocab_size)`` to token ids ``(samples,)``."""
        tokens = sample(self.adjusted(logits), self._noise, **self._filters)
        self._remember(tokens)
        return tokens

    def adjusted(self, logits: Tensor) -> Tensor:
        """Logits ``(samples, vocab_size)`` with bias, penalties and bans."""
        config = self._config
        logits = logits.float().cpu()
        if self._bias is not None:
            logits = logits + self._bias
        if self._seen is not None:
            logits = penalise_repetition(logits, self._seen, config.repetition_penalty)
        if self._counts is not None:
            logits = penalise_counts(
                logits, self._counts, config.presence_penalty, config.frequency_penalty
            )
        if self._banned is not None:
            logits, self.stuck = self._banned.mask(logits, self._texts)
        return logits

    def _remember(self, tokens: Tensor) -> None:
        column = tokens[:, None]  # (samples, 1)
        if self._seen is not None:
            self._seen.scatter_(1, column, True)
        if self._counts is not None:
            self._counts.scatter_add_(1, column, torch.ones(column.shape))
        if self._banned is not None:
            memory = self._banned.memory
            for i, token in enumerate(tokens.tolist()):
                text = self._texts[i] + self._tokenizer.token_bytes(token)
                self._texts[i] = text[max(len(text) - memory, 0) :]


def _bias(biases: Mapping[str, float], tokenizer: Tokenizer, vocab_size: int) -> Tensor:
    """What is added to the logits, ``(vocab_size,)``."""
    bias = torch.zeros(vocab_size)
    for text, value in biases.items():
        ids = tokenizer.encode(text)
        if len(ids) != 1:
            tokens = ", ".join(repr(tokenizer.decode([i])) for i in ids)
            raise UserError(f"logit_bias: {text!r} is not one token but {len(ids)}: {tokens}")
        bias[ids[0]] = value
    return bias
