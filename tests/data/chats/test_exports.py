"""Exports of Telegram, Discord, Signal, Messenger and Instagram; rows of data sets; mailboxes."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from minigpt.data.readers.chats import datasets
from minigpt.data.readers.chats.exports import chats_in, messages_of_signal, program_of

from ..readers.reading import report_of
from ..texts import documents, write

Said = list[tuple[str, str]]


def said(conversation: Any) -> Said:
    return [(name, text) for name, text, _ in conversation if text.strip()]


def of_data(data: Any) -> list[Said]:
    """What is said in each chat of an export."""
    program = program_of(json.loads(json.dumps(data)))
    assert program is not None
    return [said(program.messages(chat)) for chat in chats_in(data)]


def of_rows(*rows: dict[str, Any]) -> list[Said]:
    """What is said in each conversation of a data set."""
    assert datasets.is_conversation(rows[0])
    return [said(datasets.messages_of(row)) for row in rows]


# Telegram


TELEGRAM: dict[str, Any] = {
    "name": "Otto",
    "type": "personal_chat",
    "id": 1,
    "messages": [
        {"id": 1, "type": "service", "date": "2024-01-01T09:59:00", "actor": "Otto",
         "action": "phone_call", "text": ""},
        {"id": 2, "type": "message", "date": "2024-01-01T10:00:00", "from": "Anna",
         "text": "Hast du die Katze gefüttert?"},
        {"id": 3, "type": "message", "date": "2024-01-01T10:01:00", "from": "Otto",
         "text": ["Ja, siehe ", {"type": "link", "text": "https://example.org"}, " oder ",
                  {"type": "phone", "text": "+49 170 1234567"}]},
        {"id": 4, "type": "message", "date": "2024-01-01T10:02:00", "from": "Otto",
         "forwarded_from": "News", "text": "Breaking"},
        {"id": 5, "type": "message", "date": "2024-01-01T10:03:00", "from": "Otto", "text": "",
         "photo": "photos/1.jpg"},
        {"id": 6, "type": "message", "date": "2024-01-01T10:04:00", "from": None, "text": "?"},
    ],
}  # fmt: skip


def test_a_chat_of_telegram_has_what_people_wrote_themselves() -> None:
    expected = [
        ("Anna", "Hast du die Katze gefüttert?"),
        ("Otto", "Ja, siehe https://example.org oder (number)"),
        ("Deleted account", "?"),
    ]
    assert of_data(TELEGRAM) == [expected]
    assert of_data({"about": "", "chats": {"list": [TELEGRAM, TELEGRAM]}}) == [expected] * 2


def test_an_account_of_telegram_is_known_however_many_contacts_come_before_the_chats(
    tmp_path: Path,
) -> None:
    contact = {"first_name": "Anna", "last_name": "Müller", "phone_number": "0049 170 1234567"}
    contacts = {"contacts": {"list": [contact] * 1000}}
    for begin in ({"personal_information": {}, "others": contacts}, {"about": "", **contacts}):
        account = json.dumps({**begin, "chats": {"list": [TELEGRAM]}}, indent=1)
        assert account.index('"chats"') > 1 << 16
        file = write(tmp_path / "result.json", account)
        assert report_of(file).kind == "Telegram chat"


# Messenger and Instagram


def test_the_letters_of_messenger_are_put_right_and_the_oldest_message_comes_first() -> None:
    def garbled(text: str) -> str:
        return text.encode().decode("latin-1")

    chat = {
        "participants": [{"name": garbled("Zoë M")}, {"name": "Anna"}],
        "messages": [
            {"sender_name": "Anna", "timestamp_ms": 3000, "content": "Liked a message"},
            {"sender_name": "Anna", "timestamp_ms": 2000, "content": garbled("schön 🐈")},
            {"sender_name": garbled("Zoë M"), "timestamp_ms": 1000, "content": garbled("grüß")},
            {"sender_name": "Anna", "timestamp_ms": 500, "content": "x", "is_unsent": True},
            {"sender_name": "Anna", "timestamp_ms": 400, "photos": []},
            {"sender_name": "Anna", "timestamp_ms": 10**400, "content": "long ago"},
        ],
        "title": "Anna",
        "thread_path": "inbox/anna_1",
    }  # fmt: skip
    assert of_data(chat) == [[("Anna", "long ago"), ("Zoë M", "grüß"), ("Anna", "schön 🐈")]]


def test_a_chat_of_messenger_with_encryption_is_read_as_it_is() -> None:
    chat = {
        "participants": ["Zoë", "Anna"],
        "threadName": "Zoë_1",
        "messages": [
            {"senderName": "Zoë", "text": "hé", "timestamp": 1700000000000, "isUnsent": False},
            {"senderName": "Anna", "text": "", "timestamp": 1700000001000, "isUnsent": False},
            {"senderName": "Anna", "text": "Ã¼", "timestamp": 1700000002000, "isUnsent": False},
        ],
    }
    assert of_data(chat) == [[("Zoë", "hé"), ("Anna", "Ã¼")]]


# Discord


def test_a_channel_of_discord_has_what_people_wrote() -> None:
    data = {
        "guild": {"name": "Cats"},
        "channel": {"name": "general"},
        "messages": [
            {"type": "GuildMemberJoin", "timestamp": "2024-01-01T10:00:00+00:00",
             "content": "Joined.", "author": {"name": "anna"}},
            {"type": "Default", "timestamp": "2024-01-01T10:00:00+00:00", "content": "hi",
             "author": {"name": "anna", "nickname": "Anna"}},
            {"type": "Reply", "timestamp": "2024-01-01T10:01:00.5+00:00", "content": "hello",
             "author": {"name": "otto"}},
        ],
    }  # fmt: skip
    assert of_data(data) == [[("Anna", "hi"), ("otto", "hello")]]
    program = program_of(data)
    assert program is not None
    times = [time for _, text, time in program.messages(data) if text]
    assert times == [datetime(2024, 1, 1, 10, 0), datetime(2024, 1, 1, 10, 1, 0, 500_000)]


# Signal


def test_rows_of_signal_are_read() -> None:
    of_sigexport = [
        {"date": "2024-01-01 10:00:00", "sender": "Anna", "body": "hi", "quote": "", "sticker": ""},
        {"date": "2024-01-01 10:01:00", "sender": "Me", "body": "", "attachments": ["1.jpg"]},
        {"date": "2024-01-01 10:02:00", "sender": "Me", "body": "hello"},
    ]
    assert said(messages_of_signal(of_sigexport)) == [("Anna", "hi"), ("Me", "hello")]
    of_cli = [
        {"envelope": {"source": "+49170", "sourceName": "Anna", "timestamp": 1704103200000,
                      "dataMessage": {"message": "hi"}}},
        {"envelope": {"source": "+49171", "timestamp": 1704103201000, "receiptMessage": {}}},
        {"envelope": {"source": "+49171", "timestamp": 1704103202000,
                      "syncMessage": {"sentMessage": {"message": "hello"}}}},
    ]  # fmt: skip
    assert said(messages_of_signal(of_cli)) == [("Anna", "hi"), ("+49171", "hello")]


# Rows


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "user", "content": "Why?"},
                      {"role": "assistant", "content": "So."}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Why?"}]},
                      {"role": "assistant", "content": "So."}], "source": "mine"},
        {"conversations": [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}]},
        {"prompt": "Why?", "completion": "So."},
        {"instruction": "Why?", "input": "", "output": "So."},
        {"question": "Why?", "answer": "So."},
    ],
)  # fmt: skip
def test_a_row_of_a_data_set_is_a_conversation(row: dict[str, Any]) -> None:
    assert of_rows(row, row) == [[("User", "Why?"), ("Assistant", "So.")]] * 2


def test_the_input_of_an_instruction_follows_it_and_a_system_message_has_a_speaker() -> None:
    row = {"instruction": "Add.", "input": "1 2", "output": "3", "system": "Be exact."}
    assert of_rows(row) == [
        [("System", "Be exact."), ("User", "Add.\n1 2"), ("Assistant", "3")],
    ]


@pytest.mark.parametrize(
    "data",
    [
        {"text": "a text"},
        {"messages": ["a", "b"]},
        {"messages": []},
        {"messages": {"count": 3}},
        {"chats": {"list": [3]}},
        {"participants": 3, "messages": [{}]},
        {"name": "x", "messages": [{"id": 1}]},
        {"prompt": "only a prompt"},
        ["a", "b"],
        3,
        None,
    ],
)
def test_other_data_is_no_chat(data: Any) -> None:
    assert program_of(data) is None and not datasets.is_conversation(data)


# Mailboxes


MBOX = """\
From anna@example.org Mon Jan  1 10:00:00 2024
From: =?utf-8?q?Anna_M=C3=BCller?= <anna@example.org>
To: otto@example.org
Subject: The cat
Date: Mon, 1 Jan 2024 10:00:00 +0000
Message-ID: <1@example.org>
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: 8bit

