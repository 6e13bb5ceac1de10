"""Rows of data sets in which a model is talked with: each is a conversation.

{"messages": [{"role": "user", "content": "..."}, ...]}          OpenAI's
{"conversations": [{"from": "human", "value": "..."}, ...]}      ShareGPT's
{"prompt": "...", "completion": "..."}
{"instruction": "...", "input": "...", "output": "..."}          Alpaca's

Parquet files of the hub may hold one list for each field instead of a list of messages:
{"messages": {"role": ["user", ...], "content": ["...", ...]}}
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..content import Content
from ..document import Document, Report
from ..rows import are_rows_of, rows_in
from .turns import NOTHING, Message, documents_of_chat

_PAIRS = (  # of fields: what is asked, what is answered
    ("prompt", "completion"),
    ("prompt", "response"),
    ("instruction", "output"),
    ("instruction", "response"),
    ("question", "answer"),
)
_LISTS = (("messages", "role", "content"), ("conversations", "from", "value"),
          ("conversation", "role", "content"), ("conversations", "role", "content"))  # fmt: skip
_SPEAKERS = {"human": "User", "prompter": "User", "gpt": "Assistant", "bot": "Assistant",
             "chatgpt": "Assistant", "model": "Assistant", "bing": "Assistant"}  # fmt: skip
_BESIDE = ("input", "system")  # fields that a pair may have too
FIELDS = tuple(dict.fromkeys([*(field for pair in _PAIRS for field in pair),
                              *(listed for listed, _, _ in _LISTS), *_BESIDE]))  # fmt: skip
_TELLING = (b"messages", b"conversation", b"prompt", b"instruction", b"question")
USER = "User"
ASSISTANT = "Assistant"


def is_conversation(row: Any) -> bool:
    """Whether a row is a conversation in one of these forms."""
    if not isinstance(row, Mapping):
        return False
    return _list_in(row) is not None or _pair_in(row) is not None


def are_conversations(content: Content) -> bool:
    """Whether the rows of a content are conversations in one of these forms."""
    return are_rows_of(content, is_conversation, _TELLING, FIELDS)


def read_conversations(content: Content, report: Report) -> Iterator[Document]:
    """A document for each row."""
    for row in rows_in(content, report, FIELDS):
        messages = messages_of(row)
        yield from documents_of_chat(messages, content, report, is_private=False)


def messages_of(row: Any) -> list[Message]:
    """The messages of a row; roles become the speakers User, Assistant, System and so on. A row
    that is no conversation has one message without text, which is counted."""
    if not is_conversation(row):
        return [NOTHING]
    form = _list_in(row)
    if form is not None:
        listed, role, content = form
        return [_message(message, role, content) for message in _listed(row[listed])]

    pair = _pair_in(row)
    assert pair is not None
    asked, answered = pair
    question = _text(row[asked])
    more = _text(row.get("input"))
    if more.strip():
        question = f"{question}\n{more}"

    found = [Message(USER, question), Message(ASSISTANT, _text(row[answered]))]
    system = _text(row.get("system"))
    return [Message("System", system), *found] if system.strip() else found


def _message(message: Any, role: str, content: str) -> Message:
    """A message, which says in a field who speaks."""
    if not isinstance(message, Mapping) or role not in message:
        return NOTHING
    return Message(speaker_of(str(message[role])), _text(message.get(content)))


def speaker_of(role: str) -> str:
    """Who speaks in a role."""
    return _SPEAKERS.get(role.lower(), role.capitalize())


def _list_in(row: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The field that holds the messages, and the fields of a message for who says what."""
    for form in _LISTS:
        listed, role, content = form
        for message in _listed(row.get(listed)):
            is_message = isinstance(message, Mapping) and content in message
            if is_message and isinstance(message.get(role), str):
                return form
    return None


def _listed(messages: Any) -> list[Any]:
    """The messages of a list, or of a list for each field; none if it is neither."""
    if isinstance(messages, list):
        return messages
    if not isinstance(messages, Mapping):
        return []
    columns = [values for values in messages.values() if isinstance(values, list)]
    if len(columns) < len(messages):
        return []
    return [dict(zip(messages, values, strict=False)) for values in zip(*columns, strict=False)]


def _pair_in(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """The fields for a question and its answer."""
    for asked, answered in _PAIRS:
        if not (asked in row and answered in row):
            continue
        both = (row[asked], row[answered])
        is_text = any(isinstance(text, str) for text in both)
        if is_text and all(text is None or isinstance(text, str) for text in both):
            return asked, answered
    return None


def _text(content: Any) -> str:
    """A text, which may come in parts; pictures are none."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))
