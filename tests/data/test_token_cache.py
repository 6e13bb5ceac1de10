"""A text to its token ids on disk: what is kept in the cache, made anew, or refused."""

import errno
import json
import multiprocessing
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.config import TextConfig
from minigpt.data.batches import Dataset
from minigpt.data.source import find_source, split
from minigpt.data.token_cache import open_dataset, prepare_tokens
from minigpt.data.token_files import FOLDER, META, Tokens, cache_folder

from ..conftest import unix_only
from .texts import json_lines, one_line, whole, write

law = settings(max_examples=30, deadline=None)

FABLE = "The cat sat on the mat; it's the cat's mat. There the cat eats 12 dates é 中 🙂.\n\n" * 10
LEARNING, TOKENIZING = "learning the tokenizer", "tokenizing"


class Bars:
    """Notes the progress bars that are opened, and does something when one moves."""

    def __init__(self, when_moved: Callable[[], object] = lambda: None, what: str = TOKENIZING):
        self.totals: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.when_moved, self.what = when_moved, what

    @contextmanager
    def __call__(self, what: str, total: int) -> Iterator["Bars"]:
        self.totals[what], self.counts[what], self.now = total, 0, what
        yield self

    def update(self, count: int) -> None:
        self.counts[self.now] += count
        if self.now == self.what:
            self.when_moved()


def prepared(
    cache: Path, *names: Path | str, bars: Bars | None = None, say: Any = print, **config: Any
) -> Dataset:
    """The tokens of files; the character tokenizer is the quickest."""
    text = TextConfig(**{"files": tuple(map(str, names)), "tokenizer": "char", **config})
    return prepare_tokens(find_source(text), text, cache=cache, say=say, progress=bars or Bars())


def refusal(cache: Path, *files: Path, **config: Any) -> str:
    with pytest.raises(UserError) as refused:
        prepared(cache, *files, **config)
    return one_line(refused)


def is_made(cache: Path, *files: Path | str, **config: Any) -> bool:
    """Prepare a text; whether it had to be tokenized."""
    bars = Bars()
    prepared(cache, *files, bars=bars, **config)
    return bool(bars.totals)


def decoded(data: Dataset) -> tuple[str, ...]:
    return tuple(data.tokenizer.decode(ids[:].tolist()) for ids in (data.train, data.validation))


def entries(cache: Path) -> list[Path]:
    """The prepared texts, and those that are being made."""
    return [folder for folder in (cache / FOLDER).iterdir() if folder.is_dir()]


@pytest.fixture
def fable(tmp_path: Path) -> Path:
    return write(tmp_path / "a.txt", FABLE)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.mark.parametrize(("kind", "separate"), [("char", False), ("bpe", False), ("bpe", True)])
def test_only_the_list_of_characters_is_of_the_validation_text_too(
    kind: str, separate: bool, tmp_path: Path, cache: Path
) -> None:
    """A single document is split at a character; progress is told in characters."""
    common, rare, bars = FABLE * 3, "zyzzyva " * 20, Bars()
    file = write(tmp_path / "a.txt", common if separate else common + rare)
    validation = (str(write(tmp_path / "b.txt", rare)),) if separate else ()
    data = prepared(cache, file, bars=bars, tokenizer=kind, vocab_size=400, validation=validation)
    whole = common + rare
    cut = len(common) if separate else int(0.9 * len(whole))
    assert decoded(data) == (whole[:cut], whole[cut:])
    learned = len(whole) if kind == "char" else cut
    assert bars.counts == bars.totals == {LEARNING: learned, TOKENIZING: len(whole)}
    if kind == "bpe":
        tokens = [data.tokenizer.token_bytes(i) for i in range(data.tokenizer.vocab_size)]
        assert b" cat" in tokens
        assert not any(b"zy" in token for token in tokens)


@given(
    texts=st.lists(
        st.text("abc\n", min_size=2).filter(str.strip),  # documents of white space are left out
        min_size=2,
        max_size=5,
    ),
    way=st.sampled_from(["documents", "end"]),
)
@example(texts=["abcde", "fghij"], way="end")
@law
def test_each_part_holds_its_documents_with_the_end_of_text_between(
    folder: Path, texts: list[str], way: str
) -> None:
    """Neither part begins with one, wherever the text is split."""
    files = tuple(str(write(folder / f"{i}.txt", text)) for i, text in enumerate(texts))
    config = TextConfig(files, validation_fraction=0.5, split=way, tokenizer="char")
    source = find_source(config)
    data = prepare_tokens(source, config, cache=folder)
    training, validation = split(source, config)
    end, encode = data.tokenizer.end_of_text, data.tokenizer.encode
    for ids, part in ((data.train, training), (data.validation, validation)):
        expected = [i for text in whole(part.pieces()) for i in [end, *encode(text)]]
        assert ids[:].tolist() == expected[1:]


