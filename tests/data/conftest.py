"""What the tests of data/ share."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minigpt.data.readers import apart, parquet, pdf_pages
from minigpt.data.readers.content import Content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For generated texts, which are written over one another."""
    return tmp_path_factory.mktemp("texts")


@pytest.fixture
def read_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """PDF and parquet are read by the same code as always, without a process of their own."""
    for reader in ("pdf", "parquet"):
        monkeypatch.setattr(f"minigpt.data.readers.{reader}.read_apart", _read)
    monkeypatch.setattr(logging, "disable", lambda *_: None)  # which is for that process


def _read(module: str, content: Content, *arguments: str) -> Iterator[Any]:
    """What the process would print, line by line."""
    printed = io.BytesIO()
    with content.seekable() as stream:
        apart.print_lines(_values(module, stream, *arguments), printed)
    for line in printed.getvalue().splitlines():
        yield apart._value(line, content)


def _values(module: str, stream: Any, *arguments: str) -> Iterator[Any]:
    if module == "pdf_pages":
        return pdf_pages.pages(stream)
    what, wanted, most = arguments
    if what == "texts":
        return parquet.texts_of_column(stream, wanted, int(most))
    return parquet.rows_of_columns(stream, json.loads(wanted), int(most))
