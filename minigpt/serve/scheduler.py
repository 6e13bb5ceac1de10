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

from ..generation.results import Step, Token
from ..generation.scoring import log_probabilities
from ..generation.window import Array
from ..generation.writer import Writer
from .jobs import NOT_DRAWN, ApiError, Job, News, Text
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

    ``places`` texts are written side by side. A free place goes to the waiting request that has the
    fewest, among equals to the one that has waited longest. If no place is free, a request that has
    none takes one from the request that has the most, if those are several: the text that leaves
    goes on later. So requests are served in the order in which they came, a large one keeps no
    other waiting, and one of several texts always gets on.
    """

    def __init__(self, writer: Writer, config: ServeConfig):
        self.writer = writer
        self.config = config
        self.batch: list[Text] = []  # text i has row i of the cache
        self.reading: deque[Text] = deque()  # they have places, and do not write yet
        self.waiting: deque[Job] = deque()  # those with texts that have no place, longest first
        self.figures: dict[str, float] = defaultdict(float)
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
        self._sent = 0.0  # when
        self._end = float("inf")  # when all texts have to end

    def start(self) -> None:
        """Write from now on, in a thread."""
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def texts_waiting(self) -> int:
        with self._change:
            return sum(len(job.waiting) for job in self.waiting)

    @property
    def texts_running(self) -> int:
        return len(self.batch) + len(self.reading)

    def check_room(self, texts: int) -> None:
        """An ApiError if so many texts more cannot wait."""
        most = self.config.max_waiting
        if texts > most:
            message = f"n must be such that there are at most {most} texts (--max-waiting)"
            raise ApiError(400, message, "n")
        if self.texts_waiting + texts > most:
            raise ApiError(429, "Too many texts are waiting; try again.", None, "queue_full")

    def submit(self, job: Job) -> None:
        """Let its texts wait, in the event loop; an ApiError if there is no room."""
        self._loop = asyncio.get_running_loop()
        self.check_room(job.texts)
        job.waiting.extend(Text(job, i, self._first_token) for i in range(job.texts))
        with self._change:
            self.waiting.append(job)
            self._change.notify()

    def step(self) -> None:
        """Wait for texts; read some tokens of them, and write one of each that is read."""
        if self.is_leaving():
            self._end = min(self._end, time.monotonic() + GRACE)

        with self._change:
            self._change.wait_for(lambda: self.waiting or self.reading or self.batch)
            self._end_late_texts()
        self._drop_what_is_over()

        self._read()
        if self.batch:
            self._write()

    # The scheduler's thread

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

    def _give_up(self) -> None:
        """End the texts that have places, whose caches may be half written."""
        for text in (*self.batch, *self.reading):
            self._post(text, ApiError(503, "The model could not go on; try again."))
        self.batch = []
        self.reading.clear()

    def _send(self) -> None:
        outbox = self._outbox
        self._outbox = defaultdict(list)
        self._sent = time.monotonic()
        if outbox:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(_deliver, outbox)

    def _post(self, text: Text, news: Step | ApiError) -> None:
        self._outbox[text.job].append((text.i, news))
        if isinstance(news, ApiError):
            text.job.is_over = True

    def _end_late_texts(self) -> None:
        """Answer those that are not in the batch; the others are ended when they write."""
        waiting = (text for job in self.waiting for text in job.waiting)
        for text in (*self.reading, *waiting):
            if text.is_over or not self._is_late(text.job):
                continue
            if text.has_begun:
                self._post(text, text.end(_told()))
            else:
                message = "The server had no time for the request; try again."
                self._post(text, ApiError(503, message, None, "timeout"))

    def _is_late(self, job: Job) -> bool:
        return time.monotonic() > min(job.arrived + self.config.max_seconds, self._end)

    def _drop_what_is_over(self) -> None:
        """Forget the texts that nobody waits for."""
        with self._change:
            for job in self.waiting:
                job.waiting = deque(text for text in job.waiting if not text.is_over)
            self.waiting = deque(job for job in self.waiting if job.waiting)

        self.reading = deque(text for text in self.reading if not text.is_over)
        for i in reversed(range(len(self.batch))):
            if self.batch[i].is_over:
                self._leave(i)

    # Places

    def _admit(self) -> None:
        """Give a place to a text that waits, if there is one for it."""
        with self._change:
            if not self.waiting:
                return
            taken = Counter(text.job for text in (*self.batch, *self.reading))
            job = min(self.waiting, key=lambda job: taken[job])  # the first of the equals

            if taken.total() == self.places:
                largest, most = taken.most_common(1)[0]
                if taken[job] or most < 2:
                    return
                self._put_back(largest)

            self.reading.append(job.waiting.popleft())
            self.waiting.remove(job)
            if job.waiting:
                self.waiting.append(job)

    def _put_back(self, job: Job) -> None:
        """Let the last text of a job wait."""
        rows = [row for row, text in enumerate(self.batch) if text.job is job]
        row_of_last = max(rows, key=lambda row: self.batch[row].i)
        text = self._leave(row_of_last)
        text.read_again()
        job.waiting.appendleft(text)
        if job not in self.waiting:
            self.waiting.append(job)

    def _leave(self, i: int) -> Text:
        """The last text of the batch takes the place of text i, which is returned."""
        text = self.batch[i]
        last = self.batch.pop()
        n = len(self.batch)
        if i < n:
            self.batch[i] = last
            place = self._cache.part(slice(i, i + 1))
            place.fill(self._cache.part(slice(n, n + 1)))
        return text

    # Reading and writing

    def _read(self) -> None:
        """Read some tokens, so that the batch need not wait long for its next step."""
        left = TOKENS_AT_ONCE
        while left > 0:
            if not self.reading:
                self._admit()
            if not self.reading:
                return
            left -= self._read_part(self.reading[0])

    def _read_part(self, text: Text) -> int:
        """Read tokens of a text, all but its last, which the batch reads; how many it were, and one
        more. The text joins the batch when all is read."""
        order = text.job.order
        is_scored = order.echo and order.logprobs is not None and text.told < len(text.ids)
        if not text.read:
            self._reader.lengths[:] = 0
        if order.echo and not text.told:
            self._tell_first(text)

        count = min(TOKENS_AT_ONCE, len(text.unread) - 1)
        if is_scored:
            vocab_size = len(text.job.bias)
            count = min(count, max(LOGITS_AT_ONCE // vocab_size, 1))
        if count > 0:
            ids = np.array([text.unread[:count]])  # (1, count)
            x = self._glass.last_stream(ids, self._reader)  # (1, count, emb_dim)
            if is_scored:
                self._tell(text, self._glass.logits(x[0]))
            text.read += text.unread[:count]
            text.unread = text.unread[count:]

        if len(text.unread) == 1:
            self._join()
        return count + 1

    def _tell_first(self, text: Text) -> None:
        """Tell the text of a prompt, with its first token, which nothing predicts."""
        if text.ids:
            self._post(text, _told(text.ids[0], text=text.prompt))
            text.told = 1

    def _tell(self, text: Text, logits: Array) -> None:
        """Tell how likely the next tokens of a prompt are, by logits ``(n, vocab_size)``."""
        ids = text.ids[text.told : text.told + len(logits)]
        nats = log_probabilities(logits, np.array(ids)).tolist()
        tops = self.writer.likeliest(logits, text.job.order.logprobs or 0)
        for token_id, log_probability, alternatives in zip(ids, nats, tops, strict=True):
            step = _told(token_id, log_probability=log_probability, alternatives=alternatives)
            self._post(text, step)
        text.told += len(ids)

    def _join(self) -> None:
        """The text that was read joins the batch, if it is to be continued."""
        text = self.reading.popleft()
        if text.job.order.max_new_tokens == 0:
            self.figures["prompt_tokens_total"] += len(text.ids)
            self._post(text, text.end(_told()))
            return

        n = len(self.batch)
        place = self._cache.part(slice(n, n + 1))
        place.fill(self._reader)
        self.batch.append(text)

    def _write(self) -> None:
        """A token for each text of the batch."""
        n = len(self.batch)
        context_length = self._glass.config.context_length
        token_ids = np.array([text.unread for text in self.batch])  # (n, 1)
        logits = self._glass.next_logits(token_ids, self._cache.part(slice(n)))  # (n, vocab_size)

        for i in reversed(range(n)):  # from the last, since a text that leaves moves the last one
            text = self.batch[i]
            if not text.has_begun:
                self._count_first_token(text)

            step = text.next_step(self.writer, logits[i : i + 1])
            if not text.has_ended and self._is_late(text.job):
                step = text.end(step)
            self._post(text, step)

            if text.has_ended:
                self._leave(i)
            elif len(text.read) == context_length:  # as in Window: half of it is read again
                self._leave(i)
                text.read_again(context_length // 2 + 1)
                self.reading.append(text)
        self.figures["generated_tokens_total"] += n

    def _count_first_token(self, text: Text) -> None:
        self.figures["prompt_tokens_total"] += len(text.ids)
        self.figures["time_to_first_token_seconds_count"] += 1
        waited = time.monotonic() - text.job.arrived
        self.figures["time_to_first_token_seconds_sum"] += waited


def _told(
    token_id: int = 0,
    *,
    text: str = "",
    log_probability: float | None = None,
    alternatives: tuple[Token, ...] = (),
) -> Step:
    """A step that tells of a token of the prompt, or only that a text ends."""
    return Step(
        sample=NOT_DRAWN,
        token_id=token_id,
        log_probability=log_probability,
        text=text,
        stop_reason=None,
        alternatives=alternatives,
    )


def _deliver(outbox: dict[Job, News]) -> None:
    for job, news in outbox.items():
        job.inbox.put_nowait(news)
