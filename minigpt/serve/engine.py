"""One thread owns the model and writes all texts. A request is a `Job` of texts, submitted by the
event loop. At each step some tokens of prompts are read, and every text of the batch gets a token.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter, defaultdict, deque
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..generation.results import Step
from ..generation.sampler import TokenSampler
from ..generation.scoring import log_probabilities
from ..generation.window import Array
from ..generation.writer import Writer
from .settings import (
    CACHES,
    GRACE,
    LOGITS_AT_ONCE,
    SEND_EVERY,
    TOKENS_AT_ONCE,
    Order,
    ServeConfig,
)

News = list[tuple[int, "Step | ApiError"]]  # by text
NOT_DRAWN = -1  # the sample of a step that only tells something


class ApiError(Exception):
    """What a client is told: a status, a message, perhaps a field and a code; as OpenAI does."""

    def content(self) -> dict[str, Any]:
        status, message, param, code = (*self.args, None, None)[:4]
        kind = {429: "rate_limit_error", 503: "server_error"}.get(status, "invalid_request_error")
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}


class Job:
    """A request: `n` texts for each prompt, a text with its token ids.

    ``is_over`` says that nobody waits for more. The event loop and the engine's thread both set it;
    neither ever takes it back.
    """

    def __init__(
        self,
        order: Order,
        prompts: list[tuple[str, list[int]]],
        bias: Array,  # (vocab_size,)
        arrived: float,  # by time.monotonic
    ):
        self.order = order
        self.prompts = prompts
        self.bias = bias
        self.arrived = arrived
        self.texts = order.n * len(prompts)
        self.is_over = False
        self.inbox: asyncio.Queue[News] = asyncio.Queue()
        self.waiting: deque[Text] = deque()  # those that have no place


class Text:
    """One text of a job; a Writer writes it, to whom the engine gives the logits.

    The model sees ``read + unread``. What is read lies in the cache.
    """

    def __init__(self, job: Job, i: int, first_token: int):
        prompt, self.sample = divmod(i, job.order.n)
        self.job = job
        self.i = i
        self.prompt, self.ids = job.prompts[prompt]
        self.read: list[int] = []
        self.unread = list(self.ids) or [first_token]
        self.told = 0  # tokens of an echoed prompt
        self.has_ended = False
        self._written = bytearray()
        self._shown = 0  # characters of what is written
        self._logits: Array = np.empty(0)
        self._steps: Any = None

    @property
    def has_begun(self) -> bool:
        """Whether a token of it has been drawn."""
        return self._steps is not None

    @property
    def is_over(self) -> bool:
        return self.has_ended or self.job.is_over

    def next_step(self, writer: Writer, logits: Array) -> Step:
        """Draw a token from logits ``(1, vocab_size)``."""
        self._logits = logits
        if self._steps is None:
            self._steps = self._begin(writer)
        step: Step = next(self._steps)

        self.has_ended = step.stop_reason is not None
        self.read += self.unread
        self.unread = [step.token_id]
        self._written += writer.tokenizer.token_bytes(step.token_id)
        self._shown += len(step.text)
        return step

    def end(self, last: Step) -> Step:
        """The last step of a text that has no more time. It shows what was held back, because a
        stop string could have begun there."""
        self.has_ended = True
        held_back = self._written.decode(errors="replace")[self._shown :]
        return replace(last, text=last.text + held_back, stop_reason="length")

    def read_again(self, start: int = 0) -> None:
        """What the model sees, from a token on, has to be read into the cache."""
        self.unread = self.read[start:] + self.unread
        self.read = []

    def _begin(self, writer: Writer) -> Any:
        order = self.job.order
        sampler = TokenSampler(order, self.job.bias, self.ids, first=self.sample)
        window: Any = SimpleNamespace(
            next_logits=lambda: self._logits,
            append=lambda token_ids: None,
        )
        return writer.write(
            window,
            sampler,
            order,
            log_probabilities=order.logprobs is not None,
            alternatives=order.logprobs or 0,
        )


class Engine:
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
        size = self._glass.new_cache(1).both.nbytes
        self.places = max(min(config.max_batch, CACHES // size), 1)
        self._cache = self._glass.new_cache(self.places + 1)
        self._reader = self._cache.part(slice(self.places, None))  # of the first text in `reading`

        self._change = threading.Condition()  # of who waits
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
            for job in self.waiting:
                job.waiting = deque(text for text in job.waiting if not text.is_over)
            self.waiting = deque(job for job in self.waiting if job.waiting)

        self.reading = deque(text for text in self.reading if not text.is_over)
        for i in reversed(range(len(self.batch))):
            if self.batch[i].is_over:
                self._leave(i)

        self._read()
        if self.batch:
            self._write()

    # The engine's thread

    def _run(self) -> None:
        with np.errstate(all="ignore"):
            while True:
                try:
                    self.step()
                except Exception:
                    logging.getLogger("minigpt.serve").exception("a step of the engine failed")
                    self._give_up()
                # Several tokens of a text at a time: to send one takes longer than to write it.
                is_idle = not (self.batch or self.reading)
                if is_idle or time.monotonic() > self._sent + SEND_EVERY:
                    self._send()

    def _give_up(self) -> None:
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
                self._post(text, text.end(Step(NOT_DRAWN, 0, None, "", None)))
            else:
                message = "The server had no time for the request; try again."
                self._post(text, ApiError(503, message, None, "timeout"))

    def _is_late(self, job: Job) -> bool:
        return time.monotonic() > min(job.arrived + self.config.max_seconds, self._end)

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
        texts = [text.i if text.job is job else -1 for text in self.batch]
        text = self._leave(texts.index(max(texts)))
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
            self._cache.part(slice(i, i + 1)).fill(self._cache.part(slice(n, n + 1)))
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
            count = min(count, max(LOGITS_AT_ONCE // len(text.job.bias), 1))
        if count:
            ids = np.array([text.unread[:count]])
            *_, (x, _) = self._glass.layers(ids, self._reader)  # (1, count, emb_dim)
            if is_scored:
                self._tell(text, self._glass.logits(x[0]))
            text.read += text.unread[:count]
            text.unread = text.unread[count:]

        if len(text.unread) == 1:
            self._join()
        return count + 1

    def _tell_first(self, text: Text) -> None:
        """Tell the text of a prompt, with its first token."""
        if text.ids:
            self._post(text, Step(NOT_DRAWN, text.ids[0], None, text.prompt, None))
            text.told = 1

    def _tell(self, text: Text, logits: Array) -> None:
        """Tell how likely the next tokens of a prompt are, by logits ``(n, vocab_size)``."""
        ids = text.ids[text.told : text.told + len(logits)]
        nats = log_probabilities(logits, np.array(ids)).tolist()
        tops = self.writer.likeliest(logits, text.job.order.logprobs or 0)
        for token_id, chance, top in zip(ids, nats, tops, strict=True):
            self._post(text, Step(NOT_DRAWN, token_id, chance, "", None, top))
        text.told += len(ids)

    def _join(self) -> None:
        """The text that was read joins the batch, if it is to be continued."""
        text = self.reading.popleft()
        if text.job.order.max_new_tokens == 0:
            self.figures["prompt_tokens_total"] += len(text.ids)
            self._post(text, text.end(Step(NOT_DRAWN, 0, None, "", None)))
            return
        n = len(self.batch)
        self._cache.part(slice(n, n + 1)).fill(self._reader)
        self.batch.append(text)

    def _write(self) -> None:
        """A token for each text of the batch."""
        n = len(self.batch)
        context_length = self._glass.config.context_length
        token_ids = np.array([text.unread for text in self.batch])  # (n, 1)
        logits = self._glass.next_logits(token_ids, self._cache.part(slice(n)))  # (n, vocab_size)

        for i in reversed(range(n)):
            text = self.batch[i]
            if not text.has_begun:
                self.figures["prompt_tokens_total"] += len(text.ids)
                self.figures["time_to_first_token_seconds_count"] += 1
                waited = time.monotonic() - text.job.arrived
                self.figures["time_to_first_token_seconds_sum"] += waited

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


def _deliver(outbox: dict[Job, News]) -> None:
    for job, news in outbox.items():
        job.inbox.put_nowait(news)
