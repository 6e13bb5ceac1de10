"""A trained model with its tokenizer, ready to write: `minigpt.load(run)`."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from .. import UserError
from ..config import SampleConfig
from ..model import GPT
from ..tokenizer import Tokenizer
from . import scoring
from .compiled import Compile, CompiledStep, Predict, plain, worth_compiling
from .decode import decode
from .results import Sample, Score, Step, StopReason, Token
from .sampler import Chooser
from .streaming import Pieces


@dataclass(frozen=True)
class Writer:
    """Generates text, and judges it.

    Attributes:
        model: the GPT; called on ids ``(b, T)`` it gives logits ``(b, T, vocab_size)``.
        tokenizer: has encode(text), decode(ids) and vocab_size.
        compile: whether to compile the step of a token; "auto" does for texts long enough.
    """

    model: GPT
    tokenizer: Tokenizer
    compile: Compile = "auto"

    def generate(self, prompt: str = "", **settings: Any) -> str:
        """`prompt` and a continuation of it.

        Args:
            prompt: the beginning; if empty, the model begins by itself.
            settings: fields of :class:`~minigpt.SampleConfig`; `samples` is for
                :meth:`samples`, whose first text this is.

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

        Sample i depends on the seed and i, not on how many there are; but for rounding, which
        differs with the size of a batch, and changes about one token in two million.

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
        return [
            _sample(prompt, taken, end - start, log_probabilities)
            for taken, end in zip(steps, ends, strict=True)
        ]

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
        likely: list[float | None] = [None] * config.samples
        others: list[tuple[Token, ...]] = [()] * config.samples
        predict = self._predict(config.max_new_tokens)
        drawn = decode(self.model, prompt, choose, samples=config.samples, predict=predict)
        for count, tokens in enumerate(islice(drawn, config.max_new_tokens), 1):
            if count == 1 and not model_logits.isfinite().all():
                raise UserError("the model is damaged: what it computes are no numbers")
            if log_probabilities:
                likely = scoring.log_probabilities(model_logits, tokens).tolist()
            if alternatives:
                others = self._likeliest(model_logits, alternatives)
            ids = tokens.tolist()
            for i in tuple(unfinished):
                token = None if chooser.stuck[i] else ids[i]
                reason = self._end(token, is_last=count == config.max_new_tokens)
                written = b"" if token is None else self.tokenizer.token_bytes(token)
                text = texts[i].add(written, last=reason is not None)
                reason = "stop" if texts[i].stopped else reason
                if reason is not None:
                    unfinished.remove(i)
                nats = None if token is None else likely[i]
                yield Step(i, token, nats, text, reason, others[i])
            if not unfinished:
                return

    def compiles(self, tokens: int) -> bool:
        """Whether the step is compiled to write so many tokens."""
        if self.compile == "auto":
            return worth_compiling(self.model, tokens)
        return self.compile == "on"

    @property
    def problem(self) -> str | None:
        """Why the step could not be compiled, where that was tried."""
        return self._compiled.problem if "_compiled" in vars(self) else None

    def _predict(self, tokens: int) -> Predict:
        return self._compiled if self.compiles(tokens) else plain(self.model)

    @cached_property
    def _compiled(self) -> CompiledStep:
        return CompiledStep(self.model)

    def _end(self, token: int | None, *, is_last: bool) -> StopReason | None:
        """Why a text ends with this token, stop strings aside; None if it goes on."""
        if token is None:
            return "banned"
        if token == self.tokenizer.end_of_text:
            return "end_of_text"
        return "length" if is_last else None

    def score(self, text: str) -> Score:
        """How likely `text` is, as the continuation of an empty prompt.

        A text longer than the context is read in windows that overlap by half, so that every
        token but those of the first half window is predicted from at least half a context.

        Raises:
            UserError: if the text cannot be encoded.
        """
        ids = self.tokenizer.encode(text)
        return Score(self._tokens(ids, scoring.score(self.model, [self._first_token(), *ids])))

    def next_tokens(self, text: str, k: int = 10) -> list[Token]:
        """The k likeliest tokens after `text`, likeliest first, at temperature 1.

        Raises:
            UserError: if the text cannot be encoded, or k is below 1.
        """
        if k < 1:
            raise UserError(f"k must be at least 1, got {k}")
        ids = self.tokenizer.encode(text) or [self._first_token()]
        return list(self._likeliest(scoring.next_logits(self.model, ids), k)[0])

    def _likeliest(self, logits: Tensor, k: int) -> list[tuple[Token, ...]]:
        """The k likeliest tokens of each row of logits ``(b, vocab_size)``."""
        ids, nats = scoring.likeliest(logits, k)  # (b, k), (b, k)
        return [self._tokens(*row) for row in zip(ids.tolist(), nats.tolist(), strict=True)]

    def _tokens(self, ids: list[int], nats: list[float]) -> tuple[Token, ...]:
        pairs = zip(ids, nats, strict=True)
        return tuple(Token(i, self.tokenizer.token_bytes(i), value) for i, value in pairs)

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


def _sample(prompt: str, steps: list[Step], seconds: float, asked_for: bool) -> Sample:
    """A sample from all of its steps."""
    drawn = [(s.token_id, s.log_probability) for s in steps]
    return Sample(
        prompt,
        "".join(step.text for step in steps),
        tuple(token for token, _ in drawn if token is not None),
        tuple(nats for _, nats in drawn if nats is not None) if asked_for else None,
        (steps[-1].stop_reason if steps else None) or "length",
        seconds,
    )
