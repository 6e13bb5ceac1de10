"""Where texts become a batch: the thread that writes. It owns the model, a queue of texts and those
that it writes side by side, the batch. The event loop submits jobs; at each step some tokens of
prompts are read, and every text of the batch gets a token, of which its client is told.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter, deque

import numpy as np

from .. import UserError
from ..generation.continuation import Continuation
from ..generation.results import StopReason, Token
from ..generation.sampler import TokenSampler, nats_of
from ..generation.window import Array
from ..generation.writer import Writer
from .answers import ScoredToken, TextPiece
from .requests import ApiError, Order
from .settings import ServeConfig

GRACE = 4  # seconds that texts have to end when the server is told to

_CACHES = 1 << 30  # bytes of keys and values: fewer texts at once of a large model
_TOKENS_AT_ONCE = 64  # of prompts, read between two steps of the texts that are being written
_LOGITS_AT_ONCE = 1 << 19  # of a prompt that is scored: fewer tokens of a large vocabulary
_SEND_EVERY = 0.05  # seconds; to send a token takes longer than to write it


class Job:
    """A request: `n` texts for each prompt, a text with its token ids.

    ``is_unwanted`` says that nobody waits for more, as when the client has left. The event loop and
    the thread both set it; neither ever takes it back.
    """

    def __init__(
        self,
        order: Order,
        prompts: list[tuple[str, list[int]]],
        bias: Array,  # (vocab_size,)
        deadline: float,  # by time.monotonic
    ):
        self.order = order
        self.bias = bias
        self.deadline = deadline
        self.texts = [
            Text(self, prompt, ids, sample) for prompt, ids in prompts for sample in range(order.n)
        ]
        self.news = asyncio.Event()  # some of its texts have pieces, or there is an error
        self.error: ApiError | None = None
        self.is_unwanted = False

    async def next_pieces(self) -> dict[int, list[TextPiece]]:
        """Wait for pieces, and take them, by the index of their text; the ApiError if it ended
        with one."""
        await self.news.wait()
        self.news.clear()
        if self.error is not None:
            raise self.error
        return {i: text.take() for i, text in enumerate(self.texts) if text.pieces}


class Text:
    """One text of a job. The model sees ``read + unread``; what is read lies in the cache."""

    def __init__(self, job: Job, prompt: str, ids: list[int], sample: int):
        self.job = job
        self.prompt = prompt
        self.ids = ids
        self.read: list[int] = []
        self.unread = ids
        self.scores: list[ScoredToken] = []  # of the prompt, if they are asked for
        self.pieces = deque[TextPiece]()  # that its client has not been told yet
        self.has_ended = False
        self._sample = sample
        self._sampler: TokenSampler | None = None
        self._continuation: Continuation | None = None

    @property
    def has_begun(self) -> bool:
        """Whether a token of it has been drawn."""
        return self._sampler is not None

    @property
    def is_over(self) -> bool:
        return self.has_ended or self.job.is_unwanted

    def take(self) -> list[TextPiece]:
        """The pieces so far, in the event loop, while the thread may add others."""
        return [self.pieces.popleft() for _ in range(len(self.pieces))]

    def add_token(self, writer: Writer, logits: Array, *, is_last: bool) -> None:
        """Draw a token from logits ``(1, vocab_size)``."""
        order = self.job.order
        if self._sampler is None or self._continuation is None:
            self._sampler = writer.sampler(order, self.job.bias, self.ids, first=self._sample)
            self._continuation = Continuation(order, writer.tokenizer, writer.dialogue)

        tokens = self._sampler(logits)  # (1,)
        token_id = int(tokens[0])
        nats = None
        alternatives: tuple[Token, ...] = ()
        if order.logprobs is not None:
            nats = float(nats_of(logits, tokens)[0])
            (alternatives,) = writer.likeliest(logits, order.logprobs)

        shown = self._continuation.add(token_id, is_last=is_last)
        stop_reason = self._continuation.stop_reason
        self.pieces.append(
            TextPiece(shown, [ScoredToken(token_id, nats, alternatives)], stop_reason)
        )
        self.has_ended = stop_reason is not None
        self.read += self.unread
        self.unread = [token_id]

    def forget_half(self) -> None:
        """Of a full context the later half has to be read again, as in Window."""
        half = len(self.read) // 2 + 1
        self.unread = self.read[half:] + self.unread
        self.read = []


class WritingThread:
    """The thread that writes the texts of all requests.

    A text waits in the queue until there is a row for it; then its prompt is read, and it is
    written beside the others until it ends. A free row goes to the oldest text, but a request has
    half of the rows at most.
    """

    def __init__(self, writer: Writer, config: ServeConfig):
        self.writer = writer
        self.config = config
        self.waiting: deque[Text] = deque()  # the oldest first
        self.reading: Text | None = None  # the one whose prompt is being read
        self.rows: list[Text] = []  # the batch: text i has row i of the cache
        self.is_leaving = lambda: False  # whether the server has been told to end

        self._glass = writer.glass
        self._first_token = writer.first_token()
        size = self._glass.new_cache(1).keys_values.nbytes
        self.most = max(min(config.max_batch, _CACHES // size), 1)
        self._most_of_one = max(self.most // 2, 1)
        # The last row is that of the text that is being read.
        self._cache = self._glass.new_cache(self.most + 1)
        self._reader = self._cache.part(slice(self.most, None))

        self._change = threading.Condition()  # of `waiting`
        self._told: set[Job] = set()  # whose clients are to be woken
        self._sent = 0.0  # when clients were last woken
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

        with self._change:
            waiting = sum(not text.has_begun for text in self.waiting)
        if waiting + texts > most:
            raise ApiError(429, "Too many texts are waiting; try again.", None, "queue_full")

    def submit(self, job: Job) -> None:
        """Let its texts wait; an ApiError if there is no room."""
        self._loop = asyncio.get_running_loop()
        self.check_room(len(job.texts))
        with self._change:
            self.waiting.extend(job.texts)
            self._change.notify()

    # In the thread

    def _run(self) -> None:
        with np.errstate(all="ignore"):
            while True:
                try:
                    self.step()
                except Exception:
                    logging.getLogger("minigpt.serve").exception("a step of the batch failed")
                    self._give_up()

                # Several tokens of a text at a time, unless there is nothing else to do.
                if self._is_idle() or time.monotonic() > self._sent + _SEND_EVERY:
                    self._wake_clients()

    def _is_idle(self) -> bool:
        written = (text for text in self.rows if not text.is_over)
        return not (self.waiting or self.reading or any(written))

    def step(self) -> None:
        """Wait for texts; read tokens of prompts; write a token of each text of the batch."""
        with self._change:
            self._change.wait_for(lambda: self.waiting or self.reading or self.rows)
        if self.is_leaving():
            self._end = min(self._end, time.monotonic() + GRACE)

        self._refuse_late()
        self._free_rows()
        self._read()
        if self.rows:
            self._write()

    def _refuse_late(self) -> None:
        """Take out of the queue what nobody waits for, and what has not begun in time."""
        queue = [self.reading] if self.reading else []
        with self._change:
            for text in (*queue, *self.waiting):
                if self._is_late(text) and not (text.has_begun or text.is_over):
                    message = "The server had no time for the request; try again."
                    self._fail(text.job, ApiError(503, message, None, "timeout"))
            self.waiting = deque(text for text in self.waiting if not text.is_over)

        if self.reading and self.reading.is_over:
            self.reading = None

    def _is_late(self, text: Text) -> bool:
        return time.monotonic() > min(text.job.deadline, self._end)

    def _free_rows(self) -> None:
        """Take out of the batch the texts that ended and those that nobody waits for. One whose
        context is full has to be read again: it is the first in the queue."""
        for i in reversed(range(len(self.rows))):
            text = self.rows[i]
            is_full = len(text.read) == self._glass.context_length
            if not (is_full or text.is_over):
                continue

            last = self.rows.pop()
            n = len(self.rows)
            if i < n:  # the last one moves to its row
                self.rows[i] = last
                self._cache.part(slice(i, i + 1)).fill(self._cache.part(slice(n, n + 1)))
            if not text.is_over:
                text.forget_half()
                with self._change:
                    self.waiting.appendleft(text)

    def _read(self) -> None:
        """Read some tokens, so that the batch need not wait long for its next step."""
        left = _TOKENS_AT_ONCE
        while left > 0:
            if self.reading is None:
                self.reading = self._next_text()
            if self.reading is None:
                return
            left -= self._read_part(self.reading)

    def _next_text(self) -> Text | None:
        """Take the oldest text out of the queue whose request has less than half of the rows; None
        if there is none, or no free row."""
        if len(self.rows) == self.most:
            return None
        taken = Counter(text.job for text in self.rows)
        with self._change:
            for text in self.waiting:
                if taken[text.job] < self._most_of_one:
                    self.waiting.remove(text)
                    return text
        return None

    def _read_part(self, text: Text) -> int:
        """Read the next tokens of a text; returns how many, plus one. Its last token is read in the
        batch, which the text joins when all others are read."""
        if not text.unread:
            text.unread = [self._first_token]  # what an empty prompt stands for
        if not text.read:
            self._reader.lengths[:] = 0

        order = text.job.order
        is_scored = order.echo and order.logprobs is not None and not text.has_begun
        most = _TOKENS_AT_ONCE
        if is_scored:
            most = min(most, max(_LOGITS_AT_ONCE // len(text.job.bias), 1))

        ids = text.unread[:-1][:most]
        if ids:
            x = self._glass.last_stream(np.array([ids]), self._reader)  # (1, T, emb_dim)
            if is_scored:
                self._score(text, self._glass.logits(x[0]))
            text.read += ids
            text.unread = text.unread[len(ids) :]

        if len(text.unread) == 1:
            self._join(text)
        return len(ids) + 1

    def _score(self, text: Text, logits: Array) -> None:
        """How likely the next tokens of a prompt are, by logits ``(n, vocab_size)``."""
        ids = text.unread[1 : len(logits) + 1]
        nats = nats_of(logits, np.array(ids)).tolist()
        tops = self.writer.likeliest(logits, text.job.order.logprobs or 0)
        text.scores += map(ScoredToken, ids, nats, tops)

    def _join(self, text: Text) -> None:
        """The text that was read joins the batch, if it is to be continued."""
        self.reading = None
        order = text.job.order
        text.has_ended = order.max_new_tokens == 0
        if not text.has_begun and (order.echo or text.has_ended):
            self._tell_prompt(text)

        if not text.has_ended:
            n = len(self.rows)
            self._cache.part(slice(n, n + 1)).fill(self._reader)
            self.rows.append(text)

    def _tell_prompt(self, text: Text) -> None:
        """The piece that comes before the first token."""
        prompt = ""
        tokens: list[ScoredToken] = []
        if text.job.order.echo:
            prompt = text.prompt
            # Nothing predicts the first token.
            tokens = [ScoredToken(token_id) for token_id in text.ids[:1]] + text.scores
        stop_reason: StopReason | None = "length" if text.has_ended else None
        text.pieces.append(TextPiece(prompt, tokens, stop_reason, is_prompt=True))
        self._told.add(text.job)

    def _write(self) -> None:
        """A token for each text of the batch; the last one of those that are late."""
        token_ids = np.array([text.unread for text in self.rows])  # (n, 1)
        cache = self._cache.part(slice(len(self.rows)))
        logits = self._glass.next_logits(token_ids, cache)  # (n, vocab_size)
        if not np.isfinite(logits).all():
            raise UserError("the model is damaged: its logits are not finite")

        for i, text in enumerate(self.rows):
            text.add_token(self.writer, logits[i : i + 1], is_last=self._is_late(text))
            self._told.add(text.job)

    # What clients learn

    def _fail(self, job: Job, error: ApiError) -> None:
        job.error = error
        job.is_unwanted = True
        self._told.add(job)

    def _give_up(self) -> None:
        """End the jobs of the texts whose caches may be half written."""
        for text in (*self.rows, *([self.reading] if self.reading else [])):
            self._fail(text.job, ApiError(503, "The model could not go on; try again."))
        self.rows = []
        self.reading = None

    def _wake_clients(self) -> None:
        told = self._told
        self._told = set()
        self._sent = time.monotonic()
        if told:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(_wake, told)


def _wake(jobs: set[Job]) -> None:
    for job in jobs:
        job.news.set()
