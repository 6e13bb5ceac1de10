"""A text as tokens to train and validate on, and the batches drawn from them.

Token files are kept in the user's cache folder, named by the text and whatever else decides about
their tokens, and verified each time they are opened.
"""

import contextlib
import hashlib
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from torch import Tensor

from .. import UserError
from ..config import TextConfig, cache_folder
from ..tokenizer import Tokenizer, TokenSplitter, load_tokenizer
from .corpus import Source, find_source
from .preparation import TOKENIZER, VALIDATION, build
from .token_file import (
    FORMAT,
    META,
    TokenIds,
    Tokens,
    open_tokens,
    read_meta,
    sound_shards,
)

__all__ = [
    "Dataset",
    "Source",
    "TokenIds",
    "TokenSequence",
    "check_length",
    "find_source",
    "open_dataset",
    "prepare",
    "sample_batch",
    "windows",
]


class TokenSequence(Protocol):
    """Token ids one after the other: an array, or the `Tokens` of a file."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> TokenIds: ...


@dataclass(frozen=True)
class Dataset:
    """Tokens to train on, tokens to validate on, and the tokenizer they came from.

    Attributes:
        tokenizer: what made the tokens.
        train: those to train on.
        validation: those to validate on.
        sources: which of `train` come from each source, if these are drawn from by weight.
        weights: of the sources.
    """

    tokenizer: Tokenizer
    train: Tokens
    validation: Tokens
    sources: tuple[range, ...] = ()
    weights: tuple[float, ...] = ()

    @cached_property
    def token_splitter(self) -> TokenSplitter:
        """Other ways to write the text in the tokenizer's tokens."""
        return TokenSplitter(self.tokenizer)


def prepare(
    source: Source,
    config: TextConfig,
    cache: Path | None = None,
    tokenizer: Tokenizer | None = None,
) -> Dataset:
    """Tokenize the text, or find the result of having done so before, or continue that.

    Args:
        source: the text.
        config: how to split and tokenize it.
        cache: folder of earlier results; default :func:`cache_folder`.
        tokenizer: to be kept, in place of the one that `config` names.

    Raises:
        UserError: if the text cannot be read or encoded, changes meanwhile, or is too short to
            split; if there is no room for the tokens.
    """
    folder = (cache or cache_folder()) / _key(source, config, tokenizer)
    try:
        return open_dataset(folder, config.weights)
    except UserError as error:  # not there, or damaged
        if folder.exists():
            _say(f"{error}; making it again")
    try:
        with _alone(folder):
            try:
                return open_dataset(folder, config.weights)  # another process has made it meanwhile
            except UserError:
                _make(source, config, folder, tokenizer)
    except OSError as error:
        raise UserError(
            f"cannot write the tokens to {folder.parent}: {error.strerror or error}; make room "
            "there, or set MINIGPT_CACHE to another folder"
        ) from None
    return open_dataset(folder, config.weights)


def _make(source: Source, config: TextConfig, folder: Path, tokenizer: Tokenizer | None) -> None:
    """Build beside the folder, going on with what an earlier process has left; then rename."""
    building = folder.with_name(f"building-{folder.name}")
    if folder.exists():
        shutil.rmtree(building, ignore_errors=True)
        folder.rename(building)
    building.mkdir(exist_ok=True)
    try:
        build(source, config, building, tokenizer)
        building.rename(folder)
    except BaseException as error:
        # Only where the text is at fault, or no shard is whole, there is nothing to continue.
        if isinstance(error, UserError) or not (building / META).exists():
            shutil.rmtree(building, ignore_errors=True)
        raise


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from making the same folder; wait for one that does."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        _say("another process is preparing this text: waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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


def check_length(tokens: Sized, context_length: int, name: str = "the training text") -> None:
    """Refuse a training text that does not hold a single window and its next token.

    Args:
        tokens: of the text.
        context_length: of the windows.
        name: what the text is called.

    Raises:
        UserError: with both lengths, and the largest context length that would do.
    """
    if len(tokens) <= context_length:
        raise UserError(
            f"{name} has {len(tokens):,} tokens, too few for context_length "
            f"{context_length:,}; use a longer text or --context-length {len(tokens) - 1}"
        )


