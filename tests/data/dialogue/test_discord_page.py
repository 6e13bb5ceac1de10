"""Channels of Discord as web pages."""

from datetime import datetime
from pathlib import Path

from minigpt.data.dialogue.discord_page import is_channel_page, messages_of_page
from minigpt.data.dialogue.turns import Message

from ..documents.reading import report_of
from ..texts import documents, write

HEAD = "<!DOCTYPE html><html lang=en><head><style>.chatlog__message-group{margin:0}</style></head>"
PAGE = f"""{HEAD}<body><div class=preamble>Cats / general</div><div class=chatlog>
<div class=chatlog__message-group>
<div id=c1 class=chatlog__message-container data-message-id=1><div class=chatlog__message>
<div class=chatlog__message-aside><img class=chatlog__avatar src=a.png alt=Avatar loading=lazy></div>
<div class=chatlog__message-primary><div class=chatlog__header>
<span class=chatlog__author title=anna#1234 data-user-id=5>Anna</span>
<span class=chatlog__timestamp title="Monday, January 1, 2024 10:00 AM"><a href=#c1>1/1/2024 10:00 AM</a></span>
</div><div class="chatlog__content chatlog__markdown"><span class=chatlog__markdown-preserve>Did you
<strong>feed</strong> the cat? <img class=chatlog__emoji alt=🐈 src=cat.svg></span>
<span class=chatlog__edited-timestamp title="today">(edited)</span></div>
<div class=chatlog__embed><div class="chatlog__content"><span class=chatlog__markdown-preserve>
A page about cats</span></div></div>
<div class=chatlog__reactions><div class=chatlog__reaction><span>3</span></div></div>
</div></div></div>
<div id=c2 class="chatlog__message-container chatlog__message-container--pinned" data-message-id=2>
<div class=chatlog__message><div class=chatlog__message-aside>
<div class=chatlog__short-timestamp title="Monday, January 1, 2024 10:01 AM">10:01 AM</div></div>
<div class=chatlog__message-primary><div class="chatlog__content chatlog__markdown">
<span class=chatlog__markdown-preserve>a &lt; b, +49 170 1234567</span></div></div></div></div>
</div>
<div class=chatlog__message-group><div class=chatlog__message-container><div class=chatlog__message>
<span class=chatlog__system-notification-author>otto</span>
<span class=chatlog__system-notification-content>joined the server.</span></div></div></div>
<div class=chatlog__message-group><div class=chatlog__message-container><div class=chatlog__message>
<div class=chatlog__reply><div class=chatlog__reply-author>Anna</div>
<div class=chatlog__reply-content><span class=chatlog__reply-link>Did you feed</span></div></div>
<span class=chatlog__author title=otto>Otto</span>
<span class=chatlog__timestamp title="nonsense">1/1/2024 10:02 AM</span>
<div class="chatlog__content chatlog__markdown"><span class=chatlog__markdown-preserve>Twice.</span></div>
<div class=chatlog__forwarded><div class="chatlog__forwarded-content chatlog__markdown">
<span class=chatlog__markdown-preserve>News</span></div></div>
</div></div></div>
</div><div class=postamble>Exported 4 message(s)</div></body></html>
"""  # noqa: E501
OLDER = f"""{HEAD}<body><div class="chatlog"><div class="chatlog__message-group">
<div class="chatlog__avatar-container"><img class="chatlog__author-avatar" src="a.png"/></div>
<div class="chatlog__messages"><span class="chatlog__author-name" title="anna#1">anna</span>
<span class="chatlog__timestamp">01-Jan-24 10:00 AM</span>
<div class="chatlog__message " data-message-id="1"><div class="chatlog__content">
<div class="markdown"><span class="preserve-whitespace">hi</span></div></div></div>
<div class="chatlog__message " data-message-id="2"><div class="chatlog__content">
<div class="markdown"><span class="preserve-whitespace">are you there?</span></div></div></div>
</div></div></div>"""


def said(page: str) -> list[Message]:
    return [message for message in messages_of_page(page) if message.text.strip()]


def test_a_channel_has_what_people_wrote_themselves() -> None:
    first, second, third = said(PAGE)
    assert first == ("Anna", "Did you\nfeed the cat? 🐈", datetime(2024, 1, 1, 10, 0))
    assert second == ("Anna", "a < b, +49 170 1234567", datetime(2024, 1, 1, 10, 1))
    assert third == ("Otto", "Twice.", datetime(2024, 1, 1, 10, 2))


def test_a_channel_of_an_older_version_is_read_too() -> None:
    assert [message[:2] for message in said(OLDER)] == [("anna", "hi"), ("anna", "are you there?")]


def test_a_file_of_a_channel_is_a_chat_and_other_pages_are_not(tmp_path: Path) -> None:
    file = write(tmp_path / "channel.html", PAGE)
    assert documents(file) == [
        "Anna: Did you\nfeed the cat? 🐈\na < b, (number)\n\nOtto: Twice.\n\n"
    ]
    report = report_of(file)
    assert report.kind == "Discord chat"
    assert report_of(file, plain=True).kind == "web page"
    assert not is_channel_page(b"<html><p>The class is chatlog__message.</p>")
    assert not is_channel_page(b"chatlog__message-group is the name of a class")


def test_a_page_cut_anywhere_is_read_as_far_as_it_goes() -> None:
    whole = said(PAGE)
    for end in range(0, len(PAGE), 7):
        found = said(PAGE[:end])
        assert found[:-1] == whole[: max(len(found) - 1, 0)]
        assert all(message.speaker in ("Anna", "Otto") for message in found)
