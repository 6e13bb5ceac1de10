"""`minigpt read` of mailboxes: each letter is there, or the table says how many are left out."""

import base64
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ..data.texts import write
from .conftest import Type

Outcome = tuple[list[str], dict[str, int]]
Read = Callable[..., Outcome]

ENVELOPE = "From - Mon Jan  1 10:00:00 2024"
PLAIN = "Content-Type: text/plain; charset=utf-8"
HTML = "Content-Type: text/html; charset=utf-8"


def letter(body: str, *headers: str, name: str = "Anna", envelope: str = ENVELOPE) -> str:
    """A letter of a mailbox; its date is that of its place if none is given."""
    lines = [envelope, f"From: {name} <{name.lower()}@example.org>", *(headers or (PLAIN,))]
    return "\n".join(lines) + f"\n\n{body}\n\n"


@pytest.fixture
def read(type_: Type, tmp_path: Path) -> Read:
    """What is read from a mailbox of these letters: documents, and what is named as left out."""

    def read(
        *letters: str | bytes, options: tuple[str, ...] = ()
    ) -> tuple[list[str], dict[str, int]]:
        parts = [one.encode() if isinstance(one, str) else one for one in letters]
        file = write(tmp_path / "mail.mbox", b"".join(parts))
        status, out, err = type_("read", file, *options)
        assert status == 0, err
        row = err.splitlines()[1]
        assert " mailbox " in row, err
        named = re.findall(r"([a-z]+(?: [a-z-]+)*) \((\d+)\)", row)
        texts = [text.strip() for text in out.split("<|endoftext|>")]
        return texts, {what: int(number) for what, number in named}

    return read


# Where a letter begins


@pytest.mark.parametrize(
    "envelope",
    [
        "From ",
        "From -",
        "From anna@example.org",
        "From anna@example.org Mon Jan  1 10:00:00",
        "From anna@example.org Mon, 1 Jan 2024 10:00:00 +0000",
        "From 1787000000000000000@xxx Mon Jan 01 10:00:00 +0000 2024",
        "From ???@??? Mon Jan 01 10:00:00 2024",
        "From Anna Berg Mon Jan  1 10:00:00 2024",
    ],
)
def test_a_letter_begins_after_a_line_from_whatever_else_that_says(
    read: Read, envelope: str
) -> None:
    first = letter("Did you feed the cat?", envelope=envelope)
    second = letter("Twice.\n\nShe was hungry.", name="Otto", envelope=envelope)
    assert read(first, second) == (
        ["Anna: Did you feed the cat?", "Otto: Twice.\nShe was hungry."],
        {},
    )


def test_a_letter_without_a_header_is_a_letter_if_its_envelope_has_a_date(read: Read) -> None:
    bare = f"{ENVELOPE}\n\nNobody signed this.\n\n"
    texts, _ = read(letter("One."), bare, letter("Two.", name="Otto"))
    assert texts == ["Anna: One.", "Somebody: Nobody signed this.", "Otto: Two."]


def test_a_line_of_a_letter_that_begins_with_from_begins_no_other(read: Read) -> None:
    body = "I was young.\n\nFrom 2019 until 2021 I lived in Rome.\n\nThen I moved.\n\n"
    body += "From here on:\nNote: it rained."
    texts, _ = read(letter(body), letter("Lovely.", name="Otto"))
    lines = "I was young.\nFrom 2019 until 2021 I lived in Rome.\nThen I moved.\n"
    assert texts == [f"Anna: {lines}From here on:\nNote: it rained.", "Otto: Lovely."]


def test_a_line_from_that_the_mailbox_marks_is_a_line_of_the_letter(read: Read) -> None:
    body = "We met at noon.\n\n>From the hill we saw the sea.\n>From there it is an hour."
    body += "\n\n>>From the top,\n> you said."
    texts, named = read(letter(body))
    assert texts == [
        "Anna: We met at noon.\nFrom the hill we saw the sea.\nFrom there it is an hour."
    ]
    assert named == {"quotations": 1}


# Encodings


