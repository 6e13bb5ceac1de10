"""What nobody sees is left out of every kind of file alike, and joiners are letters in all."""

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest

import minigpt
from minigpt.config import ReadingConfig
from minigpt.data.corpus import Corpus, whole_documents
from minigpt.data.readers.document import without_invisible

from .readers.made import epub, notebook, opendocument, p, parquet, pdf_of, word, zipped
from .texts import write

LETTERS = "क्‌ष 👨‍👩‍👧 क्‍ष 🏴‍☠️ 🏴󠁧󠁢󠁳󠁣󠁴󠁿 done"  # joiners, a selector and tags, which belong to them
HIDDEN = "\u200bs\u00ade\u200ee\u200fn\u061c \u202aas\u202c \u2066it\u2069 \u2060is\ufeff\x7f, "
SEEN = f"seen as it is, {LETTERS}"
TEXT = HIDDEN + LETTERS


def rtf(text: str) -> bytes:
    units = text.encode("utf-16-le")
    pairs = zip(units[::2], units[1::2], strict=True)
    written = "".join(f"\\u{low + 256 * high}?" for low, high in pairs)
    return f"{{\\rtf1\\ansi\\uc1 {written}\\par}}".encode()


def pdf(text: str) -> bytes:
    """A page of these characters, each of which is a sign that the font's map explains."""
    shown = "".join(f"{number:02x}" for number in range(len(text)))
    explained = "".join(
        f"<{number:02x}> <{character.encode('utf-16-be').hex()}>\n"
        for number, character in enumerate(text)
    )
    stream = f"BT /F1 10 Tf 50 780 Td <{shown}> Tj ET"
    letters = (
        "begincmap\n1 begincodespacerange\n<00> <ff>\nendcodespacerange\n"
        f"{len(text)} beginbfchar\n{explained}endbfchar\nendcmap"
    )
    return pdf_of(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
            "/Resources << /Font << /F1 5 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Signs /ToUnicode 6 0 R "
            f"/FirstChar 0 /LastChar {len(text)} /Widths [{'500 ' * len(text)}] >>",
            f"<< /Length {len(letters)} >>\nstream\n{letters}\nendstream",
        ]
    )


def whatsapp(text: str) -> str:
    said = [("Anna", text), ("Otto", "yes"), ("Anna", "no"), ("Otto", "so")]
    return "".join(f"31.12.23, 21:41 - {name}: {words}\n" for name, words in said)


def telegram(text: str) -> str:
    messages = [{"type": "message", "from": name, "text": text} for name in ("Anna", "Otto")]
    return json.dumps({"name": "Otto", "messages": messages})


def discord(text: str) -> str:
    messages = [{"author": {"name": name}, "content": text} for name in ("Anna", "Otto")]
    return json.dumps({"channel": {}, "messages": messages})


def meta(text: str) -> str:
    messages = [{"senderName": name, "text": text} for name in ("Anna", "Otto")]
    return json.dumps({"participants": [], "messages": messages})


def signal(text: str) -> str:
    rows = [{"date": "", "sender": name, "body": text} for name in ("Anna", "Otto")]
    return "".join(json.dumps(row) + "\n" for row in rows)


def mailbox(text: str) -> str:
    head = "From a@b Mon Jan  1 10:00:00 2024\nFrom: Anna <a@b>\n"
    return f"{head}Content-Type: text/plain; charset=utf-8\n\n{text}\n"


Made = Callable[[str], str | bytes]
FILES: dict[str, Made] = {
    "plain.txt": lambda text: text,
    "plain.md": lambda text: text,
    "table.csv": lambda text: f'text\n"{text}"\n',
    "table.tsv": lambda text: f"id\ttext\n1\t{text}\n",
    "lines.jsonl": lambda text: json.dumps({"text": text}),
    "word.docx": lambda text: word(p(text)),
    "open.odt": lambda text: opendocument(f"<t:p>{escape(text)}</t:p>"),
    "rich.rtf": rtf,
    "page.html": lambda text: f"<!DOCTYPE html><meta charset=utf-8><p>{text}</p>",
    "verbatim.html": lambda text: f"<!DOCTYPE html><meta charset=utf-8><pre>{text}</pre>",
    "book.epub": lambda text: epub({"a": f"<body><p>{text}</p></body>"}, ["a"]),
    "cells.ipynb": lambda text: notebook(("markdown", text)),
    "archive.zip": lambda text: zipped({"plain.txt": text}),
    "whatsapp.txt": whatsapp,
    "telegram.json": telegram,
    "discord.json": discord,
    "meta.json": meta,
    "signal.jsonl": signal,
    "rows.jsonl": lambda text: json.dumps({"prompt": text, "completion": "So."}),
    "rows.csv": lambda text: f'prompt,completion\n"{text}",So.\n',
    "mail.mbox": mailbox,
}
APART: dict[str, Made] = {  # read in a process of their own
    "page.pdf": pdf,
    "rows.parquet": lambda text: parquet({"text": [text]}),
}


def text_of(folder: Path, name: str, made: Made) -> str:
    content = made(TEXT)
    data = content if isinstance(content, bytes) else content.encode()
    return "\n".join(
        whole_documents(Corpus((write(folder / name, data),), ReadingConfig()).pieces())
    )


def check(folder: Path, name: str, made: Made) -> None:
    text = text_of(folder, name, made)
    assert SEEN in text
    assert not (set(HIDDEN) - set(SEEN)) & set(text)


@pytest.mark.parametrize("name", FILES)
def test_every_reader_leaves_out_what_nobody_sees_and_keeps_joiners(
    name: str, tmp_path: Path
) -> None:
    check(tmp_path, name, FILES[name])


@pytest.mark.usefixtures("read_in_process")
@pytest.mark.parametrize("name", APART)
def test_what_is_read_in_another_process_lacks_the_same(name: str, tmp_path: Path) -> None:
    check(tmp_path, name, APART[name])


def test_the_names_of_speakers_hold_joiners_and_no_marks(tmp_path: Path) -> None:
    chat = whatsapp("yes").replace("Anna", "\u2068آن‌نا\u2069")
    (text,) = whole_documents(
        Corpus((write(tmp_path / "chat.txt", chat),), ReadingConfig()).pieces()
    )
    assert text.startswith("آن‌نا: yes\n")


def test_the_page_leaves_out_the_same_of_what_is_typed() -> None:
    page = Path(minigpt.__file__).parent / "page" / "model" / "dialogue.js"
    pattern = re.search(r"/(\[.+\])/gu;", page.read_text(encoding="utf-8"))
    assert pattern is not None
    characters = "".join(map(chr, range(0x10000)))
    assert re.sub(pattern[1], "", characters) == without_invisible(characters)
