"""PDF to paragraphs and chapters, and parquet to rows: both are read in a process of their own."""

import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from minigpt import UserError
from minigpt.config import ReadingConfig
from minigpt.data.readers import Report, read_file

from ..texts import documents, refusal, write
from .made import parquet, pdf, pdf_of, scan, zstandard
from .reading import left_out

pytestmark = pytest.mark.long

LINE = "This is a line of a paragraph that is about as long as the others, and then"


def text_of(folder: Path, *pages: list[str], at_top: Sequence[str] = ()) -> str:
    """The one document of a PDF."""
    (text,) = documents(write(folder / "a.pdf", pdf(*pages, at_top=at_top)))
    return text


def test_lines_are_joined_to_paragraphs_also_from_page_to_page(tmp_path: Path) -> None:
    first = [LINE, LINE, "it ends here.", LINE]
    assert text_of(tmp_path, first, ["goes on", "Heading", LINE]) == (
        f"{LINE} {LINE} it ends here.\n\n{LINE} goes on\n\nHeading\n\n{LINE}"
    )


def test_hyphens_at_the_ends_of_lines_are_joined_as_elsewhere_in_the_text(tmp_path: Path) -> None:
    lines = [
        f"{LINE} exam-",
        f"ple and {LINE[:50]} well-",
        "known, as well-known as 1990-",
        "2000.",
    ]
    text = text_of(tmp_path, lines)
    assert "and then example and" in text and " well-known, as well-known" in text


def test_hyphens_before_a_capital_or_an_and_stay(tmp_path: Path) -> None:
    lines = [f"{LINE} Franco-", f"German, {LINE[:60]} Haupt-", f"und Nebensatz, {LINE[:50]} PRO-",
             "VIDED."]  # fmt: skip
    text = text_of(tmp_path, lines)
    assert "Franco-German," in text and "Haupt- und Nebensatz" in text and "PROVIDED." in text


def test_the_last_line_of_a_title_page_does_not_go_on(tmp_path: Path) -> None:
    assert text_of(tmp_path, ["The Crow", "Anna Fox"], ["Preface", LINE, LINE]) == (
        f"The Crow\n\nAnna Fox\n\nPreface\n\n{LINE} {LINE}"
    )


def test_a_paragraph_of_a_narrow_column_goes_on_on_the_next_page(tmp_path: Path) -> None:
    wide = [LINE] * 9
    narrow = ["It was the best of crows,", "it was the worst of Foxes,"]
    text = text_of(tmp_path, [*wide, "It ends."], narrow, ["Foxes too.", *wide])
    assert "the worst of Foxes, Foxes too." in text


def test_page_headers_and_numbers_are_left_out(tmp_path: Path) -> None:
    pages = [
        ["My Book", f"Page {n}", f"{LINE} {'abcde'[n]}", f"It is {'abcde'[n]}.", f"- {n} -"]
        for n in range(1, 5)
    ]
    text = text_of(tmp_path, *pages)
    assert "Book" not in text and "Page" not in text and "-" not in text and "It is d." in text
    assert left_out(tmp_path / "a.pdf") == {"page headers and numbers": 12}


def test_what_stands_beside_the_number_of_a_page_is_a_page_header(tmp_path: Path) -> None:
    """Each chapter has its own, on one page or two; the number is far from it."""
    pages = [[f"{'abcdef'[n]} {LINE}", f"The end of {'abcdef'[n]}."] for n in range(6)]
    heads = [f"Chapter {'abcdef'[n // 2]}" for n in range(6)]
    beside = [f"(17) Tj -500 0 Td ({head}) Tj".replace("17", str(n + 3))
              for n, head in enumerate(heads)]  # fmt: skip
    text = text_of(tmp_path, *pages, at_top=beside)
    assert "Chapter" not in text and not any(str(n) in text for n in range(3, 9))
    assert "The end of f." in text


def test_letters_printed_twice_to_look_bold_are_read_once(tmp_path: Path) -> None:
    twice = "".join(f"({letter}) Tj 0.2 0 Td ({letter}) Tj 6 0 Td " for letter in "Moon")
    text = text_of(tmp_path, ["A good book"], at_top=[twice])
    assert sorted(text.split()) == ["A", "Moon", "book", "good"]


def test_entries_of_a_table_of_contents_are_left_out(tmp_path: Path) -> None:
    contents = ["Contents", "1 The fox . . . . . . . . 3", "2 The crow ........ 12", "."]
    assert text_of(tmp_path, [*contents, LINE, LINE]) == f"{LINE} {LINE}"
    apart = ["Contents", "1 The fox", "2 The crow", "3 The bread", "3", "12", "20"]
    assert text_of(tmp_path, [*apart, LINE, LINE]) == f"{LINE} {LINE}"
    following = [f"{n} The fox . . . . . . {n}" for n in range(9)]
    assert text_of(tmp_path, [LINE, *following, "7", LINE]) == f"{LINE} {LINE}"


def test_signs_without_a_letter_are_left_out(tmp_path: Path) -> None:
    """pdfminer.six names each by its number."""
    assert text_of(tmp_path, ["Copyright c(cid:13) 2022 Fox"]) == "Copyright c 2022 Fox"