@pytest.mark.parametrize(
    ("named", "encoding"),
    [
        ("", "utf-8"),
        ("", "cp1252"),
        ("; charset=us-ascii", "utf-8"),
        ("; charset=us-ascii", "cp1252"),
        ("; charset=uft-8", "utf-8"),
        ("; charset=x-unknown", "cp1252"),
        ("; charset=cp-850", "cp850"),
        ("; charset=iso-8859-1", "cp1252"),
        ("; charset=utf-8", "cp1252"),
        ("; charset=base64_codec", "utf-8"),
        ("; charset=iso-2022-jp", "utf-8"),
        ("; charset=''", "utf-8"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "html"])
def test_a_letter_is_read_whatever_it_says_of_its_encoding(
    read: Read, kind: str, named: str, encoding: str
) -> None:
    text = letter("Grüße aus Köln, schöne Tage!", f"Content-Type: text/{kind}{named}")
    texts, _ = read(text.encode(encoding))
    assert texts == ["Anna: Grüße aus Köln, schöne Tage!"]


def test_the_encoding_of_letters_that_name_none_can_be_given(read: Read) -> None:
    polish = letter("Zażółć gęślą jaźń", "Content-Type: text/plain").encode("latin2")
    named = letter("Grüße", "Content-Type: text/plain; charset=latin1").encode("latin1")
    texts, _ = read(polish, named, options=("--encoding", "latin2"))
    assert texts == ["Anna: Zażółć gęślą jaźń", "Anna: Grüße"]


RUSSIAN = "Приходите вечером к нам: будет пирог с яблоками, и бабушка расскажет о старом доме."
CHINESE = "我昨天在公园里遇见了一位老朋友，他告诉我他的孩子们都长大了，我们一起喝茶谈天。"


@pytest.mark.parametrize("kind", ["plain", "html"])
@pytest.mark.parametrize("named", ["", "; charset=utf-8", "; charset=us-ascii"])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [(RUSSIAN, "koi8-r"), (RUSSIAN, "cp1251"), (CHINESE, "gbk")],
    ids=["koi8-r", "cp1251", "gbk"],
)
def test_a_letter_whose_encoding_nobody_names_is_counted_until_somebody_does(
    read: Read, text: str, encoding: str, named: str, kind: str
) -> None:
    unknown = letter(text, f"Content-Type: text/{kind}{named}", name="Otto").encode(encoding)
    texts, left_out = read(letter("Yes."), unknown)
    assert texts == ["Anna: Yes."]
    assert left_out == {"letters whose encoding only --encoding can name": 1}

    texts, left_out = read(letter("Yes."), unknown, options=("--encoding", encoding))
    assert texts == ["Anna: Yes.", f"Otto: {text}"]
    assert left_out == {}


def test_a_wrong_byte_in_a_letter_leaves_the_rest_as_it_is(read: Read) -> None:
    damaged = letter(RUSSIAN).encode() + b"\xd0\n\n"
    assert read(damaged) == ([f"Anna: {RUSSIAN}"], {})


@pytest.mark.parametrize(
    "name",
    ["Müller".encode(), "Müller".encode("latin1"), b"=?uft-8?q?M=C3=BCller?=",
     b"=?iso-8859-1?q?M=FCller?="],
)  # fmt: skip
def test_a_name_is_read_whatever_it_says_of_its_encoding(read: Read, name: bytes) -> None:
    box = letter("Yes.", "Subject: x").encode().replace(b"From: Anna", b"From: " + name)
    assert read(box)[0] == ["Müller: Yes."]


# Whose words they are


