"""Files and Python objects to documents of text, and which of them are set aside."""

import gzip
import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.config import TextConfig
from minigpt.data.corpus import Part, find_files, find_source, set_aside, split, spooled
from minigpt.data.readers import BLOCK

from .texts import corpus, documents, json_lines, refusal, write

law = settings(max_examples=50, deadline=None)


def test_a_folder_is_searched_for_what_is_text_by_its_content(tmp_path: Path) -> None:
    texts = ("a/code.py", "a/deep/er/c.TXT", "a/table.csv", "b", "d.txt.gz", "rows.jsonl")
    for name in (*texts, ".git/config", "a/.hidden"):
        write(tmp_path / name, "text")
    others = {"e.parquet": b"PAR1\0", "image.png": b"\x89PNG\0", "old.txt": "é".encode("latin1")}
    for name, content in others.items():
        write(tmp_path / name, content)
    (tmp_path / "folder.txt").mkdir()
    said: list[str] = []
    found = [str(f.relative_to(tmp_path)) for f in find_files((str(tmp_path),), said.append)]
    assert found == list(texts)
    (line,) = said
    assert line.startswith(f"left out of {tmp_path}") and line.endswith("image.png, old.txt")
    message = refusal(write(tmp_path / "images" / "image.png", b"\x89PNG").parent)
    assert message.startswith("there is no text in ")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("nvoel.txt", "novel.txt"), ("my", "'my text.md'"), ("Novel.text", "novel.txt")],
)
def test_a_file_that_might_be_meant_is_named(typed: str, meant: str, tmp_path: Path) -> None:
    for name in ("novel.txt", "my text.md"):
        write(tmp_path / name, "text")
    hint = meant.replace("'", f"'{tmp_path}/", 1) if "'" in meant else f"{tmp_path}/{meant}"
    assert refusal(tmp_path / typed).endswith(f"; did you mean {hint}?")


def test_a_pattern_stands_for_its_files_in_sorted_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.md", "sub/d.txt"):
        write(tmp_path / name, name)
    (tmp_path / "folder.txt").mkdir()
    assert documents(tmp_path / "*.txt") == ["a.txt", "b.txt"]
    assert documents(tmp_path / "**" / "*.txt") == ["a.txt", "b.txt", "sub/d.txt"]


def test_a_file_that_is_named_is_text_whatever_its_name(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "wrong")
    for name in ("[a].txt", "script.py", "README"):
        assert documents(write(tmp_path / name, f"text of {name}\n")) == [f"text of {name}\n"]


def test_standard_input_can_be_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("piped é".encode())))
    piped = corpus("-")
    assert list(piped.documents()) == list(piped.documents()) == [(0, "piped é")]


