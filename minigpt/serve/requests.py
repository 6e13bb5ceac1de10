"""What a request asks for, in OpenAI's JSON: its order, its prompts as tokens, and a bias; and how
it is refused. `answers.py` has what it gets.

`read_order` comes first. It is quick, and tells how many texts are wanted, so that a full server
can refuse them before `read_prompts` turns long texts into tokens. What makes no sense is an
ApiError or a UserError. Where OpenAI is silent this follows vLLM.
"""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..config import Count, Limits, Natural, SampleConfig, fields_of
from ..generation.talk import talk_of_messages
from ..generation.writer import Writer
from .settings import ROLES, ServeConfig

CHOICES = 128  # texts that one request may ask for
STOPS = 2048  # characters of its stop strings

_PROMPT = "a text, token ids, or a list of either"  # what it must be
_USUAL_TOKENS = 16  # of a completion, if max_tokens is not given; the same with OpenAI

Few = Annotated[int, Limits("between 0 and 20", lambda n: 0 <= n <= 20)]


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


def _require(holds: bool, param: str, expected: str, status: int = 400) -> None:
    """Raise ApiError "{param} must be {expected}" unless it holds. Status 422 is for a request that
    another model might serve."""
    if not holds:
        raise ApiError(status, f"{param} must be {expected}", param)


@dataclass(frozen=True)
class Order(SampleConfig):
    """What a request may ask for beside the fields of a SampleConfig, by OpenAI's names."""

    max_tokens: Natural = _USUAL_TOKENS
    n: Count = 1
    logprobs: Few | None = None
    echo: bool = False
    stream: bool = False


# The fields that a request and an Order share; a request has n and max_tokens instead of these two.
_NAMES = {field.name for field in fields(Order)} - {"samples", "max_new_tokens"}


def read_order(
    body: dict[str, Any], *, is_chat: bool, writer: Writer, config: ServeConfig
) -> tuple[Order, list[Any]]:
    """What a request asks for, and its prompts as they were sent, not yet checked.

    A field that is null counts as absent, one that is unknown is ignored. What is absent is as
    usual with the model, except for the number of tokens. The order holds `max_tokens`, which the
    request asks for, and `max_new_tokens`, which the server grants.
    """
    given = {name: value for name, value in body.items() if value is not None}
    _require(not given.get("suffix"), "suffix", "left out: this model cannot insert text", 422)

    usual_tokens = writer.engine.context_length if is_chat else _USUAL_TOKENS
    asked = _order_fields(given, is_chat, usual_tokens)
    sampling = writer.usual.with_given(**fields_of(SampleConfig, asked))
    order = Order(**{**vars(sampling), **asked})
    prompts = _sent_prompts(given, is_chat)

    num_texts = order.n * len(prompts)
    _require(num_texts <= CHOICES, "n", f"such that there are at most {CHOICES} texts")
    stop_characters = sum(len(stop) for stop in order.stop)
    _require(stop_characters <= STOPS, "stop", f"at most {STOPS} characters in all")

    # What ends the model's turn is not counted: that limit is for the client's stop strings.
    stop = order.stop
    words_of_user = _template(config).get("user")
    if is_chat and words_of_user:
        stop = (*stop, f"\n{words_of_user}")
    elif is_chat and writer.dialogue is not None:
        stop = (*stop, *writer.dialogue.stops)
    granted_tokens = min(order.max_tokens, config.max_tokens)
    return replace(order, max_new_tokens=granted_tokens, stop=stop), prompts


def _order_fields(given: dict[str, Any], is_chat: bool, usual_tokens: int) -> dict[str, Any]:
    """The fields of an Order, from those of a request, some of which have other names or forms. A
    wrong value is left for the Order to refuse."""
    found = {name: given[name] for name in _NAMES & given.keys()}
    found["max_tokens"] = given.get("max_completion_tokens", given.get("max_tokens", usual_tokens))

    if is_chat:  # there logprobs is true or false, and top_logprobs says how many
        wants_logprobs = given.get("logprobs", False)
        _require(type(wants_logprobs) is bool, "logprobs", "true or false")
        found["logprobs"] = given.get("top_logprobs", 0) if wants_logprobs else None
        found["echo"] = False

    if found.get("top_k") in (0, -1):  # off, as in vLLM
        found["top_k"] = None

    stop = found.get("stop")
    if isinstance(stop, str):
        found["stop"] = (stop,)
    elif isinstance(stop, list):
        found["stop"] = tuple(stop)
    return found


def _sent_prompts(given: dict[str, Any], is_chat: bool) -> list[Any]:
    """The prompts of a request. The messages of a chat are one prompt; a completion has one, a text
    or a list of token ids, or a list of these."""
    if is_chat:
        return [given.get("messages")]

    sent = given.get("prompt", "")
    if isinstance(sent, list) and sent and isinstance(sent[0], str | list):
        return sent
    return [sent]


