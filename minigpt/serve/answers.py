"""What a client gets for a job: the steps of its texts as JSON, at once or as they are written."""

import codecs
import json
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

from ..generation.results import Step
from ..generation.writer import Writer
from ..tokenizer import END_OF_TEXT, Tokenizer
from .jobs import NOT_DRAWN, ApiError, Job

_HALF = "\ufffd"  # stands for bytes that are not a whole character


class Answer(StreamingResponse):
    """A JSON object with all texts, or a stream of server-sent events with pieces of them."""

    def __init__(
        self, job: Job, body: dict[str, Any], *, is_chat: bool, model: str, writer: Writer
    ):
        self._job = job
        self._is_chat = is_chat
        self._is_stream = job.order.stream
        self._tokenizer = writer.tokenizer
        # The space after a speaker's name is not said.
        is_turn = is_chat and writer.dialogue is not None
        self._texts = [_TextSoFar(writer.tokenizer, is_turn) for _ in range(job.texts)]
        self._drawn = 0  # tokens, of all texts
        options = body.get("stream_options")
        self._tells_usage = isinstance(options, dict) and options.get("include_usage") is True

        name = "chatcmpl-" if is_chat else "cmpl-"
        kind = "chat.completion" if is_chat else "text_completion"
        if is_chat and self._is_stream:
            kind = "chat.completion.chunk"
        self._head = {
            "id": name + secrets.token_hex(12),
            "object": kind,
            "created": int(time.time()),
            "model": model,
            "usage": None,
        }

        if self._is_stream:
            super().__init__(self._events(), media_type="text/event-stream")
        else:
            super().__init__((), media_type="application/json")  # `stream_response` gets the body

    async def __call__(self, *asgi: Any) -> None:
        """Send the answer. When all is sent, or the client has left, its texts need not go on."""
        try:
            await super().__call__(*asgi)
        finally:
            self._job.is_over = True

    async def stream_response(self, send: Any) -> None:
        """Send status and body. A whole answer is waited for first: an error has another status."""
        if not self._is_stream:
            self.body_iterator = _one(await self._whole())
        await super().stream_response(send)

    async def _whole(self) -> str:
        """The body of an answer in one piece; an ApiError if there is none."""
        steps = defaultdict[int, list[Step]](list)
        async for news in self._news():
            for i, more in news.items():
                steps[i] += more
        choices = [self._choice(i, steps[i], role="assistant") for i in sorted(steps)]
        return json.dumps({**self._head, "choices": choices, "usage": self._usage()})

    async def _events(self) -> AsyncIterator[str]:
        """The body of a stream, some events at a time."""
        if self._is_chat:
            texts = range(self._job.texts)
            yield "".join(self._events_of(i, [], role="assistant") for i in texts)

        try:
            async for news in self._news():
                yield "".join(self._events_of(i, steps) for i, steps in news.items())
        except ApiError as error:
            yield _event(error.content())
            return

        if self._tells_usage:
            yield _event({**self._head, "choices": [], "usage": self._usage()})
        yield "data: [DONE]\n\n"

    async def _news(self) -> AsyncIterator[dict[int, list[Step]]]:
        """The next steps of the texts that have some, by text, until all texts have ended. An
        ApiError is raised."""
        unfinished = self._job.texts
        while unfinished:
            steps = defaultdict[int, list[Step]](list)
            for i, step in await self._job.inbox.get():
                if isinstance(step, ApiError):
                    raise step
                steps[i].append(step)
                if step.sample != NOT_DRAWN:
                    self._drawn += 1
                if step.stop_reason is not None:
                    unfinished -= 1
            yield steps

    def _usage(self) -> dict[str, int]:
        read = sum(len(ids) for _, ids in self._job.prompts)
        return {
            "prompt_tokens": read,
            "completion_tokens": self._drawn,
            "total_tokens": read + self._drawn,
        }

    def _events_of(self, i: int, steps: list[Step], **role: str) -> str:
        """What the next steps of a text add to it, and an empty chunk with the reason why it ends,
        if it does."""
        choice = self._choice(i, steps, **role)
        reason = choice["finish_reason"]
        choice["finish_reason"] = None
        events = _event({**self._head, "choices": [choice]})
        if reason is not None:
            last = self._choice(i, [])
            last["finish_reason"] = reason
            events += _event({**self._head, "choices": [last]})
        return events

    def _choice(self, i: int, steps: list[Step], **role: str) -> dict[str, Any]:
        """What the next steps of a text add to it."""
        text = self._texts[i].add(steps)
        if not self._is_chat:
            content: dict[str, Any] = {"text": text}
        elif self._is_stream:
            content = {"delta": {**role, "content": text}}
        else:
            content = {"message": {**role, "content": text}}

        logprobs = None
        if steps and self._job.order.logprobs is not None:
            logprobs = self._logprobs(i, steps)
        reason = steps[-1].stop_reason if steps else None
        return {
            "index": i,
            **content,
            "logprobs": logprobs,
            "finish_reason": "stop" if reason == "end_of_text" else reason,
        }

    def _logprobs(self, i: int, steps: list[Step]) -> dict[str, Any]:
        """The log-probabilities of all tokens that were read or drawn, seen in the text or not."""
        with_token = [step for step in steps if _is_of_prompt(step) or step.sample != NOT_DRAWN]
        tokens = [self._token(step.token_id, step.log_probability) for step in with_token]
        tops = [
            [self._token(token.id, token.log_probability) for token in step.alternatives]
            for step in with_token
        ]
        both = list(zip(tokens, tops, strict=True))

        if self._is_chat:
            return {"content": [{**token, "top_logprobs": top} for token, top in both]}
        return {
            "tokens": [token["token"] for token in tokens],
            "token_logprobs": [token["logprob"] for token in tokens],
            "top_logprobs": [by_name(token, top) for token, top in both],
            "text_offset": [self._texts[i].offset(step) for step in with_token],
        }

    def _token(self, token_id: int, log_probability: float | None) -> dict[str, Any]:
        written = self._tokenizer.token_bytes(token_id)
        name = written.decode(errors="backslashreplace")
        if token_id == self._tokenizer.end_of_text:
            name = END_OF_TEXT
        elif not name:  # another special token; vLLM's name for it
            name = f"token_id:{token_id}"
        return {"token": name, "logprob": log_probability, "bytes": list(written)}


