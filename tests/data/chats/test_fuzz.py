"""Whatever a file holds, the readers of conversations give turns or one line that says why not."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.config import ReadingConfig
from minigpt.data.corpus import Corpus, whole_documents
from minigpt.data.readers.chats import plays, whatsapp

from .test_exports import MBOX, TELEGRAM
from .test_scripts import HAMLET
from .test_whatsapp import GERMAN

pytestmark = pytest.mark.long

odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
ROWS: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
    {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
    {"prompt": "a", "completion": "b"},
    {"date": "2024-01-01", "sender": "Anna", "body": "hi"},
    {"envelope": {"source": "a", "timestamp": 1, "dataMessage": {"message": "hi"}}},
]
DATA: list[Any] = [
    TELEGRAM,
    {"chats": {"list": [TELEGRAM]}},
    {"participants": [{"name": "a"}],
     "messages": [{"sender_name": "a", "timestamp_ms": 1, "content": "hi"}]},
    {"channel": {}, "messages": [{"type": "Default", "timestamp": "2024-01-01T10:00:00",
                                  "content": "hi", "author": {"name": "a"}}]},
    ROWS[0],
    ROWS,
]  # fmt: skip
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(file: Path) -> None:
    """Read a file, which may be refused in one line."""
    try:
        texts = whole_documents(Corpus((file,), ReadingConfig(anonymous=True)).pieces())
        assert all(isinstance(text, str) and text.encode() for text in texts)
    except UserError as error:
        assert "\n" not in str(error)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places of values in data."""
    found = [path] if path else []
    items: Any = ()
    if isinstance(data, dict):
        items = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    for key, value in items:
        found += places(value, (*path, key))
    return found


def changed(data: Any, draw: random.Random, value: Any) -> Any:
    """A copy of data with something else in one place."""
    data = copy.deepcopy(data)
    *path, last = draw.choice(places(data))
    inner = data
    for key in path:
        inner = inner[key]
    inner[last] = value
    return data


@given(which=st.sampled_from(DATA), draw=st.randoms(), value=odd | st.just("\ud800"))
@quick
def test_data_with_something_odd_in_it(
    which: Any, draw: random.Random, value: Any, tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(changed(which, draw, value)))
    read(file)


@given(which=st.sampled_from(ROWS), draw=st.randoms(), value=odd | st.just("\ud800"))
@quick
def test_rows_with_something_odd_in_them(
    which: Any, draw: random.Random, value: Any, tmp_path: Path
) -> None:
    file = tmp_path / "a.jsonl"
    rows = [which, changed(which, draw, value), which]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read(file)


@given(
    which=st.sampled_from([GERMAN, HAMLET, MBOX, "prompt,completion\na,b\n", json.dumps(TELEGRAM)]),
    draw=st.randoms(),
    bytes_=st.binary(max_size=6),
)
@quick
def test_files_with_other_bytes_in_them(
    which: str, draw: random.Random, bytes_: bytes, tmp_path: Path
) -> None:
    data = which.encode()
    begin, end = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    for name in ("a.txt", "a.mbox", "a.csv", "a.json"):
        file = tmp_path / name
        file.write_bytes(data[:begin] + bytes_ + data[end:])
        read(file)


@pytest.mark.parametrize(
    "letter", ["[", " ", "\n", "<", "A", "A ", ":", "(- ", "\u200e<", "=", "1."]
)
def test_long_repetitions_are_read_at_once(letter: str) -> None:
    """A pattern that tries too much would take minutes here."""
    chat = "".join(f"[31.12.23, 21:41:05] {name}: {letter * 30_000}\n" for name in "ABAB")
    for text in (letter * 60_000, chat):
        whatsapp.looks_like_chat(text)
        form = plays.form_of(text)
        if form is not None:
            list(plays.scenes(plays.named_lines(text, form)))
        if whatsapp.is_chat(text):
            for messages in whatsapp.exports(text):
                list(messages)
