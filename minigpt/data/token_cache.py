"""From a text to its tokens: made once, and found again by the next run.

A prepared text is a folder in `tokens/` of the user's cache folder (docs/token_files.md), named
after a hash of the text and of the settings that its tokens depend on. token_files.py writes and
reads its files, finds it and removes it.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from filelock import Timeout
from tqdm import tqdm

from .. import UserError
from ..config import TextConfig
from ..system.errors import kind_of_error
from ..system.platforms import rename
from ..tokenizer import (
    ForeignTokenizer,
    Tokenizer,
    load_tokenizer,
    make_tokenizer,
)
from .batches import Dataset
from .corpus import Part, encode
from .dialogue import said_by
from .source import Source, check_counts, split
from .token_files import (
    FOLDER,
    FORMAT,
    META,
    TOKENIZER,
    TRAIN,
    VALIDATION,
    Tokens,
    cache_folder,
    evict,
    id_dtype,
    lock_of,
    store,
    store_meta,
    verify,
)

_MOST_TO_LEARN = 1 << 25  # characters from which a BPE is learned
_BLOCK = 1 << 20  # tokens that are looked at together
Progress = Callable[[str, int], Any]  # makes a bar, such as a tqdm, of this name and total


@dataclass(frozen=True)
class _Task:
    """What is to be prepared, and what is told about it."""

    source: Source
    config: TextConfig
    tokenizer: Tokenizer | None  # None for the one that the config names
    say: Callable[[str], object]
    progress: Progress


def prepare_tokens(
    source: Source,
    config: TextConfig,
    *,
    tokenizer: Tokenizer | None = None,
    cache: Path | None = None,
    say: Callable[[str], object] = lambda line: None,
    progress: Progress = lambda what, total: tqdm(disable=True),
) -> Dataset:
    """The tokens of a text: from the cache if they are there, else made and kept there.

    A `tokenizer` replaces the one of `config`. Tokens of somebody else's tokenizer are not kept,
    since nothing tells for certain whether another tokenizer would give the same tokens. `say` gets
    the lines that a person should read.
    """
    task = _Task(source, config, tokenizer=tokenizer, say=say, progress=progress)
    tokens_folder = (cache or cache_folder()) / FOLDER

    is_foreign = isinstance(tokenizer, ForeignTokenizer)
    dataset = (
        _without_cache(task, tokens_folder) if is_foreign else _from_cache(task, tokens_folder)
    )
    dataset = replace(dataset, origin=source.origin(config))
    return dataset if config.only is None else _counting_only(dataset, config.only)


def _counting_only(dataset: Dataset, speaker: str) -> Dataset:
    """The dataset, of which only those tokens count that a speaker says."""
    dialogue = dataset.origin.dialogue
    if dialogue is None:
        raise UserError("--only needs a text that is mostly conversations; this one is not")
    name = dialogue.find(speaker)
    return replace(
        dataset,
        counted_train=said_by(dataset.train, dataset.tokenizer, dialogue, name),
        counted_validation=said_by(dataset.validation, dataset.tokenizer, dialogue, name),
    )


# Tokens that are kept


def _from_cache(task: _Task, tokens_folder: Path) -> Dataset:
    """The tokens of a text from its folder in the cache, made and kept there if it has none."""
    folder = tokens_folder / _key(task)
    try:
        return open_dataset(folder)
    except UserError as error:  # not there, or damaged
        if folder.exists():
            task.say(f"{error}; making it again")

    with _writable(tokens_folder), _only_process(folder, task.say):
        dataset = None
        with contextlib.suppress(UserError):
            dataset = open_dataset(folder)  # another process may have made it meanwhile
        if dataset is None:
            _make(task, folder)
            dataset = open_dataset(folder)

    with contextlib.suppress(OSError):  # another process may do the same now
        evict(folder)
    return dataset


def _key(task: _Task) -> str:
    """Names a prepared text by everything that its tokens depend on."""
    config = task.config
    tokenizer = config.tokenizer if task.tokenizer is None else task.tokenizer.to_json()
    is_learned = tokenizer == "bpe"
    has_own = task.source.validation is not None  # a text to validate on
    parts = {
        "format": FORMAT,
        "text": task.source.fingerprint,
        "validation_fraction": None if has_own else config.validation_fraction,
        "split": config.split,
        "max_characters": config.max_characters,
        "tokenizer": tokenizer,
        "vocab_size": config.vocab_size if is_learned else None,
    }
    if is_learned and task.source.has_turns:
        parts["turns"] = True
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def open_dataset(folder: Path) -> Dataset:
    """The tokens in a folder, if they are whole; else a UserError."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        for name in (TOKENIZER, TRAIN, VALIDATION):
            verify(folder / name, meta["files"][name])

        tokenizer = load_tokenizer(folder / TOKENIZER)
        train = Tokens(folder / TRAIN, tokenizer.vocab_size)
        validation = Tokens(folder / VALIDATION, tokenizer.vocab_size)
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise UserError(f"the token cache {folder} is damaged: {error}") from None

    with contextlib.suppress(OSError):  # the cache may be another user's
        os.utime(folder / META)  # which tells when the text was used last
    return Dataset(tokenizer, train, validation)


