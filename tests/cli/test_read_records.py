"""Whatever a file of records holds: each record is in the text, or is counted as left out.

Each file below has good records, each with a word of its own, and odd ones between them. How many
records there are, how many of their words come out, and how many are named in the table is counted.
"""

import base64
import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ..data.readers.made import epub, parquet
from ..data.texts import write
from .conftest import Type

Odd = Sequence[Any]
INVISIBLE = "\u200b\u200e\ufeff"
NO_TEXTS: tuple[Any, ...] = (None, 7, True, 1.5, "", " \n\t", INVISIBLE, [], {}, ["a"], "\ud800")


def word(number: int) -> str:
    """The word of a record, which no other has."""
    return f"word{number}x"


def between(good: Callable[[int], Any], odd: Odd) -> list[Any]:
    """Odd records, each between two good ones; the words of these have even numbers. If the first
    is odd, too, what the file is is still known."""
    records = [odd[0], good(0)]
    for number, one in enumerate(odd, start=1):
        records += [one, good(2 * number)]
    return records


# Letters


def letter(number: int, body: str = "", header: str = "Content-Type: text/plain") -> bytes:
    lines = f"From anna@example.org Mon Jan  1 10:00:00 2024\nFrom: Anna <a@b.c>\n{header}\n\n"
    return f"{lines}{body or word(number)}\n\n".encode()


def mailbox() -> tuple[bytes, int]:
    letters = between(
        letter,
        [
            letter(0, "\n"),
            letter(0, INVISIBLE),
            letter(1, "<div>" * 1100 + word(1), "Content-Type: text/html"),
            letter(1, f"{word(1)}", "Content-Type: text/plain; charset=uft-8"),
            letter(3, f"{word(3)} R&B <head>", "Content-Type: text/html"),
            letter(5, f"{word(5)}", "Content-Type: multipart/mixed; boundary=x"),
            letter(7, f"{word(7)}", "Content-Transfer-Encoding: unknown"),
            letter(9, base64.b64encode(word(9).encode()).decode(),
                   "Content-Transfer-Encoding: base64"),
            letter(11).replace(b"From: Anna <a@b.c>", b"From: \xff\xfe <"),
            letter(13).replace(b"From anna@example.org Mon Jan  1 10:00:00 2024", b"From "),
            b"From anna@example.org Mon Jan  1 10:00:00 2024\n\n",
            letter(15, f"{word(15)}\n\nFrom 2019 until 2021 I lived in Rome.\n\nThen not."),
        ],
    )  # fmt: skip
    return b"".join(letters), len(letters)


# Chats in JSON


def telegram() -> tuple[bytes, int]:
    def good(number: int) -> dict[str, Any]:
        return {"type": "message", "date": "2024-01-01T10:00:00", "from": f"P{number}",
                "text": word(number)}  # fmt: skip

    odd: list[Any] = [None, 7, "text", [], {}, {"type": "message"}, good(1) | {"type": "service"},
           good(1) | {"forwarded_from": "News"}, good(3) | {"from": None},
           good(5) | {"date": 7}, *(good(1) | {"text": text} for text in NO_TEXTS[4:8]),
           *(good(1) | {"text": text} for text in NO_TEXTS[:2])]  # fmt: skip
    messages = between(good, odd)
    return json.dumps({"name": "Otto", "messages": messages}).encode(), len(messages)


def all_of_telegram() -> tuple[bytes, int]:
    def good(number: int) -> dict[str, Any]:
        return {"type": "message", "from": f"P{number}", "text": word(number)}

    service = {"type": "service", "actor": "Otto", "action": "phone_call"}
    chats: list[Any] = [
        {"messages": [good(0)]},
        {"messages": [service] * 60},
        {"messages": [*[service] * 60, *map(good, range(1, 99))]},
        {"messages": [7]},
    ]
    data = {"chats": {"list": [*chats, None, {}]}}
    return json.dumps(data).encode(), sum(len(chat["messages"]) for chat in chats)


