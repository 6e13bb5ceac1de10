"""Zip archives, and what is packed: read as if it lay in a folder, within limits."""

import gzip
import io
import os
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from ...conftest import unix_only
from ..texts import documents, refusal, write
from .made import epub, opendocument, p, parquet, word, zipped, zstandard
from .reading import report_of

MANY = b"a" * (2 << 20)


@pytest.fixture(autouse=True)
def _little_is_always_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte instead of ten, which takes less time."""
    monkeypatch.setattr("minigpt.data.readers.content.ALWAYS_UNPACKED", 1 << 20)


def test_an_archive_is_read_like_a_folder(tmp_path: Path) -> None:
    data = zipped(
        {
            "b/novel.docx": word(p("novel")), "a.txt": "plain", "c.csv": "text\nrow",
            "d.txt.gz": gzip.compress(b"packed"), "image.png": b"\x89PNG\0", "empty/": "",
            "__MACOSX/a.txt": "no", "b/.hidden": "no", "e.zip": zipped({"x.txt": "no"}),
        }
    )  # fmt: skip
    file = write(tmp_path / "all.zip", data)
    assert documents(file) == ["plain", "novel", "row", "packed"]
    report = report_of(file)
    assert report.kind == "archive (2 plain text, 1 Word, 1 table)"
    assert report.files_left_out == [
        f"{file}/e.zip is an archive in an archive; unpack it first",
        f"{file}/image.png is a picture (PNG)",
    ]
    assert documents(write(tmp_path / "other.txt", data)) == documents(file)


def test_a_file_in_an_archive_may_have_an_empty_name(tmp_path: Path) -> None:
    data = zipped({"x": "text"}).replace(b"x", b"\0")  # zipfile cuts a name at a NUL
    assert documents(write(tmp_path / "a.zip", data)) == ["text"]


def test_a_document_in_an_archive_is_named_with_it(tmp_path: Path) -> None:
    file = write(tmp_path / "a.zip", zipped({"rows.csv": "other\nrow", "b.txt": "b"}))
    (member,) = report_of(file).files_left_out
    assert member.startswith(f"{file}/rows.csv has no column 'text'")
    alone = write(tmp_path / "b.zip", zipped({"rows.csv": "other\nrow"}))
    assert "holds no text" in refusal(alone) and "rows.csv has no column" in refusal(alone)


def test_nothing_outside_an_archive_is_read_or_written(tmp_path: Path) -> None:
    write(tmp_path / "secret.txt", "secret")
    names = ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "C:\\secret.txt", "x" * 1000]
    file = write(tmp_path / "in/a.zip", zipped({name: "inside" for name in names}))
    before = sorted(tmp_path.rglob("*"))
    assert documents(file) == ["inside"] * len(names)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_documents_are_read_packed_too(ending: str, tmp_path: Path) -> None:
    pack = gzip.compress if ending == "gz" else zstandard
    for name, data in (
        ("a.docx", word(p("text"))),
        ("a.odt", opendocument("<t:p>text</t:p>")),
        ("a.epub", epub({"c": "<body><p>text</p></body>"}, ["c"])),
        ("a.html", b"<html><p>text</p></html>"),
        ("a.csv", b"text\ntext\n"),
        ("a.jsonl", b'{"text": "text"}\n'),
        ("a.rtf", rb"{\rtf1 text}"),
        ("a.txt", b"text"),
        ("a.zip", zipped({"a.txt": "text"})),
    ):
        assert documents(write(tmp_path / f"{name}.{ending}", pack(data))) == ["text"], name
        assert documents(write(tmp_path / name, pack(data))) == ["text"], name


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_file_packed_in_several_parts_is_read_whole(ending: str, tmp_path: Path) -> None:
    pack = gzip.compress if ending == "gz" else zstandard
    packed = write(tmp_path / f"a.txt.{ending}", pack(b"The fox ") + pack(b"and the crow"))
    assert documents(packed) == ["The fox and the crow"]


# What is larger inside


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_packed_file_that_unpacks_to_too_much_is_refused(ending: str, tmp_path: Path) -> None:
    pack = gzip.compress if ending == "gz" else zstandard
    file = write(tmp_path / f"a.txt.{ending}", pack(MANY))
    assert "unpacks to more than 200 times its size" in refusal(file)
    assert len(documents(file, raise_limits=100)[0]) == len(MANY)
    jsonl = write(tmp_path / f"a.jsonl.{ending}", pack(MANY))
    assert "unpacks to more than 200 times its size" in refusal(jsonl)


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.zip", zipped({"a.txt": MANY}))
    assert "unpacks to more than 200 times its size" in refusal(file)
    assert len(documents(file, raise_limits=10)[0]) == len(MANY)

    monkeypatch.setattr("minigpt.data.readers.archive.MOST_UNPACKED", 1000)
    for name, data in (("b.zip", zipped({"a": "x" * 1001})), ("b.docx", word(p("x" * 1000)))):
        assert "is larger than 0 MB inside" in refusal(write(tmp_path / name, data))
    monkeypatch.setattr("minigpt.data.readers.archive.MOST_MEMBERS", 3)
    many = write(tmp_path / "c.zip", zipped({f"{n}": "" for n in range(4)}))
    assert "holds more than 3 files" in refusal(many)


@pytest.mark.parametrize("form", ["gz", "zst", "docx"])
def test_all_that_is_packed_in_an_archive_shares_one_limit(form: str, tmp_path: Path) -> None:
    """Each file alone would be within its own limit."""
    text = "a" * (900 << 10)
    member = {
        "gz": lambda: gzip.compress(text.encode()),
        "zst": lambda: zstandard(text.encode()),
        "docx": lambda: word(p(text)),
    }[form]()
    one = write(tmp_path / "one.zip", zipped({f"0.{form}": member}))
    assert documents(one) == [text]
    some = write(tmp_path / "some.zip", zipped({f"{n}.{form}": member for n in range(4)}))
    assert "unpacks to more than 200 times its size" in refusal(some)
    assert documents(some, raise_limits=10) == [text] * 4


@pytest.mark.usefixtures("read_in_process")
def test_rows_of_parquet_in_an_archive_share_its_limit_too(tmp_path: Path) -> None:
    texts = ["a" * (300 << 10)]
    files = {f"{n}.parquet": parquet({"text": texts}) for n in range(4)}
    report = report_of(write(tmp_path / "some.zip", zipped(files)))
    assert report.documents == 3
    assert "3.parquet unpacks to too many times its size" in report.files_left_out[0]


def test_an_archive_that_lies_about_sizes_yields_no_more_than_it_says(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.txt": MANY}))
    for place in (22, data.find(b"PK\1\2") + 24):  # the size in both headers
        data[place : place + 4] = (100).to_bytes(4, "little")
    message = refusal(write(tmp_path / "a.zip", bytes(data)))
    assert "CRC" in message or "damaged" in message


def test_a_document_too_large_to_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("content", "archive"):
        monkeypatch.setattr(f"minigpt.data.readers.{module}.MOST_WHOLE", 10)
    for name, data in (
        ("a.html", b"<html><p>text</p></html>"),
        ("a.docx", word(p("text"))),
        ("a.epub", epub({"c": "<p>text</p>"}, ["c"])),
    ):
        assert "is larger than 0 MB inside" in refusal(write(tmp_path / name, data))


def test_memory_stays_flat(tmp_path: Path) -> None:
    """Of 16 MB unpacked, a few blocks are held."""
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name in ("a.txt", "b.txt"):
            archive.writestr(name, ("word " * 20 + "\n") * 80_000)
    tracemalloc.start()
    try:
        report_of(file)
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()


# What is damaged


def test_truncated_archives_are_refused(tmp_path: Path) -> None:
    whole = zipped({"a.txt": "text" * 1000, "b.docx": word(p("text"))})
    for kept in range(4, len(whole), 37):
        file = write(tmp_path / "a.zip", whole[:kept])
        assert refusal(file).startswith(f"cannot read {file}: ")


@pytest.mark.parametrize("method", ["ZIP_DEFLATED", "ZIP_BZIP2", "ZIP_LZMA"])
def test_a_damaged_file_in_an_archive_is_left_out(method: str, tmp_path: Path) -> None:
    """However it is packed; the others are read."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", getattr(zipfile, method)) as archive:
        archive.writestr("a.txt", "the fox " * 500)
        archive.writestr("b.txt", "the crow")
    data = bytearray(held.getvalue())
    begin = data.find(b"a.txt") + 5
    data[begin + 9 : begin + 30] = bytes(21)
    file = write(tmp_path / "a.zip", data)
    (left_out,) = report_of(file).files_left_out
    assert left_out.startswith(f"cannot read {file / 'a.txt'}: ")
    assert documents(file) == ["the crow"]


