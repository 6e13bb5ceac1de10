"""The token ids of a text on disk: made once, found again by the next run, read piece by piece.

A prepared text is a folder in `tokens/` of the user's cache folder (docs/token_files.md), named
after a hash of the text and of the settings that its tokens depend on. `say` and `progress` show
what is done.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from filelock import FileLock, Timeout
from tqdm import tqdm

from .. import UserError
from ..config import TextConfig, cache_folder
from ..tokenizer import (
    ForeignTokenizer,
    Tokenizer,
    TokenizerLike,
    as_tokenizer,
    load_tokenizer,
    make_tokenizer,
)
from .batches import Dataset, TokenIds
from .corpus import Part, encode
from .lengths import check_counts
from .source import Source, split

FORMAT = 4
FOLDER = "tokens"  # in the cache folder, which may hold other programs' files
META = "meta.json"
TOKENIZER = "tokenizer.json"
TRAIN = "train.bin"
VALIDATION = "validation.bin"
_NAME = re.compile(r"[0-9a-f]{32}(\.tmp)?")  # of a prepared text, or of one that is being made
_MOST_TO_LEARN = 1 << 25  # characters from which a BPE is learned
_MOST_BYTES = 5e9  # of texts that are kept
_BLOCK = 1 << 20  # tokens that are looked at together
Progress = Callable[[str, int], Any]  # makes a bar, such as a tqdm, of this name and total


def prepare(
    source: Source,
    config: TextConfig,
    *,
    tokenizer: TokenizerLike | None = None,
    cache: Path | None = None,
    say: Callable[[str], object] = lambda line: None,
    progress: Progress = lambda what, total: tqdm(disable=True),
) -> Dataset:
    """The tokens of a text: from the cache if they are there, else made and kept there.

    A `tokenizer` replaces the one of `config`. The tokens of somebody else's are not kept, since
    nothing tells for certain whether another one would give the same. `say` gets the lines that a
    person should read.
    """
    place = (cache or cache_folder()) / FOLDER
    given = None if tokenizer is None else as_tokenizer(tokenizer)
    if isinstance(given, ForeignTokenizer):
        dataset = _without_cache(source, config, given, place=place, say=say, progress=progress)
    else:
        dataset = _find_or_make(source, config, given, place=place, say=say, progress=progress)
    return replace(dataset, origin=source.origin(config))


def _find_or_make(
    source: Source,
    config: TextConfig,
    tokenizer: Tokenizer | None,
    *,
    place: Path,
    say: Callable[[str], object],
    progress: Progress,
) -> Dataset:
    """The tokens of a text from the cache, where they are put first if they are not there."""
    folder = place / _key(source, config, tokenizer)
    try:
        return open_dataset(folder)
    except UserError as error:  # not there, or damaged
        if folder.exists():
            say(f"{error}; making it again")

    with _writable(place), _only_process(folder, say):
        dataset = _found(folder)  # another process may have made it meanwhile
        if dataset is None:
            _make(folder, source, config, tokenizer, progress)
            dataset = open_dataset(folder)

    with contextlib.suppress(OSError):  # another process may do the same now
        _evict(folder)
    return dataset


def _found(folder: Path) -> Dataset | None:
    with contextlib.suppress(UserError):
        return open_dataset(folder)
    return None


@contextlib.contextmanager
def _writable(place: Path) -> Iterator[None]:
    """Make a folder to write into; what the system refuses then is said in one line."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UserError(
            f"cannot write the tokens to {place}: {error.strerror or error}; make room "
            "there, or set MINIGPT_CACHE to another folder"
        ) from None


@contextlib.contextmanager
def _only_process(folder: Path, say: Callable[[str], object]) -> Iterator[None]:
    """Keep other processes from preparing the same text; wait for one that does."""
    try:
        lock = _lock(folder).acquire(timeout=0)
    except Timeout:
        say("another process is preparing this text: waiting for it")
        lock = _lock(folder).acquire()
    with lock:
        yield