Dear Otto,

did you feed the cat? Call me: +49 170 1234567
>From tomorrow on I am away.

--\x20
Anna Müller
Example Street 1

From otto@example.org Mon Jan  1 11:00:00 2024
From: otto@example.org
Subject: Re: The cat
Date: Mon, 1 Jan 2024 11:00:00 +0000
Message-ID: <2@example.org>
In-Reply-To: <1@example.org>
Content-Type: multipart/alternative; boundary=b

--b
Content-Type: text/plain; charset=utf-8

Twice.

On Mon, 1 Jan 2024 at 10:00, Anna Müller <anna@example.org>
wrote:
> Dear Otto,
>
> did you feed the cat?
--b
Content-Type: text/html

<p>Twice.</p>
--b--

From anna@example.org Mon Jan  1 12:00:00 2024
From: Anna <anna@example.org>
Subject: Something else
Date: Mon, 1 Jan 2024 12:00:00 +0000
Message-ID: <3@example.org>
Content-Type: text/html

<html><head><style>p {}</style></head>
<body><p>Only <b>this</b>.</p><blockquote type=cite>old</blockquote></body></html>
"""


def test_a_mailbox_has_what_each_sender_wrote_thread_by_thread(tmp_path: Path) -> None:
    first, second = documents(write(tmp_path / "letters", MBOX))
    asked = "Dear Otto,\ndid you feed the cat? Call me: (number)\nFrom tomorrow on I am away."
    assert first == f"Anna Müller: {asked}\n\notto: Twice.\n\n"
    assert second == "Anna: Only this.\n\n"


def test_a_letter_in_a_novel_is_no_mailbox(tmp_path: Path) -> None:
    for novel in (
        "From London we went to Dover in 1815.\n\nThe sea was calm.\n",
        "From Anna\n\nDear Otto,\nthe sea is calm.\n",
        "From here on:\nNote: it rained.\n",
        "From Anna to Otto\nDate: 1 May 1920\n\nDear Otto,\n",
    ):
        assert documents(write(tmp_path / "novel", novel)) == [novel]


def test_letters_that_are_damaged_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    header = b"From: \xff\xfe <\nDate: never\nContent-Type: x/\n\nHi\n"
    damaged = b"From a@b Mon Jan  1 10:00:00 2024\n" + header
    assert documents(write(tmp_path / "letters", damaged)) == ["Somebody: Hi\n\n"]


# What is odd in the data


def test_a_message_that_is_no_object_is_counted_and_the_others_are_read() -> None:
    odd: list[Any] = [5, None, "x", []]
    meta = [{"sender_name": "Anna", "timestamp_ms": 1, "content": "hi"}]
    telegram = [{"type": "message", "from": "Anna", "text": "hi"}]
    discord = [{"author": {"name": "Anna"}, "content": "hi"}]
    for data in (
        {"participants": [], "messages": [*odd, *meta]},
        {"messages": [*odd, *telegram]},
        {"channel": {}, "messages": [*odd, *discord]},
    ):
        program = program_of(data)
        assert program is not None
        messages = list(program.messages(data))
        assert [text for _, text, _ in messages] == ["", "", "", "", "hi"]


@pytest.mark.parametrize(
    "line",
    [
        "Anna sent an attachment.",
        "You can now message and call each other and see info like Active Status.",
        "Anna changed the theme to Love.",
        "This poll is no longer available.",
        "Anna named the group Cats.",
        "Missed your call",
    ],
)
def test_what_messenger_writes_itself_is_left_out(line: str) -> None:
    messages = [{"sender_name": "Anna", "timestamp_ms": 1, "content": text} for text in (line, "x")]
    assert of_data({"participants": [], "messages": messages}) == [[("Anna", "x")]]
