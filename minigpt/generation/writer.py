"""A trained model with its tokenizer, ready to write: `minigpt.load(run)`."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import UserError
from ..config import PLAIN, SampleConfig
from ..data.copies import Copies, copies
from ..data.corpus import Part
from ..data.dialogue import Dialogue
from ..tokenizer import Tokenizer
from .continuation import Continuation
from .explanation import Explanation, explain_token
from .numpy_gpt import NumpyGPT
from .processors import Processor, ProcessorChain
from .repetition import Boundaries, boundaries_of
from .results import Sample, Score, Step, Token
from .sampler import TokenSampler, likeliest, nats_of
from .window import Array, Engine, Window

if TYPE_CHECKING:
    from ..model import GPT
    from .torch_gpt import TorchGPT


@dataclass(frozen=True)
class Writer:
    """Generates text, and tells how likely a text is.

    A setting out of range, or a text that cannot be encoded, is a UserError.

    Attributes:
        engine: computes logits: a `NumpyGPT`, the glass engine; on a GPU a `TorchGPT`.
        tokenizer: has encode(text), decode(ids) and vocab_size.
        knows_documents: whether the model was trained on many documents, so that after the
            token between two of them it begins one.
        alphabet: the bytes of the text that it learned from, in hexadecimal; it writes no others.
        dialogue: who speaks in the text that it learned from, if that is conversations.
        read_text: reads again the text that it learned from, and the text to validate on.
        usual: how the model is sampled, as far as no other settings are given.
    """

    engine: "NumpyGPT | TorchGPT"
    tokenizer: Tokenizer
    knows_documents: bool = False
    alphabet: str = ""
    dialogue: Dialogue | None = None
    read_text: Callable[[], tuple[Part, Part]] | None = None
    usual: SampleConfig = PLAIN

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

    def generate(
        self, prompt: str = "", *, processors: Sequence[Processor] = (), **settings: Any
    ) -> str:
        """`prompt` and a continuation of it. An empty prompt lets the model begin.

        Args:
            prompt: how the text begins.
            processors: functions that change the logits before a token is drawn; see
                :meth:`stream`.
            **settings: fields of :class:`minigpt.SampleConfig` that are to differ from the usual
                ones of the model; of several samples the first is returned.
        """
        return "".join(self.stream(prompt, processors=processors, **settings))

    def stream(
        self, prompt: str = "", *, processors: Sequence[Processor] = (), **settings: Any
    ) -> Iterator[str]:
        """As :meth:`generate`, piece by piece as it is written, the prompt first, in whole
        characters; text that could begin a stop string is held back until it is clear that it does
        not.

        Args:
            prompt: how the text begins.
            processors: functions of ids and logits, numpy arrays, that return logits. They act one
                after another, before the penalties and filters of `settings`. The ids
                ``(b, n)`` are each text so far, prompt and what has been written; an empty
                prompt is the token that stands for it (:meth:`first_token`), so n is at least 1.
                Row i is always sample i, also when that has ended. The logits
                ``(b, vocab_size)`` are the model's, float32; a processor may change them in
                place, returns as many, and forbids a token by minus infinity. Tokens that the
                training text cannot have had stay forbidden.
            **settings: fields of :class:`minigpt.SampleConfig` that are to differ from the usual
                ones of the model: see :meth:`minigpt.SampleConfig.with_given`.

        Raises:
            UserError: also if a processor returns something else, such as another shape or NaN,
                or if the processors leave a text no token to choose.
        """
        config = replace(self.usual.with_given(**settings), samples=1)
        steps = self.steps(prompt, config, processors=processors)
        pieces = itertools.chain([prompt], (step.text for step in steps))
        return filter(None, pieces)

    def samples(
        self,
        prompt: str = "",
        *,
        log_probabilities: bool = False,
        processors: Sequence[Processor] = (),
        **settings: Any,
    ) -> list[Sample]:
        """Several continuations of `prompt`, written side by side; processors and settings as in
        :meth:`stream`. Log-probabilities are the model's own, before any processor.

        Sample i depends on the seed and i, not on the number of samples, except for rounding: it
        differs with the batch size, and changes about one token in two million."""
        start = time.perf_counter()
        config = self.usual.with_given(**settings)
        steps = self.steps(
            prompt, config, log_probabilities=log_probabilities, processors=processors
        )

        taken: list[list[Step]] = [[] for _ in range(config.samples)]
        ends = [start] * config.samples
        for step in steps:
            taken[step.sample].append(step)
            ends[step.sample] = time.perf_counter()

        return [
            _sample(prompt, own_steps, log_probabilities, seconds=end - start)
            for own_steps, end in zip(taken, ends, strict=True)
        ]

    def steps(
        self,
        prompt: str,
        config: SampleConfig,
        *,
        log_probabilities: bool = False,
        alternatives: int = 0,
        processors: Sequence[Processor] = (),
    ) -> Iterator[Step]:
        """Token after token, as they are drawn: each step of the model gives a :class:`Step` for
        each sample that has not ended. If asked for, it has the log-probability of the token, and
        as many of the likeliest `alternatives`. A sample ends with the step that has a stop_reason.
        `processors` are those of :meth:`stream`."""
        ids = self.tokenizer.encode(prompt)
        read = ids or [self.first_token()]
        bias = self.bias
        chain = None
        if processors:
            chain = ProcessorChain(processors, read, config.samples, bias)

        return self.write(
            Window(self.engine, read, config.samples),
            self.sampler(config, bias, ids),
            config,
            log_probabilities=log_probabilities,
            alternatives=alternatives,
            processors=chain,
        )

    def write(
        self,
        window: Window,
        sampler: TokenSampler,
        config: SampleConfig,
        *,
        log_probabilities: bool = False,
        alternatives: int = 0,
        processors: ProcessorChain | None = None,
    ) -> Iterator[Step]:
        """:meth:`steps`, with a window, a sampler and processors of your own."""
        if config.max_new_tokens == 0:
            return

        texts = [Continuation(config, self.tokenizer, self.dialogue) for _ in range(config.samples)]
        unfinished = list(range(config.samples))
        nats: list[float | None] = [None] * config.samples
        likeliest: list[tuple[Token, ...]] = [()] * config.samples

        logits = window.next_logits()  # (samples, vocab_size)
        if not np.isfinite(logits).all():
            raise UserError("the model is damaged: its logits are not finite")

        while True:
            processed = logits if processors is None else processors(logits, unfinished)
            tokens = sampler(processed)  # (samples,)
            if log_probabilities:
                nats = nats_of(logits, tokens).tolist()
            if alternatives:
                likeliest = self.likeliest(logits, alternatives)

            ids = tokens.tolist()
            for i in tuple(unfinished):
                shown = texts[i].add(ids[i])
                stop_reason = texts[i].stop_reason
                if stop_reason is not None:
                    unfinished.remove(i)
                yield Step(
                    sample=i,
                    token_id=ids[i],
                    log_probability=nats[i],
                    text=shown,
                    stop_reason=stop_reason,
                    alternatives=likeliest[i],
                )
            if not unfinished:
                return

            window.append(tokens)
            if processors is not None:
                processors.append(tokens)
            logits = window.next_logits()

    def sampler(
        self, config: SampleConfig, bias: Array, prompt: Sequence[int], first: int = 0
    ) -> TokenSampler:
        """What draws the tokens after a prompt as a config asks for; see there."""
        boundaries = self._boundaries if config.dry_multiplier > 0.0 else None
        return TokenSampler(config, bias, prompt, first=first, boundaries=boundaries)

    @cached_property
    def _boundaries(self) -> Boundaries:
        return boundaries_of(self.tokenizer)

    def score(self, text: str) -> Score:
        """How likely `text` is, as the continuation of an empty prompt. A text longer than the
        context is read in windows that overlap by half, so that the tokens of every later window
        see at least half a context."""
        ids = self.tokenizer.encode(text)
        nats = _score(self.engine, [self.first_token(), *ids])
        return Score(self._tokens(ids, nats))

    def copied(self, *texts: str) -> Copies:
        """How much of `texts`, or else of eight texts that the model writes, is word for word in
        the training text. UserError if that is not known, not there or not the same any more."""
        if self.read_text is None:
            raise UserError("this model does not say what text it learned from")
        training, validation = self.read_text()

        if not texts:
            written = self.samples(samples=8, max_new_tokens=200, seed=0)
            texts = tuple(sample.text for sample in written)
        return copies(texts, training, validation)

    def explain(self, text: str, place: int) -> Explanation:
        """Why the model found a token of `text` likely, or did not: what each part of it adds to
        the token's logit, and what changes without an earlier token or without a head.

        Args:
            text: of two tokens or more; what comes after the token is not looked at.
            place: the index of the token among those that ``tokenizer.encode(text)`` returns,
                counted from 0. Nothing predicts token 0, so it is at least 1. The model sees the
                last `context_length` tokens before it, and reads them again for each of them and
                for each head.

        Raises:
            UserError: also if there is no token at `place`, or none before it, or if the model is
                not a `GPT`, which the glass engine computes.
        """
        return explain_token(self.glass, self.tokenizer.encode(text), place)

    def next_tokens(self, text: str, k: int = 10) -> list[Token]:
        """The k likeliest tokens after `text`, likeliest first, at temperature 1."""
        if k < 1:
            raise UserError(f"k must be at least 1, got {k}")
        ids = self.tokenizer.encode(text) or [self.first_token()]
        logits = Window(self.engine, ids).next_logits()  # (1, vocab_size)
        return list(self.likeliest(logits, k)[0])

    def likeliest(self, logits: Array, k: int) -> list[tuple[Token, ...]]:
        """The k likeliest tokens of each row of logits ``(b, vocab_size)``; of equals, those with
        the smallest ids."""
        if k == 0:
            return [()] * len(logits)
        return [self._tokens(ids, nats) for ids, nats in likeliest(logits, k)]

    def _tokens(self, ids: list[int], nats: list[float]) -> tuple[Token, ...]:
        return tuple(
            Token(token_id, self.tokenizer.token_bytes(token_id), log_probability)
            for token_id, log_probability in zip(ids, nats, strict=True)
        )

    def first_token(self) -> int:
        """The token that an empty prompt stands for: the one between two documents, if the model
        knows it, or a new line or a space, if it has seen one."""
        end_of_text = self.tokenizer.end_of_text
        if self.knows_documents and end_of_text is not None:
            return end_of_text

        for text in ("\n", " "):
            with contextlib.suppress(UserError):  # not every tokenizer can encode it
                ids = self.tokenizer.encode(text)
                if ids and self.bias[ids[0]] == 0:
                    return ids[0]

        if end_of_text is not None:
            return end_of_text
        return int(self.bias.argmax())  # any token that the text may have had

    @cached_property
    def bias(self) -> NDArray[np.float32]:
        """Minus infinity for a token that the text cannot have had, ``(vocab_size,)``."""
        bias = np.zeros(self.tokenizer.vocab_size, np.float32)
        if not self.alphabet:
            return bias

        alphabet = bytes.fromhex(self.alphabet)
        for token_id in range(len(bias)):
            text = self.tokenizer.token_bytes(token_id)
            is_separator = not text and token_id != self.tokenizer.speaker  # between documents
            other_bytes = text.translate(None, alphabet)
            if other_bytes or (is_separator and not self.knows_documents):
                bias[token_id] = -np.inf
        return bias


def _score(engine: Engine, ids: Sequence[int]) -> list[float]:
    """The log-probability of each token but the first, given those before it, in nats.

    The first window predicts as many tokens as it holds. Each later window overlaps by half with
    the one before, and predicts the tokens that follow those of its own later half."""
    context_length = engine.context_length
    found: list[float] = []  # found[i] is the log-probability of ids[i + 1]
    while len(found) < len(ids) - 1:
        # The window is ids[start:end]; it predicts the tokens that follow each of ids[known:end].
        known = len(found)
        new = context_length - context_length // 2 if found else context_length
        end = min(known + new, len(ids) - 1)
        start = max(end - context_length, 0)

        logits = engine(np.array([ids[start:end]]))[0, known - start :]  # (new, vocab_size)
        predicted = np.array(ids[known + 1 : end + 1])  # (new,)
        found += nats_of(logits, predicted).tolist()
    return found


def _sample(prompt: str, steps: list[Step], with_nats: bool, *, seconds: float) -> Sample:
    nats = None
    if with_nats:
        nats = tuple(step.log_probability for step in steps if step.log_probability is not None)
    stop_reason = steps[-1].stop_reason if steps else None
    return Sample(
        prompt=prompt,
        text="".join(step.text for step in steps),
        token_ids=tuple(step.token_id for step in steps),
        log_probabilities=nats,
        stop_reason=stop_reason or "length",
        seconds=seconds,
    )
