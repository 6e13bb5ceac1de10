"""`minigpt read` prints what would be trained on, and a table; a training says its essence."""

from pathlib import Path

import pytest

from minigpt.config import TextConfig
from minigpt.data.corpus import whole_documents
from minigpt.data.source import find_source

from ..data.readers.made import CHAPTER, epub, p, scan, word
from ..data.texts import documents, write
from .conftest import Type, assert_refused


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files of several kinds, which is the current one."""
    monkeypatch.chdir(tmp_path)
    chapters = "".join(p(f"Chapter {n}", "berschrift1") + p(CHAPTER) for n in range(5))
    note = '<w:p><w:r><w:t>End.</w:t><w:footnoteReference w:id="1"/></w:r></w:p>'
    write(tmp_path / "novel.docx", word(chapters + note))
    write(tmp_path / "page.html", "<html><nav>Menu</nav><p>A page.</p></html>")
    write(tmp_path / "plain.txt", "plain é\n")
    write(tmp_path / "bad.docx", word(p("text"))[:-40])
    return tmp_path


def test_what_is_printed_is_what_would_be_trained_on(folder: Path, type_: Type) -> None:
    names = ("novel.docx", "page.html", "plain.txt")
    status, out, _ = type_("read", *names)
    source = find_source(TextConfig(files=names))
    assert status == 0
    assert out.endswith("\n<|endoftext|>\n\nplain é\n")
    printed = [text.strip() for text in out.split("<|endoftext|>")]
    assert printed == [text.strip() for text in whole_documents(source.training.pieces())]

    write(folder / "printed.txt", out)
    assert documents("printed.txt") == documents(*names)


def test_the_table_names_what_was_read_and_what_was_left_out(folder: Path, type_: Type) -> None:
    status, out, err = type_("read", "--summary", "novel.docx", "plain.txt", "bad.docx")
    rows = [" ".join(line.split()) for line in err.splitlines()]
    assert (status, out) == (0, "")
    assert rows[0] == "file kind characters documents left out"
    assert rows[1].startswith("novel.docx Word ") and rows[1].endswith(" 5 footnotes (1)")
    assert rows[2] == "plain.txt plain text 8 1 nothing"
    assert rows[3].startswith("bad.docx - - - all of it: ")
    assert rows[4].startswith("together: 6 documents, ")


def test_the_table_in_the_docs_is_what_the_command_prints(folder: Path, type_: Type) -> None:
    pages = {f"day{n}": f"<body><h1>{n} May</h1><p>{CHAPTER}</p></body>" for n in range(1, 8)}
    pages["nav"] = "<body><nav>1 May, 2 May</nav></body>"
    write(folder / "diary.epub", epub(pages, pages))
    article = f"<main><h1>The fox</h1><p>{CHAPTER}<sup><a href='#n1'>1</a></sup></p></main>"
    write(folder / "page.html", f"<html><nav>Menu</nav>{article}<footer>2026</footer></html>")
    write(folder / "scan.pdf", scan())

    docs = (Path(__file__).parents[2] / "docs/documents.md").read_text(encoding="utf-8")
    typed = "read --summary novel.docx diary.epub page.html scan.pdf"
    _, _, err = type_(*typed.split())
    assert f"$ minigpt {typed}\n{err}```" in docs


def test_a_bad_file_alone_is_an_error_and_among_several_it_is_left_out(
    folder: Path, type_: Type
) -> None:
    assert_refused(type_("read", "bad.docx"), "cannot read bad.docx")
    assert_refused(type_("read", "nothing.docx"), "no such file: nothing.docx")
    assert type_("read", "bad.docx", "plain.txt")[1] == "plain é\n"
    assert_refused(type_("read", "bad.docx", "bad.docx"), "cannot read bad.docx")
    assert_refused(type_("train", "--plan", "bad.docx"), "cannot read bad.docx")


def test_a_training_says_the_essence_in_two_lines(folder: Path, type_: Type) -> None:
    status, _, err = type_(
        "train novel.docx page.html bad.docx --steps 1 --init none --emb-dim 8 --num-layers 1 "
        "--num-heads 1 --context-length 8 --batch-size 2 --vocab-size 280 --num-evals 1"
    )
    assert status == 0, err
    at = err.index("  text ")
    first, second = err[at:].splitlines()[:2]
    assert first.split(maxsplit=1)[1].startswith("2 files (1 Word, 1 web page), 6 documents, ")
    assert second.strip() == "left out: footnotes (1), navigation (1)"
    assert "left out: cannot read bad.docx" in err


def test_the_encoding_can_be_named(folder: Path, type_: Type) -> None:
    write(folder / "old.txt", "żółć\n".encode("latin2"))
    assert type_("read", "old.txt", "--encoding", "latin2")[1] == "żółć\n"
    _, out, err = type_("read", "old.txt")
    assert out != "żółć\n" and "old.txt: read as Windows-1252" in err
    assert_refused(type_("read", "old.txt", "--encoding", "klingon"), "encoding must be")


def test_a_text_in_another_encoding_is_refused_and_a_wrong_byte_left_out(
    folder: Path, type_: Type
) -> None:
    write(folder / "ja.txt", ("カラスが木の上にいました。\n" * 9).encode("shift_jis"))
    assert_refused(type_("read", "ja.txt"), "name its encoding, as --encoding shift_jis")
    write(folder / "ru.txt", ("Ворона сидела на дереве.\n" * 9).encode("cp1251"))
    assert_refused(type_("read", "ru.txt"), "name its encoding, as --encoding cp1251")
    write(folder / "cut.txt", ("Déjà vu.\n" * 9 + "é").encode()[:-1])
    status, out, err = type_("read", "cut.txt")
    assert (status, out) == (0, "Déjà vu.\n" * 9)
    assert "cut.txt: left out 1 byte that is not UTF-8, in line 10" in err


def test_a_name_that_nobody_has_is_refused(folder: Path, type_: Type) -> None:
    turns = "".join(f"Anna: Where is day {n}?\n\nOtto: Here it is.\n\n" for n in range(20))
    write(folder / "talk.txt", turns)
    assert type_("read", "talk.txt", "--rename", "Otto=X")[1].startswith("Anna: Where is day 0?")
    refused = type_("read", "talk.txt", "--rename", "Ottto=X")
    assert_refused(refused, "--rename: there is no speaker 'Ottto'; there are Anna (20 turns)")
    for option in ("--anonymous", "--rename=Otto=X"):
        refused = type_("read", "plain.txt", option)
        assert_refused(refused, "is for chats, interviews and plays; none was recognised")


# Rows


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.csv"])
def test_one_row_without_text_does_not_refuse_a_file(name: str, folder: Path, type_: Type) -> None:
    rows = ['{"text": "The fox"}', '{"text": null}', '{"text": "The crow"}']
    files = {
        "rows.jsonl": "\n".join(rows),
        "rows.json": f"[{', '.join(rows)}]",
        "rows.csv": "sep=;\nid;text\n1;The fox\n2;\n3;The crow\n",
    }
    write(folder / name, files[name])
    status, out, err = type_("read", name)
    assert (status, out) == (0, "The fox\n\n<|endoftext|>\n\nThe crow\n")
    assert "rows without text (1)" in err


# Books of Project Gutenberg

SMALL_PRINT = "*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*"


def book(text: str) -> str:
    """A book of Project Gutenberg."""
    return (
        f"The Project Gutenberg eBook of {text}\n\nThis ebook is for the use of anyone.\n\n"
        f"*** START OF THE PROJECT GUTENBERG EBOOK {text.upper()} ***\n\n{text}\n\n"
        f"*** END OF THE PROJECT GUTENBERG EBOOK {text.upper()} ***\n\nFULL LICENSE\n\n"
        "Project Gutenberg eBooks are free, and you can\nsubscribe to hear about new eBooks.\n"
    )


def old_book(text: str) -> str:
    """One of before 2003."""
    header = f"*****The Project Gutenberg Etext of {text}*****\n\nPlease read this.\n"
    return f"{header}{SMALL_PRINT}\n\n{text}\n\nEnd of Project Gutenberg's {text}\n\n"


def test_of_books_joined_to_one_file_each_header_and_licence_is_left_out(
    folder: Path, type_: Type
) -> None:
    texts = ["The fox", "The crow", "The bread"]
    for make in (book, old_book):
        write(folder / "books.txt", "".join(map(make, texts)))
        status, out, err = type_("read", "books.txt")
        assert status == 0
        assert out.split("\n\n<|endoftext|>\n\n") == ["The fox", "The crow", "The bread\n"]
        assert " 3  Project Gutenberg's header and licence (3)" in err


@pytest.mark.parametrize("length", [1, 100_000])
def test_what_is_joined_to_a_book_stays(length: int, folder: Path, type_: Type) -> None:
    before = "My own text.\n" * length
    after = "And another one.\n" * length
    write(folder / "books.txt", f"{before}{book('The fox')}{after}")
    texts = type_("read", "books.txt")[1].split("<|endoftext|>")
    assert [text.strip() for text in texts] == [before.strip(), "The fox", after.strip()]


def test_a_book_whose_last_line_is_missing_stays_when_another_follows(
    folder: Path, type_: Type
) -> None:
    cut = book("The fox").partition("*** END")[0]
    write(folder / "books.txt", cut + book("The crow"))
    texts = type_("read", "books.txt")[1].split("<|endoftext|>")
    assert [text.strip() for text in texts] == ["The fox", "The crow"]


def test_books_in_pages_and_e_books_stay_too(folder: Path, type_: Type) -> None:
    books = book("The fox") + book("The crow")
    paragraphs = "".join(f"<p>{line}</p>" for line in books.splitlines())
    write(folder / "lines.html", f"<html><body>{paragraphs}</body></html>")
    write(folder / "whole.html", f"<html><body><pre>{books}</pre></body></html>")
    write(folder / "book.epub", epub({"all": f"<body>{paragraphs}</body>"}, ["all"]))
    for name in ("lines.html", "whole.html", "book.epub"):
        _, out, err = type_("read", name)
        words = out.replace("<|endoftext|>", "").split()
        assert words == "The fox The crow".split(), name
        assert "Project Gutenberg's header and licence (2)" in err


def test_a_play_whose_speakers_are_renamed_ends_before_the_licence(
    folder: Path, type_: Type
) -> None:
    turns = "".join(f"ANNA: Where is day {n}?\n\nOTTO: Here it is.\n\n" for n in range(20))
    write(folder / "play.txt", book("The play").replace("The play", turns))
    _, out, err = type_("read", "play.txt", "--anonymous")
    assert out.endswith("A: Where is day 19?\n\nB: Here it is.\n\n")
    assert "Project Gutenberg's header and licence (1)" in err
