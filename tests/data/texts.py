"""Files of text for the tests, and what is read from them."""

from pathlib import Path

import pytest

from minigpt import UserError
from minigpt.data.corpus import Corpus, find_files


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def corpus(*names: str | Path, text_field: str = "text") -> Corpus:
    return Corpus(find_files(tuple(map(str, names))), text_field)


def documents(*names: str | Path, text_field: str = "text") -> list[str]:
    """The texts of the documents, each put together from its pieces."""
    texts, text = [], ""
    for piece in corpus(*names, text_field=text_field).pieces():
        text += piece.text
        if piece.ends_document:
            texts.append(text)
            text = ""
    assert text == ""
    return texts


def refusal(*names: str | Path, text_field: str = "text") -> str:
    """The line a user gets."""
    with pytest.raises(UserError) as refused:
        documents(*names, text_field=text_field)
    message = str(refused.value)
    assert "\n" not in message
    assert str(names[0]) in message
    return message