ATTRIBUTIONS = {
    "cs": "po 1. 1. 2024 v 10:00 odesílatel Anna Berg <anna@example.org> napsal:",
    "da": "Den man. 1. jan. 2024 kl. 10.00 skrev Anna Berg <anna@example.org>:",
    "de": "Am Mo., 1. Jan. 2024 um 10:00 Uhr schrieb Anna Berg <anna@example.org>:",
    "el": "Στις Δευ, 1 Ιαν 2024 στις 10:00 π.μ., ο/η Anna Berg <anna@example.org> έγραψε:",
    "en": "On Mon, 1 Jan 2024 at 10:00, Anna Berg <anna@example.org> wrote:",
    "es": "El lun, 1 ene 2024 a las 10:00, Anna Berg (<anna@example.org>) escribió:",
    "fi": "ma 1. tammik. 2024 klo 10.00 Anna Berg (anna@example.org) kirjoitti:",
    "fr": "Le lun. 1 janv. 2024 à 10:00, Anna Berg <anna@example.org> a écrit :",
    "he": "\u200fבתאריך יום ב׳, 1 בינו׳ 2024 ב-10:00 מאת \u200fAnna Berg\u200f "
    "<\u200fanna@example.org\u200f>:\u200f",
    "hu": "Anna Berg <anna@example.org> ezt írta (időpont: 2024. jan. 1., H, 10:00):",
    "it": "Il giorno lun 1 gen 2024 alle ore 10:00 Anna Berg <anna@example.org> ha scritto:",
    "ja": "2024年1月1日(月) 10:00 Anna Berg <anna@example.org>:",
    "ko": "2024년 1월 1일 (월) 오전 10:00, Anna Berg <anna@example.org>님이 작성:",
    "nl": "Op ma 1 jan 2024 om 10:00 schreef Anna Berg <anna@example.org>:",
    "pl": "pon., 1 sty 2024 o 10:00 Anna Berg <anna@example.org> napisał(a):",
    "pt": "Anna Berg <anna@example.org> escreveu (segunda, 1/01/2024 à(s) 10:00):",
    "ro": "În lun., 1 ian. 2024 la 10:00, Anna Berg <anna@example.org> a scris:",
    "ru": "пн, 1 янв. 2024 г. в 10:00, Anna Berg <anna@example.org>:",
    "sv": "Den mån 1 jan. 2024 kl 10:00 skrev Anna Berg <anna@example.org>:",
    "tr": "Anna Berg <anna@example.org>, 1 Oca 2024 Pzt, 10:00 tarihinde şunu yazdı:",
    "uk": "пн, 1 січ. 2024 р. о 10:00 Anna Berg <anna@example.org> пише:",
    "zh": "Anna Berg <anna@example.org> 于2024年1月1日周一 10:00写道：",
    "short": "Am 1.1.2024 um 10:00 schrieb Anna:",
    "shorter": "On 1 Jan 2024 Anna wrote:",
    "without a date": "Anna Berg <anna@example.org> writes:",
    "Apple": "On Oct 6, 2015, at 10:47, Anna <a@example.org> wrote:",
}  # fmt: skip


@pytest.mark.parametrize("line", ATTRIBUTIONS.values(), ids=ATTRIBUTIONS)
def test_who_wrote_what_is_quoted_is_left_out_in_each_language(read: Read, line: str) -> None:
    body = f"Yes.\n\n{line}\n\n> Did you feed the cat?\n> Please.\n\nAnd the dog."
    assert read(letter(body)) == (["Anna: Yes.\nAnd the dog."], {"quotations": 1})


@pytest.mark.parametrize(
    "lines",
    [
        "Den mån 1 jan. 2024 kl 10:00 skrev Anna Berg <\nanna@example.org>:",
        "On Mon, 1 Jan 2024 at 10:00, Anna Berg of the Very Long Department\n"
        "of Things and Other Things <anna.berg.of.the.long@example.org>\nwrote:",
        "On 1 January 2024 at 10:00\nAnna Berg <anna@example.org>\nwrote:",
    ],
)
@pytest.mark.parametrize("before", ["Yes.", "Yes.\n", "I said so on 3 May 2023."])
def test_who_wrote_it_may_be_broken_over_lines(read: Read, before: str, lines: str) -> None:
    texts, named = read(letter(f"{before}\n{lines}\n\n> Did you?"))
    assert texts == [f"Anna: {before.strip()}"]
    assert named == {"quotations": 1}


def test_a_long_text_above_a_quotation_says_more_than_who_is_quoted(read: Read) -> None:
    body = "One more thing, " * 30 + "which on 3 May 2024 a@b.c put so:"
    assert read(letter(f"{body}\n> Yes.\n"))[0] == [f"Anna: {body}"]


def test_a_line_before_a_quotation_that_names_nobody_stays(read: Read) -> None:
    body = "There are 3 things:\n> one\nI see this:\n> two\nFine."
    assert read(letter(body))[0] == ["Anna: There are 3 things:\nI see this:\nFine."]


