"""A trained model with its tokenizer, ready to write: `minigpt.load(run)`."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import UserError
from ..config import SampleConfig
from ..data.copies import Copies, copies
from ..data.corpus import Part
from ..tokenizer import Tokenizer
from . import scoring
from .numpy_gpt import NumpyGPT
from .results import Sample, Score, Step, StopReason, Token
from .sampler import TokenSampler
from .sentences import SentenceEnd
from .streaming import StreamDecoder
from .window import Array, Window

if TYPE_CHECKING:
    from ..model import GPT
    from .torch_gpt import TorchGPT

_LONGEST_SENTENCE = 200  # tokens written beyond max_new_tokens, to end with a whole one


@dataclass(frozen=True)
class Writer:
    """Generates text, and tells how likely a text is.

    A setting out of range, or a text that cannot be encoded, is a UserError.

    Attributes:
        engine: computes logits: a `NumpyGPT`, the glass engine, or on a GPU a `TorchGPT`.
        tokenizer: has encode(text), decode(ids) and vocab_size.
        knows_documents: whether the model was trained on many documents, so that after the
            token between two of them it begins one.
        alphabet: the bytes of the text that it learned from, in hexadecimal; it writes no others.
        read_text: reads the text that it learned from, and that it was validated on, again.
    """

    engine: "NumpyGPT | TorchGPT"
    tokenizer: Tokenizer
    knows_documents: bool = False
    alphabet: str = ""
    read_text: Callable[[], tuple[Part, Part]] | None = None

    @cached_property
    def model(self) -> "GPT":
        """The torch model, loaded when it is first asked for: ids ``(b, T)`` to logits."""
        from .torch_gpt import torch_of

        return torch_of(self.engine)

    @cached_property
    def glass(self) -> NumpyGPT:
        """The glass engine, which shows what happens inside the model."""
        if isinstance(self.engine, NumpyGPT):
            return self.engine
        from .torch_gpt import glass_of

        return glass_of(self.engine.model)

    def generate(self, prompt: str = "", **settings: Any) -> str:
        """`prompt` and a continuation of it, with fields of :class:`minigpt.SampleConfig` as
        settings; an empty prompt lets the model begin. Of several samples this is the first."""
        return "".join(self.stream(prompt, **settings))

    def stream(self, prompt: str = "", **settings: Any) -> Iterator[str]:
        """The same, piece by piece as it is written, the prompt first, in whole characters;
        text that could begin a stop string is held back until it is clear that it does not."""
        steps = self.steps(prompt, replace(SampleConfig(**settings), samples=1))
        return filter(None, itertools.chain([prompt], (step.text for step in steps)))

    def samples(
        self, prompt: str = "", *, log_probabilities: bool = False, **settings: Any
    ) -> list[Sample]:
        """Several continuations of `prompt`, written side by side; settings as in :meth:`generate`.

        Sample i depends on the seed and i, not on the number of samples, except for rounding: it
        differs with the batch size, and changes about one token in two million."""
        start, config = time.perf_counter(), SampleConfig(**settings)
        steps: list[list[Step]] = [[] for _ in range(config.samples)]
        ends = [start] * config.samples
        for step in self.steps(prompt, config, log_probabilities=log_probabilities):
            steps[step.sample].append(step)
            ends[step.sample] = time.perf_counter()
        both = zip(steps, ends, strict=True)
        return [_sample(prompt, taken, log_probabilities, end - start) for taken, end in both]

    def steps(
        self,
        prompt: str,
        config: SampleConfig,
        *,
        log_probabilities: bool = False,
        alternatives: int = 0,
    ) -> Iterator[Step]:
        """Token after token, as they are drawn: each step of the model gives one for each sample
        that has not ended, if asked for with its log-probability and the likeliest alternatives, so
        many of them. A sample ends with the step that has a stop_reason."""
        ids = self.tokenizer.encode(prompt)
        sampler = TokenSampler(config, self.bias, ids)
        window = Window(self.engine, ids or [self.first_token()], config.samples)
        return self.write(window, sampler, config, log_probabilities, alternatives)

    def write(
        self, window: Window, sampler: TokenSampler, config: SampleConfig, nats: bool, k: int
    ) -> Iterator[Step]:
        """:meth:`steps`, with a window and a sampler of one's own."""
        texts = [StreamDecoder(config.stop) for _ in range(config.samples)]
        unfinished = list(range(config.samples))
        sentences = [SentenceEnd() for _ in range(config.samples)]
        most = config.max_new_tokens
        if config.whole_sentences and most > 0:
            most += _LONGEST_SENTENCE
        likely: list[float | None] = [None] * config.samples
        others: list[tuple[Token, ...]] = [()] * config.samples
        for count in range(1, most + 1):
            logits = window.next_logits()  # (samples, vocab_size)
            if count == 1 and not np.isfinite(logits).all():
                raise UserError("the model is damaged: its logits are not finite")
            tokens = sampler(logits)  # (samples,)
            if nats:
                likely = scoring.log_probabilities(logits, tokens).tolist()
            if k:
                others = self.likeliest(logits, k)
            ids = tokens.tolist()
            for i in tuple(unfinished):
                reason: StopReason | None = "length" if count == most else None
                reason = "end_of_text" if ids[i] == self.tokenizer.end_of_text else reason
                written = self.tokenizer.token_bytes(ids[i])
                text = texts[i].add(written, last=reason is not None)
                reason = "stop" if texts[i].stopped else reason
                if config.whole_sentences:
                    is_long_enough = count >= config.max_new_tokens
                    is_last = reason is not None
                    text = sentences[i].add(text, is_long_enough=is_long_enough, last=is_last)
                    reason = "length" if sentences[i].reached else reason
                if reason is not None:
                    unfinished.remove(i)
                yield Step(i, ids[i], likely[i], text, reason, others[i])
            if not unfinished:
                return
            window.append(tokens)

    def score(self, text: str) -> Score:
        """How likely `text` is, as the continuation of an empty prompt. A longer text than the
        context is read in windows that overlap by half, so that tokens see at least half of one."""
        ids = self.tokenizer.encode(text)
        return Score(self._tokens(ids, scoring.score(self.engine, [self.first_token(), *ids])))

    def copied(self, *texts: str) -> Copies:
        """How much of texts stands word for word in the training text: of these, or else of eight
        that it writes. UserError if the training text is not known, not there or not the same."""
        if self.read_text is None:
            raise UserError("this model does not say what text it learned from")
        training, validation = self.read_text()
        if not texts:
            texts = tuple(s.text for s in self.samples(samples=8, max_new_tokens=200, seed=0))
        return copies(texts, training, validation)

    def next_tokens(self, text: str, k: int = 10) -> list[Token]:
        """The k likeliest tokens after `text`, likeliest first, at temperature 1."""
        if k < 1:
            raise UserError(f"k must be at least 1, got {k}")
        window = Window(self.engine, self.tokenizer.encode(text) or [self.first_token()])
        return list(self.likeliest(window.next_logits(), k)[0])

    def likeliest(self, logits: Array, k: int) -> list[tuple[Token, ...]]:
        """The k likeliest tokens of each row of logits ``(b, vocab_size)``; of equals, those with
        the smallest ids."""
        if k == 0:
            return [()] * len(logits)
        return [self._tokens(*likely) for likely in scoring.likeliest(logits, k)]

    def _tokens(self, ids: list[int], nats: list[float]) -> tuple[Token, ...]:
        pairs = zip(ids, nats, strict=True)
        return tuple(Token(i, self.tokenizer.token_bytes(i), value) for i, value in pairs)

    def first_token(self) -> int:
        """The token that an empty prompt stands for: the one between two documents, if the model
        knows it, or a new line or a space, if it has seen one."""
        for text in () if self.knows_documents else ("\n", " "):
            with contextlib.suppress(UserError):
                if self.bias[token := self.tokenizer.encode(text)[0]] == 0:
                    return token
        return self.tokenizer.end_of_text

    @cached_property
    def bias(self) -> NDArray[np.float32]:
        """Minus infinity for a token that the text cannot have had, ``(vocab_size,)``."""
        bias = np.zeros(self.tokenizer.vocab_size, np.float32)
        alphabet = bytes.fromhex(self.alphabet)
        for i in range(len(bias) if alphabet else 0):
            text = self.tokenizer.token_bytes(i)  # none of the token between two documents
            if text.translate(None, alphabet) or not (text or self.knows_documents):
                bias[i] = -np.inf
        return bias


def _sample(prompt: str, steps: list[Step], asked_for: bool, seconds: float) -> Sample:
    text, ids = "".join(step.text for step in steps), tuple(step.token_id for step in steps)
    nats = tuple(step.log_probability for step in steps if step.log_probability is not None)
    reason = (steps[-1].stop_reason if steps else None) or "length"
    return Sample(prompt, text, ids, nats if asked_for else None, reason, seconds)
