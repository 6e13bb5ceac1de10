"""Which kind of file a content is: by its beginning, and by its name where that does not tell."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from minigpt import UserError
from minigpt.config import ReadingConfig
from minigpt.data.readers.content import Content, marked_encoding
from minigpt.data.readers.encoding import encoding_called
from minigpt.data.readers.kinds import (
    ARCHIVE,
    CHATS,
    EPUB,
    KINDS,
    OPENDOCUMENT,
    PLAIN,
    TEXTS,
    WORD,
    Kind,
    recognise,
)

from ..texts import documents, refusal, write
from .made import p, pdf, word, zipped
from .reading import report_of

EVERY_KIND = (*CHATS, *KINDS, WORD, OPENDOCUMENT, EPUB, ARCHIVE, *TEXTS, PLAIN)
TEXT = "The fox asked the crow for bread, and the crow said no.\n"


def kind(folder: Path, name: str, data: str | bytes) -> str:
    return recognise(Content.of_file(write(folder / name, data), ReadingConfig())).name


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.txt", b"%PDF-1.4\n", "PDF"),
        ("a.txt", b"junk\n%PDF-1.4\n", "PDF"),
        ("a.txt", b"x" * 1017 + b"\n%PDF-", "PDF"),
        ("a.txt", b"x" * 1019 + b"\n%PDF-", "plain text"),
        ("a.txt", b"see %PDF-1.4\n", "plain text"),
        ("a.txt", b"{\\rtf1 x}", "RTF"),
        ("a.txt", b"PAR1", "parquet"),
        ("a.txt", b"a PAR1", "plain text"),
        ("a.jsonl", TEXT, "JSON lines"),
        ("a.NDJSON", TEXT, "JSON lines"),
        ("a.ndjson.gz", TEXT, "JSON lines"),
        ("a.csv", TEXT, "table"),
        ("a.TSV.zst", TEXT, "table"),
        ("a.csv.txt", TEXT, "plain text"),
        ("a.csv", "<!DOCTYPE html><p>x", "table"),
        ("a.txt", "<!DOCTYPE html><p>x", "web page"),
        ("a.txt", "<html lang=de><p>x", "web page"),
        ("a.txt", '<?xml version="1.0"?>\n<!-- c --><html>', "web page"),
        ("a.txt", "<htmlx>", "plain text"),
        ("a.txt", "<p>x</p>", "plain text"),
        ("a.xhtml", "<p>x</p>", "web page"),
        ("a.html", "<i>x</i>", "plain text"),
        ("a.md", TEXT, "plain text"),
        ("a", word(p("x")), "Word"),
        ("a", zipped({"b.txt": "x"}), "archive"),
        ("a", zipped({"mimetype": "application/epub+zip\n"}), "EPUB"),
        ("a", zipped({"mimetype": "application/vnd.oasis.opendocument.text-template"}),
         "OpenDocument"),
    ],
)  # fmt: skip
def test_the_first_kind_that_matches_is_the_kind(
    name: str, data: str | bytes, expected: str, tmp_path: Path
) -> None:
    assert kind(tmp_path, name, data) == expected


@pytest.mark.parametrize("kind", EVERY_KIND, ids=lambda kind: kind.reader)
def test_what_reads_a_kind_is_there(kind: Kind) -> None:
    for name in filter(None, (kind.reader, kind.test)):
        module, _, function = name.rpartition(".")
        assert callable(getattr(import_module(f"minigpt.data.readers.{module}"), function))


def test_a_plain_text_needs_none_of_the_other_readers(tmp_path: Path) -> None:
    """They are looked for in a process that has read nothing else."""
    program = (
        "import sys; from pathlib import Path; from minigpt.config import ReadingConfig; "
        "from minigpt.data.readers.kinds import read_file; "
        "list(read_file(Path(sys.argv[1]), ReadingConfig())); print(*sys.modules)"
    )
    file = write(tmp_path / "a.txt", TEXT * 20)
    command = [sys.executable, "-c", program, str(file)]
    read = subprocess.run(command, check=True, capture_output=True, text=True)
    modules = {name.rpartition(".")[2] for name in read.stdout.split() if "minigpt.data" in name}
    assert "plain" in modules
    others = {"pdf", "rtf", "html", "notebook", "word", "opendocument", "epub", "archive", "mail"}
    assert modules.isdisjoint(others)


def test_an_empty_file_and_one_of_white_space_alone_are_plain_text(tmp_path: Path) -> None:
    assert kind(tmp_path, "a.txt", "") == kind(tmp_path, "b.txt", " \n\u2028") == "plain text"


@pytest.mark.parametrize(
    ("begin", "what", "expected"),
    [
        (b"\xd0\xcf\x11\xe0", "old office program", "office"),
        (b"\x89PNG\r\n", "picture (PNG)", "picture"), (b"\xff\xd8\xff\xe0", "JPEG", "picture"),
        (b"GIF89a", "picture (GIF)", "picture"), (b"RIFF1234WAVE", "RIFF", "picture"),
        (b"ID3\4", "MP3", "picture"), (b"OggS\0", "Ogg", "picture"),
        (b"7z\xbc\xaf\x27\x1c", "7z", "packed"), (b"Rar!\x1a", "RAR", "packed"),
        (b"\xfd7zXZ\0", "packed with xz", "packed"), (b"BZh91AY", "bzip2", "packed"),
        (b"\x7fELF\2", "a program", "no_text"), (b"SQLite format 3\0", "SQLite", "no_text"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_named(begin: bytes, what: str, expected: str, tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", begin + b"rest of it")
    with pytest.raises(UserError, match=r"a\.txt is ") as refused:
        documents(file)
    assert what in str(refused.value) and refused.value.kind == expected
    assert documents(write(tmp_path / "b.txt", f"x {begin[:2].decode('latin1')}")) != []


def test_a_pdf_behind_something_else_is_read(tmp_path: Path) -> None:
    assert kind(tmp_path, "a", b"HTTP/1.1 200 OK\n" + pdf(["x"])) == "PDF"


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("ISO-8859-1", "cp1252"), ("latin1", "cp1252"), ("Windows-1252", "windows-1252"),
        ("latin-1", "cp1252"), ("iso8859-1", "cp1252"),
        ("us-ascii", "utf-8-sig"), ("ASCII", "utf-8-sig"),
        ("UTF-16", "utf-8-sig"), ("utf-16le", "utf-8-sig"), ("koi8-r", "koi8-r"),
        ("KOI8_R", "koi8_r"), ("cp-850", "cp850"), ("klingon", "utf-8-sig"), ("rot13", "utf-8-sig"),
        ("utf-8", "utf-8"), ("iso-8859-2", "iso-8859-2"), ("", "utf-8-sig"),
    ],
)  # fmt: skip
def test_an_encoding_is_known_by_the_names_that_pages_give_it(name: str, encoding: str) -> None:
    assert encoding_called(name) == encoding


def test_a_mark_names_an_encoding() -> None:
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        found = marked_encoding("\ufeffa".encode(encoding))
        assert found == encoding[:6]
        assert "\ufeffa".encode(encoding).decode(found) == "a"
    assert marked_encoding("\ufeffa".encode()) == marked_encoding(b"") == "utf-8-sig"


def test_of_a_text_with_a_few_wrong_bytes_more_must_be_right(tmp_path: Path) -> None:
    """More than four letters beyond ASCII for each wrong byte; else the file is in another
    encoding."""
    for letters, told in ((5, "left out 1 byte that is not UTF-8, in line 2"), (4, "")):
        file = write(tmp_path / "a.txt", f"x\n{'é' * letters}".encode() + b"\xff.")
        if told:
            assert documents(file) == [f"x\n{'é' * letters}."]
            assert report_of(file).notes == [told]
        else:
            assert f"byte 0xff at offset {2 + 2 * letters}" in refusal(file)


def test_a_page_in_a_wrong_encoding_is_read_or_refused_by_the_one_that_it_names(
    tmp_path: Path,
) -> None:
    page = "<html><meta charset={}><p>{}"
    file = write(tmp_path / "a.html", page.format("utf-8", "déjà").encode("cp1252"))
    assert documents(file) == ["déjà"]
    assert report_of(file).notes == ["read as Windows-1252, since it is not utf-8"]
    named = write(tmp_path / "b.html", page.format("koi8-r", "Да").encode("koi8-r"))
    assert documents(named) == ["Да"]
    assert documents(named, encoding="latin1") != ["Да"]
    xml = '<?xml version="1.0" encoding="koi8-r"?><html><p>Да'
    assert documents(write(tmp_path / "c.html", xml.encode("koi8-r"))) == ["Да"]
    marked = write(tmp_path / "d.html", page.format("koi8-r", "Да").encode("utf-16"))
    assert documents(marked) == ["Да"]