@pytest.mark.parametrize("name", ["nothing.txt", "*.nothing", "no/such/folder", "a" * 300, ""])
def test_a_name_without_a_file_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is an empty name the current folder, as in `train.py "$FILE"` without a FILE."""
    write(tmp_path / "unasked", "text")
    monkeypatch.chdir(tmp_path)
    assert refusal(name) == f"no such file: {name}"


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    found = corpus(write(tmp_path / "my.txt", "text"))
    (tmp_path / "my.txt").unlink()
    for read in (lambda: found.scan, lambda: list(found.documents())):
        with pytest.raises(UserError, match=r"cannot read .*my\.txt: No such file"):
            read()


@given(texts=st.lists(st.text("aé中🙂\n"), max_size=5))
@law
def test_a_scan_measures_the_text_however_it_is_stored(folder: Path, texts: list[str]) -> None:
    lines = json_lines(texts)
    stored = [
        corpus(write(folder / "a.jsonl", lines)),
        corpus(write(folder / "a.jsonl.gz", gzip.compress(lines.encode()))),
        corpus(*(write(folder / f"{i}.txt", text) for i, text in enumerate(texts))),
    ]
    for found in stored:
        scan = found.scan
        assert scan.text_bytes == len("".join(texts).encode())
        assert list(scan.lengths) == [len(text) for text in texts if text]
    assert len({found.scan.fingerprint for found in stored}) == 1


def test_a_long_document_comes_in_pieces_and_is_measured_whole(tmp_path: Path) -> None:
    found = corpus(write(tmp_path / "a.txt", "é" * BLOCK))
    assert max(len(text) for _, text in found.documents()) <= BLOCK / 2
    assert (found.scan.text_bytes, list(found.scan.lengths)) == (2 * BLOCK, [BLOCK])


def test_texts_documents_and_their_order_give_other_fingerprints(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.txt", "aa"), write(tmp_path / "b.txt", "ab")
    c, d = write(tmp_path / "c.txt", "a"), write(tmp_path / "d.txt", "aab")
    long, other = (write(tmp_path / f"long{c}.txt", "a" * 2 * BLOCK + c) for c in "bc")
    texts = ((a, b), (b, a), (c, d), (a,), (b,), (a, a), (long,), (other,))
    assert len({corpus(*files).scan.fingerprint for files in texts}) == len(texts)


# What is set aside

some_lengths = st.lists(st.integers(1, 100), min_size=2, max_size=60)
fractions = st.floats(0.01, 0.99)


@given(lengths=some_lengths, fraction=fractions)
@law
def test_the_share_set_aside_is_right_to_a_document(lengths: list[int], fraction: float) -> None:
    chosen = set_aside(lengths, fraction)
    aside = sum(length for length, is_aside in zip(lengths, chosen, strict=True) if is_aside)
    assert abs(aside - fraction * sum(lengths)) <= max(lengths)
    assert set(chosen) == {0, 1}  # at least one document on either side


def test_documents_set_aside_are_spread_over_the_text() -> None:
    chosen = set_aside([7] * 1000, 0.1)
    assert all(sum(chosen[i : i + 10]) == 1 for i in range(0, 1000, 10))


def test_of_few_documents_the_one_that_fits_best_is_set_aside() -> None:
    assert list(set_aside([1_000_000, 20_000], 0.1)) == [0, 1]
    assert list(set_aside([90_000, 1_000_000], 0.1)) == [1, 0]
    assert list(set_aside([5, 5], 0.1)) == [0, 1]
    assert list(set_aside([5, 5, 5], 0.9)) == [1, 1, 0]


def texts_of(part: Part) -> list[str]:
    """The documents of a part, which knows how many characters it has."""
    texts: dict[int, str] = {}
    for number, text in part.documents():
        assert text
        texts[number] = texts.get(number, "") + text
    assert sum(map(len, texts.values())) == part.characters
    return list(texts.values())


some_texts = st.lists(st.text("abc", min_size=1, max_size=30), min_size=2, max_size=9)


def divided(folder: Path, texts: list[str], **config: Any) -> tuple[list[str], list[str]]:
    """The documents to train on and to validate on, of one .jsonl file."""
    file = write(folder / "a.jsonl", json_lines(texts))
    text = TextConfig(files=(str(file),), **config)
    training, validation = split(find_source(text), text)
    return texts_of(training), texts_of(validation)


@given(texts=some_texts, fraction=fractions)
@law
def test_split_end_sets_aside_the_last_characters(
    folder: Path, texts: list[str], fraction: float
) -> None:
    training, validation = divided(folder, texts, validation_fraction=fraction, split="end")
    whole = "".join(texts)
    cut = int((1 - fraction) * len(whole))
    assert ("".join(training), "".join(validation)) == (whole[:cut], whole[cut:])
    assert len(training) + len(validation) <= len(texts) + 1


def test_the_part_of_a_long_text_that_is_used_comes_from_all_over_it(tmp_path: Path) -> None:
    """The same part each time; whole documents where these are short."""
    whole = "\n".join(f"{i:09}" for i in range(100_000))
    for texts in ([whole], [whole[i : i + 999] for i in range(0, 10**6, 1_000)]):
        file = write(tmp_path / "a.jsonl", json_lines(texts))
        config = TextConfig((str(file),), max_characters=100_000)
        for part, share in zip(split(find_source(config), config), (9, 1), strict=True):
            found = list(part.documents())
            assert found == list(part.documents())
            characters = sum(len(text) for _, text in found)
            assert characters <= 100_000 and characters > 10_000 * share - (1 << 14)
            if len(texts) > 1:
                assert {len(text) for _, text in found} == {999}
            places = [int(text.split("\n")[1]) for _, text in found]
            assert places == sorted(places) and places[-1] > 70_000


def test_an_eighth_is_to_validate_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minigpt.data.corpus._TO_VALIDATE", 1_000)
    source = find_source(TextConfig((str(write(tmp_path / "a.txt", "a" * 10**6)),)))
    for most, sizes in ((40_000, [40_000, 5_000]), (900, [900, 900]), (None, [900_000, 100_000])):
        parts = split(source, TextConfig(("a.txt",), max_characters=most))
        assert [part.size for part in parts] == sizes


def test_of_a_single_document_the_end_is_set_aside_with_either_split(tmp_path: Path) -> None:
    text = "é" * BLOCK + "abc"  # comes in more than one piece
    file, cut = str(write(tmp_path / "a.txt", text)), int(0.9 * len(text))
    for config in (TextConfig((file,), split="documents"), TextConfig((file,), split="end")):
        training, validation = split(find_source(config), config)
        assert texts_of(training) + texts_of(validation) == [text[:cut], text[cut:]]


def found_documents(*names: Path | str, **config: Any) -> list[str]:
    source = find_source(TextConfig(files=tuple(map(str, names)), **config))
    return [text for _, text in source.training.documents()]


def test_a_file_that_is_named_twice_is_one_document(tmp_path: Path) -> None:
    files = [write(tmp_path / "many" / f"{i}.txt", f"{i}") for i in range(3)]
    os.symlink(files[2], tmp_path / "same.txt")
    names = (tmp_path / "many", files[1], tmp_path / "same.txt")
    assert found_documents(*names) == ["0", "1", "2"]
    assert found_documents(*names, split="end") == ["0", "1", "2", "1", "2"]


def test_a_file_to_validate_on_is_not_trained_on(tmp_path: Path) -> None:
    files = [write(tmp_path / "many" / f"{i}.txt", f"{i}") for i in range(5)]
    validation = (str(files[2]),)
    assert found_documents(tmp_path / "many", validation=validation) == ["0", "1", "3", "4"]
    with pytest.raises(UserError, match=r"2\.txt is validation text too"):
        found_documents(files[2], validation=validation)


def read_again(given: Iterable[Any], text_field: str = "text") -> list[str]:
    with spooled(given, text_field) as file:
        found = documents(file, text_field=text_field)
    assert not file.exists()
    return found


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=5))
@law
def test_documents_come_back_as_they_were(texts: list[str]) -> None:
    """Any iterable of texts or of rows, which is read once."""
    assert read_again(texts) == read_again(iter(texts)) == texts
    rows = ({"id": i, "body": text} for i, text in enumerate(texts))
    assert read_again(rows, text_field="body") == texts


@pytest.mark.parametrize("row", [5, None, b"bytes", {}, {"text": None}, {"text": 5}, "\ud800"])
def test_a_row_without_text_is_named(row: Any) -> None:
    reason = "not JSON in UTF-8" if row == "\ud800" else "no text in field 'text'"
    with pytest.raises(UserError, match=f"document 2: {reason}"):
        read_again(["a", row])