def discord() -> tuple[bytes, int]:
    def good(number: int) -> dict[str, Any]:
        return {"type": "Default", "timestamp": "2024-01-01T10:00:00", "content": word(number),
                "author": {"name": f"P{number}"}}  # fmt: skip

    odd: list[Any] = [None, 7, [], {}, good(1) | {"type": "Call"}, good(1) | {"author": None},
           good(1) | {"author": "Anna"}, good(3) | {"author": {}}, good(5) | {"timestamp": 7},
           *(good(1) | {"content": text} for text in (None, "", INVISIBLE))]  # fmt: skip
    messages = between(good, odd)
    return json.dumps({"channel": {}, "messages": messages}).encode(), len(messages)


def meta() -> tuple[bytes, int]:
    def good(number: int) -> dict[str, Any]:
        return {"sender_name": f"P{number}", "timestamp_ms": number, "content": word(number)}

    odd: list[Any] = [None, 7, [], "text", {}, {"sender_name": "Anna"},
           good(1) | {"is_unsent": True}, good(1) | {"sender_name": None},
           good(3) | {"timestamp_ms": "never"},
           good(5) | {"timestamp_ms": None},
           *(good(1) | {"content": text} for text in (None, 7, "", INVISIBLE))]  # fmt: skip
    messages = between(good, odd)
    return json.dumps({"participants": [], "messages": messages}).encode(), len(messages)


def signal() -> tuple[bytes, int]:
    def good(number: int) -> dict[str, Any]:
        return {"date": "2024-01-01T10:00:00", "sender": f"P{number}", "body": word(number)}

    odd: list[Any] = [{}, {"envelope": {}}, {"envelope": 7}, good(1) | {"sender": None},
           good(3) | {"date": 7}, *(good(1) | {"body": text} for text in NO_TEXTS[:8])]  # fmt: skip
    rows = between(good, odd)
    return "".join(json.dumps(row) + "\n" for row in rows).encode(), len(rows)


# WhatsApp


def whatsapp(form: str = "31.12.23, 21:4{} - {}") -> tuple[bytes, int]:
    """A chat whose lines have this form."""
    program = ["Messages and calls are end-to-end encrypted.", "Anna added Otto",
               "P0: <Media omitted>", "P0: This message was deleted", "P0: ",
               f"P0: {INVISIBLE}"]  # fmt: skip
    lines = between(lambda number: f"P{number}: {word(number)}", program)
    return "".join(form.format(1, line) + "\n" for line in lines).encode(), len(lines)


def two_exports() -> tuple[bytes, int]:
    """Two chats in a file, by two programs."""
    first, records = whatsapp()
    second, _ = whatsapp("[2024-01-01, 10:0{}:05] {}")
    return first + second.replace(b"word", b"word9"), 2 * records


# Rows


def good_row(number: int) -> dict[str, Any]:
    return {"id": number, "text": word(number)}


ODD_ROWS: list[Any] = [
    *({"id": 1, "text": text} for text in NO_TEXTS), {}, {"id": 1},
    {"text": word(1), "more": {"text": 7}},
]  # fmt: skip


def json_lines() -> tuple[bytes, int]:
    rows = between(good_row, [*ODD_ROWS, None, 7, [], "text"])
    return "".join(json.dumps(row) + "\n" for row in rows).encode(), len(rows)


def json_array() -> tuple[bytes, int]:
    rows = between(good_row, [*ODD_ROWS, None, 7, [], "text"])
    return json.dumps(rows).encode(), len(rows)


def table() -> tuple[bytes, int]:
    cells = between(lambda number: ["1", word(number)],
                    [["1"], ["1", ""], ["1", " \n"], ["1", INVISIBLE], ["1", word(1), "more"],
                     ["1", f'{word(3)} "quoted", \n two lines']])  # fmt: skip
    stream = io.StringIO()
    csv.writer(stream).writerows([["id", "text"], *cells])
    return stream.getvalue().encode(), len(cells)


def parquet_rows() -> tuple[bytes, int]:
    texts = between(word, [None, "", " \n", INVISIBLE])
    return parquet({"id": list(range(len(texts))), "text": texts}), len(texts)


# Conversations in rows