def read_prompts(
    prompts: list[Any],
    *,
    is_chat: bool,
    writer: Writer,
    config: ServeConfig,
    answerer: str | None = None,
) -> list[tuple[str, list[int]]]:
    """The text of each prompt, with its token ids. A model that learned from conversations answers
    a chat as the `answerer`, unless a template was given."""
    if not is_chat:
        return [_read_prompt(prompt, writer) for prompt in prompts]

    (messages,) = prompts
    said = _read_messages(messages)
    context_length = writer.engine.context_length
    if writer.dialogue is not None and not config.chat_template:
        # Of more turns than the model can read the oldest are left out.
        most = _surely_too_many(writer)
        said = [(role, content[-most:], name) for role, content, name in said]
        talk = talk_of_messages(writer.dialogue, said, answerer)
        text = talk.prompt(
            writer.tokenizer, context_length=context_length, max_new_tokens=context_length
        )
        ids = writer.tokenizer.encode(text)
    else:
        text = _joined(said, _template(config))
        ids = writer.tokenizer.encode(text[-_surely_too_many(writer) :])
    return [(text, ids[-context_length:])]


def _read_prompt(given: Any, writer: Writer) -> tuple[str, list[int]]:
    """The text and the token ids of a completion's prompt, which is given as one of the two. After
    an empty text the model begins on its own."""
    if isinstance(given, str):
        text = given
        ids = writer.tokenizer.encode(text[: _surely_too_many(writer)])
    else:
        is_list = isinstance(given, list) and len(given) > 0
        _require(is_list and all(type(i) is int for i in given), "prompt", _PROMPT)
        vocab_size = writer.tokenizer.vocab_size
        are_known = all(0 <= i < vocab_size for i in given)
        _require(are_known, "prompt", f"token ids 0 to {vocab_size - 1}", 422)
        ids = given
        text = writer.tokenizer.decode(ids)

    limit = writer.engine.context_length
    if len(ids) > limit:
        message = f"This model's maximum context length is {limit} tokens; the prompt has more."
        raise ApiError(400, message, "prompt", "context_length_exceeded")
    return text, ids


def _surely_too_many(writer: Writer) -> int:
    """So many characters that they are surely more tokens than the model can read: each has a byte
    or more, and no token has more than `most_bytes`. Of a longer text no more is encoded."""
    return writer.engine.context_length * writer.tokenizer.most_bytes + 1


def _read_messages(messages: Any) -> list[tuple[str, str, str | None]]:
    """The role, the text and perhaps the name of each message, whose content is a text, or parts
    that have one each."""
    _require(isinstance(messages, list) and bool(messages), "messages", "a list of messages")
    expected = "objects, each with a role, and text as its content"
    said = []
    for message in messages:
        role: Any = message.get("role") if isinstance(message, dict) else None
        _require(role in ROLES, "messages", expected)

        content = message.get("content") or ""
        parts = content if isinstance(content, list) else [{"text": content}]
        texts: list[Any] = [part.get("text") if isinstance(part, dict) else None for part in parts]
        _require(all(isinstance(text, str) for text in texts), "messages", expected)

        name = message.get("name")
        said.append((role, "".join(texts), name if isinstance(name, str) else None))
    return said


def _joined(said: list[tuple[str, str, str | None]], template: dict[str, str]) -> str:
    """The messages as one text, joined by line ends."""
    lines = [template.get(role, "") + content for role, content, _ in said]
    if template.get("assistant"):  # so begins what the model is to write
        lines.append(template["assistant"])
    return "\n".join(lines)


def _template(config: ServeConfig) -> dict[str, str]:
    """The words before the messages of a role, by role."""
    return dict(words.split("=", 1) for words in config.chat_template)


def read_bias(body: dict[str, Any], writer: Writer) -> NDArray[np.float32]:
    """What is added to the logits, ``(vocab_size,)``: what the request asks for, and the writer's
    own bias, which bans the tokens that the model's text cannot have had."""
    given = body.get("logit_bias")
    if given is None:
        return writer.bias
    expected = "numbers from -100 to 100, keyed by token ids"
    _require(isinstance(given, dict), "logit_bias", expected)

    bias = writer.bias.copy()
    for key, value in given.items():
        is_bias = type(value) in (int, float) and -100 <= value <= 100
        is_id = key.isascii() and key.isdigit()
        _require(is_bias and is_id, "logit_bias", expected)

        digits = key.lstrip("0") or "0"
        token_id = int(digits[:9])  # enough to tell that a longer number is too large
        is_known = token_id < len(bias)
        _require(is_known, "logit_bias", f"keyed by token ids below {len(bias)}", 422)
        bias[token_id] = writer.bias[token_id] + value  # of two keys for a token the later one
    return bias