@pytest.mark.parametrize(
    "quoted",
    [
        "On Jan 20, 2018, at 10:03 AM, Court <n@example.com<mailto:n@example.com>> wrote:\n\n\n"
        "A new message\n\nSquash tomorrow?",
        '----------- Original Message -----------\nFrom: "S."\nDate: Monday, July 24th\n\n> Hey',
        "---------- Forwarded message ---------\nFrom: Otto <o@example.org>\n\nOld",
        "-------- Weitergeleitete Nachricht --------\nBetreff: \tKatze\nDatum: \theute\n\nAlt",
        "-----Message d'origine-----\nDe : Otto\n\nAs-tu ?",
        "---- On Mon, 01 Jan 2024 10:00:00 +0000 Otto <o@example.org> wrote ----\n\nOld",
        "________________________________\nFrom: Otto\nSent: Monday\n\nOld",
        "From: Otto [o@example.org]\nSent: Friday, 23 March 2012\nTo: Anna\nSubject: x\n\nOld",
        "*From:* Otto\n*Sent:* Friday\n*To:* Anna\n*Subject:* x\n\nOld",
        "Från: Otto\nSkickat: den 1 januari 2024\nTill: Anna\nÄmne: x\n\nGammalt",
        "От: Otto\nОтправлено: 1 января 2024\nКому: Anna\nТема: x\n\nОльд",
        "发件人: Otto\n发送时间: 2024年1月1日\n收件人: Anna\n主题: x\n\n旧",
        "差出人: Otto\n送信日時: 2024年1月1日\n宛先: Anna\n件名: x\n\n旧",
    ],
)
def test_what_another_mailer_quotes_without_a_mark_is_left_out(read: Read, quoted: str) -> None:
    assert read(letter(f"Mine.\n\n{quoted}\n")) == (["Anna: Mine."], {"quotations": 1})


def test_what_only_looks_like_a_quotation_stays(read: Read) -> None:
    body = "When: 3 May 2024, 10:00\nWhere: my place\nWho: otto@example.org\n\n"
    body += "Date: 3 May\nFrom: Oslo\nTo: Rome\n\n"
    body += "-- one --\nDate: now\nText.\n____________________\n" + "More.\n" * 20
    text = body.replace("\n\n", "\n").strip()
    assert read(letter(body)) == ([f"Anna: {text}"], {})


@pytest.mark.parametrize(
    "signature",
    ["-- \nAnna Berg\nExample Street 1", "--\nAnna Berg", "Sent from my iPhone",
     "Von meinem Samsung Galaxy gesendet.", "Envoyé de mon iPad",
     "_______________________________________________\nA list\nlist@example.org"],
)  # fmt: skip
def test_a_signature_is_left_out_and_counted(read: Read, signature: str) -> None:
    assert read(letter(f"Short.\n\n{signature}\n")) == (["Anna: Short."], {"signatures": 1})


def test_a_signature_of_a_telephone_may_stand_above_what_is_quoted(read: Read) -> None:
    body = "Short.\n\nSent from my iPhone\n\n> On Oct 6, 2015, Anna <a@example.org> wrote:\n> \n> x"
    assert read(letter(body)) == (["Anna: Short."], {"signatures": 1, "quotations": 1})


def test_a_signature_may_stand_above_another_letter(read: Read) -> None:
    old = "From: Otto\nSent: Monday\nTo: Anna\nSubject: x\n\n" + "Old.\n" * 20
    expected = (["Anna: Short."], {"signatures": 1, "quotations": 1})
    for signature in ("-- \nAnna", "--\nAnna", "Sent from my iPhone"):
        assert read(letter(f"Short.\n\n{signature}\n\n{old}")) == expected


def test_who_is_quoted_is_left_out_even_if_nothing_is(read: Read) -> None:
    body = f"Short.\n\n{ATTRIBUTIONS['en']}\n"
    assert read(letter(body)) == (["Anna: Short."], {"quotations": 1})


def test_a_signature_with_its_mark_may_be_long(read: Read) -> None:
    body = "Short.\n-- \n" + "".join(f"Line {n} of a notice.\n" for n in range(30))
    assert read(letter(body)) == (["Anna: Short."], {"signatures": 1})


