"""minigpt page: a run as one HTML file."""

import re
from pathlib import Path

import pytest

from ..conftest import some_text
from .conftest import Type, assert_refused


@pytest.fixture(autouse=True)
def where_its_text_is(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_run.parents[1])


def test_a_run_becomes_one_file_that_names_no_other(
    tiny_run: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, line = tiny_run / "page.html", some_text().splitlines()[3]
    status, out, err = type_("page", tiny_run)
    page = file.read_text()
    assert (status, err) == (0, "") and out.startswith(f"{file}: 0.")
    assert "default-src 'none'" in page and not re.search(r"\b(src|href)=[\"']?(http|/)", page)
    assert line not in page
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert type_("page", tiny_run, "--open")[0] == 0
    assert opened == [file.as_uri()]
    file.unlink()


def test_a_page_calls_the_text_as_it_is_told_to(
    tiny_run: Path, type_: Type, tmp_path: Path
) -> None:
    for name, options in (("my", ()), ("old chats", ("--text-name", "old chats"))):
        page = tmp_path / "page.html"
        assert type_("page", tiny_run, "--out", page, *options)[0] == 0
        assert f'"text":"{name}"' in page.read_text()


def test_a_page_replaces_no_file_that_is_not_a_page(tiny_run: Path, type_: Type) -> None:
    weights = tiny_run / "model.safetensors"
    before = weights.read_bytes()
    assert_refused(type_("page", tiny_run, "--out", weights), "not a page", "--out")
    assert weights.read_bytes() == before


def test_a_large_model_is_refused_in_one_line(
    tiny_run: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.page.build.LARGEST", 100)
    assert_refused(type_("page", tiny_run), "at most 100 parameters", "minigpt export")
    assert not (tiny_run / "page.html").exists()
