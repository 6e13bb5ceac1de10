"""Documents are data: a damaged one of any kind is read or refused in one line; no other exception,
no hang, no memory without end.

A few cases of each kind run with the other tests, thousands with `make test-fuzz`.
"""

import gzip
import io
import random
import zipfile
from pathlib import Path

import pytest

from minigpt import UserError
from minigpt.config import ReadingConfig
from minigpt.data.readers.cache import CACHE
from minigpt.data.readers.kinds import read_file

from ...test_hostile_files import assert_little_memory, damaged
from .made import CHAPTER, epub, notebook, opendocument, p, parquet, pdf, word, zipped, zstandard

PAGE = "<html><head><meta charset=utf-8></head><body><nav>n</nav><main><h1>t</h1><p>é"
RTF = r"{\rtf1\ansi{\fonttbl{\f0 A;}}\pard d\'e9j\'e0 \u8220?x\par{\footnote n}\cell\row}"
CHAPTERS = "".join(p(f"{n}", "berschrift1") + p(CHAPTER) for n in range(6))
LINES = ["The fox asked the crow for bread, and the crow said no. " * 2] * 9
FILES: dict[str, bytes] = {
    "a.docx": word(CHAPTERS),
    "a.odt": opendocument(f'<t:h t:outline-level="1">t</t:h><t:p>{CHAPTER}</t:p>'),
    "a.epub": epub({f"c{n}": f"<body><p>{CHAPTER}</p></body>" for n in range(6)}, ["c1", "c3"]),
    "a.html": f"{PAGE}<table><tr><td>a<td>b</table><ul><li>c".encode(),
    "a.rtf": RTF.encode(),
    "a.csv": 'id,text\n1,"a ""b"""\n2,é\n'.encode(),
    "a.tsv": b"id\ttext\n1\ta\n",
    "a.ipynb": notebook(("markdown", "# t"), ("code", "1")).encode(),
    "a.jsonl": b'{"text": "a"}\n{"text": "b"}\n',
    "a.txt": "\ufeffdéjà\r\n<|endoftext|>\r\nvu".encode("utf-16"),
    "b.txt": "*** START OF THE PROJECT GUTENBERG EBOOK A ***\ndéjà vu".encode("cp1252"),
    "a.zip": zipped({"a.txt": "a", "b.docx": word(p("b")), "c.csv": "text\nc, and d"}),
    "a.txt.gz": gzip.compress(CHAPTER.encode()),
    "a.txt.zst": zstandard(CHAPTER.encode()),
}
APART = {  # read in a process of their own, which takes time
    "a.pdf": pdf(LINES, LINES, outline=[(0, "The fox"), (1, "The crow")]),
    "a.parquet": parquet({"text": ["a", "b", None]}),
}


def check(name: str, count: int, seed: int, folder: Path) -> None:
    """Damage a file `count` times and read it."""
    original = {**FILES, **APART}[name]
    draw = random.Random(f"{name} {seed}")
    file = folder / name
    for number in range(count):
        data = inner_damaged(original, draw) if draw.random() < 0.5 else damaged(original, draw)
        file.write_bytes(data)
        try:
            for document in read_file(file, ReadingConfig()):
                document.text.encode()
        except UserError as error:
            assert "\n" not in str(error), (number, data[:200])
        CACHE.forget()
    assert_little_memory()


def inner_damaged(data: bytes, draw: random.Random) -> bytes:
    """A zip file of which a member is damaged before it is packed; other files as usual."""
    if not data.startswith(b"PK"):
        return damaged(data, draw)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = draw.choice(sorted(members))
    if len(members[name]) >= 8:
        members[name] = damaged(members[name], draw)
    return zipped(members)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_document_is_read_or_refused(name: str, tmp_path: Path) -> None:
    check(name, 30, 1, tmp_path)


@pytest.mark.parametrize("name", APART)
def test_a_damaged_pdf_or_parquet_file_is_read_or_refused(name: str, tmp_path: Path) -> None:
    check(name, 1, 1, tmp_path)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", FILES)
def test_thousands_of_damaged_documents(name: str, tmp_path: Path) -> None:
    check(name, 400, 2, tmp_path)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", APART)
def test_many_damaged_pdf_and_parquet_files(name: str, tmp_path: Path) -> None:
    check(name, 40, 2, tmp_path)
