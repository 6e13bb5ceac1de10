"""A text to its token file: what is set aside, what the tokenizer learns from, what is gone on with
after a kill, and what is noticed on the way.

Shards of a kilobyte stand for those of 256 MiB.
"""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.config import TextConfig
from minigpt.data import preparation, token_file
from minigpt.data.batches import Dataset
from minigpt.data.corpus import find_source
from minigpt.data.token_cache import open_dataset, prepare
from minigpt.data.token_file import META, read_meta
from minigpt.tokenizer import encode_in_pieces

from .texts import write

law = settings(max_examples=50, deadline=None)

ROOT = Path(__file__).parents[2]
SMALL = 1000  # bytes of a shard


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_file, "SHARD_BYTES", SMALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For generated texts, which are written over one another."""
    return tmp_path_factory.mktemp("texts")


@pytest.fixture
def characters_encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the length of each piece of text that is encoded."""
    seen: list[int] = []

    def counted(*arguments: Any) -> Iterator[Any]:
        for characters, ids in encode_in_pieces(*arguments, 100):
            seen.append(characters)
            yield characters, ids

    monkeypatch.setattr(preparation, "encode_in_pieces", counted)
    return seen


def some_text(words: int = 4000, seed: int = 0) -> str:
    """Of about six characters a word."""
    draw = random.Random(seed)
    letters = "abcdefghijklmnop"
    return " ".join("".join(draw.choices(letters, k=draw.randrange(2, 8))) for _ in range(words))


def prepared(cache: Path, *files: Path, **config: Any) -> Dataset:
    text_config = TextConfig(files=tuple(map(str, files)), **{"tokenizer": "char", **config})
    return prepare(find_source(text_config), text_config, cache=cache, say=print)


def decoded(data: Dataset) -> str:
    return data.tokenizer.decode([*data.train[:].tolist(), *data.validation[:].tolist()])


# What is set aside


@given(
    texts=st.lists(st.text("abc", min_size=2, max_size=30), min_size=2, max_size=12, unique=True),
    fraction=st.floats(0.1, 0.9),
    jsonl=st.booleans(),
)
@law
def test_no_document_is_in_both_parts(
    folder: Path, texts: list[str], fraction: float, jsonl: bool
) -> None:
    if jsonl:
        files = [write(folder / "a.jsonl", "\n".join(json.dumps({"text": t}) for t in texts))]
    else:
        files = [write(folder / f"{i}.txt", text) for i, text in enumerate(texts)]
    data = prepared(folder, *files, validation_fraction=fraction)
    end = data.tokenizer.end_of_text
    parts = []
    for part in (data.train, data.validation):
        ids = "".join(chr(i) for i in part[:].tolist()).split(chr(end))
        parts.append([data.tokenizer.decode(map(ord, text)) for text in ids])
    assert sorted(parts[0] + parts[1]) == sorted(texts)
    assert [t for t in texts if t in parts[0]] == parts[0]
    assert [t for t in texts if t in parts[1]] == parts[1]