def _without_cache(
    source: Source,
    config: TextConfig,
    tokenizer: ForeignTokenizer,
    *,
    place: Path,
    say: Callable[[str], object],
    progress: Progress,
) -> Dataset:
    """The tokens of a text in files without a name, which are gone when nobody reads them."""
    training, validation = split(source, config)
    with _writable(place), progress("tokenizing", training.size + validation.size) as bar:
        parts = []
        for part in (training, validation):
            # Closed when nobody holds the Dataset any more.
            file = tempfile.TemporaryFile(dir=place)  # noqa: SIM115
            for block in _token_blocks(part, tokenizer, bar):
                file.write(block)
            file.flush()
            parts.append(Tokens(file, tokenizer.vocab_size))

    source.check_unchanged()
    train, validation_tokens = parts
    check_counts(len(train), len(validation_tokens), config)
    if config.max_characters is None:
        _say_if_lossy(source, tokenizer, parts, say)
    return Dataset(tokenizer, train, validation_tokens)


def _say_if_lossy(
    source: Source,
    tokenizer: ForeignTokenizer,
    parts: Sequence["Tokens"],
    say: Callable[[str], object],
) -> None:
    """Say it if the tokens of a text do not stand for all of its bytes, and for no others."""
    byte_lengths = np.array(tokenizer.byte_lengths())
    of_tokens = 0
    for tokens in parts:
        for start in range(0, len(tokens), _BLOCK):
            of_tokens += int(byte_lengths[tokens[start : start + _BLOCK]].sum())

    of_text = source.training.scan.text_bytes
    if source.validation is not None:
        of_text += source.validation.scan.text_bytes
    if of_tokens != of_text:
        share = f"{of_tokens / of_text:.1%} of the bytes of the text"
        say(f"the tokens of {tokenizer.name} stand for {share}; bits per byte count these")