# The cache


def test_a_text_is_tokenized_once_wherever_it_lies(fable: Path, cache: Path) -> None:
    first = decoded(prepared(cache, fable))
    moved = fable.rename(fable.with_name("b.txt"))
    assert not is_made(cache, moved, vocab_size=999)  # which no character tokenizer has
    assert decoded(prepared(cache, moved)) == first


@pytest.mark.parametrize(
    "change",
    [
        {"files": ("b.jsonl",)}, {"files": ("a.jsonl", "b.jsonl")}, {"tokenizer": "char"},
        {"vocab_size": 301}, {"validation_fraction": 0.2}, {"validation": ("b.jsonl",)},
        {"split": "end"}, {"text_field": "body"},
    ],
    ids=str,
)  # fmt: skip
def test_whatever_changes_the_tokens_has_them_made_anew(
    change: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("a.jsonl", FABLE), ("b.jsonl", FABLE.replace("sat", "lay"))):
        rows = (json.dumps({"text": line + "\n", "body": line}) for line in text.splitlines())
        write(Path(name), "\n".join(rows))
    usual: dict[str, Any] = {"files": ("a.jsonl",), "tokenizer": "bpe", "vocab_size": 300}
    made = [is_made(tmp_path / "cache", **config) for config in (usual, usual | change) * 2]
    assert made == [True, True, False, False]


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes | None]]] = {
    "meta is gone": (META, lambda content: None),
    "validation is gone": ("validation.bin", lambda content: None),
    "an id less": ("validation.bin", lambda content: content[:-2]),
    "another id": ("train.bin", lambda content: bytes([content[0] ^ 1]) + content[1:]),
    "no tokenizer": ("tokenizer.json", lambda content: b"{}"),
    "another tokenizer": ("tokenizer.json", lambda content: content.replace(b"c", b"b")),
    "meta is a list": (META, lambda content: b"[]"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "damage"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_cache_is_noticed_and_made_anew(
    name: str, damage: Callable[[bytes], bytes | None], fable: Path, cache: Path
) -> None:
    before = prepared(cache, fable).train[:].tolist()
    (result,) = entries(cache)
    damaged, said = damage((result / name).read_bytes()), []
    (result / name).unlink() if damaged is None else (result / name).write_bytes(damaged)
    with pytest.raises(UserError, match=f"token cache {result} is damaged") as refused:
        open_dataset(result)
    assert prepared(cache, fable, say=said.append).train[:].tolist() == before
    assert said == [f"{one_line(refused)}; making it again"]
    open_dataset(result)
    assert entries(cache) == [result]


def test_a_copied_cache_is_verified_by_its_checksums_once(fable: Path, cache: Path) -> None:
    before, copy = decoded(prepared(cache, fable)), cache.with_name("copy")
    shutil.copytree(cache, copy, copy_function=shutil.copyfile)
    assert not is_made(copy, fable)
    assert decoded(prepared(copy, fable)) == before
    times = [
        [file.stat().st_mtime_ns for file in sorted(folder.glob("*/*/*")) if file.name != META]
        for folder in (cache, copy)
    ]
    assert times[0] == times[1]  # so that the next start need not read them


@pytest.mark.parametrize(("characters", "dtype"), [(65_535, "uint16"), (65_536, "uint32")])
def test_the_files_are_as_documented_and_ids_take_two_bytes_while_they_fit(
    characters: int, dtype: str, tmp_path: Path, cache: Path
) -> None:
    """Read with the code that docs/token_files.md shows; the end of text is one more token."""
    text = "".join(map(chr, range(0x10000, 0x10000 + characters)))
    data = prepared(cache, write(tmp_path / "a.txt", text))
    page = (Path(__file__).parents[2] / "docs/token_files.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    shown: dict[str, Any] = {}
    exec(code, shown)
    (result,) = entries(cache)
    read = [shown["token_ids"](result, part) for part in ("train", "validation")]
    assert np.concatenate(read).tolist() == list(range(characters))
    assert {ids.dtype for ids in (*read, data.train[:], data.validation[:])} == {np.dtype(dtype)}


@given(count=st.integers(0, 60), start=st.integers(-70, 70), stop=st.integers(-70, 70))
@law
def test_a_slice_of_the_file_is_a_slice_of_the_ids(
    folder: Path, count: int, start: int, stop: int
) -> None:
    for dtype, vocab_size in (("<u2", 1 << 16), ("<u4", (1 << 16) + 1)):
        ids = np.arange(count).astype(dtype)
        ids.tofile(folder / "ids.bin")
        tokens = Tokens(folder / "ids.bin", vocab_size)
        assert len(tokens) == count
        assert tokens[start:stop].tolist() == ids[start:stop].tolist()
        assert tokens[:stop].dtype == dtype


def test_a_file_that_is_cut_short_while_it_is_read_is_named(tmp_path: Path) -> None:
    np.arange(8, dtype="<u2").tofile(tmp_path / "ids.bin")
    tokens = Tokens(tmp_path / "ids.bin", 8)
    os.truncate(tmp_path / "ids.bin", 10)
    assert tokens[:5].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(UserError, match=r"cut short: .*ids\.bin"):
        tokens[4:6]


def test_the_cache_keeps_what_was_used_last_up_to_its_bound(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is removed while it is in use can still be read; what was just made is kept."""
    texts = [write(tmp_path / f"{i}.txt", f"{i}" * 10_000) for i in range(6)]  # 20,000 bytes each
    assert all(is_made(cache, file) for file in texts[:5])
    assert not any(is_made(cache, file) for file in texts[:5])  # by default gigabytes are kept
    monkeypatch.setattr("minigpt.data.token_files._MOST_BYTES", 50_000)  # room for two texts
    in_use = prepared(cache, texts[0])
    for meta in cache.glob(f"*/*/{META}"):
        os.utime(meta, (1, 1))  # long ago
    assert not is_made(cache, texts[3])  # used again
    assert is_made(cache, texts[5])
    assert len(entries(cache)) == 2
    assert in_use.train[:].tolist() == [0] * 9000
    assert [is_made(cache, texts[i]) for i in (3, 4)] == [False, True]
    monkeypatch.setattr("minigpt.data.token_files._MOST_BYTES", 0)
    assert [is_made(cache, texts[i]) for i in (0, 0, 1, 1)] == [True, False, True, False]
    assert len(entries(cache)) == 1


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MINIGPT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path.home() / ".cache" / "minigpt"
    monkeypatch.setenv("XDG_CACHE_HOME", "")  # as if it were unset, by its specification
    assert cache_folder() == Path.home() / ".cache" / "minigpt"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/minigpt")
    monkeypatch.setenv("MINIGPT_CACHE", "/mine")
    assert cache_folder() == Path("/mine")


def test_folders_of_other_programs_in_the_cache_folder_are_left_alone(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their names and files, also among our own, and where there is no room."""
    monkeypatch.setattr("minigpt.data.token_files._MOST_BYTES", 0)
    hashed = "0123456789abcdef" * 2
    names = ("model/meta.json", "model.tmp/work", f"{hashed}/meta.json", f"{'b' * 32}.tmp/theirs")
    theirs = [write(place / name, "{}") for place in (cache, cache / FOLDER) for name in names]
    (cache / FOLDER / ("a" * 32)).symlink_to(cache / "model")
    for i in range(3):
        assert is_made(cache, write(tmp_path / f"{i}.txt", f"{i}" * 1000))
    assert [file.read_text() for file in theirs] == ["{}"] * 8
    assert len(list(cache.glob("*/*/train.bin"))) == 1  # of ours only the last is kept


# Several at once, and what ends in the middle


def test_of_two_at_once_one_prepares_the_text_and_the_other_waits(fable: Path, cache: Path) -> None:
    bars, is_working, is_waiting = Bars(), threading.Event(), threading.Event()

    def work() -> None:
        is_working.set()
        assert is_waiting.wait(30)

    def wait(line: str) -> None:
        assert line == "another process is preparing this text: waiting for it"
        is_waiting.set()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(prepared, cache, fable, bars=Bars(work))
        assert is_working.wait(30)
        second = pool.submit(prepared, cache, fable, bars=bars, say=wait)
        assert decoded(first.result()) == decoded(second.result())
    assert bars.totals == {}
    assert len(list(cache.glob("*/*.lock"))) == 1  # to remove it would let two work at once


@unix_only
@pytest.mark.parametrize("later", ["a.txt", "b.txt"])
def test_what_a_killed_preparation_leaves_is_removed_by_a_later_one(
    later: str, tmp_path: Path, cache: Path
) -> None:
    fork = multiprocessing.get_context("fork")
    is_working = fork.Event()
    a, c = (write(tmp_path / name, FABLE + name) for name in ("a.txt", "c.txt"))

    def hang() -> None:
        is_working.set()
        threading.Event().wait()

    process = fork.Process(target=prepared, args=(cache, a), kwargs={"bars": Bars(hang)})
    process.start()
    assert is_working.wait(30)
    assert is_made(cache, c)
    assert len(list(cache.glob("*/*.tmp"))) == 1  # its maker lives
    process.kill()
    process.join()
    assert is_made(cache, a if later == "a.txt" else write(tmp_path / later, FABLE))
    assert list(cache.glob("*/*.tmp")) == []
    assert "".join(decoded(prepared(cache, a))) == FABLE + "a.txt"


@pytest.mark.parametrize("what", [LEARNING, TOKENIZING])
def test_a_preparation_that_is_interrupted_or_whose_files_change_leaves_nothing(
    what: str, fable: Path, cache: Path
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepared(cache, fable, bars=Bars(interrupt, what))
    assert entries(cache) == []
    other = write(fable.with_name("b.txt"), FABLE)
    for file in (fable, other):
        bars = Bars(partial(os.utime, file, ns=(0, 1)), what)
        with pytest.raises(UserError, match=f"{file} changed while it was read"):
            prepared(cache, fable, bars=bars, validation=(str(other),))
        assert entries(cache) == []


def test_a_full_disk_is_said_in_one_line_and_leaves_nothing(fable: Path, cache: Path) -> None:
    """The system refuses files above 1,000 bytes."""
    resource = pytest.importorskip("resource", reason="Windows limits no files")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        message = refusal(cache, fable)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert f"tokens to {cache / FOLDER}: File too large; set MINIGPT_CACHE" in message
    assert entries(cache) == []
    assert f"cannot write the tokens to {fable / FOLDER}: " in refusal(fable, fable)  # no folder


def test_a_file_system_without_locks_is_not_called_full(
    fable: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(FileLock, "acquire", refuse)
    message = refusal(cache, fable)
    assert f"{os.strerror(errno.ENOLCK)}; set MINIGPT_CACHE to another folder" in message


@pytest.mark.parametrize("others", [["é" + "a" * 98], ["a" * 39] * 2])
def test_another_text_of_the_same_size_and_time_is_never_taken_for_the_whole(
    others: list[str], tmp_path: Path, cache: Path
) -> None:
    """What was measured at the start must be there at the end."""
    file = write(tmp_path / "a.jsonl", json_lines(["a" * 100]))
    status = file.stat()

    def change() -> None:
        write(file, json_lines(others, ensure_ascii=False))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    bars = Bars(change, LEARNING)
    with pytest.raises(UserError, match="the text changed while it was read"):
        prepared(cache, file, bars=bars, tokenizer="bpe", vocab_size=300)
    assert file.stat().st_size == status.st_size


@pytest.mark.parametrize(
    ("texts", "config", "message"),
    [
        ([""], {}, "there is no text in {file}"),
        (["\ufeff"], {"tokenizer": "bpe"}, "there is no text in {file}"),
        (["\n \n"], {}, "there is no text in {file}"),
        (["a"], {}, "0 tokens to train on and 1 to validate on"),
        (["a" * 10], {}, "9 tokens to train on and 1 to validate on"),
    ],
)
def test_a_text_too_short_to_split_is_refused(
    texts: list[str], config: dict[str, Any], message: str, tmp_path: Path, cache: Path
) -> None:
    files = [write(tmp_path / f"{i}.txt", text) for i, text in enumerate(texts)]
    assert message.format(file=files[0]) in refusal(cache, *files, **config)
    assert not cache.exists() or entries(cache) == []


def test_two_tokens_are_enough_to_validate_on(tmp_path: Path, fable: Path, cache: Path) -> None:
    data = prepared(cache, write(tmp_path / "b.txt", "a" * 11))
    assert (len(data.train), len(data.validation)) == (9, 2)
    empty = str(write(tmp_path / "c.txt", "a"))
    assert "and 1 to validate on" in refusal(cache, fable, validation=(empty,))