def test_a_file_that_is_named_twice_is_one_document(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    files = [write(folder / f"{i}.txt", some_text(20, seed=i)) for i in range(10)]
    once = prepared(tmp_path / "cache", folder)
    os.symlink(files[5], tmp_path / "same.txt")
    again = prepared(tmp_path / "cache", folder, files[3], tmp_path / "same.txt")
    assert decoded(again) == decoded(once)
    assert again.validation[:].tolist() == once.validation[:].tolist()


def test_a_file_to_validate_on_is_not_trained_on(tmp_path: Path) -> None:
    files = [write(tmp_path / "many" / f"{i}.txt", f"{i}" * 50) for i in range(5)]
    validation = (str(files[2]),)
    data = prepared(tmp_path / "cache", tmp_path / "many", validation=validation)
    assert data.tokenizer.decode(data.train[:].tolist()) == "".join(c * 50 for c in "0134")
    with pytest.raises(UserError, match=r"2\.txt is to be validated on, or named before"):
        prepared(tmp_path / "cache", files[2], validation=validation)
    with pytest.raises(UserError, match=r"1\.txt is to be validated on, or named before"):
        prepared(tmp_path / "cache", tmp_path / "many", files[1], weights=(1.0, 2.0))


def test_of_one_document_the_end_is_set_aside_whichever_way(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", some_text())
    for split in ("documents", "end"):
        data = prepared(tmp_path / "cache", file, split=split)
        text = data.tokenizer.decode(data.train[:].tolist())
        assert text == some_text()[: int(0.9 * len(some_text()))]


def test_a_file_that_is_empty_is_no_document_to_set_aside(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{i}.txt", text) for i, text in enumerate(("", "abc" * 20, ""))]
    assert prepared(tmp_path / "cache", *files).tokenizer.decode([0, 1]) == "ab"
    assert len(prepared(tmp_path / "cache", *files).train) == 54


# What the tokenizer learns from


@pytest.mark.parametrize("sample", [1000, 5000, 24_000])
def test_a_bpe_learns_from_stretches_spread_over_a_long_text(
    sample: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And from all of a text that is no longer than that, in order."""
    monkeypatch.setattr(preparation, "_SAMPLE", sample)
    monkeypatch.setattr(preparation, "_SAMPLED", 100)
    learned: list[str] = []
    make = preparation.make_tokenizer

    def noted(kind: str, size: int | None, texts: Iterator[str]) -> Any:
        learned.extend(texts)
        return make(kind, size, learned)

    monkeypatch.setattr(preparation, "make_tokenizer", noted)
    text = some_text()
    train = text[: int(0.9 * len(text))]
    prepared(tmp_path / "cache", write(tmp_path / "a.txt", text), tokenizer="bpe", vocab_size=300)
    if sample > len(train):
        assert "".join(learned) == train
        return
    assert sample - 200 <= sum(map(len, learned)) <= sample
    places = [train.index(stretch) for stretch in learned]
    assert places == sorted(places)
    gaps = [b - a for a, b in pairwise(places)]
    assert max(gaps) <= 2 * len(train) * 100 / sample


# Going on


@pytest.mark.parametrize("kind", ["char", "bpe"])
@pytest.mark.parametrize("after", [1, 7, 30])
def test_an_interrupted_preparation_goes_on_where_it_was(
    kind: str, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    characters_encoded: list[int],
) -> None:  # fmt: skip
    file = write(tmp_path / "a.txt", some_text())
    settings_: dict[str, Any] = {"tokenizer": kind, "vocab_size": 300}
    whole = prepared(tmp_path / "whole", file, **settings_)
    write_meta, written = token_file.write_meta, [0]

    def interrupted(*arguments: Any) -> None:
        write_meta(*arguments)
        written[0] += 1
        if written[0] == after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(preparation, "write_meta", interrupted)
        prepared(tmp_path / "cut", file, **settings_)
    (left,) = (tmp_path / "cut").iterdir()
    assert len(read_meta(left).shards) == after and not read_meta(left).whole
    characters_encoded.clear()
    again = prepared(tmp_path / "cut", file, **settings_)
    assert sum(characters_encoded) <= len(some_text()) - after * 400
    for name in ("train", "validation"):
        assert getattr(again, name)[:].tolist() == getattr(whole, name)[:].tolist()
    folders = [next((tmp_path / name).iterdir()) for name in ("cut", "whole")]
    assert len({(folder / META).read_text() for folder in folders}) == 1
    assert {f.name for f in folders[0].iterdir()} == {f.name for f in folders[1].iterdir()}


def test_killed_at_random_moments_it_ends_as_if_nothing_had_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL to a real process, again and again, until it has all of its shards."""
    file, cache = write(tmp_path / "a.txt", some_text()), tmp_path / "cache"
    whole = prepared(tmp_path / "whole", file, tokenizer="bpe", vocab_size=300)

    def slow(*arguments: Any) -> Iterator[Any]:
        for piece in encode_in_pieces(*arguments, 100):
            time.sleep(0.002)
            yield piece

    def shards() -> int:
        return sum(len(read_meta(file.parent).shards) for file in cache.glob(f"*/{META}"))

    monkeypatch.setattr(preparation, "encode_in_pieces", slow)
    moments, kills, seen = random.Random(1), 0, 0
    while kills < 100:
        process = multiprocessing.get_context("fork").Process(
            target=prepared, args=(cache, file), kwargs={"tokenizer": "bpe", "vocab_size": 300}
        )
        process.start()
        while process.is_alive() and shards() == seen:
            time.sleep(0.001)
        time.sleep(moments.uniform(0.0, 0.05))
        process.kill()
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        assert shards() > seen  # what was on disk is kept
        kills, seen = kills + 1, shards()
    assert 5 <= kills < 100
    (result,) = (file.parent for file in cache.glob(f"*/{META}"))
    data = open_dataset(result)
    assert data.train[:].tolist() == whole.train[:].tolist()
    assert data.validation[:].tolist() == whole.validation[:].tolist()
    assert [file.name for file in cache.iterdir()] == [result.name]


@pytest.mark.parametrize("damage", ["gone", "changed"])
@pytest.mark.parametrize("number", [0, 20])
def test_a_damaged_shard_is_made_again_and_those_before_it_are_not(
    number: int,
    damage: str,
    tmp_path: Path,
    characters_encoded: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, cache = write(tmp_path / "a.txt", some_text()), tmp_path / "cache"
    assert decoded(prepared(cache, file)) == some_text()
    whole = sum(characters_encoded)
    (result,) = cache.iterdir()
    shard = result / f"train-{number:05}.bin"
    if damage == "gone":
        shard.unlink()
    else:
        shard.write_bytes(shard.read_bytes()[::-1])
    characters_encoded.clear()
    assert decoded(prepared(cache, file)) == some_text()
    why = "No such file" if damage == "gone" else "its checksum does not match"
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and f"{result} is damaged: {shard.name}: " in said
    assert why in said and said.endswith("; making it again\n")
    assert sum(characters_encoded) <= whole - number * SMALL // 2 + 100
    assert [f.name for f in cache.iterdir()] == [result.name]


# What is noticed on the way


@pytest.mark.parametrize("which", ["a.txt", "b.txt"])
def test_a_file_that_changes_while_it_is_prepared_is_named_and_nothing_kept(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write(tmp_path / name, some_text()) for name in ("a.txt", "b.txt")]
    encode = preparation.encode_in_pieces

    def changing(*arguments: Any) -> Iterator[Any]:
        for i, piece in enumerate(encode(*arguments, 100)):
            if i == 20:
                (tmp_path / which).write_text("another text")
            yield piece

    monkeypatch.setattr(preparation, "encode_in_pieces", changing)
    with pytest.raises(UserError, match=f"{which} changed while it was read"):
        prepared(tmp_path / "cache", files[0], validation=(str(files[1]),))
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_text_that_has_become_shorter_is_never_taken_for_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its file has the size and the time that it had: what was measured must be there."""
    file = write(tmp_path / "a.txt", some_text())
    make, status = preparation.make_tokenizer, file.stat()

    def changing(*arguments: Any) -> Any:
        tokenizer = make(*arguments)
        file.write_bytes(("é" + some_text()[2:]).encode())
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        return tokenizer

    monkeypatch.setattr(preparation, "make_tokenizer", changing)
    with pytest.raises(UserError, match="the text changed while it was read"):
        prepared(tmp_path / "cache", file, tokenizer="bpe", vocab_size=300)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_full_disk_is_said_in_one_line_and_what_was_made_is_gone_on_with(
    tmp_path: Path,
) -> None:
    """The system refuses files above 1,500 bytes, which meta.json is once it lists some shards."""
    file, cache = write(tmp_path / "a.txt", some_text()), tmp_path / "cache"
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))\n"
    code += "from minigpt.cli import main\nfrom minigpt.data import token_file\n"
    code += f"token_file.SHARD_BYTES = {SMALL}\n"
    code += "sys.exit(main(['train', 'a.txt', '--tokenizer', 'char', '--steps', '5']))"
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"MINIGPT_CACHE": str(cache), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2, process.stderr
    last = process.stderr.splitlines()[-1]
    assert last.startswith(f"error: cannot write the tokens to {cache}: File too large; make room")
    assert "Traceback" not in process.stderr
    (left,) = cache.iterdir()
    kept = [(left / f"train-{i:05}.bin").stat() for i in range(len(read_meta(left).shards))]
    assert len(kept) >= 2
    assert decoded(prepared(cache, file)) == some_text()
    (result,) = cache.iterdir()
    for i, shard in enumerate(kept):
        assert (result / f"train-{i:05}.bin").stat().st_mtime_ns == shard.st_mtime_ns


def test_a_folder_of_thousands_of_files_is_prepared(tmp_path: Path) -> None:
    names = [f"{i % 10}/{i:04}.txt" for i in range(3000)]
    for i, name in enumerate(names):
        write(tmp_path / "many" / name, f"text {i}\n")
    data = prepared(tmp_path / "cache", tmp_path / "many")
    end = data.tokenizer.end_of_text
    assert (data.train[:] == end).sum() == 3000 - 300 - 1
    assert (data.validation[:] == end).sum() == 300 - 1


def test_text_that_is_refused_midway_leaves_nothing(tmp_path: Path) -> None:
    lines = [json.dumps({"text": some_text(100, seed)}) for seed in range(50)]
    file = write(tmp_path / "a.jsonl", "\n".join(lines))
    initial = prepared(tmp_path / "first", file).tokenizer
    other = write(tmp_path / "b.jsonl", "\n".join([*lines, json.dumps({"text": "ß" * 50})]))
    config = TextConfig((str(other),))
    with pytest.raises(UserError, match="character 'ß'"):
        prepare(find_source(config), config, cache=tmp_path / "second", tokenizer=initial)
    assert list((tmp_path / "second").iterdir()) == []


@pytest.mark.parametrize("split", ["documents", "end"])
def test_a_split_that_leaves_nothing_to_train_on_is_refused(split: str, tmp_path: Path) -> None:
    files = [write(tmp_path / f"{i}.txt", "a") for i in range(2)]
    with pytest.raises(UserError, match="too short"):
        prepared(tmp_path / "cache", *files, split=split)
