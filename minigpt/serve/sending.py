"""An answer on its way to its client: the texts of a job are sent as they are written, and need not
go on when the client has left.
"""

from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from .answers import Answer, TextPiece, event
from .batch import Job
from .requests import ApiError


class TextsResponse(StreamingResponse):
    """The texts of a job, sent as they are written, or as one object when all have ended."""

    def __init__(self, job: Job, answer: Answer):
        self._job = job
        self._answer = answer
        kind = "text/event-stream" if job.order.stream else "application/json"
        super().__init__((), media_type=kind)  # `stream_response` gets the body

    async def __call__(self, *asgi: Any) -> None:
        """Send the answer. When all is sent, or the client has left, which Starlette notices, its
        texts need not go on."""
        try:
            await super().__call__(*asgi)
        finally:
            self._job.is_unwanted = True

    async def stream_response(self, send: Any) -> None:
        """Send status and body. A whole answer is waited for first: an error has another status."""
        if self._job.order.stream:
            self.body_iterator = self._events()
        else:
            self.body_iterator = _one(await self._whole())
        await super().stream_response(send)

    async def _whole(self) -> str:
        """The body of an answer in one piece; an ApiError if there is none."""
        pieces: list[list[TextPiece]] = [[] for _ in self._job.texts]
        async for news in self._news():
            for i, more in news.items():
                pieces[i] += more
        return await run_in_threadpool(self._answer.whole, pieces)  # many texts take seconds

    async def _events(self) -> AsyncIterator[str]:
        """The body of a stream, some events at a time."""
        yield self._answer.beginning()
        try:
            async for news in self._news():
                yield self._answer.events(news)
        except ApiError as error:
            yield event(error.content())
            return
        yield self._answer.ending()

    async def _news(self) -> AsyncIterator[dict[int, list[TextPiece]]]:
        """The next pieces of the texts that have some, until all have ended. An ApiError is
        raised."""
        unfinished = len(self._job.texts)
        while unfinished:
            news = await self._job.next_pieces()
            unfinished -= sum(pieces[-1].stop_reason is not None for pieces in news.values())
            yield news


async def _one(part: str) -> AsyncIterator[str]:
    yield part
