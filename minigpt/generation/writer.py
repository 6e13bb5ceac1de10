"""A trained model with its tokenizer, ready to write: `minigpt.load(run)`."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..config import SampleConfig, UserError
from ..model import GPT
from ..tokenizer import Tokenizer
from .choosing import Chooser
from .decode import decode
from .results import Sample, Score, Step, StopReason, Token
from .stopping import Pieces


@dataclass(frozen=True)
class Writer:
    """Generates text, and judges it.

    Attributes:
        model: the GPT; called on ids ``(b, T)`` it gives logits ``(b, T, vocab_size)``.
        tokenizer: has encode(text), decode(ids) and vocab_size.
    """

    model: GPT
    tokenizer: Tokenizer

    def generate(self, prompt: str = "", **settings: Any) -> str:
        """`prompt` and a continuation of it.

        Args:
            prompt: the beginning; if empty, the model begins by itself.
            settings: fields of :class:`~minigpt.SampleConfig`.

        Raises:
            UserError: if a setting is out of range or the prompt cannot be encoded.
        """
        return "".join(self.stream(prompt, **settings))

    def stream(self, prompt: str = "", **settings: Any) -> Iterator[str]:
        """The same, piece by piece as it is written, the prompt first.

        A character whose bytes span several tokens is yielded when it is whole, and what could be
        the beginning of a stop string when it turns out to be none.
        """
        steps = self.steps(prompt, replace(SampleConfig(**settings), samples=1))
        return (piece for piece in _pieces(prompt, steps) if piece)

    def samples(
        self, prompt: str = "", *, log_probabilities: bool = False, **settings: Any
    ) -> list[Sample]:
        """Several continuations of `prompt`, written side by side.

        Sample i depends on the seed and i, not on how many there are (but for rounding: matrix
        products of another size can differ in the last bit).

        Args:
            prompt: as in :meth:`generate`.
            log_probabilities: whether to compute those of the tokens.
            settings: fields of :class:`~minigpt.SampleConfig`, such as ``samples=4``.

        Raises:
            UserError: as :meth:`generate`.
        """
        start = time.perf_counter()
        config = SampleConfig(**settings)
        steps: list[list[Step]] = [[] for _ in range(config.samples)]
        ends = [start] * config.samples
        for step in self.steps(prompt, config, log_probabilities=log_probabilities):
            steps[step.sample].append(step)
            ends[step.sample] = time.perf_counter()
        return [_sample(prompt, steps[i], ends[i] - start) for i in range(config.samples)]

    def steps(
        self,
        prompt: str,
        config: SampleConfig,
        *,
        log_probabilities: bool = False,
        alternatives: int = 0,
    ) -> Iterator[Step]:
        """Token after token, as it is drawn: for each step of the model one for each sample that
        has not ended, in their order. A sample ends with the step that has a stop_reason; with
        max_new_tokens 0 there are no steps.

        Args:
            prompt: as in :meth:`generate`.
            config: how to generate.
            log_probabilities: whether to compute those of the tokens.
            alternatives: how many of the likeliest tokens to list in each step.

        Raises:
            UserError: as :meth:`generate`, before the first step.
        """
        ids = self.tokenizer.encode(prompt)
        chooser = Chooser(config, self.tokenizer, self.model.config.vocab_size, ids)
        return self._steps(
            ids or [self._first_token()], chooser, config, log_probabilities, alternatives
        )

    def _steps(
        self,
        prompt: list[int],
        chooser: Chooser,
        config: SampleConfig,
        log_probabilities: bool,
        alternatives: int,
    ) -> Iterator[Step]:
        model_logits = torch.empty(0)  # (samples, vocab_size), of the step at hand

        def choose(logits: Tensor) -> Tensor:
            nonlocal model_logits
            model_logits = logits
            return chooser(logits)

        texts = [Pieces(config.stop) for _ in range(config.samples)]
        unfinished = list(range(config.samples))
        tokens = decode(self.model, prompt, choose, samples=config.samples)
        for count, drawn in enumerate(islice(tokens, config.max_new_tokens), 1):
            ids = drawn.tolist()
            likely: list[float] | None = None
            if log_probabilities:
                likely = _log_probabilities(model_logits, drawn.to(model_logits.device)).tolist()
            for i in tuple(unfinished):
                others = self._likeliest(model_logits[i], alternatives) if alternatives else ()
                reason: StopReason | None = None
                if chooser.stuck[i]:
                    reason = "banned"
                elif ids[i] == self.tokenizer.end_of_text:
                    reason = "end_of_text"
                elif count == config.max_new_tokens:
                    reason = "length"
                written = b"" if reason == "banned" else self.tokenizer.token_bytes(ids[i])
                text = texts[i].add(written, last=reason is not None)
                if texts[i].stopped:
                    reason = "stop"
                if reason is not None:
                    unfinished.remove(i)
                if chooser.stuck[i]:
                    yield Step(i, None, None, text, reason, others)
                else:
                    yield Step(i, ids[i], likely[i] if likely else None, text, reason, others)
            if not unfinished:
                return

    def score(self, text: str) -> Score:
        """How likely `text` is, as the continuation of an empty prompt.

        A text longer than the context is read in windows that overlap by half, so that every
        token but those of the first half window is predicted from at least half a context.

        Raises:
            UserError: if the text cannot be encoded.
        """
        ids = self.tokenizer.encode(text)
        read = [self._first_token(), *ids]  # ids[i] is predicted from read[: i + 1]
        context_length = self.model.config.context_length
        device = self.model.token_embedding.weight.device
        found: list[float] = []
        while len(found) < len(ids):
            room = context_length - context_length // 2 if found else context_length
            end = min(len(found) + room, len(ids))
            start = max(end - context_length, 0)
            window = torch.tensor([read[start:end]], device=device)  # (1, T)
            with torch.inference_mode():
                logits = self.model(window)[0, len(found) - start :]  # (new tokens, vocab_size)
            found += _log_probabilities(logits, torch.tensor(ids[len(found) : end])).tolist()
        tokens = zip(ids, found, strict=True)
        return Score(tuple(Token(i, self.tokenizer.token_bytes(i), nats) for i, nats in tokens))

    def next_tokens(self, text: str, k: int = 10) -> list[Token]:
        """The k likeliest tokens after `text`, likeliest first, at temperature 1.

        Raises:
            UserError: if the text cannot be encoded, or k is below 1.
        """
        if k < 1:
            raise UserError(f"k must be at least 1, got {k}")
        ids = self.tokenizer.encode(text) or [self._first_token()]
        window = ids[-self.model.config.context_length :]
        device = self.model.token_embedding.weight.device
        with torch.inference_mode():
            logits = self.model(torch.tensor([window], device=device))  # (1, T, vocab_size)
        return list(self._likeliest(logits[0, -1], k))

    def _likeliest(self, logits: Tensor, k: int) -> tuple[Token, ...]:
        """The k likeliest tokens under logits ``(vocab_size,)``."""
        top = logits.float().log_softmax(dim=-1).topk(min(k, logits.shape[-1]))
        pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        return tuple(Token(i, self.tokenizer.token_bytes(i), nats) for i, nats in pairs)

    def _first_token(self) -> int:
        """What an empty prompt is continued from: a new line, where the tokenizer knows it."""
        try:
            return self.tokenizer.encode("\n")[0]
        except ValueError:
            return self.tokenizer.end_of_text


def _pieces(prompt: str, steps: Iterator[Step]) -> Iterator[str]:
    yield prompt
    for step in steps:
        yield step.text


def _sample(prompt: str, steps: list[Step], seconds: float) -> Sample:
    """A sample from all of its steps."""
    drawn = [step for step in steps if step.token_id is not None]
    log_probabilities = [s.log_probability for s in drawn if s.log_probability is not None]
    return Sample(
        prompt,
        "".join(step.text for step in steps),
        tuple(step.token_id for step in drawn if step.token_id is not None),
        tuple(log_probabilities) if len(log_probabilities) == len(drawn) else None,
        (steps[-1].stop_reason if steps else None) or "length",
        seconds,
    )


def _log_probabilities(logits: Tensor, tokens: Tensor) -> Tensor:
    """Those of tokens ``(n,)`` under logits ``(n, vocab_size)``, in nats."""
    return -F.cross_entropy(logits.float(), tokens.to(logits.device), reduction="none")
