"""Files to documents of text: which files a name stands for, how each kind is read, what names a
text (its fingerprint), and the one line a user gets for a file that cannot be read.
"""

import gzip
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minigpt.config import UserError
from minigpt.corpus import Corpus, find_files

law = settings(max_examples=50, deadline=None)

BLOCK = 1 << 20  # files are read a mebibyte at a time
as_root = hasattr(os, "geteuid") and os.geteuid() == 0
unless_root = pytest.mark.skipif(as_root, reason="root may read everything")
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"))


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def corpus(*names: str | Path, text_field: str = "text") -> Corpus:
    return Corpus(find_files(tuple(map(str, names))), text_field)


def documents(*names: str | Path, text_field: str = "text") -> list[str]:
    """The texts of the documents, each put together from its pieces."""
    texts, text = [], ""
    for piece in corpus(*names, text_field=text_field).pieces():
        text += piece.text
        if piece.ends_document:
            texts.append(text)
            text = ""
    assert text == ""
    return texts


def refusal(*names: str | Path, text_field: str = "text") -> str:
    """The line a user gets."""
    with pytest.raises(UserError) as refused:
        documents(*names, text_field=text_field)
    message = str(refused.value)
    assert "\n" not in message
    assert str(names[0]) in message
    return message


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
    for name in ("b.txt", "a/z.md", "a/deep/er/c.TXT", "d.txt.gz", "c.jsonl.gz"):
        write(tmp_path / name, json.dumps({"text": name}))
    for name in ("notes.rst", "a/code.py", "archive.gz", "txt", "e.txt.bak", "f.csv.gz"):
        write(tmp_path / name, "not these")
    (tmp_path / "folder.txt").mkdir()
    found = [str(f.relative_to(tmp_path)) for f in find_files((str(tmp_path),))]
    assert found == ["a/deep/er/c.TXT", "a/z.md", "b.txt", "c.jsonl.gz", "d.txt.gz"]


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
    assert piped.characters == len("piped é\n")
    assert "".join(piece.text for piece in piped.pieces()) == "piped é\n"


# Text


@given(texts=st.lists(any_text, max_size=4))
@law
def test_pieces_join_to_the_text_and_are_counted(folder: Path, texts: list[str]) -> None:
    """An empty file is no document."""
    files = [write(folder / f"{i}.txt", text) for i, text in enumerate(texts)]
    assert documents(*files) == [text for text in texts if text]
    assert corpus(*files).characters == sum(map(len, texts))


@given(start=st.integers(BLOCK - 5, BLOCK + 1), text=any_text)
@example(start=BLOCK - 1, text="é")
@example(start=BLOCK - 2, text="中")
@example(start=BLOCK - 3, text="🙂")
@law
def test_a_character_may_lie_across_two_blocks(folder: Path, start: int, text: str) -> None:
    whole = "a" * start + text
    file = write(folder / "long.txt", whole)
    assert documents(file) == [whole]
    assert corpus(file).characters == len(whole)


def test_a_long_file_comes_in_pieces(tmp_path: Path) -> None:
    file = write(tmp_path / "long.txt", "é" * BLOCK)
    assert max(len(piece.text) for piece in corpus(file).pieces()) <= BLOCK


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    """At the start; anywhere else it is a character."""
    assert documents(write(tmp_path / "a.txt", "\ufeffa\ufeffb")) == ["a\ufeffb"]
    assert documents(write(tmp_path / "b.txt", "\ufeff")) == []
    later = "a" * BLOCK + "\ufeff"
    assert documents(write(tmp_path / "c.txt", later)) == [later]


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    zipped = gzip.compress("\ufeffzipped é".encode())
    for name in ("a.txt.gz", "a.md.gz", "a.gz", "a.txt", "a"):
        assert documents(write(tmp_path / name, zipped)) == ["zipped é"]
    assert documents(write(tmp_path / "plain.txt.gz", "plain é")) == ["plain é"]


# JSON lines


@given(texts=st.lists(st.text(min_size=1), max_size=5), ascii_only=st.booleans())
@law
def test_each_json_line_is_a_document(folder: Path, texts: list[str], ascii_only: bool) -> None:
    lines = [json.dumps({"id": 1, "text": text}, ensure_ascii=ascii_only) for text in texts]
    file = write(folder / "a.jsonl", "\n".join(lines))
    assert documents(file) == texts
    assert corpus(file).characters == sum(map(len, texts))


def test_the_field_that_holds_the_text_has_a_name(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"text": "no", "body": "yes"}\n')
    assert documents(file, text_field="body") == ["yes"]


def test_json_lines_may_have_a_mark_windows_line_ends_and_blank_lines(tmp_path: Path) -> None:
    content = '\ufeff{"text": "a"}\r\n\r\n  \n{"text": "b\\n"}'
    assert documents(write(tmp_path / "a.jsonl", content)) == ["a", "b\n"]
    assert documents(write(tmp_path / "b.jsonl.gz", gzip.compress(content.encode()))) == [
        "a",
        "b\n",
    ]


