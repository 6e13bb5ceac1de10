"""The OpenAI API as data: a request's JSON becomes a `Job`, the steps of its texts an answer. Where
OpenAI is silent this follows vLLM: offsets count from the start of the answer's text."""

import codecs
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
from ..tokenizer import END_OF_TEXT, Tokenizer
from .engine import NOT_DRAWN, ApiError, Job
from .settings import CHOICES, ROLES, STOPS, Order, ServeConfig

_HALF = "\ufffd"  # stands for bytes that are not a whole character
_NAMES = {field.name for field in fields(Order)} - {"samples", "max_new_tokens"}


def read_order(
    body: dict[str, Any], is_chat: bool, context_length: int, config: ServeConfig
) -> tuple[Order, list[Any]]:
    """What a request asks for, and its prompts as they were sent, or an ApiError or UserError. Null
    is absent; unknown is ignored. It is quick, however long the prompts are."""
    template = _template(is_chat, config)
    usual = {"max_tokens": context_length if is_chat else 16}
    body = usual | {name: value for name, value in body.items() if value is not None}
    body["max_tokens"] = body.get("max_completion_tokens", body["max_tokens"])
    _require(not body.get("suffix"), "suffix", "left out: this model cannot insert text", 422)

    if is_chat:
        is_told = body.pop("logprobs", False)
        _require(type(is_told) is bool, "logprobs", "true or false")
        body |= {"echo": False, "logprobs": body.get("top_logprobs", 0) if is_told else None}
        prompts = [body.get("messages")]
    else:
        given = body.get("prompt", "")
        are_many = isinstance(given, list) and given and isinstance(given[0], str | list)
        prompts = given if are_many else [given]
    if body.get("top_k") in (0, -1):  # off, as in vLLM
        del body["top_k"]
    if isinstance(stop := body.get("stop", ()), str | list):
        body["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)

    order = Order(**{name: body[name] for name in _NAMES & body.keys()})
    _require(order.n * len(prompts) <= CHOICES, "n", f"such that there are at most {CHOICES} texts")
    _require(sum(map(len, order.stop)) <= STOPS, "stop", f"at most {STOPS} characters in all")
    stop = order.stop
    if user := template.get("user"):
        stop = (*stop, f"\n{user}")
    most = min(order.max_tokens, config.max_tokens)
    return replace(order, max_new_tokens=most, stop=stop), prompts


def read_prompts(
    prompts: list[Any], is_chat: bool, writer: Writer, config: ServeConfig
) -> list[tuple[str, list[int]]]:
    """The text of each prompt, with its token ids; or an ApiError or UserError."""
    if is_chat:
        return [_chat(prompts[0], _template(is_chat, config), writer)]
    return [_prompt(given, writer) for given in prompts]


def read_bias(body: dict[str, Any], writer: Writer) -> Any:
    """What is added to the logits, ``(vocab_size,)``; or an ApiError."""
    given = body.get("logit_bias")
    if given is None:
        return writer.bias
    return writer.bias + _bias(given, len(writer.bias))


def _template(is_chat: bool, config: ServeConfig) -> dict[str, str]:
    """The words that stand before the messages of a role."""
    return dict(words.split("=", 1) for words in config.chat_template if is_chat)


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
    size, limit = writer.tokenizer.vocab_size, writer.engine.context_length
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
    text, most = "\n".join(lines), writer.engine.context_length
    return text, _encode(text, writer, is_end=True)[-most:]


def _encode(text: str, writer: Writer, is_end: bool = False) -> list[int]:
    """Of a long text only the start or the end, which has more than a context length of tokens."""
    text.encode()  # JSON can name half of a surrogate pair: a UnicodeError
    most = writer.engine.context_length * writer.tokenizer.most_bytes + 1
    return writer.tokenizer.encode(text[-most:] if is_end else text[:most])


class Answer(StreamingResponse):
    """What a client gets for a job: a JSON object, or several as server-sent events."""

    def __init__(self, job: Job, body: dict[str, Any], is_chat: bool, model: str, writer: Writer):
        self._job = job
        self._is_chat = is_chat
        self._tokenizer = writer.tokenizer
        self._told = [_Told(writer.tokenizer) for _ in range(job.texts)]
        self._is_stream = job.order.stream
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
        steps = defaultdict[int, list[Step]](list)
        drawn = 0
        unfinished = self._job.texts
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
            if self._is_stream:
                yield "".join(self._events(i, new) for i, new in steps.items())
                steps.clear()

        read = sum(len(ids) for _, ids in self._job.prompts)
        usage = {"prompt_tokens": read, "completion_tokens": drawn, "total_tokens": read + drawn}
        choices = [self._choice(i, steps[i], role="assistant") for i in sorted(steps)]
        last = json.dumps({**self._head, "choices": choices, "usage": usage})
        if not self._is_stream:
            yield last
            return
        if self._tells_usage:
            yield f"data: {last}\n\n"
        yield "data: [DONE]\n\n"

    def _events(self, i: int, steps: list[Step], **role: str) -> str:
        """The text, and an empty chunk with the reason why it ends."""
        choice = self._choice(i, steps, **role)
        reason = choice["finish_reason"]
        chunks = [{**choice, "finish_reason": None}]
        if reason:
            chunks.append({**self._choice(i, []), "finish_reason": reason})
        return "".join(f"data: {json.dumps({**self._head, 'choices': [it]})}\n\n" for it in chunks)

    def _choice(self, i: int, steps: list[Step], **role: str) -> dict[str, Any]:
        """What the next steps of a text add to it."""
        text = self._told[i].text(steps)
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
        if reason == "end_of_text":
            reason = "stop"
        return {"index": i, **content, "logprobs": logprobs, "finish_reason": reason}

    def _logprobs(self, i: int, steps: list[Step]) -> dict[str, Any]:
        """Those of all tokens that were read or drawn, seen in the text or not."""
        with_token = [step for step in steps if _is_of_prompt(step) or step.sample != NOT_DRAWN]
        found = [self._likely(step.token_id, step.log_probability) for step in with_token]
        tops = [
            [self._likely(token.id, token.log_probability) for token in step.alternatives]
            for step in with_token
        ]
        if self._is_chat:
            both = zip(found, tops, strict=True)
            return {"content": [{**token, "top_logprobs": top} for token, top in both]}
        return {
            "tokens": [token["token"] for token in found],
            "token_logprobs": [token["logprob"] for token in found],
            "top_logprobs": [by_name(*both) for both in zip(found, tops, strict=True)],
            "text_offset": [self._told[i].place(step) for step in with_token],
        }

    def _likely(self, token_id: int, nats: float | None) -> dict[str, Any]:
        written = self._tokenizer.token_bytes(token_id)
        name = written.decode(errors="backslashreplace")
        if token_id == self._tokenizer.end_of_text:
            name = END_OF_TEXT
        elif not name:  # another special token; vLLM's name for it
            name = f"token_id:{token_id}"
        return {"token": name, "logprob": nats, "bytes": list(written)}


def by_name(token: dict[str, Any], tops: list[dict[str, Any]]) -> dict[str, float] | None:
    """The likeliest tokens and the one in question; of those with the same name, the likeliest.
    None for the first token of a prompt, which nothing predicts."""
    if token["logprob"] is None:
        return None
    named: dict[str, float] = {}
    for it in [*tops, token]:
        named.setdefault(it["token"], it["logprob"])
    return named


def _is_of_prompt(step: Step) -> bool:
    return step.sample == NOT_DRAWN and step.stop_reason is None


class _Told:
    """How much of a text a client has been told."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._held = ""  # perhaps half a character at the end
        self._decoder = _new_decoder()
        self._place = 0  # in characters, of the next token
        self._is_prompt = True

    def text(self, steps: list[Step]) -> str:
        """What can be shown after these steps: the prompt as it is, and what follows without half a
        character at its end."""
        prompt = "".join(step.text for step in steps if _is_of_prompt(step))
        written = "".join(step.text for step in steps if not _is_of_prompt(step))
        written = self._held + written
        whole = written.rstrip(_HALF)
        self._held = written[len(whole) :]
        return prompt + whole

    def place(self, step: Step) -> int:
        """Where the token of the next step begins, in characters of prompt and text, also of what
        a stop string hides: where its first character begins, perhaps with an earlier token."""
        if self._is_prompt and not _is_of_prompt(step):
            self._is_prompt = False
            self._place += len(self._decoder.decode(b"", final=True))
            self._decoder = _new_decoder()
        place = self._place
        self._place += len(self._decoder.decode(self._tokenizer.token_bytes(step.token_id)))
        return place


def _new_decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")(errors="replace")
