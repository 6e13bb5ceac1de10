"""A text to its token file: split, the tokenizer learned, all of it encoded, shard after shard.

What a preparation that was cut off has left is continued; what is damaged is made again.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import UserError
from ..config import TextConfig
from ..tokenizer import Tokenizer, encode_in_pieces, load_tokenizer, make_tokenizer
from .corpus import Corpus, Source
from .splitting import after, between, document_lengths, selected, set_aside, stretches
from .token_file import Meta, Shard, read_meta, sound_shards, write_meta, write_shards

TOKENIZER, VALIDATION = "tokenizer.json", "validation"
Progress = Callable[[str, int], Any]
_SAMPLE = 1 << 25  # a BPE is learned from about this many characters,
_SAMPLED = 1 << 16  # in stretches of this many if the text is longer


class _NoBar(nullcontext[Any]):
    def __enter__(self) -> Any:
        return self

    def update(self, characters: int) -> None:
        pass


def no_bar(what: str, total: int) -> _NoBar:
    """Show no progress."""
    return _NoBar()


@dataclass(frozen=True)
class _Part:
    """A part of the text that has shards of its own."""

    name: str
    characters: int
    pieces: Callable[[], Iterator[tuple[object, str]]]  # with their documents; from the beginning


def build(
    source: Source,
    config: TextConfig,
    folder: Path,
    tokenizer: Tokenizer | None,
    progress: Progress,
) -> None:
    """Make a token file, or what is missing of it.

    Args:
        source: the text.
        config: how to split and tokenize it.
        folder: of the token file: empty, or with what is left of one of the same text.
        tokenizer: to be used, in place of the one that `config` names.
        progress: opens a progress bar.

    Raises:
        UserError: if the text cannot be read or encoded, changes meanwhile, or is too short.
        OSError: if it cannot be written; what is there can be continued.
    """
    parts = _parts(source, config)
    tokenizer, meta = _left_over(folder) or _begun(parts, config, folder, tokenizer, progress)
    with progress("tokenizing", _characters(parts)) as bar:
        for part in parts:
            with closing(_shards(part, tokenizer, folder, meta, bar)) as shards:
                for shard in shards:
                    source.check_unchanged()
                    meta = replace(meta, shards=(*meta.shards, shard))
                    write_meta(folder, meta)
    source.check_unchanged()
    if any(meta.characters(part.name) != part.characters for part in parts):
        raise UserError("the text changed while it was read; start again once it is whole")
    *training, validation = (meta.tokens(part.name) for part in parts)
    if min(training) < 2 or validation < 2:
        raise UserError(
            f"the text is too short: {min(training)} tokens to train on and {validation} to "
            "validate on, at least 2 of each are needed"
        )
    write_meta(folder, replace(meta, whole=True))


def _parts(source: Source, config: TextConfig) -> list[_Part]:
    """What is trained on, and last what is validated on."""
    corpora = source.weighted or (source.training,)
    names = [f"train{i + 1}" for i in range(len(source.weighted))] or ["train"]
    named = list(zip(names, corpora, strict=True))
    if (other := source.validation) is not None:
        parts = [_Part(n, sum(_lengths(corpus)), corpus.documents) for n, corpus in named]
        whole = sum(document_lengths(other.documents()))
        return [*parts, _Part(VALIDATION, whole, other.documents)]
    halves = [_halves(name, corpus, config) for name, corpus in named]
    aside = [half for _, half in halves]

    def pieces() -> Iterator[tuple[object, str]]:
        for i, half in enumerate(aside):
            yield from (((i, number), text) for number, text in half.pieces())

    characters = sum(half.characters for half in aside)
    return [*(half for half, _ in halves), _Part(VALIDATION, characters, pieces)]


def _lengths(corpus: Corpus) -> Sequence[int]:
    """The number of characters of each document of a training text."""
    lengths = document_lengths(corpus.documents())
    if not lengths:
        raise UserError(f"there is no text in {', '.join(map(str, corpus.files))}")
    return lengths


def _halves(name: str, corpus: Corpus, config: TextConfig) -> tuple[_Part, _Part]:
    """What of a corpus is trained on, and what is set aside."""
    lengths = _lengths(corpus)
    whole = sum(lengths)
    if config.split == "end" or len(lengths) == 1:
        cut = int(whole * (1 - config.validation_fraction))
        return (
            _Part(name, cut, lambda: between(corpus.documents(), 0, cut)),
            _Part(name, whole - cut, lambda: between(corpus.documents(), cut, whole)),
        )
    chosen = set_aside(lengths, config.validation_fraction)
    aside = sum(length for length, is_aside in zip(lengths, chosen, strict=True) if is_aside)
    return (
        _Part(name, whole - aside, lambda: selected(corpus.documents(), chosen, False)),
        _Part(name, aside, lambda: selected(corpus.documents(), chosen, True)),
    )


def _left_over(folder: Path) -> tuple[Tokenizer, Meta] | None:
    """The tokenizer of an earlier preparation, and the shards that are whole up to the first
    that is not."""
    try:
        tokenizer, meta = load_tokenizer(folder / TOKENIZER), read_meta(folder)
    except UserError:
        return None
    sound: list[Shard] = []
    with suppress(UserError):
        files = sound_shards(folder, meta, tokenizer.vocab_size)
        for shard, _ in zip(meta.shards, files, strict=True):
            sound.append(shard)
    return tokenizer, Meta(meta.dtype, tuple(sound))


def _begun(
    parts: Sequence[_Part],
    config: TextConfig,
    folder: Path,
    tokenizer: Tokenizer | None,
    progress: Progress,
) -> tuple[Tokenizer, Meta]:
    """A tokenizer for the text, written to the folder, and a token file without a shard yet."""
    if tokenizer is None:
        texts = _tokenizer_texts(parts, config.tokenizer, progress)
        tokenizer = make_tokenizer(config.tokenizer, config.vocab_size, texts)
    (folder / TOKENIZER).write_text(tokenizer.to_json(), encoding="utf-8")
    return tokenizer, Meta("uint16" if tokenizer.vocab_size <= 1 << 16 else "uint32")


def _tokenizer_texts(parts: Sequence[_Part], kind: str, progress: Progress) -> Iterator[str]:
    """What a tokenizer is learned from: the training text, never the validation text; of a long
    one stretches that are spread over it.

    A character vocabulary only lists what occurs, and lists all of it, so that the validation
    text can be encoded.
    """
    if kind == "char":
        for part in parts:
            yield from (text for _, text in part.pieces())
        return
    training = parts[:-1]
    whole = _characters(training)
    at_once = _SAMPLED if whole > _SAMPLE else whole
    read = taken = 0
    with progress("learning the tokenizer", _characters(training)) as bar:
        for _, text in chain.from_iterable(part.pieces() for part in training):
            for start in range(0, len(text), at_once):
                stretch = text[start : start + at_once]
                read += len(stretch)
                if (taken + len(stretch)) * whole <= _SAMPLE * read:
                    taken += len(stretch)
                    yield stretch
            bar.update(len(text))


def _shards(
    part: _Part, tokenizer: Tokenizer, folder: Path, meta: Meta, bar: Any
) -> Generator[Shard, None, None]:
    """Encode a part from where its shards end, and write the others."""
    done, start = meta.of(part.name), meta.characters(part.name)
    bar.update(start)
    if start == part.characters:
        return

    def encoded() -> Iterator[tuple[int, NDArray[np.uint32]]]:
        for characters, ids in encode_in_pieces(tokenizer, after(stretches(part.pieces()), start)):
            yield characters, ids
            bar.update(characters)

    yield from write_shards(folder, part.name, meta.dtype, encoded(), done)


def _characters(parts: Sequence[_Part]) -> int:
    return sum(part.characters for part in parts)
