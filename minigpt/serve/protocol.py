"""The OpenAI API as data: a request's JSON becomes a `Job`, the steps of its texts an answer. Where
OpenAI is silent this follows vLLM: offsets count from the start of the answer's text."""

import json
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import StreamingResponse

from ..generation.results import Step
from ..generation.writer import Writer
from ..tokenizer import END_OF_TEXT
from .engine import NOT_DRAWN, ApiError, Job
from .settings import CHOICES, ROLES, STOPS, Order, ServeConfig

_NAMES = {field.name for field in fields(Order)} - {"samples", "max_new_tokens"}


def read_job(body: dict[str, Any], is_chat: bool, writer: Writer, config: ServeConfig) -> Job:
    """What a request asks for, or an ApiError or UserError. Null is absent; unknown is ignored."""
    template = dict(words.split("=", 1) for words in config.chat_template if is_chat)
    usual = {"max_tokens": writer.engine.config.context_length if is_chat else 16}
    body = usual | {name: value for name, value in body.items() if value is not None}
    body["max_tokens"] = body.get("max_completion_tokens", body["max_tokens"])
    _require(not body.get("suffix"), "suffix", "left out: this model cannot insert text", 422)
    if is_chat:
        is_told = body.pop("logprobs", False)
        _require(type(is_told) is bool, "logprobs", "true or false")
        body |= {"echo": False, "logprobs": body.get("top_logprobs", 0) if is_told else None}
        prompts = [_chat(body.get("messages"), template, writer)]
    else:
        given = body.get("prompt", "")
        many = isinstance(given, list) and given and isinstance(given[0], str | list)
        prompts = [_prompt(text, writer) for text in (given if many else [given])[: CHOICES + 1]]
    if body.get("top_k") in (0, -1):  # off, as in vLLM
        del body["top_k"]
    if isinstance(stop := body.get("stop", ()), str | list):
        body["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)
    order = Order(**{name: body[name] for name in _NAMES & body.keys()})
    _require(order.n * len(prompts) <= CHOICES, "n", f"such that there are at most {CHOICES} texts")
    _require(sum(map(len, order.stop)) <= STOPS, "stop", f"at most {STOPS} characters in all")
    stop = (*order.stop, f"\n{template['user']}") if template.get("user") else order.stop
    order = replace(order, max_new_tokens=min(order.max_tokens, config.max_tokens), stop=stop)
    return Job(order, prompts, writer.bias + _bias(body.get("logit_bias", {}), len(writer.bias)))


def _require(holds: bool, param: str, expected: str, status: int = 400) -> None:
    if not holds:
        raise ApiError(status, f"{param} must be {expected}", param)


def _bias(given: Any, size: int) -> Any:
    bias, expected = np.zeros(size, np.float32), "numbers from -100 to 100 by token id"
    _require(isinstance(given, dict), "logit_bias", expected)
    for key, value in given.items():
        is_bias = type(value) in (int, float) and -100 <= value <= 100
        _require(is_bias and key.isascii() and key.isdigit(), "logit_bias", expected)
        _require(int(key[:9]) < size, "logit_bias", f"by token id below {size}", 422)
        bias[int(key[:9])] = value
    return bias


def _prompt(given: Any, writer: Writer) -> tuple[str, list[int]]:
    """A text with its token ids, from either; an empty text lets the model begin."""
    size, limit = writer.tokenizer.vocab_size, writer.engine.config.context_length
    if isinstance(given, str):
        text, ids = given, _encode(given, writer)
    else:
        is_ids = isinstance(given, list) and bool(given) and all(type(i) is int for i in given)
        _require(is_ids, "prompt", "a text, token ids, or a list of either")
        _require(all(0 <= i < size for i in given), "prompt", f"token ids 0 to {size - 1}", 422)
        text, ids = writer.tokenizer.decode(given), given
    if len(ids) > limit:
        message = f"This model's maximum context length is {limit} tokens; the prompt has more."
        raise ApiError(400, message, "prompt", "context_length_exceeded")
    return text, ids


def _chat(messages: Any, template: dict[str, str], writer: Writer) -> tuple[str, list[int]]:
    """The messages joined by new lines; if they are more than the model can read, their end."""
    _require(isinstance(messages, list) and bool(messages), "messages", "a list of messages")
    lines = []
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") or "" if role in ROLES else None
        parts = content if isinstance(content, list) else [{"text": content}]
        texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
        is_text = all(isinstance(text, str) for text in texts)
        _require(is_text, "messages", "objects, each with a role, and text as its content")
        lines.append(template.get(role, "") + "".join(texts))  # type: ignore[arg-type]
    lines += [template["assistant"]] if template.get("assistant") else []
    text, most = "\n".join(lines), writer.engine.config.context_length
    return text, _encode(text, writer, is_end=True)[-most:]


def _encode(text: str, writer: Writer, is_end: bool = False) -> list[int]:
    """Of a long text only the start or the end, which has more than a context length of tokens."""
    text.encode()  # JSON can name half of a surrogate pair: a UnicodeError
    most = writer.engine.config.context_length * max(writer.tokenizer.byte_lengths()) + 1
    return writer.tokenizer.encode(text[-most:] if is_end else text[:most])


class Answer(StreamingResponse):
    """What a client gets for a job: a JSON object, or several as server-sent events."""

    def __init__(self, job: Job, body: dict[str, Any], is_chat: bool, model: str, writer: Writer):
        self._job, self._is_chat, self._tokenizer = job, is_chat, writer.tokenizer
        self._is_stream, options = job.order.stream, body.get("stream_options")
        self._tells_usage = isinstance(options, dict) and options.get("include_usage") is True
        name = ("chatcmpl-" if is_chat else "cmpl-") + secrets.token_hex(12)
        kind = "chat.completion" + ".chunk" * self._is_stream if is_chat else "text_completion"
        self._head = {"id": name, "object": kind, "created": int(time.time()), "model": model}
        self._head["usage"] = None
        media = "text/event-stream" if self._is_stream else "application/json"
        super().__init__(self._parts(), media_type=media)

    async def __call__(self, *asgi: Any) -> None:
        """When all is sent, or the client has left, the texts need not go on."""
        try:
            await super().__call__(*asgi)
        finally:
            self._job.is_over = True

    async def stream_response(self, send: Any) -> None:
        """An error instead of an answer in one has a status of its own."""
        if not self._is_stream:
            self.body_iterator = iterate_in_threadpool([await anext(self._parts())])
        await super().stream_response(send)

    async def _parts(self) -> AsyncIterator[str]:
        steps, drawn, unfinished = defaultdict[int, list[Step]](list), 0, self._job.texts
        if self._is_stream and self._is_chat:
            yield "".join(self._events(i, [], role="assistant") for i in range(unfinished))
        while unfinished:
            for i, step in await self._job.inbox.get():
                if isinstance(step, ApiError):
                    if not self._is_stream:
                        raise step
                    yield f"data: {json.dumps(step.content())}\n\n"
                    return
                steps[i].append(step)
                drawn += step.sample != NOT_DRAWN
                unfinished -= step.stop_reason is not None
            # With log-probabilities all comes at the end, when it is known where a stop string is.
            if self._is_stream and (self._job.order.logprobs is None or not unfinished):
                yield "".join(self._events(i, new) for i, new in steps.items())
                steps.clear()
        read = sum(len(ids) for _, ids in self._job.prompts)
        usage = {"prompt_tokens": read, "completion_tokens": drawn, "total_tokens": read + drawn}
        choices = [self._choice(i, steps[i], role="assistant") for i in sorted(steps)]
        last = json.dumps({**self._head, "choices": choices, "usage": usage})
        if self._is_stream:
            last = f"data: {last}\n\n" * self._tells_usage + "data: [DONE]\n\n"
        yield last

    def _events(self, i: int, steps: list[Step], **role: str) -> str:
        """The text, and an empty chunk with the reason why it ends."""
        choice = self._choice(i, steps, **role)
        ends = [{**self._choice(i, []), "finish_reason": choice["finish_reason"]}]
        chunks = [{**choice, "finish_reason": None}, *ends * bool(choice["finish_reason"])]
        return "".join(f"data: {json.dumps({**self._head, 'choices': [it]})}\n\n" for it in chunks)

    def _choice(self, i: int, steps: list[Step], **role: str) -> dict[str, Any]:
        reason = steps[-1].stop_reason if steps else None
        text = "".join(step.text for step in steps)
        text = text.rstrip("\ufffd") if reason else text  # half a character
        chat = {"delta" if self._is_stream else "message": {**role, "content": text}}
        content = chat if self._is_chat else {"text": text}
        is_told = steps and self._job.order.logprobs is not None
        logprobs = self._logprobs(steps, len(text)) if is_told else None
        reason = "stop" if reason == "end_of_text" else reason
        return {"index": i, **content, "logprobs": logprobs, "finish_reason": reason}

    def _logprobs(self, steps: list[Step], length: int) -> dict[str, Any]:
        """Those of the tokens that can be seen in a text of so many characters."""
        found, begun = [], 0
        for step in steps:
            begins = [byte & 0xC0 != 0x80 for byte in self._tokenizer.token_bytes(step.token_id)]
            place = begun - (begins[:1] == [False])  # of its first character, perhaps begun before
            if begins and place < length:
                tops = [self._likely(it.id, it.log_probability) for it in step.alternatives]
                found.append((place, self._likely(step.token_id, step.log_probability), tops))
            begun += sum(begins)
        if self._is_chat:
            return {"content": [{**it, "top_logprobs": tops} for _, it, tops in found]}
        named = [{x["token"]: x["logprob"] for x in [*tops, it]} for _, it, tops in found]
        return {
            "tokens": [it["token"] for _, it, _ in found],
            "token_logprobs": [it["logprob"] for _, it, _ in found],
            "top_logprobs": [None if None in top.values() else top for top in named],
            "text_offset": [place for place, _, _ in found],
        }

    def _likely(self, token_id: int, nats: float | None) -> dict[str, Any]:
        written = self._tokenizer.token_bytes(token_id)
        name = written.decode(errors="backslashreplace") or END_OF_TEXT
        return {"token": name, "logprob": nats, "bytes": list(written)}
