"""The token file: shards that join to one long sequence, that can be gone on with from any of
them, and that are verified before they are used.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.data import token_file
from minigpt.data.token_file import (
    META,
    Meta,
    Shard,
    TokenIds,
    open_tokens,
    read_meta,
    sound_shards,
    write_meta,
    write_shards,
)

law = settings(max_examples=100, deadline=None)

# Pieces of text: of each character, how many ids it has.
some_text = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), max_size=9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokens")


@pytest.fixture(autouse=True, scope="module")
def shards_of_ten_bytes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_file, "SHARD_BYTES", 10)
        yield


def encoded(pieces: list[list[int]], start: int = 0) -> Iterator[tuple[int, TokenIds]]:
    """The pieces from a character on; the ids count up, so that they say where they belong."""
    position = token = 0
    for piece in pieces:
        kept = piece[max(start - position, 0) :]
        token += sum(piece[: len(piece) - len(kept)])
        if kept:
            yield len(kept), np.arange(token, token + sum(kept), dtype=np.uint32)
        token, position = token + sum(kept), position + len(piece)


def written(folder: Path, pieces: list[list[int]], dtype: str = "uint16") -> Meta:
    """A token file of one part."""
    meta = Meta(dtype, tuple(write_shards(folder, "train", dtype, encoded(pieces))), True)
    write_meta(folder, meta)
    return meta


def read(folder: Path, vocab_size: int = 1 << 16) -> Any:
    meta = read_meta(folder)
    return open_tokens(meta, list(sound_shards(folder, meta, vocab_size)), "train")


@given(pieces=some_text, dtype=st.sampled_from(["uint16", "uint32"]))
@law
def test_shards_are_full_but_for_the_last_and_join_to_the_ids(
    folder: Path, pieces: list[list[int]], dtype: str
) -> None:
    meta = written(folder, pieces, dtype)
    whole = np.arange(sum(map(sum, pieces)))
    room = 10 // np.dtype(dtype).itemsize
    assert all(shard.tokens == room for shard in meta.shards[:-1])
    assert all(0 < shard.tokens <= room for shard in meta.shards)
    assert meta.tokens("train") == len(whole)
    tokens = read(folder)
    assert len(tokens) == len(whole)
    assert tokens.dtype == dtype
    assert tokens[:].tolist() == whole.tolist()


@given(count=st.integers(0, 60), start=st.integers(-70, 70), stop=st.integers(-70, 70))
@law
def test_any_stretch_is_that_of_the_whole(folder: Path, count: int, start: int, stop: int) -> None:
    """Within a shard, over the border of two, over many."""
    written(folder, [[1]] * count)
    tokens, whole = read(folder), np.arange(count)
    assert tokens[start:stop].tolist() == whole[start:stop].tolist()
    assert tokens[start:].tolist() == whole[start:].tolist()


@given(pieces=some_text, data=st.data())
@example(pieces=[[5, 5]], data=None).via("a shard that ends with its piece")
@law
def test_it_can_be_gone_on_with_from_any_shard(
    folder: Path, pieces: list[list[int]], data: Any
) -> None:
    """Though the pieces come in other sizes then."""
    meta = written(folder, pieces)
    kept = data.draw(st.integers(0, len(meta.shards))) if data else len(meta.shards)
    done = meta.shards[:kept]
    flat = [[ids] for piece in pieces for ids in piece] if kept % 2 else pieces
    rest = encoded(flat, done[-1].characters if done else 0)
    again = tuple(write_shards(folder, "train", "uint16", rest, done))
    hashes = [(shard.tokens, shard.sha256) for shard in done + again]
    assert hashes == [(shard.tokens, shard.sha256) for shard in meta.shards]
    assert read(folder)[:].tolist() == list(range(sum(map(sum, pieces))))


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_the_documented_format_is_that_of_the_file(dtype: str, tmp_path: Path) -> None:
    """Read with the code that docs/token_files.md shows."""
    written(tmp_path, [[4], [4], [5]], dtype)
    page = (Path(__file__).parents[2] / "docs/token_files.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    example: dict[str, Any] = {}
    exec(code, example)
    assert example["part_of"](tmp_path, "train").tolist() == list(range(13))


def test_parts_follow_each_other_in_the_order_asked_for(tmp_path: Path) -> None:
    shards: list[Shard] = []
    for part, first in (("train1", 0), ("validation", 100), ("train2", 200)):
        ids = np.arange(first, first + 7, dtype=np.uint32)
        shards += write_shards(tmp_path, part, "uint16", [(7, ids)])
    write_meta(tmp_path, Meta("uint16", tuple(shards), True))
    meta = read_meta(tmp_path)
    files = list(sound_shards(tmp_path, meta, 1000))
    assert open_tokens(meta, files, "train1", "train2")[5:9].tolist() == [5, 6, 200, 201]
    assert open_tokens(meta, files, "validation")[:2].tolist() == [100, 101]
    assert meta.parts == ("train1", "validation", "train2")


def test_meta_comes_back_as_it_was(tmp_path: Path) -> None:
    meta = written(tmp_path, [[1, 2, 3], [4]])
    assert read_meta(tmp_path) == meta


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1},
        {"dtype": "float16"},
        {"dtype": []},
        {"shards": None},
        {"shards": [5]},
        {"shards": [{}]},
    ],
    ids=str,
)
def test_a_meta_that_cannot_be_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    written(tmp_path, [[3]])
    data = json.loads((tmp_path / META).read_text())
    (tmp_path / META).write_text(json.dumps(data | change))
    with pytest.raises(UserError, match=META):
        read_meta(tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"part": "../secret"}, {"tokens": -1}, {"tokens": 1.5}, {"sha256": 5}, {"colour": "red"}],
    ids=str,
)
def test_a_shard_that_cannot_be_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    written(tmp_path, [[3]])
    data = json.loads((tmp_path / META).read_text())
    data["shards"][0] |= change
    (tmp_path / META).write_text(json.dumps(data))
    with pytest.raises(UserError, match=META):
        read_meta(tmp_path)


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "gone": (Path.unlink, "No such file"),
    "shorter": (lambda file: file.write_bytes(file.read_bytes()[:-2]), "another length"),
    "half an id": (lambda file: file.write_bytes(file.read_bytes()[:-1]), "another length"),
    "longer": (lambda file: file.write_bytes(file.read_bytes() + b"\0\0"), "another length"),
    "changed": (lambda file: file.write_bytes(file.read_bytes()[::-1]), "checksum"),
}


@pytest.mark.parametrize(("damage", "words"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_shard_is_named_and_those_before_it_are_sound(
    damage: Callable[[Path], Any], words: str, tmp_path: Path
) -> None:
    meta = written(tmp_path, [[4], [4], [4], [4]])
    damage(tmp_path / "train-00002.bin")
    sound = sound_shards(tmp_path, meta, 100)
    assert [next(sound).name for _ in range(2)] == ["train-00000.bin", "train-00001.bin"]
    with pytest.raises(UserError, match=f"train-00002.bin: .*{words}"):
        next(sound)


def test_an_id_outside_the_vocabulary_is_noticed(tmp_path: Path) -> None:
    written(tmp_path, [[4], [4]])
    assert len(read(tmp_path, vocab_size=8)) == 8
    with pytest.raises(UserError, match="outside the vocabulary"):
        read(tmp_path, vocab_size=7)


def test_a_shard_that_is_cut_short_while_it_is_read_is_named(tmp_path: Path) -> None:
    written(tmp_path, [[4], [4]])
    tokens = read(tmp_path)
    (tmp_path / "train-00001.bin").write_bytes(b"")
    assert tokens[:5].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(UserError, match=r"cut short: .*train-00001\.bin"):
        tokens[5:8]


def test_what_is_open_can_be_read_though_its_folder_is_removed(tmp_path: Path) -> None:
    """As when the cache is cleared during a long training."""
    written(tmp_path, [[4], [4]])
    tokens = read(tmp_path)
    for file in tmp_path.iterdir():
        file.unlink()
    assert tokens[:].tolist() == list(range(8))
