"""A text as tokens, prepared once and kept in the user's cache folder.

Token files are named by the text and whatever else decides about their tokens, and verified each
time they are opened. Nothing here prints: `say` and `progress` are passed in.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .. import UserError
from ..config import TextConfig, cache_folder
from ..tokenizer import Tokenizer, load_tokenizer
from .batches import Dataset
from .corpus import Source
from .preparation import TOKENIZER, VALIDATION, Progress, build, no_bar
from .token_file import FORMAT, META, open_tokens, read_meta, sound_shards

Say = Callable[[str], object]


def silent(line: str) -> None:
    """Drop what would be said."""


def prepare(
    source: Source,
    config: TextConfig,
    *,
    tokenizer: Tokenizer | None = None,
    cache: Path | None = None,
    say: Say = silent,
    progress: Progress = no_bar,
) -> Dataset:
    """Tokenize the text, or find the result of having done so before, or continue that.

    Args:
        source: the text.
        config: how to split and tokenize it.
        tokenizer: to be kept, in place of the one that `config` names.
        cache: folder of earlier results; default :func:`cache_folder`.
        say: told in one line what the user may want to know.
        progress: called with a description and a number of characters, opens a progress bar: a
            context manager with a method `update(characters)`.

    Raises:
        UserError: if the text cannot be read or encoded, changes meanwhile, or is too short to
            split; if there is no room for the tokens.
    """
    folder = (cache or cache_folder()) / _key(source, config, tokenizer)
    try:
        return open_dataset(folder, config.weights)
    except UserError as error:  # not there, or damaged
        if folder.exists():
            say(f"{error}; making it again")
    try:
        with _alone(folder, say):
            try:
                return open_dataset(folder, config.weights)  # another process has made it meanwhile
            except UserError:
                _make(source, config, folder, tokenizer, progress)
    except OSError as error:
        raise UserError(
            f"cannot write the tokens to {folder.parent}: {error.strerror or error}; make room "
            "there, or set MINIGPT_CACHE to another folder"
        ) from None
    return open_dataset(folder, config.weights)


def _make(
    source: Source,
    config: TextConfig,
    folder: Path,
    tokenizer: Tokenizer | None,
    progress: Progress,
) -> None:
    """Build beside the folder, going on with what an earlier process has left; then rename."""
    building = folder.with_name(f"building-{folder.name}")
    if folder.exists():
        shutil.rmtree(building, ignore_errors=True)
        folder.rename(building)
    building.mkdir(exist_ok=True)
    try:
        build(source, config, building, tokenizer, progress)
        building.rename(folder)
    except BaseException as error:
        # Only where the text is at fault, or no shard is whole, there is nothing to continue.
        if isinstance(error, UserError) or not (building / META).exists():
            shutil.rmtree(building, ignore_errors=True)
        raise


@contextlib.contextmanager
def _alone(folder: Path, say: Say) -> Iterator[None]:
    """Keep other processes from making the same folder; wait for one that does."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say("another process is preparing this text: waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _key(source: Source, config: TextConfig, tokenizer: Tokenizer | None) -> str:
    """Names the result by everything it depends on."""
    validation = source.validation
    parts: dict[str, Any] = {
        "format": FORMAT,
        "training": source.training.fingerprint,
        "sources": [len(corpus.files) for corpus in source.weighted],
        "validation": validation.fingerprint if validation else config.validation_fraction,
        "split": config.split,
        "tokenizer": config.tokenizer,
        "vocab_size": config.vocab_size if config.tokenizer == "bpe" else None,
    }
    if tokenizer is not None:
        parts |= {"tokenizer": tokenizer.to_json(), "vocab_size": None}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def open_dataset(folder: Path, weights: tuple[float, ...] = ()) -> Dataset:
    """Open what `prepare` made.

    Args:
        folder: of the token file.
        weights: of its sources, if they are drawn from by weight.

    Raises:
        UserError: if it is not whole: lengths, checksums and ids are verified.
    """
    try:
        tokenizer, meta = load_tokenizer(folder / TOKENIZER), read_meta(folder)
        files = list(sound_shards(folder, meta, tokenizer.vocab_size))
        names = [name for name in meta.parts if name != VALIDATION]
        if not meta.whole or VALIDATION not in meta.parts or len(names) != max(len(weights), 1):
            raise UserError("parts are missing")
    except UserError as error:
        raise UserError(f"the token cache {folder} is damaged: {error}") from None
    ends = [0, *accumulate(meta.tokens(name) for name in names)]
    return Dataset(
        tokenizer,
        open_tokens(meta, files, *names),
        open_tokens(meta, files, VALIDATION),
        tuple(map(range, ends, ends[1:])) if weights else (),
        weights,
    )
