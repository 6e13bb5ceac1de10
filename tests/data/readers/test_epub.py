"""E-books to chapters."""

import io
import zipfile
from pathlib import Path

import pytest

from ..texts import documents, refusal, write
from .made import CHAPTER, epub, zipped
from .reading import left_out, report_of

NAMES = ["c1", "c2", "c3", "c4", "c5"]


def page(title: str, text: str = CHAPTER) -> str:
    return f"<body><section><h2>{title}</h2><p>{text}</p></section></body>"


def test_chapters_come_in_the_order_of_the_spine(tmp_path: Path) -> None:
    pages = {name: page(name) for name in sorted(NAMES, reverse=True)}
    texts = documents(write(tmp_path / "a.epub", epub(pages, NAMES)))
    assert [text.split("\n\n") for text in texts] == [[name, CHAPTER.strip()] for name in NAMES]


def test_a_title_goes_with_the_chapter_after_it(tmp_path: Path) -> None:
    pages = {"part": "<body><h1>Part One</h1></body>", **{name: page(name) for name in NAMES}}
    texts = documents(write(tmp_path / "a.epub", epub(pages, ["part", *NAMES])))
    assert texts[0].startswith("Part One\n\nc1\n\n") and len(texts) == 5


def test_a_book_of_few_files_is_cut_at_its_headings(tmp_path: Path) -> None:
    one = "".join(f"<h2>Chapter</h2><p>{CHAPTER}</p>" for _ in range(6))
    book = epub({"all": f"<body><h1>Title</h1>{one}</body>"}, ["all"])
    assert len(documents(write(tmp_path / "a.epub", book))) == 6


def test_what_is_around_the_chapters_is_left_out(tmp_path: Path) -> None:
    links = "".join(f'<p><a href="c{n}.xhtml">Chapter {n}</a></p>' for n in range(9))
    pages = {
        "nav": page("navigation"),
        "title": '<body epub:type="frontmatter titlepage"><h1>The Book</h1></body>',
        "imprint": '<body><section epub:type="imprint"><p>This ebook ...</p></section></body>',
        "rights": page("Rights", "Copyright © 2020. All rights reserved. ISBN 123"),
        "contents": page("Contents", "1 2 3"),
        "links": f"<body><p>The Book</p><h3>Table of Contents</h3>{links}</body>",
        "c1": '<body><h2>c1</h2><p>Text<a epub:type="noteref" href="#n">1</a>.</p></body>',
        **{name: page(name) for name in NAMES[1:]},
        "notes": '<body><section epub:type="endnotes"><p>a note</p></section></body>',
    }
    file = write(tmp_path / "a.epub", epub(pages, pages))
    texts = documents(file)
    assert texts[:2] == ["The Book", "c1\n\nText."] and len(texts) == 6
    assert left_out(file) == {
        "title pages": 1, "imprints": 2, "tables of contents": 2, "notes": 1,
        "entries of tables of contents": 9, "marks of notes": 1,
    }  # fmt: skip


def test_project_gutenberg_s_header_and_licence_are_left_out(tmp_path: Path) -> None:
    begin = "*** START OF THE PROJECT GUTENBERG EBOOK EMMA ***"
    end = "*** END OF THE PROJECT GUTENBERG EBOOK EMMA ***"
    pages = {name: page(name) for name in NAMES}
    pages["c1"] = f"<body><p>The Project Gutenberg eBook</p><p>{begin}</p><p>first</p></body>"
    pages["c5"] = f"<body><p>last</p><p>{end}</p><p>licence</p></body>"
    texts = documents(write(tmp_path / "a.epub", epub(pages, NAMES)))
    assert (texts[0], texts[-1], len(texts)) == ("first", "last", 5)


def test_contents_are_left_out_although_not_all_entries_are_links(tmp_path: Path) -> None:
    entries = "".join(f"<li><h4><a href='c2#{n}'>Part {n}</a></h4></li>" for n in range(6))
    rest = "<li>1. <ul><li><a href='c3'>Crows</a></li><li>Of bread</li></ul></li>"
    contents = f"<h2>Table of Contents</h2><ul>{entries}{rest}</ul>"
    items = "<ul><li>One</li><li>Two</li><li><a href='c3'>Three</a></li></ul>"
    pages = {"c1": f"<body><p>first</p>{contents}<h2>Crows</h2>{items}</body>"}
    text = "".join(documents(write(tmp_path / "a.epub", epub(pages, ["c1"]))))
    assert text == "first\n\nCrows\n\n- One\n- Two\n- Three"


