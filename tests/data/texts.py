"""Files of text for the tests, and what is read from them."""

import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from minigpt import UserError
from minigpt.config import ReadingConfig
from minigpt.data.corpus import Corpus, Piece
from minigpt.data.files import find_files


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def json_lines(texts: Iterable[str], **options: bool) -> str:
    return "".join(json.dumps({"id": 1, "text": text}, **options) + "\n" for text in texts)


def corpus(*names: str | Path, **reading: Any) -> Corpus:
    settings = ReadingConfig(**reading)
    return Corpus(find_files(tuple(map(str, names)), reading=settings), settings)


def documents(*names: str | Path, **reading: Any) -> list[str]:
    """The documents of some files."""
    return whole(corpus(*names, **reading).pieces())


def piece(number: int, text: str) -> Piece:
    """A piece of a document that stands somewhere."""
    return Piece(number, text, Path("a.txt"), line=1)


def whole(pieces: Iterable[Piece]) -> list[str]:
    """Documents put together from their pieces."""
    return ["".join(p.text for p in own) for _, own in groupby(pieces, lambda p: p.number)]


def one_line(refused: pytest.ExceptionInfo[UserError]) -> str:
    assert "\n" not in str(refused.value)
    return str(refused.value)


def refusal(*names: str | Path, **reading: Any) -> str:
    """The line that a user gets for files that cannot be read."""
    with pytest.raises(UserError) as refused:
        documents(*names, **reading)
    assert str(names[0]) in str(refused.value)
    return one_line(refused)