def test_two_dashes_above_a_long_text_begin_no_signature(read: Read) -> None:
    body = "One.\n--\n" + "\n".join(f"Line {n} of the rest." for n in range(30))
    assert read(letter(body)) == ([f"Anna: {body}"], {})


def test_an_iphone_in_a_sentence_is_none(read: Read) -> None:
    body = "Where is it?\n\nI have sent you the iPhone that you lost in the garden on Sunday."
    body += "\nSent from my iPhone\nis what it says."
    assert read(letter(body)) == ([f"Anna: {body}".replace("\n\n", "\n")], {})


# Lines


FLOWED = "Content-Type: text/plain; charset=utf-8; format=flowed"


def test_lines_of_flowed_text_are_made_whole(read: Read) -> None:
    body = "This is a long paragraph that was \nsent as flowed text, so that these \n"
    body += "lines are one.\n\n From here it goes on.\n>> Old \n>> words\n> newer\n"
    body += "Mine. \n-- \nAnna"
    texts, named = read(letter(body, FLOWED))
    paragraph = (
        "This is a long paragraph that was sent as flowed text, so that these lines are one."
    )
    assert texts == [f"Anna: {paragraph}\nFrom here it goes on.\nMine."]
    assert named == {"quotations": 1, "signatures": 1}


def test_the_space_at_the_end_of_a_flowed_line_may_be_none_of_the_text(read: Read) -> None:
    assert read(letter("日本 \n語", f"{FLOWED}; delsp=yes"))[0] == ["Anna: 日本語"]


def test_lines_of_other_text_stay_as_they_are(read: Read) -> None:
    assert read(letter("Roses are red, \nviolets are blue"))[0] == [
        "Anna: Roses are red,\nviolets are blue"
    ]


# HTML


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>R&B", "R&B"),
        ("I like R&B", "I like R&B"),
        ("<html><head><meta charset=utf-8><body><p>Here.</p></body></html>", "Here."),
        ("<html><head><title>x</title><p>Here.</p></html>", "Here."),
        ("<html><head>Here.</html>", "Here."),
        ("<p>Before.</p><style>p{}<p>After.</p>", "Before.\nAfter."),
        ("<table><tr><td>one</td><td>two</td></tr></table>", "one\ttwo"),
        ("<table><tr><td>one</td><td>two", "one\ttwo"),
        ("<p>A&nbsp;&amp;&nbsp;B &lt;tag&gt; caf&eacute; &#8364;</p>", "A & B <tag> café €"),
        ("<pre>line 1\nline 2</pre>", "line 1\nline 2"),
        ("<ul><li>x<li>y</ul>", "- x\n- y"),
        ("<p>She said:</p><blockquote>To be.</blockquote><p>And left.</p>",
         "She said:\nTo be.\nAnd left."),
        ("<p>First.</p><blockquote>Said<p>Second.</p></body></html>", "First.\nSaid\nSecond."),
        ("<header><p>Dear Anna,</p></header><p>Yes.</p><footer>Otto</footer>",
         "Dear Anna,\nYes.\nOtto"),
        ('<p class="footer">Yes.</p><p><a href="https://example.org">A link</a></p>',
         "Yes.\nA link"),
        ("<div>" + "".join(f"<p><a href='https://example.org/{n}'>Picture {n}</a></p>"
                           for n in range(6)), "\n".join(f"Picture {n}" for n in range(6))),
    ],
)  # fmt: skip
def test_a_letter_in_html_is_read_as_a_page_is(read: Read, page: str, text: str) -> None:
    assert read(letter(page, HTML)) == ([f"Anna: {text}"], {})


def test_the_last_word_of_a_letter_in_html_is_read(read: Read) -> None:
    body = base64.b64encode(b"I like R&B").decode()
    box = letter(body, HTML, "Content-Transfer-Encoding: base64")
    assert read(box)[0] == ["Anna: I like R&B"]


GMAIL = "On Mon, 1 Jan 2024 at 10:00, Anna Berg &lt;<a href='mailto:a@b.c'>a@b.c</a>&gt; wrote:"


