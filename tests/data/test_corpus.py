"""Files and Python objects to documents of text, and which of them are set aside."""

import builtins
import errno
import glob
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
from minigpt.data.corpus import Part, Piece, encode
from minigpt.data.files import find_files
from minigpt.data.readers.content import BLOCK
from minigpt.data.readers.document import without_invisible
from minigpt.data.source import find_source, set_aside, split
from minigpt.data.temporary import spooled
from minigpt.tokenizer import CharacterTokenizer

from .texts import corpus, documents, json_lines, refusal, write

law = settings(max_examples=20, deadline=None)


def test_a_folder_is_searched_for_what_is_text_by_its_content(tmp_path: Path) -> None:
    texts = (
        "a/code.py",
        "a/deep/er/c.TXT",
        "a/table.csv",
        "b",
        "d.txt.gz",
        "old.txt",
        "rows.jsonl",
    )
    for name in (*texts, ".git/config", "a/.hidden"):
        write(tmp_path / name, "text")
    write(tmp_path / "old.txt", "é".encode("latin1"))
    others = {"data.bin": b"\1\2\0", "image.png": b"\x89PNG", "pixel.png": b"\x89PNG\0"}
    for name, content in others.items():
        write(tmp_path / name, content)
    (tmp_path / "folder.txt").mkdir()
    said: list[str] = []
    found = [str(f.relative_to(tmp_path)) for f in find_files((str(tmp_path),), said.append)]
    assert found == list(texts)
    lefts = [line.removeprefix(f"left out of {tmp_path}, since it is ") for line in said]
    picture = "a picture (PNG): image.png, pixel.png"
    assert lefts == ["not text: it has a NUL byte at offset 2: data.bin", picture]
    message = refusal(write(tmp_path / "images" / "image.png", b"\x89PNG").parent)
    assert message.startswith("there is no text in ")


def test_a_folder_is_searched_once_where_links_lead_back_to_it(tmp_path: Path) -> None:
    """With two such links there are 2^40 ways to a file."""
    for name in ("a.txt", "deep/b.txt"):
        write(tmp_path / "texts" / name, name)
    for link, target in (("itself", "."), ("deep/up", ".."), ("again", "deep"), ("c.txt", "a.txt")):
        os.symlink(target, tmp_path / "texts" / link)
    os.link(tmp_path / "texts/a.txt", tmp_path / "texts/d.txt")
    expected = ["a.txt", "deep/b.txt"]
    for name in ("texts", "texts/**", "texts/**/*.txt", "**/*.txt", "texts/itself/itself"):
        found = find_files((str(tmp_path / name),))
        assert [file.read_text() for file in found] == expected, name


def test_patterns_of_folders_below_this_one_keep_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "b/c/d.txt", "b/e.md", ".git/f.txt"):
        write(tmp_path / name, "text")
    monkeypatch.chdir(tmp_path)
    for pattern in ("**/*.txt", "./**/*.txt", "b/**", "**", "b/**/c/*", "**/c/**/*.txt"):
        names = sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True)))
        assert list(find_files((pattern,))) == [Path(name) for name in names]


def test_runs_in_a_folder_are_no_text(tmp_path: Path) -> None:
    """`train.py .` would else learn from what an earlier run wrote."""
    write(tmp_path / "my.txt", "text")
    for run in ("runs/my", "runs/my-2", "export"):
        for name in ("config.json", "model.safetensors", "metrics.jsonl", "checkpoint/a.json"):
            write(tmp_path / run / name, "{}")
    said: list[str] = []
    assert find_files((str(tmp_path),), said.append) == (tmp_path / "my.txt",)
    (line,) = said
    assert line.startswith(f"left out of {tmp_path}, since it is a run or a model: ")
    assert all(str(tmp_path / run) in line for run in ("runs/my", "runs/my-2", "export"))
    assert find_files((str(tmp_path / "runs/my/config.json"),))
    assert "there is no text in" in refusal(tmp_path / "runs")


def forbid(monkeypatch: pytest.MonkeyPatch, *places: Path) -> None:
    """Refuse to read these files and folders, as the system does for others than root."""
    forbidden = set(map(str, places))

    def unless_forbidden(action: Any, reads: bool) -> Any:
        def checked(path: Any, *others: Any, **more: Any) -> Any:
            is_below = any(str(path).startswith(f"{place}/") for place in forbidden)
            if is_below or (reads and str(path) in forbidden):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return action(path, *others, **more)

        return checked

    monkeypatch.setattr(os, "stat", unless_forbidden(os.stat, reads=False))
    monkeypatch.setattr(os, "scandir", unless_forbidden(os.scandir, reads=True))
    monkeypatch.setattr(builtins, "open", unless_forbidden(open, reads=True))