def test_a_protected_book_is_refused_and_encrypted_fonts_do_no_harm(tmp_path: Path) -> None:
    def book(encrypted: str) -> bytes:
        xml = f"<e><d><CipherReference URI='{encrypted}'/></d></e>"
        return epub({name: page(name) for name in NAMES}, NAMES, **{"META-INF/encryption.xml": xml})

    file = write(tmp_path / "a.epub", book("OEBPS/text/c3.xhtml"))
    assert "is protected against copying (DRM)" in refusal(file)
    assert len(documents(write(tmp_path / "b.epub", book("OEBPS/font.otf")))) == 5


def test_names_that_lead_out_of_the_book_lead_nowhere(tmp_path: Path) -> None:
    write(tmp_path / "secret.xhtml", page("secret"))
    pages = {"../../../../secret": page("a"), **{name: page(name) for name in NAMES}}
    book = epub(pages, ["../../../../secret", *NAMES])
    text = "".join(documents(write(tmp_path / "books/a.epub", book)))
    assert "secret" not in text


def test_a_book_without_chapters_is_refused(tmp_path: Path) -> None:
    assert "names no chapters" in refusal(write(tmp_path / "a.epub", epub({"c1": ""}, [])))


def test_a_chapter_that_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    pages = {name: page(name, f"{CHAPTER} {name} ends.") for name in NAMES}
    data = epub(pages, NAMES)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo("OEBPS/text/c3.xhtml")
    place = info.header_offset + 30 + len(info.filename) + info.compress_size // 2
    damaged = data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]
    file = write(tmp_path / "a.epub", damaged)
    assert [text[:2] for text in documents(file)] == ["c1"]
    assert left_out(file) == {"chapters that cannot be read": 1}
    (note,) = report_of(file).notes
    assert note.startswith("OEBPS/text/c3.xhtml cannot be read: ")


def test_a_book_of_which_no_chapter_can_be_read_is_refused(tmp_path: Path) -> None:
    deep = {"c1": "<body>" + "<div>" * 1100 + "</body>"}
    assert "tags inside one another" in refusal(write(tmp_path / "a.epub", epub(deep, deep)))


def test_files_that_are_not_chapters_are_counted(tmp_path: Path) -> None:
    pages = {name: page(name) for name in (*NAMES, "old", "picture")}
    book = epub(pages, [*pages, "missing"])
    for before, after in (
        ('old.xhtml" media-type="application/xhtml+xml"',
         'old.xhtml" media-type="text/x-oeb1-document"'),
        ('picture.xhtml" media-type="application/xhtml+xml"',
         'picture.xhtml" media-type="image/svg"'),
    ):  # fmt: skip
        book = with_package(book, before, after)
    file = write(tmp_path / "a.epub", book)
    assert [text[:3].strip() for text in documents(file)] == [*NAMES, "old"]
    assert left_out(file) == {"parts that are no text": 1, "chapters that are missing": 1}


def test_what_is_outside_the_order_of_reading_is_read_in_its_place_unless_it_is_notes(
    tmp_path: Path,
) -> None:
    """Books say so of chapters, too."""
    notes = '<body epub:type="endnotes"><p>a note</p></body>'
    book = epub({**{name: page(name) for name in NAMES}, "notes": notes}, [*NAMES, "notes"])
    for name in ("c3", "notes"):
        book = with_package(book, f'idref="{name}"', f'idref="{name}" linear="no"')
    file = write(tmp_path / "a.epub", book)
    assert [text[:2] for text in documents(file)] == NAMES
    assert left_out(file) == {"notes": 1}


def test_a_part_that_cannot_be_read_may_name_another_in_its_place(tmp_path: Path) -> None:
    """Perhaps one that names a third; or itself, in a circle."""
    book = epub({name: page(name) for name in (*NAMES, "loop")}, [*NAMES[:4], "loop"])
    for name, instead in (("c1", "c2"), ("c2", "c5"), ("loop", "loop")):
        kind = 'media-type="application/xhtml+xml"'
        before = f'{name}.xhtml" {kind}'
        after = f'{name}.xhtml" media-type="application/pdf" fallback="{instead}"'
        book = with_package(book, before, after)
    book = with_package(book, '<itemref idref="c2"/>', "")
    file = write(tmp_path / "a.epub", book)
    text = "".join(documents(file))
    assert [text.count(f"{name}\n") for name in NAMES] == [0, 0, 1, 1, 1]
    assert text.startswith("c5")
    assert left_out(file) == {"parts that are no text": 1}


def with_package(book: bytes, before: str, after: str) -> bytes:
    """A book with something else in the file that describes it."""
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    package = files["OEBPS/book.opf"].decode()
    assert before in package
    return zipped({**files, "OEBPS/book.opf": package.replace(before, after)})


