"""One thread owns the model and writes all texts. A request is a `Job` of texts, submitted by the
event loop; at each step one more text may join the batch, and each text there gets a token."""

import asyncio
import contextlib
import logging
import threading
import time
from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..generation.results import Step
from ..generation.sampler import TokenSampler
from ..generation.scoring import log_probabilities
from ..generation.window import Array
from ..generation.writer import Writer
from .settings import CACHES, GRACE, SEND_EVERY, Order, ServeConfig

News = list[tuple[int, "Step | ApiError"]]  # by text
NOT_DRAWN = -1  # the sample of a step that only tells something
_NOTHING = Step(NOT_DRAWN, 0, None, "", "length")  # where no token was to be written


class ApiError(Exception):
    """What a client is told: a status, a message, perhaps a field and a code; as OpenAI does."""

    def content(self) -> dict[str, Any]:
        status, message, param, code = (*self.args, None, None)[:4]
        kind = {429: "rate_limit_error", 503: "server_error"}.get(status, "invalid_request_error")
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}


class Job:
    """A request: `n` texts for each prompt. `is_over` is set when nobody waits for more."""

    def __init__(self, order: Order, prompts: list[tuple[str, list[int]]], bias: Array):
        self.order, self.prompts, self.bias = order, prompts, bias  # (vocab_size,)
        self.texts, self.start, self.is_over = order.n * len(prompts), time.monotonic(), False
        self.inbox: asyncio.Queue[News] = asyncio.Queue()


class Text:
    """One text of a job; a Writer writes it, to whom the batch gives the logits."""

    def __init__(self, job: Job, i: int, writer: Writer):
        self.job, self.i, self.logits = job, i, job.bias[None]  # until the batch has run
        order, k = job.order, job.order.logprobs
        prompt, sample = divmod(i, order.n)
        self.prompt, self.ids = job.prompts[prompt]
        self.read, self.unread = list[int](), self.ids or [writer.first_token()]
        sampler = TokenSampler(order, job.bias, self.ids, sample)
        window: Any = SimpleNamespace(next_logits=lambda: self.logits, append=lambda ids: None)
        self.steps = writer.write(window, sampler, order, k is not None, k or 0)


class Engine:
    """The thread and its batch."""

    def __init__(self, writer: Writer, config: ServeConfig):
        self.writer, self.config, self._glass = writer, config, writer.glass
        size = self._glass.new_cache(1).both.nbytes
        self._cache = self._glass.new_cache(max(min(config.max_batch, CACHES // size), 1))
        self.batch: list[Text] = []  # text i has row i of the cache
        self.waiting: list[Text] = []
        self._change = threading.Condition()  # of who waits
        self._outbox: dict[Job, News] = defaultdict(list)
        self._sent, self._end = 0.0, float("inf")  # when; and when all texts have to end
        self.is_leaving = lambda: False
        self.figures: dict[str, float] = defaultdict(float)
        threading.Thread(target=self._run, daemon=True).start()

    def submit(self, job: Job) -> None:
        """Let its texts wait, in the event loop; an ApiError if too many do."""
        self._loop = asyncio.get_running_loop()
        with self._change:
            if len(self.waiting) >= self.config.max_waiting:
                raise ApiError(429, "Too many texts are waiting; try again.", None, "queue_full")
            self.waiting += [Text(job, i, self.writer) for i in range(job.texts)]
            self.waiting.sort(key=lambda text: text.i)  # a large request delays no other
            self._change.notify()

    def _run(self) -> None:
        with np.errstate(all="ignore"):
            while True:
                try:
                    self._step()
                except Exception:
                    logging.getLogger("minigpt.serve").exception("a step of the engine failed")
                    for text in self.batch:
                        self._post(text, ApiError(503, "The model could not go on; try again."))
                    self.batch = []
                # Several tokens of a text at a time: to send one takes longer than to write it.
                if not self.batch or time.monotonic() > self._sent + SEND_EVERY:
                    with contextlib.suppress(RuntimeError):  # the loop is closed
                        for job, news in self._outbox.items():
                            self._loop.call_soon_threadsafe(job.inbox.put_nowait, news)
                    self._outbox, self._sent = defaultdict(list), time.monotonic()

    def _step(self) -> None:
        if self.is_leaving():
            self._end = min(self._end, time.monotonic() + GRACE)
        for i in reversed(range(len(self.batch))):
            if self.batch[i].job.is_over:
                self._leave(i)
        with self._change:
            self._change.wait_for(lambda: self.waiting or self.batch)
            self.waiting = [text for text in self.waiting if not text.job.is_over]
            joins = bool(self.waiting) and len(self.batch) < len(self._cache.lengths)
            self.batch += [self.waiting.pop(0)] if joins else []
        if joins:
            self._join(self.batch[-1])
        if self.batch:
            self._write()

    def _join(self, text: Text) -> None:
        """Tell the prompt, if it is wanted, and read it."""
        ids = text.ids
        if text.job.order.echo:
            logits = self._glass(np.array([text.unread]))[0, :-1]  # (T - 1, vocab_size)
            nats = [None, *log_probabilities(logits, np.array(ids[1:], int)).tolist()]
            tops = [(), *self.writer.likeliest(logits, text.job.order.logprobs or 0)]
            for n, (i, chance, top) in enumerate(zip(ids, nats, tops, strict=False)):
                self._post(text, Step(NOT_DRAWN, i, chance, "" if n else text.prompt, None, top))
        self._read(text, len(self.batch) - 1)
        self.figures["prompt_tokens_total"] += len(ids)
        self.figures["time_to_first_token_seconds_count"] += 1
        self.figures["time_to_first_token_seconds_sum"] += time.monotonic() - text.job.start

    def _read(self, text: Text, i: int) -> None:
        """Read all but the last unread token, which the batch reads."""
        text.read, text.unread = text.unread[:-1], text.unread[-1:]
        self._cache.lengths[i] = 0
        if text.read:
            self._glass.next_logits(np.array([text.read]), self._cache.part(slice(i, i + 1)))

    def _write(self) -> None:
        """A token for each text of the batch."""
        n, context_length = len(self.batch), self._glass.config.context_length
        token_ids = np.array([text.unread for text in self.batch])  # (n, 1)
        logits = self._glass.next_logits(token_ids, self._cache.part(slice(n)))
        for i in reversed(range(n)):
            text = self.batch[i]
            text.logits, text.read = logits[i : i + 1], text.read + text.unread
            step = next(text.steps, _NOTHING)
            is_late = time.monotonic() > min(text.job.start + self.config.max_seconds, self._end)
            if is_late and not step.stop_reason:
                step = replace(step, stop_reason="length")
            self._post(text, step)
            text.unread = [step.token_id]
            if step.stop_reason:
                self._leave(i)
            elif len(text.read) == context_length:  # as in Window: half of it is read again
                text.unread = text.read[context_length // 2 + 1 :] + text.unread
                self._read(text, i)
        self.figures["generated_tokens_total"] += n

    def _leave(self, i: int) -> None:
        """The last text of the batch takes the place of text i."""
        last = self.batch.pop()
        if i < len(self.batch):
            self.batch[i], n = last, len(self.batch)
            self._cache.part(slice(i, i + 1)).fill(self._cache.part(slice(n, n + 1)))

    def _post(self, text: Text, news: Step | ApiError) -> None:
        self._outbox[text.job].append((text.i, news))
        text.job.is_over |= isinstance(news, ApiError)
