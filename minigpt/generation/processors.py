"""Processors: functions that change the logits before a token is drawn; a caller brings their own.

A processor takes the ids of each text so far ``(b, n)`` and the logits of the next token
``(b, vocab_size)``, and returns logits of the same shape; minus infinity forbids a token. `without`
makes one, and may serve as an example.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import UserError
from ..tokenizer import Tokenizer
from .window import Array, TokenIds

# The exact types, so that a type checker accepts functions that declare them or wider ones.
Processor = Callable[[NDArray[np.int64], NDArray[np.float32]], Array]


def without(text: str, tokenizer: Tokenizer) -> Processor:
    """A processor that keeps `text`, exactly as it is spelt, out of what is written. It forbids
    tokens that contain `text`, and tokens that would complete it after what is already there,
    prompt included.

    Raises:
        UserError: if `text` is empty, or cannot be encoded in UTF-8.
    """
    try:
        forbidden = text.encode()
    except UnicodeEncodeError:
        raise UserError(f"{text!r}, to be left out, cannot be encoded in UTF-8") from None
    if not forbidden:
        raise UserError("the text to be left out is empty")

    tokens = [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)]
    containing = [i for i, token in enumerate(tokens) if forbidden in token]
    completing: dict[bytes, list[int]] = {}  # by the end of a text: the tokens that complete it
    for k in range(1, len(forbidden)):
        rest = forbidden[k:]
        completing[forbidden[:k]] = [i for i, token in enumerate(tokens) if token.startswith(rest)]

    def process(ids: TokenIds, logits: Array) -> Array:
        logits[:, containing] = -np.inf
        for row, text_ids in enumerate(ids):
            end = last_bytes(text_ids, tokens, len(forbidden) - 1)
            for begun, banned in completing.items():
                if end.endswith(begun):
                    logits[row, banned] = -np.inf
        return logits

    return process


def last_bytes(ids: TokenIds, tokens: Sequence[bytes], count: int) -> bytes:
    """The last `count` bytes of the text of ids ``(n,)``, or a few more; all if it has fewer.
    `tokens` are the bytes of each token, by id."""
    end = b""
    for i in reversed(ids):
        if len(end) >= count:
            break
        end = tokens[i] + end
    return end


class ProcessorChain:
    """Applies processors, one after another, to the logits of several texts whose ids it knows."""

    def __init__(
        self,
        processors: Iterable[Processor],
        prompt: Sequence[int],
        samples: int,
        bias: Array,
    ):
        """The texts begin with the tokens of `prompt`; `bias` ``(vocab_size,)`` will be added to
        the logits afterwards, and may forbid tokens too."""
        self._processors = _functions(processors)
        self._ids = np.tile(np.array(prompt, np.int64), (samples, 1))  # (samples, n)
        self._bias = bias

    def __call__(self, logits: Array, unfinished: Sequence[int]) -> Array:
        """The logits that the processors make of these, both ``(samples, vocab_size)``.

        UserError if a processor returns no logits, or leaves one of the `unfinished` texts no token
        to choose."""
        processed = logits.copy()  # a processor may change what it gets, and keep it
        for number, processor in enumerate(self._processors, start=1):
            result = processor(self._ids.copy(), processed)
            name = getattr(processor, "__name__", type(processor).__name__)
            processed = _checked(result, logits.shape, f"{name} (processor {number})")

        is_possible = np.isfinite(processed + self._bias)  # (samples, vocab_size)
        is_left = np.asarray(is_possible.any(axis=-1))  # (samples,)
        if not is_left[unfinished].all():
            raise UserError(
                "no token is left to choose: the processors (--without is one) forbid all that the "
                "model can write"
            )
        processed[~is_left] = 0.0  # of a text that has ended; any token will do
        return processed

    def append(self, token_ids: TokenIds) -> None:
        """Add a token to each text, ``(samples,)``."""
        self._ids = np.concatenate((self._ids, token_ids[:, None]), axis=1)


def _functions(processors: object) -> list[Processor]:
    """The processors as a list; UserError if they are something else."""
    listed: list[Any] = list(processors) if isinstance(processors, Iterable) else [None]
    if not all(callable(processor) for processor in listed):
        raise UserError("processors must be a list of functions of ids and logits")
    return listed


def _checked(result: object, shape: tuple[int, ...], name: str) -> Array:
    """What a processor returned, as an array of its own; UserError if it is not logits."""
    if result is None:
        raise UserError(f"{name} returned nothing; it must return logits {shape}")
    try:
        with np.errstate(over="ignore"):  # -1e300 is minus infinity
            logits: NDArray[np.float32] = np.array(result, np.float32)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(f"{name} must return logits {shape}, not {type(result).__name__}") from None

    if logits.shape != shape:
        raise UserError(f"{name} must return logits {shape}, got an array {logits.shape}")
    if not (logits < np.inf).all():  # neither infinite nor NaN
        raise UserError(f"{name} must return numbers, or minus infinity to forbid a token")
    return logits
