"""One thread owns the model and writes the texts of all requests. The event loop submits jobs; at
each step some tokens of prompts are read, and every text of the batch gets a token.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter, defaultdict, deque

import numpy as np

from ..generation.results import Step
from ..generation.sampler import nats_of
from ..generation.window import Array
from ..generation.writer import Writer
from .jobs import ApiError, Job, News, Text, told
from .settings import (
    CACHES,
    GRACE,
    LOGITS_AT_ONCE,
    SEND_EVERY,
    TOKENS_AT_ONCE,
    ServeConfig,
)


class Scheduler:
    """The thread and its batch.

    A text waits until it gets one of the ``places``; then its prompt is read, and it is written
    beside the others of the batch until it ends. A free place goes to the oldest request, unless
    that has half of them already.
    """

    def __init__(self, writer: Writer, config: ServeConfig):
        self.writer = writer
        self.config = config
        self.waiting: deque[Text] = deque()  # for a place, the oldest request's first
        self.reading: deque[Text] = deque()  # they have places, and do not write yet
        self.batch: list[Text] = []  # text i has row i of the cache
        self.is_leaving = lambda: False

        self._glass = writer.glass
        self._first_token = writer.first_token()
        size = self._glass.new_cache(1).keys_values.nbytes
        self.places = max(min(config.max_batch, CACHES // size), 1)
        # A row for each place, and a last one for the first text in `reading`.
        self._cache = self._glass.new_cache(self.places + 1)
        self._reader = self._cache.part(slice(self.places, None))

        self._change = threading.Condition()  # of `waiting`
        self._outbox: dict[Job, News] = defaultdict(list)
        self._sent = 0.0  # when steps were last sent
        self._end = float("inf")  # when all texts have to end

    def start(self) -> None:
        """Write from now on, in a thread."""
        threading.Thread(target=self._run, daemon=True).start()

    # In the event loop

    def check_room(self, texts: int) -> None:
        """Raise an ApiError if there is no room for so many more texts to wait."""
        most = self.config.max_waiting
        if texts > most:
            message = f"n must be such that there are at most {most} texts (--max-waiting)"
            raise ApiError(400, message, "n")
        if len(self.waiting) + texts > most:
            raise ApiError(429, "Too many texts are waiting; try again.", None, "queue_full")

    def submit(self, job: Job) -> None:
        """Let its texts wait; an ApiError if there is no room."""
        self._loop = asyncio.get_running_loop()
        self.check_room(job.texts)
        with self._change:
            self.waiting.extend(Text(job, i, self._first_token) for i in range(job.texts))
            self._change.notify()

    # In the thread

    def _run(self) -> None:
        with np.errstate(all="ignore"):
            while True:
                try:
                    self.step()
                except Exception:
                    logging.getLogger("minigpt.serve").exception("a step of the scheduler failed")
                    self._give_up()

                # Several tokens of a text at a time: to send one takes longer than to write it.
                is_idle = not (self.batch or self.reading)
                if is_idle or time.monotonic() > self._sent + SEND_EVERY:
                    self._send()

    def step(self) -> None:
        """Wait for texts; read tokens of prompts; write a token of each text in the batch."""
        if self.is_leaving():
            self._end = min(self._end, time.monotonic() + GRACE)

        with self._change:
            self._change.wait_for(lambda: self.waiting or self.reading or self.batch)
            self.waiting = deque(filter(self._goes_on, self.waiting))
        self.reading = deque(filter(self._goes_on, self.reading))
        for i in reversed(range(len(self.batch))):  # a text that leaves moves the last one
            if not self._goes_on(self.batch[i]):
                self._leave(i)

        self._read()
        if self.batch:
            self._write()

    def _goes_on(self, text: Text) -> bool:
        """Whether somebody waits for a text, and there is time. If only its time is up, end it."""
        is_late = time.monotonic() > min(text.job.arrived + self.config.max_seconds, self._end)
        if is_late and not text.is_over:
            if text.has_begun:
                self._post(text, text.end())
            else:
                message = "The server had no time for the request; try again."
                self._post(text, ApiError(503, message, None, "timeout"))
        return not text.is_over

    def _read(self) -> None:
        """Read some tokens, so that the batch need not wait long for its next step."""
        left = TOKENS_AT_ONCE
        while left > 0:
            if not self.reading:
                self._admit()
            if not self.reading:
                return
            left -= self._read_part(self.reading[0])

    def _admit(self) -> None:
        """Give a free place to the first waiting text whose request has less than half of them."""
        taken = Counter(text.job for text in (*self.batch, *self.reading))
        if taken.total() == self.places:
            return
        with self._change:
            for text in self.waiting:
                if taken[text.job] < max(self.places // 2, 1):
                    self.waiting.remove(text)
                    self.reading.append(text)
                    return

    def _read_part(self, text: Text) -> int:
        """Read the next tokens of a text; returns how many, plus one. Its last token is read in the
        batch, which the text joins when all others are read."""
        order = text.job.order
        is_told = order.echo and not text.has_begun
        if not text.read:
            self._reader.lengths[:] = 0
            if is_told and text.ids:  # nothing predicts the first token
                self._post(text, told(text.ids[0], text=text.prompt))

        count = min(TOKENS_AT_ONCE, len(text.unread) - 1)
        is_scored = is_told and order.logprobs is not None
        if is_scored:
            vocab_size = len(text.job.bias)
            count = min(count, max(LOGITS_AT_ONCE // vocab_size, 1))
        if count > 0:
            ids = np.array([text.unread[:count]])  # (1, count)
            x = self._glass.last_stream(ids, self._reader)  # (1, count, emb_dim)
            if is_scored:
                self._score(text, text.unread[1 : count + 1], self._glass.logits(x[0]))
            text.read += text.unread[:count]
            text.unread = text.unread[count:]

        if len(text.unread) == 1:
            self._join()
        return count + 1

    def _score(self, text: Text, ids: list[int], logits: Array) -> None:
        """Tell how likely tokens of a prompt are, by their logits ``(n, vocab_size)``."""
        nats = nats_of(logits, np.array(ids)).tolist()
        tops = self.writer.likeliest(logits, text.job.order.logprobs or 0)
        for token_id, log_probability, alternatives in zip(ids, nats, tops, strict=True):
            step = told(token_id, log_probability=log_probability, alternatives=alternatives)
            self._post(text, step)

    def _join(self) -> None:
        """The text that was read joins the batch, if it is to be continued."""
        text = self.reading.popleft()
        if text.job.order.max_new_tokens == 0:
            self._post(text, text.end())
            return

        n = len(self.batch)
        self._cache.part(slice(n, n + 1)).fill(self._reader)
        self.batch.append(text)

    def _leave(self, i: int) -> None:
        """The last text of the batch takes the place of text i."""
        last = self.batch.pop()
        n = len(self.batch)
        if i < n:
            self.batch[i] = last
            self._cache.part(slice(i, i + 1)).fill(self._cache.part(slice(n, n + 1)))

    def _write(self) -> None:
        """A token for each text of the batch."""
        n = len(self.batch)
        context_length = self._glass.config.context_length
        token_ids = np.array([text.unread for text in self.batch])  # (n, 1)
        logits = self._glass.next_logits(token_ids, self._cache.part(slice(n)))  # (n, vocab_size)

        for i in reversed(range(n)):  # a text that leaves moves the last one
            text = self.batch[i]
            self._post(text, text.next_step(self.writer, logits[i : i + 1]))
            if text.has_ended:
                self._leave(i)
            elif len(text.read) == context_length:
                self._leave(i)
                text.forget_half()
                self.reading.append(text)

    # What clients learn

    def _post(self, text: Text, news: Step | ApiError) -> None:
        self._outbox[text.job].append((text.i, news))
        if isinstance(news, ApiError):
            text.job.is_over = True

    def _send(self) -> None:
        outbox = self._outbox
        self._outbox = defaultdict(list)
        self._sent = time.monotonic()
        if outbox:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(_deliver, outbox)

    def _give_up(self) -> None:
        """End the texts that have places, whose caches may be half written."""
        for text in (*self.batch, *self.reading):
            self._post(text, ApiError(503, "The model could not go on; try again."))
        self.batch = []
        self.reading.clear()


def _deliver(outbox: dict[Job, News]) -> None:
    for job, news in outbox.items():
        job.inbox.put_nowait(news)