def test_what_may_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.txt", "secret.txt", "secret/b.txt", "rows.jsonl"):
        write(tmp_path / name, "text")
    secret = [tmp_path / name for name in ("secret.txt", "secret", "rows.jsonl")]
    forbid(monkeypatch, *secret)
    for pattern in (tmp_path, tmp_path / "**" / "*"):
        said: list[str] = []
        assert find_files((str(pattern),), said.append) == (tmp_path / "a.txt",)
        (line,) = said
        reason = "since it cannot be read (Permission denied)"
        assert line == f"left out of {pattern}, {reason}: {secret[1]}, rows.jsonl, secret.txt"
    for name in ("secret.txt", "secret", "secret/b.txt", "secret/*.txt"):
        assert refusal(tmp_path / name) == f"cannot read {tmp_path / name}: Permission denied"
    said = []
    with pytest.raises(UserError, match="there is no text in"):
        find_files((str(tmp_path / "s*t" / "*.txt"),), said.append)
    assert said[0].endswith(f"{reason}: {tmp_path / 'secret'}")


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
    assert [piece.text for piece in piped.pieces()] == ["piped é"]
    assert [piece.text for piece in piped.pieces()] == ["piped é"]


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
    for read in (lambda: found.scan, lambda: list(found.pieces())):
        with pytest.raises(UserError, match=r"cannot read .*my\.txt: No such file"):
            read()


@given(texts=st.lists(st.text("aé中🙂\n").filter(str.strip), max_size=5))
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
        assert list(scan.lengths) == [len(text) for text in texts]
    assert len({found.scan.fingerprint for found in stored}) == 1


def test_a_long_document_comes_in_pieces_and_is_measured_whole(tmp_path: Path) -> None:
    found = corpus(write(tmp_path / "a.txt", "é" * BLOCK))
    assert max(len(piece.text) for piece in found.pieces()) <= BLOCK / 2
    assert (found.scan.text_bytes, list(found.scan.lengths)) == (2 * BLOCK, [BLOCK])


