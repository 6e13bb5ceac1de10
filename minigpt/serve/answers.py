"""What a request gets, in OpenAI's JSON: pieces of its texts, as they are written, become one
object with all of them, or the events of a stream. `requests.py` has what it asks for.
"""

import codecs
import json
import secrets
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..generation.results import StopReason, Token
from ..generation.writer import Writer
from ..tokenizer import END_OF_TEXT
from .requests import Order

_HALF = "\ufffd"  # stands for bytes that are not a whole character


class ScoredToken(NamedTuple):
    """A token of a text, how likely it was, and what was likeliest in its place, as asked for."""

    id: int
    log_probability: float | None = None
    alternatives: tuple[Token, ...] = ()


class TextPiece(NamedTuple):
    """What a client is told next of a text: its prompt, if it is echoed, or another token."""

    text: str
    tokens: list[ScoredToken]
    stop_reason: StopReason | None = None
    is_prompt: bool = False


class Answer:
    """The answer to a request: one JSON object with all texts, or server-sent events with pieces of
    them."""

    def __init__(
        self,
        order: Order,
        body: dict[str, Any],
        prompts: list[tuple[str, list[int]]],
        *,
        is_chat: bool,
        model: str,
        writer: Writer,
    ):
        self._is_chat = is_chat
        self._choices = [
            _Choice(i, order, writer, is_chat=is_chat) for i in range(order.n * len(prompts))
        ]
        self._read = sum(len(ids) for _, ids in prompts)  # tokens
        self._drawn = 0  # tokens, of all texts
        options = body.get("stream_options")
        self._tells_usage = isinstance(options, dict) and options.get("include_usage") is True

        kind = "text_completion"
        if is_chat:
            kind = "chat.completion.chunk" if order.stream else "chat.completion"
        self._head = {
            "id": ("chatcmpl-" if is_chat else "cmpl-") + secrets.token_hex(12),
            "object": kind,
            "created": int(time.time()),
            "model": model,
            "usage": None,
        }

    def whole(self, pieces: list[list[TextPiece]]) -> str:
        """The body of an answer with all pieces of each text."""
        choices = [self._choice(i, found) for i, found in enumerate(pieces)]
        return json.dumps({**self._head, "choices": choices, "usage": self._usage()})

    def beginning(self) -> str:
        """The first events of a stream, before any text: in a chat, who speaks."""
        if not self._is_chat:
            return ""
        choices = [self._choice(i, []) for i in range(len(self._choices))]
        return "".join(self._event(choice) for choice in choices)

    def events(self, pieces: dict[int, list[TextPiece]]) -> str:
        """The events of the next pieces, by text; with an empty one that says why a text ends."""
        events = ""
        for i, found in pieces.items():
            choice = self._choice(i, found)
            reason = choice["finish_reason"]
            events += self._event({**choice, "finish_reason": None})
            if reason is not None:
                events += self._event({**self._choice(i, []), "finish_reason": reason})
        return events

    def ending(self) -> str:
        """The last events of a stream."""
        usage = ""
        if self._tells_usage:
            usage = event({**self._head, "choices": [], "usage": self._usage()})
        return f"{usage}data: [DONE]\n\n"

    def _choice(self, i: int, pieces: list[TextPiece]) -> dict[str, Any]:
        self._drawn += sum(len(piece.tokens) for piece in pieces if not piece.is_prompt)
        return self._choices[i].add(pieces)

    def _event(self, choice: dict[str, Any]) -> str:
        return event({**self._head, "choices": [choice]})

    def _usage(self) -> dict[str, int]:
        return {
            "prompt_tokens": self._read,
            "completion_tokens": self._drawn,
            "total_tokens": self._read + self._drawn,
        }


class _Choice:
    """One text of an answer, prompt included if it is echoed: how much of it a client was told."""

    def __init__(self, i: int, order: Order, writer: Writer, *, is_chat: bool):
        self._i = i
        self._order = order
        self._tokenizer = writer.tokenizer
        self._is_chat = is_chat
        # The space after a speaker's name is not said.
        self._is_before_text = is_chat and writer.dialogue is not None
        self._role_is_told = False
        self._held = ""  # perhaps half a character at the end
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._offset = 0  # in characters, of the next token

    def add(self, pieces: list[TextPiece]) -> dict[str, Any]:
        """What the next pieces add."""
        text = self._shown(pieces)
        if not self._is_chat:
            content: dict[str, Any] = {"text": text}
        else:
            role = {} if self._role_is_told else {"role": "assistant"}
            self._role_is_told = True
            content = {"delta" if self._order.stream else "message": {**role, "content": text}}

        reason = pieces[-1].stop_reason if pieces else None
        wants_logprobs = pieces and self._order.logprobs is not None
        return {
            "index": self._i,
            **content,
            "logprobs": self._logprobs(pieces) if wants_logprobs else None,
            "finish_reason": "stop" if reason == "end_of_text" else reason,
        }

    def _shown(self, pieces: list[TextPiece]) -> str:
        """The prompt as it is, and what follows without half a character at its end."""
        prompt = "".join(piece.text for piece in pieces if piece.is_prompt)
        new = "".join(piece.text for piece in pieces if not piece.is_prompt)
        written = self._held + new
        whole = written.rstrip(_HALF)
        self._held = written[len(whole) :]
        if self._is_before_text:
            whole = whole.lstrip()
            self._is_before_text = not whole
        return prompt + whole

    def _logprobs(self, pieces: list[TextPiece]) -> dict[str, Any]:
        """The log-probabilities of all tokens that were read or drawn, seen in the text or not."""
        tokens = [token for piece in pieces for token in piece.tokens]
        named = [self._named(token.id, token.log_probability) for token in tokens]
        tops = [
            [self._named(top.id, top.log_probability) for top in token.alternatives]
            for token in tokens
        ]
        if self._is_chat:
            both = zip(named, tops, strict=True)
            return {"content": [{**token, "top_logprobs": top} for token, top in both]}
        return {
            "tokens": [token["token"] for token in named],
            "token_logprobs": [token["logprob"] for token in named],
            "top_logprobs": list(map(by_name, named, tops)),
            "text_offset": list(self._offsets(pieces)),
        }

    def _named(self, token_id: int, log_probability: float | None) -> dict[str, Any]:
        written = self._tokenizer.token_bytes(token_id)
        name = written.decode(errors="backslashreplace")
        if token_id == self._tokenizer.end_of_text:
            name = END_OF_TEXT
        elif not name:  # another special token; vLLM's name for it
            name = f"token_id:{token_id}"
        return {"token": name, "logprob": log_probability, "bytes": list(written)}

    def _offsets(self, pieces: list[TextPiece]) -> Iterable[int]:
        """Where each token begins, in characters of prompt and text, counting those that a stop
        string hides. A token that begins inside a character counts from the beginning of that."""
        for piece in pieces:
            for token in piece.tokens:
                yield self._offset
                self._offset += len(self._decoder.decode(self._tokenizer.token_bytes(token.id)))
            if piece.is_prompt:  # what follows is a text of its own
                self._offset += len(self._decoder.decode(b"", final=True))


def by_name(token: dict[str, Any], tops: list[dict[str, Any]]) -> dict[str, float] | None:
    """The likeliest tokens and the one in question; of those with the same name, the likeliest.
    None for the first token of a prompt, which nothing predicts."""
    if token["logprob"] is None:
        return None
    named: dict[str, float] = {}
    for it in [*tops, token]:
        named.setdefault(it["token"], it["logprob"])
    return named


def event(content: dict[str, Any]) -> str:
    """A server-sent event."""
    return f"data: {json.dumps(content)}\n\n"