def test_a_chapter_without_text_is_counted_once(tmp_path: Path) -> None:
    """Under what it is, where it says so."""
    pages = {name: page(name) for name in NAMES}
    pages["empty"] = "<body><div/></body>"
    pages["cover"] = '<body epub:type="cover"><p>The Book</p></body>'
    file = write(tmp_path / "a.epub", epub(pages, pages))
    assert len(documents(file)) == 5
    assert left_out(file) == {"chapters without text": 1, "covers": 1}


def test_names_of_files_may_be_written_in_percents_and_with_a_part(tmp_path: Path) -> None:
    pages = {**{name: page(name) for name in NAMES}, "c 6": page("c6")}
    book = epub(pages, [*pages, "c1"])
    book = with_package(book, "text/c 6.xhtml", "text/c%206.xhtml#begin")
    book = with_package(book, 'href="text/c2.xhtml"', 'href="../OEBPS/./text/c2.xhtml"')
    texts = documents(write(tmp_path / "a.epub", book))
    assert [text[:2] for text in texts] == [*NAMES, "c6"]
    xml = "<e><d><CipherReference URI='OEBPS/text/c%206.xhtml'/></d></e>"
    names = {"META-INF/encryption.xml": xml}
    locked = with_package(epub(pages, pages, **names), "text/c 6.xhtml", "text/c%206.xhtml")
    assert "protected" in refusal(write(tmp_path / "b.epub", locked))


def test_a_book_of_five_files_is_a_document_each_and_of_four_one(tmp_path: Path) -> None:
    pages = {name: f"<body><p>{name} {CHAPTER}</p></body>" for name in NAMES}
    for count, found in ((5, 5), (4, 1)):
        book = epub(pages, NAMES[:count])
        assert len(documents(write(tmp_path / f"{count}.epub", book))) == found


def test_titles_at_the_end_go_with_no_chapter(tmp_path: Path) -> None:
    pages = {
        "part": "<body><h1>Part</h1><h2>One</h2></body>", **{name: page(name) for name in NAMES},
        "end": "<body><h1>The end</h1></body>",
    }  # fmt: skip
    texts = documents(write(tmp_path / "a.epub", epub(pages, pages)))
    assert len(texts) == 5
    assert texts[0].startswith("Part\n\nOne\n\nc1\n\n") and "The end" not in texts[-1]


def test_the_kind_of_a_zip_file_is_an_e_book_by_one_of_two_signs(tmp_path: Path) -> None:
    book = epub({name: page(name) for name in NAMES}, NAMES)
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for without in ("mimetype", "none"):
        kept = {name: data for name, data in files.items() if name != without}
        assert len(documents(write(tmp_path / "a.zip", zipped(kept)))) == 5
    del files["META-INF/container.xml"]
    assert "it has no 'META-INF/container.xml' inside" in refusal(
        write(tmp_path / "b.zip", zipped(files))
    )
    files["META-INF/container.xml"] = b"<container/>"
    assert "the book is not described" in refusal(write(tmp_path / "c.zip", zipped(files)))


def test_notes_and_lists_of_pages_in_a_chapter_are_left_out_and_its_pictures_titles_stay(
    tmp_path: Path,
) -> None:
    body = (
        "<body><h2>c1</h2><p>Text<span epub:type='pagebreak'>12</span> goes on.</p>"
        "<figure><figcaption>A crow</figcaption></figure>"
        "<aside epub:type='footnote'><p>no</p></aside><nav epub:type='page-list'><p>1</p></nav>"
        "<header><p>stays</p></header><aside><p>stays too</p></aside></body>"
    )
    file = write(tmp_path / "a.epub", epub({"c1": body}, ["c1"]))
    assert documents(file) == ["c1\n\nText goes on.\n\nA crow\n\nstays\n\nstays too"]
    assert left_out(file) == {"page numbers": 1, "notes": 1, "tables of contents": 1}


@pytest.mark.parametrize(
    ("links", "others", "stays"), [(4, 0, True), (5, 0, False), (5, 5, False), (5, 6, True)]
)
def test_five_links_in_a_row_that_are_half_of_a_list_are_a_table_of_contents(
    links: int, others: int, stays: bool, tmp_path: Path
) -> None:
    items = "<li><a href='c.xhtml'>Crows</a></li>" * links + "<li>bread</li>" * others
    page = f"<body><p>x</p><h2>Contents</h2><ul>{items}</ul><p>text</p></body>"
    file = write(tmp_path / "a.epub", epub({"c1": page}, ["c1"]))
    (text,) = documents(file)
    assert ("Crows" in text) == ("Contents" in text) == stays
    assert text.endswith("text")
