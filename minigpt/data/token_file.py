"""The token file: the ids of a text in shards, and what is needed to trust and to continue them.

It is a folder: shards of nothing but ids, `train-00000.bin`, ..., `validation-00000.bin`, ...; the
`tokenizer.json` that made them; and `meta.json`, which lists the shards with their checksums and
says where in the text each ends. docs/token_files.md describes all of it.

A shard is written under another name and renamed; then meta.json is replaced by one that lists it.
Killed at any moment, a preparation has lost the shard it was at.
"""

import hashlib
import io
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import UserError
from ..config import from_dict

FORMAT = 2
SHARD_BYTES = 1 << 28
META = "meta.json"
_TYPES = {"uint16": "<u2", "uint32": "<u4"}
_BLOCK = 1 << 20  # bytes read at a time
_END = (0, np.empty(0, np.uint32))  # of encoded text

TokenIds = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class Shard:
    """One file of ids, and where the next one of its part begins."""

    part: str
    tokens: int
    sha256: str
    characters: int  # of the part's text before the next shard, up to the last cut
    ids: int  # those behind that cut that are in this shard already


@dataclass(frozen=True)
class Meta:
    """What meta.json holds."""

    dtype: str
    shards: tuple[Shard, ...] = ()
    whole: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that have shards, in order."""
        return tuple(dict.fromkeys(shard.part for shard in self.shards))

    def of(self, part: str) -> tuple[Shard, ...]:
        """The shards of a part."""
        return tuple(shard for shard in self.shards if shard.part == part)

    def tokens(self, part: str) -> int:
        """Number of tokens in a part."""
        return sum(shard.tokens for shard in self.of(part))

    def characters(self, part: str) -> int:
        """Number of characters of a part's text that its shards hold whole."""
        return max((shard.characters for shard in self.of(part)), default=0)


class Tokens:
    """The ids of a text, as one long sequence over its shards.

    They are read when asked for. Mapped into memory, the pages of a large file would count as the
    process's own until it has touched all of it.

    Args:
        shards: of each, the open file and the number of tokens.
        dtype: their type.
    """

    def __init__(self, shards: Sequence[tuple[io.RawIOBase, int]], dtype: Any):
        self._files = [file for file, _ in shards]
        self._ends = list(accumulate(tokens for _, tokens in shards))
        self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, part: slice) -> TokenIds:
        """The tokens of a slice without a step."""
        start, stop, _ = part.indices(len(self))
        read = [np.empty(0, self.dtype)]
        while start < stop:
            k = bisect_right(self._ends, start)
            first = self._ends[k - 1] if k else 0
            end = min(stop, self._ends[k])
            read.append(self._read(self._files[k], start - first, end - start))
            start = end
        return read[1] if len(read) == 2 else np.concatenate(read)

    def _read(self, file: io.RawIOBase, start: int, count: int) -> TokenIds:
        file.seek(start * self.dtype.itemsize)
        ids = np.frombuffer(file.read(count * self.dtype.itemsize) or b"", self.dtype)
        if len(ids) != count:
            raise UserError(f"the token cache was cut short: {getattr(file, 'name', '')}")
        return ids


def write_meta(folder: Path, meta: Meta) -> None:
    """Replace a folder's meta.json."""
    shards = [asdict(shard) for shard in meta.shards]
    parts = {"format": FORMAT, "dtype": meta.dtype, "whole": meta.whole, "shards": shards}
    new = folder / f".new-{META}"
    new.write_text(json.dumps(parts, indent=1) + "\n", encoding="utf-8")
    new.replace(folder / META)


def read_meta(folder: Path) -> Meta:
    """What a folder's meta.json says.

    Raises:
        UserError: if it is missing or damaged.
    """
    try:
        data = json.loads((folder / META).read_text(encoding="utf-8"))
        if data["format"] != FORMAT or data["dtype"] not in _TYPES:
            raise ValueError("another format")
        shards = tuple(from_dict(Shard, shard) for shard in data["shards"])
        if any(min(s.tokens, s.characters, s.ids) < 0 or not s.part.isalnum() for s in shards):
            raise ValueError("a shard cannot be")
        return Meta(data["dtype"], shards, data["whole"] is True)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{META}: {error}") from None


def sound_shards(folder: Path, meta: Meta, vocab_size: int) -> Iterator[Path]:
    """The files of the shards in their order, each verified: its size, checksum, and ids.

    Raises:
        UserError: at the first one that is not what was written, naming it.
    """
    numbers: dict[str, int] = {}
    for shard in meta.shards:
        number = numbers[shard.part] = numbers.get(shard.part, -1) + 1
        file = folder / _shard_name(shard.part, number)
        try:
            _verify(file, shard, np.dtype(_TYPES[meta.dtype]), vocab_size)
        except (OSError, ValueError) as error:
            raise UserError(f"{file.name}: {error}") from None
        yield file


def _verify(file: Path, shard: Shard, dtype: Any, vocab_size: int) -> None:
    if file.stat().st_size != shard.tokens * dtype.itemsize:
        raise ValueError("it has another length than was written")
    digest, largest = hashlib.sha256(), 0
    with open(file, "rb") as raw:
        while block := raw.read(_BLOCK):
            digest.update(block)
            largest = max(largest, int(np.frombuffer(block, dtype).max()))
    if digest.hexdigest() != shard.sha256:
        raise ValueError("its checksum does not match")
    if largest >= vocab_size:
        raise ValueError("a token id is outside the vocabulary")


def open_tokens(meta: Meta, files: Sequence[Path], *parts: str) -> Tokens:
    """The ids of parts, one after the other.

    Args:
        meta: of the token file.
        files: of all its shards, from :func:`sound_shards`.
        parts: their names.
    """
    pairs = list(zip(meta.shards, files, strict=True))
    chosen = [pair for name in parts for pair in pairs if pair[0].part == name]
    shards = [(_opened(file), shard.tokens) for shard, file in chosen]
    return Tokens(shards, _TYPES[meta.dtype])


def _opened(file: Path) -> io.RawIOBase:
    return open(file, "rb", buffering=0)


def write_shards(
    folder: Path,
    part: str,
    dtype: str,
    encoded: Iterable[tuple[int, TokenIds]],
    done: Sequence[Shard] = (),
) -> Iterator[Shard]:
    """Write the ids of a part, yielding each shard when it is on disk.

    Args:
        folder: of the token file.
        part: its name.
        dtype: "uint16" or "uint32".
        encoded: numbers of characters and their ids, from where the shards that are `done` end.
        done: those.

    Raises:
        OSError: if there is no room.
    """
    kind = np.dtype(_TYPES[dtype])
    size = SHARD_BYTES // kind.itemsize
    position, used = (done[-1].characters, done[-1].ids) if done else (0, 0)
    number, pieces, new = len(done), iter(encoded), folder / ".new-shard"
    characters, ids = next(pieces, _END)
    while True:
        tokens, digest = 0, hashlib.sha256()
        with open(new, "wb") as file:
            while tokens < size and characters:
                taken = ids[used : used + size - tokens].astype(kind)
                file.write(taken.tobytes())
                digest.update(taken.tobytes())
                tokens, used = tokens + len(taken), used + len(taken)
                if used >= len(ids):
                    position, used = position + characters, used - len(ids)
                    characters, ids = next(pieces, _END)
        if not tokens:
            new.unlink()
            return
        new.replace(folder / _shard_name(part, number))
        yield Shard(part, tokens, digest.hexdigest(), position, used)
        number += 1


def _shard_name(part: str, number: int) -> str:
    return f"{part}-{number:05}.bin"