@contextlib.contextmanager
def _writable(tokens_folder: Path) -> Iterator[None]:
    """Make a folder to write into; what the system refuses then is said in one line."""
    try:
        tokens_folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        kind = kind_of_error(error)
        room = "make room there, or " if kind == "disk_full" else ""
        raise UserError(
            f"cannot write the tokens to {tokens_folder}: {error.strerror or error}; {room}"
            "set MINIGPT_CACHE to another folder",
            kind=kind,
        ) from None


@contextlib.contextmanager
def _only_process(folder: Path, say: Callable[[str], object]) -> Iterator[None]:
    """Keep other processes from preparing the same text; wait for one that does."""
    try:
        lock = lock_of(folder).acquire(timeout=0)
    except Timeout:
        say("another process is preparing this text: waiting for it")
        lock = lock_of(folder).acquire()
    with lock:
        yield


def _make(task: _Task, folder: Path) -> None:
    """Prepare a text in a folder, which is there only when it is whole."""
    temporary = folder.with_suffix(".tmp")
    shutil.rmtree(temporary, ignore_errors=True)  # of a process that was killed
    try:
        temporary.mkdir()
        _fill(task, temporary)
        shutil.rmtree(folder, ignore_errors=True)  # it was damaged
        rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _fill(task: _Task, folder: Path) -> None:
    """Learn a tokenizer if none is given, encode the text, and write all files."""
    training, validation = split(task.source, task.config)
    tokenizer = task.tokenizer or _learn(task, training, validation)
    dtype = id_dtype(tokenizer.vocab_size)

    files = {}
    with task.progress("tokenizing", training.size + validation.size) as bar:
        files[TRAIN] = store(folder / TRAIN, _id_blocks(training, tokenizer, bar))
        files[VALIDATION] = store(folder / VALIDATION, _id_blocks(validation, tokenizer, bar))

    task.source.check_unchanged()
    count = files[TRAIN]["size"] // dtype.itemsize
    count_to_validate = files[VALIDATION]["size"] // dtype.itemsize
    check_counts(count, count_to_validate, task.config)

    files[TOKENIZER] = store(folder / TOKENIZER, [tokenizer.to_json().encode()])
    store_meta(folder, files, dtype, task.source.fingerprint)


def _id_blocks(part: Part, tokenizer: Tokenizer, bar: Any) -> Iterator[bytes]:
    """The ids of a text as they are in a file, block by block; the bar counts characters."""
    dtype = id_dtype(tokenizer.vocab_size)
    for characters, ids in encode(tokenizer, part):
        yield ids.astype(dtype).tobytes()
        bar.update(characters)


def _learn(task: _Task, training: Part, validation: Part) -> Tokenizer:
    """The tokenizer that a config names, learned from the text."""
    config = task.config
    parts = [training]
    if config.tokenizer == "char":
        parts.append(validation)  # a list of characters must cover both
    elif config.tokenizer == "bpe":
        parts = [training.at_most(_MOST_TO_LEARN)]

    characters = sum(part.size for part in parts)
    with task.progress("learning the tokenizer", characters) as bar:

        def texts() -> Iterator[str]:
            for piece in chain.from_iterable(part.pieces() for part in parts):
                yield piece.text
                bar.update(len(piece.text))

        return make_tokenizer(
            config.tokenizer, config.vocab_size, texts(), has_turns=task.source.has_turns
        )


# Tokens of somebody else's tokenizer


def _without_cache(task: _Task, tokens_folder: Path) -> Dataset:
    """The tokens of a text in files without a name, which are gone when nobody reads them."""
    tokenizer = task.tokenizer
    assert isinstance(tokenizer, ForeignTokenizer)
    parts = split(task.source, task.config)

    files = []
    with (
        _writable(tokens_folder),
        task.progress("tokenizing", sum(part.size for part in parts)) as bar,
    ):
        for part in parts:
            # Closed when nobody holds the Dataset any more.
            file = tempfile.TemporaryFile(dir=tokens_folder)  # noqa: SIM115
            for block in _id_blocks(part, tokenizer, bar):
                file.write(block)
            file.flush()
            files.append(file)

    train, validation = (Tokens(file, tokenizer.vocab_size) for file in files)
    task.source.check_unchanged()
    check_counts(len(train), len(validation), task.config)

    if task.config.max_characters is None:
        in_tokens = _bytes_of(train, tokenizer) + _bytes_of(validation, tokenizer)
        share = in_tokens / task.source.text_bytes
        if share != 1.0:
            about = f"stand for {share:.1%} of the bytes of the text; bits per byte count these"
            task.say(f"the tokens of {tokenizer.name} {about}")
    return Dataset(tokenizer, train, validation)


def _bytes_of(tokens: Tokens, tokenizer: Tokenizer) -> int:
    """How many bytes of text some tokens stand for."""
    byte_lengths = np.array(tokenizer.byte_lengths())
    starts = range(0, len(tokens), _BLOCK)
    return sum(int(byte_lengths[tokens[start : start + _BLOCK]].sum()) for start in starts)
