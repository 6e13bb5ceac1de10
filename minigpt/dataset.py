"""Documents of text to a memory-mapped file of token ids, and that file to batches.

The token file is little-endian uint16 (uint32 for more than 65,536 tokens), one id after the
other; documents are separated by the tokenizer's end-of-text id. `meta.json` beside it holds
the format's version, the type, the lengths and checksums. Both are cached by content and tokenizer.
"""

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from .config import TextConfig, UserError
from .corpus import Corpus, TextPiece, find_files
from .tokenizer import Tokenizer, encode_in_pieces, load_tokenizer, make_tokenizer

FORMAT = 1
_TOKENIZER_SAMPLE = 1 << 26  # a BPE is learned from at most this many characters

TokenIds = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class Source:
    """The text of a run: what to train on, and what to validate on if that is separate."""

    training: Corpus
    validation: Corpus | None

    @property
    def fingerprint(self) -> str:
        """A hash of all of it."""
        own = self.validation.fingerprint if self.validation else ""
        return hashlib.sha256((self.training.fingerprint + own).encode()).hexdigest()


@dataclass(frozen=True)
class Dataset:
    """Tokens to train on, tokens to validate on, and the tokenizer they came from."""

    tokenizer: Tokenizer
    train: TokenIds  # (number of training tokens,), memory-mapped
    validation: TokenIds  # (number of validation tokens,), memory-mapped


def find_source(config: TextConfig) -> Source:
    """The files of the text that `config` names.

    Raises:
        UserError: if there is no such file.
    """
    field = config.text_field
    validation = None
    if config.validation:
        validation = Corpus(find_files(config.validation), field)
    return Source(Corpus(find_files(config.files), field), validation)