@pytest.mark.parametrize(
    "page",
    [
        f'<div>Mine.<div><br></div></div><br><div class="gmail_quote"><div class="gmail_attr">'
        f'{GMAIL}<br></div><blockquote class="gmail_quote">Old<p>words</p></blockquote></div>',
        f"<p>Mine.</p><div class='moz-cite-prefix'>{GMAIL}</div>"
        "<blockquote type='cite'><p>Old</p><ul><li>words</ul></blockquote>",
        '<div>Mine.</div><div id="appendonsend"></div><hr><div id="divRplyFwdMsg"><b>From:</b> '
        "Anna &lt;a@b.c&gt;<br><b>Sent:</b> Monday<br><b>To:</b> Otto<br><b>Subject:</b> x</div>"
        "<div>Old words</div>",
        "<p>Mine.</p><blockquote style='border-left: 2px solid blue'>Old</blockquote>",
        "<p>Mine.</p><div name='quote' style='border-left:2px solid #C3D9E5;'>Old</div>",
    ],
)
def test_what_a_letter_in_html_quotes_is_left_out(read: Read, page: str) -> None:
    assert read(letter(page, HTML)) == (["Anna: Mine."], {"quotations": 1})


@pytest.mark.parametrize(
    "page",
    [
        "<div>Mine.</div><span class='gmail_signature_prefix'>-- </span><br>"
        "<div class='gmail_signature'><div>Anna</div><div>Example Street</div></div>",
        "<p>Mine.</p><div id='Signature'><p>Anna</p><p>Example Street</p></div>",
        "<p>Mine.</p><div class='moz-signature'>-- <br>Anna</div>",
        "<p>Mine.</p><p>-- <br>Anna</p>",
        "<p>Mine.</p><p>Sent from my iPhone</p>",
    ],
)
def test_a_signature_in_html_is_left_out(read: Read, page: str) -> None:
    assert read(letter(page, HTML)) == (["Anna: Mine."], {"signatures": 1})


def test_a_signature_in_what_is_quoted_belongs_to_it(read: Read) -> None:
    old = "<p>Old</p><div class='gmail_signature'>Otto</div><p>and older</p>"
    page = f"<p>Mine.</p><blockquote type='cite'>{old}</blockquote>"
    assert read(letter(page, HTML)) == (["Anna: Mine."], {"quotations": 1})


def test_answers_between_what_is_quoted_in_html_stay(read: Read) -> None:
    cite = "<blockquote class='gmail_quote'>{}</blockquote>"
    page = f"<div class='gmail_quote'><div>{GMAIL}</div>{cite.format('Cat?')}<div>Yes.</div>"
    page += f"{cite.format('Dog?')}<div>No.</div></div>"
    assert read(letter(page, HTML)) == (["Anna: Yes.\nNo."], {"quotations": 2})


# Parts


def parts(kind: str, *inside: str) -> str:
    """A letter of several parts, each with its headers."""
    body = "".join(f"--b\n{part}\n" for part in inside)
    return letter(f"{body}--b--", f"Content-Type: multipart/{kind}; boundary=b")


def test_a_text_that_goes_on_after_a_picture_is_read_whole(read: Read) -> None:
    picture = "Content-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo="
    box = parts("mixed", f"{PLAIN}\n\nLook:", picture, f"{PLAIN}\n\nIs she not sweet?")
    assert read(box) == (["Anna: Look:\nIs she not sweet?"], {"attachments": 1})


def test_a_text_file_that_is_attached_is_not_read(read: Read) -> None:
    attached = f"{PLAIN}\nContent-Disposition: attachment; filename=a.txt\n\nOld novel."
    forwarded = "Content-Type: message/rfc822\n\nFrom: Otto <o@b.c>\nSubject: x\n\nOld."
    inline = f"{PLAIN}; name=b.txt\nContent-Disposition: inline; filename=b.txt\n\nOld too."
    date = "Content-Type: text/calendar\n\nBEGIN:VCALENDAR"
    report = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; a.b\n\nAction: failed\n"
    box = parts("mixed", f"{PLAIN}\n\nSee there.", report, attached, forwarded, inline, date)
    assert read(box) == (["Anna: See there."], {"attachments": 5})


