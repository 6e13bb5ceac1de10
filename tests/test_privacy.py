"""What docs/privacy.md says: no connection is opened, and what of a text is in which file."""

import re
import shutil
import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest

from minigpt.cli import main

from .conftest import TINY, move_into

ROOT = Path(__file__).parent.parent
STRETCH = 30  # characters that nobody writes by chance


@pytest.fixture(scope="module")
def offline_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text, a run trained on it, a page and two exports, made by the commands while
    every attempt to reach another machine is an error."""

    def refuse(*_: Any) -> NoReturn:
        raise AssertionError("a connection was opened")

    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = move_into(tmp_path_factory.mktemp("offline"), monkeypatch)
        for name in ("connect", "connect_ex", "sendto"):
            monkeypatch.setattr(socket.socket, name, refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)

        options = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
        assert main(["train", "my.txt", *options]) == 0
        assert main(["generate", "the", "--run", "runs/my", "--max-new-tokens", "5"]) == 0
        assert main(["evaluate", "runs/my", "my.txt"]) == 0
        assert main(["page", "runs/my"]) == 0
        for kind in ("hf", "gguf"):
            assert main(["export", "runs/my", "--to", kind, "--out", f"exports/{kind}"]) == 0
    return folder


def stretches(folder: Path) -> list[bytes]:
    """The beginnings of all lines of the text."""
    lines = (folder / "my.txt").read_bytes().splitlines()
    return [line[:STRETCH] for line in lines]


def test_no_file_of_a_run_a_page_or_an_export_holds_the_text(offline_run: Path) -> None:
    made = [*offline_run.glob("runs/**/*"), *offline_run.glob("exports/**/*")]
    files = [path for path in made if path.is_file()]
    assert {"page.html", "config.json", "my.gguf", "last.safetensors"} <= {f.name for f in files}
    for file in files:
        content = file.read_bytes()
        assert not any(stretch in content for stretch in stretches(offline_run)), file


def test_the_page_on_privacy_has_a_row_for_each_file_of_a_run(offline_run: Path) -> None:
    page = (ROOT / "docs/privacy.md").read_text(encoding="utf-8")
    section = page.partition("## What a run contains\n")[2].partition("\n## ")[0]
    first_cells = "".join(re.findall(r"^\| (.*?) \|", section, re.M))
    named = {name.rstrip("/") for name in re.findall("`(.*?)`", first_cells)}
    made = {path.name for path in (offline_run / "runs/my").iterdir()}
    assert {name for name in made if not name.startswith(".")} <= named


def test_the_cache_of_texts_is_one_folder_that_may_be_deleted(
    offline_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(offline_run)
    tokens = offline_run / "cache/tokens"
    assert list(tokens.glob("*/train.bin"))
    assert [path.name for path in tokens.parent.iterdir()] == ["tokens"]

    shutil.rmtree(tokens)
    assert main(["generate", "the", "--run", "runs/my", "--max-new-tokens", "5"]) == 0
