"""Files and Python objects to documents of text: which files a name stands for, what names a text
(its fingerprint), what notices that it changed, and documents that come from Python.
"""

import gzip
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.data.corpus import Corpus, find_files, spooled
from minigpt.data.readers import BLOCK

from .texts import corpus, documents, refusal, write

law = settings(max_examples=50, deadline=None)

as_root = hasattr(os, "geteuid") and os.geteuid() == 0
unless_root = pytest.mark.skipif(as_root, reason="root may read everything")


READINGS: dict[str, Callable[[Corpus], object]] = {
    "pieces": lambda corpus: list(corpus.pieces()),
    "fingerprint": lambda corpus: corpus.fingerprint,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For generated texts, which are written over one another."""
    return tmp_path_factory.mktemp("texts")


# Which files


def test_one_file_is_one_document(tmp_path: Path) -> None:
    assert documents(write(tmp_path / "a.txt", "One\r\ntwo, é.\n")) == ["One\r\ntwo, é.\n"]


def test_files_are_read_in_the_order_given(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.txt", "first"), write(tmp_path / "b.md", "# Second")
    assert documents(b, a) == ["# Second", "first"]


def test_a_folder_is_searched_for_texts_in_sorted_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", "a/deep/er/c.TXT", "d.txt.gz", "c.jsonl.zst", "g.parquet"):
        write(tmp_path / name, json.dumps({"text": name}))
    for name in ("notes.rst", "a/code.py", "archive.gz", "txt", "e.txt.bak", "f.csv.gz"):
        write(tmp_path / name, "not these")
    (tmp_path / "folder.txt").mkdir()
    found = [str(f.relative_to(tmp_path)) for f in find_files((str(tmp_path),))]
    assert found == ["a/deep/er/c.TXT", "a/z.md", "b.txt", "c.jsonl.zst", "d.txt.gz", "g.parquet"]


def test_a_pattern_stands_for_its_files_in_sorted_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.md", "sub/d.txt"):
        write(tmp_path / name, name)
    (tmp_path / "folder.txt").mkdir()
    assert documents(tmp_path / "*.txt") == ["a.txt", "b.txt"]
    assert documents(tmp_path / "**" / "*.txt") == ["a.txt", "b.txt", "sub/d.txt"]


def test_a_name_that_looks_like_a_pattern_may_be_a_file(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "wrong")
    assert documents(write(tmp_path / "[a].txt", "right")) == ["right"]


def test_a_file_of_any_suffix_is_text_when_named(tmp_path: Path) -> None:
    assert documents(write(tmp_path / "script.py", "print()\n")) == ["print()\n"]
    assert documents(write(tmp_path / "README", "read me")) == ["read me"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input_can_be_read_twice(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    content = pack("piped é\n".encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    piped = corpus("-")
    for _ in range(2):
        assert "".join(piece.text for piece in piped.pieces()) == "piped é\n"


# The fingerprint


@given(content=st.binary(min_size=1), data=st.data())
@law
def test_another_byte_gives_another_fingerprint(
    folder: Path, content: bytes, data: st.DataObject
) -> None:
    before = corpus(write(folder / "a.txt", content)).fingerprint
    at, other = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(1, 255))
    changed = bytearray(content)
    changed[at] ^= other
    assert corpus(write(folder / "a.txt", bytes(changed))).fingerprint != before
    assert corpus(write(folder / "a.txt", content)).fingerprint == before


def test_a_byte_far_into_a_long_file_counts(tmp_path: Path) -> None:
    texts = ["a" * 2 * BLOCK + end for end in "bc"]
    one, other = (corpus(write(tmp_path / f"{text[-1]}.txt", text)) for text in texts)
    assert one.fingerprint != other.fingerprint


def test_order_bounds_field_and_kind_give_another_fingerprint(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.txt", "aa"), write(tmp_path / "b.txt", "ab")
    c, d = write(tmp_path / "c.txt", "a"), write(tmp_path / "d.txt", "aab")
    e = write(tmp_path / "e.jsonl", "aa")
    corpora = [corpus(*files) for files in ((a, b), (b, a), (c, d), (a,), (a, a), (e, b))]
    corpora.append(corpus(a, b, text_field="body"))
    assert len({each.fingerprint for each in corpora}) == len(corpora)


def test_a_file_that_moves_keeps_its_fingerprint(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "the text")
    before = corpus(file).fingerprint
    (tmp_path / "other").mkdir()
    assert corpus(file.rename(tmp_path / "other" / "b.txt")).fingerprint == before


# What cannot be read


@pytest.mark.parametrize("name", ["nothing.txt", "*.nothing", "no/such/folder", "a" * 300])
def test_a_name_without_a_file_is_refused(name: str, tmp_path: Path) -> None:
    assert refusal(tmp_path / name) == f"no such file: {tmp_path / name}"


def test_an_empty_name_is_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `train.py "$FILE"` without a FILE."""
    write(tmp_path / "unasked.txt", "text")
    monkeypatch.chdir(tmp_path)
    assert "no such file" in refusal("")


def test_one_missing_file_among_several_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such file: .*gone\.txt"):
        documents(write(tmp_path / "a.txt", "text"), tmp_path / "gone.txt")


def test_a_folder_without_text_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "image.png", b"\x89PNG")
    assert refusal(tmp_path).startswith(
        "no .txt, .md, .jsonl, .parquet file (or .gz or .zst of one)"
    )