def test_each_chapter_of_the_outline_is_a_document(tmp_path: Path) -> None:
    pages = [[f"{n} The chapter {'abcdef'[n]}", *([LINE] * 20)] for n in range(6)]
    outline = [(n, f"The Chapter {'abcdef'[n]}") for n in range(6)]
    texts = documents(write(tmp_path / "a.pdf", pdf(*pages, outline=outline)))
    assert len(texts) == 6 and texts[3].startswith("3 The chapter d\n\nThis is")


def test_a_scan_is_named_as_one(tmp_path: Path) -> None:
    file = write(tmp_path / "scan.pdf", scan())
    assert refusal(file).startswith(f"{file} is a scan: its pages are pictures without text")


LOOPS = {
    "a page tree that holds itself": ["<< /Type /Catalog /Pages 2 0 R >>",
                                      "<< /Type /Pages /Kids [2 0 R] /Count 1 >>"],
    "a catalog that is its own pages": ["<< /Type /Catalog /Pages 1 0 R /Kids [1 0 R] >>"],
    "a reference to itself": ["<< /Type /Catalog /Pages 2 0 R >>", "2 0 R"],
}  # fmt: skip


@pytest.mark.parametrize("kind", LOOPS)
def test_a_pdf_that_loops_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.data.documents.apart.MOST_SECONDS", 1)
    file = write(tmp_path / "a.pdf", pdf_of(LOOPS[kind]))
    assert str(file) in refusal(file)


def test_a_truncated_pdf_is_read_as_far_as_it_goes_or_refused(tmp_path: Path) -> None:
    whole = pdf([LINE] * 5, [LINE] * 5)
    for kept in (20, len(whole) // 2):
        file = write(tmp_path / "a.pdf", whole[:kept])
        try:
            documents(file)
        except ValueError as error:
            assert str(file) in str(error) and "\n" not in str(error)


def test_a_reader_that_never_ends_or_crashes_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.pdf", pdf([LINE]))
    program = tmp_path / "python"
    for script, message in (
        ("exec sleep 60", "takes more than 1 seconds a page"),
        ("kill -9 $$", "needs too much memory, or crashed"),
        ("printf '[]\\n{\"te'", "its reader crashed"),
    ):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(sys, "executable", str(program))
        monkeypatch.setattr("minigpt.data.documents.apart.MOST_SECONDS", 1)
        assert message in refusal(file)


def test_too_much_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minigpt.data.documents.apart.MOST_MEMORY", 40 << 20)
    file = write(tmp_path / "a.pdf", pdf([LINE]))
    if sys.platform == "linux":
        message = refusal(file)
        assert "too much memory" in message or "damaged" in message


@pytest.mark.parametrize(
    ("library", "extra", "kind", "data"),
    [
        ("PDF (pdfminer.six)", "documents", "no_reader", b"%PDF-1.4\n"),
        ("parquet (pyarrow)", "parquet", "no_parquet", b"PAR1"),
        ("zstandard", "documents", "no_reader", zstandard(b"text")),
    ],
)
def test_a_missing_library_is_named(
    library: str,
    extra: str,
    kind: str,
    data: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for package in ("backports", "compression"):
        monkeypatch.setitem(sys.modules, package, None)

    file = write(tmp_path / "a.txt", data)
    with pytest.raises(UserError) as refused:
        documents(file)
    install = f'pip install "minigpt-text[{extra}]"'
    assert str(refused.value) == f"{file} needs a reader of {library}: {install}"
    assert refused.value.kind == kind


# Parquet


def test_each_row_of_a_parquet_file_is_a_document(tmp_path: Path) -> None:
    texts = [f"row {n}" for n in range(700)]
    file = write(
        tmp_path / "a.parquet", parquet({"id": list(range(702)), "text": [*texts, None, ""]})
    )
    report = Report(file)
    assert [document.text for document in read_file(file, ReadingConfig(), report)] == texts
    assert report.left_out == {"rows without text": 2}


def test_another_column_of_a_parquet_file_can_be_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", parquet({"title": ["a"], "body": ["b"]}))
    assert documents(file, text_field="body") == ["b"]
    assert refusal(file) == (
        f"{file} has no column 'text'; name one with --text-field: title, body"
    )


def test_a_column_of_bytes_holds_text_if_they_are_utf_8(tmp_path: Path) -> None:
    """As some programs write text."""
    values = ["naïve".encode(), b"\xff", b""]
    file = write(tmp_path / "a.parquet", parquet({"text": values}))
    report = Report(file)
    assert [document.text for document in read_file(file, ReadingConfig(), report)] == ["naïve"]
    assert report.left_out == {"rows without text": 2}


def test_a_parquet_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", parquet({"text": ["x" * 100_000] * 200}))
    assert "unpacks to too many times its size" in refusal(file)


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    whole = parquet({"text": ["a", "b"]})
    for kept in (4, len(whole) - 3):
        file = write(tmp_path / "a.parquet", whole[:kept])
        assert refusal(file).startswith(f"cannot read {file}: it is damaged (")


def test_lines_of_dots_words_and_signs_take_no_long_time(tmp_path: Path) -> None:
    """A pattern that tries all ways to read them would never end."""
    lines = [". " * 100 + "x", "x" * 2000, "-" * 2000, "1 " * 1000, f"{'x' * 2000}-", LINE]
    assert LINE in text_of(tmp_path, lines)
