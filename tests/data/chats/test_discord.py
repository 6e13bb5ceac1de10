"""Channels of Discord that are not in JSON are refused, in one line that says what to do."""

import json
import time
from pathlib import Path

import pytest

from minigpt.config import TextConfig
from minigpt.data.corpus import whole_documents
from minigpt.data.readers.chats.exports import _other_format
from minigpt.data.source import find_source

from ..texts import documents, refusal, write

TABLE = """\
AuthorID,Author,Date,Content,Attachments,Reactions
"249","anna#1234","2024-01-01T10:00:00.0000000+00:00","Did you ""feed"" the cat?","",""
"250","otto","2024-01-01T10:01:00.0000000+00:00","Twice.
She was hungry.","","🐈 (1)"
"""
TEXT = f"""\
{"=" * 62}
Guild: Cats
Channel: Text channels / general
Topic: All about cats
{"=" * 62}

[1/1/2024 10:00 AM] anna#1234
Did you feed the cat?

{{Attachments}}
https://cdn.discordapp.com/1.png


[1/1/2024 10:01 AM] otto (pinned)
Twice.

"""
STYLE = (
    ".preamble {\n    display: grid;\n}\n\n" * 300 + ".chatlog__message-group {\n    margin: 0;\n}"
)
PAGE = f"""

<!DOCTYPE html>
<html lang="en">

<head>
    <title>Cats - general</title>
    <meta charset="utf-8">
    <style>
{STYLE}
    </style>
</head>
<body>
<div class="chatlog"><div class="chatlog__message-group">
<span class="chatlog__author" title="anna#1234">anna</span>
<div class="chatlog__content"><span class="chatlog__markdown-preserve">Did you feed?</span></div>
</div></div>
"""
SMALL_PAGE = (  # without what no browser needs, as newer versions write it
    "<!DOCTYPE html><html lang=en><head><title>Cats - general</title><style>"
    f"{STYLE.replace(' ', '')}</style></head><body><div class=chatlog>"
    "<div class=chatlog__message-group>"
)
OTHERS = {"CSV": TABLE, "text": TEXT, "HTML": PAGE}


@pytest.mark.parametrize("form", OTHERS)
def test_a_channel_of_discord_in_another_format_is_refused(form: str, tmp_path: Path) -> None:
    channel = OTHERS[form]
    for name in (f"general.{form}", "general.txt"):
        for written in (channel, channel.replace("\n", "\r\n"), f"\ufeff{channel}"):
            file = write(tmp_path / name, written)
            reason = f"an export of Discord as {form}; export it as JSON in DiscordChatExporter"
            assert refusal(file) == f"{file} is {reason}"
    assert _other_format(SMALL_PAGE.encode()) == "HTML"


def test_a_channel_that_is_refused_leaves_the_other_files(tmp_path: Path) -> None:
    table = write(tmp_path / "a.csv", TABLE)
    text = write(tmp_path / "b.txt", "The sea was calm that day. " * 100)
    for files in ([tmp_path], [table, text]):
        said: list[str] = []
        source = find_source(TextConfig(files=tuple(map(str, files))), said.append)
        assert "an export of Discord as CSV" in said[0] and "a.csv" in said[0]
        assert len(whole_documents(source.training.pieces())) == 1


def test_a_channel_in_another_format_can_be_read_as_no_chat(tmp_path: Path) -> None:
    table = write(tmp_path / "a.csv", TABLE)
    asked, answered = documents(table, text_field="Content")
    assert asked == 'Did you "feed" the cat?' and answered == "Twice.\nShe was hungry."
    text = write(tmp_path / "a.txt", TEXT)
    assert documents(text, plain=True) == [TEXT]


@pytest.mark.parametrize(
    "head",
    [
        "",
        "=" * 62,
        f"{'=' * 62}\nContents\n{'=' * 62}\n",
        f"{'=' * 61}\nGuild: Cats\n",
        "Author,Date,Content\nAnna,2024,hi\n",
        "id,AuthorID,Author,Date,Content\n",
        "chatlog__message-group is the name of a class",
        "<html><p>The class is chatlog__message.</p>",
        json.dumps({"messages": [{"content": "<div class=chatlog__message-group>"}]}),
    ],
)
def test_other_files_are_no_channel_in_another_format(head: str) -> None:
    assert _other_format(head.encode()) is None


@pytest.mark.parametrize(
    "part", ["<", "<html", "=", "=" * 62 + "\n", "AuthorID,", "\n", "chatlog__"]
)
def test_long_repetitions_are_looked_at_once(part: str) -> None:
    head = (part * 5_000_000)[:5_000_000].encode()
    begin = time.perf_counter()
    _other_format(head)
    assert time.perf_counter() - begin < 1
