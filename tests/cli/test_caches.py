"""What is kept between commands: where, and that a folder that cannot be used does no harm."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minigpt.cli.main import keep_compiled_code
from minigpt.config import cache_folder
from tests.conftest import TINY, some_text

ROOT = Path(__file__).parent.parent
VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MINIGPT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path.home() / ".cache" / "minigpt"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/minigpt")
    monkeypatch.setenv("MINIGPT_CACHE", "/mine")
    assert cache_folder() == Path("/mine")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder, where nobody has said where compiled code is to be."""
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "")
    return tmp_path


def test_compiled_code_is_kept_beside_the_token_files(cache: Path) -> None:
    keep_compiled_code()
    assert os.environ[VARIABLE] == str(cache / "compiled")


def test_who_says_where_it_is_to_be_is_heard(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/elsewhere")
    keep_compiled_code()
    assert os.environ[VARIABLE] == "/elsewhere"
    assert not list(cache.iterdir())


def test_where_it_cannot_be_torch_chooses(cache: Path) -> None:
    (cache / "compiled").write_text("no folder")
    keep_compiled_code()
    assert os.environ[VARIABLE] == ""


def test_torch_keeps_to_it(cache: Path) -> None:
    """It makes a choice of its own as soon as an optimizer is made, which comes later."""
    (cache / "my.txt").write_text(some_text())
    options = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    code = f"import os, minigpt.cli as c; c.train_main(); print(os.environ['{VARIABLE}'])"
    done = subprocess.run(
        [sys.executable, "-c", code, "my.txt", *options],
        cwd=cache,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == str(cache / "compiled")