def prepare(
    source: Source,
    config: TextConfig,
    cache: Path | None = None,
    tokenizer: Tokenizer | None = None,
) -> Dataset:
    """Tokenize the text, or find the result of having done so before.

    Args:
        source: the text.
        config: how to split and tokenize it.
        cache: folder of earlier results; default :func:`cache_folder`.
        tokenizer: to be kept, in place of the one that `config` names.

    Raises:
        UserError: if the text cannot be read or encoded, or is too short to split.
    """
    folder = (cache or cache_folder()) / _key(source, config, tokenizer)
    if folder.exists():
        with contextlib.suppress(UserError):  # a damaged result is made again
            return open_dataset(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as building:
            result = Path(building) / "result"
            result.mkdir()
            _build(source, config, result, tokenizer)
            _install(result, folder)
    except OSError as error:
        raise UserError(
            f"cannot write the tokens to {folder.parent}: {error.strerror}; "
            "set MINIGPT_CACHE to another folder"
        ) from None
    return open_dataset(folder)


def _install(result: Path, folder: Path) -> None:
    """Put a result in its place, unless another process was faster."""
    with contextlib.suppress(UserError):
        open_dataset(folder)
        return
    shutil.rmtree(folder, ignore_errors=True)
    result.rename(folder)


def cache_folder() -> Path:
    """Where token files are kept: $MINIGPT_CACHE, or minigpt in the user's cache folder."""
    if chosen := os.environ.get("MINIGPT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minigpt"


def sample_batch(
    tokens: TokenIds,
    batch_size: int,
    context_length: int,
    *,
    seed: int,
    step: int,
    rows: slice = slice(None),
) -> tuple[Tensor, Tensor]:
    """Random windows of the text and, for each, the same window one token later.

    The windows are drawn from a counter-based generator keyed by (seed, step), so that step n
    is the same whenever and wherever it is drawn (Philox: "Parallel Random Numbers: As Easy as
    1, 2, 3", Salmon et al. 2011).

    Args:
        tokens: ``(n,)`` with n > context_length.
        batch_size: number of windows, b.
        context_length: tokens in each, T.
        seed: of the run.
        step: of the training.
        rows: only these of the windows, for one of several processes.

    Returns:
        Inputs and targets, both int64 ``(b, T)``, or as many as there are rows.
    """
    draw = np.random.Generator(np.random.Philox(key=[seed, step]))
    starts = draw.integers(len(tokens) - context_length, size=(batch_size, 1))  # (b, 1)
    windows = tokens[starts[rows] + np.arange(context_length + 1)].astype(np.int64)  # (b, T + 1)
    return torch.from_numpy(windows[:, :-1]), torch.from_numpy(windows[:, 1:])


def check_length(tokens: TokenIds, context_length: int) -> None:
    """Refuse a training text that does not hold a single window and its next token.

    Raises:
        UserError: with both lengths, and the largest context length that would do.
    """
    if len(tokens) <= context_length:
        raise UserError(
            f"the training text has {len(tokens):,} tokens, too few for context_length "
            f"{context_length:,}; use a longer text or --context-length {len(tokens) - 1}"
        )


def _key(source: Source, config: TextConfig, tokenizer: Tokenizer | None) -> str:
    """Names the result by everything it depends on."""
    validation = source.validation
    parts: dict[str, Any] = {
        "format": FORMAT,
        "training": source.training.fingerprint,
        "validation": validation.fingerprint if validation else config.validation_fraction,
        "tokenizer": config.tokenizer,
        "vocab_size": config.vocab_size if config.tokenizer == "bpe" else None,
    }
    if tokenizer is not None:
        parts |= {"tokenizer": tokenizer.to_json(), "vocab_size": None}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _build(source: Source, config: TextConfig, folder: Path, tokenizer: Tokenizer | None) -> None:
    """Write tokenizer.json, train.bin, validation.bin and, last, meta.json into `folder`."""
    characters = source.training.characters
    if characters == 0:
        names = ", ".join(str(file) for file in source.training.files)
        raise UserError(f"there is no text in {names}")
    if tokenizer is None:
        texts = _tokenizer_texts(source, config)
        tokenizer = make_tokenizer(config.tokenizer, config.vocab_size, texts)
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    dtype = "uint16" if tokenizer.vocab_size <= 1 << 16 else "uint32"
    lengths = {}
    with tqdm(
        total=characters, unit="char", unit_scale=True, desc="tokenizing", delay=1,
        leave=False, disable=None, file=sys.stderr,
    ) as bar:  # fmt: skip
        for name in ("train", "validation"):
            with open(folder / f"{name}.bin", "wb") as file:
                lengths[name] = 0
                for number, ids in _encoded(tokenizer, _part(source, config, name)):
                    file.write(np.asarray(ids, dtype=f"<u{np.dtype(dtype).itemsize}").tobytes())
                    lengths[name] += len(ids)
                    bar.update(number)
    if lengths["validation"] < 2 or lengths["train"] < 2:
        raise UserError(
            f"the text is too short: {lengths['train']} tokens to train on and "
            f"{lengths['validation']} to validate on, at least 2 of each are needed"
        )
    checksums = {name: _checksum(folder / f"{name}.bin") for name in lengths}
    meta = {"format": FORMAT, "dtype": dtype, "tokens": lengths, "sha256": checksums}
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")


def _part(source: Source, config: TextConfig, name: str) -> Iterator[TextPiece]:
    """The pieces of the text that belong to "train" or to "validation"."""
    whole = source.training.characters
    if source.validation is not None:
        return (source.training if name == "train" else source.validation).pieces()
    cut = int(whole * (1 - config.validation_fraction))
    start, stop = (0, cut) if name == "train" else (cut, whole)
    return _slice(source.training.pieces(), start, stop)


def _slice(pieces: Iterator[TextPiece], start: int, stop: int) -> Iterator[TextPiece]:
    """The characters from `start` up to `stop` of a stream of pieces."""
    position = 0
    for piece in pieces:
        end = position + len(piece.text)
        text = piece.text[max(start - position, 0) : max(stop - position, 0)]
        if text or (piece.ends_document and start <= position and end <= stop):
            yield TextPiece(text, piece.ends_document and end <= stop)
        position = end


def _tokenizer_texts(source: Source, config: TextConfig) -> Iterator[str]:
    """What a tokenizer is learned from: the training text, never the validation text.

    A character vocabulary only lists what occurs, and lists all of it, so that the validation
    text can be encoded.
    """
    if config.tokenizer == "char":
        for name in ("train", "validation"):
            yield from (piece.text for piece in _part(source, config, name))
        return
    read = 0
    for piece in _part(source, config, "train"):
        yield piece.text
        read += len(piece.text)
        if read > _TOKENIZER_SAMPLE:
            return


def _encoded(tokenizer: Tokenizer, pieces: Iterator[TextPiece]) -> Iterator[tuple[int, list[int]]]:
    """Number of characters and ids of each stretch of text, documents set apart."""
    written = False
    for _, document in itertools.groupby(_numbered(pieces), key=lambda pair: pair[0]):
        if written:
            yield 0, [tokenizer.end_of_text]
        yield from encode_in_pieces(tokenizer, (text for _, text in document))
        written = True


def _numbered(pieces: Iterator[TextPiece]) -> Iterator[tuple[int, str]]:
    """Each piece that is not empty, with the number of the document it belongs to."""
    number = 0
    for piece in pieces:
        if piece.text:
            yield number, piece.text
        number += piece.ends_document


def open_dataset(folder: Path) -> Dataset:
    """Open what `prepare` made.

    Raises:
        UserError: if it is not whole: lengths, checksums and ids are verified.
    """
    try:
        tokenizer = load_tokenizer(folder / "tokenizer.json")
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        dtype = np.dtype({"uint16": "<u2", "uint32": "<u4"}[meta["dtype"]])
        parts = {}
        for name in ("train", "validation"):
            file = folder / f"{name}.bin"
            parts[name] = np.memmap(file, dtype, mode="r")
            if len(parts[name]) != meta["tokens"][name] or _checksum(file) != meta["sha256"][name]:
                raise ValueError(f"{name}.bin is not what was written")
        if max(int(part.max()) for part in parts.values()) >= tokenizer.vocab_size:
            raise ValueError("a token id is outside the vocabulary")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"the token cache {folder} is damaged: {error}") from None
    return Dataset(tokenizer, parts["train"], parts["validation"])


def _checksum(file: Path) -> str:
    with open(file, "rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()