def good_conversation(number: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": word(number)}]}


ODD_CONVERSATIONS: list[Any] = [
    {"messages": None}, {}, {"messages": []}, {"messages": 7},
    *({"messages": [{"role": "user", "content": text}]} for text in NO_TEXTS[:9]),
    {"prompt": word(1), "completion": "So."},
]  # fmt: skip


def conversations() -> tuple[bytes, int]:
    rows = between(good_conversation, [*ODD_CONVERSATIONS, None, 7, "text", []])
    return "".join(json.dumps(row) + "\n" for row in rows).encode(), len(rows)


def array_of_conversations() -> tuple[bytes, int]:
    rows = between(good_conversation, [*ODD_CONVERSATIONS, None, 7, "text", []])
    return json.dumps(rows).encode(), len(rows)


def messages_of_a_conversation() -> tuple[bytes, int]:
    def good(number: int) -> dict[str, Any]:
        return {"role": f"role{number}", "content": word(number)}

    odd: list[Any] = [None, 7, "text", [], {}, {"role": "user"}, {"content": word(1)},
           {"role": None, "content": word(3)}, {"role": 7, "content": word(5)},
           *({"role": "user", "content": text} for text in NO_TEXTS[:9])]  # fmt: skip
    messages = between(good, odd)
    return json.dumps({"messages": messages}).encode(), len(messages)


def questions_in_a_table() -> tuple[bytes, int]:
    """Each cell is a message."""
    rows = [[word(0), word(2)], [word(1)], [word(3), ""], ["", ""], ["", " "], [INVISIBLE, word(5)],
            [word(4), word(6)], [word(8), word(10), "more"]]  # fmt: skip
    stream = io.StringIO()
    csv.writer(stream).writerows([["prompt", "completion"], *rows])
    return stream.getvalue().encode(), 2 * len(rows)


# Chapters


def book() -> tuple[bytes, int]:
    def good(number: int) -> str:
        return f"<body><h1>Chapter {number}</h1><p>{word(number)} is a word of it.</p></body>"

    odd: list[Any] = ["<body></body>", "<body><p>", f"<body><p>{word(1)}</p><table><tr><td>open",
           "<body><section epub:type='titlepage'>A title</section></body>",
           f"<body><p>{INVISIBLE}</p></body>", "<body>" + "<div>" * 1100 + "</body>",
           f"<head><body>{word(3)}"]  # fmt: skip
    pages = {f"c{number}": page for number, page in enumerate(between(good, odd))}
    return epub(pages, [*pages, "missing"]), len(pages) + 1


# Cells


def notebook() -> tuple[bytes, int]:
    def good(number: int) -> dict[str, Any]:
        return {"cell_type": "markdown", "source": word(number)}

    odd: list[Any] = [
        {"cell_type": "code", "source": "1 + 1"}, {"cell_type": "raw", "source": word(1)},
        {"cell_type": "odd", "source": "x"}, {"source": "x"}, {}, None, 7, "text", [],
        *({"cell_type": "markdown", "source": text} for text in NO_TEXTS[:9]),
        {"cell_type": "markdown", "source": "![a](data:image/png;base64,iVBORw0KGgo=)"},
        {"cell_type": "markdown", "source": [word(3), 7]},
    ]  # fmt: skip
    cells = between(good, odd)
    return json.dumps({"cells": cells, "nbformat": 4}).encode(), len(cells)


RECORDS = {
    "mail": mailbox,
    "result.json": telegram,
    "all.json": all_of_telegram,
    "channel.json": discord,
    "message_1.json": meta,
    "signal.jsonl": signal,
    "chat.txt": whatsapp,
    "chats.txt": two_exports,
    "rows.jsonl": json_lines,
    "rows.json": json_array,
    "rows.csv": table,
    "rows.parquet": parquet_rows,
    "talk.jsonl": conversations,
    "talk.json": array_of_conversations,
    "one.json": messages_of_a_conversation,
    "talk.csv": questions_in_a_table,
    "book.epub": book,
    "a.ipynb": notebook,
}
LONG = {"rows.parquet"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in RECORDS]
)
def test_each_record_is_read_or_counted_as_left_out(name: str, tmp_path: Path, type_: Type) -> None:
    data, records = RECORDS[name]()
    status, out, err = type_("read", write(tmp_path / name, data))
    assert status == 0, err
    read = len(set(re.findall(r"word\d+x", out)))
    named = sum(int(number) for number in re.findall(r" \((\d+)\)", err.splitlines()[1]))
    assert read >= records / 3
    assert records == read + named, err
