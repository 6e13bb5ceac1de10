"""What is to be written: a request is a `Job`, of one or several `Text`s."""

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..generation.results import Step, StopReason, Token
from ..generation.sampler import TokenSampler
from ..generation.window import Array, TokenIds
from ..generation.writer import Writer
from .settings import Order

NOT_DRAWN = -1  # the sample of a step that only tells something


class ApiError(Exception):
    """What a client is told: a status, a message, perhaps a field and a code; as OpenAI does."""

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None
    ):
        super().__init__(status, message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code

    def content(self) -> dict[str, Any]:
        """The body of the answer."""
        kinds = {429: "rate_limit_error", 503: "server_error"}
        return {
            "error": {
                "message": self.message,
                "type": kinds.get(self.status, "invalid_request_error"),
                "param": self.param,
                "code": self.code,
            }
        }


# What a job's client is to learn: of which text, and its next step or an error.
News = list[tuple[int, Step | ApiError]]


class Job:
    """A request: `n` texts for each prompt, a text with its token ids.

    ``is_over`` says that nobody waits for more. The event loop and the scheduler's thread both set
    it; neither ever takes it back.
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


class Text:
    """One text of a job; a Writer writes it, to whom the scheduler gives the logits.

    The model sees ``read + unread``. What is read lies in the cache.
    """

    def __init__(self, job: Job, i: int, first_token: int):
        """Text i of the job; `first_token` is what an empty prompt stands for."""
        prompt, self.sample = divmod(i, job.order.n)
        self.job = job
        self.i = i
        self.prompt, self.ids = job.prompts[prompt]
        self.read: list[int] = []
        self.unread = self.ids or [first_token]
        self.has_ended = False
        self._written = bytearray()
        self._shown = 0  # characters of what is written
        self._window = _GivenLogits()
        self._steps: Iterator[Step] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether a token of it has been drawn."""
        return self._steps is not None

    @property
    def is_over(self) -> bool:
        return self.has_ended or self.job.is_over

    def next_step(self, writer: Writer, logits: Array) -> Step:
        """Draw a token from logits ``(1, vocab_size)``."""
        self._window.logits = logits
        if self._steps is None:
            self._steps = self._begin(writer)
        step = next(self._steps)

        self.has_ended = step.stop_reason is not None
        self.read += self.unread
        self.unread = [step.token_id]
        self._written += writer.tokenizer.token_bytes(step.token_id)
        self._shown += len(step.text)
        return step

    def end(self) -> Step:
        """The last step of a text that is to go no further. It shows what was held back, because a
        stop string could have begun there."""
        self.has_ended = True
        held_back = self._written.decode(errors="replace")[self._shown :]
        return told(text=held_back, stop_reason="length")

    def forget_half(self) -> None:
        """Of a full context the later half has to be read again, as in Window."""
        half = len(self.read) // 2 + 1
        self.unread = self.read[half:] + self.unread
        self.read = []

    def _begin(self, writer: Writer) -> Iterator[Step]:
        order = self.job.order
        window: Any = self._window
        return writer.write(
            window,
            TokenSampler(order, self.job.bias, self.ids, first=self.sample),
            order,
            log_probabilities=order.logprobs is not None,
            alternatives=order.logprobs or 0,
        )


class _GivenLogits:
    """Stands for a Window: the scheduler computes the logits of all texts together."""

    def __init__(self) -> None:
        self.logits: Array = np.empty(0)

    def next_logits(self) -> Array:
        return self.logits

    def append(self, token_ids: TokenIds) -> None:
        pass


def told(
    token_id: int = 0,
    *,
    text: str = "",
    log_probability: float | None = None,
    alternatives: tuple[Token, ...] = (),
    stop_reason: StopReason | None = None,
) -> Step:
    """A step that tells of a token of the prompt, or only that a text ends."""
    return Step(
        sample=NOT_DRAWN,
        token_id=token_id,
        log_probability=log_probability,
        text=text,
        stop_reason=stop_reason,
        alternatives=alternatives,
    )