def test_the_share_that_is_read_grows_to_all_by_the_sizes_of_the_files(tmp_path: Path) -> None:
    sizes = {"a.txt": 3 * BLOCK, "b.txt": BLOCK, "c.txt": BLOCK}
    files = [write(tmp_path / name, b"ab \n" * (size // 4)) for name, size in sizes.items()]
    write(files[1], b"\0" * BLOCK)  # is left out, and counts as read
    told: list[tuple[str, float]] = []
    corpus(*files).readable(lambda file, share: told.append((file.name, share)))
    assert told == sorted(told)
    assert {name: share for name, share in told if share in (0, 0.6, 0.8, 1)} == {
        "a.txt": 0.6,
        "b.txt": 0.6,
        "c.txt": 1,
    }


def test_a_piece_tells_the_line_of_each_of_its_characters() -> None:
    text = Piece(0, "a\nb\n\nc", Path("a.txt"), line=7)
    assert [text.line_at(index) for index in range(len(text.text))] == [7, 7, 8, 8, 9, 10]
    assert {text._replace(is_row=True).line_at(index) for index in range(6)} == {7}


def test_texts_documents_and_their_order_give_other_fingerprints(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.txt", "aa"), write(tmp_path / "b.txt", "ab")
    c, d = write(tmp_path / "c.txt", "a"), write(tmp_path / "d.txt", "aab")
    long, other = (write(tmp_path / f"long{c}.txt", "a" * 2 * BLOCK + c) for c in "bc")
    texts = ((a, b), (b, a), (c, d), (a,), (b,), (a, a), (long,), (other,))
    assert len({corpus(*files).scan.fingerprint for files in texts}) == len(texts)


@pytest.mark.parametrize(("name", "line"), [("unknown.txt", BLOCK // 4 + 3), ("unknown.jsonl", 2)])
def test_an_unknown_character_is_named_with_its_file_and_line(
    name: str, line: int, tmp_path: Path
) -> None:
    """Not with its position in one of the pieces that are encoded side by side."""
    before = "abb\n" * (BLOCK // 4)
    text = f"{before}\na\n{before}" if "json" in name else f"{before}a\n\naßb\nß"
    content = json_lines([text, "\naaßa", "ß"]) if "json" in name else text
    files = [write(tmp_path / "known.txt", before), write(tmp_path / name, content)]
    with pytest.raises(UserError) as refused:
        list(encode(CharacterTokenizer("ab\n"), corpus(*files)))
    problem = "is not in the vocabulary of this tokenizer"
    assert str(refused.value) == f"character 'ß' ({files[1]}, line {line:,}) {problem}"


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
    for piece in part.pieces():
        assert piece.text
        texts[piece.number] = texts.get(piece.number, "") + piece.text
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
            found = [piece.text for piece in part.pieces()]
            assert found == [piece.text for piece in part.pieces()]
            characters = sum(map(len, found))
            assert characters <= 100_000 and characters > 10_000 * share - (1 << 14)
            if len(texts) > 1:
                assert {len(text) for text in found} == {999}
            places = [int(text.split("\n")[1]) for text in found]
            assert places == sorted(places) and places[-1] > 70_000


def test_an_eighth_is_to_validate_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minigpt.data.source._TO_VALIDATE", 1_000)
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
    return [piece.text for piece in source.training.pieces()]


def test_a_file_that_is_named_twice_is_one_document(tmp_path: Path) -> None:
    files = [write(tmp_path / "many" / f"{i}.txt", f"{i}") for i in range(3)]
    os.symlink(files[2], tmp_path / "same.txt")
    names = (tmp_path / "many", files[1], tmp_path / "same.txt")
    assert found_documents(*names) == ["0", "1", "2"]
    assert found_documents(*names, split="end") == ["0", "1", "2", "1", "2"]


def test_standard_input_is_not_asked_for_twice() -> None:
    with pytest.raises(UserError, match="standard input can be read once only"):
        find_source(TextConfig(("-",), validation=("-",)))


@pytest.mark.parametrize("split", ["documents", "end"])
def test_a_file_to_validate_on_is_not_trained_on(split: str, tmp_path: Path) -> None:
    """By whatever name."""
    files = [write(tmp_path / "many" / f"{i}.txt", f"{i}") for i in range(5)]
    os.symlink(files[1], tmp_path / "soft.txt")
    os.link(files[3], tmp_path / "hard.txt")
    for held in (files[2], tmp_path / "soft.txt", tmp_path / "hard.txt"):
        rest = [str(i) for i in range(5) if str(i) != held.read_text()]
        validation = (str(held),)
        assert found_documents(tmp_path / "many", validation=validation, split=split) == rest
    with pytest.raises(UserError, match=r"2\.txt is validation text too"):
        found_documents(files[2], validation=(str(files[2]),), split=split)


def test_a_validation_text_without_text_is_refused(tmp_path: Path) -> None:
    text, empty = write(tmp_path / "a.txt", "text"), write(tmp_path / "b.txt", "<|endoftext|>\n")
    with pytest.raises(UserError, match=r"there is no text in .*b\.txt"):
        found_documents(text, validation=(str(empty),))


def test_another_field_without_json_lines_is_refused(tmp_path: Path) -> None:
    text, rows = write(tmp_path / "a.txt", "text"), write(tmp_path / "a.jsonl", '{"body": "row"}')
    with pytest.raises(UserError, match=r"--text-field body is for files with rows"):
        found_documents(text, text_field="body")
    assert found_documents(text, rows, text_field="body") == ["text", "row"]


def test_a_small_part_of_a_single_document_is_not_empty(tmp_path: Path) -> None:
    config = TextConfig((str(write(tmp_path / "a.txt", "ab" * 20_000)),), max_characters=100)
    training, _ = split(find_source(config), config)
    assert 80 < sum(len(piece.text) for piece in training.pieces()) <= 100


def read_again(given: Iterable[Any], text_field: str = "text") -> list[str]:
    with spooled(given, text_field) as file:
        found = documents(file, text_field=text_field)
    assert not file.exists()
    return found


@given(texts=st.lists(st.text().map(without_invisible).filter(str.strip), max_size=5))
@law
def test_documents_come_back_as_they_were(texts: list[str]) -> None:
    """Any iterable of texts or of rows, which is read once."""
    assert read_again(texts) == read_again(iter(texts)) == texts
    rows = ({"id": i, "body": text} for i, text in enumerate(texts))
    assert read_again(rows, text_field="body") == texts


@pytest.mark.parametrize(
    "row", [5, None, b"bytes", {}, {"text": None}, {"text": 5}, "\ud800", {"text": "\ud800"}]
)
def test_a_row_without_text_is_none_of_the_documents(row: Any) -> None:
    assert read_again([row, "a", row]) == ["a"]


def test_documents_without_the_field_are_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(UserError, match=r"documents has no field 'text'.*: id, body"):
        read_again([{"id": 1, "body": "a"}, {"id": 2, "body": "b"}])