def test_a_protected_archive_is_refused(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.txt": "text"}))
    for place in (6, data.find(b"PK\1\2") + 8):  # the flag in both headers
        data[place] |= 1
    assert "is protected by a password" in refusal(write(tmp_path / "a.zip", bytes(data)))


ENTITIES = {
    "laughs": '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>',
    "external": '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
    "parameter": '<!DOCTYPE a [<!ENTITY % a SYSTEM "http://127.0.0.1:9/a">%a;]>',
}


@pytest.mark.parametrize("kind", ENTITIES)
def test_entities_in_xml_are_refused_and_nothing_outside_is_read(kind: str, tmp_path: Path) -> None:
    declared = ENTITIES[kind]
    made = {
        "a.docx": word("", **{"word/document.xml": f"{declared}<a>&a;</a>"}),
        "b.docx": word(p("text"), **{"word/styles.xml": f"{declared}<a>&a;</a>"}),
        "a.odt": zipped(
            {
                "mimetype": "application/vnd.oasis.opendocument.text",
                "content.xml": f"{declared}<a>&a;</a>",
            }
        ),
        "a.epub": epub({}, [], **{"OEBPS/book.opf": f"{declared}<a>&a;</a>"}),
        "b.epub": epub({}, [], **{"META-INF/container.xml": f"{declared}<a>&a;</a>"}),
    }
    for name, data in made.items():
        assert "declares entities in its XML" in refusal(write(tmp_path / name, data)), name

    page = f"{declared.replace('a [', 'html [')}<html><p>&a; text</p></html>"
    (text,) = documents(write(tmp_path / "a.html", page))
    assert text.endswith("&a; text") and "root" not in text


def test_deep_xml_is_refused(tmp_path: Path) -> None:
    deep = "<a>" * 10_000 + "</a>" * 10_000
    file = write(tmp_path / "a.docx", word("", **{"word/document.xml": deep}))
    assert "more than 1,000 tags inside one another" in refusal(file)


def test_a_zip_file_with_two_files_of_a_name_reads_both(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("a.txt", "one")
        archive.writestr("a.txt", "two")
    assert documents(write(tmp_path / "a.zip", packed.getvalue())) == ["one", "two"]


def test_what_is_said_of_the_files_of_an_archive_is_said_of_it(tmp_path: Path) -> None:
    note = '<w:p><w:r><w:t>x</w:t><w:footnoteReference w:id="1"/></w:r></w:p>'
    files = {"a.docx": word(note), "b/c.docx": word(note * 2), "d.txt": "déjà".encode("cp1252")}
    file = write(tmp_path / "a.zip", zipped(files))
    report = report_of(file)
    assert dict(report.left_out) == {"footnotes": 3}
    assert report.notes == [
        f"{file}/d.txt: read as Windows-1252, since it is not UTF-8 (--encoding names another)"
    ]
    assert report.kind == "archive (2 Word, 1 plain text)"


def test_hidden_files_and_folders_of_an_archive_are_none_of_it(tmp_path: Path) -> None:
    names = [".a", "b/.git/c", "__MACOSX/._d", "e/..", "./f", "../g", "h/__MACOSX/i", "j/"]
    file = write(tmp_path / "a.zip", zipped(dict.fromkeys(names, "")
                                            | {name: name for name in names[:-1]}))  # fmt: skip
    assert sorted(documents(file)) == ["../g", "./f", "e/..", "h/__MACOSX/i"]
    assert report_of(file).files_left_out == []


def test_an_archive_without_files_has_no_text(tmp_path: Path) -> None:
    file = write(tmp_path / "a.zip", zipped({"x/": ""}))
    assert documents(file, write(tmp_path / "b.txt", "b")) == ["b"]
    assert report_of(file).kind == "archive ()"


def test_so_many_times_its_size_may_a_file_be_and_so_much_always(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.data.readers.content.ALWAYS_UNPACKED", 1000)
    packed = gzip.compress(b"a" * 1000)
    assert len(packed) * 200 > 1001
    monkeypatch.setattr("minigpt.data.readers.content.MOST_TIMES", 1)
    assert len(documents(write(tmp_path / "a.gz", packed))[0]) == 1000
    more = write(tmp_path / "b.gz", gzip.compress(b"a" * 1001))
    assert "unpacks to more than 1 times its size" in refusal(more)
    assert len(documents(more, raise_limits=1.5)[0]) == 1001


def test_a_part_of_a_document_leads_to_another_by_its_name() -> None:
    from minigpt.data.readers.archive import part_name

    for name, base, found in (
        ("styles.xml", "word/document.xml", "word/styles.xml"),
        ("/word/a.xml", "x/y.xml", "word/a.xml"), ("../a.xml", "x/y/z.xml", "x/a.xml"),
        ("a.xml", "", "a.xml"), ("../../a.xml", "x/y.xml", "../a.xml"),
    ):  # fmt: skip
        assert part_name(name, base) == found


@unix_only
def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    assert "is a pipe" in refusal(tmp_path / "a.txt")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    from minigpt import UserError
    from minigpt.config import ReadingConfig
    from minigpt.data.readers.content import Content

    for name in ("missing", "a\0b"):
        with pytest.raises(UserError, match=r"^cannot read .*(No such file|null byte)"):
            Content.of_file(tmp_path / name, ReadingConfig())