@pytest.mark.parametrize("read", READINGS.values(), ids=READINGS.keys())
def test_a_file_that_has_gone_is_named(read: Callable[[Corpus], object], tmp_path: Path) -> None:
    file = write(tmp_path / "gone.txt", "text")
    found = corpus(file)
    file.unlink()
    with pytest.raises(UserError, match=r"cannot read .*gone\.txt: No such file"):
        read(found)


@unless_root
@pytest.mark.parametrize("read", READINGS.values(), ids=READINGS.keys())
def test_a_file_without_permission_is_named(
    read: Callable[[Corpus], object], tmp_path: Path
) -> None:
    found = corpus(write(tmp_path / "secret.txt", "text"))
    (tmp_path / "secret.txt").chmod(0)
    with pytest.raises(UserError, match=r"cannot read .*secret\.txt: Permission denied"):
        read(found)


@unless_root
@pytest.mark.parametrize("name", ["", "a.txt", "*.txt"])
def test_a_folder_without_permission_is_named(name: str, tmp_path: Path) -> None:
    closed = write(tmp_path / "closed" / "a.txt", "text").parent
    closed.chmod(0)
    try:
        refusal(closed / name)
    finally:
        closed.chmod(0o700)


# What changes while it is read


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("another"),
        lambda file: file.open("a").write("more"),
        lambda file: os.utime(file, ns=(0, 1)),
    ],
    ids=["written anew", "appended to", "written to at another time"],
)
def test_a_file_that_changes_after_its_fingerprint_is_named(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    a, b = write(tmp_path / "a.txt", "the text"), write(tmp_path / "b.txt", "the text")
    found = corpus(a, b)
    assert found.fingerprint
    found.check_unchanged()
    change(b)
    with pytest.raises(UserError, match=r"b\.txt changed while it was read"):
        found.check_unchanged()
    corpus(a, b).check_unchanged()


# Documents from Python


def read_again(documents_: Iterable[Any], text_field: str = "text") -> list[str]:
    with spooled(documents_, text_field) as file:
        found = documents(file, text_field=text_field)
    assert not file.exists()
    return found


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
@law
def test_documents_come_back_as_they_were(texts: list[str]) -> None:
    """Any iterable of texts or of rows, read once."""
    assert read_again(texts) == read_again(iter(texts)) == texts
    rows = ({"id": i, "body": text} for i, text in enumerate(texts))
    assert read_again(rows, text_field="body") == texts


def test_rows_of_a_hugging_face_dataset_are_documents() -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"text": ["a", "é\n"], "id": [1, 2]})
    assert read_again(rows) == read_again(rows.to_iterable_dataset()) == ["a", "é\n"]


@pytest.mark.parametrize("row", [5, None, b"bytes", {}, {"text": None}, {"text": 5}, ["a"]])
def test_a_row_without_text_is_named(row: Any) -> None:
    with pytest.raises(UserError, match="document 2: no text in field 'text'"):
        read_again(["a", row])


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(UserError, match="document 1: not"):
        read_again(["\ud800"])


def test_an_iterable_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        read_again("a" * (1 // n) for n in (1, 0))
    assert list(tmp_path.iterdir()) == []