def test_a_json_line_may_lie_across_blocks(tmp_path: Path) -> None:
    texts = ["é" * BLOCK, "second", "中" * BLOCK]
    lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts]
    assert documents(write(tmp_path / "a.jsonl", "".join(lines))) == texts


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
    assert refusal(tmp_path).startswith("no .txt, .md, .jsonl file")


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


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "model.bin", b"abc\0\x01\x02")
    assert refusal(file) == f"{file} is a binary file, not text (a NUL byte at offset 3)"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("suffix", ["txt", "jsonl"])
def test_a_wide_encoding_is_refused(encoding: str, suffix: str, tmp_path: Path) -> None:
    refusal(write(tmp_path / f"wide.{suffix}", '{"text": "é"}'.encode(encoding)))


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_told_how_to_convert(mark: str, tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "a.txt", "\ufeffhäl".encode(mark)))
    assert "is UTF-16, not UTF-8" in message
    assert "iconv -f utf-16 -t utf-8" in message


@given(
    filling=st.sampled_from([0, *range(BLOCK - 5, BLOCK + 2)]),
    before=any_text,
    bad=st.sampled_from([0x80, 0xC0, 0xFF]),
    after=any_text,
)
@example(filling=BLOCK - 2, before="🙂", bad=0x80, after="")
@example(filling=BLOCK - 1, before="é", bad=0xFF, after="é")
@law
def test_a_byte_that_is_no_utf_8_is_named_with_its_offset(
    folder: Path, filling: int, before: str, bad: int, after: str
) -> None:
    good = b"a" * filling + before.encode()
    message = refusal(write(folder / "bad.txt", good + bytes([bad]) + after.encode()))
    assert f"byte 0x{bad:02x} at offset {len(good)};" in message
    assert "iconv -f latin1 -t utf-8" in message


@pytest.mark.parametrize("filling", [0, 1, BLOCK - 2, BLOCK - 1, BLOCK])
def test_a_text_that_ends_within_a_character_is_refused(filling: int, tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "cut.txt", b"a" * filling + "🙂".encode()[:3]))
    assert f"byte 0xf0 at offset {filling};" in message


def test_offsets_in_gzip_are_those_of_its_content(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "bad.txt.gz", gzip.compress(b"a" * BLOCK + b"\xff")))
    assert f"byte 0xff at offset {BLOCK};" in message


@pytest.mark.parametrize("suffix", ["txt.gz", "jsonl.gz"])
@pytest.mark.parametrize("kept", [2, 5, 12, 100, -1])
def test_truncated_gzip_is_refused(kept: int, suffix: str, tmp_path: Path) -> None:
    lines = "".join(json.dumps({"text": str(i**5)}) + "\n" for i in range(300))
    file = write(tmp_path / f"cut.{suffix}", gzip.compress(lines.encode())[:kept])
    assert refusal(file).startswith(f"cannot read {file}: ")


@given(text=any_text, data=st.data())
@law
def test_damaged_gzip_is_refused_or_harmless(folder: Path, text: str, data: st.DataObject) -> None:
    zipped = bytearray(gzip.compress(text.encode()))
    zipped[data.draw(st.integers(0, len(zipped) - 1))] ^= data.draw(st.integers(1, 255))
    file = write(folder / "damaged.txt.gz", bytes(zipped))
    try:
        assert documents(file) == ([text] if text else [])
    except UserError as error:
        assert str(file) in str(error)


def test_gzip_of_a_damaged_middle_is_refused(tmp_path: Path) -> None:
    zipped = bytearray(gzip.compress(bytes(range(32, 127)) * 20))
    zipped[60:70] = bytes(10)
    file = write(tmp_path / "damaged.txt.gz", bytes(zipped))
    assert refusal(file).startswith(f"cannot read {file}: ")


@pytest.mark.parametrize(
    "line", ["{'text': 'a'}", '{"text": "a"} b', "{", "\0", '{"text": "\\ud800"}', "[" * 100_000]
)
def test_a_line_that_is_no_json_is_named(line: str, tmp_path: Path) -> None:
    """Half a surrogate pair is JSON but no Unicode."""
    file = write(tmp_path / "a.jsonl", f'{{"text": "fine"}}\n\n{line}\n{{"text": "fine"}}\n')
    assert refusal(file) == f"{file}, line 3: not JSON in UTF-8"


def test_a_json_line_that_is_no_utf_8_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n')
    assert refusal(file) == f"{file}, line 2: not JSON in UTF-8"


@pytest.mark.parametrize(
    "line", ['{"txt": "a"}', '{"text": 5}', '{"text": null}', '{"text": ["a"]}', "[1]", "5", '"a"']
)
def test_a_line_without_the_field_says_how_to_name_it(line: str, tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "a.jsonl", f'{{"text": "fine"}}\n{line}\n'))
    assert "a.jsonl, line 2: no text in field 'text'" in message
    assert "--text-field" in message