def test_of_two_forms_of_a_text_one_that_is_not_empty_is_read(read: Read) -> None:
    html = f"{HTML}\n\n<p>In HTML.</p>"
    assert read(parts("alternative", f"{PLAIN}\n\n", html))[0] == ["Anna: In HTML."]
    assert read(parts("alternative", f"{PLAIN}\n\nPlain.", html))[0] == ["Anna: Plain."]
    nested = "Content-Type: multipart/related; boundary=c\n\n--c\n" + html + "\n--c--"
    assert read(parts("alternative", f"{PLAIN}\n\n \n", nested))[0] == ["Anna: In HTML."]


def test_a_letter_whose_parts_cannot_be_told_apart_is_read_as_it_is(read: Read) -> None:
    box = letter("One text.", "Content-Type: multipart/mixed; boundary=other")
    assert read(box)[0] == ["Anna: One text."]


@pytest.mark.parametrize(
    "kind", ["text/plain charset=utf-8", "text", "plain/text", "x/", "", "text/markdown"]
)
def test_a_text_of_a_kind_that_there_is_not_is_read(read: Read, kind: str) -> None:
    assert read(letter("Grüße.", f"Content-Type: {kind}")) == (["Anna: Grüße."], {})


# Threads


def test_an_answer_that_comes_first_in_the_file_is_in_the_same_thread(read: Read) -> None:
    answer = letter("Twice.", "Message-ID: <2@x>", "In-Reply-To: <1@x>",
                    "Date: Mon, 1 Jan 2024 09:30:00 +0000", name="Otto")  # fmt: skip
    asked = letter("Did you?", "Message-ID: <1@x>", "Date: Mon, 1 Jan 2024 18:00:00 +0900")
    assert read(answer, asked)[0] == ["Anna: Did you?\n\nOtto: Twice."]


def test_two_letters_of_the_same_name_are_two(read: Read) -> None:
    first = letter("Did you?", "Message-ID: <1@x>")
    second = letter("Shall we?", "Message-ID: <1@x>", name="Otto")
    assert read(first, second)[0] == ["Anna: Did you?", "Otto: Shall we?"]


def test_letters_that_say_nothing_of_their_own_are_counted(read: Read) -> None:
    quoted = letter("> Did you?")
    invisible = letter("\u200b\u200e")
    picture = letter("iVBORw0KGgo=", "Content-Type: image/png")
    texts, named = read(letter("Yes."), quoted, invisible, picture, letter(""))
    assert texts == ["Anna: Yes."]
    assert named == {"letters without text": 4, "quotations": 1, "attachments": 1}


def test_a_letter_that_cannot_be_read_is_counted(read: Read) -> None:
    deep = letter("<div>" * 1100 + "Lost.", HTML)
    texts, named = read(letter("Yes."), deep)
    assert texts == ["Anna: Yes."]
    assert named == {"letters that cannot be read": 1}


@pytest.mark.long
def test_a_letter_of_parts_in_parts_without_end_is_counted(read: Read) -> None:
    deep = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(1100))
    box = f"{ENVELOPE}\nFrom: Otto <o@b.c>\n{deep}\n\n"
    texts, named = read(letter("Yes."), box, letter("No."))
    assert texts == ["Anna: Yes.", "Anna: No."]
    assert named == {"letters that cannot be read": 1}


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    ["--\n", "-- \n", "> \n", "> \nx\n", "\n", "-", "_", ">", "From: a@b\n", "On 2024 a@b\n",
     "On 1.1.2024 10:00 a@b wrote:\n", "Sent from my iPhone\n\n", "a ", "a \n", "From \n\n",
     "From - Mon ", ": ", "<style>", "<head>", "<blockquote>x", "<td>", "&", "=?"],
)  # fmt: skip
def test_a_repetition_that_is_longer_takes_no_more_than_in_proportion(
    read: Read, line: str
) -> None:
    """What tries too much takes sixteen times as long for a text that is four times as long."""

    def seconds(length: int, header: str) -> float:
        letters = (letter("Yes."), letter(line * (length // len(line)), header))
        begun = time.process_time()
        read(*letters)
        return time.process_time() - begun

    for header in (FLOWED, HTML):
        long = seconds(20_000, header)
        if long > 0.2:  # else it is quick, and how quick is chance
            assert min(seconds(20_000, header), long) < 10 * seconds(5_000, header)