def sample_batch(
    tokens: TokenSequence,
    batch_size: int,
    context_length: int,
    *,
    seed: int,
    step: int,
    sources: Sequence[range] = (),
    weights: Sequence[float] = (),
    rows: slice = slice(None),
    splitter: TokenSplitter | None = None,
    split_prob: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Windows of the text and, for each, the same window one token later.

    The text is cut into windows side by side, and all of them are drawn once, in random order,
    before the next pass cuts it elsewhere. With `weights`, a source is drawn by them and then a
    window anywhere in it. No step depends on what was drawn before it.

    Args:
        tokens: ``(n,)`` with n > context_length.
        batch_size: number of windows, b.
        context_length: tokens in each, T.
        seed: of the run.
        step: of the training.
        sources: the tokens of each source, each more than context_length.
        weights: of the sources.
        rows: only these of the windows, for one of several processes.
        splitter: of the windows' tokens.
        split_prob: share of the tokens that are split.

    Returns:
        Inputs and targets, both int64 ``(b, T)``, or as many as there are rows.
    """
    if weights:
        shares = np.array(weights) / sum(weights)
        starts = _weighted_starts(batch_size, context_length, seed, step, sources, shares)
    else:
        numbers = np.arange(step * batch_size, (step + 1) * batch_size)
        starts = _starts_in_turn(numbers, len(tokens), context_length, seed)
    batch = windows(tokens, starts[rows], context_length + 1)  # (b, T + 1)
    if splitter is not None and split_prob > 0.0:
        draw = np.random.Generator(np.random.Philox(key=[seed, step], counter=1 << 255))
        chance = draw.random((2, batch_size, context_length + 1))
        batch = splitter(batch, split_prob, chance[:, rows])
    return torch.from_numpy(batch[:, :-1]), torch.from_numpy(batch[:, 1:])


def _weighted_starts(
    count: int,
    context_length: int,
    seed: int,
    step: int,
    sources: Sequence[range],
    shares: NDArray[np.floating],
) -> NDArray[np.integer]:
    """Where the windows of a step begin, from a counter-based generator (Philox: "Parallel Random
    Numbers: As Easy as 1, 2, 3", Salmon et al. 2011)."""
    draw = np.random.Generator(np.random.Philox(key=[seed, step]))
    drawn = draw.choice(len(sources), size=count, p=shares)  # (b,)
    first, last = np.array([[source.start, source.stop] for source in sources])[drawn].T
    return draw.integers(first, last - context_length, size=count)


def _starts_in_turn(
    numbers: NDArray[np.integer], length: int, context_length: int, seed: int
) -> NDArray[np.integer]:
    """Where the windows with these numbers begin, counted from the first one of the training."""
    places = length - context_length  # where a window can begin
    in_a_pass = max(places // context_length, 1)
    starts = np.empty(len(numbers), np.int64)
    for turn in np.unique(numbers // in_a_pass).tolist():
        draw = np.random.Generator(np.random.Philox(key=[seed, turn]))
        offset = draw.integers(places - context_length * (in_a_pass - 1))
        here = numbers // in_a_pass == turn
        order = _shuffled(numbers[here] % in_a_pass, in_a_pass, draw)
        starts[here] = offset + context_length * order
    return starts


def _shuffled(
    numbers: NDArray[np.integer], count: int, draw: np.random.Generator
) -> NDArray[np.integer]:
    """Where a random permutation of ``range(count)`` takes these numbers, without a table of it.

    A Feistel network permutes the pairs of numbers below the root of the count, rounded up; what
    falls outside the range goes through it again ("Ciphers with Arbitrary Finite Domains", Black
    and Rogaway 2002).
    """
    side = np.uint64(math.isqrt(count - 1) + 1)
    keys = draw.integers(1 << 63, size=6, dtype=np.uint64)

    def permuted(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        left, right = values // side, values % side
        for key in keys:
            mixed = (right ^ key) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            left, right = right, (left + (mixed >> np.uint64(32))) % side
        return left * side + right

    values = permuted(numbers.astype(np.uint64))
    while (outside := values >= count).any():
        values[outside] = permuted(values[outside])
    return values.astype(np.int64)


def windows(tokens: TokenSequence, starts: NDArray[np.integer], length: int) -> NDArray[np.int64]:
    """The `length` tokens from each of `starts` on: ``(b, length)``."""
    return np.stack([tokens[start : start + length] for start in starts.tolist()]).astype(np.int64)