def by_name(token: dict[str, Any], tops: list[dict[str, Any]]) -> dict[str, float] | None:
    """The likeliest tokens and the one in question; of those with the same name, the likeliest.
    None for the first token of a prompt, which nothing predicts."""
    if token["logprob"] is None:
        return None
    named: dict[str, float] = {}
    for it in [*tops, token]:
        named.setdefault(it["token"], it["logprob"])
    return named


class _TextSoFar:
    """How much of a text, prompt included if it is echoed, a client has been told."""

    def __init__(self, tokenizer: Tokenizer, is_turn: bool = False):
        self._tokenizer = tokenizer
        self._is_before_text = is_turn  # where white space is left out
        self._held = ""  # perhaps half a character at the end
        self._decoder = _new_decoder()
        self._offset = 0  # in characters, of the next token
        self._is_prompt = True

    def add(self, steps: list[Step]) -> str:
        """What can be shown after these steps: the prompt as it is, and what follows without half a
        character at its end."""
        prompt = "".join(step.text for step in steps if _is_of_prompt(step))
        new = "".join(step.text for step in steps if not _is_of_prompt(step))
        written = self._held + new
        whole = written.rstrip(_HALF)
        self._held = written[len(whole) :]
        if self._is_before_text:
            whole = whole.lstrip()
            self._is_before_text = not whole
        return prompt + whole

    def offset(self, step: Step) -> int:
        """Where the token of the next step begins, in characters of prompt and text, counting those
        that a stop string hides. A token that begins inside a character counts from the beginning
        of that character."""
        if self._is_prompt and not _is_of_prompt(step):
            self._is_prompt = False
            self._offset += len(self._decoder.decode(b"", final=True))
            self._decoder = _new_decoder()

        offset = self._offset
        written = self._tokenizer.token_bytes(step.token_id)
        self._offset += len(self._decoder.decode(written))
        return offset


def _is_of_prompt(step: Step) -> bool:
    """Whether a step tells of a token of the prompt. Another step without a drawn token only says
    that a text ends."""
    return step.sample == NOT_DRAWN and step.stop_reason is None


def _new_decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")(errors="replace")


def _event(content: dict[str, Any]) -> str:
    """A server-sent event."""
    return f"data: {json.dumps(content)}\n\n"


async def _one(part: str) -> AsyncIterator[str]:
    yield part