def open_dataset(folder: Path) -> Dataset:
    """Open what :func:`prepare` made, if it is whole."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        for name in (TOKENIZER, TRAIN, VALIDATION):
            _verify(folder / name, meta["files"][name])

        tokenizer = load_tokenizer(folder / TOKENIZER)
        train = Tokens(folder / TRAIN, tokenizer.vocab_size)
        validation = Tokens(folder / VALIDATION, tokenizer.vocab_size)
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise UserError(f"the token cache {folder} is damaged: {error}") from None

    with contextlib.suppress(OSError):  # the cache may be another user's
        os.utime(folder / META)  # when it was used last, for _evict
    return Dataset(tokenizer, train, validation)


class Tokens:
    """The ids in a file, read when they are asked for: a mapped file would count as memory.

    The file is given by its name, or open.
    """

    def __init__(self, file: Path | IO[bytes], vocab_size: int):
        self.dtype = np.dtype(_dtype(vocab_size))
        self._file = io.FileIO(file) if isinstance(file, Path) else file
        self._length = os.fstat(self._file.fileno()).st_size // self.dtype.itemsize

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> TokenIds:
        start, stop, _ = part.indices(self._length)
        size = self.dtype.itemsize * max(stop - start, 0)  # bytes

        self._file.seek(self.dtype.itemsize * start)
        data = self._file.read(size) or b""
        if len(data) != size:
            raise UserError(f"the token cache was cut short: {self._file.name}")
        return np.frombuffer(data, self.dtype)


def _dtype(vocab_size: int) -> str:
    return "<u2" if vocab_size <= 1 << 16 else "<u4"


def _key(source: Source, config: TextConfig, tokenizer: Tokenizer | None) -> str:
    """Names a prepared text by everything that its tokens depend on."""
    is_learned = tokenizer is None and config.tokenizer == "bpe"
    parts = {
        "format": FORMAT,
        "text": source.fingerprint,
        "validation_fraction": None if source.validation else config.validation_fraction,
        "split": config.split,
        "max_characters": config.max_characters,
        "tokenizer": config.tokenizer if tokenizer is None else tokenizer.to_json(),
        "vocab_size": config.vocab_size if is_learned else None,
    }
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _lock(folder: Path) -> FileLock:
    """One of 256 locks. Their files stay: another process may be waiting for one."""
    return FileLock(folder.with_name(f"{folder.name[:2]}.lock"))


def _make(
    folder: Path,
    source: Source,
    config: TextConfig,
    tokenizer: Tokenizer | None,
    progress: Progress,
) -> None:
    """Prepare a text in a folder, which is there only when it is whole."""
    temporary = folder.with_suffix(".tmp")
    shutil.rmtree(temporary, ignore_errors=True)  # of a process that was killed
    try:
        temporary.mkdir()
        _fill(temporary, source, config, tokenizer, progress)
        shutil.rmtree(folder, ignore_errors=True)  # it was damaged
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _fill(
    folder: Path,
    source: Source,
    config: TextConfig,
    given: Tokenizer | None,
    progress: Progress,
) -> None:
    """Learn a tokenizer if none is given, encode the text, and write meta.json when all is well."""
    training, validation = split(source, config)
    # A list of characters must cover both texts.
    learned_from = [training, validation] if config.tokenizer == "char" else [training]
    tokenizer = given or _learn(learned_from, config, progress)

    files = {}
    with progress("tokenizing", training.size + validation.size) as bar:
        for name, part in ((TRAIN, training), (VALIDATION, validation)):
            files[name] = _store(folder / name, _token_blocks(part, tokenizer, bar))

    source.check_unchanged()
    dtype = _dtype(tokenizer.vocab_size)
    size = np.dtype(dtype).itemsize
    check_counts(files[TRAIN]["size"] // size, files[VALIDATION]["size"] // size, config)

    files[TOKENIZER] = _store(folder / TOKENIZER, [tokenizer.to_json().encode()])
    meta = {"format": FORMAT, "dtype": dtype, "files": files}
    _store(folder / META, [(json.dumps(meta, indent=1) + "\n").encode()])


def _token_blocks(part: Part, tokenizer: Tokenizer, bar: Any) -> Iterator[bytes]:
    """The ids of a text as they are in a file, block by block; the bar counts characters."""
    dtype = _dtype(tokenizer.vocab_size)
    for characters, ids in encode(tokenizer, part):
        yield ids.astype(dtype).tobytes()
        bar.update(characters)


def _learn(parts: Sequence[Part], config: TextConfig, progress: Progress) -> Tokenizer:
    """The tokenizer that a config names, learned from some texts."""
    if config.tokenizer == "bpe":
        parts = [part.at_most(_MOST_TO_LEARN) for part in parts]

    characters = sum(part.size for part in parts)
    with progress("learning the tokenizer", characters) as bar:

        def texts() -> Iterator[str]:
            for _, text in chain.from_iterable(part.documents() for part in parts):
                yield text
                bar.update(len(text))

        return make_tokenizer(config.tokenizer, config.vocab_size, texts())


def _store(file: Path, blocks: Iterable[bytes]) -> dict[str, Any]:
    """Write a file, and return the record by which :func:`_verify` knows it."""
    digest = hashlib.sha256()
    with open(file, "wb") as out:
        for block in blocks:
            out.write(block)
            digest.update(block)
        out.flush()
        os.fsync(out.fileno())

    status = file.stat()
    return {
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "sha256": digest.hexdigest(),
    }


def _verify(file: Path, record: dict[str, Any]) -> None:
    """Refuse a file if its size differs; if just its time does, the checksum decides."""
    status = file.stat()
    if status.st_size != record["size"]:
        raise ValueError(f"{file.name} is longer or shorter than it was")

    if status.st_mtime_ns != record["mtime_ns"]:  # a copy, perhaps
        with open(file, "rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != record["sha256"]:
            raise ValueError(f"the checksum of {file.name} does not match")
        with contextlib.suppress(OSError):  # the cache may be another user's
            os.utime(file, ns=(record["mtime_ns"], record["mtime_ns"]))


def _evict(made: Path) -> None:
    """Keep the texts used last, up to 5 GB; remove what killed processes left."""
    texts = []
    for folder in filter(_is_ours, made.parent.iterdir()):
        if folder.suffix == ".tmp":
            _remove(folder)
        elif folder != made:
            texts.append(folder)

    size = _size(made)
    for folder in sorted(texts, key=_last_used, reverse=True):
        size += _size(folder)
        if size > _MOST_BYTES:
            _remove(folder)


def _is_ours(folder: Path) -> bool:
    """Whether a folder is certainly a prepared text, or one that was not finished: by its name, and
    by all that it holds."""
    if not _NAME.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
        return False

    held = {file.name for file in folder.iterdir()}
    ours = {META, TOKENIZER, TRAIN, VALIDATION}
    is_unfinished = folder.suffix == ".tmp"
    return held <= ours if is_unfinished else held == ours


def _last_used(folder: Path) -> int:
    """When a text was used last, in nanoseconds."""
    return (folder / META).stat().st_mtime_ns


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _remove(folder: Path) -> None:
    """Remove a prepared text that no process is making; one that has it open can still read it."""
    with contextlib.suppress(OSError), _lock(folder).acquire(timeout=0):
        shutil.rmtree(folder.rename(folder.with_suffix(".tmp")))
